/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when storage is asked what it has left, and when the core is told. One question is under way at a time. */
#include "config.h"

#include "scheduler/daemon/storage_room.h"

#include "scheduler/daemon/engine.h"
#include "scheduler/daemon/storage_link.h"

/* A difference by less than such a part is of no use to anybody, and each that is told is in the journal. */
#define NEWS_PART 64u

struct BerthStorageRoom {
    BerthDaemon *daemon;
    guint interval_sec;
    guint timer;
    gboolean is_asked;
    gboolean is_known;
    gboolean was_refused; /* the latest question was not answered, which is said once */
    gboolean is_stopped;
    guint64 told_mib;
};

BerthStorageRoom *berth_storage_room_new(BerthDaemon *daemon, guint interval_sec)
{
    BerthStorageRoom *room = g_new0(BerthStorageRoom, 1);
    room->daemon = daemon;
    room->interval_sec = interval_sec;
    return room;
}

void berth_storage_room_free(BerthStorageRoom *room)
{
    berth_storage_room_stop(room);
    g_free(room);
}

void berth_storage_room_stop(BerthStorageRoom *room)
{
    room->is_stopped = TRUE;
    g_clear_handle_id(&room->timer, g_source_remove);
}

static gboolean is_news(const BerthStorageRoom *room, guint64 room_mib)
{
    guint64 difference = MAX(room->told_mib, room_mib) - MIN(room->told_mib, room_mib);
    return !room->is_known || (difference > 0 && difference >= room->told_mib / NEWS_PART);
}

static void tell(BerthStorageRoom *room, guint64 room_mib)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_STORAGE_ROOM, .storage_room = {room_mib}};
    g_autoptr(GError) error = NULL;
    if (!is_news(room, room_mib))
        return;
    room->is_known = TRUE;
    room->told_mib = room_mib;
    BerthTurn *turn = berth_engine_begin(room->daemon->engine);
    if (!berth_turn_event(turn, &event, NULL, &error))
        g_critical("the core refused what storage has left: %s", error->message);
    berth_turn_commit(turn);
}

static gpointer ask(BerthStorage *storage, gconstpointer input, GError **error)
{
    g_autofree guint64 *bytes = g_new0(guint64, 1);
    return berth_storage_room(storage, bytes, error) ? g_steal_pointer(&bytes) : NULL;
}

static gboolean on_due(gpointer user_data)
{
    BerthStorageRoom *room = user_data;
    room->timer = 0;
    berth_storage_room_look(room);
    return G_SOURCE_REMOVE;
}

static void on_told(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthStorageRoom *room = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree guint64 *bytes = berth_work_finish(result, &error);
    room->is_asked = FALSE;
    if (room->is_stopped || berth_engine_is_stopped(room->daemon->engine))
        return;
    if (bytes)
        tell(room, *bytes / (1024 * 1024));
    else if (!room->was_refused)
        g_warning("storage does not say what it has left: %s", error->message);
    room->was_refused = !bytes;
    g_clear_handle_id(&room->timer, g_source_remove);
    room->timer = g_timeout_add_seconds(room->interval_sec, on_due, room);
}

void berth_storage_room_look(BerthStorageRoom *room)
{
    if (room->is_asked || room->is_stopped)
        return;
    room->is_asked = TRUE;
    berth_storage_link_run(room->daemon->storage, BERTH_LANE_STORAGE_CONTROL, "ask what is left",
                           ask, NULL, NULL, g_free, on_told, room);
}
