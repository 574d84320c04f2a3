/* SPDX-License-Identifier: Apache-2.0 */
/* Backfill: small cases that can be checked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script.h"

#include <malloc.h>

/* CONSERVATIVE: the first eight have a planned start. */
static void run(BerthCorePolicy policy, const char *script)
{
    BerthCoreConfig config = core_script_config;
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_PLAN_DEPTH] = 8;
    config.policy = policy;
    config.tunings = tunings;
    core_script_run(&config, script);
}

/* One node of 10: 1 runs until 100 on 6; 2 needs 8 from then on. */
#define HEAD_WAITS                                                                                 \
    "node 1 10 1000\n"                                                                             \
    "submit 1 v=6 m=1 limit=100 -> START 1.1@1\n"                                                  \
    "running 1.1\n"                                                                                \
    "submit 2 v=8 m=1 limit=100\n"                                                                 \
    "planned 2 100\n"                                                                              \
    "why 2 resources\n"

static void easy_starts_what_ends_before_the_head(void **state)
{
    run(BERTH_POLICY_EASY, HEAD_WAITS "submit 3 v=4 m=1 limit=100 -> START 3.1@1\n"
                                      "submit 4 v=1 m=1 limit=1\n"
                                      "why 4 priority\n");
    /* It could start, and would keep the head waiting. */
    run(BERTH_POLICY_EASY, HEAD_WAITS "submit 3 v=4 m=1 limit=101\n"
                                      "why 3 room-kept\n");
}

static void easy_holds_what_would_delay_the_head(void **state)
{
    run(BERTH_POLICY_EASY, HEAD_WAITS "submit 3 v=4 m=1 limit=101\n"
                                      "submit 4 v=3 m=1 limit=1000\n"
                                      "planned 3 never\n");
}

static void easy_starts_long_jobs_beside_the_head(void **state)
{
    run(BERTH_POLICY_EASY, HEAD_WAITS "submit 3 v=2 m=1 limit=1000 -> START 3.1@1\n"
                                      "submit 4 v=1 m=1 limit=1000\n");
}

static void easy_knows_memory_too(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 10 1000\n"
                           "submit 1 v=1 m=600 limit=100 -> START 1.1@1\n"
                           "submit 2 v=1 m=700 limit=100\n"
                           "planned 2 100\n"
                           "submit 3 v=1 m=301 limit=200\n"
                           "submit 4 v=1 m=300 limit=200 -> START 4.1@1\n");
}

/* 3 may delay 4 under EASY, and not under conservative backfill. */
static void conservative_keeps_every_planned_start(void **state)
{
    const char *script = HEAD_WAITS "submit 3 v=10 m=1 limit=50\n"
                                    "submit 4 v=2 m=1 limit=";
    g_autofree char *easy = g_strconcat(script, "1000 -> START 4.1@1\n", NULL);
    run(BERTH_POLICY_EASY, easy);
    g_autofree char *held = g_strconcat(script, "201\nplanned 3 200\nplanned 4 250\n", NULL);
    run(BERTH_POLICY_CONSERVATIVE, held);
    g_autofree char *fits = g_strconcat(script, "200 -> START 4.1@1\nplanned 3 200\n", NULL);
    run(BERTH_POLICY_CONSERVATIVE, fits);
}

/* As it comes, berthd plans for one. */
/* 2, 4 and 6 need the large node, which is away. */
static void what_can_never_start_ends_no_plan(void **state)
{
    run(BERTH_POLICY_CONSERVATIVE, "node 1 4 1000\n"
                                   "node 2 8 1000\n"
                                   "left 2\n"
                                   "submit 1 v=4 limit=100 -> START 1.1@1\n"
                                   "running 1.1\n"
                                   "submit 2 v=8\n"
                                   "submit 3 v=4 limit=50\n"
                                   "submit 4 v=5\n"
                                   "submit 5 v=2 limit=60\n"
                                   "submit 6 v=6 nodes=2\n"
                                   "submit 7 v=2 limit=60\n"
                                   "planned 2 never\n"
                                   "planned 3 100\n"
                                   "planned 4 never\n"
                                   "planned 5 150\n"
                                   "planned 6 never\n"
                                   "submit 8 v=1 limit=60\n"
                                   "planned 7 150\n"
                                   "planned 8 210\n"
                                   "node 2 8 1000 -> START 2.1@2\n"
                                   "planned 4 1000\n");
}

