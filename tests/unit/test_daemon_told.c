/* SPDX-License-Identifier: Apache-2.0 */
/* What records say of decisions for people. */
#include "scheduler/daemon/told.h"

#include "tests/lib/assert.h"

#include <string.h>

#define NOW_USEC G_GINT64_CONSTANT(1790000000000000)

typedef struct {
    BerthTaskEntry entry;
    BerthCoreTask task; /* as the core has it */
    BerthNews news;
} Told;

static int setup(void **state)
{
    Told *told = g_new0(Told, 1);
    Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    task.node = (char *)"n1";
    task.epoch = 1;
    task.state = BERTH__JOB_STATE__RUNNING;
    stored.task = &task;
    told->entry.stored = berth_pb_dup(&stored.base);
    told->task = (BerthCoreTask){.epoch = 1, .state = BERTH_JOB_RUNNING, .node = 1};
    *state = told;
    return 0;
}

static int teardown(void **state)
{
    Told *told = *state;
    berth__stored_task__free_unpacked(told->entry.stored, NULL);
    g_free(told);
    return 0;
}

static Berth__Task *record_of(Told *told)
{
    return told->entry.stored->task;
}

static void take(Told *told, const char *node)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.memory_mib = 512;
    berth_told_take(&job, &told->entry, &told->task, node, NOW_USEC, &told->news);
    record_of(told)->epoch = told->task.epoch;
    told->entry.stored->checkpoint_missed_usec = (guint64)told->task.checkpoint_missed_usec;
    told->entry.stored->drain_missed_usec = (guint64)told->task.drain_missed_usec;
    berth_pb_set_string(&record_of(told)->node, node);
}

static void begin_move(Told *told)
{
    Berth__MigrationProgress progress = BERTH__MIGRATION_PROGRESS__INIT;
    progress.to = (char *)"n2";
    progress.reason = BERTH__REASON__REASON_PRESSURE;
    record_of(told)->migration = berth_pb_dup(&progress.base);
}

static void assert_moved(Told *told, const char *from, const char *to, Berth__Reason reason,
                         gboolean from_checkpoint)
{
    const Berth__Move *moved = record_of(told)->moved;
    assert_non_null(moved);
    assert_string_equal(moved->from, from);
    assert_string_equal(moved->to, to);
    assert_int_equal(moved->reason, reason);
    assert_int_equal(moved->from_checkpoint, from_checkpoint);
    assert_int_equal(moved->time_usec, NOW_USEC);
}

static void move_is_noted_when_it_is_done(void **state)
{
    Told *told = *state;
    begin_move(told);
    take(told, "n1");
    assert_null(record_of(told)->moved);
    take(told, "n2");
    assert_moved(told, "n1", "n2", BERTH__REASON__REASON_PRESSURE, FALSE);
}

static void restore_is_a_move_and_a_new_start_is_none(void **state)
{
    Told *told = *state;
    record_of(told)->reason = BERTH__REASON__REASON_EVICTED;
    told->task.epoch = 2;
    told->task.checkpoint_epoch = 1;
    take(told, "n3");
    assert_moved(told, "n1", "n3", BERTH__REASON__REASON_EVICTED, TRUE);
    take(told, "n3"); /* nothing new */
    assert_moved(told, "n1", "n3", BERTH__REASON__REASON_EVICTED, TRUE);
    told->task.epoch = 3;
    told->task.checkpoint_epoch = 0;
    take(told, "n1");
    assert_null(record_of(told)->moved);
}

static void restore_that_is_tried_again_is_the_same_move(void **state)
{
    Told *told = *state;
    record_of(told)->reason = BERTH__REASON__REASON_EVICTED;
    told->task.epoch = 2;
    told->task.checkpoint_epoch = 1;
    take(told, "n3");
    record_of(told)->reason = BERTH__REASON__REASON_STARTING_LATER;
    told->entry.stored->start_failures = 1;
    told->task.epoch = 3;
    take(told, "n4");
    assert_moved(told, "n1", "n4", BERTH__REASON__REASON_EVICTED, TRUE);
    record_of(told)->reason = BERTH__REASON__REASON_EVICTED; /* it has run there */
    told->entry.stored->start_failures = 0;
    told->task.epoch = 4;
    take(told, "n5");
    assert_moved(told, "n4", "n5", BERTH__REASON__REASON_EVICTED, TRUE);
}

