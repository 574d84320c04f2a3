/* SPDX-License-Identifier: Apache-2.0 */
/* berth show: everything about a job, one field per line. */
#include "cli/cli.h"
#include "cli/dependency.h"
#include "cli/failed_tasks.h"
#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/requests.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/id.h"
#include "common/ranges.h"
#include "common/types.h"
#include "common/units.h"
#include "common/words.h"

#include <stdio.h>
#include <string.h>

/* Of indices, in one line. */
#define RANGES_WIDTH 200u

static void print_command(const Berth__JobSpec *spec)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < spec->n_command; i++) {
        const char *word = spec->command[i];
        gboolean plain = *word != '\0' && word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                            "abcdefghijklmnopqrstuvwxyz"
                                                            "0123456789_@%+=:,./-")] == '\0';
        g_autofree char *quoted = plain ? g_strdup(word) : g_shell_quote(word);
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", quoted);
    }
    berth_print_field(spec->script ? "Script" : "Command", text->str);
}

static void print_ceiling(const Berth__JobSpec *spec)
{
    guint32 vcpus = MAX(spec->vcpus_max, spec->vcpus);
    guint64 memory_mib = MAX(spec->memory_max_mib, spec->memory_mib);
    g_autofree char *memory = berth_format_size_mib(memory_mib);
    if (vcpus != spec->vcpus || memory_mib != spec->memory_mib)
        berth_print_fieldf("Ceiling", "%u vCPU%s, %s memory", vcpus, vcpus == 1 ? "" : "s", memory);
}

static gboolean may_have_more_memory(const Berth__JobSpec *spec)
{
    return spec->memory_max_mib > spec->memory_mib;
}

/* What becomes of it when its memory is short: below its ceiling it stalls, and that is heard of; at its ceiling its guest's
 * kernel ends processes unless it stalls before. NULL: an older release has not said. */
static const char *at_memory_limit(const Berth__JobSpec *spec)
{
    switch (spec->on_limit) {
    case BERTH__ON_LIMIT__ON_LIMIT_GROW:
        return "it goes on, slowly, unless its kernel ends processes first (OUT_OF_MEMORY)";
    case BERTH__ON_LIMIT__ON_LIMIT_FREEZE:
        return may_have_more_memory(spec)
                   ? "below its ceiling it is frozen if there is no more for it; at its ceiling "
                     "its kernel ends processes (OUT_OF_MEMORY), or it is frozen if it stalls first"
                   : "its kernel ends processes (OUT_OF_MEMORY), or it is frozen if it stalls "
                     "first; submitted with a --memory-max above its --memory it is given more";
    case BERTH__ON_LIMIT__ON_LIMIT_KILL:
        return "it is ended";
    default:
        return NULL;
    }
}

static void print_at_limits(const Berth__JobSpec *spec)
{
    gboolean saves = spec->on_timeout == BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT;
    berth_print_field("If out of memory", at_memory_limit(spec));
    if (spec->on_timeout != BERTH__ON_TIMEOUT__ON_TIMEOUT_DEFAULT)
        berth_print_field("If out of time", saves ? "it is checkpointed" : "it is ended");
}

/* Of a task where it writes, of an array the pattern of that. (transfer full) */
static char *output_path(const char *pattern, const Berth__Job *job, const Berth__Task *task)
{
    if (job->array != NULL && task == NULL)
        return g_strdup(pattern);
    return berth_job_path_format(pattern, job->id, task != NULL ? task->index : 0);
}

/* Each with the state of the job that it names. */
static void print_dependencies(const Berth__JobSpec *spec)
{
    for (size_t i = 0; i < spec->n_dependencies; i++) {
        g_autofree char *text = berth_dependency_describe(spec->dependencies[i]);
        berth_print_field("Comes", text);
    }
}

static void print_spec(const Berth__JobSpec *spec, const Berth__Job *job, const Berth__Task *task)
{
    g_autofree char *disk = berth_format_size_mib(spec->disk_mib);
    print_ceiling(spec);
    print_at_limits(spec);
    print_command(spec);
    berth_print_field("Directory", spec->working_directory);
    berth_print_field("Disk", disk);
    for (size_t i = 0; i < spec->n_inputs; i++)
        berth_print_fieldf("Input", "%s (%" G_GUINT64_FORMAT " bytes)", spec->inputs[i]->name,
                           spec->inputs[i]->blob->size_bytes);
    for (size_t i = 0; i < spec->n_nodes; i++)
        berth_print_field("May run on", spec->nodes[i]);
    print_dependencies(spec);
    g_autofree char *output = output_path(spec->stdout_path, job, task);
    g_autofree char *error = output_path(spec->stderr_path, job, task);
    berth_print_field("Output file", output);
    berth_print_field("Error file", error);
    berth_print_field("Submitted from", spec->submit_host);
}

