/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* berth-sim as its user meets it. */

#include "tests/lib/assert.h"

typedef struct {
    char *out, *err;
    int status;    /* exit status; 128 + N for a signal */
    long peak_kib; /* of its memory */
} Said;

/* `berth-sim --quiet ARGUMENTS` in DIR, to its end. */
Said *sim_program(const char *dir, const char *arguments);
void said_free(Said *said);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Said, said_free)

#define assert_status(said, expected)                                                              \
    do {                                                                                           \
        if ((said)->status != (expected))                                                          \
            fail_msg("status %d instead of %d; stdout \"%.3000s\", stderr \"%.2000s\"",            \
                     (said)->status, (expected), (said)->out, (said)->err);                        \
    } while (0)
#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("no \"%s\" in \"%.4000s\"", (part), (text));                                  \
    } while (0)
