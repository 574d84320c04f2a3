/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/hypervisor/hypervisor.h"
#include "tests/lib/assert.h"

#define GUEST(attributes)                                                                          \
    "<domain type='kvm'><name>n</name><metadata><b:guest xmlns:b='urn:berth:guest:1' " attributes  \
    "/></metadata></domain>"

static BerthDomain *parse(const char *xml, GError **error)
{
    return berth_domain_parse(xml, strlen(xml), error);
}

static void domain_parse_what_was_built_is_read_back(void **state)
{
    BerthDomainMetadata metadata = {
        .id = {.job = 18446744073709551615u, .task = 4294967295u, .guest = 2, .epoch = 9},
        .limits = {.vcpus = 8, .memory_mib = 65536, .disk_mib = 10240},
        .disk_id = (char *)"disk-a.b_c",
        .log_id = (char *)"log-1",
    };
    BerthDiskSource disk = {.file_path = (char *)"/d", .file_format = (char *)"qcow2"};
    BerthDomainConfig config = {.name = "berth-x",
                                .metadata = &metadata,
                                .vcpus = 8,
                                .memory_mib = 65536,
                                .machine = "pc-q35-7.2",
                                .cpu_model = "maximum",
                                .kernel = "/k",
                                .initramfs = "/i",
                                .cmdline = "c",
                                .disk = &disk,
                                .channel_path = "/run/c.sock",
                                .console_path = "/log/c"};
    g_autofree char *xml = berth_domain_xml(&config);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomain) domain = parse(xml, &error);
    assert_no_error(error);
    assert_string_equal(domain->name, "berth-x");
    assert_true(domain->metadata.id.job == metadata.id.job);
    assert_int_equal(domain->metadata.id.task, metadata.id.task);
    assert_int_equal(domain->metadata.id.guest, 2);
    assert_int_equal(domain->metadata.id.epoch, 9);
    assert_int_equal(domain->metadata.limits.vcpus, 8);
    assert_int_equal(domain->metadata.limits.memory_mib, 65536);
    assert_int_equal(domain->metadata.limits.disk_mib, 10240);
    assert_string_equal(domain->metadata.disk_id, "disk-a.b_c");
    assert_string_equal(domain->metadata.log_id, "log-1");
    assert_string_equal(domain->channel_path, "/run/c.sock");
    assert_string_equal(domain->console_path, "/log/c");
}

#define REST " vcpus='1' memory-mib='1' disk-mib='1' disk='d' log='l'"

