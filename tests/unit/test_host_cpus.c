/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "tests/lib/assert.h"

#include "nodeagent/host_cpus.h"

#include <sched.h>
#include <string.h>

static void guests_have_what_is_not_kept(void **state)
{
    static const struct {
        const char *kept, *online, *host, *guests, *offline;
    } cases[] = {
        {"0", "0-1", "0", "1", NULL},
        {"0-1", "0-63", "0-1", "2-63", NULL},
        {"0,32", "0-63", "0,32", "1-31,33-63", NULL},
        /* every second one: no step, which the kernel would read otherwise */
        {"1,3", "0-3", "1,3", "0,2", NULL},
        {"8-9", "0-3,8-11", "8-9", "0-3,10-11", NULL},
        {" 0, 2 ,3", "0-3", "0,2-3", "1", NULL},
        {"0-1", "1-3", "1", "2-3", "0"},
        {"3-5", "0-3", "3", "0-2", "4-5"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(BerthHostCpus) cpus = {0};
        assert_true(berth_host_cpus_split(cases[i].kept, cases[i].online, &cpus, &error));
        assert_no_error(error);
        assert_string_equal(cpus.host, cases[i].host);
        assert_string_equal(cpus.guests, cases[i].guests);
        assert_int_equal(g_strcmp0(cpus.offline, cases[i].offline), 0);
        assert_int_equal(berth_host_cpus_count(cpus.host) + berth_host_cpus_count(cpus.guests),
                         berth_host_cpus_count(cases[i].online));
    }
}

static void what_is_no_list_is_refused(void **state)
{
    static const struct {
        const char *list, *why;
    } cases[] = {
        {"", "\"\" is no list of CPUs, as 0-1,8 is"},
        {"cpu0", "\"cpu0\" is no list of CPUs"},
        {"0 1", "no list of CPUs"},
        {"0,,1", "no list of CPUs"},
        {"0-2:2", "no list of CPUs"},
        {"65536", "no Linux has more"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GError) split_error = NULL;
        BerthHostCpus cpus;
        assert_false(berth_host_cpus_check(cases[i].list, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
        assert_false(berth_host_cpus_split(cases[i].list, "0-3", &cpus, &split_error));
        assert_berth_error(split_error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
    }
}

static void host_and_guests_have_one_at_least(void **state)
{
    static const struct {
        const char *kept, *why;
    } cases[] = {
        {"4", "of CPUs 4 none is online"},
        {"0-3", "none is left for guests"},
        {"0-7", "none is left for guests"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        BerthHostCpus cpus;
        assert_true(berth_host_cpus_check(cases[i].kept, NULL));
        assert_false(berth_host_cpus_split(cases[i].kept, "0-3", &cpus, &error));
        assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, cases[i].why);
    }
}

static gpointer affinity(gpointer data)
{
    return GINT_TO_POINTER(sched_getaffinity(0, sizeof(cpu_set_t), data));
}

/* Also threads that it begins. */
static void this_process_is_bound(void **state)
{
    g_autoptr(GError) error = NULL;
    cpu_set_t before, after, of_thread;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    g_autofree char *list = g_strdup_printf("%d", cpu);
    g_autofree char *barred = NULL;
    assert_true(berth_host_cpus_bind(list, &barred, &error));
    assert_no_error(error);
    assert_null(barred);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_int_equal(GPOINTER_TO_INT(g_thread_join(g_thread_new("test", affinity, &of_thread))), 0);
    assert_true(CPU_COUNT(&after) == 1 && CPU_ISSET(cpu, &after));
    assert_true(CPU_EQUAL(&after, &of_thread));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* As in a cpuset: the kernel binds a process to what is there, and says no word of the rest. */
static void what_it_cannot_run_on_is_told(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *barred = NULL;
    cpu_set_t before;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_false(berth_host_cpus_bind("65535", &barred, &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "65535: the cpuset");
    assert_true(berth_host_cpus_bind("0-65535", &barred, NULL));
    assert_non_null(barred);
    assert_true(g_str_has_suffix(barred, "-65535"));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* The kernel's statistics have a line for each CPU that runs, whatever this process may run on. */
static guint count_in_statistics(void)
{
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents("/proc/stat", &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    guint n = 0;
    for (char **line = lines; *line != NULL; line++)
        n += g_str_has_prefix(*line, "cpu") && g_ascii_isdigit((*line)[3]);
    return n;
}

static void this_host_says_what_it_has(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *online = berth_host_cpus_online(&error);
    assert_no_error(error);
    assert_int_equal(berth_host_cpus_count(online), count_in_statistics());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_have_what_is_not_kept),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(host_and_guests_have_one_at_least),
        cmocka_unit_test(this_process_is_bound),
        cmocka_unit_test(what_it_cannot_run_on_is_told),
        cmocka_unit_test(this_host_says_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
