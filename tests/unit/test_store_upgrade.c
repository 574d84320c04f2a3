/* SPDX-License-Identifier: Apache-2.0 */
/* A database of an older release: it is brought to the present schema as a whole or not at all, and
 * what is in it is there. */
#include "tests/lib/assert.h"
#include "tests/unit/store_fixture.h"

#include <sqlite3.h>

/* What the first release made, word by word: not to be changed with the store. */
static const char schema_1[] =
    "CREATE TABLE job ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  uid INTEGER NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  open INTEGER NOT NULL DEFAULT 1,"
    "  record BLOB NOT NULL);"
    "CREATE INDEX job_by_uid ON job (uid, id);"
    "CREATE INDEX job_open ON job (id) WHERE open = 1;"
    "CREATE INDEX job_by_state ON job (state, id);"
    "CREATE INDEX job_by_uid_state ON job (uid, state, id);"
    "CREATE TABLE spec (job INTEGER PRIMARY KEY, record BLOB NOT NULL);"
    "CREATE TABLE task ("
    "  job INTEGER NOT NULL,"
    "  number INTEGER NOT NULL,"
    "  done INTEGER NOT NULL,"
    "  record BLOB NOT NULL,"
    "  PRIMARY KEY (job, number)) WITHOUT ROWID;"
    "CREATE INDEX task_open ON task (job) WHERE done = 0;"
    "CREATE TABLE idempotency ("
    "  uid INTEGER NOT NULL,"
    "  key TEXT NOT NULL,"
    "  job INTEGER NOT NULL,"
    "  PRIMARY KEY (uid, key)) WITHOUT ROWID;"
    "CREATE TABLE node (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE image (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE blob (sha256 BLOB NOT NULL UNIQUE, content BLOB NOT NULL);"
    "CREATE TABLE job_blob ("
    "  sha256 BLOB NOT NULL,"
    "  job INTEGER NOT NULL,"
    "  PRIMARY KEY (sha256, job)) WITHOUT ROWID;"
    "CREATE TABLE event ("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  job INTEGER NOT NULL,"
    "  record BLOB NOT NULL);"
    "CREATE INDEX event_by_job ON event (job, seq) WHERE job <> 0;"
    "PRAGMA application_id = 1111839316; PRAGMA user_version = 1;"
    /* Job 7 of uid 1000, that waits: {id: 7, uid: 1000}, {name: "a"}, {task: {job: 7}}. */
    "INSERT INTO job (id, uid, state, record) VALUES (7, 1000, 1, x'080720e807');"
    "INSERT INTO spec VALUES (7, x'0a0161');"
    "INSERT INTO task VALUES (7, 0, 0, x'0a020807');"
    "INSERT INTO idempotency VALUES (1000, 'key', 7);";

/* What led from it to schema 2, word by word, too. */
static const char step_to_2[] =
    "CREATE TABLE used (name TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE prior (name TEXT PRIMARY KEY, record BLOB NOT NULL);"
    "PRAGMA user_version = 2;"
    /* {uid: 1000, is_user, used_mib_sec: 5, at_usec: 6}, and of a family that had an earlier row:
     * {uid: 1000, family: 9, vcpus: 2, memory_mib: 512, siblings: 3, peak_milli: 1500, peak_mib: 444}. */
    "INSERT INTO used VALUES ('user 0/1000', x'10e807180120052806');"
    "INSERT INTO prior VALUES ('1000/9/2/512', x'08e8071009180220800428013001');"
    "INSERT OR REPLACE INTO prior VALUES ('1000/9/2/512', "
    "x'08e80710091802208004280330dc0b38bc03');";

/* And to schema 3. */
static const char step_to_3[] =
    "CREATE TABLE identity ("
    "  id TEXT NOT NULL,"
    "  jobs_reserved INTEGER NOT NULL,"
    "  next_job INTEGER NOT NULL);"
    "INSERT INTO identity VALUES (lower(hex(randomblob(16))), 0, 0);"
    "PRAGMA user_version = 3;"
    /* An image {name: "tiny", id: "tiny-1"}, and two objects {id: "gone-1" or "gone-2", unwanted}. */
    "INSERT INTO image VALUES ('tiny', x'0a0474696e79320674696e792d31');"
    "INSERT INTO image VALUES ('id:gone-1', x'3206676f6e652d314001');"
    "INSERT INTO image VALUES ('id:gone-2', x'3206676f6e652d324001');";

