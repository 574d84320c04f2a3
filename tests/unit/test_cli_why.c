/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of `berth why`. */
#include "cli/why_events.h"
#include "cli/why_words.h"

#include "tests/lib/assert.h"

#include <string.h>

#define NOW_USEC (G_GUINT64_CONSTANT(1772366405) * G_USEC_PER_SEC) /* 2026-03-01 12:00:05 UTC */
#define SEC      ((guint64)G_USEC_PER_SEC)

static char *now_text(const Berth__Job *job, const Berth__Task *task, const Berth__Explanation *why)
{
    g_autoptr(GPtrArray) lines = berth_why_now(job, task, why);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

static void waiting_job_is_told_what_it_waits_for(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    Berth__Explanation__Leaving leaving = BERTH__EXPLANATION__LEAVING__INIT;
    Berth__Explanation__Leaving *leavings[] = {&leaving};
    Berth__Explanation__Hindrance busy = BERTH__EXPLANATION__HINDRANCE__INIT;
    Berth__Explanation__Hindrance pressed = BERTH__EXPLANATION__HINDRANCE__INIT;
    Berth__Explanation__Hindrance *hindrances[] = {&busy, &pressed};
    char *nodes[] = {(char *)"n2"};
    guint64 before[] = {4, 7};
    task.state = BERTH__JOB_STATE__PENDING;
    why.now_usec = NOW_USEC;
    why.reason = BERTH__REASON__REASON_RESOURCES;
    why.guests = 1;
    why.need_vcpus = 1;
    why.need_mib = 2048;
    why.nodes_open = 2;
    why.nearest = (char *)"n1";
    why.nearest_vcpus = 3;
    why.nearest_mib = 512;
    why.jobs_before = 3;
    why.before = before;
    why.n_before = 2;
    why.planned_usec = NOW_USEC + 120 * SEC;
    why.planned_nodes = nodes;
    why.n_planned_nodes = 1;
    leaving.job = 3;
    leaving.node = (char *)"n2";
    leaving.time_usec = NOW_USEC + 119 * SEC;
    why.leavings = leavings;
    why.n_leavings = 1;
    why.slack = BERTH__EXPLANATION__SLACK__SLACK_NO_ROOM;
    busy.kind = BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_CPU;
    busy.nodes = 1;
    pressed.kind = BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_PRESSED;
    pressed.nodes = 2;
    why.hindrances = hindrances;
    why.n_hindrances = G_N_ELEMENTS(hindrances);
    why.slack_need_milli = 1500;
    why.slack_need_mib = 700;
    why.next_look_usec = NOW_USEC + 30 * SEC;
    g_autofree char *text = now_text(&job, &task, &why);
    assert_string_equal(
        text,
        "It waits: no node has room for it now.\n"
        "3 jobs are before it in the order: 4, 7, and others.\n"
        "It needs 1 vCPU and 2G free on one of 2 nodes; of these n1 comes nearest, with 3 vCPUs "
        "and "
        "512M free.\n"
        "It is planned to start on n2 at 12:02:05, in 00:02:00, at the latest, if nobody comes "
        "before it.\n"
        "By then job 3 leaves n2: 12:02:04 at the latest.\n"
        "In slack, too, there is no room: it is thought to need 1.5 vCPUs and 700M; of the nodes "
        "that it may use, 1 is predicted to leave less CPU idle, 2 were short of memory lately, or "
        "about to be.\n"
        "Room is looked for whenever a job or a node comes or goes, and at 12:00:35, in 00:00:30, "
        "in "
        "any case.");
    why.plan_may_be_put_off = TRUE;
    g_autofree char *gathered = now_text(&job, &task, &why);
    assert_non_null(strstr(gathered,
                           "\nIt is planned to start on n2 at 12:02:05, in 00:02:00; jobs "
                           "that cannot run in slack may put that off.\n"));
}

static void tasks_that_leave_are_named(void **state)
{
    static const struct {
        guint64 job;
        guint32 task;
        const char *node;
        guint in_sec;
    } leaving[] = {{28, 0, "n2", 60}, {28, 1, "n2", 60}, {28, 2, "n2", 60}, {28, 4, "n2", 61},
                   {28, 0, "n3", 61}, {30, 0, "n3", 61}, {30, 0, "n3", 61}};
    Berth__Explanation__Leaving all[G_N_ELEMENTS(leaving)], *leavings[G_N_ELEMENTS(leaving)];
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    for (gsize i = 0; i < G_N_ELEMENTS(leaving); i++) {
        berth__explanation__leaving__init(&all[i]);
        all[i].job = leaving[i].job;
        all[i].task = leaving[i].task;
        all[i].node = (char *)leaving[i].node;
        all[i].time_usec = NOW_USEC + leaving[i].in_sec * SEC;
        leavings[i] = &all[i];
    }
    task.state = BERTH__JOB_STATE__PENDING;
    why.now_usec = NOW_USEC;
    why.reason = BERTH__REASON__REASON_RESOURCES;
    why.planned_usec = NOW_USEC + 120 * SEC;
    why.leavings = leavings;
    why.n_leavings = G_N_ELEMENTS(leavings);
    g_autofree char *text = now_text(&job, &task, &why);
    assert_non_null(strstr(text, "before it.\n"
                                 "By then job 28[0-2] leaves n2: 12:01:05 at the latest.\n"
                                 "By then job 28[4] leaves n2: 12:01:06 at the latest.\n"
                                 "By then job 28[0] leaves n3: 12:01:06 at the latest.\n"
                                 "By then job 30 leaves n3: 12:01:06 at the latest.\n"
                                 "Room is looked for"));
}

static void job_that_names_a_drained_node_is_told_so(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    Berth__Explanation__Closed drained = BERTH__EXPLANATION__CLOSED__INIT;
    Berth__Explanation__Closed down = BERTH__EXPLANATION__CLOSED__INIT;
    Berth__Explanation__Closed *closed[] = {&drained, &down};
    task.state = BERTH__JOB_STATE__PENDING;
    why.reason = BERTH__REASON__REASON_NODE_UNAVAILABLE;
    why.closed = closed;
    why.n_closed = G_N_ELEMENTS(closed);
    drained.node = (char *)"n1";
    drained.state = BERTH__NODE_STATE__NODE_UP;
    drained.reason = (char *)"drained by root: its fan is loud";
    down.node = (char *)"n2";
    down.state = BERTH__NODE_STATE__NODE_DOWN;
    g_autofree char *text = now_text(&job, &task, &why);
    assert_non_null(strstr(text, "\nOf the nodes that it may use (--node), n1 takes no guests now: "
                                 "drained by root: its fan is loud.\n"
                                 "Of the nodes that it may use (--node), n2 takes no guests now: "
                                 "down.\n"));
    assert_null(strstr(text, " more of them "));
    why.nodes_closed = 40;
    g_autofree char *many = now_text(&job, &task, &why);
    assert_non_null(strstr(many, " now: down.\nAnd 38 more of them take no guests now: berth node "
                                 "ls says why.\n"));
    why.nodes_closed = 3;
    g_autofree char *one = now_text(&job, &task, &why);
    assert_non_null(strstr(one, "\nAnd 1 more of them takes no guests now: "));
}

static void held_job_is_not_told_of_room(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    task.state = BERTH__JOB_STATE__PENDING;
    task.reason_text = (char *)"held by its user; berth release lets it go";
    why.reason = BERTH__REASON__REASON_HELD_BY_USER;
    why.slack = BERTH__EXPLANATION__SLACK__SLACK_ROOM;
    g_autofree char *text = now_text(&job, &task, &why);
    assert_string_equal(text, "It waits: its user holds it. That is: held by its user; berth "
                              "release lets it go.");
}

static void job_that_moves_to_a_node_that_is_away_is_told_so(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__MigrationProgress move = BERTH__MIGRATION_PROGRESS__INIT;
    move.to = (char *)"n2";
    move.reason = BERTH__REASON__REASON_MOVED_BY_USER;
    task.state = BERTH__JOB_STATE__RUNNING;
    task.node = (char *)"n1";
    task.migration = &move;
    task.away_usec = NOW_USEC - 60 * SEC;
    task.away_node = (char *)"n1";
    g_autofree char *here = now_text(&job, &task, NULL);
    assert_null(strstr(here, "has no session"));
    task.away_node = (char *)"n2";
    g_autofree char *there = now_text(&job, &task, NULL);
    assert_non_null(strstr(there, "It is being moved to n2: "));
    assert_non_null(strstr(there, "\nn2 has no session since "));
}

static void job_that_comes_after_others_is_told_of_them(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Dependency named = BERTH__DEPENDENCY__INIT, old = BERTH__DEPENDENCY__INIT;
    Berth__Dependency siblings = BERTH__DEPENDENCY__INIT, like = BERTH__DEPENDENCY__INIT;
    Berth__Dependency *dependencies[] = {&named, &old, &siblings, &like};
    named.kind = BERTH__DEPENDENCY__KIND__AFTER_OK;
    named.job = 12;
    named.state = BERTH__JOB_STATE__RUNNING;
    old.kind = BERTH__DEPENDENCY__KIND__AFTER_ANY;
    old.job = 3;
    siblings.kind = BERTH__DEPENDENCY__KIND__SINGLETON;
    like.kind = BERTH__DEPENDENCY__KIND__AFTER_CORR;
    like.job = 14;
    like.state = BERTH__JOB_STATE__RUNNING;
    task.index = 7;
    spec.dependencies = dependencies;
    spec.n_dependencies = 4;
    job.spec = &spec;
    task.state = BERTH__JOB_STATE__PENDING;
    task.reason = BERTH__REASON__REASON_DEPENDENCY;
    g_autofree char *text = now_text(&job, &task, NULL);
    assert_non_null(
        strstr(text, "\nIt comes afterok:12 (RUNNING), afterany:3 (ended long ago), singleton, "
                     "aftercorr:14[7] (job 14 is RUNNING)."));
}

static void each_answer_about_slack_has_a_sentence(void **state)
{
    const ProtobufCEnumDescriptor *all = &berth__explanation__slack__descriptor;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < all->n_values; i++) {
        Berth__Job job = BERTH__JOB__INIT;
        Berth__Task task = BERTH__TASK__INIT;
        Berth__Explanation why = BERTH__EXPLANATION__INIT;
        task.state = BERTH__JOB_STATE__PENDING;
        why.reason = BERTH__REASON__REASON_RESOURCES;
        why.slack = (Berth__Explanation__Slack)all->values[i].value;
        g_autofree char *text = now_text(&job, &task, &why);
        if (why.slack == BERTH__EXPLANATION__SLACK__SLACK_OFF)
            assert_non_null(strstr(text, "slack = yes in [guests] and kind = rbd in [storage]"));
        assert_true(g_hash_table_add(seen, g_steal_pointer(&text)));
    }
}

