/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs that wait for something to be done to a guest, and a guest that is lost meanwhile: with a daemon whose events and
 * answers are scripted, for each order in which they may come. */
#include "tests/lib/cli_process.h"
#include "tests/lib/scripted_daemon.h"

#include "cli/format.h"
#include "common/message.h"

#define JOB   42u
#define EPOCH 3u
#define USEC  ((guint64)G_USEC_PER_SEC)

typedef struct {
    Berth__Event__Kind kind;
    Berth__JobState state;
    Berth__Reason reason;
    const char *text;
} Happening;

typedef struct {
    Berth__JobState state;
    Berth__Reason reason;
    guint32 epoch;
    guint32 restores_from;
    gboolean to_disk;
    gboolean booting, restoring;
    guint32 vcpus;
    guint64 memory_mib;
    guint64 begun_usec, start_usec, end_usec, used_usec, spared_usec;
    guint32 checkpointing;
    guint64 taken_usec; /* what it goes back to */
} Shown;

typedef struct {
    Berth__Jobs_Service jobs; /* first: handlers get its address */
    ScriptedDaemon daemon;
    Shown asked;                 /* in the answer to what is wanted */
    Shown later;                 /* and when it is looked at */
    const Happening *happenings; /* until one without a kind */
    gboolean to_disk;            /* that was asked for */
} Script;

static Script *script_of(Berth__Jobs_Service *service)
{
    return (Script *)(void *)service;
}

/* --- the daemon --------------------------------------------------------------------------------- */

typedef struct {
    Berth__Job job;
    Berth__Task task;
    Berth__Task *tasks[1];
    Berth__Checkpoint checkpoint;
    Berth__Checkpoint *checkpoints[1];
} Words;

static Berth__Job *describe(const Shown *shown, Words *words)
{
    static const Berth__Job job = BERTH__JOB__INIT;
    static const Berth__Task task = BERTH__TASK__INIT;
    static const Berth__Checkpoint checkpoint = BERTH__CHECKPOINT__INIT;
    *words = (Words){job, task, {&words->task}, checkpoint, {&words->checkpoint}};
    words->job.id = JOB;
    words->job.state = words->task.state = shown->state;
    words->task.reason = shown->reason;
    words->task.node = (char *)"node2";
    words->task.epoch = shown->epoch;
    words->task.restores_from = shown->restores_from;
    words->task.to_disk = shown->to_disk;
    words->task.booting = shown->booting;
    words->task.restoring = shown->restoring;
    words->job.vcpus = 1;
    words->job.memory_mib = 128;
    words->job.time_limit_sec = 7200;
    words->task.vcpus = shown->vcpus;
    words->task.memory_mib = shown->memory_mib;
    words->task.start_usec = shown->start_usec;
    words->task.end_usec = shown->end_usec;
    words->task.used_usec = shown->used_usec;
    words->task.begun_usec = shown->begun_usec;
    words->task.checkpointing = shown->checkpointing;
    words->task.checkpointing_usec = shown->checkpointing;
    words->task.spared_usec = shown->spared_usec;
    words->checkpoint.serial = shown->restores_from;
    words->checkpoint.taken_usec = shown->taken_usec;
    words->task.checkpoints = words->checkpoints;
    words->task.n_checkpoints = shown->taken_usec != 0;
    words->job.n_tasks = 1;
    words->job.tasks = words->tasks;
    return &words->job;
}

static void answer(const Script *script, void *closure_data)
{
    Words words;
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    reply.job = describe(&script->asked, &words);
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void on_migrate(Berth__Jobs_Service *service, const Berth__MigrateRequest *request,
                       Berth__JobReply_Closure closure, void *closure_data)
{
    answer(script_of(service), closure_data);
}

static void on_checkpoint(Berth__Jobs_Service *service, const Berth__CheckpointRequest *request,
                          Berth__JobReply_Closure closure, void *closure_data)
{
    answer(script_of(service), closure_data);
}

static void on_freeze(Berth__Jobs_Service *service, const Berth__FreezeRequest *request,
                      Berth__JobReply_Closure closure, void *closure_data)
{
    script_of(service)->to_disk = request->to_disk;
    answer(script_of(service), closure_data);
}

static void on_thaw(Berth__Jobs_Service *service, const Berth__ThawRequest *request,
                    Berth__JobReply_Closure closure, void *closure_data)
{
    answer(script_of(service), closure_data);
}

static void on_restore(Berth__Jobs_Service *service, const Berth__RestoreRequest *request,
                       Berth__JobReply_Closure closure, void *closure_data)
{
    answer(script_of(service), closure_data);
}

static void on_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                   Berth__Job_Closure closure, void *closure_data)
{
    Words words;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data),
                         &describe(&script_of(service)->later, &words)->base);
}

