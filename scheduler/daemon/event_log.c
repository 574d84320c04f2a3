/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the event log says. Pure. Numbers and times are the engine's. */
#include "config.h"

#include "scheduler/daemon/event_log.h"

#include "common/units.h"

#include <string.h>

#define CONSOLE_MAX_BYTES 2048u

static Berth__Event__Kind cause_kind(BerthEventKind kind)
{
    switch (kind) {
    case BERTH_EVENT_JOB_SUBMITTED:
        return BERTH__EVENT__KIND__JOB_SUBMITTED;
    case BERTH_EVENT_JOB_CANCELLED:
        return BERTH__EVENT__KIND__JOB_CANCEL_REQUESTED;
    case BERTH_EVENT_JOB_HELD:
        return BERTH__EVENT__KIND__JOB_HELD;
    case BERTH_EVENT_JOB_RELEASED:
        return BERTH__EVENT__KIND__JOB_RELEASED;
    case BERTH_EVENT_JOB_FREEZE_WANTED:
        return BERTH__EVENT__KIND__JOB_FREEZE_REQUESTED;
    case BERTH_EVENT_JOB_THAW_WANTED:
        return BERTH__EVENT__KIND__JOB_THAW_REQUESTED;
    case BERTH_EVENT_JOB_MIGRATE_WANTED:
        return BERTH__EVENT__KIND__JOB_MIGRATE_REQUESTED;
    case BERTH_EVENT_JOB_MIGRATE_UNWANTED:
        return BERTH__EVENT__KIND__JOB_MIGRATE_CANCEL_REQUESTED;
    case BERTH_EVENT_JOB_RESIZE_WANTED:
        return BERTH__EVENT__KIND__JOB_RESIZE_REQUESTED;
    case BERTH_EVENT_JOB_TIME_LIMIT_SET:
        return BERTH__EVENT__KIND__JOB_EXTEND_REQUESTED;
    case BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET:
        return BERTH__EVENT__KIND__JOB_CHECKPOINT_EVERY_REQUESTED;
    case BERTH_EVENT_GUEST_RESIZED:
        return BERTH__EVENT__KIND__GUEST_RESIZED;
    case BERTH_EVENT_JOB_CHECKPOINT_WANTED:
        return BERTH__EVENT__KIND__JOB_CHECKPOINT_REQUESTED;
    case BERTH_EVENT_JOB_RESTORE_WANTED:
        return BERTH__EVENT__KIND__JOB_RESTORE_REQUESTED;
    case BERTH_EVENT_GUEST_MIGRATED:
        return BERTH__EVENT__KIND__GUEST_MIGRATED;
    case BERTH_EVENT_GUEST_RUNNING:
        return BERTH__EVENT__KIND__GUEST_RUNNING;
    case BERTH_EVENT_GUEST_EXITED:
    case BERTH_EVENT_GUEST_GONE:
        return BERTH__EVENT__KIND__GUEST_EXITED;
    case BERTH_EVENT_START_FAILED:
        return BERTH__EVENT__KIND__GUEST_START_FAILED;
    case BERTH_EVENT_GUEST_RELEASED:
        return BERTH__EVENT__KIND__GUEST_RELEASED;
    case BERTH_EVENT_GUEST_FENCED:
        return BERTH__EVENT__KIND__GUEST_FENCED;
    default: /* nodes by their states, storage by who watches it, a timer by what it causes */
        return BERTH__EVENT__KIND__EVENT_UNSPECIFIED;
    }
}

gboolean berth_event_is_of_task(Berth__Event__Kind kind)
{
    switch (kind) {
    case BERTH__EVENT__KIND__JOB_SUBMITTED:
    case BERTH__EVENT__KIND__JOB_HELD:
    case BERTH__EVENT__KIND__JOB_RELEASED:
    case BERTH__EVENT__KIND__JOB_CANCEL_REQUESTED:
    case BERTH__EVENT__KIND__JOB_FREEZE_REQUESTED:
    case BERTH__EVENT__KIND__JOB_THAW_REQUESTED:
    case BERTH__EVENT__KIND__JOB_MIGRATE_REQUESTED:
    case BERTH__EVENT__KIND__JOB_MIGRATE_CANCEL_REQUESTED:
    case BERTH__EVENT__KIND__JOB_RESIZE_REQUESTED:
    case BERTH__EVENT__KIND__JOB_EXTEND_REQUESTED:
    case BERTH__EVENT__KIND__JOB_CHECKPOINT_EVERY_REQUESTED:
    case BERTH__EVENT__KIND__JOB_CHECKPOINT_REQUESTED:
    case BERTH__EVENT__KIND__REQUEST_REFUSED:
        return FALSE;
    default:
        return TRUE;
    }
}