static void each_hindrance_has_words_for_one_node_and_for_several(void **state)
{
    const ProtobufCEnumDescriptor *all = &berth__explanation__hindrance__kind__descriptor;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Berth__Explanation__Hindrance hindrance = BERTH__EXPLANATION__HINDRANCE__INIT;
    Berth__Explanation__Hindrance *hindrances[] = {&hindrance};
    for (guint i = 1; i < 2 * all->n_values; i++) {
        Berth__Job job = BERTH__JOB__INIT;
        Berth__Task task = BERTH__TASK__INIT;
        Berth__Explanation why = BERTH__EXPLANATION__INIT;
        task.state = BERTH__JOB_STATE__PENDING;
        why.reason = BERTH__REASON__REASON_RESOURCES;
        why.slack = BERTH__EXPLANATION__SLACK__SLACK_NO_ROOM;
        why.hindrances = hindrances;
        why.n_hindrances = 1;
        hindrance.kind = (Berth__Explanation__Hindrance__Kind)all->values[i / 2].value;
        hindrance.nodes = 1 + i % 2;
        g_autofree char *text = now_text(&job, &task, &why);
        if (hindrance.kind == BERTH__EXPLANATION__HINDRANCE__KIND__HINDRANCE_UNSPECIFIED)
            assert_non_null(strstr(text, "a reason that this berth does not know"));
        else
            assert_null(strstr(text, "does not know"));
        assert_true(g_hash_table_add(seen, g_steal_pointer(&text)));
    }
}