static void shortage_is_news_once_for_each_size(void **state)
{
    static const struct {
        guint64 memory_mib; /* 0 = as its job reserves */
        guint32 epoch;
        gboolean is_short, is_news;
    } steps[] = {
        {0, 1, FALSE, FALSE}, {0, 1, TRUE, TRUE},     {0, 1, TRUE, FALSE},
        {0, 1, FALSE, FALSE}, {0, 1, TRUE, FALSE},    {768, 1, FALSE, FALSE},
        {768, 1, TRUE, TRUE}, {768, 2, FALSE, FALSE}, {768, 2, TRUE, TRUE},
    };
    Told *told = *state;
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        told->task.resources.memory_mib = steps[i].memory_mib;
        told->task.epoch = steps[i].epoch;
        told->task.short_usec = steps[i].is_short ? 5 : 0;
        take(told, "n1");
        if (told->news.is_short != steps[i].is_news)
            fail_msg("step %u", i);
        assert_int_equal(record_of(told)->short_usec, steps[i].is_short ? 5 : 0);
    }
}

static void short_job_is_told_why_it_gets_no_more(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    job.memory_mib = 512;
    g_autofree char *all = berth_told_short(&job, &task);
    assert_string_equal(all, "its 512M of memory are too little, and all that it may have "
                             "(--memory-max): it goes on, slowly");
    job.memory_max_mib = 2048;
    task.memory_mib = 1024;
    g_autofree char *full = berth_told_short(&job, &task);
    assert_string_equal(
        full, "its 1G of memory are too little; of the 2G that it may have there is no room "
              "for more where it is, nor on another node that it could be moved to: it goes "
              "on, slowly, and is grown as soon as there is");
}

static void reports_kills(Told *told, guint32 kills)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    Berth__Task *task = record_of(told);
    usage.oom_kills = kills;
    if (task->usage)
        berth__usage__free_unpacked(task->usage, NULL);
    task->usage = berth_pb_dup(&usage.base);
}

static void kills_are_told_with_what_helps(void **state)
{
    Told *told = *state;
    Berth__Job job = BERTH__JOB__INIT;
    job.memory_mib = 512;
    assert_null(berth_told_kills(&job, &told->entry, NOW_USEC)); /* it was never measured */
    reports_kills(told, 0);
    assert_null(berth_told_kills(&job, &told->entry, NOW_USEC));
    reports_kills(told, 1);
    g_autofree char *all = berth_told_kills(&job, &told->entry, NOW_USEC);
    assert_string_equal(all, "its guest's kernel ended 1 process, as its 512M of memory are too "
                             "little, and all that it may have: submit it with more --memory, or "
                             "with --memory-max, up to which it is given more while it runs");
    assert_int_equal(told->entry.stored->oom_told, 1);
    told->entry.kills_tellings = 0;
    job.memory_max_mib = 2048;
    record_of(told)->memory_mib = 1024;
    reports_kills(told, 3);
    g_autofree char *some = berth_told_kills(&job, &told->entry, NOW_USEC);
    assert_string_equal(some,
                        "its guest's kernel ended 2 processes (3 in all), as its 1G of memory "
                        "are too little: berth resize --memory gives it more while it runs, "
                        "up to 2G");
}

