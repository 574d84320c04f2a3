/* SPDX-License-Identifier: Apache-2.0 */
/* What `berth top` makes of a snapshot, for screens of all sizes. */
#include "cli/top_order.h"
#include "cli/top_view.h"

#include "cli/table.h"
#include "tests/lib/assert.h"

#define NOW_USEC (G_GUINT64_CONSTANT(1772366405) * G_USEC_PER_SEC) /* 2026-03-01 12:00:05 UTC */
#define N_NODES  2u
#define N_GUESTS 4u

typedef struct {
    Berth__TopReply reply;
    Berth__Node nodes[N_NODES];
    Berth__NodeInfo infos[N_NODES];
    Berth__NodeUsage node_usage;
    Berth__NodeAdmission admission;
    Berth__TopGuest guests[N_GUESTS];
    Berth__Task tasks[N_GUESTS];
    Berth__Usage usages[N_GUESTS];
    Berth__Move moves[2];
    Berth__MigrationProgress migration;
    Berth__Node *node_pointers[N_NODES];
    Berth__TopGuest *guest_pointers[N_GUESTS];
} Snapshot;

static void make_node(Snapshot *snapshot, guint i, const char *name)
{
    Berth__Node *node = &snapshot->nodes[i];
    berth__node__init(node);
    berth__node_info__init(&snapshot->infos[i]);
    snapshot->infos[i].name = (char *)name;
    snapshot->infos[i].vcpus = 4;
    snapshot->infos[i].guest_memory_mib = 8192;
    node->info = &snapshot->infos[i];
    node->state = BERTH__NODE_STATE__NODE_UP;
    snapshot->node_pointers[i] = node;
}

static void make_guest(Snapshot *snapshot, guint i, guint64 job, const char *name)
{
    Berth__TopGuest *guest = &snapshot->guests[i];
    Berth__Task *task = &snapshot->tasks[i];
    Berth__Usage *usage = &snapshot->usages[i];
    berth__top_guest__init(guest);
    berth__task__init(task);
    berth__usage__init(usage);
    guest->task = task;
    guest->name = (char *)name;
    guest->user = (char *)"alice";
    guest->vcpus = 2;
    guest->memory_mib = 2048;
    task->job = job;
    task->state = BERTH__JOB_STATE__RUNNING;
    task->node = (char *)"n1";
    task->used_milli = 1460;
    task->predicted_milli = 1800;
    task->predicted_mib = 700;
    usage->memory_total_mib = 2000;
    usage->memory_available_mib = 1500;
    usage->host_memory_mib = 800;
    task->usage = usage;
    snapshot->guest_pointers[i] = guest;
}

static void make_move(Snapshot *snapshot, guint i, Berth__Task *task, Berth__Reason reason)
{
    Berth__Move *move = &snapshot->moves[i];
    berth__move__init(move);
    move->from = (char *)"n2";
    move->to = (char *)"n1";
    move->reason = reason;
    task->moved = move;
}

static void make_nodes(Snapshot *snapshot)
{
    Berth__Node *node = snapshot->nodes;
    make_node(snapshot, 0, "n1");
    make_node(snapshot, 1, "n2");
    node->vcpus_reserved = 4;
    node->vcpus_slack = 2;
    node->memory_reserved_mib = 4096;
    node->memory_slack_mib = 2048;
    node->used_milli = 1460;
    node->used_mib = 620;
    node->predicted_milli = 2500;
    node->predicted_mib = 1100;
    node->guests = 3;
    berth__node_usage__init(&snapshot->node_usage);
    snapshot->node_usage.psi_memory_some = 250;
    snapshot->node_usage.psi_cpu_some = 1234;
    snapshot->node_usage.memory_free_mib = 5000;
    node->usage = &snapshot->node_usage;
    berth__node_admission__init(&snapshot->admission);
    snapshot->admission.kind = BERTH__NODE_ADMISSION__KIND__DRAINING;
    snapshot->nodes[1].admission = &snapshot->admission;
    snapshot->nodes[1].closed_reason = (char *)"drained by root: for a disk";
}