static void running_job_is_told_where_it_is_and_what_it_lacks(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    Berth__Move move = BERTH__MOVE__INIT;
    why.now_usec = NOW_USEC;
    job.memory_mib = job.memory_max_mib = 512;
    task.state = BERTH__JOB_STATE__RUNNING;
    task.node = (char *)"n1";
    task.opportunistic = TRUE;
    task.short_usec = NOW_USEC - 60 * SEC;
    move.from = (char *)"n2";
    move.to = (char *)"n1";
    move.reason = BERTH__REASON__REASON_PRESSURE;
    move.time_usec = NOW_USEC - 3600 * SEC * 24;
    task.moved = &move;
    g_autofree char *text = now_text(&job, &task, &why);
    assert_string_equal(
        text,
        "It runs on n1 in slack: in what other jobs have reserved there and do not use. It "
        "leaves when they need it, and gets a place of its own where one comes free.\n"
        "On n1 that is as soon as there is room; it is moved for it when two rounds, "
        "balance_interval_usec (berthd.conf) apart, agree, and not within cooldown_usec of its "
        "last move, checkpoint, resize, freeze or thaw.\n"
        "Room is looked for whenever a job or a node comes or goes.\n"
        "It is slow: since 11:59:05 its 512M of memory are too little, and it can get no more "
        "now (--memory-max).\n"
        "It was moved from n2 to n1 while it ran, at 2026-02-28 12:00:05: its node is short "
        "of memory.");
    task.moved = NULL;
    task.short_usec = 0;
    task.held_back_usec = NOW_USEC - 5 * SEC;
    g_autofree char *held = now_text(&job, &task, &why);
    assert_non_null(strstr(held, "\nIt gets next to no CPU since 12:00:00: n1 is short of memory, "
                                 "and holds back who runs in slack until there is enough."));
    task.held_back_usec = 0;
    task.short_usec = NOW_USEC - 60 * SEC;
    job.memory_max_mib = 1024;
    task.opportunistic = FALSE;
    task.moved = NULL;
    g_autofree char *backed = now_text(&job, &task, &why);
    assert_string_equal(backed,
                        "It runs on n1, and all that it reserves is kept for it there.\n"
                        "It is slow: since 11:59:05 its 512M of memory are too little, and "
                        "it can get no more now: there is no room for more where it is, nor "
                        "on another node that it could be moved to.");
}