static void print_exit(const Berth__Exit *exit)
{
    if (exit->signal != 0)
        berth_print_fieldf("Ended by", "signal %u (%s)", exit->signal,
                           strsignal((int)exit->signal));
    else
        berth_print_fieldf("Exit status", "%u", exit->status);
    berth_print_field("Exit error", exit->error);
    if (exit->oom_kills > 0)
        berth_print_fieldf("OOM kills", "%u", exit->oom_kills);
    if (exit->disk_full)
        berth_print_field("Disk full", "at the end: no block was free (--disk asks for more)");
    berth_print_fieldf("Output", "%" G_GUINT64_FORMAT " bytes, and %" G_GUINT64_FORMAT " to stderr",
                       exit->stdout_bytes, exit->stderr_bytes);
}

/* Of a guest that runs: what it does now. */
static void print_rates(const Berth__Usage *usage)
{
    if (usage->rate_msec == 0)
        return;
    g_autoptr(GString) waits = g_string_new(NULL);
    if (usage->starved_permille > 0)
        g_string_append_printf(waits, "; others have its CPU for %.1f %% of the time",
                               usage->starved_permille / 10.0);
    if (usage->throttled_permille > 0)
        g_string_append_printf(waits, "; its quota keeps it from CPUs for %.1f %% of the time",
                               usage->throttled_permille / 10.0);
    berth_print_fieldf("CPU now", "%.2f CPUs%s", usage->cpu_milli / 1000.0, waits->str);
}

static void print_pressure(const Berth__Usage *usage, gboolean is_frozen)
{
    const BerthStalls stalls = {.cpu_some = usage->psi_cpu_some,
                                .memory_some = usage->psi_memory_some,
                                .memory_full = usage->psi_memory_full,
                                .io_some = usage->psi_io_some};
    berth_print_stalls(&stalls, is_frozen ? "when it was frozen: " : "", "its disk");
}

/* What is in use of it. Of its node's it has none when it is on disk. */
static void print_memory(const Berth__Usage *usage, const Berth__Task *task)
{
    gboolean is_frozen = task->state == BERTH__JOB_STATE__SUSPENDED;
    if (is_frozen && usage->memory_total_mib == 0)
        return; /* it has said nothing since it began, or went on */
    guint64 used_mib =
        usage->memory_total_mib - MIN(usage->memory_available_mib, usage->memory_total_mib);
    g_autofree char *of_node =
        g_strdup_printf(", and %" G_GUINT64_FORMAT "M of its node's", usage->host_memory_mib);
    berth_print_fieldf(is_frozen ? "Memory" : "Memory now", "%" G_GUINT64_FORMAT "M%s%s", used_mib,
                       is_frozen ? " when it was frozen" : "", task->to_disk ? "" : of_node);
}

/* Of a guest that runs, and of one that stands still as of when it did not: it says nothing meanwhile. */
static void print_now(const Berth__Usage *usage, const Berth__Task *task)
{
    g_autofree char *disk_free = berth_format_size_mib(usage->disk_free_bytes >> 20);
    if (usage->memory_total_mib > 0) { /* else it has said nothing yet */
        print_memory(usage, task);
        berth_print_field("Disk free", disk_free);
    }
    if (usage->oom_kills > 0)
        berth_print_fieldf("OOM kills", "%u", usage->oom_kills);
    print_pressure(usage, task->state == BERTH__JOB_STATE__SUSPENDED);
}

static void print_traffic(const char *name, const char *const verbs[2], guint64 in, guint64 out)
{
    g_autofree char *in_text = berth_format_size_mib(in >> 20);
    g_autofree char *out_text = berth_format_size_mib(out >> 20);
    if (in >> 20 > 0 || out >> 20 > 0)
        berth_print_fieldf(name, "%s %s, %s %s", in_text, verbs[0], out_text, verbs[1]);
}

