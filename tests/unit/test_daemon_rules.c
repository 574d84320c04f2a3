/* SPDX-License-Identifier: Apache-2.0 */
/* Small rules of the daemon, each a table: permissions, words for reasons, errors of nodes,
 * garbage, the guard of blobs, files of output, and the configuration with its manual. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/actions.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/checkpoints.h"
#include "scheduler/daemon/collector.h"
#include "scheduler/daemon/daemon_config.h"
#include "scheduler/daemon/output_file.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/permission.h"
#include "scheduler/daemon/reason_text.h"
#include "scheduler/daemon/task_name.h"
#include "storage/storage_config.h"

#include <unistd.h>

/* --- permissions -------------------------------------------------------------------------------- */

typedef struct {
    BerthRpcIdentity who;
    gboolean is_owner_1000; /* may act on a job of uid 1000 */
    gboolean is_operator;
} PermissionCase;

static gid_t in_operators[] = {5, 600};

static const PermissionCase permissions[] = {
    {{.is_unix = TRUE, .uid = 0, .gid = 0}, TRUE, TRUE},
    {{.is_unix = TRUE, .uid = 1000, .gid = 1000}, TRUE, FALSE},
    {{.is_unix = TRUE, .uid = 1001, .gid = 1000}, FALSE, FALSE},
    {{.is_unix = TRUE, .uid = 1001, .gid = 600}, TRUE, TRUE},
    {{.is_unix = TRUE, .uid = 1001, .gid = 1, .groups = in_operators, .n_groups = 2}, TRUE, TRUE},
    {{.is_unix = FALSE, .uid = 0, .node_name = (char *)"n1"}, FALSE, FALSE},
};

static void permission_check_table(void **state)
{
    const BerthOperators operators = {.has_group = TRUE, .group = 600};
    for (gsize i = 0; i < G_N_ELEMENTS(permissions); i++) {
        const PermissionCase *c = &permissions[i];
        g_autoptr(GError) job = NULL;
        g_autoptr(GError) operator_error = NULL;
        assert_int_equal(berth_permission_check_job(&operators, &c->who, 7, 1000, &job),
                         c->is_owner_1000);
        assert_int_equal(
            berth_permission_check_operator(&operators, &c->who, "do this", &operator_error),
            c->is_operator);
        assert_int_equal(job == NULL, c->is_owner_1000);
        assert_int_equal(operator_error == NULL, c->is_operator);
    }
}

