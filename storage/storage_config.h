/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Group [storage] of berthd.conf and berth-node.conf: a BerthStorageConfig filled by the loader
 * of common/config.h. A daemon puts the table beside its own:
 *
 *     BerthStorageConfig storage = {0};
 *     BerthConfigTable tables[] = {berth_storage_config_table(&storage), {...}, {NULL}};
 *     berth_config_load(path, "berthd.conf(5)", tables, &error) &&
 *         berth_storage_config_check(&storage, path, &error)
 *
 * and frees it with berth_config_clear(). */

#include "common/config.h"
#include "storage/storage.h"

extern const BerthConfigOption berth_storage_config_options[];
extern const gsize berth_storage_config_n_options;

/* CONFIG is zeroed by the caller and outlives the table. */
BerthConfigTable berth_storage_config_table(BerthStorageConfig *config);

/* What no single key can tell: which keys the kind needs. NAME stands for the file in messages.
 * INVALID_ARGUMENT. */
gboolean berth_storage_config_check(const BerthStorageConfig *config, const char *name,
                                    GError **error);

/* Adds what CONFIG names and this host lacks; see common/config_warnings.h. */
void berth_storage_config_warn(const BerthStorageConfig *config, GPtrArray *warnings);
