/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/host_cpus.h"
#include "nodeagent/node_config.h"
#include "storage/storage_config.h"
#include "tests/lib/assert.h"
#include "tests/lib/certificates.h"
#include "tests/lib/tempdir.h"

#define SCHEDULER "[scheduler]\naddress=berthd\n"
#define STORAGE   "[storage]\nkind=dir\npath=/srv/berth\n"

static BerthNodeConfig *load(const char *dir, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(dir, "berth-node.conf", NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return berth_node_config_load(path, error);
}

static char *source_path(const char *name)
{
    const char *top = g_getenv("top_srcdir");
    return g_build_filename(top == NULL ? "." : top, name, NULL);
}

static void node_config_load_least_has_defaults(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthNodeConfig) config = load(*state, SCHEDULER STORAGE, &error);
    assert_no_error(error);
    assert_string_equal(config->name, g_get_host_name());
    assert_int_equal(config->scheduler_port, 7440);
    assert_string_equal(config->libvirt_uri, "qemu:///system");
    assert_true(g_str_has_prefix(config->console_dir, config->run_dir));
    assert_int_equal(config->reserve_mib, 1024);
    assert_int_equal(config->probe_deadline_sec, 10);
    assert_int_equal(config->disk_cache, BERTH_DISK_CACHE_WRITEBACK);
    assert_false(config->allow_emulation);
    assert_false(config->allow_exec);
    assert_null(config->cpu_model);
    assert_null(config->partition);
    assert_string_equal(config->storage.kind, "dir");
}

static void node_config_load_full_is_read(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthNodeConfig) config =
        load(*state,
             "[node]\nname=n1\nlabels=a;b\nrun_dir=/run/x\nconsole_dir=/var/c\nlog_level=debug\n"
             "allow_exec=true\n"
             "[scheduler]\naddress=10.0.0.1\nport=1\n"
             "[libvirt]\nuri=test:///default\npartition=/berth\n"
             "[guests]\nvcpus=8\nmemory=16G\nmemory_reserve=2G\nkernel=/k\ninitramfs=/i\n"
             "extra_cmdline=a b\ncpu_model=Nehalem\ndisk_cache=none\nallow_emulation=true\n"
             "probe_deadline=1m\n" STORAGE,
             &error);
    assert_no_error(error);
    assert_string_equal(config->name, "n1");
    assert_int_equal(g_strv_length(config->labels), 2);
    assert_string_equal(config->console_dir, "/var/c");
    assert_string_equal(config->partition, "/berth");
    assert_int_equal(config->vcpus, 8);
    assert_int_equal(config->memory_mib, 16384);
    assert_string_equal(config->extra_cmdline, "a b");
    assert_int_equal(config->disk_cache, BERTH_DISK_CACHE_NONE);
    assert_true(config->allow_emulation);
    assert_true(config->allow_exec);
    assert_int_equal(config->probe_deadline_sec, 60);
}

static void node_config_load_bad_files_are_refused(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {STORAGE, "address"},
        {SCHEDULER, "kind"},
        {SCHEDULER STORAGE "[guests]\nvcpu=1\n", "vcpu"},
        {SCHEDULER STORAGE "[guests]\nvcpus=many\n", "vcpus"},
        {SCHEDULER STORAGE "[guests]\nhost_cpus=first\n", "host_cpus: \"first\" is no list"},
        {SCHEDULER STORAGE "[guests]\nhost_cpus=\n", "host_cpus: \"\" is no list"},
        {SCHEDULER STORAGE "[guests]\nkernel=relative\n", "kernel"},
        {SCHEDULER STORAGE "[guests]\ndisk_cache=unsafe\n", "writeback"},
        {SCHEDULER STORAGE "[guests]\nprobe_deadline=0s\n", "probe_deadline"},
        {SCHEDULER STORAGE "[guests]\nallow_emulation=perhaps\n", "allow_emulation"},
        {SCHEDULER STORAGE "[node]\nname=-x\n", "name"},
        {SCHEDULER STORAGE "[node]\nname=a/b\n", "name"},
        {SCHEDULER STORAGE "[node]\nrun_dir=/0123456789/0123456789/0123456789/0123456789/"
                           "0123456789/0123456789\n",
         "60 bytes"},
        {SCHEDULER STORAGE "[libvirt]\npartition=berth\n", "partition"},
        {SCHEDULER STORAGE "[libvirt]\nreached_at=qemu+ssh://n1/system\n", "reached_at"},
        {SCHEDULER STORAGE "[libvirt]\nstream_at=n1\n", "stream_at"},
        {SCHEDULER STORAGE "[scheduler2]\n", "scheduler2"},
        {SCHEDULER "port=0\n" STORAGE, "port"},
        {SCHEDULER "[storage]\nkind=rbd\n", "secret_uuid"},
        {SCHEDULER "[storage]\nkind=dir\n", "path"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(load(*state, cases[i].text, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].message);
    }
}