/* No index of the nodes, 16 bytes for each, is made for a size that none of them has. */
static void what_can_never_start_is_not_searched_for(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    g_autoptr(BerthCore) core = berth_core_new(&config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED};
    for (guint32 i = 0; i < 1000; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        join.node = berth_core_add_node(core, name);
        join.joined.info.capacity = (BerthResources){i == 0 ? 8 : 4, 1000, 0};
        assert_true(berth_core_handle(core, 1, &join, effects, NULL));
    }
    BerthCoreEvent left = {.kind = BERTH_EVENT_NODE_LEFT, .node = 1};
    assert_true(berth_core_handle(core, 2, &left, effects, NULL));
    gsize before = berth_core_memory_bytes(core);
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    submit.submitted = (BerthCoreJob){.id = 1, .resources = {8, 100, 0}};
    assert_true(berth_core_handle(core, 3, &submit, effects, NULL));
    assert_in_range(berth_core_memory_bytes(core) - before, 1, 1100);
}

typedef struct {
    gsize counted; /* as the core says */
    gsize held;    /* as the allocator says, with its own overhead */
} Grown;

/* What the core grows by as it is given 1000 of EVENT, whose jobs and numbers MAKE sets. */
static Grown grow_by(BerthCore *core, BerthCoreEvent *event,
                     void (*make)(BerthCoreEvent *event, guint64 n))
{
    enum { N = 1000 };
    static guint64 n = 0;
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    struct mallinfo2 before = mallinfo2();
    Grown grown = {.counted = berth_core_memory_bytes(core)};
    for (guint i = 0; i < N; i++) {
        make(event, ++n);
        assert_true(berth_core_handle(core, 1, event, effects, NULL));
        berth_core_effects_clear(effects);
    }
    grown.counted = (berth_core_memory_bytes(core) - grown.counted) / N;
    grown.held = (mallinfo2().uordblks - before.uordblks) / N;
    return grown;
}

static void make_user(BerthCoreEvent *event, guint64 n)
{
    event->user_set.uid = (guint32)n;
}

static void make_plain(BerthCoreEvent *event, guint64 n)
{
    event->submitted.id = n;
}

static void make_named(BerthCoreEvent *event, guint64 n)
{
    event->submitted.id = event->submitted.family = n;
}

/* Each after one of its own. */
static void make_dependent(BerthCoreEvent *event, guint64 n)
{
    static BerthCoreDependency after = {.kind = BERTH_AFTER_ANY};
    after.job = n - 1;
    event->submitted.id = n;
    event->submitted.dependencies = &after;
    event->submitted.n_dependencies = 1;
}

/* Nothing that grows with users and jobs is left out, and nothing is counted that is not there. */
static void memory_of_owners_families_and_dependents_is_counted(void **state)
{
    static void (*const makes[])(BerthCoreEvent * event, guint64 n) = {make_user, make_plain,
                                                                       make_named, make_dependent};
    g_autoptr(BerthCore) core = berth_core_new(&core_script_config);
    for (guint i = 0; i < G_N_ELEMENTS(makes); i++) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_USER_SET};
        if (makes[i] != make_user) {
            event.kind = BERTH_EVENT_JOB_SUBMITTED;
            event.submitted =
                (BerthCoreJob){.uid = 7, .resources = {1, 100, 0}, .held = TRUE, .guests = 1};
        }
        Grown grown = grow_by(core, &event, makes[i]);
        print_message("%zu bytes counted of %zu\n", grown.counted, grown.held);
        if (grown.held > 0) /* else the allocator is another one, that does not say */
            assert_in_range(grown.counted, grown.held * 3 / 4, grown.held);
    }
}