gboolean berth_event_is_request(BerthEventKind kind)
{
    return kind == BERTH_EVENT_JOB_SUBMITTED || kind == BERTH_EVENT_JOB_CANCELLED ||
           kind == BERTH_EVENT_JOB_HELD || kind == BERTH_EVENT_JOB_RELEASED ||
           kind == BERTH_EVENT_JOB_FREEZE_WANTED || kind == BERTH_EVENT_JOB_THAW_WANTED ||
           kind == BERTH_EVENT_JOB_MIGRATE_WANTED || kind == BERTH_EVENT_JOB_MIGRATE_UNWANTED ||
           kind == BERTH_EVENT_JOB_RESIZE_WANTED || kind == BERTH_EVENT_JOB_CHECKPOINT_WANTED ||
           kind == BERTH_EVENT_JOB_RESTORE_WANTED || kind == BERTH_EVENT_JOB_TIME_LIMIT_SET ||
           kind == BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET;
}

static guint64 job_of(const BerthCoreEvent *event)
{
    return event->kind == BERTH_EVENT_JOB_SUBMITTED ? event->submitted.id : event->guest.job;
}

gboolean berth_event_cause(const BerthCoreEvent *event, const char *node, const BerthAsker *asker,
                           Berth__Event *out_event)
{
    Berth__Event__Kind kind = cause_kind(event->kind);
    gboolean is_result =
        event->kind == BERTH_EVENT_GUEST_MIGRATED || event->kind == BERTH_EVENT_GUEST_RESIZED;
    if (kind == BERTH__EVENT__KIND__EVENT_UNSPECIFIED || (is_result && !event->result.ok))
        return FALSE; /* why it has failed says who tells of it */
    out_event->kind = kind;
    out_event->job = job_of(event);
    out_event->task = event->guest.task;
    out_event->epoch = event->guest.epoch;
    out_event->node = (char *)node;
    if (asker) {
        out_event->user = (char *)asker->user;
        out_event->why = (char *)asker->why;
    }
    if (event->kind == BERTH_EVENT_GUEST_GONE)
        out_event->reason = (Berth__Reason)event->gone.reason;
    else if (event->kind == BERTH_EVENT_START_FAILED)
        out_event->reason = (Berth__Reason)event->start_failed.reason;
    return TRUE;
}

char *berth_event_gone_text(const char *detail, const char *console_tail)
{
    gsize length = strlen(console_tail);
    const char *tail = console_tail + length - MIN(length, CONSOLE_MAX_BYTES);
    g_autofree char *end = g_utf8_make_valid(tail, -1);
    if (!*end)
        return g_strdup(detail ? detail : "");
    return g_strdup_printf("%s%s%s", detail ? detail : "", detail ? "\n" : "", end);
}

char *berth_event_size_text(const BerthResources *resources)
{
    g_autofree char *memory =
        resources->memory_mib > 0 ? berth_format_size_mib(resources->memory_mib) : g_strdup("");
    if (resources->vcpus == 0)
        return g_steal_pointer(&memory);
    return g_strdup_printf("%u vCPU%s%s%s", resources->vcpus, resources->vcpus == 1 ? "" : "s",
                           *memory ? ", " : "", memory);
}

char *berth_event_every_text(gint64 every_usec)
{
    g_autofree char *every = berth_format_duration_sec((guint64)every_usec / G_USEC_PER_SEC);
    return every_usec > 0 ? g_strdup_printf("every %s", every) : g_strdup("never");
}

static gboolean names_tasks(const BerthCoreEvent *event)
{
    return berth_event_is_request(event->kind) && event->kind != BERTH_EVENT_JOB_SUBMITTED &&
           event->request.tasks.step > 0;
}

#define RANGES_TOLD 16

char *berth_event_tasks_text(const BerthIndexRange *first, const BerthIndexRange *others,
                             gsize n_others)
{
    GString *text = g_string_new("tasks ");
    for (gsize i = 0; i <= MIN(n_others, RANGES_TOLD - 1); i++) {
        g_autofree char *one = berth_index_range_format(i == 0 ? first : &others[i - 1]);
        g_string_append_printf(text, "%s%s", i > 0 ? "," : "", one);
    }
    if (n_others >= RANGES_TOLD)
        g_string_append_printf(text, " and %" G_GSIZE_FORMAT " ranges more",
                               n_others - (RANGES_TOLD - 1));
    return g_string_free(text, FALSE);
}

char *berth_event_request_text(const BerthCoreEvent *event)
{
    gboolean to_disk = event->kind == BERTH_EVENT_JOB_FREEZE_WANTED && event->request.to_disk;
    if (event->kind == BERTH_EVENT_JOB_RESTORE_WANTED)
        return g_strdup_printf("%u", event->request.checkpoint.serial);
    if (!names_tasks(event))
        return g_strdup(to_disk ? "to disk" : "");
    g_autofree char *tasks = berth_event_tasks_text(&event->request.tasks, event->request.others,
                                                    event->request.n_others);
    return g_strdup_printf("%s%s", tasks, to_disk ? ", to disk" : "");
}