static void make_guests(Snapshot *snapshot)
{
    make_guest(snapshot, 0, 7, "backed one");
    snapshot->guests[0].limit_usec = NOW_USEC + 3725 * (guint64)G_USEC_PER_SEC;
    make_guest(snapshot, 1, 8, "evil\033[2J");
    snapshot->tasks[1].opportunistic = TRUE;
    snapshot->usages[1].psi_memory_some = 4210;
    snapshot->tasks[1].short_usec = NOW_USEC;
    make_move(snapshot, 0, &snapshot->tasks[1], BERTH__REASON__REASON_PRESSURE);
    snapshot->moves[0].time_usec = NOW_USEC - 200 * (guint64)G_USEC_PER_SEC;
    make_guest(snapshot, 2, 9, "moving");
    snapshot->guests[2].starved_permille = 300;
    berth__migration_progress__init(&snapshot->migration);
    snapshot->migration.to = (char *)"n2";
    snapshot->tasks[2].migration = &snapshot->migration;
    make_guest(snapshot, 3, 10, "frozen");
    snapshot->tasks[3].state = BERTH__JOB_STATE__SUSPENDED;
    snapshot->tasks[3].usage = NULL;
    make_move(snapshot, 1, &snapshot->tasks[3], BERTH__REASON__REASON_EVICTED);
    snapshot->moves[1].from_checkpoint = TRUE;
    snapshot->moves[1].time_usec = NOW_USEC - 90061 * (guint64)G_USEC_PER_SEC;
}

static int setup(void **state)
{
    Snapshot *snapshot = g_new0(Snapshot, 1);
    Berth__TopReply *reply = &snapshot->reply;
    berth__top_reply__init(reply);
    make_nodes(snapshot);
    make_guests(snapshot);
    reply->now_usec = NOW_USEC;
    reply->nodes = snapshot->node_pointers;
    reply->guests = snapshot->guest_pointers;
    reply->n_nodes = reply->nodes_total = N_NODES;
    reply->n_guests = reply->guests_total = N_GUESTS;
    reply->nodes_up = 2;
    reply->vcpus = 8;
    reply->memory_mib = 16384;
    reply->vcpus_reserved = 4;
    reply->vcpus_slack = 2;
    reply->memory_reserved_mib = 4096;
    reply->memory_slack_mib = 2048;
    reply->used_milli = 1460;
    reply->used_mib = 620;
    reply->predicted_milli = 2500;
    reply->predicted_mib = 1100;
    reply->guests_slack = 1;
    reply->guests_moving = 1;
    reply->jobs_waiting = 1;
    *state = snapshot;
    return 0;
}

static int teardown(void **state)
{
    g_free(*state);
    return 0;
}

static char *text_of(const Snapshot *snapshot, BerthTopLook look)
{
    g_autoptr(GPtrArray) lines = berth_top_lines(&snapshot->reply, &look);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in \"%s\"", part, text);
}

static void all_of_it_is_shown_without_a_terminal(void **state)
{
    g_autofree char *text = text_of(*state, (BerthTopLook){0});
    assert_string_equal(
        text,
        "2026-03-01 12:00:05  2 of 2 nodes up, 4 guests (1 in slack, 1 moving), 1 job waits\n"
        "vCPUs   8: 4+2 reserved, 2.5 predicted, 1.5 used\n"
        "memory  16.0G: 4G+2G reserved, 1100M predicted, 620M used\n"
        "\n"
        "NODE  STATE     VCPUS  RSVD  PRED  USED  MEMORY   RSVD   PRED  USED   FREE  PRESSURE  "
        "GUESTS\n"
        "n1    up            4   4+2   2.5   1.5      8G  4G+2G  1100M  620M  5000M  cpu 12%       "
        " "
        "3\n"
        "n2    draining      4     0   0.0   0.0      8G     0M     0M    0M      -  -             "
        " "
        "0\n"
        "\n"
        "JOB  USER   NAME        NODE  PLACE   VCPUS  PRED  USED  MEMORY  PRED  USED  HOST  "
        "PRESSURE         LEFT  LAST MOVE\n"
        "  7  alice  backed one  n1    backed      2   1.8   1.5      2G  700M  500M  800M  "
        "-               1h02m  -\n"
        "  8  alice  evil?[2J    n1    slack       2   1.8   1.5      2G  700M  500M  800M  "
        "mem 42%, short      -  pressure 3m20s ago, from n2\n"
        "  9  alice  moving      n1    to n2       2   1.8   1.5      2G  700M  500M  800M  "
        "starved 30%         -  -\n"
        " 10  alice  frozen      n1    frozen      2   1.8     -      2G  700M     -     -  "
        "-                   -  evicted 1d01h ago, restored, was on n2");
}

