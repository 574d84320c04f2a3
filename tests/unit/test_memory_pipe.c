/* SPDX-License-Identifier: Apache-2.0 */
/* The FIFO of a guest's memory, with threads in libvirt's place, and storage in memory. */
#include <config.h>

#include "nodeagent/memory_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#define HEADER BERTH_MEMORY_HEADER_BYTES
#define MEMORY ((gsize)3 << 20) /* more than a FIFO holds */
#define LOOKS  1000 /* a worker that looks 10 times a second is done with a minute in no time */
#define TOO_MUCH                                                                                   \
    ((gsize)1 << 19) /* with what was read beyond it, and is in the FIFO, less than that */

static GByteArray *stored;
static gsize stored_max; /* 0: none */
static gsize read_bytes; /* pieces are given up to here */

gboolean __wrap_berth_checkpoint_writer_append(BerthCheckpointWriter *writer, const void *data,
                                               gsize length, GError **error);
gboolean __wrap_berth_checkpoint_writer_append(BerthCheckpointWriter *writer, const void *data,
                                               gsize length, GError **error)
{
    if (stored_max != 0 && stored->len + length > stored_max) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED, "full");
        return FALSE;
    }
    g_byte_array_append(stored, data, (guint)length);
    return TRUE;
}

GBytes *__wrap_berth_checkpoint_reader_next(BerthCheckpointReader *reader, GError **error);
GBytes *__wrap_berth_checkpoint_reader_next(BerthCheckpointReader *reader, GError **error)
{
    gsize part = MIN(MEMORY - read_bytes, (gsize)1 << 20);
    read_bytes += part;
    return g_bytes_new_take(memset(g_malloc(part + 1), 'm', part), part);
}

static gint looks; /* atomic: how often a worker that waits for libvirt's end has looked after it */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    if (timeout > 0)
        g_atomic_int_inc(&looks);
    return __real_poll(fds, n, MIN(timeout, 1));
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
    return __wrap_poll(fds, n, timeout);
}

static int setup(void **state)
{
    g_atomic_int_set(&looks, 0);
    signal(SIGPIPE, SIG_IGN);
    stored = g_byte_array_new();
    stored_max = read_bytes = 0;
    return tempdir_make(state);
}

static int teardown(void **state)
{
    g_byte_array_unref(stored);
    return tempdir_remove(state);
}

/* --- libvirt --------------------------------------------------------------------------------- */

typedef struct {
    const char *path;
    const char *last; /* magic of the header at the end; NULL: none */
    int err;          /* of what failed; 0: nothing did */
    gsize bytes;      /* read */
} Libvirt;

static void write_all(Libvirt *libvirt, const void *data, gsize length)
{
    int fd = g_open(libvirt->path, O_WRONLY | O_TRUNC | O_CLOEXEC, 0);
    for (gsize done = 0; libvirt->err == 0 && done < length;) {
        ssize_t written = write(fd, (const guint8 *)data + done, length - done);
        if (written < 0)
            libvirt->err = errno;
        done += (gsize)MAX(written, 0);
    }
    close(fd);
}

static gpointer save(gpointer data)
{
    Libvirt *libvirt = data;
    g_autofree guint8 *memory = g_malloc0(MEMORY);
    memcpy(memory, "LibvirtQemudPart", 16);
    memset(memory + HEADER, 'm', MEMORY - HEADER);
    write_all(libvirt, memory, MEMORY);
    if (libvirt->last == NULL || libvirt->err != 0)
        return NULL;
    memcpy(memory, libvirt->last, 16);
    write_all(libvirt, memory, HEADER);
    return NULL;
}

static gpointer load(gpointer data)
{
    Libvirt *libvirt = data;
    char buffer[65536];
    ssize_t length = 1;
    int fd = g_open(libvirt->path, O_RDONLY | O_CLOEXEC, 0);
    for (; length > 0 && libvirt->bytes < MEMORY; libvirt->bytes += (gsize)length)
        length = read(fd, buffer, sizeof buffer);
    close(fd);
    return NULL;
}

/* --- our worker ------------------------------------------------------------------------------ */

typedef struct {
    BerthMemoryPipe *pipe;
    gboolean sends;
    gboolean ok;
    gint is_done; /* atomic */
    gint stalls;  /* atomic */
    GBytes *header;
    GError *error;
} Worker;

static void on_stalled(gconstpointer data)
{
    g_atomic_int_inc(&((Worker *)data)->stalls);
}

