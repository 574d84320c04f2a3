/* SPDX-License-Identifier: Apache-2.0 */
/* A store that the test answers by hand: nothing is written until finish() says how it went. */
#include "nodeagent/log_writer.h"
#include "tests/lib/assert.h"

typedef struct {
    char *log_id;
    guint64 offset;
    GBytes *data;
    GTask *task;
} Write;

typedef struct {
    GPtrArray *writes; /* Write, in the order of the calls; answered ones are removed */
    GByteArray *logs[BERTH_N_STREAMS];
    guint progress;
} Store;

static void write_free(gpointer data)
{
    Write *write = data;
    g_free(write->log_id);
    g_bytes_unref(write->data);
    g_object_unref(write->task);
    g_free(write);
}

static guint stream_of(const Write *write)
{
    return g_str_has_suffix(write->log_id, ".err") ? BERTH_STDERR : BERTH_STDOUT;
}

static void store_write(gpointer data, const char *log_id, guint64 offset, GBytes *bytes,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    Store *store = data;
    Write *write = g_new0(Write, 1);
    *write = (Write){g_strdup(log_id), offset, g_bytes_ref(bytes),
                     g_task_new(NULL, cancellable, callback, user_data)};
    g_ptr_array_add(store->writes, write);
}

static gboolean store_write_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static const BerthLogStore store_ops = {store_write, store_write_finish};

/* Answers write INDEX; what worked is in the log from then on. */
static void finish(Store *store, guint index, gboolean ok)
{
    Write *write = g_ptr_array_steal_index(store->writes, index);
    GByteArray *log = store->logs[stream_of(write)];
    if (ok) {
        gsize length;
        const guint8 *bytes = g_bytes_get_data(write->data, &length);
        assert_true(write->offset <= log->len);
        if (log->len < write->offset + length)
            g_byte_array_set_size(log, (guint)(write->offset + length));
        memcpy(log->data + write->offset, bytes, length);
        g_task_return_boolean(write->task, TRUE);
    } else {
        g_task_return_new_error(write->task, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "away");
    }
    write_free(write);
}

static void settle(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

static void on_progress(gpointer data)
{
    ((Store *)data)->progress++;
}

static int make_store(void **state)
{
    Store *store = g_new0(Store, 1);
    store->writes = g_ptr_array_new_with_free_func(write_free);
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        store->logs[i] = g_byte_array_new();
    *state = store;
    return 0;
}

static int free_store(void **state)
{
    Store *store = *state;
    while (store->writes->len > 0)
        finish(store, 0, FALSE);
    settle();
    g_ptr_array_unref(store->writes);
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        g_byte_array_unref(store->logs[i]);
    g_free(store);
    return 0;
}

static void log_writer_writes_in_order_with_one_under_way(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "log-1", on_progress, store);
    berth_log_writer_append(writer, BERTH_STDOUT, "one", 3);
    berth_log_writer_append(writer, BERTH_STDOUT, "two", 3);
    berth_log_writer_append(writer, BERTH_STDERR, "err", 3);
    berth_log_writer_append(writer, BERTH_STDOUT, "three", 5);
    assert_int_equal(store->writes->len, 2); /* one for each stream */
    assert_int_equal(berth_log_writer_accepted(writer, BERTH_STDOUT), 11);
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 0);
    assert_false(berth_log_writer_is_idle(writer));
    const Write *first = g_ptr_array_index(store->writes, 0);
    assert_string_equal(first->log_id, "log-1.out");
    assert_int_equal(g_bytes_get_size(first->data), 3);

    finish(store, 0, TRUE);
    settle();
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 3);
    assert_int_equal(store->progress, 1);
    assert_int_equal(store->writes->len, 2); /* what came meanwhile is one batch */
    finish(store, 0, TRUE);
    settle();
    assert_false(berth_log_writer_is_idle(writer));
    finish(store, 0, TRUE);
    settle();
    assert_true(berth_log_writer_is_idle(writer));
    assert_int_equal(store->writes->len, 0);
    assert_memory_equal(store->logs[BERTH_STDOUT]->data, "onetwothree", 11);
    assert_memory_equal(store->logs[BERTH_STDERR]->data, "err", 3);
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 11);
}

