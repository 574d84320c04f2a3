/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the story of one job of a log. What happened to it is the log's; what was done with it, and why
 * it waited, is asked of the core that runs the log again, which may have other constants. */
#include "config.h"

#include "scheduler/sim/story.h"

#include "common/words.h"
#include "scheduler/core/key_heap.h"
#include "scheduler/core/look.h"
#include "scheduler/sim/words.h"

#define CLOCK_MIN_USEC ((gint64)100000000 * G_USEC_PER_SEC) /* below: no clock, but virtual time */

struct SimStory {
    guint64 job;
    guint32 tasks; /* 0 = not named yet */
    gboolean is_array;
    GHashTable *nodes; /* handle -> name */
    gint64 now_usec;
    CoreKeyHeap requeued; /* by their index; some may wait no longer */
    guint32 waiting_task; /* told last: which, and why; NONE = none waits */
    BerthReason waiting;
    void (*tell)(const char *text, gpointer user_data);
    gpointer user_data;
};

SimStory *sim_story_new(guint64 job, void (*tell)(const char *text, gpointer user_data),
                        gpointer user_data)
{
    SimStory *story = g_new0(SimStory, 1);
    story->job = job;
    story->nodes = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    story->tell = tell;
    story->user_data = user_data;
    return story;
}

void sim_story_free(SimStory *story)
{
    if (story == NULL)
        return;
    g_hash_table_unref(story->nodes);
    core_key_heap_clear(&story->requeued);
    g_free(story);
}

gboolean sim_story_is_begun(const SimStory *story)
{
    return story->tasks > 0;
}

/* --- telling ------------------------------------------------------------------------------------ */

static char *time_text(gint64 usec)
{
    if (usec < CLOCK_MIN_USEC)
        return g_strdup_printf("%12.0f s", (double)usec / G_USEC_PER_SEC);
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local(usec / G_USEC_PER_SEC);
    return time != NULL ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S") : g_strdup("?");
}

static void tell(SimStory *story, guint32 task, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void tell(SimStory *story, guint32 task, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *when = time_text(story->now_usec);
    g_autofree char *index = story->is_array ? g_strdup_printf("[%u]", task) : g_strdup("");
    g_autofree char *line =
        g_strdup_printf("%s  job %" G_GUINT64_FORMAT "%s: %s\n", when, story->job, index, text);
    story->tell(line, story->user_data);
}

static const char *node_name(const SimStory *story, guint32 node)
{
    const char *name = g_hash_table_lookup(story->nodes, GUINT_TO_POINTER(node));
    return name != NULL ? name : "?";
}

/* --- events ------------------------------------------------------------------------------------- */

static void tell_job(SimStory *story, const char *how, const BerthCoreJob *job)
{
    story->tasks = MAX(job->array_size, 1);
    story->is_array = job->has_indices || story->tasks > 1;
    tell(story, 0, "%s: %u guest(s) of %u vCPUs and %" G_GUINT64_FORMAT " MiB, %u task(s)", how,
         MAX(job->guests, 1), job->resources.vcpus, job->resources.memory_mib, story->tasks);
}

static void tell_exit(SimStory *story, const BerthCoreEvent *event)
{
    const BerthCoreExit *end = &event->exited.exit;
    if (end->not_started)
        tell(story, event->guest.task, "guest %u: its command could not be executed",
             event->guest.guest);
    else if (end->signal != 0)
        tell(story, event->guest.task, "guest %u: its command was ended by signal %u",
             event->guest.guest, end->signal);
    else
        tell(story, event->guest.task, "guest %u: its command ended with status %u",
             event->guest.guest, end->status);
}

static void tell_result(SimStory *story, const BerthCoreEvent *event, const char *done)
{
    if (event->result.ok)
        tell(story, event->guest.task, "guest %u was %s", event->guest.guest, done);
    else
        tell(story, event->guest.task, "guest %u was not %s: %s", event->guest.guest, done,
             berth_words_reason(event->result.reason));
}

static void tell_request(SimStory *story, const BerthCoreEvent *event, const char *what)
{
    tell(story, event->guest.task, "%s by %s", what,
         event->request.by_operator ? "an operator" : "its user");
}

/* What a node or a person said of the job. Answers that only confirm are left out. */
static void tell_event(SimStory *story, const BerthCoreEvent *event)
{
    guint32 task = event->guest.task, guest = event->guest.guest;
    switch (event->kind) {
    case BERTH_EVENT_JOB_SUBMITTED:
        tell_job(story, "submitted", &event->submitted);
        break;
    case BERTH_EVENT_JOB_CANCELLED:
        tell_request(story, event, "cancelled");
        break;
    case BERTH_EVENT_JOB_HELD:
        tell_request(story, event, "held");
        break;
    case BERTH_EVENT_JOB_RELEASED:
        tell_request(story, event, "no longer held");
        break;
    case BERTH_EVENT_JOB_FREEZE_WANTED:
        tell_request(story, event, "to be frozen, as wanted");
        break;
    case BERTH_EVENT_JOB_THAW_WANTED:
        tell_request(story, event, "to be thawed, as wanted");
        break;
    case BERTH_EVENT_GUEST_RUNNING:
        tell(story, task, "guest %u: its command runs", guest);
        break;
    case BERTH_EVENT_GUEST_EXITED:
        tell_exit(story, event);
        break;
    case BERTH_EVENT_GUEST_GONE:
        tell(story, task, "guest %u is gone: %s", guest, berth_words_reason(event->gone.reason));
        break;
    case BERTH_EVENT_START_FAILED:
        tell(story, task, "guest %u did not start: %s", guest,
             berth_words_reason(event->start_failed.reason));
        break;
    case BERTH_EVENT_GUEST_MIGRATED:
        tell_result(story, event, "moved");
        break;
    case BERTH_EVENT_GUEST_CHECKPOINTED:
        tell_result(story, event, "checkpointed");
        break;
    case BERTH_EVENT_GUEST_RESIZED:
        tell_result(story, event, "resized");
        break;
    case BERTH_EVENT_GUEST_FROZEN:
        tell_result(story, event, "frozen");
        break;
    case BERTH_EVENT_GUEST_THAWED:
        tell_result(story, event, "thawed");
        break;
    default:
        break;
    }
}

/* --- what the core makes of it ------------------------------------------------------------------ */

static void tell_actions(SimStory *story, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, i);
        if (action->guest.job != story->job)
            continue;
        g_autofree char *text =
            sim_action_text(action, node_name(story, action->node), node_name(story, action->to));
        tell(story, action->guest.task, "%s", text);
    }
}