static void default_depth_is_that_of_easy(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    core_script_run(&config, HEAD_WAITS "submit 3 v=10 m=1 limit=50\n"
                                        "planned 3 never\n"
                                        "submit 4 v=2 m=1 limit=1000 -> START 4.1@1\n");
}

static void conservative_moves_plans_up_when_a_job_ends_early(void **state)
{
    run(BERTH_POLICY_CONSERVATIVE, HEAD_WAITS "submit 3 v=10 m=1 limit=50\n"
                                              "planned 3 200\n"
                                              "at 40\n"
                                              "exited 1.1 -> RELEASE 1.1@1\n"
                                              "released 1.1 -> START 2.1@1\n"
                                              "planned 2 never\n"
                                              "planned 3 140\n");
}

static void conservative_uses_the_gap_on_another_node(void **state)
{
    run(BERTH_POLICY_CONSERVATIVE, "node 1 4 1000\n"
                                   "node 2 4 1000\n"
                                   "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"
                                   "submit 2 v=4 m=1 limit=50 -> START 2.1@2\n"
                                   "submit 3 v=4 m=1 limit=100\n"
                                   "planned 3 50\n"
                                   "submit 4 v=4 m=1 limit=10\n"
                                   "planned 4 100\n"
                                   "submit 5 v=4 m=1 limit=10 nodes=2\n"
                                   "planned 5 150\n");
}

static void overstaying_job_does_not_end_the_plan(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "submit 1 v=4 m=1 limit=10 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=3 m=1 limit=10\n"
                           "planned 2 10\n"
                           "at 10\n"
                           "timer -> STOP 1.1@1\n"
                           "at 12\n"
                           "submit 3 v=1 m=1 limit=1\n"
                           "at 15\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "released 1.1 -> START 2.1@1 START 3.1@1\n");
}

/* Two nodes of 4. 1 has ended, and is to be gone from node 1 any moment; but its host cannot remove it. 4 needs a
 * whole node. */
static void who_does_not_leave_is_thought_to_stay_as_long_again(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "node 2 4 1000\n"
                           "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=2 m=1 limit=400 -> START 2.1@2\n"
                           "running 2.1\n"
                           "submit 3 v=2 m=1 limit=500 -> START 3.1@2\n"
                           "running 3.1\n"
                           "at 50\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "submit 4 v=4 m=1 limit=100\n"
                           "next 170\n"
                           "at 170\n"
                           "timer\n"
                           "planned 4 290\n"
                           "at 290\n"
                           "timer\n"
                           "planned 4 500\n"
                           "at 399\n"
                           "exited 2.1 -> RELEASE 2.1@2\n"
                           "submit 5 v=2 m=1 limit=102\n"
                           "submit 6 v=2 m=1 limit=101\n"
                           "released 2.1 -> START 6.1@2\n"
                           "why 5 priority\n"
                           "released 1.1 -> START 4.1@1\n");
}

/* So is one whose command does not end when it is to be stopped. */
static void who_is_not_stopped_is_thought_to_stay_as_long_again(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "node 2 4 1000\n"
                           "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=4 m=1 limit=400 -> START 2.1@2\n"
                           "running 2.1\n"
                           "submit 3 v=4 m=1 limit=100\n"
                           "planned 3 100\n"
                           "at 100\n"
                           "timer -> STOP 1.1@1\n"
                           "next 220\n"
                           "at 220\n"
                           "timer\n"
                           "planned 3 340\n"
                           "at 340\n"
                           "timer\n"
                           "planned 3 400\n"
                           "at 341\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "released 1.1 -> START 3.1@1\n"
                           "next 400\n");
    /* It is stopped again after a restart, and waited for from then on. */
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "submit 1 v=4 m=1 limit=100 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=4 m=1 limit=100\n"
                           "at 100\n"
                           "timer -> STOP 1.1@1\n"
                           "restart\n"
                           "at 110\n"
                           "join 1 1.1:running -> STOP 1.1@1\n"
                           "next 230\n"
                           "at 230\n"
                           "timer\n"
                           "planned 2 350\n");
}

