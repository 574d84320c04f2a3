/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a daemon of berthd's services says of an array, by a script of a test; decides nothing. */
#include "tests/lib/array_script.h"

#include "cli/tasks.h"
#include "common/id.h"
#include "common/ranges.h"
#include "common/types.h"

#define JOB       42u
#define PLAIN     17u
#define N_TASKS   10u
#define PAGE_SIZE 3u /* tasks in one answer */

static ArrayScript *script_of(Berth__Jobs_Service *service)
{
    return (ArrayScript *)(void *)service;
}

/* --- the daemon --------------------------------------------------------------------------------- */

typedef struct {
    Berth__Job job;
    Berth__JobArray array;
    Berth__IndexRange range, unstarted;
    Berth__IndexRange *ranges[1], *unstarteds[1];
    Berth__TaskCounts counts;
    Berth__JobSpec spec;
    Berth__Task task[N_TASKS];
    Berth__Task *tasks[N_TASKS];
    Berth__Exit exit;
} Words;

static Berth__JobState state_of(char letter)
{
    switch (letter) {
    case 'C':
    case 'L':
        return BERTH__JOB_STATE__COMPLETED;
    case 'F':
        return BERTH__JOB_STATE__FAILED;
    case 'R':
        return BERTH__JOB_STATE__RUNNING;
    case 'S':
        return BERTH__JOB_STATE__SUSPENDED;
    default:
        return BERTH__JOB_STATE__PENDING;
    }
}

static void describe_task(const ArrayScript *script, Words *words, guint32 index)
{
    Berth__Task *task = &words->task[index];
    *task = (Berth__Task)BERTH__TASK__INIT;
    task->job = JOB;
    task->index = index;
    task->state = state_of(script->tasks[index]);
    task->epoch = script->tasks[index] == 'W' ? 0 : 1;
    if (task->state == BERTH__JOB_STATE__RUNNING)
        task->node = (char *)"node2";
    if (task->state == BERTH__JOB_STATE__PENDING)
        task->reason = BERTH__REASON__REASON_RESOURCES;
    task->output_pending =
        script->output_pending && berth_job_state_is_final((BerthJobState)task->state);
    if (task->state == BERTH__JOB_STATE__FAILED)
        task->exit = &words->exit;
    task->output_lost = script->tasks[index] == 'L';
    if (task->output_lost)
        task->reason_text = (char *)"its output was not copied: no space";
}

static void count(const ArrayScript *script, Words *words)
{
    Berth__TaskCounts *counts = &words->counts;
    *counts = (Berth__TaskCounts)BERTH__TASK_COUNTS__INIT;
    for (const char *letter = script->tasks; *letter != '\0'; letter++) {
        Berth__JobState state = state_of(*letter);
        counts->completed += state == BERTH__JOB_STATE__COMPLETED;
        counts->failed += state == BERTH__JOB_STATE__FAILED;
        counts->running += state == BERTH__JOB_STATE__RUNNING;
        counts->suspended += state == BERTH__JOB_STATE__SUSPENDED;
        counts->pending += state == BERTH__JOB_STATE__PENDING;
    }
    words->job.state = counts->running > 0     ? BERTH__JOB_STATE__RUNNING
                       : counts->suspended > 0 ? BERTH__JOB_STATE__SUSPENDED
                       : counts->pending > 0   ? BERTH__JOB_STATE__PENDING
                       : counts->failed > 0    ? BERTH__JOB_STATE__FAILED
                                               : BERTH__JOB_STATE__COMPLETED;
}