static void running_job_is_told_what_it_waits_for(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Explanation why = BERTH__EXPLANATION__INIT;
    Berth__Usage usage = BERTH__USAGE__INIT;
    why.now_usec = NOW_USEC;
    job.memory_mib = job.memory_max_mib = 512;
    task.state = BERTH__JOB_STATE__RUNNING;
    task.node = (char *)"n1";
    task.usage = &usage;
    usage.psi_memory_some = 6250;
    usage.psi_io_some = 999; /* as of any job */
    usage.throttled_permille = 301;
    g_autofree char *text = now_text(&job, &task, &why);
    assert_non_null(strstr(text, "\nSome of it waits, of late: 62.5 % of the time for memory.\n"
                                 "Its CPU quota is used up, of late, for 30.1 % of the time for "
                                 "which its vCPUs would run."));
    usage.psi_io_some = 1000;
    usage.psi_memory_some = usage.throttled_permille = 0;
    usage.starved_permille = 500;
    g_autofree char *other = now_text(&job, &task, &why);
    assert_non_null(strstr(other, "\nSome of it waits, of late: 10.0 % of the time for its disk, "
                                  "50.0 % for CPUs that others have."));
    usage.psi_io_some = usage.starved_permille = 0;
    g_autofree char *none = now_text(&job, &task, &why);
    assert_null(strstr(none, "waits"));
    assert_null(strstr(none, "quota"));
    usage.psi_io_some = 5000;
    why.away_usec = task.away_usec = NOW_USEC - 60 * SEC;
    g_autofree char *away = now_text(&job, &task, &why);
    assert_null(strstr(away, "Some of it waits")); /* nothing is known of it */
}

