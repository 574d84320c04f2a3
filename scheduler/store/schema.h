/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/db.h"

/* What the database at PATH is, and how it is made. */

/* Makes the tables in an empty database. */
gboolean store_schema_create(StoreDb *db, GError **error);
/* TRUE in *OUT_EMPTY: nothing was ever created in it. Reads the file for the first time: what is
 * no database fails here with DATA_LOSS. */
gboolean store_schema_is_empty(StoreDb *db, gboolean *out_empty, GError **error);
/* Brings a database that passed its check to the present schema, as a whole or not at all. */
gboolean store_schema_upgrade(StoreDb *db, GError **error);
/* Application, version (the present one or an older) and integrity. */
gboolean store_schema_check(StoreDb *db, const char *path, GError **error);