/* And to schema 4. */
static const char step_to_4[] =
    "CREATE TABLE unwanted_image (id TEXT PRIMARY KEY, reason INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO unwanted_image SELECT substr(name, 4), 1 FROM image WHERE name LIKE 'id:%';"
    "DELETE FROM image WHERE name LIKE 'id:%';"
    "PRAGMA user_version = 4;"
    /* One more, of an image that was removed; and numbers that are reserved. */
    "INSERT INTO unwanted_image VALUES ('gone-3', 2);"
    "UPDATE identity SET jobs_reserved = 20000, next_job = 9000;";

/* And to schema 5. */
static const char step_to_5[] =
    "ALTER TABLE job ADD COLUMN unstarted INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 5;"
    /* An array {id: 8, array: {}} that has ended: tasks 3, 5, 7 and 9 together, and 4. */
    "INSERT INTO job (id, uid, state, open, record) VALUES (8, 1000, 6, 0, x'0808c20200');"
    "INSERT INTO spec VALUES (8, x'0a0161');"
    "INSERT INTO task VALUES (8, 3, 1, x'0a0a08081003800309880302');"
    "INSERT INTO task VALUES (8, 4, 1, x'0a0408081004');";

/* And to schema 6: "berth_rest_last(RECORD)" there is 9 for the one that stands for several. */
static const char step_to_6[] =
    "ALTER TABLE task ADD COLUMN rest_last INTEGER NOT NULL DEFAULT 0;"
    "UPDATE task SET rest_last = 9 WHERE job = 8 AND number = 3;"
    "CREATE INDEX task_rest ON task (job, number, rest_last) WHERE rest_last > 0;"
    "PRAGMA user_version = 6;";

/* parts[N]: what leads to schema N + 1. A new schema needs one more, of the schema before it. */
static const char *const parts[] = {schema_1,  step_to_2, step_to_3,
                                    step_to_4, step_to_5, step_to_6};
G_STATIC_ASSERT(G_N_ELEMENTS(parts) == BERTH_STORE_SCHEMA_VERSION - 1);

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

static void make_schema(const char *path, guint version)
{
    for (guint i = 0; i < version; i++)
        run_sql(path, parts[i]);
}

static int append_row(void *text, int n, char **values, char **names)
{
    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "%s\n", values[i] != NULL ? values[i] : "");
    return 0;
}

static char *ask(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    GString *text = g_string_new(NULL);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, append_row, text, NULL), SQLITE_OK);
    sqlite3_close(db);
    return g_string_free(text, FALSE);
}

/* Without the blanks that people put in. */
static char *schema_of(const char *path)
{
    g_autofree char *raw = ask(path, "SELECT sql FROM sqlite_schema ORDER BY name");
    g_auto(GStrv) words = g_strsplit(raw, " ", -1);
    return g_strjoinv("", words);
}

typedef struct {
    guint n_jobs, n_learnt, n_images, n_unwanted;
} Seen;

static gboolean see_node(const Berth__StoredNode *node, gpointer data, GError **error)
{
    return TRUE;
}

static gboolean see_image(const Berth__Image *image, gpointer data, GError **error)
{
    Seen *seen = data;
    assert_string_equal(image->name, "tiny");
    assert_string_equal(image->id, "tiny-1");
    seen->n_images++;
    return TRUE;
}

static gboolean see_unwanted(const char *image_id, BerthUnwanted why, gpointer data, GError **error)
{
    static const char *const ids[] = {"gone-1", "gone-2", "gone-3"};
    Seen *seen = data;
    assert_true(seen->n_unwanted < G_N_ELEMENTS(ids));
    assert_string_equal(image_id, ids[seen->n_unwanted]);
    assert_int_equal(why, seen->n_unwanted < 2 ? BERTH_UNWANTED_IMPORT : BERTH_UNWANTED_REMOVAL);
    seen->n_unwanted++;
    return TRUE;
}