/* What somebody waits for most is told of. */
static void worst_pressure_is_shown(void **state)
{
    Snapshot *snapshot = *state;
    snapshot->node_usage.psi_io_some = 2000;
    snapshot->usages[0].psi_io_some = 1500;
    snapshot->usages[0].psi_cpu_some = 1400;
    snapshot->usages[1].throttled_permille = 600;
    g_autofree char *text = text_of(snapshot, (BerthTopLook){0});
    assert_contains(text, "  5000M  io 20% ");
    assert_contains(text, "  800M  io 15% ");
    assert_contains(text, "  800M  throttled 60%, short ");
}

static void guest_that_is_held_back_is_in_no_ordinary_place(void **state)
{
    Snapshot *snapshot = *state;
    snapshot->tasks[1].held_back_usec = NOW_USEC;
    g_autofree char *text = text_of(snapshot, (BerthTopLook){0});
    assert_contains(text, "  n1    held        2 ");
    assert_null(strstr(text, "  n1    slack "));
}

static void task_of_an_array_has_its_index(void **state)
{
    Snapshot *snapshot = *state;
    snapshot->guests[0].of_array = TRUE;
    g_autofree char *text = text_of(snapshot, (BerthTopLook){0});
    assert_contains(text, "\n7[0]  alice  backed one");
    assert_contains(text, "\n   8  alice  ");
}

static void node_that_is_away_does_nothing_now(void **state)
{
    Snapshot *snapshot = *state;
    snapshot->nodes[0].state = BERTH__NODE_STATE__NODE_DOWN;
    g_autofree char *text = text_of(snapshot, (BerthTopLook){0});
    assert_contains(text,
                    "\nn1    down          4   4+2   2.5     -      8G  4G+2G  1100M     -     -"
                    "  -              3\n");
    snapshot->nodes[1].used_milli = 1;
    berth_top_put_in_order(&snapshot->reply, BERTH__TOP_REQUEST__ORDER__BY_CPU);
    assert_ptr_equal(snapshot->reply.nodes[0], &snapshot->nodes[1]);
}

static void sums_of_a_large_cluster_are_shown(void **state)
{
    Snapshot *snapshot = *state;
    snapshot->reply.used_milli = G_GUINT64_CONSTANT(5000000000);
    snapshot->reply.predicted_milli = G_GUINT64_CONSTANT(6000000000);
    g_autofree char *text = text_of(snapshot, (BerthTopLook){0});
    assert_contains(text, " reserved, 6000000.0 predicted, 5000000.0 used\n");
}

/* However small it is. */
static void lines_fit_any_screen(void **state)
{
    Snapshot *snapshot = *state;
    for (guint height = 1; height < 40; height++) {
        for (guint width = 1; width < 200; width += 7) {
            BerthTopLook look = {.width = width, .height = height, .has_keys = TRUE};
            g_autoptr(GPtrArray) lines = berth_top_lines(&snapshot->reply, &look);
            assert_int_equal(lines->len, height);
            for (guint i = 0; i < lines->len; i++)
                if (berth_text_width(g_ptr_array_index(lines, i)) > width)
                    fail_msg("%ux%u: \"%s\"", width, height,
                             (const char *)g_ptr_array_index(lines, i));
        }
    }
}

static void narrow_screen_keeps_what_says_most(void **state)
{
    g_autofree char *text = text_of(*state, (BerthTopLook){.width = 80, .height = 24});
    assert_contains(text, "LAST MOVE");
    assert_contains(text, "PLACE");
    assert_contains(text, "NODE  STATE ");
    assert_contains(text, "FREE  PRESSURE\n");
    assert_null(strstr(text, "NAME"));
}

