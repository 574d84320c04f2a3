/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A database that is to be whole. */

#include "tests/lib/assert.h"

#include <sqlite3.h>

static inline void assert_integrity(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *check = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(check), SQLITE_ROW);
    assert_string_equal(sqlite3_column_text(check, 0), "ok");
    sqlite3_finalize(check);
    sqlite3_close(db);
}