static gboolean see_job(BerthStoreLoadedJob *loaded, gpointer data, GError **error)
{
    Seen *seen = data;
    assert_int_equal(loaded->job->id, 7);
    assert_int_equal(loaded->n_tasks, 1);
    assert_int_equal(loaded->tasks[0]->task->job, 7);
    assert_int_equal(loaded->tasks[0]->starved_usec, 0);
    assert_int_equal(loaded->tasks[0]->peak_mib, 0);
    seen->n_jobs++;
    return TRUE;
}

static gboolean see_use(const Berth__StoredUse *use, gpointer data, GError **error)
{
    Seen *seen = data;
    if (use->uid != 0) {
        assert_true(use->is_user);
        assert_int_equal(use->used_mib_sec, 5);
        assert_int_equal(use->at_usec, 6);
    }
    seen->n_learnt++;
    return TRUE;
}

static gboolean see_prior(const Berth__StoredPrior *prior, gpointer data, GError **error)
{
    Seen *seen = data;
    assert_int_equal(prior->family, 9);
    assert_int_equal(prior->siblings, 3);
    assert_int_equal(prior->peak_milli, 1500);
    assert_int_equal(prior->peak_mib, 444);
    seen->n_learnt++;
    return TRUE;
}

static Seen load(BerthStore *store, BerthStoreCounters *out_counters)
{
    static const BerthStoreLoader loader = {.node = see_node,
                                            .image = see_image,
                                            .job = see_job,
                                            .use = see_use,
                                            .prior = see_prior,
                                            .unwanted = see_unwanted};
    Seen seen = {0};
    g_autoptr(GError) error = NULL;
    berth_store_load(store, &loader, &seen, out_counters, &error);
    assert_no_error(error);
    return seen;
}

static void upgrade_of_the_first_schema_keeps_what_is_in_it(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(StoreFixture) fresh = store_fixture_new();
    BerthStoreCounters counters = {0};
    make_schema(fixture->path, 1);
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    Seen seen = load(store, &counters);
    assert_int_equal(seen.n_jobs, 1);
    assert_int_equal(seen.n_learnt, 0);
    assert_int_equal(counters.next_job, 8);
    g_autofree char *id = g_strdup(counters.id);
    assert_int_equal(strlen(id), BERTH_STORE_ID_CHARS);
    assert_int_equal(berth_store_find_idempotency_key(store, 1000, "key", NULL), 7);
    BerthStoreBatch *batch = berth_store_batch_new();
    Berth__StoredUse use = BERTH__STORED_USE__INIT;
    berth_store_batch_put_use(batch, &use);
    store_commit_ok(store, batch);
    g_clear_pointer(&store, berth_store_close);

    /* As a new one is, and it is not done again. */
    berth_store_close(store_open_ok(fresh->path));
    g_autofree char *ours = schema_of(fixture->path);
    g_autofree char *wanted = schema_of(fresh->path);
    assert_string_equal(ours, wanted);
    g_autofree char *version = ask(fixture->path, "PRAGMA user_version");
    assert_int_equal(g_ascii_strtoll(version, NULL, 10), BERTH_STORE_SCHEMA_VERSION);
    store = store_open_ok(fixture->path);
    seen = load(store, &counters);
    assert_int_equal(seen.n_jobs + seen.n_learnt, 2);
    assert_string_equal(counters.id, id);
}

static void upgrade_of_schema_2_keeps_what_was_learnt(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    BerthStoreCounters counters = {0};
    make_schema(fixture->path, 2);
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    Seen seen = load(store, &counters);
    assert_int_equal(seen.n_jobs, 1);
    assert_int_equal(seen.n_learnt, 2);
    assert_int_equal(strlen(counters.id), BERTH_STORE_ID_CHARS);
    assert_int_equal(counters.jobs_reserved, 0);
    assert_int_equal(counters.next_job, 8);
}

static void upgrade_of_schema_3_parts_images_from_what_is_unwanted(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    BerthStoreCounters counters = {0};
    make_schema(fixture->path, 3);
    g_autofree char *id = ask(fixture->path, "SELECT id FROM identity");
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    Seen seen = load(store, &counters);
    assert_int_equal(seen.n_jobs, 1);
    assert_int_equal(seen.n_images, 1);
    assert_int_equal(seen.n_unwanted, 2);
    assert_string_equal(g_strchomp(id), counters.id);
}