/* 1 runs later than it was planned to, and so does 2. */
/* What is kept for a job whose user has come to his limit is free for others at once. */
static void plan_of_who_may_run_no_more_is_dropped(void **state)
{
    run(BERTH_POLICY_EASY, "user 7 tasks=1\n"
                           "node 1 4 1000\n"
                           "node 2 1 1000\n"
                           "submit 1 v=2 limit=100 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=4 p=1 uid=7\n"
                           "submit 3 v=2 limit=1000\n"
                           "planned 2 100\n"
                           "submit 4 v=1 uid=7 nodes=2 -> START 4.1@2 START 3.1@1\n"
                           "why 2 account-limit\n");
}

static void nodes_kept_for_who_may_run_no_more_are_free_at_once(void **state)
{
    run(BERTH_POLICY_FCFS, "user 7 tasks=1\n"
                           "node 1 4 1000\n"
                           "node 2 1 1000\n"
                           "submit 1 v=2 limit=100 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=4 p=1 uid=7\n"
                           "submit 3 v=2 limit=1000\n"
                           "submit 4 v=1 uid=7 nodes=2 -> START 4.1@2 START 3.1@1\n"
                           "why 2 account-limit\n");
}

static void plan_knows_how_long_guests_booted(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 10 1000\n"
                           "submit 1 v=6 m=1 limit=100 -> START 1.1@1\n"
                           "submit 2 v=10 m=1 limit=100\n"
                           "planned 2 100\n"
                           "at 30\n"
                           "running 1.1\n"
                           "submit 3 v=4 m=1 limit=100 -> START 3.1@1\n"
                           "planned 2 130\n");
}

/* 3 waits for node 2, since 1 is on the other for long, even though it still boots. */
static void plan_knows_what_boots_across_a_restart(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "node 2 4 1000\n"
                           "submit 1 v=4 m=1 limit=10000 -> START 1.1@1\n"
                           "taken 1.1\n"
                           "submit 2 v=2 m=1 limit=100 -> START 2.1@2\n"
                           "running 2.1\n"
                           "submit 3 v=4 m=1 limit=50\n"
                           "planned 3 100\n"
                           "at 10\n"
                           "restart\n"
                           "join 2 2.1:running\n"
                           "join 1 1.1:starting -> START 1.1@1\n"
                           "planned 3 100\n"
                           "submit 4 v=2 m=1 limit=5000\n"
                           "submit 5 v=2 m=1 limit=90 -> START 5.1@2\n");
}

/* 1 is long in leaving; 2 keeps its place for longer than it will run. */
static void late_start_is_planned_again(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "submit 1 v=2 m=1 limit=100 -> START 1.1@1\n"
                           "running 1.1\n"
                           "submit 2 v=4 m=1 limit=5\n"
                           "planned 2 100\n"
                           "at 99\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "at 102\n"
                           "submit 3 v=2 m=1 limit=1000\n"
                           "at 106\n"
                           "submit 4 v=2 m=1 limit=999\n"
                           "at 200\n"
                           "submit 5 v=1 m=1 limit=1000\n"
                           "released 1.1 -> START 2.1@1\n");
}

/* Node 1 gathers room for 3, and what is left there is none for 4 to 6; node 2 is too small for 4 and
 * 5, and 6 is not to be there. */
static void room_goes_past_all_that_cannot_use_it_to_the_first_that_can(void **state)
{
    core_script_run_tuned(0, BERTH_TUNING_BACKFILL_DEPTH, 1,
                          "node 1 8 8000\n"
                          "node 2 2 1000\n"
                          "submit 1 v=1 nodes=1 limit=36000 -> START 1.1@1\n"
                          "submit 2 v=2 nodes=2 limit=3600 -> START 2.1@2\n"
                          "submit 3 v=8 nodes=1 limit=3600\n"
                          "planned 3 36000\n"
                          "submit 4 v=4 limit=72000\n"
                          "submit 5 v=1 m=1100 limit=72000\n"
                          "submit 6 v=1 nodes=1 limit=72000\n"
                          "submit 7 v=1 limit=72000\n"
                          "exited 2.1 -> RELEASE 2.1@2\n"
                          "released 2.1 -> START 7.1@2\n"
                          "submit 8 v=1 limit=72000 -> START 8.1@2\n");
}