static gpointer work(gpointer data)
{
    Worker *worker = data;
    worker->ok = worker->sends ? berth_memory_pipe_send(worker->pipe, NULL, on_stalled, worker,
                                                        &worker->error)
                               : berth_memory_pipe_receive(worker->pipe, NULL, on_stalled, worker,
                                                           &worker->header, &worker->error);
    g_atomic_int_set(&worker->is_done, TRUE);
    return NULL;
}

static void worker_clear(Worker *worker)
{
    berth_memory_pipe_unref(worker->pipe);
    g_clear_pointer(&worker->header, g_bytes_unref);
    g_clear_error(&worker->error);
}

static BerthMemoryPipe *make_pipe(const char *dir)
{
    g_autoptr(GError) error = NULL;
    BerthMemoryPipe *pipe = berth_memory_pipe_new(dir, &error);
    assert_no_error(error);
    return pipe;
}

static gboolean is_empty(const char *dir)
{
    g_autoptr(GDir) opened = g_dir_open(dir, 0, NULL);
    return g_dir_read_name(opened) == NULL;
}

/* The worker waits for libvirt's end, and would look after it for a minute. */
static void await_looks(const Worker *worker)
{
    gint64 deadline = g_get_monotonic_time() + 180 * G_USEC_PER_SEC;
    while (g_atomic_int_get(&looks) < LOOKS && !g_atomic_int_get(&worker->is_done) &&
           g_get_monotonic_time() < deadline)
        g_thread_yield();
    assert_true(g_atomic_int_get(&looks) >= LOOKS);
    assert_false(g_atomic_int_get(&worker->is_done));
}

/* --- tests ----------------------------------------------------------------------------------- */

static void save_arrives_with_its_last_header(void **state)
{
    Worker worker = {.pipe = make_pipe(*state)};
    Libvirt libvirt = {.path = berth_memory_pipe_path(worker.pipe), .last = "LibvirtQemudSave"};
    GThread *thread = g_thread_new("work", work, &worker);
    g_thread_join(g_thread_new("libvirt", save, &libvirt));
    berth_memory_pipe_end(worker.pipe);
    g_thread_join(thread);
    assert_no_error(worker.error);
    assert_true(worker.ok);
    assert_int_equal(libvirt.err, 0);
    assert_int_equal(stored->len, MEMORY + HEADER);
    assert_int_equal(stored->data[MEMORY - 1], 'm');
    assert_int_equal(g_bytes_get_size(worker.header), HEADER);
    assert_memory_equal(g_bytes_get_data(worker.header, NULL), "LibvirtQemudSave", 16);
    worker_clear(&worker);
    assert_true(is_empty(*state));
}

static void save_that_is_not_whole_is_refused(void **state)
{
    static const char *const magics[] = {NULL, "LibvirtQemudPart", "0123456789abcdef"};
    for (guint i = 0; i < G_N_ELEMENTS(magics); i++) {
        Worker worker = {.pipe = make_pipe(*state)};
        Libvirt libvirt = {.path = berth_memory_pipe_path(worker.pipe), .last = magics[i]};
        GThread *thread = g_thread_new("work", work, &worker);
        g_thread_join(g_thread_new("libvirt", save, &libvirt));
        berth_memory_pipe_end(worker.pipe);
        g_thread_join(thread);
        assert_false(worker.ok);
        assert_berth_error(worker.error, BERTH_ERROR_INTERNAL, "libvirt");
        worker_clear(&worker);
    }
}

static void storage_that_fails_makes_libvirt_fail(void **state)
{
    Worker worker = {.pipe = make_pipe(*state)};
    Libvirt libvirt = {.path = berth_memory_pipe_path(worker.pipe)};
    stored_max = TOO_MUCH;
    GThread *thread = g_thread_new("work", work, &worker);
    g_thread_join(g_thread_new("libvirt", save, &libvirt));
    assert_int_equal(libvirt.err, EPIPE);
    berth_memory_pipe_stop(worker.pipe);
    g_thread_join(thread);
    assert_berth_error(worker.error, BERTH_ERROR_RESOURCE_EXHAUSTED, "full");
    worker_clear(&worker);
}