static void job_that_stands_still_or_has_ended_is_told_why(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    task.state = BERTH__JOB_STATE__SUSPENDED;
    task.reason = BERTH__REASON__REASON_FROZEN_BY_USER;
    task.frozen_usec = NOW_USEC;
    task.to_disk = TRUE;
    g_autofree char *still = now_text(&job, &task, NULL);
    assert_string_equal(still,
                        "It stands still since 2026-03-01 12:00:05, as a checkpoint, without "
                        "a node: its user froze it.");
    task.to_disk = FALSE;
    task.reason = BERTH__REASON__REASON_AT_LIMIT;
    task.reason_text = (char *)"it needs more than its 64 MiB of memory, and it stands still; when";
    g_autofree char *at_limit = now_text(&job, &task, NULL);
    assert_string_equal(at_limit, "Since 2026-03-01 12:00:05: it needs more than its 64 MiB of "
                                  "memory, and it stands still; when.");
    task.to_disk = TRUE;
    task.reason = BERTH__REASON__REASON_TIME_LIMIT;
    task.reason_text = (char *)"it has used its time limit, and stands still as a checkpoint";
    g_autofree char *out_of_time = now_text(&job, &task, NULL);
    assert_string_equal(out_of_time,
                        "Since 2026-03-01 12:00:05, on disk and without a node: it has used its "
                        "time limit, and stands still as a checkpoint.");
    task.state = BERTH__JOB_STATE__TIMEOUT;
    task.end_usec = NOW_USEC;
    task.reason_text = (char *)"it reached its time limit";
    g_autofree char *end = now_text(&job, &task, NULL);
    assert_string_equal(end,
                        "It ended as TIMEOUT at 2026-03-01 12:00:05: it reached its time limit.");
}

typedef struct {
    Berth__Event__Kind kind;
    Berth__JobState state;
    Berth__Reason reason;
    const char *node, *text, *place;
    const char *said; /* NULL: nothing */
} EventCase;

#define KIND(name)   BERTH__EVENT__KIND__##name
#define STATE(name)  BERTH__JOB_STATE__##name
#define REASON(name) BERTH__REASON__REASON_##name

