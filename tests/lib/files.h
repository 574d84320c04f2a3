/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files in a test's directory. */

#include <glib.h>

#include "tests/lib/assert.h"

static inline void put_file(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    assert_int_equal(g_mkdir_with_parents(parent, 0700), 0);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* There is one, and its content is TEXT. */
static inline gboolean file_says(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *found = NULL;
    return g_file_get_contents(path, &found, NULL, NULL) && g_str_equal(found, text);
}

static inline void assert_file(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *found = NULL;
    assert_true(g_file_get_contents(path, &found, NULL, NULL));
    assert_string_equal(found, text);
}