static void upgrade_of_schema_4_keeps_what_is_to_be_removed_and_numbers(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    BerthStoreCounters counters = {0};
    make_schema(fixture->path, 4);
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    Seen seen = load(store, &counters);
    assert_int_equal(seen.n_jobs, 1);
    assert_int_equal(seen.n_learnt, 2);
    assert_int_equal(seen.n_images, 1);
    assert_int_equal(seen.n_unwanted, 3);
    assert_int_equal(counters.jobs_reserved, 20000);
    assert_int_equal(counters.next_job, 9000);
    g_autofree char *unstarted = ask(fixture->path, "SELECT unstarted FROM job");
    assert_string_equal(unstarted, "0\n");
}

static void upgrade_of_schema_5_finds_tasks_that_ended_together(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(BerthIndexSet) only = berth_index_set_parse("4-9", 100, NULL);
    g_autoptr(GError) error = NULL;
    make_schema(fixture->path, 5);
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    Berth__Job *job =
        berth_store_get_job_with(store, 8, &(BerthStoreTasks){.only = only, .limit = 10}, &error);
    assert_no_error(error);
    assert_int_equal(job->n_tasks, 4);
    for (guint i = 0; i < 4; i++)
        assert_int_equal(job->tasks[i]->index, i == 0 ? 4 : 3 + 2 * i);
    berth__job__free_unpacked(job, NULL);
}

static void upgrade_of_schema_6_finds_the_key_of_a_job_that_goes(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    make_schema(fixture->path, 6);
    berth_store_close(store_open_ok(fixture->path));
    g_autofree char *plan =
        ask(fixture->path, "EXPLAIN QUERY PLAN DELETE FROM idempotency WHERE job = 7");
    assert_non_null(strstr(plan, "idempotency_by_job"));
    g_autofree char *kept = ask(fixture->path, "SELECT count(*) FROM task WHERE rest_last = 9");
    assert_string_equal(kept, "1\n");
}

static void upgrade_of_every_schema_ends_as_a_new_database(void **state)
{
    g_autoptr(StoreFixture) fresh = store_fixture_new();
    berth_store_close(store_open_ok(fresh->path));
    g_autofree char *wanted = schema_of(fresh->path);
    for (guint version = 1; version <= G_N_ELEMENTS(parts); version++) {
        g_autoptr(StoreFixture) fixture = store_fixture_new();
        make_schema(fixture->path, version);
        g_autofree char *before = ask(fixture->path, "PRAGMA user_version");
        assert_int_equal(g_ascii_strtoull(before, NULL, 10), version);
        berth_store_close(store_open_ok(fixture->path));
        g_autofree char *ours = schema_of(fixture->path);
        g_autofree char *after = ask(fixture->path, "PRAGMA user_version");
        assert_string_equal(ours, wanted);
        assert_int_equal(g_ascii_strtoull(after, NULL, 10), BERTH_STORE_SCHEMA_VERSION);
    }
}

static void upgrade_that_fails_changes_nothing(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    make_schema(fixture->path, 1);
    run_sql(fixture->path, "CREATE TABLE prior (of_somebody_else)"); /* the second one fails */
    g_autofree char *before = schema_of(fixture->path);
    store_open_fails(fixture->path, BERTH_ERROR_INTERNAL, "bring it to the present schema",
                     fixture->path);
    g_autofree char *after = schema_of(fixture->path);
    g_autofree char *version = ask(fixture->path, "PRAGMA user_version");
    assert_string_equal(after, before);
    assert_string_equal(version, "1\n");
    run_sql(fixture->path, "DROP TABLE prior");
    berth_store_close(store_open_ok(fixture->path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upgrade_of_the_first_schema_keeps_what_is_in_it),
        cmocka_unit_test(upgrade_of_schema_2_keeps_what_was_learnt),
        cmocka_unit_test(upgrade_of_schema_3_parts_images_from_what_is_unwanted),
        cmocka_unit_test(upgrade_of_schema_4_keeps_what_is_to_be_removed_and_numbers),
        cmocka_unit_test(upgrade_of_schema_5_finds_tasks_that_ended_together),
        cmocka_unit_test(upgrade_of_schema_6_finds_the_key_of_a_job_that_goes),
        cmocka_unit_test(upgrade_of_every_schema_ends_as_a_new_database),
        cmocka_unit_test(upgrade_that_fails_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
