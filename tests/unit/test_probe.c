/* SPDX-License-Identifier: Apache-2.0 */
/* The probe's decision, its memory, and what it makes of a console. That guests really boot is
 * shown by tests/integration/test_nodeagent. */
#include "nodeagent/console.h"
#include "nodeagent/probe.h"
#include "tests/lib/assert.h"
#include "tests/lib/fake_hypervisor.h"
#include "tests/lib/tempdir.h"

static BerthHost host = {.qemu_version = (char *)"7.2.22", .machine = (char *)"pc-q35-7.2"};

static void probe_decide_follows_outcome_and_configuration(void **state)
{
    static const struct {
        gboolean works, allowed, expect_kvm;
        int code; /* 0 = no error */
    } cases[] = {
        {TRUE, FALSE, TRUE, 0},
        {TRUE, TRUE, TRUE, 0},
        {FALSE, TRUE, FALSE, 0},
        {FALSE, FALSE, FALSE, BERTH_ERROR_UNSUPPORTED},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthNodeConfig config = {.allow_emulation = cases[i].allowed,
                                  .run_dir = (char *)"/run/berth-node"};
        g_autoptr(GError) error = NULL;
        g_autoptr(BerthProbeResult) result =
            berth_probe_decide(cases[i].works, "the reason", &config, &error);
        if (cases[i].code != 0) {
            assert_null(result);
            assert_berth_error(error, cases[i].code, "the reason");
            assert_non_null(strstr(error->message, "allow_emulation=true"));
            assert_non_null(strstr(error->message, "/run/berth-node/probe"));
            continue;
        }
        assert_no_error(error);
        assert_int_equal(result->use_kvm, cases[i].expect_kvm);
        assert_string_equal(result->reason, "the reason");
    }
}

