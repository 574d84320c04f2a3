/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every test of ours needs beyond cmocka. Include this instead of <cmocka.h>. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/error.h"

#include <string.h>

#define assert_no_error(error)                                                                     \
    do {                                                                                           \
        if ((error) != NULL)                                                                       \
            fail_msg("unexpected error: %s", (error)->message);                                    \
    } while (0)

/* ERROR is a BERTH_ERROR with CODE, and its message contains TEXT. */
#define assert_berth_error(error, expected_code, text)                                             \
    do {                                                                                           \
        assert_non_null(error);                                                                    \
        if ((error)->domain != BERTH_ERROR || (error)->code != (int)(expected_code))               \
            fail_msg("expected %s, got %s %d: %s", berth_error_code_name((int)(expected_code)),    \
                     g_quark_to_string((error)->domain), (error)->code, (error)->message);         \
        if (strstr((error)->message, (text)) == NULL)                                              \
            fail_msg("no \"%s\" in: %s", (text), (error)->message);                                \
    } while (0)

/* Runs the default main context until CONDITION holds. The deadline is for a test that hangs. */
#define run_until(condition)                                                                       \
    do {                                                                                           \
        gint64 run_deadline = g_get_monotonic_time() + 180 * G_USEC_PER_SEC;                       \
        guint run_tick = g_timeout_add(200, G_SOURCE_FUNC(run_until_tick), NULL);                  \
        while (!(condition)) {                                                                     \
            if (g_get_monotonic_time() > run_deadline)                                             \
                fail_msg("%s:%d: not within 180 s: %s", __FILE__, __LINE__, #condition);           \
            g_main_context_iteration(NULL, TRUE);                                                  \
        }                                                                                          \
        g_source_remove(run_tick);                                                                 \
    } while (0)

static inline gboolean run_until_tick(gpointer unused)
{
    return G_SOURCE_CONTINUE;
}
