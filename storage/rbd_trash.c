/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which image a name means, also when that is in RBD's trash because somebody is removing it, or was. */
#include <errno.h>
#include <string.h>

#include "storage/rbd_internal.h"

#define ID_OBJECT_PREFIX "rbd_id." /* librbd: RBD_ID_PREFIX; holds a length of 4 bytes and the id */
#define TRASH_OBJECT     "rbd_trash" /* librbd: RBD_TRASH; has a key for each image in the trash */
#define TRASH_KEY_PREFIX "id_"
#define TRASH_KEYS_MAX   512u
#define ID_BYTES_MAX     64u
#define LENGTH_BYTES     4u

void berth_rbd_found_clear(BerthRbdFound *found)
{
    g_clear_pointer(&found->id, g_free);
}

static int read_id(BerthRbdStorage *self, const char *name, char **out_id)
{
    g_autofree char *object = g_strconcat(ID_OBJECT_PREFIX, name, NULL);
    char content[LENGTH_BYTES + ID_BYTES_MAX];
    int result = rados_read(self->images, object, content, sizeof content, 0);
    if (result < 0)
        return result;
    if ((gsize)result <= LENGTH_BYTES)
        return -ENOENT; /* being made */
    *out_id = g_strndup(content + LENGTH_BYTES, (gsize)result - LENGTH_BYTES);
    return 0;
}

/* Is the image ID in the trash because somebody removes it as NAME? 0 or 1. */
static int check_trashed(BerthRbdStorage *self, const char *id, const char *name,
                         BerthRbdFound *out_found)
{
    rbd_trash_image_info_t info;
    int result = rbd_trash_get(self->images, id, &info);
    if (result < 0)
        return result == -ENOENT ? 0 : result; /* it has gone meanwhile */
    gboolean is_it = info.source == RBD_TRASH_IMAGE_SOURCE_REMOVING && g_str_equal(info.name, name);
    if (is_it)
        *out_found = (BerthRbdFound){g_strdup(id), info.deletion_time};
    rbd_trash_get_cleanup(&info);
    return is_it ? 1 : 0;
}

/* Appends the keys of the trash that follow AFTER, some of them. -ENOENT: there has never been anything in it. */
static int list_trash(BerthRbdStorage *self, const char *after, GPtrArray *keys, gboolean *out_more)
{
    rados_omap_iter_t iterator = NULL;
    unsigned char more = 0;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_omap_get_keys2(op, after, TRASH_KEYS_MAX, &iterator, &more, NULL);
    int result = rados_read_op_operate(op, self->images, TRASH_OBJECT, 0);
    while (result >= 0) {
        char *key = NULL, *value = NULL;
        size_t key_length = 0, value_length = 0;
        result = rados_omap_get_next2(iterator, &key, &value, &key_length, &value_length);
        if (key == NULL)
            break;
        g_ptr_array_add(keys, g_strndup(key, key_length));
    }
    if (iterator != NULL)
        rados_omap_get_end(iterator);
    rados_release_read_op(op);
    *out_more = more != 0;
    return result;
}

/* Of an image that somebody was removing. (rbd_trash_list() leaves out just those.) */
static int find_in_trash(BerthRbdStorage *self, const char *name, BerthRbdFound *out_found)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    int result = 0;
    for (gboolean more = TRUE; more && result >= 0;) {
        const char *after = keys->len > 0 ? g_ptr_array_index(keys, keys->len - 1) : "";
        result = list_trash(self, after, keys, &more);
    }
    for (guint i = 0; result == 0 && i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        if (!g_str_has_prefix(key, TRASH_KEY_PREFIX))
            continue;
        result = check_trashed(self, key + strlen(TRASH_KEY_PREFIX), name, out_found);
    }
    return result == 0 ? -ENOENT : MIN(result, 0);
}

/* It is in the trash before its name is gone, and has its name again before it is out of the trash. */
int berth_rbd_find(BerthRbdStorage *self, const char *name, BerthRbdFound *out_found)
{
    int result = read_id(self, name, &out_found->id);
    if (result == -ENOENT)
        result = find_in_trash(self, name, out_found);
    if (result == -ENOENT)
        result = read_id(self, name, &out_found->id); /* it could not be removed */
    return result;
}