/* The story of a job, in order. */
static const EventCase story[] = {
    {KIND(JOB_SUBMITTED), 0, 0, "", "", "", "submitted by alice"},
    {KIND(TASK_STATE), STATE(RUNNING), 0, "n1", "", "", NULL},
    {KIND(GUEST_START), 0, 0, "n1", "", "in slack: there is room",
     "started on node n1; in slack: "
     "there is room"},
    {KIND(GUEST_RUNNING), 0, 0, "n1", "", "", "its command runs on n1"},
    {KIND(GUEST_MIGRATE), 0, REASON(PRESSURE), "n1", "n2", "backed: all of it",
     "to be moved from node n1 to node n2: its node is short of memory; backed: all of it"},
    {KIND(GUEST_MIGRATE_FAILED), 0, 0, "n1", "it writes too fast", "",
     "was not moved, and stays on n1: it writes too fast"},
    {KIND(GUEST_MIGRATE_FAILED), 0, REASON(GUEST_VANISHED), "n1",
     "its guest was lost on the way to n2", "",
     "was to be moved from n1: its guest was lost on the way to n2"},
    {KIND(GUEST_MIGRATED), 0, 0, "n2", "", "", "runs on n2 now"},
    {KIND(GUEST_RESIZE), 0, REASON(PROMOTION), "n2", "2 vCPUs, 512M", "",
     "to be backed on node n2: its whole reservation is backed there"},
    {KIND(GUEST_RESIZE), 0, REASON(AT_LIMIT), "n2", "2 vCPUs, 768M", "",
     "to have 2 vCPUs, 768M on node n2: it is at its limit"},
    {KIND(GUEST_RESIZED), 0, 0, "n2", "2 vCPUs, 768M", "", "has 2 vCPUs, 768M now"},
    {KIND(GUEST_SHORT), 0, REASON(AT_LIMIT), "n2", "768M are too little", "",
     "short of memory: 768M are too little"},
    {KIND(GUEST_OOM_KILL), 0, REASON(MEMORY_LIMIT), "n2", "its guest's kernel ended 1 process", "",
     "out of memory: its guest's kernel ended 1 process"},
    {KIND(GUEST_HELD_BACK), 0, 0, "n2", "the node is short of memory", "",
     "held back on n2, with next to no CPU: the node is short of memory"},
    {KIND(GUEST_LET_GO), 0, 0, "n2", "", "", "gets CPU on n2 again"},
    {KIND(JOB_FREEZE_REQUESTED), 0, 0, "", "to disk", "", "to stand still to disk, says alice"},
    {KIND(GUEST_CHECKPOINT), 0, REASON(FROZEN_BY_USER), "n2", "3", "",
     "to be checkpointed, as number 3, on node n2: its user froze it"},
    {KIND(TASK_STATE), STATE(SUSPENDED), REASON(FROZEN_BY_USER), "n2", "frozen by its user", "",
     "stands still: frozen by its user"},
    {KIND(GUEST_RELEASED), 0, 0, "n2", "", "", NULL},
    {KIND(JOB_THAW_REQUESTED), 0, 0, "", "", "", "to go on, says alice"},
    {KIND(TASK_STATE), STATE(PENDING), REASON(RESTORING), "n2", "", "",
     "waits: it goes on from a checkpoint where there is room"},
    {KIND(GUEST_RESTORE), 0, 0, "n1", "3", "backed: all of it",
     "put back to checkpoint 3 on node n1; backed: all of it"},
    {KIND(EXEC_BEGUN), 0, 0, "", "sh", "", NULL},
    {KIND(TASK_STATE), STATE(SUSPENDED), REASON(AT_LIMIT), "n1", "", "",
     "stands still: it is at its limit"},
    {KIND(TASK_STATE), STATE(SUSPENDED), REASON(AT_LIMIT), "n1",
     "it needs more, and it stands still", "", "it needs more, and it stands still"},
    {KIND(TASK_STATE), STATE(RUNNING), 0, "n1", "", "", "goes on"},
    {KIND(GUEST_CHECKPOINT_FAILED), 0, REASON(TIME_LIMIT), "n1", "no space", "",
     "was not checkpointed: no space"},
    {KIND(GUEST_STOP), 0, REASON(TIME_LIMIT), "n1", "", "", "ended on node n1: its time limit"},
    {KIND(GUEST_EXITED), 0, 0, "n1", "", "", "its command has ended"},
    {KIND(GUEST_EXITED), 0, REASON(GUEST_CRASHED), "n1", "kernel panic\nregisters", "",
     "its guest is gone: its guest ended itself: kernel panic"},
    {KIND(TASK_STATE), STATE(TIMEOUT), REASON(TIME_LIMIT), "n1", "it reached its limit", "",
     "TIMEOUT: it reached its limit"},
};

/* Somebody else's: without the words that are its owner's. */
static const EventCase others_story[] = {
    {KIND(JOB_RESIZE_REQUESTED), 0, 0, "", "", "", "to have another size, says alice"},
    {KIND(JOB_EXTEND_REQUESTED), 0, 0, "", "", "", "to have another time limit, says alice"},
    {KIND(JOB_CHECKPOINT_EVERY_REQUESTED), 0, 0, "", "", "",
     "to be checkpointed more or less often, says alice"},
    {KIND(JOB_RESTORE_REQUESTED), 0, 0, "", "", "", "to go on from a checkpoint, says alice"},
    {KIND(GUEST_RESTORE), 0, 0, "n1", "", "", "put back to a checkpoint on node n1"},
    {KIND(GUEST_MIGRATE), 0, REASON(DRAIN), "n1", "", "",
     "to be moved to another node; it is on node n1: its node is drained"},
    {KIND(GUEST_CHECKPOINT), 0, 0, "n1", "", "", "to be checkpointed on node n1"},
    {KIND(GUEST_RESIZE), 0, REASON(AT_LIMIT), "n1", "", "",
     "to have another size on node n1: it is at its limit"},
    {KIND(GUEST_RESIZED), 0, 0, "n1", "", "", "has another size now"},
    {KIND(GUEST_OOM_KILL), 0, REASON(MEMORY_LIMIT), "n1", "", "", "out of memory"},
    {KIND(GUEST_MIGRATE_FAILED), 0, 0, "n1", "", "", "was not moved, and stays on n1"},
};

