/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of a domain that goes to another host: what is that host's own is replaced, and nothing else. */
#include "common/error.h"
#include "nodeagent/hypervisor/hypervisor.h"
#include "tests/lib/assert.h"

#include <string.h>

static const BerthMigrationTarget target = {.libvirt_uri = (char *)"qemu+tls://n2/system",
                                            .stream_uri = (char *)"tcp://n2",
                                            .channel_path = (char *)"/run/n2/a&b.sock",
                                            .console_path = (char *)"/var/log/n2/console",
                                            .kernel = (char *)"/boot/n2/vmlinux",
                                            .initramfs = (char *)"/boot/n2/initramfs",
                                            .partition = (char *)"/berth-n2",
                                            .secret_uuid =
                                                (char *)"22222222-0000-0000-0000-000000000002"};

/* A domain with such a target's paths, or the first host's. */
static char *domain(const BerthMigrationTarget *host)
{
    static char *monitors[] = {(char *)"10.0.0.1:6789", NULL};
    static BerthDomainMetadata metadata = {.id = {.job = 7, .epoch = 3},
                                           .limits = {.vcpus = 1, .memory_mib = 64},
                                           .disk_id = (char *)"disk-7-0-0-3",
                                           .log_id = (char *)"log-7-0-0-3"};
    const BerthDiskSource disk = {.is_rbd = TRUE,
                                  .rbd_pool = (char *)"berth",
                                  .rbd_image = (char *)"disk-7-0-0-3",
                                  .rbd_monitors = monitors,
                                  .rbd_user = (char *)"berth",
                                  .rbd_secret_uuid = host->secret_uuid};
    const BerthDomainConfig config = {.name = "berth-7-0-0-3",
                                      .metadata = &metadata,
                                      .vcpus = 1,
                                      .memory_mib = 64,
                                      .machine = "pc-q35-7.2",
                                      .cpu_model = "maximum",
                                      .kernel = host->kernel,
                                      .initramfs = host->initramfs,
                                      .cmdline = "quiet",
                                      .disk = &disk,
                                      .channel_path = host->channel_path,
                                      .console_path = host->console_path,
                                      .partition = host->partition};
    return berth_domain_xml(&config);
}

static const BerthMigrationTarget first = {.channel_path = (char *)"/run/n1.sock",
                                           .console_path = (char *)"/var/log/n1",
                                           .kernel = (char *)"/boot/n1/vmlinux",
                                           .initramfs = (char *)"/boot/n1/initramfs",
                                           .partition = (char *)"/berth-n1",
                                           .secret_uuid =
                                               (char *)"11111111-0000-0000-0000-000000000001"};