static void log_writer_failing_store_is_tried_until_it_works(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    berth_log_writer_append(writer, BERTH_STDOUT, "abc", 3);
    for (guint i = 0; i < 3; i++) {
        const Write *write = g_ptr_array_index(store->writes, 0);
        assert_int_equal(write->offset, 0);
        assert_int_equal(g_bytes_get_size(write->data), 3);
        finish(store, 0, FALSE);
        berth_log_writer_append(writer, BERTH_STDOUT, "d", 1);
        run_until(store->writes->len == 1);
        assert_int_equal(store->progress, 0);
    }
    finish(store, 0, TRUE);
    settle();
    finish(store, 0, TRUE);
    settle();
    assert_memory_equal(store->logs[BERTH_STDOUT]->data, "abcddd", 6);
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 6);
}

static void log_writer_full_has_no_room_until_durable(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    g_autofree guint8 *block = g_malloc(1u << 19);
    for (gsize i = 0; i < 1u << 19; i++)
        block[i] = (guint8)(i * 7 + i / 251);
    guint blocks = 0;
    while (berth_log_writer_has_room(writer)) {
        berth_log_writer_append(writer, blocks % 2, block, 1u << 19);
        blocks++;
    }
    assert_int_equal(blocks, BERTH_LOG_WRITER_PENDING_MAX / (1u << 19));
    while (store->writes->len > 0) {
        const Write *write = g_ptr_array_index(store->writes, 0);
        assert_true(g_bytes_get_size(write->data) <= BERTH_LOG_WRITER_BATCH_MAX);
        finish(store, 0, TRUE);
        settle();
    }
    assert_true(berth_log_writer_has_room(writer));
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        assert_int_equal(store->logs[i]->len, blocks / 2 * (1u << 19));
        assert_memory_equal(store->logs[i]->data + (1u << 19), block, 1u << 19);
    }
}

static void log_writer_batches_are_bounded(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    g_autofree guint8 *block = g_malloc0(3 * BERTH_LOG_WRITER_BATCH_MAX / 2);
    berth_log_writer_append(writer, 0, "x", 1);
    berth_log_writer_append(writer, 0, block, 3 * BERTH_LOG_WRITER_BATCH_MAX / 2);
    finish(store, 0, TRUE);
    settle();
    const Write *write = g_ptr_array_index(store->writes, 0);
    assert_int_equal(g_bytes_get_size(write->data), BERTH_LOG_WRITER_BATCH_MAX);
    finish(store, 0, TRUE);
    settle();
    finish(store, 0, TRUE);
    settle();
    assert_int_equal(store->logs[0]->len, 1 + 3 * BERTH_LOG_WRITER_BATCH_MAX / 2);
}

static void log_writer_adopted_continues_at_its_offset(void **state)
{
    Store *store = *state;
    g_byte_array_append(store->logs[0], (const guint8 *)"0123456789", 10);
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    berth_log_writer_set_start(writer, BERTH_STDOUT, 8);
    berth_log_writer_append(writer, BERTH_STDOUT, "89ab", 4);
    finish(store, 0, TRUE);
    settle();
    assert_int_equal(store->logs[0]->len, 12);
    assert_memory_equal(store->logs[0]->data, "0123456789ab", 12);
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 12);
}

static void log_writer_freed_with_a_write_under_way_says_nothing(void **state)
{
    Store *store = *state;
    BerthLogWriter *writer = berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    berth_log_writer_append(writer, BERTH_STDOUT, "abc", 3);
    berth_log_writer_append(writer, BERTH_STDERR, "def", 3);
    finish(store, 1, FALSE); /* this one would be tried again */
    settle();
    berth_log_writer_free(writer);
    finish(store, 0, TRUE);
    settle();
    assert_int_equal(store->progress, 0);
    assert_int_equal(store->writes->len, 0);
}

/* What is under way has been refused where it is not to be written: it is not tried again. */
static void log_writer_that_drops_writes_no_more(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    berth_log_writer_append(writer, BERTH_STDOUT, "abc", 3);
    berth_log_writer_append(writer, BERTH_STDOUT, "def", 3);
    berth_log_writer_append(writer, BERTH_STDERR, "ghi", 3);
    finish(store, 1, FALSE);
    settle(); /* it would be tried again */
    berth_log_writer_drop(writer);
    assert_true(berth_log_writer_is_idle(writer));
    finish(store, 0, FALSE);
    settle();
    guint progress = store->progress;
    berth_log_writer_append(writer, BERTH_STDOUT, "jkl", 3);
    berth_log_writer_append(writer, BERTH_STDERR, "mno", 3);
    assert_int_equal(store->progress, progress);
    settle();
    assert_int_equal(store->progress, progress + 1);
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 9);
    assert_int_equal(berth_log_writer_accepted(writer, BERTH_STDERR), 6);
    gint64 until = g_get_monotonic_time() + G_USEC_PER_SEC / 2; /* longer than until it is tried */
    while (g_get_monotonic_time() < until)
        settle();
    assert_int_equal(store->writes->len, 0);
    assert_int_equal(store->logs[0]->len, 0);
}

