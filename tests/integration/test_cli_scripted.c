/* SPDX-License-Identifier: Apache-2.0 */
/* `berth` with a daemon that does what a script says: answers that are lost or late, at exactly the
 * moment that matters. */
#include "tests/lib/cli_process.h"
#include "tests/lib/scripted_daemon.h"

#include "common/message.h"

#include <signal.h>

#define JOB 42u

/* What becomes of a request. */
typedef enum {
    ANSWER,
    HOLD,   /* until the test answers */
    LOSE,   /* the connection ends instead */
    REFUSE, /* "not now" */
} Manner;

typedef struct {
    Berth__Jobs_Service jobs; /* first: handlers get its address */
    ScriptedDaemon daemon;
    Manner submit, cancel, logs; /* for the next one of each */
    BerthRpcCall *held;
    GPtrArray *keys; /* of the submissions that came */
    guint n_cancels;
    guint n_logs;
    guint n_watches;
    guint64 stdout_offset; /* that the newest Logs asked from */
    gboolean is_put_back;  /* its job is, while its first Logs is read */
    Berth__JobState state;
    gboolean output_pending; /* until it is watched */
    guint n_explained;
    Berth__JobState explains; /* that Explain says, whatever it is; 0 = what it is */
    gboolean takes_reasons;   /* of changes, which are refused then */
    char *reason;             /* of the newest; NULL = there was none */
} Script;

static Script *script_of(Berth__Jobs_Service *service)
{
    return (Script *)(void *)service;
}

/* Takes the manner of this request; those that follow are answered. TRUE: answer it. */
static gboolean take(Script *script, Manner *manner, BerthRpcCall *call)
{
    Manner now = *manner;
    *manner = ANSWER;
    if (now == HOLD) {
        script->held = call;
    } else if (now == LOSE) {
        berth_rpc_peer_close(berth_rpc_call_peer(call), TRUE);
        berth_rpc_call_end(call);
    } else if (now == REFUSE) {
        g_autoptr(GError) error =
            g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "storage cannot be reached");
        berth_rpc_call_fail(call, error);
    }
    return now == ANSWER;
}

/* --- the daemon --------------------------------------------------------------------------------- */

static void reply_submit(BerthRpcCall *call)
{
    Berth__SubmitReply reply = BERTH__SUBMIT_REPLY__INIT;
    reply.job = JOB;
    berth_rpc_call_reply(call, &reply.base);
}

static void on_submit(Berth__Jobs_Service *service, const Berth__SubmitRequest *request,
                      Berth__SubmitReply_Closure closure, void *closure_data)
{
    Script *script = script_of(service);
    g_ptr_array_add(script->keys, g_strdup(request->idempotency_key));
    if (take(script, &script->submit, BERTH_RPC_CALL(closure_data))) {
        reply_submit(BERTH_RPC_CALL(closure_data));
    }
}

static void on_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                   Berth__Job_Closure closure, void *closure_data)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.id = request->job;
    job.state = script_of(service)->state;
    Berth__Task task = BERTH__TASK__INIT, *tasks[] = {&task};
    task.state = job.state;
    task.output_pending = script_of(service)->output_pending;
    job.n_tasks = 1;
    job.tasks = tasks;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &job.base);
}

/* Of a change of a job: it is noted, and that is all. */
static void take_reason(Berth__Jobs_Service *service, const char *method, const char *reason,
                        BerthRpcCall *call)
{
    Script *script = script_of(service);
    g_autoptr(GError) error =
        g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "the reason was noted");
    if (!script->takes_reasons)
        fail_msg("%s was not expected", method);
    g_free(script->reason);
    script->reason = g_strdup(reason);
    berth_rpc_call_fail(call, error);
}

static void on_cancel(Berth__Jobs_Service *service, const Berth__CancelRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    Script *script = script_of(service);
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    assert_int_equal(request->job, JOB);
    if (script->takes_reasons) {
        take_reason(service, "Cancel", request->reason, BERTH_RPC_CALL(closure_data));
        return;
    }
    script->n_cancels++;
    if (take(script, &script->cancel, BERTH_RPC_CALL(closure_data))) {
        script->state = BERTH__JOB_STATE__CANCELLED;
        berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
        if (script->held) {
            berth_rpc_call_end(g_steal_pointer(&script->held)); /* of Logs: the job has ended */
        }
    }
}

