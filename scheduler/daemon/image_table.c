/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of images. What they are made of is in storage; what survives is the store's. */
#include "config.h"

#include "scheduler/daemon/image_table.h"

#include "common/error.h"

#include <string.h>

struct BerthImageTable {
    GHashTable *images;   /* name -> Berth__Image */
    GHashTable *reserved; /* name -> id */
    GHashTable *leaving;  /* set of ids: of images that were removed, and are not unwanted yet */
    GHashTable *unwanted; /* id -> BerthUnwanted */
};

BerthImageTable *berth_image_table_new(void)
{
    BerthImageTable *table = g_new0(BerthImageTable, 1);
    table->images =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)berth__image_drop);
    table->reserved = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    table->leaving = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    table->unwanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return table;
}

void berth_image_table_free(BerthImageTable *table)
{
    g_hash_table_unref(table->images);
    g_hash_table_unref(table->reserved);
    g_hash_table_unref(table->leaving);
    g_hash_table_unref(table->unwanted);
    g_free(table);
}

void berth_image_table_put(BerthImageTable *table, Berth__Image *image)
{
    g_hash_table_replace(table->images, image->name, image);
}

Berth__Image *berth_image_table_find(BerthImageTable *table, const char *name)
{
    return g_hash_table_lookup(table->images, name);
}

void berth_image_table_remove(BerthImageTable *table, const char *name)
{
    const Berth__Image *image = berth_image_table_find(table, name);
    if (image)
        g_hash_table_add(table->leaving, g_strdup(image->id));
    g_hash_table_remove(table->images, name);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    const Berth__Image *const *left = a;
    const Berth__Image *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

GPtrArray *berth_image_table_list(BerthImageTable *table)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    gpointer image;
    g_hash_table_iter_init(&iter, table->images);
    while (g_hash_table_iter_next(&iter, NULL, &image))
        g_ptr_array_add(list, image);
    g_ptr_array_sort(list, compare_names);
    return list;
}

Berth__Image *berth_image_table_get(BerthImageTable *table, const char *name, GError **error)
{
    Berth__Image *image = berth_image_table_find(table, name);
    if (image)
        return image;
    g_autoptr(GPtrArray) list = berth_image_table_list(table);
    GString *known = g_string_new(NULL);
    for (guint i = 0; i < list->len && i < 10; i++) {
        const Berth__Image *other = g_ptr_array_index(list, i);
        g_string_append_printf(known, "%s%s", i ? ", " : "", other->name);
    }
    if (list->len > 10)
        g_string_append(known, ", ...");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                "there is no image \"%s\"; %s%s; an operator can import one with: berth image "
                "import NAME PATH",
                name, list->len ? "there are: " : "there is none at all", known->str);
    g_string_free(known, TRUE);
    return NULL;
}

gboolean berth_image_table_reserve(BerthImageTable *table, const char *name, const char *id,
                                   GError **error)
{
    if (g_hash_table_contains(table->images, name)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "there is an image \"%s\" already; remove it first (berth image rm %s), or "
                    "choose another name",
                    name, name);
        return FALSE;
    }
    if (g_hash_table_contains(table->reserved, name)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "an image \"%s\" is being imported by somebody else right now; wait until that "
                    "has ended, or choose another name",
                    name);
        return FALSE;
    }
    g_hash_table_insert(table->reserved, g_strdup(name), g_strdup(id));
    return TRUE;
}

void berth_image_table_unreserve(BerthImageTable *table, const char *name)
{
    g_hash_table_remove(table->reserved, name);
}

static gboolean is_image_id(gpointer key, gpointer value, gpointer user_data)
{
    const Berth__Image *image = value;
    return strcmp(image->id, user_data) == 0;
}

static gboolean is_reserved_id(gpointer key, gpointer value, gpointer user_data)
{
    return strcmp(value, user_data) == 0;
}

static gboolean is_reserved(BerthImageTable *table, const char *id)
{
    return g_hash_table_find(table->reserved, is_reserved_id, (gpointer)id) != NULL;
}

void berth_image_table_set_unwanted(BerthImageTable *table, const char *id, BerthUnwanted why)
{
    g_hash_table_remove(table->leaving, id);
    g_hash_table_replace(table->unwanted, g_strdup(id), GINT_TO_POINTER(why));
}

void berth_image_table_clear_unwanted(BerthImageTable *table, const char *id)
{
    g_hash_table_remove(table->unwanted, id);
}

char **berth_image_table_list_unwanted(BerthImageTable *table, BerthUnwanted why)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    GHashTableIter iter;
    gpointer id, reason;
    g_hash_table_iter_init(&iter, table->unwanted);
    while (g_hash_table_iter_next(&iter, &id, &reason))
        if (GPOINTER_TO_INT(reason) == (gint)why && !is_reserved(table, id))
            g_strv_builder_add(list, id);
    return g_strv_builder_end(list);
}

guint berth_image_table_n_unwanted(BerthImageTable *table)
{
    return g_hash_table_size(table->unwanted);
}

gboolean berth_image_table_has_id(BerthImageTable *table, const char *id)
{
    return g_hash_table_find(table->images, is_image_id, (gpointer)id) || is_reserved(table, id) ||
           g_hash_table_contains(table->leaving, id) || g_hash_table_contains(table->unwanted, id);
}
