/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/hypervisor/hypervisor.h"
#include "tests/lib/assert.h"

static BerthHost *parse_file(const char *name, GError **error)
{
    const char *top = g_getenv("top_srcdir");
    g_autofree char *path =
        g_strdup_printf("%s/tests/golden/capabilities/%s", top == NULL ? "." : top, name);
    g_autofree char *xml = NULL;
    gsize length;
    if (!g_file_get_contents(path, &xml, &length, error))
        return NULL;
    return berth_capabilities_parse(xml, length, error);
}

static void capabilities_parse_one_cell_is_read(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthHost) host = parse_file("one-cell.xml", &error);
    assert_no_error(error);
    assert_true(host->has_kvm);
    assert_string_equal(host->machine, "pc-q35-7.2");
    assert_int_equal(host->max_vcpus, 288);
    assert_int_equal(host->cpus, 2);
    assert_int_equal(host->cells->len, 1);
    assert_int_equal(host->memory_mib, 5728460 / 1024);
}

static void capabilities_parse_two_cells_have_distances(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthHost) host = parse_file("two-cells-no-kvm.xml", &error);
    assert_no_error(error);
    assert_false(host->has_kvm);
    assert_int_equal(host->cpus, 3);
    assert_int_equal(host->cells->len, 2);
    const BerthHostCell *cell = &g_array_index(host->cells, BerthHostCell, 1);
    assert_int_equal(cell->id, 1);
    assert_int_equal(cell->cpus, 1);
    assert_int_equal(cell->memory_mib, 132112384 / 1024);
    assert_int_equal(cell->cpu_ids->len, 1);
    assert_int_equal(g_array_index(cell->cpu_ids, guint32, 0), 1);
    const BerthHostCell *other = &g_array_index(host->cells, BerthHostCell, 0);
    assert_int_equal(other->cpu_ids->len, 2);
    assert_int_equal(g_array_index(other->cpu_ids, guint32, 1), 2);
    assert_int_equal(cell->distances->len, 2);
    assert_int_equal(g_array_index(cell->distances, guint32, 0), 21);
    assert_int_equal(g_array_index(cell->distances, guint32, 1), 10);
}

static void capabilities_parse_bad_documents_are_refused(void **state)
{
    static const struct {
        const char *xml;
        int code;
        const char *text;
    } cases[] = {
        {"", BERTH_ERROR_INVALID_ARGUMENT, "cannot read"},
        {"<domain/>", BERTH_ERROR_INVALID_ARGUMENT, "<domain>"},
        {"<capabilities/>", BERTH_ERROR_UNSUPPORTED, "q35"},
        {"<capabilities><guest><os_type>hvm</os_type><arch name='x86_64'>"
         "<machine canonical='pc-q35-7.2' maxCpus='many'>q35</machine></arch></guest>"
         "</capabilities>",
         BERTH_ERROR_INVALID_ARGUMENT, "maxCpus"},
        {"<capabilities><host><topology><cells><cell id='x'/></cells></topology></host>"
         "</capabilities>",
         BERTH_ERROR_INVALID_ARGUMENT, "id"},
        {"<capabilities><host><topology><cells><cell id='0'><distances><sibling/></distances>"
         "</cell></cells></topology></host></capabilities>",
         BERTH_ERROR_INVALID_ARGUMENT, "value"},
        {"<capabilities><host><topology><cells><cell id='0'><cpus num='1'><cpu id='-1'/></cpus>"
         "</cell></cells></topology></host></capabilities>",
         BERTH_ERROR_INVALID_ARGUMENT, "id"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_capabilities_parse(cases[i].xml, strlen(cases[i].xml), &error));
        assert_berth_error(error, cases[i].code, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_parse_one_cell_is_read),
        cmocka_unit_test(capabilities_parse_two_cells_have_distances),
        cmocka_unit_test(capabilities_parse_bad_documents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
