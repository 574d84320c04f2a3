/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Commands beside the job's own in one guest. It believes nothing that the guest says of them but what can
 * be: output comes in order and within its window, or the session is over. */

#include "nodeagent/exec.h"

typedef struct BerthGuestExecs BerthGuestExecs;

typedef struct {
    /* Less waits to be written than a guest may keep waiting. */
    gboolean (*has_room)(gpointer user_data);
    /* MESSAGE needs its session yet. */
    void (*send)(Berth__ToGuest *message, gpointer user_data);
} BerthGuestExecsFuncs;

/* FUNCS stays valid. */
BerthGuestExecs *berth_guest_execs_new(const BerthGuestExecsFuncs *funcs, gpointer user_data);
void berth_guest_execs_free(BerthGuestExecs *execs); /* after fail() */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestExecs, berth_guest_execs_free)

/* Begins what REQUEST says, which may go, or will when the guest has answered. FUNCS stays valid. UNSUPPORTED: it was started by
 * an older release. RESOURCE_EXHAUSTED: it runs as many as may. Where that is known only when it answers, the command ends
 * with that error; with UNAVAILABLE when it does not within 30 s. */
BerthExec *berth_guest_execs_open(BerthGuestExecs *execs, const Berth__ExecRequest *request,
                                  const BerthExecFuncs *funcs, gpointer user_data, GError **error);

/* --- for the channel -------------------------------------------------------------------------- */

/* Those that a Hello is to name (transfer full). */
GArray *berth_guest_execs_ids(const BerthGuestExecs *execs);
/* The guest has answered in a session, and can run EXECS_MAX at once. */
void berth_guest_execs_begin(BerthGuestExecs *execs, guint execs_max);
/* The session has ended; another will follow over the same connection. */
void berth_guest_execs_pause(BerthGuestExecs *execs);
/* There may be room again. */
void berth_guest_execs_go_on(BerthGuestExecs *execs);
/* The connection is gone: so are those that the guest has heard of, because of REASON. */
void berth_guest_execs_lose(BerthGuestExecs *execs, const GError *reason);
/* The guest is gone: so are they all. */
void berth_guest_execs_fail(BerthGuestExecs *execs, const GError *reason);

typedef enum {
    BERTH_EXEC_FRESH, /* it said what was to be expected, once */
    BERTH_EXEC_STALE, /* of one that is not wanted any more, or again */
    BERTH_EXEC_BROKEN,
} BerthExecVerdict;

/* MESSAGE of the present session, about one of them. */
BerthExecVerdict berth_guest_execs_take(BerthGuestExecs *execs, const Berth__FromGuest *message);
