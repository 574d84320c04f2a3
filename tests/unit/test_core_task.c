/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a task: every way to start, to end and to be stopped. How it is lost: test_core_lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script.h"

static void run(const char *script)
{
    core_script_run(&core_script_config, script);
}

static void task_plain_life_completes(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "? 1 RUNNING - starting\n"
        "next never\n"
        "at 5\n"
        "running 1.1\n"
        "? 1 RUNNING - running\n"
        "next 1005\n"
        "at 9\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "? 1 COMPLETED - releasing\n"
        "next 129\n" /* unless it is gone by then: overstay_usec */
        "released 1.1\n"
        "? 1 COMPLETED - none\n" /* readable until the next event */
        "timer\n"
        "? 1 -\n");
}

static void task_exit_decides_outcome(void **state)
{
    static const struct {
        const char *exit, *outcome;
    } cases[] = {
        {"", "COMPLETED -"},
        {"oom=2", "COMPLETED -"},
        {"full", "COMPLETED -"},
        {"status=3", "FAILED exit-status"},
        {"signal=11", "FAILED signal"},
        {"signal=9 oom=1", "OUT_OF_MEMORY memory-limit"},
        {"status=1 oom=1", "OUT_OF_MEMORY memory-limit"},
        {"status=1 full", "FAILED disk-full"},
        {"status=127 not-started", "FAILED command-not-found"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script = g_strdup_printf("node 1 4 1000\n"
                                                  "submit 1 -> START 1.1@1\n"
                                                  "running 1.1\n"
                                                  "exited 1.1 %s -> RELEASE 1.1@1\n"
                                                  "? 1 %s releasing\n",
                                                  cases[i].exit, cases[i].outcome);
        run(script);
    }
}

static void task_gone_decides_outcome(void **state)
{
    static const struct {
        const char *reason, *outcome;
    } cases[] = {
        {"boot-deadline", "FAILED boot-deadline"},
        {"guest-crashed", "FAILED guest-crashed"},
        {"memory-limit", "OUT_OF_MEMORY memory-limit"},
        {"guest-vanished", "PENDING requeued"},
        {"node-lost", "PENDING requeued"},
        {"-", "PENDING requeued"},
        {"start-failed", "FAILED start-failed"}, /* it ran already: not a start any more */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script = g_strdup_printf("node 1 4 1000\n"
                                                  "submit 1 -> START 1.1@1\n"
                                                  "running 1.1\n"
                                                  "gone 1.1 %s -> RELEASE 1.1@1\n"
                                                  "? 1 %s releasing\n",
                                                  cases[i].reason, cases[i].outcome);
        run(script);
    }
}

static void task_exit_without_running_is_enough(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "? 1 COMPLETED - releasing\n");
}

static void task_duplicates_and_stale_epochs_change_nothing(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "released 1.1\n"
        "fenced 1.1\n"
        "exited 1.0\n"
        "exited 1.2\n"
        "exited 2.1\n"
        "running 1.1\n"
        "running 1.1\n"
        "start-failed 1.1\n"
        "? 1 RUNNING - running\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "gone 1.1 guest-vanished\n"
        "exited 1.1\n"
        "running 1.1\n"
        "start-failed 1.1\n"
        "fence-failed 1.1\n"
        "released 1.1 -> START 1.2@1\n"
        "released 1.1\n"
        "exited 1.1 status=1\n"
        "gone 1.1 guest-crashed\n"
        "? 1 RUNNING - starting\n");
}

static void task_that_another_node_speaks_of_changes_nothing(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1 on=2\n"
        "? 1 RUNNING - starting\n"
        "running 1.1 on=1\n"
        "gone 1.1 guest-vanished on=2\n"
        "exited 1.1 on=2\n"
        "? 1 RUNNING - running\n"
        "exited 1.1 on=1 -> RELEASE 1.1@1\n"
        "released 1.1 on=2\n"
        "? 1 COMPLETED - releasing\n"
        "released 1.1 on=1\n"
        "? 1 COMPLETED - none\n");
}

/* --- stopping ------------------------------------------------------------------------------- */

static void task_time_limit_stops(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "at 50\n"
        "running 1.1\n"
        "next 150\n"
        "at 149\n"
        "timer\n"
        "at 150\n"
        "timer -> STOP 1.1@1\n"
        "? 1 RUNNING - stopping\n"
        "timer\n"
        "cancel 1\n" /* it stops already, for its first reason */
        "exited 1.1 signal=15 -> RELEASE 1.1@1\n"
        "? 1 TIMEOUT time-limit releasing\n");
}