static void probe_blames_kvm_for_what_is_about_it(void **state)
{
    static const struct {
        const char *message;
        gboolean expected;
    } cases[] = {
        {"cannot start domain berth-probe: internal error: process exited while connecting to "
         "monitor: Could not access KVM kernel module: Permission denied",
         TRUE},
        {"cannot start domain berth-probe: internal error: qemu unexpectedly closed the monitor: "
         "ioctl(KVM_CREATE_VM) failed: 16 Device or resource busy",
         TRUE},
        {"cannot start domain berth-probe: unsupported configuration: CPU mode 'host-model' for "
         "x86_64 kvm domain on x86_64 host is not supported by hypervisor",
         TRUE},
        {"cannot start domain berth-probe: unable to create file "
         "/var/log/libvirt/qemu/berth-probe.log: No space left on device",
         FALSE},
        {"cannot start domain berth-probe: Cannot get interface MTU on 'br0': No such device",
         FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error =
            g_error_new_literal(BERTH_ERROR, BERTH_ERROR_INTERNAL, cases[i].message);
        if (berth_probe_blames_kvm(error) != cases[i].expected)
            fail_msg("case %zu: %s", i, cases[i].message);
    }
}

static void probe_cache_same_key_is_remembered(void **state)
{
    g_autofree char *path = g_build_filename(*state, "probe", NULL);
    gboolean works = TRUE;
    g_autofree char *reason = NULL;
    assert_false(berth_probe_cache_load(path, "k", &works, &reason));
    berth_probe_cache_save(path, "k", FALSE, "it hung\nand more = than that");
    assert_false(berth_probe_cache_load(path, "other", &works, &reason));
    assert_true(works);
    assert_null(reason);
    assert_true(berth_probe_cache_load(path, "k", &works, &reason));
    assert_false(works);
    assert_string_equal(reason, "it hung\nand more = than that");
}

static void probe_cache_garbage_is_ignored(void **state)
{
    static const char *const texts[] = {"", "garbage", "[probe]\nkey=k\n",
                                        "[probe]\nkey=k\nreason=r\nworks=perhaps\n"};
    g_autofree char *path = g_build_filename(*state, "probe", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        gboolean works;
        g_autofree char *reason = NULL;
        assert_true(g_file_set_contents(path, texts[i], -1, NULL));
        assert_false(berth_probe_cache_load(path, "k", &works, &reason));
    }
}

static void probe_key_changes_with_what_matters(void **state)
{
    g_autofree char *kernel = g_build_filename(*state, "vmlinux", NULL);
    g_autofree char *initramfs = g_build_filename(*state, "initramfs", NULL);
    assert_true(g_file_set_contents(kernel, "kernel", -1, NULL));
    assert_true(g_file_set_contents(initramfs, "initramfs", -1, NULL));
    const BerthNodeConfig config = {.kernel = kernel, .initramfs = initramfs};
    BerthNodeConfig other_cpu = config, other_partition = config;
    BerthHost newer = host;
    newer.qemu_version = (char *)"8.0.0";
    other_cpu.cpu_model = (char *)"Nehalem";
    other_partition.partition = (char *)"/Nehalem";
    g_autofree char *key = berth_probe_key("boot", &host, &config);
    g_autofree char *same = berth_probe_key("boot", &host, &config);
    g_autofree char *booted = berth_probe_key("boot2", &host, &config);
    g_autofree char *upgraded = berth_probe_key("boot", &newer, &config);
    g_autofree char *cpu = berth_probe_key("boot", &host, &other_cpu);
    g_autofree char *partition = berth_probe_key("boot", &host, &other_partition);
    assert_true(g_file_set_contents(kernel, "another kernel", -1, NULL));
    g_autofree char *replaced = berth_probe_key("boot", &host, &config);
    assert_string_equal(key, same);
    const char *const others[] = {booted, upgraded, cpu, partition, replaced};
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        assert_string_not_equal(key, others[i]);
}

/* --- a probe over libvirt as it may be ---------------------------------------------------------- */

typedef struct {
    BerthHypervisor *hypervisor;
    guint results, destroys_under_way;
    gboolean is_left; /* when the result came, a probe's guest was still there */
    gboolean use_kvm;
    char *reason;
} Run;

static void on_connected(gpointer data)
{
}

static void on_result(const BerthProbeResult *result, const GError *error, gpointer data)
{
    Run *run = data;
    run->results++;
    run->destroys_under_way = g_queue_get_length(&run->hypervisor->answers);
    run->is_left = g_hash_table_contains(run->hypervisor->domains, BERTH_PROBE_DOMAIN);
    run->use_kvm = result != NULL && result->use_kvm;
    run->reason = g_strdup(result != NULL ? result->reason : error->message);
}

static void run_probe(char *dir, Run *run, gboolean is_left, guint slow_create_msec)
{
    static const BerthHypervisorFuncs funcs = {.connected = on_connected};
    const BerthHost with_kvm = {
        .qemu_version = host.qemu_version, .machine = host.machine, .has_kvm = TRUE};
    const BerthNodeConfig config = {.run_dir = dir,
                                    .console_dir = dir,
                                    .kernel = (char *)"/dev/null",
                                    .initramfs = (char *)"/dev/null",
                                    .allow_emulation = TRUE,
                                    .probe_deadline_sec = 1};
    run->hypervisor = berth_hypervisor_new("fake:///", &funcs, NULL);
    run_until(berth_hypervisor_is_connected(run->hypervisor));
    run->hypervisor->slow_create_msec = slow_create_msec;
    if (is_left)
        fake_hypervisor_add_named(run->hypervisor, BERTH_PROBE_DOMAIN);
    g_autoptr(BerthProbe) probe =
        berth_probe_new(run->hypervisor, &config, &with_kvm, "", on_result, run);
    run_until(run->results > 0);
    berth_hypervisor_free(run->hypervisor);
}

/* The second finds what the first has found out, and a guest that another agent has left. */
static void probe_that_hangs_leaves_no_guest_whoever_made_it(void **state)
{
    for (guint i = 0; i < 2; i++) {
        Run run = {0};
        run_probe(*state, &run, i == 1, 0);
        assert_int_equal(run.results, 1);
        assert_false(run.use_kvm);
        assert_non_null(strstr(run.reason, "did not boot within 1 s"));
        assert_false(run.is_left);
        assert_int_equal(run.destroys_under_way, 0);
        g_free(run.reason);
    }
}

/* A host that is busy starts it late, and its own time begins then. */
static void probe_of_a_slow_host_has_its_whole_time_to_boot(void **state)
{
    Run run = {0};
    run_probe(*state, &run, FALSE, 1500);
    assert_non_null(strstr(run.reason, "did not boot within 1 s"));
    g_free(run.reason);
}

static void probe_that_is_never_started_says_nothing_of_kvm(void **state)
{
    Run run = {0};
    run_probe(*state, &run, FALSE, G_MAXUINT);
    assert_int_equal(run.results, 1);
    assert_non_null(strstr(run.reason, "cannot find out whether KVM works here"));
    assert_non_null(strstr(run.reason, "libvirt has not started a guest in time"));
    assert_false(run.is_left);
    g_free(run.reason);
}

/* --- its end ------------------------------------------------------------------------------------ */

static const BerthHost host_with_kvm = {
    .qemu_version = (char *)"7.2.0", .machine = (char *)"pc-q35-7.2", .has_kvm = TRUE};

/* A probe with all the time that it wants, whose first guest was asked for. */
static BerthProbe *begin_probe(char *dir, Run *run, BerthNodeConfig *config)
{
    static const BerthHypervisorFuncs funcs = {.connected = on_connected};
    *config = (BerthNodeConfig){.run_dir = dir,
                                .console_dir = dir,
                                .kernel = (char *)"/dev/null",
                                .initramfs = (char *)"/dev/null",
                                .allow_emulation = TRUE,
                                .probe_deadline_sec = 600};
    run->hypervisor = berth_hypervisor_new("fake:///", &funcs, NULL);
    run_until(berth_hypervisor_is_connected(run->hypervisor));
    BerthProbe *probe =
        berth_probe_new(run->hypervisor, config, &host_with_kvm, "", on_result, run);
    run_until(run->hypervisor->creates == 1);
    return probe;
}

static void end_probe(BerthProbe *probe, Run *run)
{
    berth_probe_free(probe);
    berth_hypervisor_free(run->hypervisor);
    g_free(run->reason);
}

static void answer(char *dir)
{
    g_autofree char *console = g_build_filename(dir, BERTH_PROBE_DOMAIN, NULL);
    assert_true(g_file_set_contents(console, BERTH_PROBE_ANSWER "\n", -1, NULL));
}

static void tell(BerthProbe *probe, const Run *run, BerthDomainEvent event)
{
    g_autofree char *uuid = g_strdup(run->hypervisor->created_uuid);
    berth_probe_domain_event(probe, uuid, event);
}

/* That of an earlier agent's probe, which was destroyed or ended by itself, comes late. */
static void probe_takes_the_end_of_another_for_nothing(void **state)
{
    Run run = {0};
    BerthNodeConfig config;
    BerthProbe *probe = begin_probe(*state, &run, &config);
    berth_probe_domain_event(probe, FAKE_UUID, BERTH_DOMAIN_ENDED);
    run_until(g_queue_is_empty(&run.hypervisor->answers)); /* it was made */
    berth_probe_domain_event(probe, FAKE_UUID, BERTH_DOMAIN_ENDED);
    tell(probe, &run, BERTH_DOMAIN_STOPPED);
    assert_int_equal(run.results, 0);
    answer(*state);
    tell(probe, &run, BERTH_DOMAIN_ENDED);
    assert_int_equal(run.results, 1);
    assert_true(run.use_kvm);
    tell(probe, &run, BERTH_DOMAIN_FAILED); /* of nothing that concerns it */
    assert_int_equal(run.results, 1);
    assert_int_equal(run.hypervisor->creates, 1);
    end_probe(probe, &run);
}

static void probe_whose_guest_ends_before_it_is_said_to_be_made_has_its_answer(void **state)
{
    Run run = {0};
    BerthNodeConfig config;
    BerthProbe *probe = begin_probe(*state, &run, &config);
    answer(*state);
    tell(probe, &run, BERTH_DOMAIN_ENDED);
    assert_int_equal(run.results, 0);
    run_until(run.results == 1);
    assert_true(run.use_kvm);
    end_probe(probe, &run);
}

static void probe_whose_guest_ends_without_an_answer_blames_kvm(void **state)
{
    Run run = {0};
    BerthNodeConfig config;
    BerthProbe *probe = begin_probe(*state, &run, &config);
    run_until(g_queue_is_empty(&run.hypervisor->answers));
    tell(probe, &run, BERTH_DOMAIN_FAILED);
    assert_int_equal(run.results, 1);
    assert_false(run.use_kvm);
    assert_non_null(strstr(run.reason, "ended without having come up"));
    end_probe(probe, &run);
}

static void console_tail_is_text_whatever_the_guest_wrote(void **state)
{
    static const char text[] = "first\r\nsecond\x1b[31m\0third\xff\n";
    g_autofree char *path = g_build_filename(*state, "console", NULL);
    g_autofree char *none = berth_console_tail(path);
    assert_string_equal(none, "");
    assert_false(berth_console_contains(path, "second"));
    assert_true(g_file_set_contents(path, text, sizeof text - 1, NULL));
    g_autofree char *tail = berth_console_tail(path);
    assert_string_equal(tail, "first\nsecond?[31mthird?\n");
    assert_true(berth_console_contains(path, "second"));
    assert_false(berth_console_contains(path, "fourth"));
}

static void console_long_is_cut_at_both_ends(void **state)
{
    g_autofree char *path = g_build_filename(*state, "console", NULL);
    g_autofree char *small = g_strnfill(BERTH_CONSOLE_TAIL_BYTES + 10, 'x');
    small[BERTH_CONSOLE_TAIL_BYTES + 9] = 'y';
    assert_true(g_file_set_contents(path, small, -1, NULL));
    g_autofree char *tail = berth_console_tail(path);
    assert_int_equal(strlen(tail), BERTH_CONSOLE_TAIL_BYTES);
    assert_int_equal(tail[BERTH_CONSOLE_TAIL_BYTES - 1], 'y');
    berth_console_bound(path);
    assert_true(berth_console_contains(path, "y"));

    g_autofree char *large = g_strnfill(BERTH_CONSOLE_MAX_BYTES + 1, 'x');
    assert_true(g_file_set_contents(path, large, -1, NULL));
    berth_console_bound(path);
    assert_false(berth_console_contains(path, "x"));
    assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    berth_console_remove(path);
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

static void console_remove_takes_what_virtlogd_made_of_it(void **state)
{
    static const char *const suffixes[] = {".0", ".1", ".2",
                                           ".3"}; /* and the newest is not there */
    g_autofree char *path = g_build_filename(*state, "console", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autofree char *older = g_strconcat(path, suffixes[i], NULL);
        assert_true(g_file_set_contents(older, "x", 1, NULL));
    }
    berth_console_remove(path);
    for (gsize i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autofree char *older = g_strconcat(path, suffixes[i], NULL);
        assert_false(g_file_test(older, G_FILE_TEST_EXISTS));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(probe_decide_follows_outcome_and_configuration),
        TEST(probe_blames_kvm_for_what_is_about_it),
        TEST(probe_cache_same_key_is_remembered),
        TEST(probe_cache_garbage_is_ignored),
        TEST(probe_key_changes_with_what_matters),
        TEST(probe_that_hangs_leaves_no_guest_whoever_made_it),
        TEST(probe_of_a_slow_host_has_its_whole_time_to_boot),
        TEST(probe_that_is_never_started_says_nothing_of_kvm),
        TEST(probe_takes_the_end_of_another_for_nothing),
        TEST(probe_whose_guest_ends_before_it_is_said_to_be_made_has_its_answer),
        TEST(probe_whose_guest_ends_without_an_answer_blames_kvm),
        TEST(console_tail_is_text_whatever_the_guest_wrote),
        TEST(console_long_is_cut_at_both_ends),
        TEST(console_remove_takes_what_virtlogd_made_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
