/* SPDX-License-Identifier: Apache-2.0 */
/* What `berth show` and `berth node show` say of what was measured, with a daemon that says all that it can. */
#include "tests/lib/cli_process.h"
#include "tests/lib/scripted_daemon.h"

#define MIB ((guint64)1 << 20)

typedef struct {
    Berth__Jobs_Service jobs; /* first: handlers get its address */
    Berth__Nodes_Service nodes;
    ScriptedDaemon daemon;
    Berth__JobState state;
    gboolean to_disk;
    Berth__Reason reason;
    guint64 start_usec, frozen_usec;
    Berth__JobSpec *spec; /* or NULL */
    gboolean booting, restoring, has_checkpoints;
} Script;

static Berth__Usage usage_of_all(void)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.cpu_usec = 12500000;
    usage.memory_peak_mib = 1900;
    usage.memory_available_mib = 1500;
    usage.memory_total_mib = 2000;
    usage.host_memory_mib = 2100;
    usage.disk_read_bytes = 100 * MIB;
    usage.disk_write_bytes = 200 * MIB;
    usage.psi_cpu_some = 100;
    usage.psi_memory_some = 4210;
    usage.psi_memory_full = 3000;
    usage.psi_io_some = 500;
    usage.disk_free_bytes = 5000 * MIB;
    usage.swap_used_mib = 7;
    usage.oom_kills = 3;
    usage.net_receive_bytes = 3 * MIB;
    usage.net_send_bytes = 4 * MIB;
    usage.cpu_milli = 1500;
    usage.starved_permille = 20;
    usage.throttled_permille = 30;
    usage.rate_msec = 10000;
    return usage;
}

static Berth__Checkpoint checkpoint_of(guint32 serial, guint64 pause_usec)
{
    Berth__Checkpoint checkpoint = BERTH__CHECKPOINT__INIT;
    checkpoint.serial = serial;
    checkpoint.taken_usec = G_USEC_PER_SEC;
    checkpoint.pause_usec = pause_usec;
    checkpoint.node = (char *)"n1";
    checkpoint.reason = BERTH__REASON__REASON_DRAIN;
    return checkpoint;
}

static void on_get(Berth__Jobs_Service *service, const Berth__GetJobRequest *request,
                   Berth__Job_Closure closure, void *closure_data)
{
    const Script *script = (const Script *)(const void *)service;
    Berth__Usage usage = usage_of_all();
    Berth__Checkpoint live = checkpoint_of(1, 250000), last = checkpoint_of(2, 0);
    Berth__Checkpoint *checkpoints[] = {&live, &last};
    Berth__Task task = BERTH__TASK__INIT, *tasks[] = {&task};
    Berth__Job job = BERTH__JOB__INIT;
    task.job = job.id = request->job;
    task.state = job.state = script->state;
    task.to_disk = script->to_disk;
    task.reason = script->reason;
    task.start_usec = script->start_usec;
    task.frozen_usec = script->frozen_usec;
    task.booting = script->booting;
    task.restoring = script->restoring;
    task.checkpoints = checkpoints;
    task.n_checkpoints = script->has_checkpoints ? G_N_ELEMENTS(checkpoints) : 0;
    task.node = (char *)"n1";
    task.usage = &usage;
    job.name = (char *)"measured";
    job.user = (char *)"alice";
    job.uid = 1000;
    job.image = (char *)"tiny";
    job.vcpus = 2;
    job.memory_mib = 2048;
    job.time_limit_sec = 3600;
    job.tasks = tasks;
    job.n_tasks = 1;
    job.spec = script->spec;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &job.base);
}

static Berth__NodeUsage node_usage_of_all(void)
{
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    usage.memory_free_mib = 3000;
    usage.load_centi = 152;
    usage.psi_cpu_some = 1100;
    usage.psi_memory_some = 200;
    usage.psi_memory_full = 150;
    usage.psi_io_some = 70;
    usage.psi_io_full = 60;
    usage.memory_total_mib = 16384;
    usage.swap_used_mib = 12;
    usage.guests_host_mib = 9000;
    usage.guests_used_mib = 7000;
    usage.cpu_milli = 2250;
    return usage;
}

static void on_get_node(Berth__Nodes_Service *service, const Berth__GetNodeRequest *request,
                        Berth__Node_Closure closure, void *closure_data)
{
    Berth__NodeUsage usage = node_usage_of_all();
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    Berth__Node node = BERTH__NODE__INIT;
    gboolean is_pressed = g_str_equal(request->name, "pressed");
    gint64 until_usec = g_get_real_time() + (is_pressed ? 1 : -1) * G_TIME_SPAN_HOUR;
    info.name = request->name;
    info.memory_mib = 16384;
    info.guest_memory_mib = 12288;
    node.info = &info;
    node.usage = &usage;
    node.state = BERTH__NODE_STATE__NODE_UP;
    node.guests = 2;
    node.vcpus_reserved = 4;
    node.memory_reserved_mib = 6144;
    node.vcpus_slack = 1;
    node.memory_slack_mib = 1024;
    node.predicted_milli = 2500;
    node.predicted_mib = 8192;
    node.pressed_until_usec = (guint64)until_usec;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &node.base);
}