static gboolean warns_of(GPtrArray *warnings, const char *option, const char *what)
{
    for (guint i = 0; i < warnings->len; i++) {
        const char *text = g_ptr_array_index(warnings, i);
        if (strstr(text, option) != NULL && strstr(text, what) != NULL)
            return TRUE;
    }
    return FALSE;
}

/* The first CPU of this host that runs, whatever this process may run on. */
static guint first_cpu(guint *out_n)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *online = berth_host_cpus_online(&error);
    assert_no_error(error);
    *out_n = berth_host_cpus_count(online);
    return (guint)g_ascii_strtoull(online, NULL, 10);
}

/* Guests have the others, and are offered no more of them without a word. One that is not there is done without. */
static void node_config_take_cpus_leaves_the_others(void **state)
{
    g_autoptr(GError) error = NULL;
    guint n, cpu = first_cpu(&n);
    g_autofree char *first = g_strdup_printf("%u", cpu);
    g_autofree char *text =
        g_strdup_printf(SCHEDULER STORAGE "[guests]\nvcpus=%u\nhost_cpus=%u, 65000\n", n, cpu);
    g_autoptr(BerthNodeConfig) config = load(*state, text, &error);
    assert_no_error(error);
    assert_null(config->guest_cpus);
    g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
    g_autofree char *offline = NULL;
    if (n == 1) {
        assert_true(warns_of(warnings, "[guests] host_cpus", "none is left for guests"));
        assert_false(berth_node_config_take_cpus(config, &offline, &error));
        assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "none is left for guests");
        return;
    }
    assert_true(warns_of(warnings, "[guests] host_cpus", "not online on this host: 65000"));
    assert_true(warns_of(warnings, "[guests] vcpus", "host_cpus leaves"));
    assert_true(berth_node_config_take_cpus(config, &offline, &error));
    assert_no_error(error);
    assert_string_equal(offline, "65000");
    assert_string_equal(config->host_cpus, first);
    assert_int_equal(berth_host_cpus_count(config->guest_cpus), n - 1);
}