static void end_of_the_screen_tells_order_and_keys(void **state)
{
    Snapshot *snapshot = *state;
    BerthTopLook look = {.width = 100, .height = 30, .has_keys = TRUE};
    look.order = BERTH__TOP_REQUEST__ORDER__BY_PRESSURE;
    g_autofree char *all = text_of(snapshot, look);
    assert_true(g_str_has_suffix(all, "\nby pressure; keys: c m p t v n sort, arrows and pages "
                                      "move, q ends"));
    snapshot->reply.guests_total = 70;
    look.guest_skip = 10;
    g_autofree char *some = text_of(snapshot, look);
    assert_contains(some, "\nguests 11-14 of 70; by pressure");
    snapshot->reply.nodes_total = 1000;
    look.node_skip = 20;
    g_autofree char *of_many = text_of(snapshot, look);
    assert_contains(
        of_many,
        "\nnodes 21-22 of 1000; guests 11-14 of 70; by pressure; keys: c m p t v n sort, ");
    look.note = "berthd does not run; trying again";
    g_autofree char *away = text_of(snapshot, look);
    assert_true(g_str_has_suffix(away, "\nberthd does not run; trying again"));
}

static void nodes_and_guests_share_the_screen(void **state)
{
    static const struct {
        guint height, nodes, guests, shown_nodes, shown_guests;
    } cases[] = {
        {8, 5, 5, 0, 0},        {10, 5, 5, 2, 0},    {12, 5, 5, 3, 1},    {38, 2, 5, 2, 5},
        {38, 100, 100, 10, 20}, {38, 100, 5, 25, 5}, {38, 2, 100, 2, 28},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint nodes = 0, guests = 0;
        berth_top_share(cases[i].height, cases[i].nodes, cases[i].guests, &nodes, &guests);
        if (nodes != cases[i].shown_nodes || guests != cases[i].shown_guests)
            fail_msg("%u lines: %u nodes and %u guests", cases[i].height, nodes, guests);
    }
}

static void orders_have_names_and_keys(void **state)
{
    const ProtobufCEnumDescriptor *all = &berth__top_request__order__descriptor;
    for (guint i = 0; i < all->n_values; i++) {
        Berth__TopRequest__Order order = 99;
        const char *name = berth_top_order_name((Berth__TopRequest__Order)all->values[i].value);
        assert_true(berth_top_order_find(name, &order));
        assert_int_equal(order, all->values[i].value);
    }
    Berth__TopRequest__Order order = BERTH__TOP_REQUEST__ORDER__BY_MOVE;
    assert_false(berth_top_order_find("size", &order));
    assert_false(berth_top_order_of_key('x', &order));
    assert_true(berth_top_order_of_key('c', &order));
    assert_int_equal(order, BERTH__TOP_REQUEST__ORDER__BY_CPU);
}

static void assert_order(const Snapshot *snapshot, const char *nodes, const char *jobs)
{
    const Berth__TopReply *reply = &snapshot->reply;
    g_autoptr(GString) got_nodes = g_string_new(NULL);
    g_autoptr(GString) got_jobs = g_string_new(NULL);
    for (gsize i = 0; i < reply->n_nodes; i++)
        g_string_append_printf(got_nodes, "%s ", reply->nodes[i]->info->name);
    for (gsize i = 0; i < reply->n_guests; i++)
        g_string_append_printf(got_jobs, "%u ", (guint)reply->guests[i]->task->job);
    assert_string_equal(got_nodes->str, nodes);
    assert_string_equal(got_jobs->str, jobs);
}

/* However much others stall. */
static void nodes_that_are_short_of_memory_come_first_by_pressure(void **state)
{
    Snapshot *snapshot = *state;
    const Berth__Node *second = &snapshot->nodes[1];
    snapshot->nodes[1].pressed_until_usec = NOW_USEC + 1;
    berth_top_put_in_order(&snapshot->reply, BERTH__TOP_REQUEST__ORDER__BY_PRESSURE);
    assert_ptr_equal(snapshot->reply.nodes[0], second);
    snapshot->nodes[1].pressed_until_usec = NOW_USEC;
    berth_top_put_in_order(&snapshot->reply, BERTH__TOP_REQUEST__ORDER__BY_PRESSURE);
    assert_ptr_equal(snapshot->reply.nodes[1], second);
}

