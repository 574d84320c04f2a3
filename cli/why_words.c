/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sentences that tell people why a job waits, runs where it does, or has ended. What happened to it: why_events.c. */
#include "cli/why_words.h"

#include "cli/dependency.h"
#include "cli/format.h"
#include "cli/tasks.h"
#include "common/units.h"
#include "common/words.h"

#include <string.h>

typedef struct {
    GPtrArray *lines;
    const Berth__Explanation *why; /* or NULL */
} Story;

static void tell(Story *story, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void tell(Story *story, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_ptr_array_add(story->lines, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

static const char *plural(guint64 n)
{
    return n == 1 ? "" : "s";
}

/* "12:30:05", and the day if that is another one than that of NOW_USEC. (transfer full) */
static char *clock_text(guint64 usec, guint64 now_usec)
{
    g_autofree char *time = berth_format_time(usec);
    g_autofree char *now = berth_format_time(now_usec);
    gsize day = strlen("2026-03-01 ");
    if (time != NULL && now != NULL && strncmp(time, now, day) == 0)
        return g_strdup(time + day);
    return time != NULL ? g_steal_pointer(&time) : g_strdup("?");
}

/* "12:30:05, in 00:02:00". (transfer full) */
static char *then_text(guint64 usec, guint64 now_usec)
{
    g_autofree char *clock = clock_text(usec, now_usec);
    if (usec <= now_usec)
        return g_steal_pointer(&clock);
    g_autofree char *in =
        berth_format_duration_sec((usec - now_usec + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC);
    return g_strdup_printf("%s, in %s", clock, in);
}

/* --- it waits --------------------------------------------------------------------------------- */

static void tell_before(Story *story)
{
    const Berth__Explanation *why = story->why;
    g_autoptr(GString) names = g_string_new(NULL);
    if (why->jobs_before == 0)
        return;
    for (size_t i = 0; i < why->n_before; i++)
        g_string_append_printf(names, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "", why->before[i]);
    if (why->n_before < why->jobs_before)
        g_string_append(names, ", and others");
    tell(story, "%s%u job%s before it in the order: %s.", why->has_more_before ? "More than " : "",
         why->jobs_before, why->jobs_before == 1 ? " is" : "s are", names->str);
}

static void tell_need(Story *story)
{
    const Berth__Explanation *why = story->why;
    g_autofree char *need = berth_format_size_mib(why->need_mib);
    g_autofree char *has = berth_format_size_mib(why->nearest_mib);
    g_autofree char *guests = why->guests > 1
                                  ? g_strdup_printf(", for each of its %u guests,", why->guests)
                                  : g_strdup("");
    if (why->nodes_open == 0) {
        tell(story,
             "It needs%s %u vCPU%s and %s of a node, and none that it may use, and that is large "
             "enough, takes guests now.",
             guests, why->need_vcpus, plural(why->need_vcpus), need);
        return;
    }
    tell(story,
         "It needs%s %u vCPU%s and %s free on one of %u node%s; of these %s comes nearest, with "
         "%u vCPU%s and %s free.",
         guests, why->need_vcpus, plural(why->need_vcpus), need, why->nodes_open,
         plural(why->nodes_open), why->nearest, why->nearest_vcpus, plural(why->nearest_vcpus),
         has);
}

static void tell_closed(Story *story)
{
    const Berth__Explanation *why = story->why;
    for (size_t i = 0; i < why->n_closed; i++) {
        const Berth__Explanation__Closed *closed = why->closed[i];
        gboolean is_up = closed->state == BERTH__NODE_STATE__NODE_UP;
        tell(story, "Of the nodes that it may use (--node), %s takes no guests now: %s.",
             closed->node, is_up ? closed->reason : berth_node_state_name(closed->state));
    }
    if (why->nodes_closed > why->n_closed)
        tell(story, "And %zu more of them take%s no guests now: berth node ls says why.",
             why->nodes_closed - why->n_closed, why->nodes_closed - why->n_closed == 1 ? "s" : "");
}

/* Whether a job is an array is not told: one of whose tasks some other than 0 leaves is one. */
static gboolean is_array(const Berth__Explanation *why, guint64 job)
{
    for (size_t i = 0; i < why->n_leavings; i++)
        if (why->leavings[i]->job == job && why->leavings[i]->task != 0)
            return TRUE;
    return FALSE;
}

static gboolean leaves_with(const Berth__Explanation__Leaving *leaving,
                            const Berth__Explanation__Leaving *other)
{
    return leaving->job == other->job && g_str_equal(leaving->node, other->node) &&
           leaving->time_usec / G_USEC_PER_SEC == other->time_usec / G_USEC_PER_SEC;
}

/* Tasks of an array that leave a node within the same second, and the guests of one task, have one line. */
static void tell_leavings(Story *story)
{
    const Berth__Explanation *why = story->why;
    for (size_t i = 0, next = 0; i < why->n_leavings; i = next) {
        const Berth__Explanation__Leaving *leaving = why->leavings[i];
        g_autoptr(BerthIndexSet) tasks = berth_index_set_new();
        for (next = i; next < why->n_leavings && leaves_with(leaving, why->leavings[next]); next++)
            berth_index_set_add_one(tasks, why->leavings[next]->task);
        g_autofree char *name =
            berth_tasks_format(leaving->job, is_array(why, leaving->job) ? tasks : NULL);
        g_autofree char *then = clock_text(leaving->time_usec, why->now_usec);
        tell(story, "By then job %s leaves %s: %s at the latest.", name, leaving->node, then);
    }
}

static void tell_plan(Story *story)
{
    const Berth__Explanation *why = story->why;
    g_autoptr(GString) nodes = g_string_new(NULL);
    if (why->planned_usec <= why->now_usec)
        return;
    for (size_t i = 0; i < why->n_planned_nodes; i++)
        g_string_append_printf(nodes, "%s%s", i > 0 ? ", " : "", why->planned_nodes[i]);
    g_autofree char *then = then_text(why->planned_usec, why->now_usec);
    if (why->plan_may_be_put_off)
        tell(story,
             "It is planned to start on %s at %s; jobs that cannot run in slack may put that off.",
             nodes->str, then);
    else
        tell(story, "It is planned to start on %s at %s, at the latest, if nobody comes before it.",
             nodes->str, then);
    tell_leavings(story);
}

/* Of one node, and of several. */
static const char *const hindrances[][2] = {
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_LOST] = {"lost its guest last",
                                                             "lost its guest last"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_CPU] = {"is predicted to leave less CPU idle",
                                                            "are predicted to leave less CPU idle"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_MEMORY] =
        {"is predicted to leave less memory idle", "are predicted to leave less memory idle"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_OCCUPIED] =
        {"has less memory free, as guests occupy more of it than they are predicted to need",
         "have less memory free, as guests occupy more of it than they are predicted to need"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_OVERCOMMIT] =
        {"has as much memory reserved in all as it may have (overcommit_max_permille)",
         "have as much memory reserved in all as they may have (overcommit_max_permille)"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_PRESSED] =
        {"was short of memory lately, or about to be",
         "were short of memory lately, or about to be"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_RESTS] =
        {"takes nobody for a while, as who was to start there had to go before it ran",
         "take nobody for a while, as who was to start there had to go before it ran"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_AWAITED] =
        {"waits until it is known again what its guests need",
         "wait until it is known again what their guests need"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_EVACUATION] =
        {"could not save all that would be in slack there in time (evacuation_max_usec)",
         "could not save all that would be in slack there in time (evacuation_max_usec)"},
    [BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_MAINTENANCE] =
        {"has maintenance before it would end", "have maintenance before it would end"},
};

static const char *hindrance_text(const Berth__Explanation__Hindrance *hindrance)
{
    guint kind = (guint)hindrance->kind;
    const char *text =
        kind < G_N_ELEMENTS(hindrances) ? hindrances[kind][hindrance->nodes != 1] : NULL;
    return text != NULL ? text : "cannot take it, for a reason that this berth does not know";
}

static void tell_no_room(Story *story)
{
    const Berth__Explanation *why = story->why;
    g_autofree char *need = berth_format_size_mib(why->slack_need_mib);
    g_autoptr(GString) text = g_string_new(NULL);
    if (why->n_hindrances == 0) {
        tell(story, "In slack, too, there is no node for it: none that it may use is open.");
        return;
    }
    for (size_t i = 0; i < why->n_hindrances; i++)
        g_string_append_printf(text, "%s%u %s", i == 0 ? "; of the nodes that it may use, " : ", ",
                               why->hindrances[i]->nodes, hindrance_text(why->hindrances[i]));
    tell(story, "In slack, too, there is no room: it is thought to need %.1f vCPU%s and %s%s.",
         why->slack_need_milli / 1000.0, why->slack_need_milli == 1000 ? "" : "s", need, text->str);
}

static void tell_slack(Story *story)
{
    switch (story->why->slack) {
    case BERTH__EXPLANATION__SLACK__SLACK_OFF:
        tell(story,
             "Jobs do not start in slack here: that takes slack = yes in [guests] and kind = rbd "
             "in [storage] of berthd.conf.");
        break;
    case BERTH__EXPLANATION__SLACK__SLACK_NOT_WANTED:
        tell(story, "It does not start in slack, as it was asked not to (--guaranteed).");
        break;
    case BERTH__EXPLANATION__SLACK__SLACK_CANNOT_LEAVE:
        tell(story, "It does not start in slack: it could neither be moved nor checkpointed when "
                    "others need the room.");
        break;
    case BERTH__EXPLANATION__SLACK__SLACK_NO_SPACE:
        tell(story, "It does not start in slack: there is not so much space left for checkpoints "
                    "(checkpoint_space_mib, checkpoint_room_permille of berthd.conf).");
        break;
    case BERTH__EXPLANATION__SLACK__SLACK_WANTS_BACKING:
        tell(story,
             "It does not start in slack: it hardly got any CPU there, or was ended for those who "
             "have reserved the memory, and waits for its whole reservation.");
        break;
    case BERTH__EXPLANATION__SLACK__SLACK_NO_ROOM:
        tell_no_room(story);
        break;
    case BERTH__EXPLANATION__SLACK__SLACK_ROOM:
        tell(story, "There is room for it in slack by now, which has not been looked for since.");
        break;
    default:
        break;
    }
}

static void tell_next_look(Story *story)
{
    const Berth__Explanation *why = story->why;
    g_autofree char *then = then_text(why->next_look_usec, why->now_usec);
    if (why->next_look_usec > why->now_usec)
        tell(story,
             "Room is looked for whenever a job or a node comes or goes, and at %s, in any "
             "case.",
             then);
    else
        tell(story, "Room is looked for whenever a job or a node comes or goes.");
}

/* Of those it would not help to know what is free. */
static gboolean waits_for_room(Berth__Reason reason)
{
    switch (reason) {
    case BERTH__REASON__REASON_HELD_BY_USER:
    case BERTH__REASON__REASON_HELD_BY_OPERATOR:
    case BERTH__REASON__REASON_STORAGE_UNAVAILABLE:
    case BERTH__REASON__REASON_DEPENDENCY:
    case BERTH__REASON__REASON_ACCOUNT_LIMIT:
    case BERTH__REASON__REASON_ARRAY_THROTTLE:
        return FALSE;
    default:
        return TRUE;
    }
}

/* (transfer full) */
static char *describe(const Berth__Dependency *dependency, const Berth__Task *task)
{
    if (dependency->kind != BERTH__DEPENDENCY__KIND__AFTER_CORR)
        return berth_dependency_describe(dependency);
    g_autofree char *text = berth_dependency_format(dependency);
    return g_strdup_printf("%s[%u] (job %" G_GUINT64_FORMAT " is %s)", text, task->index,
                           dependency->job, berth_job_state_name(dependency->state));
}

static void tell_dependencies(Story *story, const Berth__JobSpec *spec, const Berth__Task *task)
{
    g_autoptr(GString) all = g_string_new(NULL);
    for (size_t i = 0; spec != NULL && i < spec->n_dependencies; i++) {
        g_autofree char *text = describe(spec->dependencies[i], task);
        g_string_append_printf(all, "%s%s", i == 0 ? "" : ", ", text);
    }
    if (all->len > 0)
        tell(story, "It comes %s.", all->str);
}

static void tell_waiting(Story *story, const Berth__Job *job, const Berth__Task *task)
{
    const Berth__Explanation *why = story->why;
    Berth__Reason reason = why != NULL ? why->reason : task->reason;
    g_autofree char *text = berth_words_waiting((BerthReason)reason, 0, 0);
    const char *more = *task->reason_text != '\0' ? task->reason_text : NULL;
    tell(story, "It %s%s%s.", text, more != NULL ? ". That is: " : "", more != NULL ? more : "");
    if (reason == BERTH__REASON__REASON_DEPENDENCY)
        tell_dependencies(story, job->spec, task);
    if (why == NULL)
        return;
    if (why->not_before_usec > why->now_usec) {
        g_autofree char *then = then_text(why->not_before_usec, why->now_usec);
        tell(story, "It is not tried again before %s.", then);
    }
    if (!waits_for_room(reason))
        return;
    tell_before(story);
    tell_need(story);
    tell_closed(story);
    tell_plan(story);
    tell_slack(story);
    tell_next_look(story);
}

/* --- it runs ---------------------------------------------------------------------------------- */

static void tell_move(Story *story, const Berth__Move *move, guint64 now_usec)
{
    g_autofree char *then = clock_text(move->time_usec, now_usec);
    if (move->from_checkpoint && move->reason == BERTH__REASON__REASON_RESTORING)
        tell(story, "It was on %s before, was checkpointed, and put back on %s at %s.", move->from,
             move->to, then);
    else if (move->from_checkpoint)
        tell(story, "It was on %s before, was checkpointed, and put back on %s at %s: %s.",
             move->from, move->to, then, berth_words_reason((BerthReason)move->reason));
    else
        tell(story, "It was moved from %s to %s while it ran, at %s: %s.", move->from, move->to,
             then, berth_words_reason((BerthReason)move->reason));
}

static void tell_backing(Story *story, const char *node)
{
    tell(story,
         "On %s that is as soon as there is room; it is moved for it when two rounds, "
         "balance_interval_usec (berthd.conf) apart, agree, and not within cooldown_usec of its "
         "last move, checkpoint, resize, freeze or thaw.",
         node);
}

static void tell_place(Story *story, const Berth__Task *task)
{
    if (task->booting)
        tell(story, "It is being %s on %s.", task->restoring ? "put back" : "started", task->node);
    else if (!task->opportunistic)
        tell(story, "It runs on %s, and all that it reserves is kept for it there.", task->node);
    else
        tell(story,
             "It runs on %s in slack: in what other jobs have reserved there and do not "
             "use. It leaves when they need it, and gets a place of its own where one comes "
             "free.",
             task->node);
    if (!task->opportunistic)
        return;
    if (!task->booting)
        tell_backing(story, task->node);
    if (story->why != NULL)
        tell_next_look(story);
}

static void tell_away(Story *story, const char *node)
{
    const Berth__Explanation *why = story->why;
    if (why == NULL || why->away_usec == 0)
        return;
    g_autofree char *since = clock_text(why->away_usec, why->now_usec);
    tell(story,
         "Nothing is known of it since %s: %s has no session. If none comes within node_timeout "
         "(berthd.conf), it goes on elsewhere, from its newest checkpoint if it has one.",
         since, node);
}

/* The node that it is being moved to: where it runs it is told of as ever. */
static void tell_away_there(Story *story, const Berth__Task *task, guint64 now_usec)
{
    g_autofree char *since = clock_text(task->away_usec, now_usec);
    if (task->away_usec != 0 && g_str_equal(task->away_node, task->migration->to))
        tell(story, "%s has no session since %s: nobody knows how far that is until one comes.",
             task->away_node, since);
}

/* For a moment, by its node itself. */
static void tell_held_back(Story *story, const Berth__Task *task, guint64 now_usec)
{
    g_autofree char *since = clock_text(task->held_back_usec, now_usec);
    if (task->held_back_usec != 0)
        tell(story,
             "It gets next to no CPU since %s: %s is short of memory, and holds back who %s until "
             "%s.",
             since, task->node, task->opportunistic ? "runs in slack" : "takes more",
             task->opportunistic ? "there is enough" : "those in slack have left");
}

/* In hundredths of a percent of the time: with less a job is as one expects. */
#define WAITS_LEAST 1000u

static void add_wait(GString *waits, guint32 share, const char *what)
{
    gboolean is_first = waits->len == 0;
    if (share >= WAITS_LEAST)
        g_string_append_printf(waits, "%s%.1f %% %s%s", is_first ? "" : ", ", share / 100.0,
                               is_first ? "of the time " : "", what);
}

/* Whatever is done to it, or not. Several may be at the same time. */
static void tell_waits(Story *story, const Berth__Task *task)
{
    const Berth__Usage *usage = task->usage;
    g_autoptr(GString) waits = g_string_new(NULL);
    if (usage == NULL || task->booting || task->away_usec != 0)
        return;
    add_wait(waits, usage->psi_memory_some, "for memory");
    add_wait(waits, usage->psi_io_some, "for its disk");
    add_wait(waits, usage->starved_permille * 10, "for CPUs that others have");
    if (waits->len > 0)
        tell(story, "Some of it waits, of late: %s.", waits->str);
    if (usage->throttled_permille * 10 >= WAITS_LEAST)
        tell(story,
             "Its CPU quota is used up, of late, for %.1f %% of the time for which its vCPUs would "
             "run.",
             usage->throttled_permille / 10.0);
}

static void tell_running(Story *story, const Berth__Job *job, const Berth__Task *task,
                         guint64 now_usec)
{
    g_autofree char *since = clock_text(task->short_usec, now_usec);
    g_autofree char *memory =
        berth_format_size_mib(task->memory_mib != 0 ? task->memory_mib : job->memory_mib);
    tell_place(story, task);
    tell_away(story, task->node);
    if (task->migration != NULL) {
        tell(story, "It is being moved to %s%s: %s.", task->migration->to,
             task->waits_for_room ? ", as soon as guests in slack have made room there" : "",
             berth_words_reason((BerthReason)task->migration->reason));
        tell_away_there(story, task, now_usec);
    }
    if (task->short_usec != 0)
        tell(story,
             "It is slow: since %s its %s of memory are too little, and it can get no more "
             "now%s.",
             since, memory,
             job->memory_max_mib > MAX(task->memory_mib, job->memory_mib)
                 ? ": there is no room for more where it is, nor on another node that it could "
                   "be moved to"
                 : " (--memory-max)");
    tell_waits(story, task);
    tell_held_back(story, task, now_usec);
    if (task->stop_usec != 0)
        tell(story, "It is being ended: %s.",
             *task->reason_text != '\0' ? task->reason_text
                                        : berth_words_reason((BerthReason)task->reason));
    if (task->moved != NULL)
        tell_move(story, task->moved, now_usec);
}

/* --- it stands still, or has ended ------------------------------------------------------------ */

static void tell_still(Story *story, const Berth__Task *task, guint64 now_usec)
{
    g_autofree char *since = clock_text(task->frozen_usec, now_usec);
    const char *text = *task->reason_text != '\0' ? task->reason_text
                                                  : berth_words_reason((BerthReason)task->reason);
    if (strstr(text, "stands still") != NULL)
        tell(story, "Since %s%s: %s.", since, task->to_disk ? ", on disk and without a node" : "",
             text);
    else
        tell(story, "It stands still since %s%s: %s.", since,
             task->to_disk ? ", as a checkpoint, without a node" : "", text);
}

static void tell_end(Story *story, const Berth__Task *task)
{
    g_autofree char *end = berth_format_time(task->end_usec);
    tell(story, "It ended as %s%s%s%s%s.", berth_job_state_name(task->state),
         end != NULL ? " at " : "", end != NULL ? end : "", *task->reason_text != '\0' ? ": " : "",
         task->reason_text);
}

GPtrArray *berth_why_now(const Berth__Job *job, const Berth__Task *task,
                         const Berth__Explanation *why)
{
    Story story = {g_ptr_array_new_with_free_func(g_free), why};
    guint64 now_usec = why != NULL ? why->now_usec : 0;
    if (task->state == BERTH__JOB_STATE__PENDING)
        tell_waiting(&story, job, task);
    else if (task->state == BERTH__JOB_STATE__RUNNING)
        tell_running(&story, job, task, now_usec);
    else if (task->state == BERTH__JOB_STATE__SUSPENDED)
        tell_still(&story, task, now_usec);
    else
        tell_end(&story, task);
    return story.lines;
}