/* The one search in vain that a pass may make of each kind goes to gang 4; 5 is not tried, but 6 is, and
 * starts as it does where no room is gathered for anybody. */
static void gangs_in_vain_are_in_no_single_guest_s_way(void **state)
{
    static const guint32 features[] = {0, BERTH_FEATURE_ALL};
    for (guint i = 0; i < G_N_ELEMENTS(features); i++)
        core_script_run_tuned(features[i], BERTH_TUNING_BACKFILL_DEPTH, 1,
                              "node 1 4 8000\n"
                              "node 2 1 1000\n"
                              "submit 1 v=4 nodes=1 limit=36000 -> START 1.1@1\n"
                              "submit 2 v=1 limit=3600 -> START 2.1@2\n"
                              "submit 3 v=4 nodes=1 limit=3600\n"
                              "planned 3 36000\n"
                              "submit 4 v=1 guests=2 limit=600\n"
                              "submit 5 v=1 guests=3 limit=600\n"
                              "submit 6 v=1 limit=600\n"
                              "exited 2.1 -> RELEASE 2.1@2\n"
                              "released 2.1 -> START 6.1@2\n");
}

static void jobs_without_limit_are_planned_for_a_day(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 4 1000\n"
                           "submit 1 v=4 m=1 limit=0 -> START 1.1@1\n"
                           "submit 2 v=4 m=1\n"
                           "planned 2 86400\n");
}

static void best_fit_leaves_the_least(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 8 8000\n"
                           "node 2 4 4000\n"
                           "node 3 4 8000\n"
                           "submit 1 v=4 m=4000 -> START 1.1@2\n"
                           "submit 2 v=2 m=5000 -> START 2.1@3\n"
                           "submit 3 v=2 m=3000 -> START 3.1@3\n"
                           "submit 4 v=2 m=3000 -> START 4.1@1\n");
}

/* --- gangs ---------------------------------------------------------------------------------- */

static void gang_starts_all_or_none(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 2 1000\n"
                           "node 2 2 1000\n"
                           "node 3 2 1000\n"
                           "submit 1 v=2 m=1 limit=100 -> START 1.1@1\n"
                           "submit 2 v=1 m=1 guests=6 limit=100\n"
                           "planned 2 100\n"
                           "submit 3 v=1 m=1 guests=4 limit=100 -> START 3.1@2 START 3+1.1@2"
                           " START 3+2.1@3 START 3+3.1@3\n"
                           "at 50\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "released 1.1\n"
                           "planned 2 100\n"
                           "submit 4 v=1 m=1 guests=7 ! so many guests\n"
                           "submit 5 v=1 m=1 guests=4 nodes=1,1 ! so many guests\n");
}

static void gang_plan_leaves_free_nodes_to_long_jobs(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 1 100\n"
                           "node 2 1 100\n"
                           "node 3 1 100\n"
                           "node 4 1 100\n"
                           "submit 1 m=1 guests=2 limit=10 -> START 1.1@1 START 1+1.1@2\n"
                           "submit 2 m=1 guests=3 limit=10\n"
                           "planned 2 10\n"
                           "submit 3 m=1 guests=2 limit=20\n"
                           "submit 4 m=1 limit=20 -> START 4.1@4\n"
                           "submit 5 m=1 limit=20\n"
                           "submit 6 m=1 limit=10 -> START 6.1@3\n");
}

