/* SPDX-License-Identifier: Apache-2.0 */
/* Which clients of a dead guest's disk are cut off. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/stale_clients.h"

/* --- rounds ------------------------------------------------------------------------------------- */

#define AFTER_USEC 60

static gboolean is_agent(const char *address, gpointer agent)
{
    return g_str_equal(address, agent);
}

/* DISK with CLIENTS, separated by spaces. */
static void add_busy(GPtrArray *busy, const char *disk, const char *clients)
{
    g_ptr_array_add(busy, berth_busy_disk_new(disk, g_strsplit(clients, " ", -1)));
}

/* "DISK: CLIENT CLIENT, DISK: CLIENT" of those that are to be cut off, with "!" where that is news
 * (transfer full). */
static char *judge(BerthStaleClients *stale, gint64 now_usec, GPtrArray *busy)
{
    g_autoptr(GPtrArray) dead =
        berth_stale_clients_judge(stale, busy, now_usec, AFTER_USEC, is_agent, (gpointer) "agent");
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < dead->len; i++) {
        const BerthBusyDisk *disk = g_ptr_array_index(dead, i);
        g_autofree char *clients = g_strjoinv(" ", disk->clients);
        g_string_append_printf(text, "%s%s: %s%s", i > 0 ? ", " : "", disk->disk_id, clients,
                               disk->is_news ? "!" : "");
    }
    g_clear_pointer(&busy, g_ptr_array_unref);
    return g_string_free(text, FALSE);
}

static GPtrArray *busy_new(void)
{
    return g_ptr_array_new_with_free_func(berth_busy_disk_free);
}

#define assert_judged(stale, now_usec, busy, expected)                                             \
    do {                                                                                           \
        g_autofree char *judged = judge(stale, now_usec, busy);                                    \
        assert_string_equal(judged, expected);                                                     \
    } while (0)

static void judge_of_a_client_for_long_enough_cuts_it_off(void **state)
{
    g_autoptr(BerthStaleClients) stale = berth_stale_clients_new();
    assert_false(berth_stale_clients_has_suspects(stale));
    GPtrArray *first = busy_new();
    add_busy(first, "disk-1", "dead agent");
    add_busy(first, "disk-2", "dead");
    assert_judged(stale, 1000, first, "");
    assert_true(berth_stale_clients_has_suspects(stale));
    GPtrArray *too_soon = busy_new();
    add_busy(too_soon, "disk-1", "dead");
    assert_judged(stale, 1059, too_soon, "");
    assert_true(berth_stale_clients_has_suspects(stale));
    GPtrArray *second = busy_new();
    add_busy(second, "disk-1", "agent new dead");
    add_busy(second, "disk-3", "dead");
    assert_judged(stale, 1060, second, "disk-1: dead!");
    assert_true(berth_stale_clients_has_suspects(stale));
    GPtrArray *third = busy_new();
    add_busy(third, "disk-1", "new dead");
    assert_judged(stale, 1120, third, "disk-1: new dead!");
    assert_false(berth_stale_clients_has_suspects(stale)); /* not again and again */
    GPtrArray *fourth = busy_new();
    add_busy(fourth, "disk-1", "new dead");
    assert_judged(stale, 1180, fourth, "disk-1: new dead"); /* again, but it was said */
}

static void judge_of_a_client_that_was_away_for_a_round_spares_it(void **state)
{
    g_autoptr(BerthStaleClients) stale = berth_stale_clients_new();
    for (guint i = 0; i < 3; i++) {
        GPtrArray *busy = busy_new();
        add_busy(busy, "disk-1", "dead");
        assert_judged(stale, 1000 * (i + 1), busy, "");
        assert_true(berth_stale_clients_has_suspects(stale));
        assert_judged(stale, 1000 * (i + 1) + 500, NULL, "");
        assert_false(berth_stale_clients_has_suspects(stale));
    }
}

static void judge_of_a_client_in_use_spares_it(void **state)
{
    g_autoptr(BerthStaleClients) stale = berth_stale_clients_new();
    for (guint i = 0; i < 3; i++) {
        GPtrArray *busy = busy_new();
        add_busy(busy, "disk-1", "agent");
        assert_judged(stale, 1000 * (i + 1), busy, "");
        assert_false(berth_stale_clients_has_suspects(stale));
    }
}