/* TEXT without what only says how it is set out. */
static char *words(const char *text)
{
    g_autoptr(GString) out = g_string_new(NULL);
    for (const char *c = text; *c; c++)
        if (!g_ascii_isspace(*c))
            g_string_append_c(out, *c);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* Moved there and back it is what it was. */
static void xml_for_a_host_has_what_is_that_hosts_own(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *before = domain(&first);
    g_autofree char *there = berth_domain_xml_for(before, strlen(before), &target, &error);
    assert_no_error(error);
    const char *const gone[] = {"/run/n1", "/var/log/n1", "/boot/n1", "/berth-n1", "11111111"};
    for (gsize i = 0; i < G_N_ELEMENTS(gone); i++)
        assert_null(strstr(there, gone[i]));
    const char *const come[] = {
        "path=\"/run/n2/a&amp;b.sock\"",     "\"/var/log/n2/console\"",
        "<kernel>/boot/n2/vmlinux</kernel>", "<initrd>/boot/n2/initramfs</initrd>",
        "<partition>/berth-n2</partition>",  "22222222"};
    for (gsize i = 0; i < G_N_ELEMENTS(come); i++)
        assert_non_null(strstr(there, come[i]));
    g_autoptr(BerthDomain) found = berth_domain_parse(there, strlen(there), &error);
    assert_no_error(error);
    assert_string_equal(found->channel_path, "/run/n2/a&b.sock");
    assert_string_equal(found->metadata.disk_id, "disk-7-0-0-3");
    g_autofree char *back = berth_domain_xml_for(there, strlen(there), &first, &error);
    assert_no_error(error);
    const char *partition = "<resource><partition>/berth-n1</partition></resource>";
    g_autofree char *words_before = words(before);
    g_autofree char *words_back = words(back);
    assert_int_equal(strlen(words_back), strlen(words_before));
    assert_non_null(strstr(words_before, partition));
    assert_non_null(strstr(words_back, partition)); /* at another place */
}

static void xml_for_a_host_without_a_partition_asks_for_none(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *before = domain(&first);
    BerthMigrationTarget plain = target;
    plain.partition = plain.secret_uuid = NULL;
    g_autofree char *there = berth_domain_xml_for(before, strlen(before), &plain, &error);
    assert_no_error(error);
    assert_null(strstr(there, "<resource>"));
    assert_non_null(strstr(there, "11111111"));
}

/* Of the host that it leaves, which may have more of them. */
static void xml_for_a_host_runs_on_cpus_of_that_host(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *before = domain(&first);
    BerthMigrationTarget keeps = target;
    keeps.guest_cpus = (char *)"2-7";
    keeps.host_cpus = (char *)"0-1";
    g_autoptr(BerthMigrationTarget) copy = berth_migration_target_copy(&keeps);
    g_autofree char *there = berth_domain_xml_for(before, strlen(before), copy, &error);
    assert_no_error(error);
    assert_non_null(strstr(there, " cpuset=\"2-7\">1</vcpu>"));
    assert_non_null(strstr(there, "<emulatorpin cpuset=\"0-1\"/>"));
    assert_non_null(strstr(there, "<iothreadpin iothread=\"1\" cpuset=\"0-1\"/>"));
    keeps.guest_cpus = (char *)"1-3";
    keeps.host_cpus = (char *)"0";
    g_autofree char *next = berth_domain_xml_for(there, strlen(there), &keeps, &error);
    assert_no_error(error);
    assert_non_null(strstr(next, " cpuset=\"1-3\">1</vcpu>"));
    assert_non_null(strstr(next, "<emulatorpin cpuset=\"0\"/>"));
    assert_null(strstr(next, "\"0-1\""));
    g_autofree char *back = berth_domain_xml_for(next, strlen(next), &first, &error);
    assert_no_error(error);
    assert_null(strstr(back, "cpuset"));
    assert_null(strstr(back, "pin"));
}

/* The other half of its threads would run anywhere there. */
static void xml_for_a_host_that_names_half_of_its_cpus_is_refused(void **state)
{
    g_autofree char *before = domain(&first);
    BerthMigrationTarget halves[] = {target, target};
    halves[0].guest_cpus = (char *)"2-7";
    halves[1].host_cpus = (char *)"0-1";
    for (gsize i = 0; i < G_N_ELEMENTS(halves); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_domain_xml_for(before, strlen(before), &halves[i], &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "alone");
    }
}

static guint64 shares_of(const char *xml)
{
    static const char tag[] = "<shares>";
    const char *at = strstr(xml, tag);
    assert_non_null(at);
    return g_ascii_strtoull(at + strlen(tag), NULL, 10);
}

/* With a weight of its own until its memory has come, if somebody there sets it then. */
static void xml_for_slack_has_its_cpu_weight(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *before = domain(&first);
    BerthMigrationTarget slack = target;
    slack.is_opportunistic = TRUE;
    g_autofree char *there = berth_domain_xml_for(before, strlen(before), &slack, &error);
    assert_no_error(error);
    g_autoptr(BerthDomain) found = berth_domain_parse(there, strlen(there), &error);
    assert_no_error(error);
    assert_true(found->metadata.is_opportunistic);
    g_autofree char *back = berth_domain_xml_for(there, strlen(there), &first, &error);
    assert_no_error(error);
    assert_in_range(shares_of(there), 1, shares_of(before) / 10);
    assert_int_equal(shares_of(back), shares_of(before));
    assert_null(strstr(back, "opportunistic"));
    slack.sets_weight = TRUE;
    g_autoptr(BerthMigrationTarget) copy = berth_migration_target_copy(&slack);
    g_autofree char *coming = berth_domain_xml_for(before, strlen(before), copy, &error);
    assert_no_error(error);
    assert_int_equal(shares_of(coming), shares_of(before)); /* it has one vCPU */
}

static void xml_of_something_else_is_refused(void **state)
{
    static const char *const texts[] = {"", "<domain", "<domain/>",
                                        "<domain><os><kernel>/v</kernel></os></domain>"};
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_domain_xml_for(texts[i], strlen(texts[i]), &target, &error));
        assert_int_equal(error->code, BERTH_ERROR_INVALID_ARGUMENT);
    }
}

static void uris_are_those_of_hosts_and_nothing_else(void **state)
{
    static const struct {
        const char *libvirt, *stream;
        gboolean ok;
    } cases[] = {
        {"qemu+tls://n2/system", "tcp://n2", TRUE},
        {"qemu+tls://n2.example.org:16514/system", "tcp://10.1.2.3:49152", TRUE},
        {"qemu+tls://[fd00::1]/system", "tcp://[fd00::1]", TRUE},
        {"qemu:///system", "tcp://n2", FALSE},
        {"qemu+tls:///system", "tcp://n2", FALSE},
        {"qemu+tcp://n2/system", "tcp://n2", FALSE},
        {"qemu+ssh://n2/system", "tcp://n2", FALSE},
        {"qemu+ext:///system?command=/bin/sh", "tcp://n2", FALSE},
        {"qemu+tls://n2/session", "tcp://n2", FALSE},
        {"qemu+tls://n2/system?pkipath=/tmp", "tcp://n2", FALSE},
        {"qemu+tls://n2/system?no_verify=1", "tcp://n2", FALSE},
        {"qemu+tls://me@n2/system", "tcp://n2", FALSE},
        {"qemu+tls://n2/system#x", "tcp://n2", FALSE},
        {"qemu+tls://n2%3B/system", "tcp://n2", FALSE},
        {"test:///default", "tcp://n2", FALSE},
        {"", "tcp://n2", FALSE},
        {"qemu+tls://n2/system", "", FALSE},
        {"qemu+tls://n2/system", "unix:///run/x", FALSE},
        {"qemu+tls://n2/system", "rdma://n2", FALSE},
        {"qemu+tls://n2/system", "tcp://n2/x", FALSE},
        {"qemu+tls://n2/system", "tcp://", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        gboolean ok = berth_migration_uris_check(cases[i].libvirt, cases[i].stream, &error);
        if (ok != cases[i].ok || (!ok && error->code != BERTH_ERROR_INVALID_ARGUMENT))
            fail_msg("%s, %s", cases[i].libvirt, cases[i].stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uris_are_those_of_hosts_and_nothing_else),
        cmocka_unit_test(xml_for_a_host_has_what_is_that_hosts_own),
        cmocka_unit_test(xml_for_a_host_runs_on_cpus_of_that_host),
        cmocka_unit_test(xml_for_a_host_that_names_half_of_its_cpus_is_refused),
        cmocka_unit_test(xml_for_a_host_without_a_partition_asks_for_none),
        cmocka_unit_test(xml_for_slack_has_its_cpu_weight),
        cmocka_unit_test(xml_of_something_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