static void tell_end(SimStory *story, guint32 index, const BerthCoreTask *task)
{
    gboolean is_told = task->reason != BERTH_REASON_NONE;
    tell(story, index, "%s%s%s", berth_words_state(task->state), is_told ? ": " : "",
         is_told ? berth_words_reason(task->reason) : "");
}

/* One that has ended is told of when its guests are gone too. */
static void take_changed(SimStory *story, BerthCore *core, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->changed->len; i++) {
        const BerthGuestId *id = &g_array_index(effects->changed, BerthGuestId, i);
        BerthCoreTask task;
        if (id->job != story->job || !berth_core_get_task(core, id->job, id->task, &task))
            continue;
        if (task.state == BERTH_JOB_PENDING && task.epoch > 0)
            core_key_heap_push(&story->requeued, (CoreKeyed){id->task, 0, 0});
        else if (berth_job_state_is_final(task.state) && task.phase == BERTH_GUEST_NONE)
            tell_end(story, id->task, &task);
    }
}

static gboolean waits(const SimStory *story, BerthCore *core, guint32 index)
{
    BerthCoreTask task;
    return berth_core_get_task(core, story->job, index, &task) && task.state == BERTH_JOB_PENDING;
}

/* FALSE: none does. No task is asked of twice, unless it waits again. */
static gboolean first_that_waits(SimStory *story, BerthCore *core, guint32 *out_index)
{
    while (story->requeued.n > 0) {
        *out_index = (guint32)core_key_heap_first(&story->requeued).key;
        if (waits(story, core, *out_index))
            return TRUE;
        core_key_heap_pop(&story->requeued);
    }
    return berth_core_next_unstarted(core, story->job, 0, out_index);
}

/* Of an array the first task that waits, as the others wait behind it. Only where that is another one
 * or waits for another reason than the one told last. */
static void tell_waiting(SimStory *story, BerthCore *core)
{
    BerthReason reason = BERTH_REASON_NONE;
    guint32 i = 0;
    if (first_that_waits(story, core, &i))
        reason = berth_core_pending_reason(core, story->job, i);
    if (reason == story->waiting && (reason == BERTH_REASON_NONE || i == story->waiting_task))
        return;
    story->waiting = reason;
    story->waiting_task = i;
    if (reason == BERTH_REASON_NONE)
        return;
    g_autofree char *text =
        berth_words_waiting(reason, berth_core_planned_usec(core, story->job), story->now_usec);
    tell(story, i, "%s", text);
}

void sim_story_entry(SimStory *story, BerthCore *core, const BerthJournalEntry *entry,
                     const BerthCoreEffects *effects)
{
    const BerthCoreEvent *event = &entry->event;
    gboolean has_time = entry->kind == BERTH_JOURNAL_EVENT || entry->kind == BERTH_JOURNAL_RESUME;
    if (has_time)
        story->now_usec = entry->now_usec;
    if (entry->kind == BERTH_JOURNAL_NODE)
        g_hash_table_replace(story->nodes, GUINT_TO_POINTER(entry->node),
                             sim_printable(entry->name));
    else if (entry->kind == BERTH_JOURNAL_RESTORED_JOB && event->submitted.id == story->job)
        tell_job(story, "known from before this log", &event->submitted);
    else if (entry->kind == BERTH_JOURNAL_EVENT &&
             (event->guest.job == story->job ||
              (event->kind == BERTH_EVENT_JOB_SUBMITTED && event->submitted.id == story->job)))
        tell_event(story, event);
    if (story->tasks == 0)
        return;
    tell_actions(story, effects);
    take_changed(story, core, effects);
    if (has_time && !event->more)
        tell_waiting(story, core);
}