static void assert_said(const EventCase *cases, guint n)
{
    Berth__JobState before = 0;
    for (guint i = 0; i < n; i++) {
        Berth__Event event = BERTH__EVENT__INIT;
        event.kind = cases[i].kind;
        event.state = cases[i].state;
        event.reason = cases[i].reason;
        event.node = (char *)cases[i].node;
        event.text = (char *)cases[i].text;
        event.place = (char *)cases[i].place;
        event.user = (char *)"alice";
        g_autofree char *said = berth_why_event(&event, &before);
        if (g_strcmp0(said, cases[i].said) != 0)
            fail_msg("event %u: \"%s\"", i, said != NULL ? said : "(nothing)");
    }
}

static void wish_is_told_with_its_reason(void **state)
{
    Berth__Event event = BERTH__EVENT__INIT;
    Berth__JobState before = 0;
    event.kind = KIND(JOB_FREEZE_REQUESTED);
    event.user = (char *)"alice";
    event.why = (char *)"it is too hot";
    g_autofree char *said = berth_why_event(&event, &before);
    assert_string_equal(said, "to stand still, says alice: it is too hot");
}

/* Of who leaves for memory or CPU, before what he has where he goes. */
static void cause_is_told_with_its_amounts(void **state)
{
    Berth__Event event = BERTH__EVENT__INIT;
    Berth__JobState before = 0;
    event.kind = KIND(GUEST_MIGRATE);
    event.reason = REASON(PRESSURE);
    event.node = (char *)"n1";
    event.text = (char *)"n2";
    event.cause = (char *)"the node's guests are predicted to need 1380M of 1450M";
    event.place = (char *)"in slack: there is room";
    g_autofree char *moved = berth_why_event(&event, &before);
    assert_string_equal(moved, "to be moved from node n1 to node n2: its node is short of memory "
                               "(the node's guests are predicted to need 1380M of 1450M); in "
                               "slack: there is room");
    event.kind = KIND(GUEST_CHECKPOINT);
    event.reason = REASON(STARVED);
    event.text = (char *)"3";
    event.cause = (char *)"it could run, and had no CPU, for 90.0 % of the time";
    event.place = (char *)"";
    g_autofree char *saved = berth_why_event(&event, &before);
    assert_string_equal(saved,
                        "to be checkpointed, as number 3, on node n1: others left it hardly any "
                        "CPU (it could run, and had no CPU, for 90.0 % of the time)");
}

static void events_are_told_in_sentences(void **state)
{
    assert_said(story, G_N_ELEMENTS(story));
    assert_said(others_story, G_N_ELEMENTS(others_story));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_job_is_told_what_it_waits_for),
        cmocka_unit_test(tasks_that_leave_are_named),
        cmocka_unit_test(job_that_names_a_drained_node_is_told_so),
        cmocka_unit_test(held_job_is_not_told_of_room),
        cmocka_unit_test(job_that_moves_to_a_node_that_is_away_is_told_so),
        cmocka_unit_test(job_that_comes_after_others_is_told_of_them),
        cmocka_unit_test(each_answer_about_slack_has_a_sentence),
        cmocka_unit_test(each_hindrance_has_words_for_one_node_and_for_several),
        cmocka_unit_test(running_job_is_told_where_it_is_and_what_it_lacks),
        cmocka_unit_test(running_job_is_told_what_it_waits_for),
        cmocka_unit_test(job_that_stands_still_or_has_ended_is_told_why),
        cmocka_unit_test(wish_is_told_with_its_reason),
        cmocka_unit_test(cause_is_told_with_its_amounts),
        cmocka_unit_test(events_are_told_in_sentences),
    };
    g_setenv("TZ", "UTC", TRUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
