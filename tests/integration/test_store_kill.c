/* SPDX-License-Identifier: Apache-2.0 */
/* kill -9 of a writing process at random moments: whatever it was told to be durable is there, in
 * whole batches, and the next process can go on at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N_KILLS   20
#define N_AT_ONCE 16 /* commits that the writer keeps on their way */

/* --- the child: commits for ever and writes each acknowledged number to stdout ----------------- */

typedef struct {
    BerthStore *store;
    guint64 next;
} Writer;

static void commit_next(Writer *writer);

typedef struct {
    Writer *writer;
    guint64 job;
} Ack;

static void on_committed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree Ack *ack = data;
    if (!berth_store_commit_finish(ack->writer->store, result, NULL))
        _exit(3);
    if (write(STDOUT_FILENO, &ack->job, sizeof ack->job) != sizeof ack->job)
        _exit(4);
    commit_next(ack->writer);
}

static void commit_next(Writer *writer)
{
    Ack *ack = g_new(Ack, 1);
    *ack = (Ack){writer, writer->next++};
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_sample(batch, ack->job, 1000, 0);
    berth_store_commit_async(writer->store, batch, on_committed, ack);
}

static gboolean see_node(const Berth__StoredNode *node, gpointer data, GError **error)
{
    return TRUE;
}

static gboolean see_image(const Berth__Image *image, gpointer data, GError **error)
{
    return TRUE;
}

/* Every job that is there is whole. */
static gboolean see_job(BerthStoreLoadedJob *loaded, gpointer data, GError **error)
{
    guint64 *count = data;
    assert_int_equal(loaded->n_tasks, 1);
    assert_int_equal(loaded->job->id, *count + 1);
    *count = loaded->job->id;
    return TRUE;
}

static guint64 count_jobs(BerthStore *store, BerthStoreCounters *counters)
{
    static const BerthStoreLoader loader = {.node = see_node, .image = see_image, .job = see_job};
    guint64 count = 0;
    g_autoptr(GError) error = NULL;
    if (!berth_store_load(store, &loader, &count, counters, &error))
        fail_msg("load: %s", error->message);
    return count;
}

G_NORETURN static void run_child(const char *path)
{
    BerthStoreCounters counters;
    Writer writer = {.store = store_open_ok(path)};
    count_jobs(writer.store, &counters);
    writer.next = counters.next_job;
    for (guint i = 0; i < N_AT_ONCE; i++)
        commit_next(&writer);
    for (;;)
        g_main_context_iteration(NULL, TRUE);
}

/* --- the parent ------------------------------------------------------------------------------- */

/* Lets the child acknowledge WANTED jobs, kills it, and gives the last number that it wrote. */
static guint64 write_and_kill(const char *self, const char *path, guint wanted)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) child =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error, self, "--child", path, NULL);
    assert_non_null(child);
    GInputStream *pipe = g_subprocess_get_stdout_pipe(child);
    guint64 job = 0;
    guint64 last = 0;
    gsize got = 0;
    for (guint i = 0;
         g_input_stream_read_all(pipe, &job, sizeof job, &got, NULL, NULL) && got == sizeof job;
         i++) {
        assert_true(last == 0 || job == last + 1);
        last = job;
        if (i == wanted)
            g_subprocess_force_exit(child);
    }
    assert_true(g_subprocess_wait(child, NULL, NULL));
    assert_true(g_subprocess_get_if_signaled(child));
    assert_int_equal(g_subprocess_get_term_sig(child), SIGKILL);
    return last;
}

static char *self_path;

static void killed_writer_loses_nothing_acknowledged(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    for (guint round = 0; round < N_KILLS; round++) {
        guint64 last =
            write_and_kill(self_path, fixture->path, (guint)g_rand_int_range(random, 1, 200));
        g_autoptr(BerthStore) store = store_open_ok(fixture->path);
        BerthStoreCounters counters;
        guint64 count = count_jobs(store, &counters);
        assert_true(count >= last);
        assert_true(count <= last + N_AT_ONCE);
        assert_int_equal(counters.next_job, count + 1);
        assert_int_equal(counters.last_seq, count);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--child") == 0)
        run_child(argv[2]);
    self_path = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_writer_loses_nothing_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