/* Somebody else has the guest now, and writes what was not durable here. */
static void log_writer_that_is_given_up_counts_what_is_durable(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "l", on_progress, store);
    berth_log_writer_append(writer, BERTH_STDOUT, "abc", 3);
    finish(store, 0, TRUE);
    run_until(berth_log_writer_durable(writer, BERTH_STDOUT) == 3);
    berth_log_writer_append(writer, BERTH_STDERR, "ghi", 3);
    berth_log_writer_append(writer, BERTH_STDERR, "jkl", 3);
    berth_log_writer_append(writer, BERTH_STDOUT, "def", 3);
    run_until(store->writes->len == 2);
    berth_log_writer_give_up(writer);
    assert_false(berth_log_writer_is_idle(writer)); /* two may still take effect */
    guint progress = store->progress;
    finish(store, 0, TRUE);
    run_until(store->progress == progress + 1);
    finish(store, 0, FALSE);
    run_until(berth_log_writer_is_idle(writer));
    assert_int_equal(store->progress, progress + 2);
    settle();
    assert_int_equal(store->writes->len,
                     0); /* what came after was not begun, and what failed is not tried again */
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDOUT), 3);
    assert_int_equal(berth_log_writer_accepted(writer, BERTH_STDOUT), 3);
    assert_int_equal(berth_log_writer_durable(writer, BERTH_STDERR), 3);
    assert_int_equal(berth_log_writer_accepted(writer, BERTH_STDERR), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_store, free_store)

/* Each costs storage the same. What comes meanwhile goes with the next one. */
static void log_writer_that_writes_little_all_the_time_waits_between(void **state)
{
    Store *store = *state;
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "log-1", on_progress, store);
    guint n = 0;
    do {
        berth_log_writer_append(writer, BERTH_STDOUT, "x", 1);
        if (store->writes->len > 0)
            finish(store, 0, TRUE);
        settle();
    } while (berth_log_writer_is_idle(writer) && ++n < 1000);
    assert_in_range(n, 20, 999); /* those at once, and some more if this was slow */
    assert_int_equal(store->writes->len, 0);
    berth_log_writer_append(writer, BERTH_STDOUT, "yz", 2);
    berth_log_writer_append(writer, BERTH_STDERR, "e", 1);
    assert_int_equal(store->writes->len, 1); /* the other stream has not written much */
    finish(store, 0, TRUE);
    while (store->writes->len == 0)
        g_main_context_iteration(NULL, TRUE);
    finish(store, 0, TRUE);
    settle();
    assert_true(berth_log_writer_is_idle(writer));
    assert_int_equal(store->logs[BERTH_STDOUT]->len, n + 3);
}

static void log_writer_that_writes_much_waits_for_nothing(void **state)
{
    Store *store = *state;
    g_autofree char *much = g_malloc0(BERTH_LOG_WRITER_BATCH_MAX / 4);
    g_autoptr(BerthLogWriter) writer =
        berth_log_writer_new(&store_ops, store, "log-1", on_progress, store);
    for (guint n = 0; n < 100; n++) {
        berth_log_writer_append(writer, BERTH_STDOUT, much, BERTH_LOG_WRITER_BATCH_MAX / 4);
        assert_int_equal(store->writes->len, 1);
        finish(store, 0, TRUE);
        settle();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(log_writer_writes_in_order_with_one_under_way),
        TEST(log_writer_failing_store_is_tried_until_it_works),
        TEST(log_writer_full_has_no_room_until_durable),
        TEST(log_writer_batches_are_bounded),
        TEST(log_writer_adopted_continues_at_its_offset),
        TEST(log_writer_that_drops_writes_no_more),
        TEST(log_writer_that_is_given_up_counts_what_is_durable),
        TEST(log_writer_freed_with_a_write_under_way_says_nothing),
        TEST(log_writer_that_writes_little_all_the_time_waits_between),
        TEST(log_writer_that_writes_much_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