static void task_without_time_limit_runs_on(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=0 -> START 1.1@1\n"
        "running 1.1\n"
        "next 86400\n"
        "at 86400\n"
        "timer\n"
        "next 172800\n"
        "? 1 RUNNING none running\n");
}

static void task_stop_decides_even_a_good_end(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "cancel 1 -> STOP 1.1@1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "? 1 CANCELLED cancelled-by-user releasing\n");
}

static void task_cancel_while_starting_stops(void **state)
{
    static const char *const answers[] = {
        "exited 1.1",       "gone 1.1 guest-vanished",    "gone 1.1 boot-deadline",
        "start-failed 1.1", "start-failed 1.1 permanent",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autofree char *script = g_strdup_printf("node 1 4 1000\n"
                                                  "submit 1 -> START 1.1@1\n"
                                                  "cancel 1 op -> STOP 1.1@1\n"
                                                  "%s -> RELEASE 1.1@1\n"
                                                  "? 1 CANCELLED cancelled-by-operator releasing\n",
                                                  answers[i]);
        run(script);
    }
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "cancel 1 -> STOP 1.1@1\n"
        "running 1.1\n" /* it was faster; STOP is still to take effect */
        "? 1 RUNNING - stopping\n");
}

static void task_cancel_pending_ends_at_once(void **state)
{
    run("node 1 1 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2\n"
        "submit 3\n"
        "cancel 2\n"
        "? 2 CANCELLED cancelled-by-user none\n"
        "cancel 2 ! no unfinished job 2\n"
        "cancel 1 -> STOP 1.1@1\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "released 1.1 -> START 3.1@1\n");
}

static void task_stop_waits_for_absent_node(void **state)
{
    const char *absent = "node 1 4 1000\n"
                         "submit 1 limit=30 -> START 1.1@1\n"
                         "running 1.1\n"
                         "left 1\n"
                         "at 40\n"
                         "timer\n"
                         "? 1 RUNNING - running\n"
                         "next 60\n";
    static const char *const ends[] = {
        "join 1 1.1:running -> STOP 1.1@1\n? 1 RUNNING - stopping\n",
        "join 1 1.1:starting -> STOP 1.1@1\n? 1 RUNNING - stopping\n",
        /* It had ended before anybody could stop it, perhaps long before its limit. */
        "join 1 1.1:exited:0 -> RELEASE 1.1@1\n? 1 COMPLETED - releasing\n",
        "join 1 1.1:gone:guest-crashed -> RELEASE 1.1@1\n? 1 FAILED guest-crashed releasing\n",
        "join 1 -> RELEASE 1.1@1\n? 1 PENDING requeued releasing\n",
        "at 60\ntimer -> FENCE 1.1@1\n? 1 PENDING requeued fencing\n",
        /* Whoever wanted it to end has what he wanted. */
        "cancel 1\njoin 1 -> RELEASE 1.1@1\n? 1 CANCELLED cancelled-by-user releasing\n",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *script = g_strconcat(absent, ends[i], NULL);
        run(script);
    }
}

/* An agent that was killed half-way has lost the task: it gets it again, and only then. */
static void task_found_starting_is_started_again(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "left 1\n"
        "join 1 1.1:starting -> START 1.1@1\n"
        "? 1 RUNNING - starting\n"
        "left 1\n"
        "join 1 1.1:running\n"
        "? 1 RUNNING - running\n"
        "left 1\n"
        "join 1 1.1:starting\n"
        "? 1 RUNNING - running\n");
}

static void task_cancel_of_start_on_absent_node_is_not_started_again(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "left 1\n"
        "cancel 1\n"
        "join 1 -> RELEASE 1.1@1\n"
        "? 1 CANCELLED cancelled-by-user releasing\n");
}

/* --- failing to start ----------------------------------------------------------------------- */

static void task_start_failure_backs_off_and_goes_elsewhere(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "? 1 PENDING starting-later releasing\n"
        "why 1 starting-later\n"
        "next 120\n"
        "released 1.1\n"
        "next 4\n"
        "why 1 starting-later\n"
        "at 4\n"
        "timer -> START 1.2@2\n"
        "start-failed 1.2 -> RELEASE 1.2@2\n"
        "released 1.2\n"
        "next 12\n"
        "at 12\n"
        "timer -> START 1.3@1\n"
        "start-failed 1.3 -> RELEASE 1.3@1\n"
        "? 1 FAILED start-failed releasing\n");
}

static void task_start_failure_tries_the_same_node_if_it_is_the_only_one(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 nodes=2 -> START 1.1@2\n"
        "start-failed 1.1 -> RELEASE 1.1@2\n"
        "at 9\n"
        "released 1.1 -> START 1.2@2\n");
}

static void task_permanent_start_failure_fails(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 permanent -> RELEASE 1.1@1\n"
        "? 1 FAILED start-failed releasing\n");
}