/* So that a file can be looked at elsewhere, and a start be tried again. */
static void node_config_of_another_host_is_read(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *offline = NULL;
    g_autoptr(BerthNodeConfig) config =
        load(*state, SCHEDULER STORAGE "[guests]\nhost_cpus=65000\n", &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
    assert_true(warns_of(warnings, "[guests] host_cpus", "none is online"));
    assert_false(berth_node_config_take_cpus(config, &offline, &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "[guests] host_cpus: of CPUs 65000");
    assert_string_equal(config->host_cpus, "65000");
}

static void node_config_without_host_cpus_leaves_all(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *offline = NULL;
    g_autoptr(BerthNodeConfig) config = load(*state, SCHEDULER STORAGE, &error);
    assert_true(berth_node_config_take_cpus(config, &offline, &error));
    assert_no_error(error);
    assert_null(offline);
    assert_null(config->host_cpus);
    assert_null(config->guest_cpus);
}

static void node_config_load_missing_file_is_named(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(berth_node_config_load("/nonexistent/berth-node.conf", &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "/nonexistent/berth-node.conf");
}

static void node_config_example_loads(void **state)
{
    g_autofree char *path = source_path("nodeagent/berth-node.conf.example");
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthNodeConfig) config = berth_node_config_load(path, &error);
    assert_no_error(error);
    assert_string_equal(config->storage.kind, "rbd");
}

static void node_config_every_key_is_in_the_manual(void **state)
{
    g_autofree char *path = source_path("doc/berth-node.conf.5");
    g_autoptr(GError) error = NULL;
    gsize n;
    const BerthConfigOption *options = berth_node_config_options(&n);
    berth_config_check_manual(path, options, n, &error);
    assert_no_error(error);
    berth_config_check_manual(path, berth_storage_config_options, berth_storage_config_n_options,
                              &error);
    assert_no_error(error);
}

static void node_config_warnings_absent_files_are_named(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthNodeConfig) config =
        load(*state,
             SCHEDULER "certificate=/absent/node.crt\nkey=/absent/node.key\nca=/absent/ca.crt\n"
                       "[guests]\nkernel=/absent/vmlinux\ninitramfs=/etc\n"
                       "[storage]\nkind=dir\npath=/absent/storage\n",
             &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
    assert_true(warns_of(warnings, "[scheduler] certificate", "/absent/node.crt"));
    assert_true(warns_of(warnings, "[scheduler] key", "/absent/node.key"));
    assert_true(warns_of(warnings, "[scheduler] ca", "/absent/ca.crt"));
    assert_true(warns_of(warnings, "[guests] kernel", "no file /absent/vmlinux"));
    assert_true(warns_of(warnings, "[guests] initramfs", "/etc is not a file"));
    assert_true(warns_of(warnings, "[storage] path", "no directory /absent/storage"));
    assert_int_equal(warnings->len, 6);
}

static void node_config_warnings_files_that_are_no_certificates_are_named(void **state)
{
    const char *dir = *state;
    g_autofree char *file = g_build_filename(dir, "file", NULL);
    assert_true(g_file_set_contents(file, "not PEM", -1, NULL));
    g_autofree char *kernel = g_build_filename(dir, "vmlinux", NULL);
    assert_true(g_file_set_contents(kernel, "\177ELF", 4, NULL));
    g_autofree char *text = g_strdup_printf(
        SCHEDULER "certificate=%s\nkey=%s\nca=%s\n[guests]\nkernel=%s\ninitramfs=%s\n"
                  "[storage]\nkind=dir\npath=%s\n",
        file, file, file, kernel, file, dir);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthNodeConfig) config = load(dir, text, &error);
    assert_no_error(error);
    g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
    assert_int_equal(warnings->len, 1);
    assert_true(warns_of(warnings, "[scheduler]", "PEM"));
}

static void node_config_warnings_certificate_of_another_and_no_kernel_are_named(void **state)
{
    const char *dir = *state;
    g_autofree char *ca_key = g_build_filename(dir, "ca.key", NULL);
    g_autofree char *ca = g_build_filename(dir, "ca.crt", NULL);
    g_autofree char *key = g_build_filename(dir, "node.key", NULL);
    g_autofree char *certificate = g_build_filename(dir, "node.crt", NULL);
    g_autofree char *elf = g_build_filename(dir, "vmlinux", NULL);
    certificate_make_root("ca", ca_key, ca);
    certificate_make("node1", ca_key, ca, key, certificate);
    assert_true(g_file_set_contents(elf, "\177ELF", 4, NULL));
    static const char *const format =
        "[node]\nname=%s\n" SCHEDULER
        "certificate=%s\nkey=%s\nca=%s\n[guests]\nkernel=%s\ninitramfs=%s\n"
        "[storage]\nkind=dir\npath=%s\n";
    const struct {
        const char *name, *key, *kernel, *option, *what;
    } cases[] = {
        {"node1", key, elf, NULL, NULL},
        {"other", key, elf, "[scheduler] certificate", "for \"node1\", not for \"other\""},
        {"node1", ca_key, elf, "[scheduler]", certificate},
        {"node1", key, certificate, "[guests] kernel", "is no kernel"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(format, cases[i].name, certificate, cases[i].key,
                                                ca, cases[i].kernel, elf, dir);
        g_autoptr(GError) error = NULL;
        g_autoptr(BerthNodeConfig) config = load(dir, text, &error);
        assert_no_error(error);
        g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
        assert_int_equal(warnings->len, cases[i].option == NULL ? 0 : 1);
        if (cases[i].option != NULL)
            assert_true(warns_of(warnings, cases[i].option, cases[i].what));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(node_config_load_least_has_defaults),
        TEST(node_config_load_full_is_read),
        TEST(node_config_load_bad_files_are_refused),
        TEST(node_config_take_cpus_leaves_the_others),
        TEST(node_config_of_another_host_is_read),
        TEST(node_config_without_host_cpus_leaves_all),
        TEST(node_config_load_missing_file_is_named),
        TEST(node_config_example_loads),
        TEST(node_config_every_key_is_in_the_manual),
        TEST(node_config_warnings_absent_files_are_named),
        TEST(node_config_warnings_files_that_are_no_certificates_are_named),
        TEST(node_config_warnings_certificate_of_another_and_no_kernel_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