static void permission_without_group_only_root(void **state)
{
    BerthOperators operators;
    g_autoptr(GError) error = NULL;
    assert_true(berth_operators_init(&operators, NULL, NULL));
    assert_true(berth_permission_is_operator(&operators, &permissions[0].who));
    assert_false(berth_permission_is_operator(&operators, &permissions[3].who));
    assert_false(berth_operators_init(&operators, "no-such-group-here", &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "groupadd");
}

/* --- reasons ------------------------------------------------------------------------------------ */

typedef struct {
    BerthReasonFacts facts;
    const char *text;
} ReasonCase;

static Berth__Exit exit_3 = BERTH__EXIT__INIT;
static Berth__Exit exit_killed = BERTH__EXIT__INIT;
static Berth__Exit exit_oom = BERTH__EXIT__INIT;
static Berth__Exit exit_missing = BERTH__EXIT__INIT;

static const ReasonCase reasons[] = {
    {{.reason = BERTH__REASON__REASON_NONE}, ""},
    {{.reason = BERTH__REASON__REASON_EXIT_STATUS, .exit = &exit_3},
     "the command ended with status 3"},
    {{.reason = BERTH__REASON__REASON_SIGNAL, .exit = &exit_killed},
     "the command was ended by signal 9 (Killed)"},
    {{.reason = BERTH__REASON__REASON_MEMORY_LIMIT, .exit = &exit_oom, .memory_mib = 64},
     "the guest ran out of its 64 MiB of memory and its kernel ended 2 processes; ask for more "
     "with --memory, or with --memory-max for more when it is needed"},
    {{.reason = BERTH__REASON__REASON_MEMORY_LIMIT,
      .exit = &exit_oom,
      .memory_mib = 64,
      .memory_max_mib = 128},
     "the guest ran out of its 64 MiB of memory and its kernel ended 2 processes: it was not "
     "given more in time, up to its --memory-max of 128 MiB; ask for more with --memory"},
    {{.reason = BERTH__REASON__REASON_TIME_LIMIT, .time_limit_sec = 3725},
     "it reached its time limit of 1:02:05; ask for more with --time"},
    {{.reason = BERTH__REASON__REASON_TIME_LIMIT, .time_limit_sec = 5},
     "it reached its time limit of 5 s; ask for more with --time"},
    {{.reason = BERTH__REASON__REASON_TIME_LIMIT,
      .time_limit_sec = 5,
      .unsaved = "there was no space"},
     "it reached its time limit of 5 s, and could not be checkpointed: there was no space; ask for "
     "more with --time"},
    {{.reason = BERTH__REASON__REASON_TIME_LIMIT, .time_limit_sec = 5, .is_suspended = TRUE},
     "it has used its time limit of 5 s, and stands still as a checkpoint; berth extend gives it "
     "more, and it goes on where there is room"},
    {{.reason = BERTH__REASON__REASON_MEMORY_LIMIT, .memory_mib = 64},
     "it was short of its 64 MiB of memory, and is ended for that (--on-limit=kill); ask for more "
     "with --memory"},
    {{.reason = BERTH__REASON__REASON_MEMORY_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 128,
      .is_opportunistic = TRUE},
     "it was short of its 64 MiB of memory, could not be given more, up to its --memory-max of 128 "
     "MiB, as it ran in slack, and it is ended for that (--on-limit=kill); ask for more with "
     "--memory, or let it wait for more with --on-limit=freeze"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 128,
      .is_suspended = TRUE,
      .is_opportunistic = TRUE,
      .node = "n1",
      .backing = &(const BerthReasonBacking){2, 1, 80, 1024}},
     "it needs more than its 64 MiB of memory, and gets no more in slack: it stands still; when "
     "its node or another one can back all of it (which takes 2 vCPUs and 80M that nobody has "
     "reserved: n1 has 1 and 1G, of which jobs that are planned there may take some), it is given "
     "more there, up to 128 MiB, and goes on; berth resize --memory moves it to one that can now, "
     "if there is any, berth thaw lets it go on as it is"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 128,
      .is_suspended = TRUE,
      .is_opportunistic = TRUE},
     "it needs more than its 64 MiB of memory, and gets no more in slack: it stands still; when "
     "its node or another one can back all of it, it is given more there, up "
     "to 128 MiB, and goes on; berth resize --memory moves it to one that can now, if there is "
     "any, berth thaw lets it go on as it is"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 128,
      .is_suspended = TRUE},
     "it needs more than its 64 MiB of memory, for more there was no room, and it stands still; "
     "when there is some, it is given more, up to 128 MiB, and goes on; berth resize --memory "
     "gives it what little there is, berth thaw lets it go on as it is"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 128,
      .is_suspended = TRUE,
      .is_opportunistic = TRUE},
     "it needs more than its 64 MiB of memory, and gets no more in slack: it stands still; when "
     "its node or another one can back all of it, it is given more there, up to 128 MiB, and goes "
     "on; berth resize --memory moves it to one that can now, if there is any, berth thaw lets it "
     "go on as it is"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 64,
      .is_suspended = TRUE},
     "it needs more than its 64 MiB of memory, which is all that it may have (a larger "
     "--memory-max at submission is more), and stands still; berth thaw lets it go on as it is, "
     "slowly, or until its kernel ends processes"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT,
      .memory_mib = 64,
      .memory_max_mib = 64,
      .time_limit_sec = 3600,
      .is_suspended = TRUE},
     "it needs more than its 64 MiB of memory, which is all that it may have (a larger "
     "--memory-max at submission is more), and stands still, while its time limit goes on; berth "
     "thaw lets it go on as it is, slowly, or until its kernel ends processes"},
    {{.reason = BERTH__REASON__REASON_AT_LIMIT}, "it was at the limit of its memory"},
    {{.reason = BERTH__REASON__REASON_DEPENDENCY_NEVER},
     "a job that it comes after did not end as it must have"},
    {{.reason = BERTH__REASON__REASON_DEPENDENCY_NEVER, .never = {.job = 12}},
     "job 12, which it comes after, did not end as it must have"},
    {{.reason = BERTH__REASON__REASON_DEPENDENCY_NEVER,
      .never = {.job = 12, .by_task = TRUE, .tasks = {3, 3, 1}}},
     "job 12[3], which it comes after, did not end COMPLETED"},
    {{.reason = BERTH__REASON__REASON_DEPENDENCY_NEVER,
      .never = {.job = 12, .by_task = TRUE, .tasks = {3, 7, 1}}},
     "job 12[3-7], which it comes after, did not end COMPLETED"},
    {{.reason = BERTH__REASON__REASON_RESOURCES, .vcpus = 1, .memory_mib = 512},
     "no node has enough left for 1 vCPU and 512 MiB of memory; waits for running jobs to end"},
    {{.reason = BERTH__REASON__REASON_BOOT_DEADLINE, .node = "n1"},
     "the guest did not boot in time (node n1)"},
    {{.reason = BERTH__REASON__REASON_GUEST_VANISHED, .node = "n1"},
     "the guest was gone without a word of its end: its host ended it, or QEMU failed; submit the "
     "job again, and if that recurs ask an operator for its node's log (node n1)"},
    {{.reason = BERTH__REASON__REASON_START_FAILED, .node = "n1", .detail = "no space left"},
     "the node could not start its guest (node n1): no space left"},
    {{.reason = BERTH__REASON__REASON_EXIT_STATUS, .exit = &exit_3, .detail = "old news"},
     "the command ended with status 3"},
    {{.reason = BERTH__REASON__REASON_STORAGE_UNAVAILABLE, .detail = "the pool is full"},
     "storage does not answer; nothing is started until it does: the pool is full"},
    {{.reason = BERTH__REASON__REASON_COMMAND_NOT_FOUND, .exit = &exit_missing},
     "the command could not be executed in the image: no such file"},
};