static void on_list(Berth__Jobs_Service *service, const Berth__ListJobsRequest *request,
                    Berth__ListJobsReply_Closure closure, void *closure_data)
{
    Words words;
    Berth__ListJobsReply reply = BERTH__LIST_JOBS_REPLY__INIT;
    Berth__Job *jobs[] = {describe(&script_of(service)->later, &words)};
    reply.jobs = jobs;
    reply.n_jobs = 1;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    berth_rpc_call_end(call);
}

/* Does not end: who waits for more than there is hangs, and fails by its deadline. */
static void on_watch(Berth__Jobs_Service *service, const Berth__WatchRequest *request,
                     Berth__Event_Closure closure, void *closure_data)
{
    const Happening *happening = script_of(service)->happenings;
    berth_rpc_call_set_cancelled_func(BERTH_RPC_CALL(closure_data), on_cancelled, NULL);
    for (guint64 seq = 1; happening->kind != 0; happening++, seq++) {
        Berth__Event event = BERTH__EVENT__INIT;
        event.seq = seq;
        event.job = JOB;
        event.epoch = EPOCH;
        event.node = (char *)"node2";
        event.kind = happening->kind;
        event.state = happening->state;
        event.reason = happening->reason;
        event.text = happening->text != NULL ? (char *)happening->text : event.text;
        if (seq > request->after_seq)
            berth_rpc_call_send_item(BERTH_RPC_CALL(closure_data), &event.base);
    }
}

static int setup(void **state)
{
    Script *script = g_new0(Script, 1);
    script->jobs.migrate = on_migrate;
    script->jobs.checkpoint = on_checkpoint;
    script->jobs.freeze = on_freeze;
    script->jobs.thaw = on_thaw;
    script->jobs.restore = on_restore;
    script->jobs.get = on_get;
    script->jobs.list = on_list;
    script->jobs.watch = on_watch;
    scripted_daemon_start(&script->daemon, &script->jobs);
    script->asked = (Shown){.state = BERTH__JOB_STATE__RUNNING, .epoch = EPOCH};
    *state = script;
    return 0;
}

static int teardown(void **state)
{
    Script *script = *state;
    scripted_daemon_stop(&script->daemon);
    g_free(script);
    return 0;
}

/* VERB of the job ends with STATUS, and says ERR and OUT. */
static void assert_says(Script *script, const char *const *verb, int status, const char *err,
                        const char *out)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    for (; *verb != NULL; verb++)
        g_ptr_array_add(words, (gpointer)*verb);
    g_ptr_array_add(words, (gpointer) "42");
    g_ptr_array_add(words, NULL);
    g_autoptr(CliProcess) cli =
        cli_start(script->daemon.socket, (const char *const *)words->pdata, NULL);
    assert_cli_status(cli, status);
    assert_string_equal(cli_err(cli), err);
    assert_string_equal(cli_out(cli), out);
}

#define SAYS(script, status, err, out, ...)                                                        \
    assert_says(script, (const char *const[]){__VA_ARGS__, NULL}, status, err, out)

static const Happening requeued = {.kind = BERTH__EVENT__KIND__TASK_STATE,
                                   .state = BERTH__JOB_STATE__PENDING,
                                   .reason = BERTH__REASON__REASON_REQUEUED};
static const Happening still = {.kind = BERTH__EVENT__KIND__TASK_STATE,
                                .state = BERTH__JOB_STATE__SUSPENDED,
                                .reason = BERTH__REASON__REASON_FROZEN_BY_USER};
static const Happening released = {.kind = BERTH__EVENT__KIND__GUEST_RELEASED};
static const Happening saved = {.kind = BERTH__EVENT__KIND__GUEST_CHECKPOINTED,
                                .reason = BERTH__REASON__REASON_FROZEN_BY_USER,
                                .text = "2: 64 MiB of memory"};