static void task_gone_while_starting_counts_as_start_failure(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "gone 1.1 start-failed -> RELEASE 1.1@1\n"
        "? 1 PENDING starting-later releasing\n"
        "submit 2 -> START 2.1@1\n"
        "gone 2.1 storage-unavailable -> RELEASE 2.1@1\n"
        "? 2 PENDING starting-later releasing\n"
        "submit 3 -> START 3.1@1\n"
        "gone 3.1 boot-deadline -> RELEASE 3.1@1\n"
        "? 3 FAILED boot-deadline releasing\n");
}

/* Nothing of it has run: it starts again, elsewhere if it can, and not without end. */
static void task_gone_before_its_command_starts_again_twice(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "gone 1.1 guest-crashed not-begun -> RELEASE 1.1@1\n"
        "? 1 PENDING starting-later releasing\n"
        "released 1.1\n"
        "next 4\n"
        "at 4\n"
        "timer -> START 1.2@2\n"
        "gone 1.2 guest-vanished not-begun -> RELEASE 1.2@2\n"
        "? 1 PENDING starting-later releasing\n"
        "released 1.2\n"
        "next 12\n"
        "at 12\n"
        "timer -> START 1.3@1\n"
        "gone 1.3 guest-crashed not-begun -> RELEASE 1.3@1\n"
        "? 1 FAILED guest-crashed releasing\n");
}

static void task_starts_again_as_often_and_as_late_as_the_site_says(void **state)
{
    core_script_run_tuned(0, BERTH_TUNING_BOOT_RETRIES_MAX, 0,
                          "node 1 4 1000\n"
                          "submit 1 -> START 1.1@1\n"
                          "gone 1.1 guest-crashed not-begun -> RELEASE 1.1@1\n"
                          "? 1 FAILED guest-crashed releasing\n");
    core_script_run_tuned(0, BERTH_TUNING_START_DOUBLINGS_MAX, 0,
                          "node 1 4 1000\n"
                          "submit 1 -> START 1.1@1\n"
                          "start-failed 1.1 -> RELEASE 1.1@1\n"
                          "released 1.1\n"
                          "next 4\n"
                          "at 4\n"
                          "timer -> START 1.2@1\n"
                          "start-failed 1.2 -> RELEASE 1.2@1\n"
                          "released 1.2\n"
                          "next 8\n");
}

static void task_gone_before_its_command_is_found_so_by_a_join(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "left 1\n"
        "join 1 1.1:not-begun:guest-crashed -> RELEASE 1.1@1\n"
        "? 1 PENDING starting-later releasing\n");
}

/* Its node may have been slow; a disk that no node boots in time is the job's own. */
static void task_that_does_not_boot_in_time_starts_again_twice(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 no-requeue -> START 1.1@1\n"
        "gone 1.1 boot-deadline not-begun -> RELEASE 1.1@1\n"
        "? 1 PENDING starting-later releasing\n"
        "released 1.1\n"
        "at 4\n"
        "timer -> START 1.2@2\n"
        "left 2\n"
        "join 2 1.2:not-begun:boot-deadline -> RELEASE 1.2@2\n"
        "? 1 PENDING starting-later releasing\n"
        "released 1.2\n"
        "at 12\n"
        "timer -> START 1.3@1\n"
        "gone 1.3 boot-deadline not-begun -> RELEASE 1.3@1\n"
        "? 1 FAILED boot-deadline releasing\n");
    /* Whom somebody does not want any more is not. */
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "gone 1.1 boot-deadline not-begun -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "at 4\n"
        "timer -> START 1.2@1\n"
        "cancel 1 -> STOP 1.2@1\n"
        "gone 1.2 boot-deadline not-begun -> RELEASE 1.2@1\n"
        "? 1 CANCELLED cancelled-by-user releasing\n");
}

/* What happens after its command may have begun is the job's. */
static void task_gone_is_its_own_unless_it_has_not_begun(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "gone 1.1 guest-crashed -> RELEASE 1.1@1\n"
        "? 1 FAILED guest-crashed releasing\n"
        "submit 2 -> START 2.1@1\n"
        "gone 2.1 boot-deadline -> RELEASE 2.1@1\n"
        "? 2 FAILED boot-deadline releasing\n"
        "submit 3 -> START 3.1@1\n"
        "running 3.1\n"
        "gone 3.1 guest-crashed not-begun -> RELEASE 3.1@1\n"
        "? 3 FAILED guest-crashed releasing\n");
}

