/* SPDX-License-Identifier: Apache-2.0 */
/* Golden files: what a config makes is compared with tests/golden/domain/NAME.xml. After a wanted
 * change run with REGENERATE=1 and review the difference. */
#include "nodeagent/hypervisor/hypervisor.h"
#include "tests/lib/assert.h"

#include <stdlib.h>

static char *golden_path(const char *name)
{
    const char *top = g_getenv("top_srcdir");
    return g_strdup_printf("%s/tests/golden/domain/%s.xml", top == NULL ? "." : top, name);
}

static void compare(const char *name, const BerthDomainConfig *config)
{
    g_autofree char *path = golden_path(name);
    g_autofree char *xml = berth_domain_xml(config);
    g_autofree char *expected = NULL;
    g_autoptr(GError) error = NULL;
    if (g_getenv("REGENERATE") != NULL)
        assert_true(g_file_set_contents(path, xml, -1, &error));
    if (!g_file_get_contents(path, &expected, NULL, &error))
        fail_msg("%s (REGENERATE=1 makes it)", error->message);
    assert_string_equal(xml, expected);
}

static BerthDomainMetadata metadata = {
    .id = {.job = 18446744073709551615u, .task = 7, .guest = 0, .epoch = 3},
    .limits = {.vcpus = 4, .memory_mib = 2048, .disk_mib = 1536},
    .disk_id = (char *)"disk-1-7-0-3",
    .log_id = (char *)"log-1-7-0-3",
};

static BerthDomainConfig base_config(void)
{
    return (BerthDomainConfig){
        .name = "berth-1-7-0-3",
        .metadata = &metadata,
        .vcpus = 4,
        .memory_mib = 2048,
        .use_kvm = TRUE,
        .machine = "pc-q35-7.2",
        .cpu_model = "Nehalem",
        .kernel = "/var/lib/berth-guest/vmlinux",
        .initramfs = "/var/lib/berth-guest/initramfs.cpio",
        .cmdline = "console=ttyS0 quiet",
        .channel_path = "/run/berth/node/berth-1-7-0-3.sock",
        .console_path = "/var/log/berth/console/berth-1-7-0-3",
        .stats_period_sec = 5,
    };
}

static void domain_xml_rbd_disk_matches_golden(void **state)
{
    char *monitors[] = {(char *)"10.0.0.1:6789", (char *)"[fd00::2]:6789", (char *)"mon3", NULL};
    BerthDiskSource disk = {.is_rbd = TRUE,
                            .rbd_pool = (char *)"berth",
                            .rbd_image = (char *)"disk-1-7-0-3",
                            .rbd_monitors = monitors,
                            .rbd_user = (char *)"berth",
                            .rbd_secret_uuid = (char *)"2f9e3c52-5b3f-4b7e-9d0d-0c9d1f8e7a11"};
    BerthDomainConfig config = base_config();
    config.disk = &disk;
    compare("rbd", &config);
}

static void domain_xml_file_disk_matches_golden(void **state)
{
    BerthDiskSource disk = {.file_path = (char *)"/srv/berth/disks/disk-1-7-0-3",
                            .file_format = (char *)"qcow2"};
    BerthDomainConfig config = base_config();
    config.disk = &disk;
    config.disk_cache = BERTH_DISK_CACHE_NONE;
    config.use_kvm = FALSE;
    config.cpu_model = "maximum";
    config.partition = "/berth";
    compare("file", &config);
}

static void domain_xml_ceiling_matches_golden(void **state)
{
    BerthDomainConfig config = base_config();
    config.vcpus = 1;
    config.vcpus_max = 4;
    config.memory_max_mib = 2048 + 5; /* a guest can use nothing of less than a whole region */
    config.is_opportunistic = TRUE;
    compare("ceiling", &config);
}

static void domain_xml_probe_has_no_identity_and_no_disk(void **state)
{
    BerthDomainConfig config = base_config();
    config.name = "berth-probe";
    config.uuid = "5f0f7d6c-3c55-4c0d-8a15-4cf5a3a0a000";
    config.metadata = NULL;
    config.vcpus = 1;
    config.memory_mib = 128;
    config.channel_path = NULL;
    config.stats_period_sec = 0;
    compare("probe", &config);
}

static void domain_xml_special_characters_are_escaped(void **state)
{
    BerthDomainConfig config = base_config();
    config.channel_path = "/run/a&b'\"<c>.sock";
    config.cmdline = "a=\"<&>\"";
    g_autofree char *xml = berth_domain_xml(&config);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomain) domain = berth_domain_parse(xml, strlen(xml), &error);
    assert_no_error(error);
    assert_string_equal(domain->channel_path, config.channel_path);
    assert_non_null(strstr(xml, "<cmdline>a=\"&lt;&amp;&gt;\"</cmdline>"));
}

