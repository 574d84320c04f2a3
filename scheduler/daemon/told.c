/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what records and events say of decisions for people: the latest move, why there is no checkpoint, that
 * a job is short of memory, why a guest leaves, and how it is where it goes. Pure but for the record that it is told to change. */
#include "config.h"

#include "scheduler/daemon/told.h"

#include "common/units.h"
#include "scheduler/daemon/event_log.h"

/* From one time that a guest's kernel ended processes to the next that is told; doubles so often, up to 17 hours. */
#define KILLS_TOLD_EVERY_USEC (60 * (gint64)G_USEC_PER_SEC)
#define KILLS_DOUBLINGS_MAX   10u
/* A node that is short again and again is told of so often. */
#define SHORT_TOLD_EVERY_USEC (60 * (gint64)G_USEC_PER_SEC)

/* --- the latest move -------------------------------------------------------------------------- */

static void set_move(Berth__Task *record, const Berth__Move *move)
{
    Berth__Move *copy = berth_pb_dup(&move->base);
    if (record->moved)
        berth__move__free_unpacked(record->moved, NULL);
    record->moved = copy;
}

static void note_move(Berth__Task *record, const char *to, Berth__Reason reason, gint64 now_usec)
{
    Berth__Move move = BERTH__MOVE__INIT;
    move.from = record->node;
    move.to = (char *)to;
    move.reason = reason;
    move.time_usec = (guint64)now_usec;
    set_move(record, &move);
}

/* The latest start of it has failed. */
static gboolean is_tried_again(const Berth__StoredTask *stored)
{
    return stored->start_failures > 0 ||
           stored->task->reason == BERTH__REASON__REASON_STARTING_LATER;
}

/* One that is tried again, elsewhere perhaps, was never where it did not start, and is put back for the same reason. */
static void note_restore(Berth__StoredTask *stored, const char *to, gint64 now_usec)
{
    const Berth__Move *before = stored->task->moved;
    Berth__Move move = BERTH__MOVE__INIT;
    gboolean is_again = is_tried_again(stored) && before && before->from_checkpoint;
    move.from = is_again ? before->from : stored->task->node;
    move.to = (char *)to;
    move.reason = is_again ? before->reason : stored->task->reason;
    move.time_usec = (guint64)now_usec;
    move.from_checkpoint = TRUE;
    set_move(stored->task, &move);
}

