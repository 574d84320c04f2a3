/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A directory for one test, as its setup and teardown: *state is its path. */

#include <gio/gio.h>

static inline int tempdir_make(void **state)
{
    *state = g_dir_make_tmp("berth-test-XXXXXX", NULL);
    return *state != NULL ? 0 : -1;
}

static inline int tempdir_remove(void **state)
{
    const char *const argv[] = {"rm", "-rf", *state, NULL};
    g_autoptr(GSubprocess) process = g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_NONE, NULL);
    gboolean ok = process != NULL && g_subprocess_wait_check(process, NULL, NULL);

    g_free(*state);
    return ok ? 0 : -1;
}