static void print_usage(const Berth__Usage *usage, const Berth__Task *task)
{
    static const char *const disk_verbs[] = {"read", "written"};
    static const char *const net_verbs[] = {"received", "sent"};
    gboolean runs = task->state == BERTH__JOB_STATE__RUNNING;
    berth_print_fieldf("CPU used", "%.2f s", (double)usage->cpu_usec / G_USEC_PER_SEC);
    if (runs)
        print_rates(usage);
    if (usage->memory_total_mib > 0)
        berth_print_fieldf("Memory used",
                           "%" G_GUINT64_FORMAT "M at most, of %" G_GUINT64_FORMAT "M",
                           usage->memory_peak_mib, usage->memory_total_mib);
    if (runs || task->state == BERTH__JOB_STATE__SUSPENDED)
        print_now(usage, task);
    if (usage->swap_used_mib > 0)
        berth_print_fieldf("Swap used", "%" G_GUINT64_FORMAT "M", usage->swap_used_mib);
    print_traffic("Disk", disk_verbs, usage->disk_read_bytes, usage->disk_write_bytes);
    print_traffic("Network", net_verbs, usage->net_receive_bytes, usage->net_send_bytes);
}

/* Of a running job that is to end: since when, and when it gets no more time. */
static void print_stop(const Berth__Task *task)
{
    g_autofree char *since = berth_format_time(task->stop_usec);
    g_autofree char *kill = berth_format_time(task->kill_usec);
    if (since != NULL)
        berth_print_fieldf("Ending", "since %s, %s%s", since,
                           kill ? "with SIGKILL at " : "as soon as its node can be reached",
                           kill ? kill : "");
}

static void print_migration(const Berth__Task *task)
{
    const Berth__MigrationProgress *migration = task->migration;
    g_autofree char *left = berth_format_size_mib(migration->memory_left_bytes >> 20);
    g_autofree char *pace =
        g_strdup_printf(", at %" G_GUINT64_FORMAT " MiB/s, %" G_GUINT64_FORMAT
                        " MiB/s written meanwhile, to stand still for %u ms",
                        migration->bytes_per_sec >> 20, migration->dirty_bytes_per_sec >> 20,
                        migration->downtime_msec);
    berth_print_fieldf("Moves to", "%s%s%s%s%s%s", migration->to,
                       task->waits_for_room ? ", when guests in slack have made room there" : "",
                       migration->is_cancelled ? ", which was called off" : "",
                       migration->since_usec != 0 ? ", to be copied: " : "",
                       migration->since_usec != 0 ? left : "",
                       migration->bytes_per_sec != 0 ? pace : "");
}

static void print_size(const Berth__Task *task)
{
    g_autofree char *memory = berth_format_size_mib(task->memory_mib);
    if (task->vcpus != 0)
        berth_print_fieldf("Resized to", "%u vCPU%s, %s memory", task->vcpus,
                           task->vcpus == 1 ? "" : "s", memory);
    if (task->resize == NULL || task->resize->reason == BERTH__REASON__REASON_PROMOTION)
        return;
    g_autofree char *wanted = berth_format_size_mib(task->resize->memory_mib);
    berth_print_fieldf("Is to have", "%u vCPU%s, %s memory%s", task->resize->vcpus,
                       task->resize->vcpus == 1 ? "" : "s", wanted,
                       task->waits_for_room && task->migration == NULL
                           ? ", when guests in slack have made room"
                           : "");
}

/* For a moment, by its node itself. */
static void print_held_back(const Berth__Task *task)
{
    g_autofree char *since = berth_format_time(task->held_back_usec);
    if (since != NULL && task->state == BERTH__JOB_STATE__RUNNING)
        berth_print_fieldf("Held back", "since %s: its node is short of memory%s", since,
                           task->opportunistic ? ", and it runs in slack"
                                               : ", until guests in slack have left");
}

/* Nobody hears of it. */
static void print_away(const Berth__Task *task)
{
    g_autofree char *since = berth_format_time(task->away_usec);
    if (since != NULL)
        berth_print_fieldf("Away", "since %s: %s has no session", since,
                           *task->away_node != '\0' ? task->away_node : task->node);
}

/* In what it is, if that is not its own. */
static void print_slack(const Berth__Task *task)
{
    g_autofree char *balloon = berth_format_size_mib(task->balloon_mib);
    if (task->opportunistic)
        berth_print_field("Placement",
                          "in slack: what other jobs have reserved there and do not use");
    if (task->balloon_mib > 0)
        berth_print_fieldf("Balloon", "keeps %s of its memory, for who lacks it on its node",
                           balloon);
}