/* One that begins anew was never moved. */
static void take_move(Berth__StoredTask *stored, const BerthCoreTask *task, const char *node,
                      gint64 now_usec)
{
    Berth__Task *record = stored->task;
    if (task->epoch > record->epoch && task->checkpoint_epoch != 0) {
        note_restore(stored, node, now_usec);
    } else if (task->epoch > record->epoch && record->moved) {
        berth__move__free_unpacked(record->moved, NULL);
        record->moved = NULL;
    } else if (task->epoch == record->epoch && task->node != 0 && record->migration &&
               g_str_equal(node, record->migration->to)) {
        note_move(record, node, record->migration->reason, now_usec);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Told once for each size that it has, however often it stalls with that. */
static gboolean take_short(BerthTaskEntry *entry, const BerthCoreTask *task, guint64 memory_mib)
{
    Berth__StoredTask *stored = entry->stored;
    if (task->epoch > stored->task->epoch)
        stored->short_told_mib = 0;
    gboolean is_news = task->short_usec != 0 && stored->task->short_usec == 0 &&
                       stored->short_told_mib != memory_mib;
    stored->task->short_usec = (guint64)task->short_usec;
    if (is_news)
        stored->short_told_mib = memory_mib;
    return is_news;
}

typedef struct {
    guint64 has_mib, most_mib; /* most: up to its ceiling */
} Memory;

static Memory memory_of(const Berth__Job *job, const Berth__Task *task)
{
    return (Memory){task->memory_mib != 0 ? task->memory_mib : job->memory_mib,
                    MAX(job->memory_max_mib, job->memory_mib)};
}

char *berth_told_short(const Berth__Job *job, const Berth__Task *task)
{
    Memory memory = memory_of(job, task);
    g_autofree char *has = berth_format_size_mib(memory.has_mib);
    g_autofree char *most = berth_format_size_mib(memory.most_mib);
    if (memory.has_mib >= memory.most_mib)
        return g_strdup_printf("its %s of memory are too little, and all that it may have "
                               "(--memory-max): it goes on, slowly",
                               has);
    return g_strdup_printf(
        "its %s of memory are too little; of the %s that it may have there is no "
        "room for more where it is, nor on another node that it could be moved "
        "to: it goes on, slowly, and is grown as soon as there is",
        has, most);
}

static gboolean may_tell_kills(const BerthTaskEntry *entry, gint64 now_usec)
{
    if (entry->kills_tellings == 0)
        return TRUE;
    guint doublings = MIN(entry->kills_tellings - 1, KILLS_DOUBLINGS_MAX);
    gint64 pause_usec = KILLS_TOLD_EVERY_USEC << doublings;
    return now_usec - entry->kills_told_usec >= pause_usec;
}

/* What helps: all that it may have can be given to it while it runs. (transfer full) */
static char *kills_text(const Berth__Job *job, const Berth__Task *task, guint32 kills, guint32 all)
{
    Memory memory = memory_of(job, task);
    g_autofree char *has = berth_format_size_mib(memory.has_mib);
    g_autofree char *most = berth_format_size_mib(memory.most_mib);
    g_autofree char *sum = all > kills ? g_strdup_printf(" (%u in all)", all) : g_strdup("");
    g_autofree char *what =
        g_strdup_printf("its guest's kernel ended %u process%s%s, as its %s of memory are too "
                        "little",
                        kills, kills == 1 ? "" : "es", sum, has);
    if (memory.has_mib >= memory.most_mib)
        return g_strdup_printf("%s, and all that it may have: submit it with more --memory, or "
                               "with --memory-max, up to which it is given more while it runs",
                               what);
    return g_strdup_printf("%s: berth resize --memory gives it more while it runs, up to %s", what,
                           most);
}

char *berth_told_kills(const Berth__Job *job, BerthTaskEntry *entry, gint64 now_usec)
{
    Berth__StoredTask *stored = entry->stored;
    guint32 all = stored->task->usage ? stored->task->usage->oom_kills : 0;
    if (all <= stored->oom_told || !may_tell_kills(entry, now_usec))
        return NULL;
    char *text = kills_text(job, stored->task, all - stored->oom_told, all);
    stored->oom_told = all;
    entry->kills_told_usec = now_usec;
    entry->kills_tellings++;
    return text;
}

/* --- the end of the time limit ---------------------------------------------------------------- */

void berth_told_unsaved(BerthTaskEntry *entry, const char *why)
{
    berth_pb_set_string(&entry->stored->task->unsaved_text, why);
}

static void take_unsaved(BerthTaskEntry *entry, const BerthCoreTask *task, BerthNews *news)
{
    gboolean is_missed =
        task->checkpoint_missed_usec > (gint64)entry->stored->checkpoint_missed_usec;
    gboolean is_at_end = task->stop_reason == BERTH_REASON_TIME_LIMIT;
    news->is_drain_missed = task->drain_missed_usec > (gint64)entry->stored->drain_missed_usec;
    news->is_unsaved = is_missed && is_at_end;
    if (is_missed && !is_at_end && entry->stored->freeze_to_disk && !task->freeze_to_disk)
        news->not_to_disk = task->freeze_reason;
    news->is_missed = is_missed && !is_at_end && news->not_to_disk == BERTH_REASON_NONE;
    if (news->is_unsaved)
        berth_told_unsaved(entry, "there was not so much space left for checkpoints "
                                  "(checkpoint_space_mib, checkpoint_room_permille of berthd.conf; "
                                  "berth checkpoint rm makes "
                                  "room)");
    else if (*entry->stored->task->unsaved_text && !is_at_end &&
             !berth_job_state_is_final(task->state))
        berth_told_unsaved(entry, NULL);
}

void berth_told_take(const Berth__Job *job, BerthTaskEntry *entry, const BerthCoreTask *task,
                     const char *node, gint64 now_usec, BerthNews *out_news)
{
    guint64 has_mib = task->resources.memory_mib;
    *out_news = (BerthNews){0};
    take_move(entry->stored, task, node, now_usec);
    take_unsaved(entry, task, out_news);
    out_news->is_short = take_short(entry, task, has_mib != 0 ? has_mib : job->memory_mib);
}

/* --- places ----------------------------------------------------------------------------------- */

static char *backed_text(const BerthCoreNode *node)
{
    guint32 vcpus = node->capacity.vcpus - MIN(node->capacity.vcpus, node->reserved.vcpus);
    guint64 mib =
        node->capacity.memory_mib - MIN(node->capacity.memory_mib, node->reserved.memory_mib);
    g_autofree char *memory = berth_format_size_mib(mib);
    return g_strdup_printf("backed: all that it reserves is kept for it; %u vCPU%s and %s of the "
                           "node are not reserved yet",
                           vcpus, vcpus == 1 ? "" : "s", memory);
}

static char *slack_text(const BerthCoreNode *node)
{
    g_autofree char *memory = berth_format_size_mib(node->predicted_mib);
    g_autofree char *all = berth_format_size_mib(node->capacity.memory_mib);
    return g_strdup_printf("in slack: all guests there, with it, are predicted to need %.1f of "
                           "%u vCPU%s and %s of %s",
                           node->predicted_milli / 1000.0, node->capacity.vcpus,
                           node->capacity.vcpus == 1 ? "" : "s", memory, all);
}

char *berth_told_place(BerthCore *core, const BerthCoreAction *action)
{
    BerthCoreNode node;
    gboolean moves = action->kind == BERTH_ACTION_MIGRATE;
    if ((!moves && action->kind != BERTH_ACTION_START && action->kind != BERTH_ACTION_RESTORE) ||
        !berth_core_get_node(core, moves ? action->to : action->node, &node))
        return g_strdup("");
    return action->is_opportunistic ? slack_text(&node) : backed_text(&node);
}

/* --- why it leaves ---------------------------------------------------------------------------- */

/* It is not what the host has left that it complains of: its tasks stall. */
static gboolean stalls(const BerthCoreNode *node)
{
    gboolean is_short = node->available_mib > 0 && node->available_mib < node->headroom_mib;
    return node->host_is_pressed && !is_short;
}

gboolean berth_told_shortage_is_news(BerthNodeEntry *entry, const BerthCoreNode *node,
                                     gint64 now_usec)
{
    gboolean was_told = entry->is_told_short, is_up = node->state == BERTH_NODE_UP;
    gboolean is_late = now_usec - entry->short_told_usec >= SHORT_TOLD_EVERY_USEC;
    entry->is_told_short = is_up && node->is_short && (was_told || is_late);
    if (entry->is_told_short && !was_told)
        entry->short_told_usec = now_usec;
    return is_up && was_told != entry->is_told_short;
}

char *berth_told_shortage(const BerthCoreNode *node, gboolean for_room)
{
    g_autofree char *need = berth_format_size_mib(node->predicted_mib);
    g_autofree char *extra = berth_format_size_mib(node->extra_mib);
    g_autofree char *all = berth_format_size_mib(node->capacity.memory_mib);
    g_autofree char *headroom = berth_format_size_mib(node->headroom_mib);
    g_autofree char *available = berth_format_size_mib(node->available_mib);
    g_autofree char *ahead = berth_format_size_mib(node->ahead_mib);
    GString *text = g_string_new("the node's guests");
    g_string_append_printf(text, "%s are predicted to need %s",
                           for_room ? ", with who needs the room," : "", need);
    if (node->extra_mib > 0)
        g_string_append_printf(text, ", and occupy %s beyond that,", extra);
    g_string_append_printf(text, " of %s", all);
    if (!for_room)
        g_string_append_printf(text, ", of which %s are to stay free", headroom);
    if (!for_room && node->ahead_mib > 0)
        g_string_append_printf(
            text, "; those that grow will have taken %s more before one has left", ahead);
    if (!for_room && stalls(node))
        g_string_append(text, "; tasks of its host stall for want of memory");
    if (node->available_mib > 0 && node->available_mib < node->headroom_mib)
        g_string_append_printf(text, "; its host has %s available", available);
    return g_string_free(text, FALSE);
}

static char *starved_text(BerthCore *core, const BerthGuestId *id)
{
    BerthCoreGuest guest;
    if (!berth_core_get_guest(core, id->job, id->task, id->guest, &guest))
        return g_strdup("");
    return g_strdup_printf("it could run, and had no CPU, for %.1f %% of the time",
                           guest.starved_permille / 10.0);
}

char *berth_told_cause(BerthCore *core, const BerthCoreAction *action)
{
    BerthCoreNode node;
    gboolean for_room = action->reason == BERTH_REASON_ROOM_NEEDED;
    if (action->kind != BERTH_ACTION_MIGRATE && action->kind != BERTH_ACTION_CHECKPOINT)
        return g_strdup("");
    if (action->reason == BERTH_REASON_STARVED)
        return starved_text(core, &action->guest);
    if ((!for_room && action->reason != BERTH_REASON_PRESSURE) ||
        !berth_core_get_node(core, action->node, &node))
        return g_strdup("");
    return berth_told_shortage(&node, for_room);
}