static void reason_text_table(void **state)
{
    exit_3.status = 3;
    exit_killed.signal = 9;
    exit_oom.oom_kills = 2;
    exit_missing.error = (char *)"no such file";
    for (gsize i = 0; i < G_N_ELEMENTS(reasons); i++) {
        g_autofree char *text = berth_reason_text(&reasons[i].facts);
        assert_string_equal(text, reasons[i].text);
    }
}

static void reason_text_has_words_for_every_reason(void **state)
{
    const ProtobufCEnumDescriptor *all = &berth__reason__descriptor;
    for (guint i = 0; i < all->n_values; i++) {
        BerthReasonFacts facts = {.reason = (Berth__Reason)all->values[i].value};
        g_autofree char *text = berth_reason_text(&facts);
        assert_true(facts.reason == BERTH__REASON__REASON_NONE || *text);
    }
}

/* --- starts that fail ----------------------------------------------------------------------------- */

static void start_is_hopeless_table(void **state)
{
    static const struct {
        int code;
        gboolean is_hopeless;
    } cases[] = {
        {BERTH_ERROR_INVALID_ARGUMENT, TRUE},     {BERTH_ERROR_NOT_FOUND, TRUE},
        {BERTH_ERROR_UNSUPPORTED, TRUE},          {BERTH_ERROR_DATA_LOSS, TRUE},
        {BERTH_ERROR_UNAVAILABLE, FALSE},         {BERTH_ERROR_RESOURCE_EXHAUSTED, FALSE},
        {BERTH_ERROR_DEADLINE_EXCEEDED, FALSE},   {BERTH_ERROR_INTERNAL, FALSE},
        {BERTH_ERROR_FAILED_PRECONDITION, FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_int_equal(berth_actions_start_is_hopeless(cases[i].code), cases[i].is_hopeless);
    }
}

/* --- garbage -------------------------------------------------------------------------------------- */

static void dead_disk_is_of_an_ended_guest(void **state)
{
    BerthCoreConfig config = {.node_timeout_usec = G_USEC_PER_SEC};
    g_autoptr(BerthCore) core = berth_core_new(&config);
    guint32 node = berth_core_add_node(core, "n1");
    BerthCoreJob job = {.id = 5, .resources = {.vcpus = 1, .memory_mib = 64}};
    BerthCoreTask task = {.job = 5,
                          .state = BERTH_JOB_RUNNING,
                          .phase = BERTH_GUEST_RUNNING,
                          .node = node,
                          .epoch = 2};
    berth_core_restore_job(core, &job, &task, 1);
    static const struct {
        const char *disk_id;
        gboolean is_dead;
    } cases[] = {
        {"disk-5-0-0-2", FALSE},  /* runs */
        {"disk-5-0-0-1", TRUE},   /* its life before */
        {"disk-4-0-0-1", TRUE},   /* ended and forgotten */
        {"disk-10-0-0-1", FALSE}, /* never given out: not ours */
        {"somebody's", FALSE},    {"disk-05-0-0-1", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_int_equal(berth_collector_is_dead_disk(core, 10, cases[i].disk_id),
                         cases[i].is_dead);
    }
}

/* It goes on from a checkpoint of its second life: the disk has that name until it does. */
static void collector_keeps_disks_that_are_restored_from(void **state)
{
    BerthCoreConfig config = {.node_timeout_usec = G_USEC_PER_SEC};
    g_autoptr(BerthCore) core = berth_core_new(&config);
    BerthCoreJob job = {.id = 5, .resources = {.vcpus = 1, .memory_mib = 64}};
    BerthCoreTask task = {.job = 5,
                          .state = BERTH_JOB_PENDING,
                          .epoch = 3,
                          .checkpoint = 4,
                          .checkpoint_last = 4,
                          .checkpoint_epoch = 2};
    berth_core_restore_job(core, &job, &task, 1);
    assert_true(berth_collector_is_dead_disk(core, 10, "disk-5-0-0-1"));
    assert_false(berth_collector_is_dead_disk(core, 10, "disk-5-0-0-2"));
    assert_false(berth_collector_is_dead_disk(core, 10, "disk-5-0-0-3"));
}

static void collector_knows_dead_checkpoints(void **state)
{
    g_autoptr(BerthJobTable) jobs = berth_job_table_new();
    Berth__Job job = BERTH__JOB__INIT;
    job.id = 5;
    Berth__Task *task =
        berth_job_table_add_task(berth_job_table_add(jobs, berth_pb_dup(&job.base)), 0, NULL)
            ->stored->task;
    Berth__Checkpoint kept = BERTH__CHECKPOINT__INIT;
    kept.serial = 2;
    task->checkpoints = g_new(Berth__Checkpoint *, 1);
    task->checkpoints[0] = berth_pb_dup(&kept.base);
    task->n_checkpoints = 1;
    task->checkpointing = 3;
    static const struct {
        const char *id;
        gboolean is_dead;
    } cases[] = {{"5-0-1", TRUE}, {"5-0-2", FALSE},  {"5-0-3", FALSE},    {"5-1-2", TRUE},
                 {"4-0-1", TRUE}, {"10-0-1", FALSE}, {"somebody", FALSE}, {"5-0-02", FALSE}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_int_equal(berth_checkpoints_is_dead(jobs, 10, cases[i].id), cases[i].is_dead);
}

static void blob_guard_keeps_what_was_touched(void **state)
{
    const guint8 touched[BERTH_SHA256_BYTES] = {1};
    const guint8 other[BERTH_SHA256_BYTES] = {2};
    g_autoptr(BerthBlobGuard) guard = berth_blob_guard_new();
    assert_true(berth_blob_guard_touch(guard, 1000, touched, NULL));
    assert_false(berth_blob_guard_begin_removal(guard, touched));
    assert_true(berth_blob_guard_begin_removal(guard, other));
    g_autoptr(GError) error = NULL;
    assert_false(berth_blob_guard_touch(guard, 1000, other, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "being removed");
    assert_false(berth_blob_guard_pin(guard, other));
    berth_blob_guard_end_removal(guard, other);
    assert_true(berth_blob_guard_touch(guard, 1000, other, NULL));
    berth_blob_guard_sweep(guard);
    assert_false(berth_blob_guard_begin_removal(guard, touched));
}

static void blob_guard_pin_keeps_until_the_last_unpin(void **state)
{
    const guint8 digest[BERTH_SHA256_BYTES] = {3};
    g_autoptr(BerthBlobGuard) guard = berth_blob_guard_new();
    assert_true(berth_blob_guard_pin(guard, digest));
    assert_true(berth_blob_guard_pin(guard, digest));
    assert_false(berth_blob_guard_begin_removal(guard, digest));
    berth_blob_guard_unpin(guard, digest);
    assert_false(berth_blob_guard_begin_removal(guard, digest));
    berth_blob_guard_unpin(guard, digest);
    assert_true(berth_blob_guard_begin_removal(guard, digest));
}

static void blob_guard_touch_of_too_many_fails_for_that_user_alone(void **state)
{
    g_autoptr(BerthBlobGuard) guard = berth_blob_guard_new();
    g_autoptr(GError) error = NULL;
    guint8 digest[BERTH_SHA256_BYTES] = {0};
    for (guint32 i = 0; i < BERTH_BLOB_GUARD_USER_MAX; i++) {
        memcpy(digest, &i, sizeof i);
        assert_true(berth_blob_guard_touch(guard, 1000, digest, NULL));
    }
    assert_true(berth_blob_guard_touch(guard, 1000, digest, NULL)); /* it has this one */
    digest[31] = 1;
    assert_false(berth_blob_guard_touch(guard, 1000, digest, &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "different files");
    assert_true(berth_blob_guard_touch(guard, 1001, digest, NULL));
    /* What another has taken over counts as the other's. */
    digest[31] = 0;
    assert_true(berth_blob_guard_touch(guard, 1001, digest, NULL));
    digest[31] = 2;
    assert_true(berth_blob_guard_touch(guard, 1000, digest, NULL));
}

static void digest_hex_and_back(void **state)
{
    const guint8 digest[BERTH_SHA256_BYTES] = {0x00, 0x1f, 0xab, 0xff};
    guint8 back[BERTH_SHA256_BYTES];
    g_autofree char *hex = berth_digest_to_hex(digest);
    assert_true(g_str_has_prefix(hex, "001fabff00"));
    assert_true(berth_digest_from_hex(hex, back));
    assert_memory_equal(digest, back, sizeof back);
    assert_false(berth_digest_from_hex("00", back));
    hex[3] = 'x';
    assert_false(berth_digest_from_hex(hex, back));
}

/* --- output --------------------------------------------------------------------------------------- */

static void output_file_of_another_kind_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(berth_output_file_open("/dev/null", geteuid(), getegid(), NULL, 0, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "not a regular file");
}

/* --- configuration -------------------------------------------------------------------------------- */

static void every_option_is_in_the_manual(void **state)
{
    const char *top = g_getenv("top_srcdir");
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(top ? top : ".", "doc", "berthd.conf.5", NULL);
    gsize n = 0;
    const BerthConfigOption *options = berth_daemon_config_options(&n);
    berth_config_check_manual(path, options, n, &error);
    assert_no_error(error);
    berth_config_check_manual(path, berth_storage_config_options, berth_storage_config_n_options,
                              &error);
    assert_no_error(error);
}

static void example_config_is_good_and_shows_defaults(void **state)
{
    const char *top = g_getenv("top_srcdir");
    g_autoptr(GError) error = NULL;
    g_autofree char *path =
        g_build_filename(top ? top : ".", "scheduler", "daemon", "berthd.conf.example", NULL);
    g_autoptr(BerthDaemonConfig) config = berth_daemon_config_load(path, &error);
    assert_no_error(error);
    assert_int_equal(config->socket_mode, 0666);
    assert_int_equal(config->agents_port, 7440);
    assert_string_equal(config->storage.kind, "rbd");
}

static void config_values_that_cannot_be_used_are_refused(void **state)
{
    const char *top = g_getenv("top_srcdir");
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"[berthd]\nsocket_mode = 0000", "0600 to 0777"},
        {"[berthd]\nsocket_mode = 0066", "0600 to 0777"},
        {"[berthd]\nsocket_mode = 0200", "0600 to 0777"},
        {"[berthd]\nsocket_mode = 1600", "0600 to 0777"},
        {"[berthd]\nsocket_mode = rw", "0600 to 0777"},
        {"[agents]\naddress = foo.example", "an IP address of this host"},
        {"[agents]\naddress = 10.0.0", "an IP address of this host"},
        {"[defaults]\nimage = my image", "the name of an image"},
        {"[defaults]\nimage = ../x", "the name of an image"},
    };
    g_autofree char *path = NULL;
    g_autofree char *example =
        g_build_filename(top ? top : ".", "scheduler", "daemon", "berthd.conf.example", NULL);
    g_autofree char *text = NULL;
    int fd = g_file_open_tmp("berthd-conf-XXXXXX", &path, NULL);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_true(g_file_get_contents(example, &text, NULL, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *changed = g_strdup_printf("%s\n%s\n", text, cases[i].text);
        assert_true(g_file_set_contents(path, changed, -1, NULL));
        assert_null(berth_daemon_config_load(path, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].message);
    }
    assert_int_equal(unlink(path), 0);
}

static void grace_beyond_what_jobs_may_ask_for_is_warned_of(void **state)
{
    BerthDaemonConfig config = {.state = (char *)"file::memory:",
                                .operators_group = (char *)"",
                                .certificate = (char *)"/absent.crt",
                                .key = (char *)"/absent.key",
                                .ca = (char *)"/absent.crt",
                                .storage = {.kind = (char *)"dir", .path = (char *)"/"},
                                .stop_grace_sec = 30,
                                .stop_grace_max_sec = 30};
    g_autoptr(GPtrArray) good = berth_daemon_config_warnings(&config);
    config.stop_grace_sec = 31;
    g_autoptr(GPtrArray) bad = berth_daemon_config_warnings(&config);
    assert_int_equal(bad->len, good->len + 1);
    gboolean is_told = FALSE;
    for (guint i = 0; i < bad->len; i++)
        is_told |= strstr(g_ptr_array_index(bad, i), "[guests] stop_grace: 31 s are more") != NULL;
    assert_true(is_told);
}

/* --- which task is meant ------------------------------------------------------------------------ */

static void task_is_named_of_an_array_and_of_no_other_job(void **state)
{
    static const struct {
        guint32 task;
        gboolean of_array, is_array;
        const char *why; /* NULL: it may be */
    } cases[] = {
        {0, FALSE, FALSE, NULL},
        {0, TRUE, TRUE, NULL},
        {7, TRUE, TRUE, NULL},
        {7, FALSE, TRUE, NULL},
        {0, FALSE, TRUE,
         "job 42 is an array, whose tasks have this each by itself: name one, as 42[INDEX]"},
        {0, TRUE, FALSE, "job 42 is no array: name it without indices"},
        {7, FALSE, FALSE, "job 42 is no array: name it without indices"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        const BerthTaskName name = berth_task_name(42, cases[i].task, cases[i].of_array);
        assert_int_equal(berth_task_name_check(&name, cases[i].is_array, &error), !cases[i].why);
        if (cases[i].why)
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
        else
            assert_no_error(error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_is_named_of_an_array_and_of_no_other_job),
        cmocka_unit_test(permission_check_table),
        cmocka_unit_test(permission_without_group_only_root),
        cmocka_unit_test(reason_text_table),
        cmocka_unit_test(reason_text_has_words_for_every_reason),
        cmocka_unit_test(start_is_hopeless_table),
        cmocka_unit_test(dead_disk_is_of_an_ended_guest),
        cmocka_unit_test(collector_keeps_disks_that_are_restored_from),
        cmocka_unit_test(collector_knows_dead_checkpoints),
        cmocka_unit_test(blob_guard_keeps_what_was_touched),
        cmocka_unit_test(blob_guard_pin_keeps_until_the_last_unpin),
        cmocka_unit_test(blob_guard_touch_of_too_many_fails_for_that_user_alone),
        cmocka_unit_test(digest_hex_and_back),
        cmocka_unit_test(output_file_of_another_kind_is_refused),
        cmocka_unit_test(every_option_is_in_the_manual),
        cmocka_unit_test(example_config_is_good_and_shows_defaults),
        cmocka_unit_test(config_values_that_cannot_be_used_are_refused),
        cmocka_unit_test(grace_beyond_what_jobs_may_ask_for_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