/* --- who uses what ------------------------------------------------------------------------------ */

/* Nodes that are DOWN and LOST; a guest of job 5, and job 6, whose guest has ended and which waits. */
static BerthCore *core_new(void)
{
    BerthCoreConfig config = {.node_timeout_usec = G_USEC_PER_SEC};
    BerthCore *core = berth_core_new(&config);
    const BerthCoreNodeInfo info = {.capacity = {4, 4096, 0}};
    const BerthCoreJob running = {.id = 5, .resources = {1, 64, 0}, .submit_usec = 1};
    const BerthCoreJob waiting = {.id = 6, .resources = {1, 64, 0}, .submit_usec = 1};
    assert_int_equal(berth_core_add_node(core, "down"), 1);
    assert_int_equal(berth_core_add_node(core, "lost"), 2);
    berth_core_restore_node(core, 1, BERTH_NODE_DOWN, 1, BERTH_ADMISSION_OPEN, &info);
    berth_core_restore_node(core, 2, BERTH_NODE_LOST, 1, BERTH_ADMISSION_OPEN, &info);
    const BerthCoreTask tasks[] = {
        {.job = 5, .state = BERTH_JOB_RUNNING, .phase = BERTH_GUEST_RUNNING, .node = 1, .epoch = 1},
        {.job = 6, .state = BERTH_JOB_PENDING, .node = 1, .epoch = 1}};
    berth_core_restore_job(core, &running, &tasks[0], 1);
    berth_core_restore_job(core, &waiting, &tasks[1], 1);
    return core;
}

static void add_node(BerthNodeTable *nodes, guint32 handle, const char *name, const char *clients)
{
    BerthNodeEntry *entry = berth_node_table_add(nodes, handle, name);
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    info.name = (char *)name;
    info.storage_client = (char *)clients;
    berth_node_entry_set_info(entry, &info);
}

static void add_job(BerthJobTable *jobs, guint64 id, char *client)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.id = id;
    Berth__StoredTask *stored =
        berth_job_table_add_task(berth_job_table_add(jobs, berth_pb_dup(&job.base)), 0, NULL)
            ->stored;
    berth_pb_set_strings(&stored->storage_clients, &stored->n_storage_clients, &client, 1);
}

static void is_in_use_table(void **state)
{
    static const struct {
        const char *address;
        gboolean is_in_use;
    } cases[] = {
        {"agent:0/1", TRUE},   {"agent:0/2", TRUE}, /* of a node that may come back */
        {"lost:0/1", FALSE},   {"guest:0/1", TRUE},   {"ended:0/1", FALSE},
        {"nobody:0/1", FALSE}, {"agent:0/1 ", FALSE}, {"agent:0/", FALSE}, /* no part of another */
    };
    BerthStorageConfig config = {.kind = (char *)"dir", .op_timeout_sec = 1};
    BerthDaemon daemon = {0};
    daemon.workers = berth_workers_new();
    daemon.storage = berth_storage_link_new(&config, daemon.workers, 1);
    daemon.core = core_new();
    daemon.nodes = berth_node_table_new();
    daemon.jobs = berth_job_table_new();
    add_node(daemon.nodes, 1, "down", "agent:0/1 agent:0/2");
    add_node(daemon.nodes, 2, "lost", "lost:0/1");
    add_job(daemon.jobs, 5, (char *)"guest:0/1");
    add_job(daemon.jobs, 6, (char *)"ended:0/1");
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_int_equal(berth_stale_clients_is_in_use(cases[i].address, &daemon),
                         cases[i].is_in_use);
    }
    berth_job_table_free(daemon.jobs);
    berth_node_table_free(daemon.nodes);
    berth_core_free(daemon.core);
    berth_storage_link_free(daemon.storage);
    berth_workers_free(daemon.workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge_of_a_client_for_long_enough_cuts_it_off),
        cmocka_unit_test(judge_of_a_client_that_was_away_for_a_round_spares_it),
        cmocka_unit_test(judge_of_a_client_in_use_spares_it),
        cmocka_unit_test(is_in_use_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
