/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the removal of an image that users know.
 *
 * Invariant: an object leaves storage once it is durable that it is unwanted, and not before. */
#include "config.h"

#include "scheduler/daemon/image_removal.h"

#include "common/error.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/image_table.h"

/* --- the object --------------------------------------------------------------------------------- */

static gpointer remove_object(BerthStorage *storage, gconstpointer input, GError **error)
{
    berth_storage_image_remove(storage, input, error);
    return NULL;
}

static void on_object_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error && !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        g_info("an image that was removed stays in storage until the next collection of garbage: "
               "%s",
               error->message);
    }
}

void berth_image_removal_object(BerthDaemon *daemon, const char *id)
{
    berth_storage_link_run(daemon->storage, BERTH_LANE_STORAGE_CLEAN, "remove an image",
                           remove_object, g_strdup(id), g_free, NULL, on_object_removed, NULL);
}

/* --- the image ---------------------------------------------------------------------------------- */

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    char *name;
    char *id;
} Removal;

static void removal_free(Removal *removal)
{
    g_free(removal->name);
    g_free(removal->id);
    g_free(removal);
}

static void on_removal_committed(const GError *error, gpointer user_data)
{
    Removal *removal = user_data;
    if (error) {
        berth_rpc_call_fail(removal->call, error);
    } else {
        /* Not before: the collector removes what is unwanted, and the image might come back. */
        berth_image_table_set_unwanted(removal->daemon->images, removal->id,
                                       BERTH_UNWANTED_REMOVAL);
        Berth__RemoveImageReply reply = BERTH__REMOVE_IMAGE_REPLY__INIT;
        berth_rpc_call_reply(removal->call, &reply.base);
        berth_image_removal_object(removal->daemon, removal->id);
    }
    removal_free(removal);
}

static gboolean remove_image(Removal *removal, const char *user, GError **error)
{
    BerthDaemon *daemon = removal->daemon;
    Berth__Event event = BERTH__EVENT__INIT;
    if (!berth_engine_check(daemon->engine, error))
        return FALSE;
    const Berth__Image *image = berth_image_table_get(daemon->images, removal->name, error);
    if (!image)
        return FALSE;
    guint jobs = berth_job_table_count_image(daemon->jobs, removal->name);
    if (jobs > 0) {
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
            "image \"%s\" is needed by %u job%s that ha%s not ended; wait for %s, or cancel "
            "%s",
            removal->name, jobs, jobs == 1 ? "" : "s", jobs == 1 ? "s" : "ve",
            jobs == 1 ? "it" : "them", jobs == 1 ? "it" : "them");
        return FALSE;
    }
    removal->id = g_strdup(image->id);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    berth_store_batch_remove_image(berth_turn_batch(turn), removal->name);
    berth_store_batch_put_unwanted(berth_turn_batch(turn), removal->id, BERTH_UNWANTED_REMOVAL);
    berth_event_image(BERTH__EVENT__KIND__IMAGE_REMOVED, removal->name, user, &event);
    berth_turn_log(turn, &event);
    berth_image_table_remove(daemon->images, removal->name);
    berth_turn_then(turn, on_removal_committed, removal);
    berth_turn_commit(turn);
    return TRUE;
}

static void on_remover(const char *name, const GError *unnamed, gpointer user_data)
{
    Removal *removal = user_data;
    g_autoptr(GError) error = NULL;
    if (!remove_image(removal, name, &error)) {
        berth_rpc_call_fail(removal->call, error);
        removal_free(removal);
    }
}

void berth_image_removal_run(BerthDaemon *daemon, const char *name, BerthRpcCall *call)
{
    Removal *removal = g_new0(Removal, 1);
    removal->daemon = daemon;
    removal->call = call;
    removal->name = g_strdup(name);
    berth_users_name(daemon->users, berth_rpc_call_identity(call)->uid, on_remover, removal);
}