static void task_start_failure_in_an_outage_does_not_count(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "storage down\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "? 1 PENDING storage-unavailable releasing\n"
        "released 1.1\n"
        "next 4\n"
        "at 4\n"
        "timer\n"
        "why 1 storage-unavailable\n"
        "storage up -> START 1.2@1\n"
        "start-failed 1.2 -> RELEASE 1.2@1\n"
        "released 1.2\n"
        "next 8\n"); /* the first that counts */
}

static void task_storage_failures_never_end_a_job(void **state)
{
    GString *script = g_string_new("node 1 4 1000\nsubmit 1 -> START 1.1@1\n");
    for (guint i = 1; i <= 20; i++)
        g_string_append_printf(script,
                               "start-failed 1.%u storage -> RELEASE 1.%u@1\n"
                               "? 1 PENDING starting-later releasing\n"
                               "released 1.%u\n"
                               "next %u\n"
                               "at %u\n"
                               "timer -> START 1.%u@1\n",
                               i, i, i, i * 4, i * 4, i + 1);
    run(script->str);
    g_string_free(script, TRUE);
}

static void task_backoff_doubles_up_to_a_limit(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.start_retries_max = 100;
    GString *script = g_string_new("node 1 4 1000\nsubmit 1 -> START 1.1@1\n");
    guint now = 0;
    for (guint i = 1; i <= 10; i++) {
        now += 4u << MIN(i - 1, 6);
        g_string_append_printf(script,
                               "start-failed 1.%u -> RELEASE 1.%u@1\n"
                               "released 1.%u\n"
                               "next %u\n"
                               "at %u\n"
                               "timer -> START 1.%u@1\n",
                               i, i, i, now, now, i + 1);
    }
    core_script_run(&config, script->str);
    g_string_free(script, TRUE);
}

static void task_cancel_while_backing_off_ends(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "cancel 1\n"
        "? 1 CANCELLED cancelled-by-user releasing\n"
        "cancel 1 ! already ended (CANCELLED)\n"
        "released 1.1\n"
        "submit 2 -> START 2.1@1\n"
        "start-failed 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "next 4\n"
        "cancel 2\n"
        "next never\n"
        "timer\n"
        "? 2 -\n");
}

static void task_starts_that_work_forget_failures(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "at 10\n"
        "released 1.1 -> START 1.2@1\n"
        "start-failed 1.2 -> RELEASE 1.2@1\n"
        "at 30\n"
        "released 1.2 -> START 1.3@1\n"
        "running 1.3\n"
        "gone 1.3 guest-vanished -> RELEASE 1.3@1\n"
        "released 1.3 -> START 1.4@1\n"
        "start-failed 1.4 -> RELEASE 1.4@1\n"
        "? 1 PENDING starting-later releasing\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_plain_life_completes),
        cmocka_unit_test(task_exit_decides_outcome),
        cmocka_unit_test(task_gone_decides_outcome),
        cmocka_unit_test(task_exit_without_running_is_enough),
        cmocka_unit_test(task_duplicates_and_stale_epochs_change_nothing),
        cmocka_unit_test(task_that_another_node_speaks_of_changes_nothing),
        cmocka_unit_test(task_time_limit_stops),
        cmocka_unit_test(task_without_time_limit_runs_on),
        cmocka_unit_test(task_stop_decides_even_a_good_end),
        cmocka_unit_test(task_cancel_while_starting_stops),
        cmocka_unit_test(task_cancel_pending_ends_at_once),
        cmocka_unit_test(task_stop_waits_for_absent_node),
        cmocka_unit_test(task_found_starting_is_started_again),
        cmocka_unit_test(task_cancel_of_start_on_absent_node_is_not_started_again),
        cmocka_unit_test(task_start_failure_backs_off_and_goes_elsewhere),
        cmocka_unit_test(task_start_failure_tries_the_same_node_if_it_is_the_only_one),
        cmocka_unit_test(task_permanent_start_failure_fails),
        cmocka_unit_test(task_gone_while_starting_counts_as_start_failure),
        cmocka_unit_test(task_gone_before_its_command_starts_again_twice),
        cmocka_unit_test(task_starts_again_as_often_and_as_late_as_the_site_says),
        cmocka_unit_test(task_gone_before_its_command_is_found_so_by_a_join),
        cmocka_unit_test(task_that_does_not_boot_in_time_starts_again_twice),
        cmocka_unit_test(task_gone_is_its_own_unless_it_has_not_begun),
        cmocka_unit_test(task_start_failure_in_an_outage_does_not_count),
        cmocka_unit_test(task_storage_failures_never_end_a_job),
        cmocka_unit_test(task_backoff_doubles_up_to_a_limit),
        cmocka_unit_test(task_cancel_while_backing_off_ends),
        cmocka_unit_test(task_starts_that_work_forget_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