/* What was asked for since it was submitted stands for what was asked for then. */
static void print_policy(const Berth__Job *job)
{
    guint32 every_sec = 0;
    if (job->checkpoint_policy != NULL)
        every_sec = job->checkpoint_policy->every_sec;
    else if (job->spec != NULL)
        every_sec = job->spec->checkpoint_every_sec;
    g_autofree char *every = berth_format_duration_sec(every_sec);
    if (every_sec > 0)
        berth_print_fieldf("Checkpointed", "every %s", every);
}

static void print_checkpoints(const Berth__Task *task)
{
    guint64 bytes = 0;
    g_autofree char *since = berth_format_time(task->checkpointing_usec);
    if (task->checkpointing != 0)
        berth_print_fieldf("Checkpointing", "%u, since %s", task->checkpointing, since);
    if (task->n_checkpoints == 0)
        return;
    for (gsize i = 0; i < task->n_checkpoints; i++)
        bytes += task->checkpoints[i]->memory_bytes + task->checkpoints[i]->disk_bytes;
    const Berth__Checkpoint *newest = task->checkpoints[task->n_checkpoints - 1];
    g_autofree char *taken = berth_format_time(newest->taken_usec);
    g_autofree char *size = berth_format_size_mib(bytes >> 20);
    berth_print_fieldf("Checkpoints", "%zu, of %s in all; the newest, %u, of %s",
                       task->n_checkpoints, size, newest->serial, taken);
    if (task->restores_from != 0 && task->restores_from != newest->serial)
        berth_print_fieldf("Goes on from", "checkpoint %u", task->restores_from);
}

/* It goes on all the same. */
static void print_short(const Berth__Task *task)
{
    g_autofree char *since = berth_format_time(task->short_usec);
    if (since != NULL)
        berth_print_fieldf("Lacks memory", "since %s, can get no more now, and is slow", since);
}

static void print_move(const Berth__Move *move)
{
    g_autofree char *time = move != NULL ? berth_format_time(move->time_usec) : NULL;
    if (time == NULL)
        return;
    /* That it waited to be put back is no reason why it was. */
    gboolean has_reason = move->reason != BERTH__REASON__REASON_RESTORING;
    const char *why = has_reason ? berth_words_reason((BerthReason)move->reason) : "";
    const char *colon = has_reason ? ": " : "";
    if (g_str_equal(move->from, move->to))
        berth_print_fieldf("Put back", "on %s at %s, from a checkpoint%s%s", move->to, time, colon,
                           why);
    else
        berth_print_fieldf("Moved", "from %s to %s at %s%s%s%s", move->from, move->to, time,
                           move->from_checkpoint ? ", from a checkpoint" : "", colon, why);
}

/* Of its time limit, over all of its guests. */
static void print_used(const Berth__Task *task)
{
    guint64 used_usec = berth_task_used_usec(task, (guint64)g_get_real_time());
    g_autofree char *used = berth_format_duration_sec(used_usec / G_USEC_PER_SEC);
    if (task->start_usec == 0 && used_usec == 0)
        return;
    if (task->end_usec != 0)
        berth_print_fieldf("Ran for", "%.3f s", (double)used_usec / G_USEC_PER_SEC);
    else
        berth_print_field("Ran so far", used);
}

/* It may have gone on from a checkpoint since it began. */
static void print_start(const Berth__Task *task)
{
    gboolean goes_on = task->used_usec > 0 && task->start_usec != task->begun_usec;
    g_autofree char *begun = berth_format_time(goes_on ? task->begun_usec : task->start_usec);
    g_autofree char *went_on = goes_on ? berth_format_time(task->start_usec) : NULL;
    berth_print_field("Started", begun);
    berth_print_field("Went on", went_on);
}

/* Who pays for that time: an operator who froze it, or else the job. */
static void print_frozen(const Berth__Job *job, const Berth__Task *task)
{
    g_autofree char *since = berth_format_time(task->frozen_usec);
    guint64 limit_usec = job->time_limit_sec * (guint64)G_USEC_PER_SEC;
    guint64 used_usec = berth_task_used_usec(task, (guint64)g_get_real_time());
    gboolean is_free = task->reason == BERTH__REASON__REASON_FROZEN_BY_OPERATOR;
    g_autofree char *left =
        berth_format_duration_sec((limit_usec - MIN(limit_usec, used_usec)) / G_USEC_PER_SEC);
    if (since == NULL)
        return;
    if (task->to_disk || task->state != BERTH__JOB_STATE__SUSPENDED || limit_usec == 0)
        berth_print_fieldf("Frozen since", "%s%s", since, task->to_disk ? ", to disk" : "");
    else
        berth_print_fieldf("Frozen since", "%s; its time limit %s: %s left", since,
                           is_free ? "stands still, too" : "goes on", left);
}