/* --- moving ------------------------------------------------------------------------------------- */

static void migrate_of_a_guest_that_is_lost_on_its_way_fails(void **state)
{
    Script *script = *state;
    const Happening lost[] = {{.kind = BERTH__EVENT__KIND__GUEST_MIGRATE, .text = "node2"},
                              {.kind = BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED,
                               .reason = BERTH__REASON__REASON_GUEST_VANISHED,
                               .text = "its guest was lost on the way to node2"},
                              {0}};
    script->happenings = lost;
    script->later = (Shown){.state = BERTH__JOB_STATE__RUNNING, .epoch = EPOCH + 1};
    SAYS(script, 1,
         "berth migrate: job 42 was not moved: its guest was lost, and it starts again\n", "",
         "migrate", "--wait");
    script->later.restores_from = 7;
    SAYS(script, 1,
         "berth migrate: job 42 was not moved: its guest was lost, and it goes on from checkpoint "
         "7\n",
         "", "migrate", "--wait");
}

static void migrate_of_a_frozen_job_says_that_it_stands_still(void **state)
{
    Script *script = *state;
    const Happening moved[] = {{.kind = BERTH__EVENT__KIND__GUEST_MIGRATED}, {0}};
    script->happenings = moved;
    script->asked.state = script->later.state = BERTH__JOB_STATE__SUSPENDED;
    SAYS(script, 0, "", "job 42 is frozen on node2\n", "migrate", "--wait");
}

/* --- freezing ----------------------------------------------------------------------------------- */

static void freeze_of_a_guest_that_is_lost_says_how_its_job_goes_on(void **state)
{
    Script *script = *state;
    const Happening lost[] = {requeued, released, {0}};
    script->happenings = lost;
    script->later = (Shown){.state = BERTH__JOB_STATE__PENDING, .epoch = EPOCH};
    const char *text = "berth freeze: job 42 was not frozen: its guest was lost, and it starts "
                       "again; it is to be frozen when it runs\n";
    SAYS(script, 1, text, "", "freeze");
    assert_false(script->to_disk);
    SAYS(script, 1, text, "", "freeze", "--to-disk");
    assert_true(script->to_disk);
}

/* Nobody saved what it did since its older checkpoint. Where it stood still in memory before, no event tells of another
 * state. */
static void freeze_to_disk_that_falls_back_says_to_which_checkpoint(void **state)
{
    Script *script = *state;
    const Happening ran[] = {still, released, {0}}, stood[] = {released, {0}};
    const Happening *const cases[] = {ran, stood};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        script->happenings = cases[i];
        script->asked.state = i == 0 ? BERTH__JOB_STATE__RUNNING : BERTH__JOB_STATE__SUSPENDED;
        script->later = (Shown){.state = BERTH__JOB_STATE__SUSPENDED,
                                .epoch = EPOCH,
                                .restores_from = 1,
                                .to_disk = TRUE};
        SAYS(script, 1,
             "berth freeze: job 42 was not frozen: its guest was lost, and it stands still as of "
             "checkpoint 1\n",
             "", "freeze", "--to-disk");
    }
}

/* No guest was lost: somebody wanted it to be as it had been. */
static void freeze_to_disk_that_a_restore_overtakes_says_so(void **state)
{
    Script *script = *state;
    const Happening wanted = {.kind = BERTH__EVENT__KIND__JOB_RESTORE_REQUESTED};
    const Happening happenings[] = {wanted, still, released, {0}};
    script->happenings = happenings;
    script->later = (Shown){
        .state = BERTH__JOB_STATE__SUSPENDED, .epoch = EPOCH, .restores_from = 1, .to_disk = TRUE};
    SAYS(script, 1, "berth freeze: job 42 was not frozen: it was put back to checkpoint 1\n", "",
         "freeze", "--to-disk");
}