/* A guest reports a kill a second for a week. What is told of is all, however late. */
static void kills_are_told_of_ever_less_often(void **state)
{
    static const guint told_at[] = {1, 61, 181, 421, 901, 1861, 3781, 7621, 15301, 30661, 61381};
    const guint last = 61381, pause = 61440, week = 7 * 24 * 3600;
    Told *told = *state;
    Berth__Job job = BERTH__JOB__INIT;
    guint n = 0;
    for (guint second = 1; second <= week; second++) {
        reports_kills(told, second);
        g_autofree char *text =
            berth_told_kills(&job, &told->entry, NOW_USEC + second * (gint64)G_USEC_PER_SEC);
        if (!text)
            continue;
        guint expected = n < G_N_ELEMENTS(told_at)
                             ? told_at[n]
                             : last + (n + 1 - (guint)G_N_ELEMENTS(told_at)) * pause;
        assert_int_equal(second, expected);
        assert_int_equal(told->entry.stored->oom_told, second);
        n++;
    }
    assert_int_equal(n, 11 + (week - last) / pause);
}

/* It tells less than before, or as much as ever can be: there is no more to come of it. */
static void kills_that_a_guest_makes_up_are_told_once(void **state)
{
    Told *told = *state;
    Berth__Job job = BERTH__JOB__INIT;
    reports_kills(told, G_MAXUINT32);
    g_autofree char *most = berth_told_kills(&job, &told->entry, NOW_USEC);
    assert_non_null(most);
    for (gint64 hour = 1; hour < 100; hour++) {
        reports_kills(told, hour % 2 == 0 ? 3 : G_MAXUINT32);
        assert_null(berth_told_kills(&job, &told->entry, NOW_USEC + hour * 3600 * G_USEC_PER_SEC));
    }
}

static void shortage_is_told_with_its_amounts(void **state)
{
    static const struct {
        BerthCoreNode node;
        gboolean for_room;
        const char *text;
    } cases[] = {
        {{.predicted_mib = 1380, .available_mib = 2000},
         FALSE,
         "1380M of 1450M, of which 145M are to stay free"},
        {{.predicted_mib = 1200, .extra_mib = 180},
         FALSE,
         "1200M, and occupy 180M beyond that, of 1450M, of which 145M are to stay free"},
        {{.predicted_mib = 1200, .ahead_mib = 300},
         FALSE,
         "1200M of 1450M, of which 145M are to stay free; those that grow will have taken 300M "
         "more before one has left"},
        {{.predicted_mib = 1200, .available_mib = 70},
         FALSE,
         "1200M of 1450M, of which 145M are to stay free; its host has 70M available"},
        {{.predicted_mib = 1200, .available_mib = 2000, .host_is_pressed = TRUE},
         FALSE,
         "1200M of 1450M, of which 145M are to stay free; tasks of its host stall for want of "
         "memory"},
        {{.predicted_mib = 1500, .ahead_mib = 300, .available_mib = 2000}, TRUE, "1500M of 1450M"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthCoreNode node = cases[i].node;
        node.capacity.memory_mib = 1450;
        node.headroom_mib = 145;
        g_autofree char *text = berth_told_shortage(&node, cases[i].for_room);
        g_autofree char *expected =
            g_strdup_printf("the node's guests%s are predicted to need %s",
                            cases[i].for_room ? ", with who needs the room," : "", cases[i].text);
        assert_string_equal(text, expected);
    }
}

#define AT(seconds) ((gint64)(1000 + (seconds)) * G_USEC_PER_SEC)

/* Once a minute at most, its end only if its begin was, and neither when it is away. */
static void shortage_is_told_when_it_begins_and_ends(void **state)
{
    static const struct {
        gint64 at_usec;
        BerthNodeState state;
        gboolean is_short, is_news;
    } steps[] = {
        {AT(0), BERTH_NODE_UP, FALSE, FALSE},  {AT(1), BERTH_NODE_UP, TRUE, TRUE},
        {AT(2), BERTH_NODE_UP, TRUE, FALSE},   {AT(3), BERTH_NODE_UP, FALSE, TRUE},
        {AT(4), BERTH_NODE_UP, TRUE, FALSE},   {AT(5), BERTH_NODE_UP, FALSE, FALSE},
        {AT(62), BERTH_NODE_UP, TRUE, TRUE},   {AT(63), BERTH_NODE_DOWN, TRUE, FALSE},
        {AT(64), BERTH_NODE_UP, FALSE, FALSE}, {AT(200), BERTH_NODE_UP, TRUE, TRUE},
    };
    BerthNodeEntry entry = {0};
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        BerthCoreNode node = {.state = steps[i].state, .is_short = steps[i].is_short};
        assert_int_equal(berth_told_shortage_is_news(&entry, &node, steps[i].at_usec),
                         steps[i].is_news);
    }
}