static void print_task(const Berth__Job *job, const Berth__Task *task)
{
    g_autofree char *end = berth_format_time(task->end_usec);
    g_autofree char *reason = berth_reason_format(task);
    g_autofree char *planned = berth_format_time(task->planned_usec);
    berth_print_field("Reason", reason);
    if (planned != NULL)
        berth_print_fieldf("Planned start", "%s at the latest, if nobody comes before it", planned);
    print_stop(task);
    gboolean is_nowhere = task->state == BERTH__JOB_STATE__PENDING || task->to_disk;
    berth_print_field(is_nowhere ? "Last node" : "Node", task->node);
    print_away(task);
    if (task->migration != NULL)
        print_migration(task);
    print_size(task);
    print_slack(task);
    print_held_back(task);
    print_short(task);
    print_move(task->moved);
    print_start(task);
    print_frozen(job, task);
    print_checkpoints(task);
    berth_print_field("Ended", end);
    print_used(task);
    if (task->requeues > 0)
        berth_print_fieldf("Requeued", "%u time%s", task->requeues, task->requeues == 1 ? "" : "s");
    if (task->exit != NULL)
        print_exit(task->exit);
    if (task->usage != NULL)
        print_usage(task->usage, task);
    if (*task->console_tail != '\0') {
        puts("Console of the guest, its end:");
        g_auto(GStrv) lines = g_strsplit(task->console_tail, "\n", -1);
        for (char **line = lines; *line != NULL; line++)
            berth_print_field("   ", g_strchomp(*line));
    }
}

static void print_state(Berth__JobState state, const char *field, const char *note)
{
    berth_print_fieldf(field, "%s%s%s%s", berth_job_state_name(state), note != NULL ? " (" : "",
                       note != NULL ? note : "", note != NULL ? ")" : "");
}

/* A job that was cancelled while it was held has kept the mark. */
static const char *hold_note(const Berth__Job *job, Berth__JobState state)
{
    if (state != BERTH__JOB_STATE__PENDING)
        return NULL;
    return job->held_by_operator ? "held by an operator" : job->held ? "held" : NULL;
}

static void print_held(Berth__IndexRange *const *ranges, size_t n_ranges, const char *by)
{
    g_autofree char *tasks = berth_ranges_format(ranges, n_ranges, RANGES_WIDTH);
    if (n_ranges > 0)
        berth_print_fieldf("Held", "%s%s", tasks, by);
}

static void print_array(const Berth__Job *job)
{
    const Berth__JobArray *array = job->array;
    g_autofree char *tasks = berth_ranges_format(array->tasks, array->n_tasks, RANGES_WIDTH);
    const Berth__TaskCounts all = berth_job_count(job, FALSE);
    g_autofree char *counts = berth_counts_format(&all);
    g_autofree char *unstarted =
        berth_ranges_format(job->unstarted, job->n_unstarted, RANGES_WIDTH);
    berth_print_field("Tasks", tasks);
    if (array->running_max != 0)
        berth_print_fieldf("At a time", "%u task%s", array->running_max,
                           array->running_max == 1 ? "" : "s");
    berth_print_field("Now", counts);
    berth_print_field("Not started", unstarted);
    if (job->held && all.pending > 0)
        berth_print_fieldf("Held", "all that wait%s",
                           job->held_by_operator ? ", by an operator" : "");
    print_held(job->held_tasks, job->n_held_tasks, "");
    print_held(job->held_tasks_by_operator, job->n_held_tasks_by_operator, ", by an operator");
}

static void print_open(const Berth__Job *job, const Berth__Task *task)
{
    g_autofree char *name = berth_task_format(job, task);
    g_autofree char *line = berth_task_format_state(task);
    berth_print_field(name, line);
}

/* Those that have started and not ended, in a line each: the first of them, and how many more there are. */
static void print_open_tasks(const Berth__Job *job)
{
    guint64 n_open = berth_job_n_open(job);
    guint64 n = 0;
    for (size_t i = 0; i < job->n_tasks; i++) {
        if (berth_job_state_is_final((BerthJobState)job->tasks[i]->state))
            continue;
        print_open(job, job->tasks[i]);
        n++;
    }
    if (n_open > n)
        printf("and %" G_GUINT64_FORMAT " more: berth ls --tasks %" G_GUINT64_FORMAT "\n",
               n_open - n, job->id);
}