static void gang_lives_and_ends_together(void **state)
{
    run(BERTH_POLICY_FCFS, "node 1 2 1000\n"
                           "node 2 2 1000\n"
                           "submit 1 v=2 m=1 guests=2 limit=100 -> START 1.1@1 START 1+1.1@2\n"
                           "running 1.1\n"
                           "? 1 RUNNING - starting\n"
                           "next never\n"
                           "running 1.1\n"
                           "running 1+1.1\n"
                           "? 1 RUNNING - running\n"
                           "next 100\n"
                           "exited 1+1.1\n"
                           "? 1 RUNNING - running\n"
                           "exited 1.1 -> RELEASE 1.1@1 RELEASE 1+1.1@2\n"
                           "? 1 COMPLETED - releasing\n"
                           "released 1.1\n"
                           "? 1 COMPLETED - releasing\n"
                           "submit 2 v=2 -> START 2.1@1\n"
                           "released 1+1.1\n"
                           "? 1 COMPLETED - none\n");
}

static void gang_ends_with_the_first_that_fails(void **state)
{
    run(BERTH_POLICY_FCFS, "node 1 2 1000\n"
                           "node 2 2 1000\n"
                           "submit 1 v=2 m=1 guests=2 -> START 1.1@1 START 1+1.1@2\n"
                           "exited 1.1\n"
                           "exited 1+1.1 status=3 -> RELEASE 1.1@1 RELEASE 1+1.1@2\n"
                           "? 1 FAILED exit-status releasing\n");
    run(BERTH_POLICY_FCFS, "node 1 2 1000\n"
                           "node 2 2 1000\n"
                           "submit 1 v=2 m=1 guests=2 -> START 1.1@1 START 1+1.1@2\n"
                           "running 1.1\n"
                           "running 1+1.1\n"
                           "cancel 1 -> STOP 1.1@1 STOP 1+1.1@2\n"
                           "exited 1.1 signal=15\n"
                           "? 1 RUNNING - stopping\n"
                           "exited 1+1.1 signal=15 -> RELEASE 1.1@1 RELEASE 1+1.1@2\n"
                           "? 1 CANCELLED cancelled-by-user releasing\n");
}

static void gang_that_lost_a_node_is_fenced_there_and_released_elsewhere(void **state)
{
    run(BERTH_POLICY_FCFS, "node 1 2 1000\n"
                           "node 2 2 1000\n"
                           "node 3 2 1000\n"
                           "submit 1 v=1 m=1 guests=3 -> START 1.1@1 START 1+1.1@1 START 1+2.1@2\n"
                           "left 1\n"
                           "at 60\n"
                           "timer -> RELEASE 1+2.1@2 FENCE 1.1@1 FENCE 1+1.1@1\n"
                           "? 1 PENDING requeued releasing\n"
                           "released 1+2.1\n"
                           "? 1 PENDING requeued fencing\n"
                           "fenced 1.1\n"
                           "fenced 1+1.1 -> START 1.2@2 START 1+1.2@2 START 1+2.2@3\n");
}

static void gang_start_that_fails_is_tried_again_as_a_whole(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 1 1000\n"
                           "node 2 1 1000\n"
                           "submit 1 m=1 guests=2 -> START 1.1@1 START 1+1.1@2\n"
                           "start-failed 1+1.1 -> RELEASE 1.1@1 RELEASE 1+1.1@2\n"
                           "released 1.1\n"
                           "released 1+1.1\n"
                           "at 4\n"
                           "timer -> START 1.2@1 START 1+1.2@2\n");
}

/* --- arrays --------------------------------------------------------------------------------- */

static void array_runs_task_by_task(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 2 1000\n"
                           "submit 1 m=1 array=4 limit=10 -> START 1.1@1 START 1/1.1@1\n"
                           "planned 1 10\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "released 1.1 -> START 1/2.1@1\n"
                           "exited 1/2.1 status=1 -> RELEASE 1/2.1@1\n"
                           "released 1/2.1 -> START 1/3.1@1\n"
                           "gone 1/1.1 guest-vanished -> RELEASE 1/1.1@1\n"
                           "submit 2 m=1 limit=1000\n"
                           "released 1/1.1 -> START 1/1.2@1\n"
                           "exited 1/1.2 -> RELEASE 1/1.2@1\n"
                           "exited 1/3.1 -> RELEASE 1/3.1@1\n"
                           "released 1/3.1 -> START 2.1@1\n"
                           "released 1/1.2\n"
                           "timer\n"
                           "? 1 -\n");
}