/* --- a node that is pressed ------------------------------------------------------------------- */

typedef struct {
    BerthCore *core;
    BerthCoreEffects *effects; /* of the latest event */
    gint64 now_usec;
} Pressed;

static void handle(Pressed *pressed, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(pressed->effects);
    assert_true(
        berth_core_handle(pressed->core, pressed->now_usec, event, pressed->effects, &error));
    assert_no_error(error);
}

static void pressed_init(Pressed *pressed)
{
    const BerthCoreConfig config = {.node_timeout_usec = 60 * (gint64)G_USEC_PER_SEC,
                                    .policy = BERTH_POLICY_CONSERVATIVE,
                                    .features = BERTH_FEATURE_OPPORTUNISTIC |
                                                BERTH_FEATURE_CHECKPOINT |
                                                BERTH_FEATURE_PREDICTION};
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED};
    *pressed = (Pressed){berth_core_new(&config), berth_core_effects_new(), NOW_USEC};
    join.node = berth_core_add_node(pressed->core, "n1");
    join.joined.info.capacity = (BerthResources){4, 1000, 0};
    berth_core_resume(pressed->core, pressed->now_usec, pressed->effects);
    handle(pressed, &join);
}

/* It runs, has settled, and uses 300 MiB; backed if all of the node's vCPUs are still free. */
static void pressed_run(Pressed *pressed, guint64 job, BerthResources resources)
{
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    BerthCoreEvent running = {
        .kind = BERTH_EVENT_GUEST_RUNNING, .guest = {.job = job, .epoch = 1}, .node = 1};
    BerthCoreEvent report = running;
    submit.submitted = (BerthCoreJob){
        .id = job, .resources = resources, .may_checkpoint = TRUE, .opportunistic = TRUE};
    running.running.start_usec = pressed->now_usec;
    report.kind = BERTH_EVENT_GUEST_REPORTED;
    report.usage = (BerthCoreUsage){.cpu_milli = 100,
                                    .memory_used_mib = 300,
                                    .memory_available_mib = resources.memory_mib - 300};
    handle(pressed, &submit);
    handle(pressed, &running);
    pressed->now_usec += 3600 * (gint64)G_USEC_PER_SEC;
    handle(pressed, &report);
}

/* What is told is what the core decides by: the amounts that the node has then, and nothing of whose they are. */
static void who_leaves_a_pressed_node_is_told_its_amounts(void **state)
{
    Pressed pressed;
    BerthCoreEvent report = {.kind = BERTH_EVENT_NODE_REPORTED, .node = 1};
    BerthCoreNode node;
    pressed_init(&pressed);
    pressed_run(&pressed, 1, (BerthResources){4, 800, 0});
    pressed_run(&pressed, 2, (BerthResources){1, 310, 0});
    report.node_usage.memory_available_mib = 20;
    handle(&pressed, &report);
    assert_int_equal(pressed.effects->actions->len, 1);
    BerthCoreAction action = g_array_index(pressed.effects->actions, BerthCoreAction, 0);
    assert_int_equal(action.kind, BERTH_ACTION_CHECKPOINT);
    assert_true(berth_core_get_node(pressed.core, 1, &node));
    g_autofree char *cause = berth_told_cause(pressed.core, &action);
    g_autofree char *expected = g_strdup_printf(
        "the node's guests are predicted to need %" G_GUINT64_FORMAT "M of 1000M, of which 100M "
        "are to stay free; its host has 20M available",
        node.predicted_mib);
    assert_true(node.predicted_mib >= 600 && node.predicted_mib < 1000);
    assert_string_equal(cause, expected);
    action.reason = BERTH_REASON_STARVED;
    g_autofree char *starved = berth_told_cause(pressed.core, &action);
    assert_string_equal(starved, "it could run, and had no CPU, for 0.0 % of the time");
    action.reason = BERTH_REASON_BALANCE;
    g_autofree char *balance = berth_told_cause(pressed.core, &action);
    assert_string_equal(balance, "");
    action.kind = BERTH_ACTION_RESIZE;
    action.reason = BERTH_REASON_PRESSURE;
    g_autofree char *balloon = berth_told_cause(pressed.core, &action);
    assert_string_equal(balloon, "");
    berth_core_free(pressed.core);
    berth_core_effects_free(pressed.effects);
}

