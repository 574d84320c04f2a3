/* SPDX-License-Identifier: Apache-2.0 */
/* Space that is kept for checkpoints: for those to come, and for guests in slack, which may have to leave. One asks for no more
 * than it has been promised, and gives back no more than it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

/* Node 1 is reserved by job 1, which leaves most of it idle; the others are in slack there. One of 100 MiB is counted as
 * 164 MiB. */
#define IDLE                                                                                       \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "report 1.1 cpu=500 mem=200\n"                                                                 \
    "at 1000\n"                                                                                    \
    "report 1.1 cpu=500 mem=200\n"
#define IN_SLACK(job, words)                                                                       \
    "submit " job " v=1 m=100 " words " slack may-checkpoint -> START " job ".1@1~\n"              \
    "running " job ".1\n"
#define TWO_IN_SLACK(limit)                                                                        \
    IDLE IN_SLACK("2", "limit=" limit " save") IN_SLACK("3", "limit=" limit " save")

static void run_with_space(gint64 space_mib, const char *script)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, space_mib, script);
}

/* All space is kept for who may have to leave slack: of those that come to their limits together each has its own part. */
static void those_in_slack_are_saved_at_their_time_limits_by_what_is_kept_for_them(void **state)
{
    run_with_space(330, TWO_IN_SLACK("100") "space 0 328 2\n"
                                            "checkpoint 2 ! may take 164 MiB, and 2 MiB\n"
                                            "at 1100\n"
                                            "timer -> CHECKPOINT 2.1@1~ CHECKPOINT 3.1@1~\n"
                                            "space 0 328 2\n"
                                            "checkpointed 2.1 stored=30 -> RELEASE 2.1@1\n"
                                            "space 30 164 136\n"
                                            "checkpointed 3.1 stored=30 -> RELEASE 3.1@1\n"
                                            "space 60 0 270\n");
}

static void those_in_slack_are_frozen_to_disk_by_what_is_kept_for_them(void **state)
{
    run_with_space(330, TWO_IN_SLACK("500") "freeze 2 disk -> CHECKPOINT 2.1@1~\n"
                                            "freeze 3 disk -> CHECKPOINT 3.1@1~\n"
                                            "space 0 328 2\n"
                                            "checkpointed 2.1 failed\n" /* as before */
                                            "space 0 328 2\n"
                                            "checkpointed 3.1 -> RELEASE 3.1@1\n"
                                            "space 0 164 166\n");
}

/* Checkpoints of 2 and 3 are under way, one of 4 waits for its turn: each has its space beside what all three may need, and
 * nothing is left. */
#define ONE_WAITS                                                                                  \
    TWO_IN_SLACK("500")                                                                            \
    IN_SLACK("4", "")                                                                              \
    "checkpoint 2 -> CHECKPOINT 2.1@1#1~\n"                                                        \
    "checkpoint 3 -> CHECKPOINT 3.1@1#1~\n"                                                        \
    "checkpoint 4\n"                                                                               \
    "space 0 984 6\n"

static void freeze_to_disk_by_a_wanted_checkpoint_leaves_to_nobody_what_a_thaw_needs(void **state)
{
    run_with_space(990, ONE_WAITS "freeze 4 disk\n"
                                  "space 0 984 6\n"
                                  "thaw 4\n"
                                  "space 0 984 6\n"
                                  "checkpointed 2.1 stored=30 -> CHECKPOINT 4.1@1#1~\n"
                                  "space 30 820 140\n"
                                  "checkpointed 4.1 stored=30\n"
                                  "space 60 656 274\n");
}

/* It is still wanted, and done; what it may need in slack is still there. */
static void freeze_to_disk_that_fails_leaves_a_wanted_checkpoint_its_space(void **state)
{
    run_with_space(990, ONE_WAITS "freeze 4 disk\n"
                                  "checkpointed 2.1 stored=30 -> CHECKPOINT 4.1@1~\n"
                                  "space 30 820 140\n"
                                  "checkpointed 4.1 failed -> CHECKPOINT 4.1@1#2~\n"
                                  "space 30 820 140\n"
                                  "checkpointed 4.1 stored=30\n"
                                  "space 60 656 274\n");
}

/* However often. */
static void freeze_to_disk_that_is_thawed_before_its_turn_gives_its_space_back(void **state)
{
    run_with_space(990, ONE_WAITS "freeze 3 disk\n"
                                  "space 0 984 6\n"
                                  "thaw 3\n"
                                  "space 0 984 6\n"
                                  "freeze 3 disk\n"
                                  "space 0 984 6\n"
                                  "checkpointed 3.1 stored=30 -> CHECKPOINT 3.1@1~\n"
                                  "space 30 820 140\n"
                                  "checkpointed 3.1 failed -> CHECKPOINT 4.1@1#1~\n"
                                  "space 30 820 140\n");
}

