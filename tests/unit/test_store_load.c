/* SPDX-License-Identifier: Apache-2.0 */
/* What a restarted daemon loads: nodes, images, what is not over, and the counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#include <sqlite3.h>
#include <string.h>

/* Notes all that is loaded as one line: "node:n1 image:busybox job:3/busybox/1". */
typedef struct {
    GString *seen;
    guint64 refuse_job;
} Seen;

static gboolean see_node(const Berth__StoredNode *node, gpointer data, GError **error)
{
    Seen *seen = data;
    g_string_append_printf(seen->seen, "node:%s:%d ", node->info->name, (int)node->state);
    return TRUE;
}

static gboolean see_image(const Berth__Image *image, gpointer data, GError **error)
{
    Seen *seen = data;
    g_string_append_printf(seen->seen, "image:%s ", image->name);
    return TRUE;
}

static gboolean see_job(BerthStoreLoadedJob *loaded, gpointer data, GError **error)
{
    Seen *seen = data;
    if (loaded->job->id == seen->refuse_job) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "refused");
        return FALSE;
    }
    g_string_append_printf(seen->seen, "job:%d/%s/%d", (int)loaded->job->id, loaded->spec->image,
                           (int)loaded->n_tasks);
    for (gsize i = 0; i < loaded->n_tasks; i++)
        g_string_append_printf(seen->seen, ":%d", (int)loaded->tasks[i]->task->state);
    g_string_append_c(seen->seen, ' ');
    return TRUE;
}

static gboolean see_use(const Berth__StoredUse *use, gpointer data, GError **error)
{
    Seen *seen = data;
    g_string_append_printf(seen->seen, "use:%d/%u/%u:%d ", use->is_user, use->account, use->uid,
                           (int)use->used_mib_sec);
    return TRUE;
}

static gboolean see_prior(const Berth__StoredPrior *prior, gpointer data, GError **error)
{
    Seen *seen = data;
    g_string_append_printf(seen->seen, "prior:%u/%d/%u/%d:%u ", prior->uid, (int)prior->family,
                           prior->vcpus, (int)prior->memory_mib, prior->siblings);
    return TRUE;
}

static gboolean see_unwanted(const char *image_id, BerthUnwanted why, gpointer data, GError **error)
{
    Seen *seen = data;
    g_string_append_printf(seen->seen, "unwanted:%s:%d ", image_id, (int)why);
    return TRUE;
}

static const BerthStoreLoader loader = {see_node, see_image, see_job,
                                        see_use,  see_prior, see_unwanted};

static char *load(const char *path, guint64 refuse_job, BerthStoreCounters *counters,
                  GError **error)
{
    g_autoptr(BerthStore) store = store_open_ok(path);
    Seen seen = {g_string_new(NULL), refuse_job};
    gboolean ok = berth_store_load(store, &loader, &seen, counters, error);
    char *text = g_string_free(seen.seen, FALSE);
    if (ok)
        return g_strstrip(text);
    g_free(text);
    return NULL;
}

static void put_node(BerthStoreBatch *batch, const char *name, Berth__NodeState node_state)
{
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    info.name = (char *)name;
    Berth__StoredNode node = BERTH__STORED_NODE__INIT;
    node.info = &info;
    node.state = node_state;
    berth_store_batch_put_node(batch, &node);
}

static void put_image(BerthStoreBatch *batch, const char *name)
{
    Berth__Image image = BERTH__IMAGE__INIT;
    image.name = (char *)name;
    berth_store_batch_put_image(batch, &image);
}

static void load_new_store_is_empty(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    BerthStoreCounters counters = {.next_job = 99, .last_seq = 99};
    g_autofree char *seen = load(fixture->path, 0, &counters, NULL);
    assert_string_equal(seen, "");
    assert_int_equal(counters.next_job, 1);
    assert_int_equal(counters.last_seq, 0);
}

static BerthStoreCounters counters_of(const char *path)
{
    BerthStoreCounters counters = {0};
    g_autofree char *seen = load(path, 0, &counters, NULL);
    assert_non_null(seen);
    return counters;
}