static void all_of_it_is_put_in_the_order_that_is_wanted(void **state)
{
    static const struct {
        Berth__TopRequest__Order order;
        const char *nodes, *jobs;
    } cases[] = {
        {BERTH__TOP_REQUEST__ORDER__BY_NAME, "n1 n2 ", "7 8 9 10 "},
        {BERTH__TOP_REQUEST__ORDER__BY_CPU, "n2 n1 ", "9 7 8 10 "},
        {BERTH__TOP_REQUEST__ORDER__BY_MEMORY, "n1 n2 ", "8 7 9 10 "},
        {BERTH__TOP_REQUEST__ORDER__BY_PRESSURE, "n1 n2 ", "9 8 7 10 "},
        {BERTH__TOP_REQUEST__ORDER__BY_TIME_LEFT, "n1 n2 ", "10 7 8 9 "},
        {BERTH__TOP_REQUEST__ORDER__BY_MOVE, "n1 n2 ", "8 10 7 9 "},
    };
    Snapshot *snapshot = *state;
    Berth__Node *const nodes[] = {&snapshot->nodes[0], &snapshot->nodes[1]};
    snapshot->nodes[1].used_milli = 4000;
    snapshot->tasks[2].used_milli = 1500;
    snapshot->usages[1].memory_available_mib = 1;
    snapshot->usages[0].psi_io_some = 3500; /* 8 stalls for 42.1 % */
    snapshot->usages[2].throttled_permille = 500;
    snapshot->guests[3].limit_usec = NOW_USEC;
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (guint at = 0; at < N_NODES; at++)
            snapshot->reply.nodes[at] = nodes[at];
        for (guint at = 0; at < N_GUESTS; at++)
            snapshot->reply.guests[at] = &snapshot->guests[at];
        berth_top_put_in_order(&snapshot->reply, cases[i].order);
        assert_order(snapshot, cases[i].nodes, cases[i].jobs);
    }
}

/* Between them two guests have gone: those behind them come a second time. */
static void pages_show_each_once(void **state)
{
    Snapshot *snapshot = *state;
    Snapshot all = {.reply = BERTH__TOP_REPLY__INIT};
    Berth__TopReply page = BERTH__TOP_REPLY__INIT;
    page.nodes = snapshot->node_pointers;
    page.guests = snapshot->guest_pointers;
    page.n_nodes = 1;
    page.n_guests = 2;
    berth_top_add_page(&all.reply, &page);
    assert_int_equal(page.n_nodes + page.n_guests, 0);
    page.n_nodes = N_NODES;
    page.n_guests = N_GUESTS;
    berth_top_add_page(&all.reply, &page);
    assert_order(&all, "n1 n2 ", "7 8 9 10 ");
    assert_int_equal(page.n_nodes, 1); /* to be freed with it */
    assert_int_equal(page.n_guests, 2);
    g_free(all.reply.nodes);
    g_free(all.reply.guests);
}

#define OF_SNAPSHOT(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF_SNAPSHOT(all_of_it_is_shown_without_a_terminal),
        OF_SNAPSHOT(worst_pressure_is_shown),
        OF_SNAPSHOT(guest_that_is_held_back_is_in_no_ordinary_place),
        OF_SNAPSHOT(task_of_an_array_has_its_index),
        OF_SNAPSHOT(node_that_is_away_does_nothing_now),
        OF_SNAPSHOT(sums_of_a_large_cluster_are_shown),
        OF_SNAPSHOT(lines_fit_any_screen),
        OF_SNAPSHOT(narrow_screen_keeps_what_says_most),
        OF_SNAPSHOT(end_of_the_screen_tells_order_and_keys),
        OF_SNAPSHOT(nodes_that_are_short_of_memory_come_first_by_pressure),
        OF_SNAPSHOT(all_of_it_is_put_in_the_order_that_is_wanted),
        OF_SNAPSHOT(pages_show_each_once),
        cmocka_unit_test(nodes_and_guests_share_the_screen),
        cmocka_unit_test(orders_have_names_and_keys),
    };
    g_setenv("TZ", "UTC", TRUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