/* The newest one may be old. */
static void restore_says_how_far_back_it_goes(void **state)
{
    Script *script = *state;
    script->asked = (Shown){.state = BERTH__JOB_STATE__PENDING,
                            .epoch = EPOCH,
                            .restores_from = 7,
                            .taken_usec = 86400 * USEC};
    g_autofree char *taken = berth_format_time(script->asked.taken_usec);
    g_autofree char *expected =
        g_strdup_printf("berth restore: job 42 goes back to checkpoint 7, taken %s\n", taken);
    g_autoptr(CliProcess) cli =
        cli_start(script->daemon.socket, (const char *const[]){"restore", "42", NULL}, NULL);
    assert_cli_status(cli, 0);
    assert_string_equal(cli_err(cli), expected);
    g_autoptr(CliProcess) json = cli_start(
        script->daemon.socket, (const char *const[]){"restore", "--json", "42", NULL}, NULL);
    assert_cli_status(json, 0);
    assert_string_equal(cli_err(json), "");
}

static void freeze_to_disk_is_done_when_its_node_is_free(void **state)
{
    Script *script = *state;
    const Happening ran[] = {saved, still, released, {0}}, stood[] = {saved, released, {0}};
    script->happenings = ran;
    SAYS(script, 0, "", "", "freeze", "--to-disk");
    script->happenings = stood;
    script->asked.state = BERTH__JOB_STATE__SUSPENDED;
    SAYS(script, 0, "", "", "freeze", "--to-disk");
}

/* Its node may have saved it, and not have said so. */
static void checkpoint_of_a_guest_that_is_lost_is_known_when_nothing_is_left(void **state)
{
    Script *script = *state;
    const Happening fenced = {.kind = BERTH__EVENT__KIND__GUEST_FENCED};
    const Happening found[] = {requeued, saved, released, {0}}, gone[] = {requeued, released, {0}},
                    cut_off[] = {requeued, fenced, {0}};
    script->happenings = found;
    SAYS(script, 0, "", "job 42, checkpoint 2: 64 MiB of memory\n", "checkpoint", "--wait");
    script->later = (Shown){.state = BERTH__JOB_STATE__PENDING, .epoch = EPOCH, .restores_from = 1};
    const Happening *const cases[] = {gone, cut_off};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        script->happenings = cases[i];
        SAYS(script, 1,
             "berth checkpoint: job 42 was not checkpointed: its guest was lost, and it goes on "
             "from "
             "checkpoint 1\n",
             "", "checkpoint", "--wait");
    }
}

static void thaw_without_room_says_that_it_waits(void **state)
{
    Script *script = *state;
    script->asked = (Shown){.state = BERTH__JOB_STATE__PENDING,
                            .reason = BERTH__REASON__REASON_RESOURCES,
                            .restores_from = 2};
    SAYS(script, 0,
         "berth thaw: job 42 is thawed, and waits to go on from checkpoint 2: resources\n", "",
         "thaw");
}

/* --- what it has, and what it has used ---------------------------------------------------------- */

/* One hour before its checkpoint, ten minutes since, of which one was others'. */
static void ls_shows_what_counts_and_what_a_job_has(void **state)
{
    Script *script = *state;
    const guint64 minute = 60 * G_USEC_PER_SEC;
    script->later = (Shown){.state = BERTH__JOB_STATE__COMPLETED,
                            .vcpus = 3,
                            .memory_mib = 512,
                            .start_usec = 100 * minute,
                            .end_usec = 110 * minute,
                            .used_usec = 60 * minute,
                            .spared_usec = minute};
    g_autoptr(CliProcess) ls =
        cli_start(script->daemon.socket, (const char *const[]){"ls", "42", NULL}, NULL);
    assert_cli_status(ls, 0);
    g_auto(GStrv) lines = g_strsplit(cli_out(ls), "\n", -1);
    g_autoptr(GRegex) row = g_regex_new(" COMPLETED +3 +512M +01:09:00 +02:00:00 ", 0, 0, NULL);
    assert_int_equal(g_strv_length(lines), 3);
    if (!g_regex_match(row, lines[1], 0, NULL))
        fail_msg("%s", lines[1]);
    g_autoptr(CliProcess) show =
        cli_start(script->daemon.socket, (const char *const[]){"show", "42", NULL}, NULL);
    assert_cli_status(show, 0);
    assert_contains(cli_out(show), "4140.000 s");
}