/* The array, without its tasks. */
static void describe(const ArrayScript *script, Words *words)
{
    memset(words, 0, sizeof *words);
    words->job = (Berth__Job)BERTH__JOB__INIT;
    words->array = (Berth__JobArray)BERTH__JOB_ARRAY__INIT;
    words->range = words->unstarted = (Berth__IndexRange)BERTH__INDEX_RANGE__INIT;
    words->spec = (Berth__JobSpec)BERTH__JOB_SPEC__INIT;
    words->exit = (Berth__Exit)BERTH__EXIT__INIT;
    words->exit.status = 3;
    words->ranges[0] = &words->range;
    words->unstarteds[0] = &words->unstarted;
    words->range.last = N_TASKS - 1;
    words->array.tasks = words->ranges;
    words->array.n_tasks = 1;
    words->array.running_max = 5;
    if (!script->no_files)
        words->spec.stdout_path = (char *)"/tmp/out-%j-%a";
    words->job.id = JOB;
    words->job.name = (char *)"sums";
    words->job.user = (char *)"alice";
    words->job.vcpus = 1;
    words->job.memory_mib = 128;
    words->job.array = &words->array;
    words->job.counts = &words->counts;
    words->job.spec = &words->spec;
    words->job.tasks = words->tasks;
    count(script, words);
    const char *first = strchr(script->tasks, 'W');
    if (first == NULL)
        return;
    words->unstarted.first = (guint32)(first - script->tasks);
    words->unstarted.last = (guint32)(strrchr(script->tasks, 'W') - script->tasks);
    words->job.unstarted = words->unstarteds;
    words->job.n_unstarted = 1;
}

static void add_task(const ArrayScript *script, Words *words, guint32 index)
{
    describe_task(script, words, index);
    words->tasks[words->job.n_tasks++] = &words->task[index];
}

/* Those that have started and are not done with. */
static void add_open(const ArrayScript *script, Words *words, guint32 from)
{
    for (guint32 i = from; i < N_TASKS && words->job.n_tasks < PAGE_SIZE; i++)
        if (strchr(script->output_pending ? "RSPCFL" : "RSP", script->tasks[i]) != NULL)
            add_task(script, words, i);
}

static void reply_plain(const ArrayScript *script, BerthRpcCall *call, gboolean in_reply)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    Berth__Task task = BERTH__TASK__INIT, *tasks[] = {&task};
    job.id = PLAIN;
    job.state = task.state =
        script->plain_has_ended ? BERTH__JOB_STATE__COMPLETED : BERTH__JOB_STATE__RUNNING;
    job.tasks = tasks;
    job.n_tasks = 1;
    reply.job = &job;
    berth_rpc_call_reply(call, in_reply ? &reply.base : &job.base);
}

/* --- what happens ------------------------------------------------------------------------------- */

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    ArrayScript *script = user_data;
    if (script->call == call)
        script->call = NULL;
    berth_rpc_call_end(call);
}

static void tell_one(ArrayScript *script, const ArrayHappening *happening)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.seq = script->n_told;
    event.job = happening->ends_plain ? PLAIN : JOB;
    event.of_array = !happening->ends_plain;
    event.kind = happening->kind;
    event.state = happening->state;
    event.task = happening->task;
    event.rest_last = happening->rest_last;
    event.rest_step = happening->rest_step;
    event.node = (char *)"node2";
    script->plain_has_ended |= happening->ends_plain;
    if (happening->becomes > 0)
        script->tasks = script->later[happening->becomes - 1];
    script->awaits_look = happening->becomes > 0;
    berth_rpc_call_send_item(script->call, &event.base);
}

static void tell(ArrayScript *script)
{
    script->awaits_look = FALSE;
    while (script->happenings != NULL && script->happenings[script->n_told].kind != 0 &&
           !script->awaits_look) {
        script->n_told++;
        tell_one(script, &script->happenings[script->n_told - 1]);
    }
}

static void go_on_telling(ArrayScript *script)
{
    if (script->call != NULL && script->awaits_look)
        tell(script);
}

/* --- what is asked ------------------------------------------------------------------------------ */