gboolean berth_event_action(const BerthCoreAction *action, const char *node, const char *text,
                            Berth__Event *out_event)
{
    if (action->kind == BERTH_ACTION_START)
        out_event->kind = BERTH__EVENT__KIND__GUEST_START;
    else if (action->kind == BERTH_ACTION_RESTORE)
        out_event->kind = BERTH__EVENT__KIND__GUEST_RESTORE;
    else if (action->kind == BERTH_ACTION_CHECKPOINT)
        out_event->kind = BERTH__EVENT__KIND__GUEST_CHECKPOINT;
    else if (action->kind == BERTH_ACTION_STOP)
        out_event->kind = BERTH__EVENT__KIND__GUEST_STOP;
    else if (action->kind == BERTH_ACTION_MIGRATE && !action->is_again)
        out_event->kind = BERTH__EVENT__KIND__GUEST_MIGRATE;
    else if (action->kind == BERTH_ACTION_RESIZE && !action->is_again)
        out_event->kind = BERTH__EVENT__KIND__GUEST_RESIZE;
    else
        return FALSE; /* GUEST_RELEASED and GUEST_FENCED say that it was done */
    out_event->job = action->guest.job;
    out_event->task = action->guest.task;
    out_event->epoch = action->guest.epoch;
    out_event->node = (char *)node;
    out_event->reason = (Berth__Reason)action->reason;
    out_event->text = (char *)text;
    return TRUE;
}

static Berth__Event__Kind failure_kind(BerthActionKind kind)
{
    switch (kind) {
    case BERTH_ACTION_FREEZE:
        return BERTH__EVENT__KIND__GUEST_FREEZE_FAILED;
    case BERTH_ACTION_THAW:
        return BERTH__EVENT__KIND__GUEST_THAW_FAILED;
    case BERTH_ACTION_CHECKPOINT:
        return BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED;
    case BERTH_ACTION_RESIZE:
        return BERTH__EVENT__KIND__GUEST_RESIZE_FAILED;
    default:
        return BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED;
    }
}

void berth_event_op_failed(const BerthCoreAction *action, const char *node, const char *why,
                           Berth__Event *out_event)
{
    out_event->kind = failure_kind(action->kind);
    out_event->job = action->guest.job;
    out_event->task = action->guest.task;
    out_event->epoch = action->guest.epoch;
    out_event->node = (char *)node;
    out_event->text = (char *)why;
    if (action->kind == BERTH_ACTION_CHECKPOINT)
        out_event->reason = (Berth__Reason)action->reason;
}

void berth_event_task_state(const Berth__StoredTask *stored, Berth__Event *out_event)
{
    const Berth__Task *task = stored->task;
    out_event->kind = BERTH__EVENT__KIND__TASK_STATE;
    out_event->job = task->job;
    out_event->task = task->index;
    out_event->epoch = task->epoch;
    out_event->node = task->node;
    out_event->state = task->state;
    out_event->reason = task->reason;
    out_event->text = task->reason_text;
    out_event->rest_last = task->rest_last;
    out_event->rest_step = task->rest_step;
}

void berth_event_node_state(const char *name, BerthNodeState state, Berth__Event *out_event)
{
    out_event->node = (char *)name;
    switch (state) {
    case BERTH_NODE_UP:
        out_event->kind = BERTH__EVENT__KIND__NODE_UP;
        break;
    case BERTH_NODE_DOWN:
        out_event->kind = BERTH__EVENT__KIND__NODE_DOWN;
        break;
    case BERTH_NODE_LOST:
        out_event->kind = BERTH__EVENT__KIND__NODE_LOST;
        break;
    }
}

void berth_event_node_admission(const char *node, const Berth__NodeAdmission *admission,
                                Berth__Event *out_event)
{
    switch (admission->kind) {
    case BERTH__NODE_ADMISSION__KIND__CORDONED:
        out_event->kind = BERTH__EVENT__KIND__NODE_CORDONED;
        break;
    case BERTH__NODE_ADMISSION__KIND__DRAINING:
        out_event->kind = BERTH__EVENT__KIND__NODE_DRAINED;
        break;
    case BERTH__NODE_ADMISSION__KIND__GIVEN_UP:
        out_event->kind = BERTH__EVENT__KIND__NODE_GIVEN_UP;
        break;
    default:
        out_event->kind = BERTH__EVENT__KIND__NODE_UNDRAINED;
        break;
    }
    out_event->node = (char *)node;
    out_event->user = admission->user;
    out_event->text = admission->reason;
}

void berth_event_image(Berth__Event__Kind kind, const char *name, const char *user,
                       Berth__Event *out_event)
{
    out_event->kind = kind;
    out_event->text = (char *)name;
    out_event->user = (char *)user;
}