/* The space with which it is to leave would be that of the checkpoint, and it may have to leave all the same. */
static void checkpoint_of_one_that_is_to_go_to_disk_needs_space_of_its_own(void **state)
{
    run_with_space(820, TWO_IN_SLACK("500") IN_SLACK("4", "every=100") /* space for two more */
                   "checkpoint 2 -> CHECKPOINT 2.1@1#1~\n"
                   "checkpoint 3 -> CHECKPOINT 3.1@1#1~\n"
                   "freeze 4 disk\n"
                   "space 0 820 0\n"
                   "checkpoint 4 ! may take 164 MiB, and 0 MiB\n"
                   "at 1100\n"
                   "timer\n" /* one is due */
                   "missed 4 1100\n"
                   "space 0 820 0\n");
    run_with_space(990, TWO_IN_SLACK("500")
                            IN_SLACK("4", "every=100") "checkpoint 2 -> CHECKPOINT 2.1@1#1~\n"
                                                       "checkpoint 3 -> CHECKPOINT 3.1@1#1~\n"
                                                       "freeze 4 disk\n"
                                                       "at 1100\n"
                                                       "timer\n"
                                                       "space 0 984 6\n"
                                                       "checkpoint-every 4\n" /* not any more */
                                                       "space 0 820 170\n");
}

/* Who waits to go to disk has its space kept, wherever it is counted. */
#define ONE_IS_TO_GO                                                                               \
    TWO_IN_SLACK("500")                                                                            \
    IN_SLACK("4", "vmax=2 mmax=300")                                                               \
    "checkpoint 2 -> CHECKPOINT 2.1@1#1~\n"                                                        \
    "checkpoint 3 -> CHECKPOINT 3.1@1#1~\n"                                                        \
    "freeze 4 disk\n"                                                                              \
    "space 0 820 180\n"

static void space_of_one_that_is_to_go_to_disk_outlives_a_restart(void **state)
{
    run_with_space(1000, ONE_IS_TO_GO "restart guests\n"
                                      "space 0 820 180\n"
                                      "join 1 1.1:running 2.1:running 3.1:running 4.1:running -> "
                                      "CHECKPOINT 2.1@1#1~ CHECKPOINT 3.1@1#1~\n"
                                      "space 0 820 180\n");
}

static void space_of_one_in_slack_is_free_when_it_ends(void **state)
{
    run_with_space(1000, ONE_IS_TO_GO "cancel 4 -> STOP 4.1@1\n"
                                      "space 0 656 344\n");
    run_with_space(1000, ONE_IS_TO_GO "left 1\n"
                                      "at 1060\n"
                                      "timer -> FENCE 1.1@1 FENCE 2.1@1 FENCE 3.1@1 FENCE 4.1@1\n"
                                      "space 0 0 1000\n");
}

/* Thawed in slack it may have to leave again; backed, and larger than it was, not. */
static void space_of_one_that_is_thawed_is_what_it_may_need(void **state)
{
    run_with_space(1000, ONE_IS_TO_GO "thaw 4\n"
                                      "space 0 820 180\n");
    run_with_space(1000, ONE_IS_TO_GO "exited 1.1 -> RELEASE 1.1@1\n"
                                      "released 1.1 -> RESIZE 4.1@1\n" /* it is backed */
                                      "space 0 820 180\n"
                                      "resized 4.1\n"
                                      "resize 4 m=300 -> RESIZE 4.1@1=1/300\n"
                                      "resized 4.1\n"
                                      "space 0 820 180\n"
                                      "thaw 4\n"
                                      "space 0 656 344\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_in_slack_are_saved_at_their_time_limits_by_what_is_kept_for_them),
        cmocka_unit_test(those_in_slack_are_frozen_to_disk_by_what_is_kept_for_them),
        cmocka_unit_test(freeze_to_disk_by_a_wanted_checkpoint_leaves_to_nobody_what_a_thaw_needs),
        cmocka_unit_test(freeze_to_disk_that_fails_leaves_a_wanted_checkpoint_its_space),
        cmocka_unit_test(freeze_to_disk_that_is_thawed_before_its_turn_gives_its_space_back),
        cmocka_unit_test(checkpoint_of_one_that_is_to_go_to_disk_needs_space_of_its_own),
        cmocka_unit_test(space_of_one_that_is_to_go_to_disk_outlives_a_restart),
        cmocka_unit_test(space_of_one_in_slack_is_free_when_it_ends),
        cmocka_unit_test(space_of_one_that_is_thawed_is_what_it_may_need),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