static void on_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                   Berth__Job_Closure closure, void *closure_data)
{
    ArrayScript *script = script_of(service);
    Words words;
    guint32 from = request->follows ? request->after_task + 1 : 0;
    script->n_gets += request->all_tasks ? 0 : 1;
    script->n_pages += request->all_tasks ? 1 : 0;
    if (request->job == PLAIN) {
        reply_plain(script, BERTH_RPC_CALL(closure_data), FALSE);
        go_on_telling(script);
        return;
    }
    describe(script, &words);
    if (request->n_tasks == 0 && !request->all_tasks)
        add_open(script, &words, from);
    for (guint32 i = from; request->all_tasks && i < N_TASKS && words.job.n_tasks < PAGE_SIZE; i++)
        if (script->tasks[i] != 'W')
            add_task(script, &words, i);
    g_autoptr(BerthIndexSet) only =
        berth_ranges_take(request->tasks, request->n_tasks, G_MAXUINT32, "the tasks", NULL);
    for (guint32 i = from; i < N_TASKS && words.job.n_tasks < PAGE_SIZE; i++)
        if (request->n_tasks > 0 && berth_index_set_contains(only, i))
            add_task(script, &words, i);
    if (script->tells_early)
        go_on_telling(script);
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &words.job.base);
    if (!script->tells_early)
        go_on_telling(script);
}

static void note_states(ArrayScript *script, const Berth__ListJobsRequest *request)
{
    g_string_append(script->asked, "List");
    for (size_t i = 0; i < request->n_states; i++)
        g_string_append_printf(script->asked, " %s",
                               protobuf_c_enum_descriptor_get_value(&berth__job_state__descriptor,
                                                                    (int)request->states[i])
                                   ->name);
    g_string_append_c(script->asked, '\n');
}

