/* SPDX-License-Identifier: Apache-2.0 */
/* [policy] of berthd.conf: that each constant of the core's table can be set within its bounds and
 * no further, and that the manual says of each what the table says. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/policy_config.h"

#include <string.h>

static gboolean load(const char *text, gint64 values[BERTH_TUNING_N], GError **error)
{
    const BerthConfigTable tables[] = {berth_policy_config_table(values), {NULL}};
    memset(values, 0, BERTH_TUNING_N * sizeof values[0]);
    return berth_config_load_data(text, strlen(text), "test.conf", "berthd.conf(5)", tables, error);
}

static gboolean load_one(guint tuning, gint64 value, gint64 values[BERTH_TUNING_N], GError **error)
{
    g_autofree char *text =
        g_strdup_printf("# a comment\n[policy]\n%s = %" G_GINT64_FORMAT "\n",
                        berth_core_tuning((BerthCoreTuning)tuning)->name, value);
    return load(text, values, error);
}

static void policy_config_without_keys_is_the_table(void **state)
{
    gint64 values[BERTH_TUNING_N];
    g_autoptr(GError) error = NULL;
    assert_true(load("", values, &error));
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        assert_int_equal(values[i], berth_core_tuning((BerthCoreTuning)i)->value);
}

static void policy_config_takes_each_key_within_its_bounds(void **state)
{
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
        const gint64 allowed[] = {info->min, info->max};
        for (guint k = 0; k < G_N_ELEMENTS(allowed); k++) {
            gint64 values[BERTH_TUNING_N];
            g_autoptr(GError) error = NULL;
            load_one(i, allowed[k], values, &error);
            assert_no_error(error);
            for (guint other = 0; other < BERTH_TUNING_N; other++)
                assert_int_equal(values[other],
                                 other == i ? allowed[k]
                                            : berth_core_tuning((BerthCoreTuning)other)->value);
        }
    }
}

static void policy_config_refuses_each_key_beyond_its_bounds(void **state)
{
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
        const gint64 refused[] = {info->min - 1, info->max + 1};
        g_autofree char *allowed = g_strdup_printf("test.conf:3: [policy] %s: ", info->name);
        g_autofree char *range =
            g_strdup_printf("allowed: a number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT "; "
                            "see berthd.conf(5)",
                            info->min, info->max);
        for (guint k = 0; k < G_N_ELEMENTS(refused); k++) {
            gint64 values[BERTH_TUNING_N];
            g_autoptr(GError) error = NULL;
            assert_false(load_one(i, refused[k], values, &error));
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, allowed);
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, range);
        }
    }
}

static void policy_config_unknown_key_is_refused_with_those_there_are(void **state)
{
    gint64 values[BERTH_TUNING_N];
    g_autoptr(GError) error = NULL;
    assert_false(load("[policy]\nplan_dept=3\n", values, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT,
                       "test.conf:2: [policy] plan_dept: unknown key; allowed: plan_depth, ");
}

/* --- the manual --------------------------------------------------------------------------------- */

static void append_sentence(GString *out, const char *text)
{
    g_string_append_c(out, g_ascii_toupper(text[0]));
    g_string_append(out, text + 1);
    if (!g_str_has_suffix(text, "."))
        g_string_append_c(out, '.');
}

/* "604800000000 (7d)": a time is said for people too, where it has a round name. */
static void append_value(GString *out, const BerthCoreTuningInfo *info, gint64 value)
{
    static const struct {
        gint64 sec;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    g_string_append_printf(out, "%" G_GINT64_FORMAT, value);
    for (guint i = 0; g_str_equal(info->unit, "us") && value > 0 && i < G_N_ELEMENTS(units); i++) {
        gint64 unit_usec = units[i].sec * (gint64)G_USEC_PER_SEC;
        if (value % unit_usec == 0) {
            g_string_append_printf(out, " (%" G_GINT64_FORMAT "%c)", value / unit_usec,
                                   units[i].unit);
            return;
        }
    }
}

static const char *words_of(const char *unit)
{
    if (g_str_equal(unit, "us"))
        return "In microseconds, ";
    if (g_str_equal(unit, "permille"))
        return "In thousandths, ";
    return g_str_equal(unit, "MiB") ? "In MiB, " : g_str_equal(unit, "MiB/s") ? "In MiB/s, " : "";
}

/* What the manual has to say of a constant, in one line. */
static char *paragraph(const BerthCoreTuningInfo *info)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out, ".TP \\fB%s\\fR=\\fINUMBER\\fR ", info->name);
    append_sentence(out, info->meaning);
    g_string_append_printf(out, " %s", words_of(info->unit));
    append_value(out, info, info->min);
    g_string_append(out, " to ");
    append_value(out, info, info->max);
    g_string_append(out, ". Default: ");
    append_value(out, info, info->value);
    g_string_append(out, ". Why: ");
    g_string_append(out, info->source);
    g_string_append_c(out, '.');
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* TEXT with all space as one blank. */
static char *one_line(const char *text)
{
    g_auto(GStrv) words = g_strsplit_set(text, " \t\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint i = 0; words[i] != NULL; i++)
        if (words[i][0] != '\0')
            g_string_append_printf(out, "%s%s", out->len > 0 ? " " : "", words[i]);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void manual_says_of_each_constant_what_the_table_says(void **state)
{
    const char *top = g_getenv("top_srcdir");
    g_autofree char *path = g_build_filename(top ? top : ".", "doc", "berthd.conf.5", NULL);
    g_autofree char *raw = NULL;
    guint n_missing = 0;
    assert_true(g_file_get_contents(path, &raw, NULL, NULL));
    g_autofree char *manual = one_line(raw);
    const char *group = strstr(manual, "\"GROUP [policy]\"");
    assert_non_null(group);
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        g_autofree char *wanted = paragraph(berth_core_tuning((BerthCoreTuning)i));
        const char *at = strstr(group, wanted);
        if (at == NULL && ++n_missing > 0)
            print_error("doc/berthd.conf.5, [policy], lacks this, in any line breaks:\n%s\n",
                        wanted);
    }
    assert_int_equal(n_missing, 0);
}

static void manual_has_no_constant_that_the_table_lacks(void **state)
{
    const char *top = g_getenv("top_srcdir");
    g_autofree char *path = g_build_filename(top ? top : ".", "doc", "berthd.conf.5", NULL);
    g_autofree char *raw = NULL;
    guint n = 0;
    assert_true(g_file_get_contents(path, &raw, NULL, NULL));
    const char *group = strstr(raw, ".SH \"GROUP [policy]\"");
    assert_non_null(group);
    g_autofree char *own = g_strndup(group, (gsize)(strstr(group + 1, "\n.SH") - group));
    for (const char *at = own; (at = strstr(at, "\n\\fB")) != NULL; at++)
        n++;
    assert_int_equal(n, BERTH_TUNING_N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_config_without_keys_is_the_table),
        cmocka_unit_test(policy_config_takes_each_key_within_its_bounds),
        cmocka_unit_test(policy_config_refuses_each_key_beyond_its_bounds),
        cmocka_unit_test(policy_config_unknown_key_is_refused_with_those_there_are),
        cmocka_unit_test(manual_says_of_each_constant_what_the_table_says),
        cmocka_unit_test(manual_has_no_constant_that_the_table_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
