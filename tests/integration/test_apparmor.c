/* SPDX-License-Identifier: Apache-2.0 */
/* libvirt's helper for AppArmor, which makes a guest's profile or refuses to, and a domain with the
 * paths that a node without configuration of its own has. The helper needs no AppArmor for that. */
#include <config.h>

#include <gio/gio.h>

#include "nodeagent/hypervisor/hypervisor.h"
#include "nodeagent/node_config.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#define HELPER "/usr/lib/libvirt/virt-aa-helper"
#define UUID   "2f9e3c52-5b3f-4b7e-9d0d-0c9d1f8e7a11"

static BerthNodeConfig *least_config(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "berth-node.conf", NULL);
    g_autoptr(GError) error = NULL;
    assert_true(g_file_set_contents(
        path, "[scheduler]\naddress=berthd\n[storage]\nkind=dir\npath=/srv/berth\n", -1, NULL));
    BerthNodeConfig *config = berth_node_config_load(path, &error);
    assert_no_error(error);
    return config;
}

static char *make_xml(const BerthNodeConfig *node, const char *kernel)
{
    g_autofree char *channel = g_build_filename(node->run_dir, "berth-1-0-0-1.sock", NULL);
    g_autofree char *console = g_build_filename(node->console_dir, "berth-1-0-0-1", NULL);
    BerthDiskSource disk = {.file_path = (char *)"/srv/berth/disks/disk-1-0-0-1/disk.qcow2",
                            .file_format = (char *)"qcow2"};
    const BerthDomainConfig config = {
        .name = "berth-1-0-0-1",
        .vcpus = 1,
        .memory_mib = 128,
        .machine = "pc-q35-7.2",
        .cpu_model = "maximum",
        .kernel = kernel,
        .initramfs = node->initramfs,
        .cmdline = "console=ttyS0",
        .channel_path = channel,
        .console_path = console,
        .disk = &disk,
    };
    g_autofree char *xml = berth_domain_xml(&config);
    const char *name = strstr(xml, "<name>");
    assert_non_null(name);
    return g_strdup_printf("%.*s<uuid>" UUID "</uuid>%s", (int)(name - xml), xml, name);
}

/* Does the helper make a profile? OUT_SAID: what it wrote. */
static gboolean make_profile(const char *xml, char **out_said)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) helper =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                             G_SUBPROCESS_FLAGS_STDERR_MERGE,
                         &error, HELPER, "--create", "--dryrun", "--uuid", "libvirt-" UUID, NULL);
    assert_no_error(error);
    g_subprocess_communicate_utf8(helper, xml, NULL, out_said, NULL, &error);
    assert_no_error(error);
    return g_subprocess_get_if_exited(helper) && g_subprocess_get_exit_status(helper) == 0;
}

static void guest_of_a_node_without_configuration_gets_a_profile(void **state)
{
    g_autoptr(BerthNodeConfig) config = least_config(*state);
    g_autofree char *xml = make_xml(config, config->kernel);
    g_autofree char *said = NULL;
    if (!make_profile(xml, &said))
        fail_msg("AppArmor lets no guest start: %s", said);
    const char *const files[] = {config->kernel, config->initramfs};
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *rule = g_strdup_printf("\"%s\" r,", files[i]);
        if (strstr(said, rule) == NULL)
            fail_msg("no %s in: %s", rule, said);
    }
}

/* What berth-node.conf(5) warns of. */
static void guest_with_its_kernel_among_libraries_gets_none(void **state)
{
    g_autoptr(BerthNodeConfig) config = least_config(*state);
    g_autofree char *xml = make_xml(config, "/usr/lib/berth/vmlinux");
    g_autofree char *said = NULL;
    assert_false(make_profile(xml, &said));
    assert_non_null(strstr(said, "/usr/lib/berth/vmlinux"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(guest_of_a_node_without_configuration_gets_a_profile),
        TEST(guest_with_its_kernel_among_libraries_gets_none),
    };
    if (!g_file_test(HELPER, G_FILE_TEST_IS_EXECUTABLE)) {
        print_message("skipped: this host has no " HELPER "\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