static void send_log(BerthRpcCall *call, guint32 run, guint64 offset, const char *text)
{
    Berth__LogChunk chunk = BERTH__LOG_CHUNK__INIT;
    Berth__LogCut cut = BERTH__LOG_CUT__INIT;
    chunk.epoch = 1;
    chunk.run = run;
    chunk.offset = cut.stdout_bytes = offset;
    chunk.data.data = (guint8 *)text;
    chunk.data.len = strlen(text);
    chunk.cut = *text == '\0' ? &cut : NULL;
    berth_rpc_call_send_item(call, &chunk.base);
}

/* "012", of which all but the first is void, and "xy" in its place. */
static void send_logs_of_two_runs(const Berth__LogsRequest *request, BerthRpcCall *call)
{
    if (request->run == 0) {
        send_log(call, 0, 0, "012");
        send_log(call, 1, 1, "");
        send_log(call, 1, 1, "xy");
    } else {
        assert_int_equal(request->stdout_offset, 0);
        send_log(call, 1, 0, "0xy");
    }
    berth_rpc_call_end(call);
}

/* "012", and when it is asked again the rest, from where it is asked for. */
static void on_logs(Berth__Jobs_Service *service, const Berth__LogsRequest *request,
                    Berth__LogChunk_Closure closure, void *closure_data)
{
    static const char text[] = "01234";
    Script *script = script_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    Berth__LogChunk chunk = BERTH__LOG_CHUNK__INIT;
    script->n_logs++;
    script->stdout_offset = request->stdout_offset;
    if (script->is_put_back) {
        send_logs_of_two_runs(request, call);
        return;
    }
    assert_true(request->stdout_offset < sizeof text);
    chunk.epoch = 1;
    chunk.offset = request->stdout_offset;
    chunk.data.data = (guint8 *)&text[request->stdout_offset];
    chunk.data.len = script->n_logs == 1 ? 3 : strlen(text) - request->stdout_offset;
    berth_rpc_call_send_item(call, &chunk.base);
    if (script->state == BERTH__JOB_STATE__CANCELLED) {
        script->logs = ANSWER; /* nothing to hold for */
    }
    if (take(script, &script->logs, call)) {
        berth_rpc_call_end(call);
    }
}

static void on_watch(Berth__Jobs_Service *service, const Berth__WatchRequest *request,
                     Berth__Event_Closure closure, void *closure_data)
{
    Script *script = script_of(service);
    Berth__Event event = BERTH__EVENT__INIT;
    if (!script->output_pending) {
        fail_msg("Watch was not expected: every job has ended when it is looked at");
    }
    event.kind = BERTH__EVENT__KIND__OUTPUT_COPIED;
    event.seq = 7;
    event.job = JOB;
    script->output_pending = FALSE;
    script->n_watches++;
    berth_rpc_call_send_item(BERTH_RPC_CALL(closure_data), &event.base);
    berth_rpc_call_end(BERTH_RPC_CALL(closure_data));
}

/* Verbs of this test do not use this one; of the next, the reason alone. */
static void on_list(Berth__Jobs_Service *service, const Berth__ListJobsRequest *request,
                    Berth__ListJobsReply_Closure closure, void *closure_data)
{
    fail_msg("List was not expected");
}

