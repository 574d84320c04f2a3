/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* The one error domain of Berth. Its codes are closed and are the schema's ErrorCode, so that an
 * error keeps its meaning from a storage worker through a daemon to the user's exit status.
 * A message says what was tried, on what, why it failed, and what the user can do. */
#define BERTH_ERROR (berth_error_quark())
GQuark berth_error_quark(void);

typedef enum {
    BERTH_ERROR_INVALID_ARGUMENT = 1, /* the request is wrong whatever the state: mend it */
    BERTH_ERROR_NOT_FOUND,            /* no such job, node, image, file */
    BERTH_ERROR_ALREADY_EXISTS,       /* the name is taken */
    BERTH_ERROR_PERMISSION_DENIED,    /* the caller may not do this */
    BERTH_ERROR_FAILED_PRECONDITION,  /* right request, wrong state (image in use, job ended) */
    BERTH_ERROR_RESOURCE_EXHAUSTED,   /* a limit or a full disk */
    BERTH_ERROR_UNAVAILABLE,          /* a peer or storage cannot be reached: try again */
    BERTH_ERROR_DEADLINE_EXCEEDED,    /* no answer in time; the outcome is unknown */
    BERTH_ERROR_CANCELLED,            /* the caller gave up */
    BERTH_ERROR_UNSUPPORTED,          /* this build, storage or node cannot do it */
    BERTH_ERROR_DATA_LOSS,            /* stored data is corrupt */
    BERTH_ERROR_PROTOCOL,             /* the peer broke the protocol */
    BERTH_ERROR_INTERNAL,             /* a defect in Berth */
} BerthErrorCode;

/* The code's name as users and --json see it ("not-found"); "internal" for what is no code. */
const char *berth_error_code_name(int code);

/* The nearest code for an errno value (ENOENT: NOT_FOUND, ENOSPC: RESOURCE_EXHAUSTED, ...). */
BerthErrorCode berth_error_code_from_errno(int err);

/* Sets a BERTH_ERROR from errno value ERR; its text is appended to the message after ": ". */
void berth_set_error_errno(GError **error, int err, const char *format, ...) G_GNUC_PRINTF(3, 4);