/* It would wait for a reader for ever. */
static void libvirt_that_comes_after_it_was_given_up_fails(void **state)
{
    Worker worker = {.pipe = make_pipe(*state)};
    Libvirt libvirt = {.path = berth_memory_pipe_path(worker.pipe)};
    berth_memory_pipe_give_up(worker.pipe);
    GThread *thread = g_thread_new("work", work, &worker);
    g_thread_join(g_thread_new("libvirt", save, &libvirt));
    assert_int_equal(libvirt.err, EPIPE);
    berth_memory_pipe_stop(worker.pipe);
    g_thread_join(thread);
    assert_berth_error(worker.error, BERTH_ERROR_CANCELLED, "not wanted");
    worker_clear(&worker);
}

/* It had to wait for the domain. */
static void libvirt_that_comes_late_after_it_was_given_up_fails(void **state)
{
    Worker worker = {.pipe = make_pipe(*state)};
    Libvirt libvirt = {.path = berth_memory_pipe_path(worker.pipe)};
    berth_memory_pipe_give_up(worker.pipe);
    GThread *thread = g_thread_new("work", work, &worker);
    await_looks(&worker);
    g_thread_join(g_thread_new("libvirt", save, &libvirt));
    assert_int_equal(libvirt.err, EPIPE);
    berth_memory_pipe_stop(worker.pipe);
    g_thread_join(thread);
    assert_berth_error(worker.error, BERTH_ERROR_CANCELLED, "not wanted");
    worker_clear(&worker);
}

/* The guest would stand still for as long. Nobody has asked it in the first minutes. */
static void libvirt_that_does_nothing_is_not_waited_for(void **state)
{
    for (guint i = 0; i < 2; i++) {
        Worker worker = {.pipe = make_pipe(*state), .sends = i == 1};
        GThread *thread = g_thread_new("work", work, &worker);
        g_usleep(20000);
        assert_false(g_atomic_int_get(&worker.is_done));
        assert_int_equal(g_atomic_int_get(&looks), 0);
        berth_memory_pipe_asked(worker.pipe);
        await_looks(&worker);
        assert_int_equal(g_atomic_int_get(&worker.stalls), 1); /* before it waits for libvirt */
        berth_memory_pipe_stop(worker.pipe);
        g_thread_join(thread);
        assert_int_equal(worker.stalls, 1);
        assert_berth_error(worker.error, BERTH_ERROR_CANCELLED, "not wanted");
        worker_clear(&worker);
        g_atomic_int_set(&looks, 0);
    }
}

static void memory_is_given_until_libvirt_has_enough(void **state)
{
    Worker worker = {.pipe = make_pipe(*state), .sends = TRUE};
    Libvirt libvirt = {.path = berth_memory_pipe_path(worker.pipe)};
    GThread *thread = g_thread_new("work", work, &worker);
    g_thread_join(g_thread_new("libvirt", load, &libvirt));
    assert_int_equal(libvirt.bytes, MEMORY);
    berth_memory_pipe_end(worker.pipe);
    g_thread_join(thread);
    assert_no_error(worker.error);
    assert_true(worker.ok);
    worker_clear(&worker);
}

/* What an agent has left that was killed: libvirt still waits at it. */
static void sweep_lets_nobody_wait(void **state)
{
    g_autofree char *dir = g_build_filename(*state, "memory-dead00", NULL);
    g_autofree char *path = g_build_filename(dir, "fifo", NULL);
    g_autofree char *other = g_build_filename(*state, "other", NULL);
    Libvirt libvirt = {.path = path};
    assert_int_equal(g_mkdir(dir, 0700), 0);
    assert_int_equal(g_mkdir(other, 0700), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    /* So that it is there for sure. */
    int reader = g_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    GThread *thread = g_thread_new("libvirt", save, &libvirt);
    char byte;
    while (read(reader, &byte, 1) != 1)
        g_usleep(1000);
    close(reader);
    berth_memory_pipe_sweep(*state);
    g_thread_join(thread);
    assert_int_equal(libvirt.err, EPIPE);
    assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
    assert_int_equal(g_rmdir(other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(save_arrives_with_its_last_header, setup, teardown),
        cmocka_unit_test_setup_teardown(save_that_is_not_whole_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(storage_that_fails_makes_libvirt_fail, setup, teardown),
        cmocka_unit_test_setup_teardown(libvirt_that_comes_after_it_was_given_up_fails, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(libvirt_that_comes_late_after_it_was_given_up_fails, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(libvirt_that_does_nothing_is_not_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(memory_is_given_until_libvirt_has_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(sweep_lets_nobody_wait, setup, teardown),
    };
    return cmocka_run_group_tests_name("memory_pipe", tests, NULL, NULL);
}