static void on_hold(Berth__Jobs_Service *service, const Berth__HoldRequest *request,
                    Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Hold", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_release(Berth__Jobs_Service *service, const Berth__ReleaseRequest *request,
                       Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Release", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_freeze(Berth__Jobs_Service *service, const Berth__FreezeRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Freeze", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_thaw(Berth__Jobs_Service *service, const Berth__ThawRequest *request,
                    Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Thaw", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_extend(Berth__Jobs_Service *service, const Berth__ExtendRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Extend", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_migrate(Berth__Jobs_Service *service, const Berth__MigrateRequest *request,
                       Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Migrate", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_cancel_migration(Berth__Jobs_Service *service,
                                const Berth__CancelMigrationRequest *request,
                                Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "CancelMigration", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_resize(Berth__Jobs_Service *service, const Berth__ResizeRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Resize", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_checkpoint(Berth__Jobs_Service *service, const Berth__CheckpointRequest *request,
                          Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Checkpoint", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_set_checkpoint_every(Berth__Jobs_Service *service,
                                    const Berth__CheckpointEveryRequest *request,
                                    Berth__JobReply_Closure closure, void *closure_data)
{
    assert_true(request->every_sec == 1800 || request->every_sec == 0);
    take_reason(service, "SetCheckpointEvery", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_restore(Berth__Jobs_Service *service, const Berth__RestoreRequest *request,
                       Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "Restore", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_remove_checkpoint(Berth__Jobs_Service *service,
                                 const Berth__RemoveCheckpointRequest *request,
                                 Berth__JobReply_Closure closure, void *closure_data)
{
    take_reason(service, "RemoveCheckpoint", request->reason, BERTH_RPC_CALL(closure_data));
}

static void on_explain(Berth__Jobs_Service *service, const Berth__ExplainRequest *request,
                       Berth__Explanation_Closure closure, void *closure_data)
{
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    Script *script = script_of(service);
    script->n_explained++;
    if (script->state == BERTH__JOB_STATE__PENDING)
        script->state = BERTH__JOB_STATE__RUNNING; /* since it was asked for */
    why.state = script->explains ? script->explains : script->state;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &why.base);
}

static void on_submit_many(Berth__Jobs_Service *service, const Berth__SubmitManyRequest *request,
                           Berth__SubmitManyReply_Closure closure, void *closure_data)
{
    Berth__SubmitManyReply reply = BERTH__SUBMIT_MANY_REPLY__INIT;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static int setup(void **state)
{
    static const Berth__Jobs_Service jobs = BERTH__JOBS__INIT(on_);
    Script *script = g_new0(Script, 1);
    script->jobs = jobs;
    script->keys = g_ptr_array_new_with_free_func(g_free);
    script->state = BERTH__JOB_STATE__COMPLETED;
    scripted_daemon_start(&script->daemon, &script->jobs);
    *state = script;
    return 0;
}

static int teardown(void **state)
{
    Script *script = *state;
    scripted_daemon_stop(&script->daemon);
    g_ptr_array_unref(script->keys);
    g_free(script->reason);
    g_free(script);
    return 0;
}

static CliProcess *start(Script *script, const char *verb)
{
    return cli_start(script->daemon.socket, (const char *const[]){verb, "--", "true", NULL}, NULL);
}

/* --- submitting --------------------------------------------------------------------------------- */

/* It may have been committed: only the same key makes asking again safe. */
static void submit_lost_answer_is_asked_for_with_the_same_key(void **state)
{
    Script *script = *state;
    script->submit = LOSE;
    g_autoptr(CliProcess) cli = start(script, "submit");
    assert_cli_status(cli, 0);
    assert_string_equal(cli_out(cli), "42\n");
    assert_string_equal(cli_err(cli), "");
    assert_int_equal(script->keys->len, 2);
    assert_true(strlen(g_ptr_array_index(script->keys, 0)) > 20);
    assert_string_equal(g_ptr_array_index(script->keys, 0), g_ptr_array_index(script->keys, 1));
    g_autoptr(CliProcess) other = start(script, "submit");
    assert_cli_status(other, 0);
    assert_string_not_equal(g_ptr_array_index(script->keys, 0), g_ptr_array_index(script->keys, 2));
}

static void submit_refused_for_now_is_an_error(void **state)
{
    Script *script = *state;
    script->submit = REFUSE;
    g_autoptr(CliProcess) cli = start(script, "submit");
    assert_cli_status(cli, 1);
    assert_string_equal(cli_err(cli), "berth submit: storage cannot be reached\n");
    assert_int_equal(script->keys->len, 1);
}

/* --- cancelling --------------------------------------------------------------------------------- */

static void run_sigint_before_the_number_is_known_cancels(void **state)
{
    Script *script = *state;
    script->submit = HOLD;
    g_autoptr(CliProcess) cli = start(script, "run");
    run_until(script->held);
    cli_signal(cli, SIGINT);
    run_until(strstr(cli_err(cli), "cancelling the job"));
    BerthRpcCall *submit = g_steal_pointer(&script->held);
    script->logs = HOLD; /* the job runs until it is cancelled */
    reply_submit(submit);
    assert_cli_status(cli, 125);
    assert_int_equal(script->n_cancels, 1);
    assert_contains(cli_err(cli), "ended CANCELLED");
}

static void run_two_sigints_before_the_number_is_known_say_what_is_not_known(void **state)
{
    Script *script = *state;
    script->submit = HOLD;
    g_autoptr(CliProcess) cli = start(script, "run");
    run_until(script->held);
    cli_signal(cli, SIGINT);
    run_until(strstr(cli_err(cli), "cancelling the job"));
    cli_signal(cli, SIGINT);
    assert_cli_status(cli, 125);
    assert_contains(cli_err(cli), "may have been submitted");
    berth_rpc_call_end(g_steal_pointer(&script->held));
}

static void run_lost_cancel_is_sent_again(void **state)
{
    Script *script = *state;
    script->logs = HOLD;
    script->cancel = LOSE;
    g_autoptr(CliProcess) cli = start(script, "run");
    run_until(g_str_equal(cli_out(cli), "012"));
    cli_signal(cli, SIGINT);
    run_until(script->n_cancels == 1);
    berth_rpc_call_end(g_steal_pointer(&script->held)); /* it went with its connection */
    script->logs = HOLD;
    assert_cli_status(cli, 125);
    assert_int_equal(script->n_cancels, 2);
    assert_string_equal(cli_out(cli), "01234");
}

/* --- output ------------------------------------------------------------------------------------- */

static void run_goes_on_where_it_stopped(void **state)
{
    static const Manner manners[] = {LOSE, REFUSE};
    for (gsize i = 0; i < G_N_ELEMENTS(manners); i++) {
        Script *script = *state;
        script->logs = manners[i];
        script->n_logs = 0;
        g_autoptr(CliProcess) cli = start(script, "run");
        assert_cli_status(cli, 0);
        assert_string_equal(cli_out(cli), "01234");
        assert_int_equal(script->n_logs, 2);
        if (manners[i] == REFUSE) { /* what was sent before a loss may be lost with it */
            assert_int_equal(script->stdout_offset, 3);
        }
    }
}

/* What was printed stays; a file has no more than the job's output, whatever is in it. */
static void run_goes_back_where_its_job_does(void **state)
{
    static const struct {
        const char *error; /* the file that standard error goes to; output goes to "out" */
        guint n_logs;
    } cases[] = {{"err", 1}, {"out", 2}};
    Script *script = *state;
    script->is_put_back = TRUE;
    g_autoptr(CliProcess) printed = start(script, "run");
    assert_cli_status(printed, 0);
    assert_string_equal(cli_out(printed), "012xy");
    assert_contains(cli_err(printed), "job 42 was put back to a checkpoint; the last 2 bytes of "
                                      "its output are void\n");
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *out = g_build_filename(script->daemon.dir, "out", NULL);
        g_autofree char *err = g_build_filename(script->daemon.dir, cases[i].error, NULL);
        g_autofree char *content = NULL;
        script->n_logs = 0;
        const char *const words[] = {"run", "-o", out, "--error", err, "--", "true", NULL};
        g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, words, NULL);
        assert_cli_status(cli, 0);
        assert_contains(cli_err(cli), "2 bytes of its output are void");
        assert_true(g_file_get_contents(out, &content, NULL, NULL));
        assert_string_equal(content, "0xy");
        assert_int_equal(script->n_logs, cases[i].n_logs);
    }
}

/* Who only asks for what there is wants to know at once. */
static void logs_refused_for_now_is_an_error(void **state)
{
    Script *script = *state;
    script->logs = REFUSE;
    g_autoptr(CliProcess) cli =
        cli_start(script->daemon.socket, (const char *const[]){"logs", "42", NULL}, NULL);
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "storage cannot be reached");
    assert_int_equal(script->n_logs, 1);
}

/* --- waiting ------------------------------------------------------------------------------------ */

static void wait_for_ended_job_waits_for_its_output(void **state)
{
    Script *script = *state;
    script->output_pending = TRUE;
    g_autoptr(CliProcess) cli =
        cli_start(script->daemon.socket, (const char *const[]){"wait", "42", NULL}, NULL);
    assert_cli_status(cli, 0);
    assert_string_equal(cli_out(cli), "42 COMPLETED\n");
    assert_int_equal(script->n_watches, 1);
}

/* --- explaining --------------------------------------------------------------------------------- */

static void why_of_a_job_that_starts_meanwhile_is_of_one_moment(void **state)
{
    static const Berth__JobState explains[] = {0, BERTH__JOB_STATE__SUSPENDED};
    Script *script = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(explains); i++) {
        script->state = BERTH__JOB_STATE__PENDING;
        script->explains = explains[i];
        script->n_explained = 0;
        g_autoptr(CliProcess) cli =
            cli_start(script->daemon.socket, (const char *const[]){"why", "42", NULL}, NULL);
        assert_cli_status(cli, 0);
        assert_contains(cli_out(cli), ": RUNNING\n  It runs on ");
        assert_null(strstr(cli_out(cli), "It waits"));
        assert_int_equal(script->n_explained, 2);
    }
}

/* --- changing ----------------------------------------------------------------------------------- */

static void every_change_says_why(void **state)
{
    static const char *const cases[][8] = {
        {"cancel", "42"},
        {"hold", "42"},
        {"release", "42"},
        {"freeze", "42"},
        {"thaw", "42"},
        {"extend", "--by", "1h", "42"},
        {"migrate", "42"},
        {"migrate", "--cancel", "42"},
        {"resize", "--vcpus", "2", "42"},
        {"checkpoint", "42"},
        {"checkpoint", "--every", "30m", "42"},
        {"checkpoint", "--every", "never", "42"},
        {"checkpoint", "rm", "42", "1"},
        {"restore", "42"},
    };
    Script *script = *state;
    script->takes_reasons = TRUE;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
        g_strv_builder_addv(builder, (const char **)cases[i]);
        g_strv_builder_add_many(builder, "--reason", "it is too hot", NULL);
        g_auto(GStrv) words = g_strv_builder_end(builder);
        g_clear_pointer(&script->reason, g_free);
        g_autoptr(CliProcess) cli =
            cli_start(script->daemon.socket, (const char *const *)words, NULL);
        assert_cli_status(cli, 1);
        assert_contains(cli_err(cli), "the reason was noted");
        assert_string_equal(script->reason, "it is too hot");
        g_autoptr(CliProcess) silent = cli_start(script->daemon.socket, cases[i], NULL);
        assert_cli_status(silent, 1);
        assert_string_equal(script->reason, "");
    }
}

static void how_often_to_save_is_said_in_words(void **state)
{
    static const struct {
        const char *every, *wait, *why;
    } cases[] = {{"0", NULL, "try 30m, or never"},
                 {"often", NULL, "--every: "},
                 {"often", NULL, "; or never"},
                 {"30m", "--wait", "leave out --wait or --every"}};
    Script *script = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const words[] = {"checkpoint",   "42",          "--every",
                                     cases[i].every, cases[i].wait, NULL};
        g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, words, NULL);
        assert_cli_status(cli, 2);
        assert_contains(cli_err(cli), cases[i].why);
    }
}

