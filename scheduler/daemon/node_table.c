/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the descriptions of nodes. Their states and reservations are the core's. */
#include "config.h"

#include "scheduler/daemon/node_table.h"

#include <string.h>

struct BerthNodeTable {
    GPtrArray *entries; /* by handle - 1; NULL where the core knows a node that never joined */
};

void berth_node_entry_clear_fence_error(BerthNodeEntry *entry)
{
    g_clear_pointer(&entry->fence_error, g_free);
    g_clear_pointer(&entry->unfenced, g_free);
}

static void entry_free(gpointer data)
{
    BerthNodeEntry *entry = data;
    if (!entry)
        return;
    berth__node_info__free_unpacked(entry->info, NULL);
    berth__node_usage__free_unpacked(entry->usage, NULL);
    if (entry->admission)
        berth__node_admission__free_unpacked(entry->admission, NULL);
    g_free(entry->name);
    g_free(entry->address);
    g_free(entry->start_error);
    berth_node_entry_clear_fence_error(entry);
    g_free(entry);
}

BerthNodeTable *berth_node_table_new(void)
{
    BerthNodeTable *table = g_new0(BerthNodeTable, 1);
    table->entries = g_ptr_array_new_with_free_func(entry_free);
    return table;
}

void berth_node_table_free(BerthNodeTable *table)
{
    g_ptr_array_unref(table->entries);
    g_free(table);
}

BerthNodeEntry *berth_node_table_find(BerthNodeTable *table, guint32 handle)
{
    if (handle == 0 || handle > table->entries->len)
        return NULL;
    return g_ptr_array_index(table->entries, handle - 1);
}

const char *berth_node_table_name(BerthNodeTable *table, guint32 handle)
{
    const BerthNodeEntry *entry = berth_node_table_find(table, handle);
    return entry ? entry->name : "";
}

BerthNodeEntry *berth_node_table_add(BerthNodeTable *table, guint32 handle, const char *name)
{
    g_return_val_if_fail(handle > 0, NULL);
    BerthNodeEntry *entry = berth_node_table_find(table, handle);
    if (entry)
        return entry;
    if (handle > table->entries->len)
        g_ptr_array_set_size(table->entries, (gint)handle);
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    info.name = (char *)name;
    entry = g_new0(BerthNodeEntry, 1);
    entry->handle = handle;
    entry->name = g_strdup(name);
    entry->info = berth_pb_dup(&info.base);
    g_ptr_array_index(table->entries, handle - 1) = entry;
    return entry;
}

void berth_node_entry_set_info(BerthNodeEntry *entry, const Berth__NodeInfo *info)
{
    berth__node_info__free_unpacked(entry->info, NULL);
    entry->info = berth_pb_dup(&info->base);
}

void berth_node_entry_set_admission(BerthNodeEntry *entry, const Berth__NodeAdmission *admission)
{
    Berth__NodeAdmission *copy = admission ? berth_pb_dup(&admission->base) : NULL;
    if (entry->admission)
        berth__node_admission__free_unpacked(entry->admission, NULL);
    entry->admission = copy;
}

gboolean berth_node_entry_is_draining(const BerthNodeEntry *entry)
{
    return entry->admission && entry->admission->kind == BERTH__NODE_ADMISSION__KIND__DRAINING;
}

gboolean berth_node_entry_is_given_up(const BerthNodeEntry *entry)
{
    return entry->admission && entry->admission->kind == BERTH__NODE_ADMISSION__KIND__GIVEN_UP;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    const BerthNodeEntry *const *left = a;
    const BerthNodeEntry *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

GPtrArray *berth_node_table_list(BerthNodeTable *table)
{
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < table->entries->len; i++) {
        BerthNodeEntry *entry = g_ptr_array_index(table->entries, i);
        if (entry)
            g_ptr_array_add(list, entry);
    }
    g_ptr_array_sort(list, compare_names);
    return list;
}