static void array_throttle_bounds_what_runs(void **state)
{
    run(BERTH_POLICY_EASY, "node 1 9 1000\n"
                           "submit 1 m=1 array=4 throttle=2 -> START 1.1@1 START 1/1.1@1\n"
                           "submit 2 m=1 -> START 2.1@1\n"
                           "exited 1.1 -> RELEASE 1.1@1\n"
                           "released 1.1 -> START 1/2.1@1\n");
}

static void array_of_a_million_costs_one_record(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    g_autoptr(BerthCore) core = berth_core_new(&config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    gsize before = berth_core_memory_bytes(core);
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    submit.submitted = (BerthCoreJob){.id = 1, .resources = {1, 1, 0}, .array_size = 1000000};
    assert_true(berth_core_handle(core, 1, &submit, effects, NULL));
    assert_in_range(berth_core_memory_bytes(core) - before, 1, 1100);
    BerthCoreTask task;
    assert_true(berth_core_get_task(core, 1, 999999, &task));
    assert_int_equal(task.state, BERTH_JOB_PENDING);
    assert_false(berth_core_get_task(core, 1, 1000000, &task));
    BerthCoreEvent cancel = {.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = 1}};
    assert_true(berth_core_handle(core, 2, &cancel, effects, NULL));
    BerthCoreEvent timer = {.kind = BERTH_EVENT_TIMER};
    assert_true(berth_core_handle(core, 3, &timer, effects, NULL));
    assert_false(berth_core_get_task(core, 1, 0, &task));
    berth_core_assert_invariants(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(easy_starts_what_ends_before_the_head),
        cmocka_unit_test(easy_holds_what_would_delay_the_head),
        cmocka_unit_test(easy_starts_long_jobs_beside_the_head),
        cmocka_unit_test(easy_knows_memory_too),
        cmocka_unit_test(conservative_keeps_every_planned_start),
        cmocka_unit_test(what_can_never_start_ends_no_plan),
        cmocka_unit_test(what_can_never_start_is_not_searched_for),
        cmocka_unit_test(memory_of_owners_families_and_dependents_is_counted),
        cmocka_unit_test(default_depth_is_that_of_easy),
        cmocka_unit_test(conservative_moves_plans_up_when_a_job_ends_early),
        cmocka_unit_test(conservative_uses_the_gap_on_another_node),
        cmocka_unit_test(overstaying_job_does_not_end_the_plan),
        cmocka_unit_test(plan_of_who_may_run_no_more_is_dropped),
        cmocka_unit_test(nodes_kept_for_who_may_run_no_more_are_free_at_once),
        cmocka_unit_test(plan_knows_how_long_guests_booted),
        cmocka_unit_test(plan_knows_what_boots_across_a_restart),
        cmocka_unit_test(who_does_not_leave_is_thought_to_stay_as_long_again),
        cmocka_unit_test(who_is_not_stopped_is_thought_to_stay_as_long_again),
        cmocka_unit_test(late_start_is_planned_again),
        cmocka_unit_test(room_goes_past_all_that_cannot_use_it_to_the_first_that_can),
        cmocka_unit_test(gangs_in_vain_are_in_no_single_guest_s_way),
        cmocka_unit_test(jobs_without_limit_are_planned_for_a_day),
        cmocka_unit_test(best_fit_leaves_the_least),
        cmocka_unit_test(gang_starts_all_or_none),
        cmocka_unit_test(gang_plan_leaves_free_nodes_to_long_jobs),
        cmocka_unit_test(gang_lives_and_ends_together),
        cmocka_unit_test(gang_ends_with_the_first_that_fails),
        cmocka_unit_test(gang_that_lost_a_node_is_fenced_there_and_released_elsewhere),
        cmocka_unit_test(gang_start_that_fails_is_tried_again_as_a_whole),
        cmocka_unit_test(array_runs_task_by_task),
        cmocka_unit_test(array_throttle_bounds_what_runs),
        cmocka_unit_test(array_of_a_million_costs_one_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
