/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"
#include "scheduler/daemon/pb.h"

/* The images that jobs may name and the objects that are to be removed, as in the store, and the names
 * that imports under way have reserved. */

BerthImageTable *berth_image_table_new(void);
void berth_image_table_free(BerthImageTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthImageTable, berth_image_table_free)

/* IMAGE (transfer full); replaces one of the same name. */
void berth_image_table_put(BerthImageTable *table, Berth__Image *image);
/* Its object is to be unwanted once that is durable. */
void berth_image_table_remove(BerthImageTable *table, const char *name);
/* (transfer none) NULL: there is none. */
Berth__Image *berth_image_table_find(BerthImageTable *table, const char *name);
/* Sorted by name (transfer container). */
GPtrArray *berth_image_table_list(BerthImageTable *table);
/* NOT_FOUND, naming what there is and how to import. */
Berth__Image *berth_image_table_get(BerthImageTable *table, const char *name, GError **error);

/* An object in storage that is being written, and the name that it is to have: ALREADY_EXISTS if
 * there is such an image, or an import of it. */
gboolean berth_image_table_reserve(BerthImageTable *table, const char *name, const char *id,
                                   GError **error);
void berth_image_table_unreserve(BerthImageTable *table, const char *name);

/* Objects in storage that are to be removed, unless an import is writing them: from before they are
 * made until they are an image's, and from when their image's removal is durable until they are gone. */
void berth_image_table_set_unwanted(BerthImageTable *table, const char *id, BerthUnwanted why);
void berth_image_table_clear_unwanted(BerthImageTable *table, const char *id);
/* Those that are to be removed now, for that reason (transfer full). */
char **berth_image_table_list_unwanted(BerthImageTable *table, BerthUnwanted why);
guint berth_image_table_n_unwanted(BerthImageTable *table);
/* Is the object with this ID an image's, an import's, or to be removed? Else another state made it. */
gboolean berth_image_table_has_id(BerthImageTable *table, const char *id);
