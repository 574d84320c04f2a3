/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs that a fixture needs done, and says nothing about. */

#include <gio/gio.h>

#include "tests/lib/assert.h"

/* Runs ARGV (NULL-terminated) to its end; fails the test if it fails. */
static inline void tool_run(const char *const *argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process = g_subprocess_newv(
        argv, G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, &error);
    assert_no_error(error);
    g_subprocess_wait_check(process, NULL, &error);
    assert_no_error(error);
}