static void load_gives_each_database_an_id_that_stays(void **state)
{
    g_autoptr(StoreFixture) one = store_fixture_new();
    g_autoptr(StoreFixture) other = store_fixture_new();
    BerthStoreCounters first = counters_of(one->path);
    BerthStoreCounters again = counters_of(one->path);
    BerthStoreCounters another = counters_of(other->path);
    assert_int_equal(strspn(first.id, "0123456789abcdef"), BERTH_STORE_ID_CHARS);
    assert_string_equal(again.id, first.id);
    assert_string_not_equal(another.id, first.id);
}

static void load_gives_what_is_reserved_and_no_number_below_the_next(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    assert_int_equal(counters_of(fixture->path).jobs_reserved, 0);
    static const struct {
        guint64 reserved, next, loaded;
    } cases[] = {{500, 100, 100}, {600, 7, 100}, {900, 300, 300}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthStore) store = store_open_ok(fixture->path);
        BerthStoreBatch *batch = berth_store_batch_new();
        berth_store_batch_reserve_jobs(batch, cases[i].reserved, cases[i].next);
        store_commit_ok(store, batch);
        g_clear_pointer(&store, berth_store_close);
        BerthStoreCounters counters = counters_of(fixture->path);
        assert_int_equal(counters.jobs_reserved, cases[i].reserved);
        assert_int_equal(counters.next_job, cases[i].loaded);
    }
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_sample(batch, 400, 1000, 0);
    store_commit_ok(store, batch);
    g_clear_pointer(&store, berth_store_close);
    assert_int_equal(counters_of(fixture->path).next_job, 401);
}

static void fill(const char *path)
{
    g_autoptr(BerthStore) store = store_open_ok(path);
    BerthStoreBatch *batch = berth_store_batch_new();
    put_node(batch, "n2", BERTH__NODE_STATE__NODE_LOST);
    put_node(batch, "n1", BERTH__NODE_STATE__NODE_DOWN);
    put_node(batch, "n1", BERTH__NODE_STATE__NODE_UP);
    put_image(batch, "debian");
    put_image(batch, "busybox");
    put_image(batch, "gone");
    berth_store_batch_remove_image(batch, "gone");
    for (guint64 job = 1; job <= 4; job++)
        store_batch_add_sample(batch, job, 1000, 0);
    store_batch_set_state(batch, 2, 1000, BERTH__JOB_STATE__COMPLETED, TRUE);
    /* Final, but its guest is not released yet. */
    store_batch_set_state(batch, 3, 1000, BERTH__JOB_STATE__FAILED, FALSE);
    store_batch_set_state(batch, 4, 1000, BERTH__JOB_STATE__COMPLETED, TRUE);
    store_commit_ok(store, batch);
}

static void put_use(BerthStoreBatch *batch, gboolean is_user, guint32 uid, guint64 used)
{
    Berth__StoredUse use = BERTH__STORED_USE__INIT;
    use.is_user = is_user;
    use.uid = uid;
    use.used_mib_sec = used;
    berth_store_batch_put_use(batch, &use);
}

static void put_prior(BerthStoreBatch *batch, guint64 family, guint64 memory_mib, guint32 siblings)
{
    Berth__StoredPrior prior = BERTH__STORED_PRIOR__INIT;
    prior.uid = 1000;
    prior.family = family;
    prior.vcpus = 2;
    prior.memory_mib = memory_mib;
    prior.siblings = siblings;
    berth_store_batch_put_prior(batch, &prior);
}

static void load_gives_what_is_unwanted(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    BerthStoreBatch *batch = berth_store_batch_new();
    berth_store_batch_put_unwanted(batch, "b-1", BERTH_UNWANTED_IMPORT);
    berth_store_batch_put_unwanted(batch, "a-1", BERTH_UNWANTED_IMPORT);
    berth_store_batch_put_unwanted(batch, "c-1", BERTH_UNWANTED_IMPORT);
    put_image(batch, "a");
    store_commit_ok(store, batch);
    batch = berth_store_batch_new();
    berth_store_batch_remove_unwanted(batch, "c-1");
    berth_store_batch_put_unwanted(batch, "a-1", BERTH_UNWANTED_REMOVAL);
    store_commit_ok(store, batch);
    g_clear_pointer(&store, berth_store_close);
    BerthStoreCounters counters = {0};
    g_autofree char *seen = load(fixture->path, 0, &counters, NULL);
    assert_string_equal(seen, "image:a unwanted:a-1:2 unwanted:b-1:1");
}