static void domain_parse_bad_documents_are_refused(void **state)
{
    static const struct {
        const char *xml;
        int code;
        const char *text;
    } cases[] = {
        {"", BERTH_ERROR_INVALID_ARGUMENT, "cannot read"},
        {"<domain>", BERTH_ERROR_INVALID_ARGUMENT, "cannot read"},
        {"\x01\xff", BERTH_ERROR_INVALID_ARGUMENT, "cannot read"},
        {"<domain/>", BERTH_ERROR_NOT_FOUND, "none of Berth's"},
        {"<x><metadata/></x>", BERTH_ERROR_NOT_FOUND, "none of Berth's"},
        {"<domain><metadata><guest job='1'/></metadata></domain>", BERTH_ERROR_NOT_FOUND, "none"},
        {"<domain><metadata><b:guest xmlns:b='urn:other' job='1'/></metadata></domain>",
         BERTH_ERROR_NOT_FOUND, "none of Berth's"},
        {GUEST("task='0' guest='0' epoch='1'" REST), BERTH_ERROR_INVALID_ARGUMENT, "attribute job"},
        {GUEST("job='0' task='0' guest='0' epoch='1'" REST), BERTH_ERROR_INVALID_ARGUMENT, "job"},
        {GUEST("job='-1' task='0' guest='0' epoch='1'" REST), BERTH_ERROR_INVALID_ARGUMENT, "job"},
        {GUEST("job='18446744073709551616' task='0' guest='0' epoch='1'" REST),
         BERTH_ERROR_INVALID_ARGUMENT, "job"},
        {GUEST("job='1' task='4294967296' guest='0' epoch='1'" REST), BERTH_ERROR_INVALID_ARGUMENT,
         "task"},
        {GUEST("job='1' task='0' guest='0' epoch='0'" REST), BERTH_ERROR_INVALID_ARGUMENT, "epoch"},
        {GUEST("job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='1' disk-mib='1' "
               "disk='../../etc/passwd' log='l'"),
         BERTH_ERROR_INVALID_ARGUMENT, "disk"},
        {GUEST("job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='1' disk-mib='1' "
               "disk='d' log='.hidden'"),
         BERTH_ERROR_INVALID_ARGUMENT, "log"},
        {GUEST("job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='1' disk-mib='1' "
               "disk='' log='l'"),
         BERTH_ERROR_INVALID_ARGUMENT, "disk"},
        {"<!DOCTYPE d [<!ENTITY a 'x'>]><domain><name>&a;</name></domain>",
         BERTH_ERROR_INVALID_ARGUMENT, "document type"},
        {"<!DOCTYPE d SYSTEM 'file:///etc/passwd'><domain/>", BERTH_ERROR_INVALID_ARGUMENT,
         "document type"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(parse(cases[i].xml, &error));
        assert_berth_error(error, cases[i].code, cases[i].text);
    }
}

static void domain_parse_foreign_elements_are_ignored(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomain) domain =
        parse("<domain><metadata><o:x xmlns:o='urn:o'><guest job='9'/></o:x>"
              "<b:guest xmlns:b='urn:berth:guest:1' new='1' job='1' task='0' guest='0' "
              "epoch='1'" REST "><b:more/></b:guest></metadata>"
              "<devices><channel type='unix'><source path='relative'/><target "
              "name='org.berth.channel.0'/></channel><serial type='pty'><source "
              "path='/dev/pts/1'/></serial></devices></domain>",
              &error);
    assert_no_error(error);
    assert_string_equal(domain->name, "");
    assert_null(domain->channel_path);
    assert_null(domain->console_path);
}

static void domain_parse_too_large_is_refused(void **state)
{
    gsize length = BERTH_DOMAIN_XML_MAX + 1;
    g_autofree char *xml = g_malloc(length);
    memset(xml, ' ', length);
    g_autoptr(GError) error = NULL;
    assert_null(berth_domain_parse(xml, length, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "more than");
}

static void domain_parse_expanding_entities_are_refused(void **state)
{
    GString *xml = g_string_new("<!DOCTYPE d [<!ENTITY a0 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'>");
    for (int i = 1; i < 16; i++)
        g_string_append_printf(xml, "<!ENTITY a%d '&a%d;&a%d;&a%d;&a%d;'>", i, i - 1, i - 1, i - 1,
                               i - 1);
    g_string_append(xml, "]><domain><name x='&a15;'>&a15;</name></domain>");
    g_autoptr(GError) error = NULL;
    assert_null(berth_domain_parse(xml->str, xml->len, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "cannot read");
    g_string_free(xml, TRUE);
}

static void domain_parse_deep_nesting_is_refused(void **state)
{
    GString *xml = g_string_new("<domain>");
    for (int i = 0; i < 100000; i++)
        g_string_append(xml, "<a>");
    g_autoptr(GError) error = NULL;
    assert_null(berth_domain_parse(xml->str, xml->len, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "cannot read");
    g_string_free(xml, TRUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domain_parse_what_was_built_is_read_back),
        cmocka_unit_test(domain_parse_bad_documents_are_refused),
        cmocka_unit_test(domain_parse_foreign_elements_are_ignored),
        cmocka_unit_test(domain_parse_too_large_is_refused),
        cmocka_unit_test(domain_parse_expanding_entities_are_refused),
        cmocka_unit_test(domain_parse_deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