static void missed_checkpoint_is_told_by_what_it_was_for(void **state)
{
    Told *told = *state;
    told->task.checkpoint_missed_usec = 7;
    take(told, "n1");
    assert_true(told->news.is_missed);
    assert_false(told->news.is_unsaved);
    assert_string_equal(record_of(told)->unsaved_text, "");
    told->task.checkpoint_missed_usec = 8;
    told->task.stop_reason = BERTH_REASON_TIME_LIMIT;
    take(told, "n1");
    assert_false(told->news.is_missed);
    assert_true(told->news.is_unsaved);
    assert_non_null(strstr(record_of(told)->unsaved_text, "checkpoint_space_mib"));
    take(told, "n1");
    assert_false(told->news.is_unsaved);
    assert_false(told->news.is_drain_missed);
    told->task.drain_missed_usec = 9;
    take(told, "n1");
    assert_true(told->news.is_drain_missed);
    assert_false(told->news.is_missed || told->news.is_unsaved);
    take(told, "n1");
    assert_false(told->news.is_drain_missed);
    told->entry.stored->freeze_to_disk = TRUE;
    told->task.freeze_reason = BERTH_REASON_FROZEN_BY_USER;
    told->task.stop_reason = BERTH_REASON_NONE;
    told->task.checkpoint_missed_usec = 10;
    take(told, "n1");
    assert_int_equal(told->news.not_to_disk, BERTH_REASON_FROZEN_BY_USER);
    assert_false(told->news.is_missed || told->news.is_unsaved);
    take(told, "n1");
    assert_int_equal(told->news.not_to_disk, BERTH_REASON_NONE);
    told->task.stop_reason = BERTH_REASON_TIME_LIMIT;
    told->task.checkpoint_missed_usec = 11;
    take(told, "n1");
    told->task.state = BERTH_JOB_TIMEOUT; /* it stays with what has ended */
    told->task.stop_reason = BERTH_REASON_NONE;
    take(told, "n1");
    assert_non_null(strstr(record_of(told)->unsaved_text, "checkpoint_space_mib"));
    told->task.state = BERTH_JOB_RUNNING; /* it was extended, and goes on */
    take(told, "n1");
    assert_string_equal(record_of(told)->unsaved_text, "");
}

#define TOLD(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortage_is_told_when_it_begins_and_ends),
        TOLD(move_is_noted_when_it_is_done),
        TOLD(restore_is_a_move_and_a_new_start_is_none),
        TOLD(restore_that_is_tried_again_is_the_same_move),
        TOLD(shortage_is_news_once_for_each_size),
        cmocka_unit_test(short_job_is_told_why_it_gets_no_more),
        TOLD(kills_are_told_with_what_helps),
        TOLD(kills_are_told_of_ever_less_often),
        TOLD(kills_that_a_guest_makes_up_are_told_once),
        cmocka_unit_test(shortage_is_told_with_its_amounts),
        cmocka_unit_test(who_leaves_a_pressed_node_is_told_its_amounts),
        TOLD(missed_checkpoint_is_told_by_what_it_was_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