static int setup(void **state)
{
    Script *script = g_new0(Script, 1);
    script->jobs = (Berth__Jobs_Service){.get = on_get};
    script->nodes = (Berth__Nodes_Service){
        .base = {.descriptor = &berth__nodes__descriptor,
                 .invoke = protobuf_c_service_invoke_internal},
        .get = on_get_node,
    };
    script->daemon.services[2] = &script->nodes.base;
    scripted_daemon_start(&script->daemon, &script->jobs);
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

static char *shown_whole(Script *script)
{
    return cli_output_of(
        cli_start(script->daemon.socket, (const char *const[]){"show", "42", NULL}, NULL));
}

/* What `berth show` says of it from its node on. (transfer full) */
static char *shown(Script *script, Berth__JobState state, gboolean to_disk)
{
    script->state = state;
    script->to_disk = to_disk;
    g_autofree char *all = shown_whole(script);
    const char *time_limit = "Time limit       01:00:00\n";
    assert_contains(all, time_limit);
    return g_strdup(strstr(all, time_limit) + strlen(time_limit));
}

static void job_that_runs_is_shown_with_all_that_was_measured(void **state)
{
    g_autofree char *text = shown(*state, BERTH__JOB_STATE__RUNNING, FALSE);
    assert_string_equal(
        text, "Node             n1\n"
              "CPU used         12.50 s\n"
              "CPU now          1.50 CPUs; others have its CPU for 2.0 % of the time; its quota "
              "keeps it from CPUs for 3.0 % of the time\n"
              "Memory used      1900M at most, of 2000M\n"
              "Memory now       500M, and 2100M of its node's\n"
              "Disk free        5000M\n"
              "OOM kills        3\n"
              "Stalls           for CPU 1.0 % of the time, for memory 42.1 % (all at once 30.0 %), "
              "for its disk 5.0 %\n"
              "Swap used        7M\n"
              "Disk             100M read, 200M written\n"
              "Network          3M received, 4M sent\n");
}

static void job_that_stands_still_is_shown_as_it_was_when_it_was_frozen(void **state)
{
    g_autofree char *text = shown(*state, BERTH__JOB_STATE__SUSPENDED, FALSE);
    assert_string_equal(
        text, "Node             n1\n"
              "CPU used         12.50 s\n"
              "Memory used      1900M at most, of 2000M\n"
              "Memory           500M when it was frozen, and 2100M of its node's\n"
              "Disk free        5000M\n"
              "OOM kills        3\n"
              "Stalls           when it was frozen: for CPU 1.0 % of the time, for memory 42.1 % "
              "(all at once 30.0 %), for its disk 5.0 %\n"
              "Swap used        7M\n"
              "Disk             100M read, 200M written\n"
              "Network          3M received, 4M sent\n");
    g_autofree char *saved = shown(*state, BERTH__JOB_STATE__SUSPENDED, TRUE);
    assert_contains(saved, "\nMemory           500M when it was frozen\n");
    assert_contains(saved, "\nStalls           when it was frozen: ");
}

/* What it did in the end is no news. */
static void job_that_has_ended_is_shown_with_what_it_used_in_all(void **state)
{
    g_autofree char *text = shown(*state, BERTH__JOB_STATE__COMPLETED, FALSE);
    assert_string_equal(text, "Node             n1\n"
                              "CPU used         12.50 s\n"
                              "Memory used      1900M at most, of 2000M\n"
                              "Swap used        7M\n"
                              "Disk             100M read, 200M written\n"
                              "Network          3M received, 4M sent\n");
}

/* Its time limit is an hour, of which it has run for half a minute. */
static void job_that_stands_still_is_shown_with_what_becomes_of_its_time(void **state)
{
    Script *script = *state;
    script->frozen_usec = (guint64)g_get_real_time() - 600 * G_USEC_PER_SEC;
    script->start_usec = script->frozen_usec - 30 * G_USEC_PER_SEC;
    script->reason = BERTH__REASON__REASON_AT_LIMIT;
    g_autofree char *text = shown(script, BERTH__JOB_STATE__SUSPENDED, FALSE);
    /* Of an hour, less half a minute, ten, and what this test takes. */
    assert_contains(text, "; its time limit goes on: 00:4");
    script->reason = BERTH__REASON__REASON_FROZEN_BY_OPERATOR;
    g_autofree char *free = shown(script, BERTH__JOB_STATE__SUSPENDED, FALSE);
    assert_contains(free, "; its time limit stands still, too: 00:59:30 left\n");
    g_autofree char *saved = shown(script, BERTH__JOB_STATE__SUSPENDED, TRUE);
    assert_contains(saved, ", to disk\n");
}

/* At its ceiling nobody can give it more, and its kernel is faster than who would freeze it. */
static void job_is_shown_with_what_becomes_of_it_at_its_limit(void **state)
{
    static const struct {
        Berth__OnLimit on_limit;
        guint64 memory_max_mib;
        const char *line;
    } cases[] = {
        {BERTH__ON_LIMIT__ON_LIMIT_FREEZE, 0,
         "If out of memory its kernel ends processes (OUT_OF_MEMORY), or it is frozen if it stalls "
         "first; submitted with a --memory-max above its --memory it is given more\n"},
        {BERTH__ON_LIMIT__ON_LIMIT_FREEZE, 4096,
         "If out of memory below its ceiling it is frozen if there is no more for it; at its "
         "ceiling its kernel ends processes (OUT_OF_MEMORY), or it is frozen if it stalls first\n"},
        {BERTH__ON_LIMIT__ON_LIMIT_GROW, 4096,
         "If out of memory it goes on, slowly, unless its kernel ends processes first "
         "(OUT_OF_MEMORY)\n"},
        {BERTH__ON_LIMIT__ON_LIMIT_KILL, 0, "If out of memory it is ended\n"},
    };
    Script *script = *state;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    script->spec = &spec;
    spec.memory_mib = 2048;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        spec.on_limit = cases[i].on_limit;
        spec.memory_max_mib = cases[i].memory_max_mib;
        g_autofree char *text = shown(script, BERTH__JOB_STATE__RUNNING, FALSE);
        assert_contains(text, cases[i].line);
    }
    script->spec = NULL;
}