static void ls_and_show_say_where_a_job_is(void **state)
{
    static const struct {
        Shown job;
        const char *listed, *shown;
    } cases[] = {
        {{.state = BERTH__JOB_STATE__RUNNING}, " node2\n", "\nNode             node2\n"},
        {{.state = BERTH__JOB_STATE__RUNNING, .booting = TRUE},
         " node2 (booting)\n",
         "\nNode             node2\n"},
        {{.state = BERTH__JOB_STATE__RUNNING, .booting = TRUE, .restoring = TRUE},
         " node2 (restoring)\n",
         "\nNode             node2\n"},
        {{.state = BERTH__JOB_STATE__SUSPENDED, .reason = BERTH__REASON__REASON_FROZEN_BY_USER},
         " frozen-by-user (node2)\n",
         "\nNode             node2\n"},
        {{.state = BERTH__JOB_STATE__SUSPENDED,
          .reason = BERTH__REASON__REASON_FROZEN_BY_USER,
          .to_disk = TRUE},
         " frozen-by-user (on disk)\n",
         "\nLast node        node2\n"},
        {{.state = BERTH__JOB_STATE__PENDING, .reason = BERTH__REASON__REASON_RESOURCES},
         " resources\n",
         "\nLast node        node2\n"},
        {{.state = BERTH__JOB_STATE__SUSPENDED,
          .reason = BERTH__REASON__REASON_FROZEN_BY_USER,
          .to_disk = TRUE,
          .used_usec = 3600 * USEC},
         " 01:00:00 ",
         "\nRan so far       01:00:00\n"},
        {{.state = BERTH__JOB_STATE__CANCELLED, .end_usec = 7200 * USEC, .used_usec = 26 * USEC},
         " 00:00:26 ",
         "\nRan for          26.000 s\n"},
        {{.state = BERTH__JOB_STATE__RUNNING, .start_usec = 7200 * USEC, .used_usec = 26 * USEC},
         " node2\n",
         "\nWent on          "},
        {{.state = BERTH__JOB_STATE__CANCELLED,
          .end_usec = 7200 * USEC,
          .begun_usec = 3600 * USEC,
          .used_usec = 26 * USEC},
         " 00:00:26 ",
         "\nStarted          "},
        {{.state = BERTH__JOB_STATE__RUNNING, .start_usec = 7200 * USEC, .checkpointing = 3},
         " node2 (saving)\n",
         "\nCheckpointing    3, since "},
    };
    Script *script = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        script->later = cases[i].job;
        g_autofree char *listed = cli_output_of(
            cli_start(script->daemon.socket, (const char *const[]){"ls", NULL}, NULL));
        g_autofree char *shown = cli_output_of(
            cli_start(script->daemon.socket, (const char *const[]){"show", "42", NULL}, NULL));
        assert_contains(listed, cases[i].listed);
        assert_contains(shown, cases[i].shown);
    }
}

/* The manual: 2 for wrong options. No daemon is asked. */
static void wrong_options_are_a_wrong_use(void **state)
{
    static const struct {
        const char *arguments[6];
        const char *why;
    } cases[] = {
        {{"resize", "42"}, "what is the job to have?"},
        {{"resize", "42", "--vcpus", "0"}, "\"0\" is no number of vCPUs"},
        {{"resize", "42", "--vcpus=-1"}, "\"-1\" is no number of vCPUs"},
        {{"resize", "42", "--memory", "x"}, "--memory: "},
        {{"migrate", "42", "--cancel", "--to", "node1"}, "exclude each other"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli = cli_start("/nonexistent", cases[i].arguments, NULL);
        assert_cli_status(cli, 2);
        assert_contains(cli_err(cli), cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(migrate_of_a_guest_that_is_lost_on_its_way_fails, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(migrate_of_a_frozen_job_says_that_it_stands_still, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(freeze_of_a_guest_that_is_lost_says_how_its_job_goes_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(freeze_to_disk_that_falls_back_says_to_which_checkpoint,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(freeze_to_disk_that_a_restore_overtakes_says_so, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(restore_says_how_far_back_it_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(freeze_to_disk_is_done_when_its_node_is_free, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            checkpoint_of_a_guest_that_is_lost_is_known_when_nothing_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(thaw_without_room_says_that_it_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(ls_shows_what_counts_and_what_a_job_has, setup, teardown),
        cmocka_unit_test_setup_teardown(ls_and_show_say_where_a_job_is, setup, teardown),
        cmocka_unit_test(wrong_options_are_a_wrong_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