/* Those that were named. */
static void print_named_tasks(const Berth__Job *job)
{
    for (size_t i = 0; i < job->n_tasks; i++) {
        g_autofree char *name = berth_task_format(job, job->tasks[i]);
        print_state(job->tasks[i]->state, name, berth_task_start_name(job->tasks[i]));
        print_task(job, job->tasks[i]);
    }
}

static void print_failed_tasks(const Berth__Job *job, const BerthFailedTasks *failed)
{
    for (guint state = 0; state < G_N_ELEMENTS(failed->by_state); state++) {
        if (failed->by_state[state] == NULL)
            continue;
        g_auto(BerthRanges) ranges = berth_ranges_of(failed->by_state[state]);
        g_autofree char *text = berth_ranges_format(ranges.ranges, ranges.n, RANGES_WIDTH);
        berth_print_field(berth_job_state_name((Berth__JobState)state), text);
    }
    if (failed->rest.n > 0) {
        g_autofree char *command = berth_task_rest_command(
            &failed->rest, job, "failed,timeout,out_of_memory,node_fail,cancelled");
        printf("and %" G_GUINT64_FORMAT " more that did not complete: %s\n", failed->rest.n,
               command);
    }
}

/* TASKS: those that somebody asked for; NULL = the job. A task alone is shown as a plain job is. */
static void print_job(const Berth__Job *job, const BerthIndexSet *tasks,
                      const BerthFailedTasks *failed)
{
    const Berth__Task *task = berth_job_one_task(job, tasks);
    gboolean is_one = job->array == NULL || task != NULL;
    const char *start = task != NULL ? berth_task_start_name(task) : NULL;
    Berth__JobState state = berth_job_state_of(job, task);
    g_autofree char *name = berth_tasks_format(job->id, is_one ? tasks : NULL);
    g_autofree char *submitted = berth_format_time(job->submit_usec);
    g_autofree char *memory = berth_format_size_mib(job->memory_mib);
    g_autofree char *limit = berth_format_duration_sec(job->time_limit_sec);
    berth_print_field("Job", name);
    berth_print_field("Name", job->name);
    berth_print_fieldf("User", "%s (%u)", job->user, job->uid);
    print_state(state, "State", start != NULL ? start : hold_note(job, state));
    berth_print_field("Submitted", submitted);
    berth_print_field("Image", job->image);
    berth_print_fieldf("Reservation", "%u vCPU%s, %s memory", job->vcpus,
                       job->vcpus == 1 ? "" : "s", memory);
    berth_print_field("Time limit", limit);
    print_policy(job);
    if (job->priority != 0)
        berth_print_fieldf("Priority", "%d", job->priority);
    if (job->spec != NULL)
        print_spec(job->spec, job, task);
    if (!is_one)
        print_array(job);
    if (!is_one && tasks != NULL) {
        print_named_tasks(job);
    } else if (!is_one) {
        print_failed_tasks(job, failed);
        print_open_tasks(job);
    } else if (task != NULL) {
        print_task(job, task);
    }
    berth_requests_print(job);
}

static gboolean show_one(BerthCli *cli, const BerthCliTasks *named, gboolean is_first,
                         GError **error)
{
    g_auto(BerthFailedTasks) failed = {0};
    Berth__Job *job = berth_get_job_tasks(cli, named->job, named->tasks, error);
    gboolean ok = job != NULL && (cli->json || job->array == NULL || named->tasks != NULL ||
                                  berth_failed_tasks_find(cli, job, &failed, error));
    if (ok && cli->json)
        berth_cli_print_json(&job->base);
    if (ok && !cli->json && !is_first)
        putchar('\n');
    if (ok && !cli->json)
        print_job(job, named->tasks, &failed);
    if (job != NULL)
        berth__job__free_unpacked(job, NULL);
    return ok;
}

/* A job that there is not does not keep the others from being shown. */
static gboolean show_each(BerthCli *cli, const GArray *jobs, int *out_status, GError **error)
{
    gboolean is_first = TRUE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (show_one(cli, &g_array_index(jobs, BerthCliTasks, i), is_first, &local))
            is_first = FALSE;
        else
            berth_cli_report(local, out_status);
    }
    return TRUE;
}

gboolean berth_cli_show(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object per line", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDICES]]...", NULL, NULL, out_status, error))
        return FALSE;
    g_autoptr(GArray) jobs = berth_cli_task_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    return show_each(cli, jobs, out_status, error);
}