/* It is RUNNING for who asks for states, and does nothing yet. */
static void job_whose_guest_is_not_there_yet_is_shown_so(void **state)
{
    Script *script = *state;
    script->state = BERTH__JOB_STATE__RUNNING;
    script->booting = TRUE;
    g_autofree char *boots = shown_whole(script);
    assert_contains(boots, "State            RUNNING (booting)\n");
    script->restoring = TRUE;
    g_autofree char *goes_on = shown_whole(script);
    assert_contains(goes_on, "State            RUNNING (restoring)\n");
}

/* One that a drain has taken is the last that its guest did. */
static void checkpoint_after_which_the_guest_did_not_go_on_has_no_pause(void **state)
{
    Script *script = *state;
    script->has_checkpoints = TRUE;
    g_autofree char *text = cli_output_of(cli_start(
        script->daemon.socket, (const char *const[]){"checkpoint", "ls", "42", NULL}, NULL));
    assert_contains(text, " 0.250 s  n1 ");
    assert_contains(text, "       -  n1 ");
    assert_null(strstr(text, "0.000"));
}

static char *shown_node(Script *script, const char *name)
{
    return cli_output_of(
        cli_start(script->daemon.socket, (const char *const[]){"node", "show", name, NULL}, NULL));
}

static void node_is_shown_with_all_that_was_measured(void **state)
{
    g_autofree char *text = shown_node(*state, "n1");
    assert_contains(
        text, "\nGuests           2, with 4 vCPUs and 6G memory reserved\n"
              "In slack         1 vCPU and 1G memory reserved besides\n"
              "Predicted use    at most 2.5 vCPUs, 8G memory\n"
              "Load             1.52, 3000M memory left for guests\n"
              "Guests use       2.25 CPUs, 9000M of the host's memory\n"
              "Swap used        12M\n"
              "Stalls           for CPU 11.0 % of the time, for memory 2.0 % (all at once 1.5 %), "
              "for disks 0.7 % (all at once 0.6 %)\n"
              "Host             ");
    assert_null(strstr(text, "Pressed"));
}

static void node_that_lacked_memory_says_until_when_it_is_spared(void **state)
{
    g_autofree char *text = shown_node(*state, "pressed");
    assert_contains(text, "\nPressed          nobody comes into its slack until 20");
    assert_contains(text, ": it lacked memory, or was about to\nLoad             ");
}

#define SCRIPTED(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED(job_that_runs_is_shown_with_all_that_was_measured),
        SCRIPTED(job_that_stands_still_is_shown_as_it_was_when_it_was_frozen),
        SCRIPTED(job_that_has_ended_is_shown_with_what_it_used_in_all),
        SCRIPTED(job_that_stands_still_is_shown_with_what_becomes_of_its_time),
        SCRIPTED(job_is_shown_with_what_becomes_of_it_at_its_limit),
        SCRIPTED(job_whose_guest_is_not_there_yet_is_shown_so),
        SCRIPTED(checkpoint_after_which_the_guest_did_not_go_on_has_no_pause),
        SCRIPTED(node_is_shown_with_all_that_was_measured),
        SCRIPTED(node_that_lacked_memory_says_until_when_it_is_spared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