static void plan_of_a_drain_takes_nothing_that_is_waited_with(void **state)
{
    Script *script = *state;
    const char *const deadline[] = {"node", "drain", "n1", "--plan", "--deadline", "1h", NULL};
    const char *const no_wait[] = {"node", "drain", "n1", "--plan", "--no-wait", NULL};
    g_autoptr(CliProcess) with_deadline = cli_start(script->daemon.socket, deadline, NULL);
    assert_cli_status(with_deadline, 2);
    assert_contains(cli_err(with_deadline), "leave out --deadline");
    g_autoptr(CliProcess) without_wait = cli_start(script->daemon.socket, no_wait, NULL);
    assert_cli_status(without_wait, 2);
    assert_contains(cli_err(without_wait), "leave out --no-wait");
}

#define SCRIPTED(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED(submit_lost_answer_is_asked_for_with_the_same_key),
        SCRIPTED(submit_refused_for_now_is_an_error),
        SCRIPTED(run_sigint_before_the_number_is_known_cancels),
        SCRIPTED(run_two_sigints_before_the_number_is_known_say_what_is_not_known),
        SCRIPTED(run_lost_cancel_is_sent_again),
        SCRIPTED(run_goes_on_where_it_stopped),
        SCRIPTED(run_goes_back_where_its_job_does),
        SCRIPTED(logs_refused_for_now_is_an_error),
        SCRIPTED(wait_for_ended_job_waits_for_its_output),
        SCRIPTED(why_of_a_job_that_starts_meanwhile_is_of_one_moment),
        SCRIPTED(every_change_says_why),
        SCRIPTED(how_often_to_save_is_said_in_words),
        SCRIPTED(plan_of_a_drain_takes_nothing_that_is_waited_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