static void on_list(Berth__Jobs_Service *service, const Berth__ListJobsRequest *request,
                    Berth__ListJobsReply_Closure closure, void *closure_data)
{
    ArrayScript *script = script_of(service);
    Words words;
    if (request->n_states > 0)
        note_states(script, request);
    Berth__ListJobsReply reply = BERTH__LIST_JOBS_REPLY__INIT;
    Berth__Job *jobs[] = {&words.job};
    describe(script, &words);
    add_open(script, &words, 0);
    if (words.job.state == BERTH__JOB_STATE__PENDING)
        words.job.reason = BERTH__REASON__REASON_HELD_BY_USER;
    reply.jobs = jobs;
    reply.n_jobs = 1;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void note(Berth__Jobs_Service *service, const char *method, guint64 job,
                 Berth__IndexRange *const *ranges, gsize n_ranges)
{
    g_autoptr(BerthIndexSet) tasks =
        n_ranges > 0 ? berth_ranges_take(ranges, n_ranges, G_MAXUINT32, "the tasks", NULL) : NULL;
    g_autofree char *name = berth_tasks_format(job, tasks);
    g_string_append_printf(script_of(service)->asked, "%s %s\n", method, name);
}

static void reply_job(Berth__Jobs_Service *service, void *closure_data)
{
    Words words;
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    describe(script_of(service), &words);
    add_open(script_of(service), &words, 0);
    reply.job = &words.job;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

#define NOTES_TASKS(name, Method)                                                                  \
    static void on_##name(Berth__Jobs_Service *service, const Berth__##Method##Request *request,   \
                          Berth__JobReply_Closure closure, void *closure_data)                     \
    {                                                                                              \
        note(service, #Method, request->job, request->tasks, request->n_tasks);                    \
        reply_job(service, closure_data);                                                          \
    }
NOTES_TASKS(cancel, Cancel)
NOTES_TASKS(hold, Hold)
NOTES_TASKS(release, Release)
NOTES_TASKS(freeze, Freeze)
NOTES_TASKS(thaw, Thaw)
NOTES_TASKS(checkpoint, Checkpoint)
NOTES_TASKS(migrate, Migrate)
NOTES_TASKS(cancel_migration, CancelMigration)
NOTES_TASKS(resize, Resize)

static void note_one(Berth__Jobs_Service *service, const char *method, guint64 job,
                     gboolean of_array, guint32 task)
{
    g_autofree char *name = berth_task_name_format(job, of_array, task);
    g_string_append_printf(script_of(service)->asked, "%s %s\n", method, name);
}

static void on_restore(Berth__Jobs_Service *service, const Berth__RestoreRequest *request,
                       Berth__JobReply_Closure closure, void *closure_data)
{
    note_one(service, "Restore", request->job, request->of_array, request->task);
    reply_job(service, closure_data);
}

static void on_remove_checkpoint(Berth__Jobs_Service *service,
                                 const Berth__RemoveCheckpointRequest *request,
                                 Berth__JobReply_Closure closure, void *closure_data)
{
    note_one(service, "RemoveCheckpoint", request->job, request->of_array, request->task);
    reply_job(service, closure_data);
}

static void on_logs(Berth__Jobs_Service *service, const Berth__LogsRequest *request,
                    Berth__LogChunk_Closure closure, void *closure_data)
{
    Berth__LogChunk chunk = BERTH__LOG_CHUNK__INIT;
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    char letter = script_of(service)->tasks[request->task];
    g_autofree char *line = g_strdup_printf("task %u%s", request->task, letter == 'F' ? "" : "\n");
    note_one(service, request->follow ? "Logs -f" : "Logs", request->job, request->of_array,
             request->task);
    chunk.epoch = 1;
    chunk.data.data = (guint8 *)line;
    chunk.data.len = strlen(line);
    if (letter != 'W')
        berth_rpc_call_send_item(call, &chunk.base);
    berth_rpc_call_end(call);
}

static void on_explain(Berth__Jobs_Service *service, const Berth__ExplainRequest *request,
                       Berth__Explanation_Closure closure, void *closure_data)
{
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    why.state = state_of(script_of(service)->tasks[request->task]);
    if (why.state == BERTH__JOB_STATE__PENDING)
        why.reason = BERTH__REASON__REASON_ARRAY_THROTTLE;
    note_one(service, "Explain", request->job, TRUE, request->task);
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &why.base);
}

/* Does not end before the client does, unless it wants no more than there is. */
static void on_watch(Berth__Jobs_Service *service, const Berth__WatchRequest *request,
                     Berth__Event_Closure closure, void *closure_data)
{
    ArrayScript *script = script_of(service);
    script->call = BERTH_RPC_CALL(closure_data);
    script->n_told = (guint)request->after_seq;
    script->n_watches++;
    g_array_set_size(script->watched, 0);
    g_array_append_vals(script->watched, request->jobs, (guint)request->n_jobs);
    berth_rpc_call_set_cancelled_func(script->call, on_cancelled, script);
    tell(script);
}

int array_script_setup(void **state)
{
    ArrayScript *script = g_new0(ArrayScript, 1);
    script->jobs.get = on_get;
    script->jobs.list = on_list;
    script->jobs.cancel = on_cancel;
    script->jobs.freeze = on_freeze;
    script->jobs.thaw = on_thaw;
    script->jobs.checkpoint = on_checkpoint;
    script->jobs.restore = on_restore;
    script->jobs.remove_checkpoint = on_remove_checkpoint;
    script->jobs.migrate = on_migrate;
    script->jobs.cancel_migration = on_cancel_migration;
    script->jobs.resize = on_resize;
    script->jobs.hold = on_hold;
    script->jobs.release = on_release;
    script->jobs.logs = on_logs;
    script->jobs.explain = on_explain;
    script->jobs.watch = on_watch;
    script->asked = g_string_new(NULL);
    script->watched = g_array_new(FALSE, FALSE, sizeof(guint64));
    script->tasks = "CFRRRRPWWW";
    scripted_daemon_start(&script->daemon, &script->jobs);
    *state = script;
    return 0;
}

int array_script_teardown(void **state)
{
    ArrayScript *script = *state;
    scripted_daemon_stop(&script->daemon);
    g_string_free(script->asked, TRUE);
    g_array_unref(script->watched);
    g_free(script);
    return 0;
}