static void load_gives_what_the_policy_learnt(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    BerthStoreBatch *batch = berth_store_batch_new();
    put_use(batch, TRUE, 1000, 5);
    put_use(batch, FALSE, 0, 6);
    put_use(batch, TRUE, 0, 7); /* of the user 0, who is not the root of all accounts */
    put_prior(batch, 1, 64, 1);
    put_prior(batch, 2, 64, 1);
    put_prior(batch, 1, 128, 1);
    store_commit_ok(store, batch);
    batch = berth_store_batch_new();
    put_use(batch, TRUE, 1000, 8);
    put_prior(batch, 1, 64, 2); /* the youngest again */
    put_prior(batch, 2, 64, 0); /* forgotten */
    store_commit_ok(store, batch);
    g_clear_pointer(&store, berth_store_close);
    BerthStoreCounters counters = {0};
    g_autofree char *seen = load(fixture->path, 0, &counters, NULL);
    assert_string_equal(seen, "use:0/0/0:6 use:1/0/0:7 use:1/0/1000:8 "
                              "prior:1000/1/2/128:1 prior:1000/1/2/64:2");
}

static void load_gives_what_is_not_over(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    fill(fixture->path);
    BerthStoreCounters counters = {0};
    g_autofree char *seen = load(fixture->path, 0, &counters, NULL);
    assert_string_equal(seen, "node:n1:1 node:n2:3 image:busybox image:debian "
                              "job:1/busybox/1:1 job:3/busybox/1:5");
    assert_int_equal(counters.next_job, 5);
    assert_int_equal(counters.last_seq, 4);
}

static void load_task_undone_again_is_open(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    fill(fixture->path);
    BerthStore *store = store_open_ok(fixture->path);
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_set_state(batch, 4, 1000, BERTH__JOB_STATE__PENDING, FALSE);
    store_commit_ok(store, batch);
    berth_store_close(store);
    BerthStoreCounters counters = {0};
    g_autofree char *seen = load(fixture->path, 0, &counters, NULL);
    assert_non_null(strstr(seen, "job:4/busybox/1:1"));
}

static void load_refused_by_loader_fails(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    fill(fixture->path);
    BerthStoreCounters counters = {0};
    g_autoptr(GError) error = NULL;
    assert_null(load(fixture->path, 3, &counters, &error));
    assert_string_equal(error->message, "refused");
}

static void load_damaged_record_is_data_loss(void **state)
{
    static const char *const damage[] = {
        "UPDATE task SET record = x'ffff' WHERE job = 1",
        "UPDATE task SET record = x'' WHERE job = 1", /* a message, but without a task */
        "UPDATE job SET record = x'ffff' WHERE id = 3",
        "UPDATE spec SET record = x'ffff' WHERE job = 3",
        "UPDATE node SET record = x'ffff'",
        "UPDATE image SET record = x'ffff'",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(damage); i++) {
        g_autoptr(StoreFixture) fixture = store_fixture_new();
        fill(fixture->path);
        sqlite3 *db = NULL;
        assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, damage[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        BerthStoreCounters counters = {0};
        g_autoptr(GError) error = NULL;
        assert_null(load(fixture->path, 0, &counters, &error));
        assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_new_store_is_empty),
        cmocka_unit_test(load_gives_each_database_an_id_that_stays),
        cmocka_unit_test(load_gives_what_is_reserved_and_no_number_below_the_next),
        cmocka_unit_test(load_gives_what_is_not_over),
        cmocka_unit_test(load_task_undone_again_is_open),
        cmocka_unit_test(load_refused_by_loader_fails),
        cmocka_unit_test(load_damaged_record_is_data_loss),
        cmocka_unit_test(load_gives_what_the_policy_learnt),
        cmocka_unit_test(load_gives_what_is_unwanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