static void domain_xml_cpu_query_is_shortened_where_its_answers_change_nothing(void **state)
{
    static const struct {
        const char *cpu_model;
        gboolean is_shortened;
    } cases[] = {
        {"maximum", TRUE},
        {"host-passthrough", TRUE},
        {"host-model", FALSE}, /* becomes a model with what QEMU could give of it */
        {"Nehalem", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthDomainConfig config = base_config();
        config.cpu_model = cases[i].cpu_model;
        g_autofree char *xml = berth_domain_xml(&config);
        assert_int_equal(strstr(xml, "cpu-unavailable-features") != NULL, cases[i].is_shortened);
    }
}

static void domain_xml_emulated_kernel_is_spared_what_is_dear_there(void **state)
{
    static const struct {
        gboolean use_kvm;
        guint vcpus;
        const char *cmdline;
    } cases[] = {
        {TRUE, 1, "<cmdline>console=ttyS0 quiet</cmdline>"},
        {FALSE, 1,
         "<cmdline>console=ttyS0 quiet noreplace-smp nolapic_timer clocksource=hpet</cmdline>"},
        {FALSE, 2, "<cmdline>console=ttyS0 quiet noreplace-smp clocksource=hpet</cmdline>"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthDomainConfig config = base_config();
        config.use_kvm = cases[i].use_kvm;
        config.vcpus = cases[i].vcpus;
        g_autofree char *xml = berth_domain_xml(&config);
        assert_non_null(strstr(xml, cases[i].cmdline));
    }
}

/* It has to be there for those that are told to read the time from it. */
static void domain_xml_hpet_is_for_emulated_guests(void **state)
{
    for (guint kvm = 0; kvm < 2; kvm++) {
        BerthDomainConfig config = base_config();
        config.use_kvm = kvm == 1;
        g_autofree char *xml = berth_domain_xml(&config);
        gboolean is_there = strstr(xml, "<timer name=\"hpet\" present=\"yes\"/>") != NULL;
        assert_int_equal(is_there, !config.use_kvm);
        assert_int_equal(strstr(xml, "clocksource=hpet") != NULL, !config.use_kvm);
    }
}

static void domain_xml_emulated_maximum_lacks_what_is_emulated_byte_by_byte(void **state)
{
    static const struct {
        gboolean use_kvm;
        const char *cpu_model;
        gboolean lacks_it;
    } cases[] = {
        {FALSE, "maximum", TRUE},
        {FALSE, "Nehalem", FALSE},
        {TRUE, "maximum", FALSE},
        {TRUE, "host-passthrough", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthDomainConfig config = base_config();
        config.use_kvm = cases[i].use_kvm;
        config.cpu_model = cases[i].cpu_model;
        g_autofree char *xml = berth_domain_xml(&config);
        const char *feature = strstr(xml, "<feature policy=\"disable\" name=\"erms\"/>");
        assert_int_equal(feature != NULL, cases[i].lacks_it);
    }
}

static void domain_xml_vcpus_run_where_nothing_is_kept_for_the_host(void **state)
{
    BerthDomainConfig config = base_config();
    g_autofree char *anywhere = berth_domain_xml(&config);
    assert_null(strstr(anywhere, "cpuset"));
    config.guest_cpus = "2-63";
    config.host_cpus = "0-1";
    g_autofree char *xml = berth_domain_xml(&config);
    assert_non_null(strstr(xml, " cpuset=\"2-63\""));
    assert_non_null(strstr(xml, "<emulatorpin cpuset=\"0-1\"/>"));
    assert_non_null(strstr(xml, "<iothreadpin iothread=\"1\" cpuset=\"0-1\"/>"));
}

static void domain_xml_many_vcpus_shares_are_bounded(void **state)
{
    BerthDomainConfig config = base_config();
    config.vcpus = 255;
    g_autofree char *xml = berth_domain_xml(&config);
    assert_non_null(strstr(xml, "<shares>10000</shares>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domain_xml_rbd_disk_matches_golden),
        cmocka_unit_test(domain_xml_file_disk_matches_golden),
        cmocka_unit_test(domain_xml_ceiling_matches_golden),
        cmocka_unit_test(domain_xml_probe_has_no_identity_and_no_disk),
        cmocka_unit_test(domain_xml_special_characters_are_escaped),
        cmocka_unit_test(domain_xml_cpu_query_is_shortened_where_its_answers_change_nothing),
        cmocka_unit_test(domain_xml_hpet_is_for_emulated_guests),
        cmocka_unit_test(domain_xml_emulated_kernel_is_spared_what_is_dear_there),
        cmocka_unit_test(domain_xml_emulated_maximum_lacks_what_is_emulated_byte_by_byte),
        cmocka_unit_test(domain_xml_many_vcpus_shares_are_bounded),
        cmocka_unit_test(domain_xml_vcpus_run_where_nothing_is_kept_for_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
