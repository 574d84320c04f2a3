/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question to Ceph's monitors how much more a pool can take, and the reading of the answer. */
#include "storage/rbd_room.h"

#include <json-glib/json-glib.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

static JsonObject *member_object(JsonObject *object, const char *name)
{
    JsonNode *node = object != NULL ? json_object_get_member(object, name) : NULL;
    return node != NULL && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static JsonArray *member_array(JsonObject *object, const char *name)
{
    JsonNode *node = object != NULL ? json_object_get_member(object, name) : NULL;
    return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

static gboolean is_named(JsonObject *pool, const char *name)
{
    JsonNode *node = json_object_get_member(pool, "name");
    return node != NULL && JSON_NODE_HOLDS_VALUE(node) &&
           g_strcmp0(json_node_get_string(node), name) == 0;
}

static JsonObject *find_pool(JsonArray *pools, const char *name)
{
    guint n = pools != NULL ? json_array_get_length(pools) : 0;
    for (guint i = 0; i < n; i++) {
        JsonNode *node = json_array_get_element(pools, i);
        if (JSON_NODE_HOLDS_OBJECT(node) && is_named(json_node_get_object(node), name))
            return json_node_get_object(node);
    }
    return NULL;
}

gboolean berth_rbd_room_parse(const char *text, gsize length, const char *pool, guint64 *out_bytes,
                              GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    g_autoptr(GError) reason = NULL;
    if (!json_parser_load_from_data(parser, text, (gssize)length, &reason)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot read Ceph's answer to `ceph df`: %s", reason->message);
        return FALSE;
    }
    JsonNode *root = json_parser_get_root(parser);
    gboolean is_object = root != NULL && JSON_NODE_HOLDS_OBJECT(root);
    JsonObject *all = is_object ? json_node_get_object(root) : NULL;
    JsonArray *pools = member_array(all, "pools");
    JsonObject *found = find_pool(pools, pool);
    JsonObject *stats = found != NULL ? member_object(found, "stats") : NULL;
    JsonNode *left = stats != NULL ? json_object_get_member(stats, "max_avail") : NULL;
    if (pools != NULL && found == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "Ceph does not list pool %s, as it does some seconds after the pool was made",
                    pool);
        return FALSE;
    }
    if (left == NULL || !JSON_NODE_HOLDS_VALUE(left) ||
        json_node_get_value_type(left) != G_TYPE_INT64 || json_node_get_int(left) < 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "Ceph's answer to `ceph df` does not say what pool %s has left (max_avail)",
                    pool);
        return FALSE;
    }
    *out_bytes = (guint64)json_node_get_int(left);
    return TRUE;
}

gboolean berth_rbd_room(BerthStorage *storage, guint64 *out_bytes, GError **error)
{
    const BerthRbdStorage *self = (BerthRbdStorage *)storage;
    const char *command[] = {"{\"prefix\": \"df\", \"format\": \"json\"}"};
    char *text = NULL;
    char *status = NULL;
    size_t length = 0;
    size_t status_length = 0;
    int result = rados_mon_command(self->cluster, command, G_N_ELEMENTS(command), "", 0, &text,
                                   &length, &status, &status_length);
    rados_buffer_free(status);
    gboolean is_told =
        result >= 0 && berth_rbd_room_parse(text, length, self->pool, out_bytes, error);
    rados_buffer_free(text);
    if (result < 0)
        berth_rbd_set_error(self, result, error, "cannot ask Ceph what pool %s has left",
                            self->pool);
    return is_told;
}
