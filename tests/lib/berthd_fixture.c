/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a berthd for one test (tests/lib/berthd_fixture.h). */
#include "config.h"

#include "tests/lib/berthd_fixture.h"

#include "tests/lib/assert.h"

#include "common/message.h"
#include "tests/lib/certificates.h"
#include "tests/lib/child.h"
#include "tests/lib/tool.h"

#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/socket.h>

struct BerthdFixture {
    char *dir;
    char *config;
    char *socket;
    char *state;
    char *ca;
    char *ca_key;
    GSocket *reserved; /* holds the port while no berthd listens on it */
    guint16 port;
    BerthStorage *storage;
    GSubprocess *process; /* NULL = does not run */
    GSocket *notify;
    BerthRpcPeer *client;
    BerthRpcPeer *watcher;
    guint64 cursor;
    GPtrArray *events;  /* Berth__Event */
    GHashTable *states; /* job -> JobState */
    GPtrArray *agents;
    GPtrArray *strings; /* that agents use */
};

/* --- files ------------------------------------------------------------------------------------ */

const char *berthd_fixture_ca(BerthdFixture *fixture)
{
    return fixture->ca;
}

/* Files that all fixtures of a program may have alike, by their names: openssl makes the CA and its certificates once. */
static GHashTable *kept;

static void keep(const char *path)
{
    gsize length;
    char *contents;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(path, &contents, &length, &error);
    assert_no_error(error);
    if (kept == NULL)
        kept =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
    g_hash_table_insert(kept, g_path_get_basename(path), g_bytes_new_take(contents, length));
}

static gboolean put_kept(const char *path)
{
    gsize length;
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_path_get_basename(path);
    GBytes *bytes = kept == NULL ? NULL : g_hash_table_lookup(kept, name);
    if (bytes == NULL)
        return FALSE;
    const char *contents = g_bytes_get_data(bytes, &length);
    g_file_set_contents_full(path, contents, (gssize)length, G_FILE_SET_CONTENTS_NONE, 0600,
                             &error);
    assert_no_error(error);
    return TRUE;
}

static void make_ca(const BerthdFixture *fixture)
{
    if (put_kept(fixture->ca_key) && put_kept(fixture->ca))
        return;
    certificate_make_root("test CA", fixture->ca_key, fixture->ca);
    keep(fixture->ca_key);
    keep(fixture->ca);
}

void berthd_fixture_certificate(BerthdFixture *fixture, const char *name, gboolean is_foreign,
                                char **out_certificate, char **out_key)
{
    g_autofree char *ca_key = g_strdup(fixture->ca_key);
    g_autofree char *ca = g_strdup(fixture->ca);
    if (is_foreign) {
        g_free(ca_key);
        g_free(ca);
        ca_key = g_build_filename(fixture->dir, "foreign-ca.key", NULL);
        ca = g_build_filename(fixture->dir, "foreign-ca.pem", NULL);
        certificate_make_root("test CA", ca_key, ca);
    }
    *out_certificate =
        g_strdup_printf("%s/%s%s.pem", fixture->dir, is_foreign ? "foreign-" : "", name);
    *out_key = g_strdup_printf("%s/%s%s.key", fixture->dir, is_foreign ? "foreign-" : "", name);
    if (!is_foreign && put_kept(*out_key) && put_kept(*out_certificate))
        return;
    certificate_make(name, ca_key, ca, *out_key, *out_certificate);
    if (!is_foreign) {
        keep(*out_key);
        keep(*out_certificate);
    }
}

/* Takes a port that nobody has and keeps it over every restart of berthd. Who binds without
 * SO_REUSEADDR gets a port of its own; set afterwards, the option lets berthd, which sets it too,
 * listen on this one, and the kernel still gives it to nobody else (socket(7)). */
static void reserve_port(BerthdFixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) any = g_inet_socket_address_new(loopback, 0);
    fixture->reserved =
        g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
    assert_no_error(error);
    g_socket_bind(fixture->reserved, any, FALSE, &error);
    assert_no_error(error);
    g_socket_set_option(fixture->reserved, SOL_SOCKET, SO_REUSEADDR, 1, &error);
    assert_no_error(error);
    g_autoptr(GSocketAddress) bound = g_socket_get_local_address(fixture->reserved, &error);
    assert_no_error(error);
    fixture->port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
}

static void write_config(BerthdFixture *fixture, const char *certificate, const char *key,
                         const char *extra, const char *storage_lines)
{
    g_autofree char *text =
        g_strdup_printf("[berthd]\n"
                        "socket = %s\n"
                        "state = %s\n"
                        "log_level = debug\n"
                        "operators_group = daemon\n"
                        "[agents]\n"
                        "address = 127.0.0.1\n"
                        "port = %u\n"
                        "certificate = %s\n"
                        "key = %s\n"
                        "ca = %s\n"
                        "%s"
                        "[defaults]\n"
                        "image = tiny\n"
                        "[storage]\n"
                        "%s",
                        fixture->socket, fixture->state, fixture->port, certificate, key,
                        fixture->ca, extra ? extra : "", storage_lines);
    g_autoptr(GError) error = NULL;
    g_file_set_contents(fixture->config, text, -1, &error);
    assert_no_error(error);
}

static BerthStorage *open_storage(BerthdFixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(fixture->dir, "storage", NULL);
    assert_int_equal(g_mkdir(path, 0755), 0);
    BerthStorageConfig config = {.kind = (char *)"dir", .path = path, .op_timeout_sec = 30};
    BerthStorage *storage = berth_storage_open(&config, &error);
    assert_no_error(error);
    return storage;
}

/* Where berthd says that it is ready. */
static GSocket *make_notify_socket(BerthdFixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(fixture->dir, "notify", NULL);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    GSocket *socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_DATAGRAM, 0, &error);
    assert_no_error(error);
    g_socket_bind(socket, address, FALSE, &error);
    assert_no_error(error);
    g_socket_set_blocking(socket, FALSE);
    return socket;
}

/* Directory, certificates and names; neither storage nor configuration. */
static BerthdFixture *fixture_make(void)
{
    g_autofree char *openssl = g_find_program_in_path("openssl");
    if (!openssl) {
        print_message("openssl is missing\n");
        skip();
    }
    BerthdFixture *fixture = g_new0(BerthdFixture, 1);
    fixture->dir = g_dir_make_tmp("berthd-test-XXXXXX", NULL);
    assert_non_null(fixture->dir);
    assert_int_equal(g_chmod(fixture->dir, 0755), 0); /* other users connect too */
    fixture->config = g_build_filename(fixture->dir, "berthd.conf", NULL);
    fixture->socket = g_build_filename(fixture->dir, "sock", NULL);
    fixture->state = g_build_filename(fixture->dir, "berth.db", NULL);
    fixture->ca = g_build_filename(fixture->dir, "ca.pem", NULL);
    fixture->ca_key = g_build_filename(fixture->dir, "ca.key", NULL);
    reserve_port(fixture);
    fixture->events = g_ptr_array_new_with_free_func((GDestroyNotify)berth_message_free);
    fixture->states = g_hash_table_new(NULL, NULL);
    fixture->agents = g_ptr_array_new_with_free_func((GDestroyNotify)fake_agent_free);
    fixture->strings = g_ptr_array_new_with_free_func(g_free);
    fixture->notify = make_notify_socket(fixture);
    make_ca(fixture);
    return fixture;
}

static void configure(BerthdFixture *fixture, const char *extra, const char *storage_lines)
{
    g_autofree char *certificate = NULL;
    g_autofree char *key = NULL;
    berthd_fixture_certificate(fixture, "berthd", FALSE, &certificate, &key);
    write_config(fixture, certificate, key, extra, storage_lines);
}

BerthdFixture *berthd_fixture_new(const char *extra)
{
    return berthd_fixture_new_storage(extra, NULL);
}

BerthdFixture *berthd_fixture_new_storage(const char *extra, const char *storage_extra)
{
    BerthdFixture *fixture = fixture_make();
    g_autofree char *lines = g_strdup_printf("kind = dir\npath = %s/storage\n%s", fixture->dir,
                                             storage_extra ? storage_extra : "");
    fixture->storage = open_storage(fixture);
    configure(fixture, extra, lines);
    return fixture;
}

BerthdFixture *berthd_fixture_new_on(const char *extra, const char *storage_lines,
                                     BerthStorage *storage)
{
    BerthdFixture *fixture = fixture_make();
    fixture->storage = storage;
    configure(fixture, extra, storage_lines);
    return fixture;
}

const char *berthd_fixture_dir(BerthdFixture *fixture)
{
    return fixture->dir;
}

const char *berthd_fixture_socket(BerthdFixture *fixture)
{
    return fixture->socket;
}

const char *berthd_fixture_state(BerthdFixture *fixture)
{
    return fixture->state;
}

const char *berthd_fixture_config(BerthdFixture *fixture)
{
    return fixture->config;
}

guint16 berthd_fixture_port(BerthdFixture *fixture)
{
    return fixture->port;
}

BerthRpcPeer *berthd_fixture_client(BerthdFixture *fixture)
{
    return fixture->client;
}

BerthStorage *berthd_fixture_storage(BerthdFixture *fixture)
{
    return fixture->storage;
}

/* --- the watcher ------------------------------------------------------------------------------ */

static gboolean on_event(const ProtobufCMessage *item, gpointer user_data)
{
    BerthdFixture *fixture = user_data;
    const Berth__Event *event = (const Berth__Event *)item;
    assert_int_equal(event->seq, fixture->cursor + 1);
    fixture->cursor = event->seq;
    g_ptr_array_add(fixture->events, berth_message_copy(item));
    if (event->kind == BERTH__EVENT__KIND__TASK_STATE) {
        g_hash_table_insert(fixture->states, GSIZE_TO_POINTER(event->job),
                            GINT_TO_POINTER((int)event->state));
    } else if (event->kind == BERTH__EVENT__KIND__JOB_SUBMITTED) {
        g_hash_table_insert(fixture->states, GSIZE_TO_POINTER(event->job),
                            GINT_TO_POINTER(BERTH__JOB_STATE__PENDING));
    }
    return TRUE;
}

static void on_watch_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    berth_rpc_peer_stream_finish(result, NULL);
}

static void watch(BerthdFixture *fixture)
{
    g_autoptr(GError) error = NULL;
    fixture->watcher = berth_rpc_connect_unix(fixture->socket, NULL, &error);
    assert_no_error(error);
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.after_seq = fixture->cursor;
    berth_rpc_peer_stream_async(fixture->watcher, &berth__jobs__descriptor, "Watch", &request.base,
                                0, NULL, on_event, on_watch_ended, fixture);
}

Berth__JobState berthd_fixture_state_of(BerthdFixture *fixture, guint64 job)
{
    return (Berth__JobState)GPOINTER_TO_INT(
        g_hash_table_lookup(fixture->states, GSIZE_TO_POINTER(job)));
}

void berthd_fixture_wait_state(BerthdFixture *fixture, guint64 job, Berth__JobState state)
{
    run_until(berthd_fixture_state_of(fixture, job) == state);
}

static gboolean has_event(BerthdFixture *fixture, Berth__Event__Kind kind, guint64 job)
{
    for (guint i = fixture->events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(fixture->events, i - 1);
        if (event->kind == kind && event->job == job) {
            return TRUE;
        }
    }
    return FALSE;
}

void berthd_fixture_wait_event(BerthdFixture *fixture, Berth__Event__Kind kind, guint64 job)
{
    run_until(has_event(fixture, kind, job));
}

GPtrArray *berthd_fixture_events(BerthdFixture *fixture)
{
    return fixture->events;
}

/* --- the process ------------------------------------------------------------------------------ */

/* A leak may be pointed to from any of the program's variables, of which Ceph's libraries have 136 MiB: to look through them takes
 * one that ends several times as long as all else that it did. In a program of tests the first has to show that it leaks
 * nothing; with BERTH_TEST_FULL=1 each. */
static void limit_leak_check(GSubprocessLauncher *launcher)
{
    static gboolean was_checked;
    g_autofree char *options = child_options_without_leak_check();
    if (was_checked && options != NULL)
        g_subprocess_launcher_setenv(launcher, "ASAN_OPTIONS", options, TRUE);
    was_checked = TRUE;
}

static GSubprocessLauncher *make_launcher(BerthdFixture *fixture, GSubprocessFlags flags)
{
    g_autofree char *path = g_build_filename(fixture->dir, "notify", NULL);
    GSubprocessLauncher *launcher = g_subprocess_launcher_new(flags);
    child_bind(launcher);
    g_subprocess_launcher_setenv(launcher, "NOTIFY_SOCKET", path, TRUE);
    /* What it logs as an error is not always a defect; check_log() tells them apart. */
    g_subprocess_launcher_unsetenv(launcher, "G_DEBUG");
    limit_leak_check(launcher);
    return launcher;
}

static char *program(void)
{
    const char *top = g_getenv("top_builddir");
    return g_build_filename(top ? top : ".", "berthd", NULL);
}

static void wait_ready(BerthdFixture *fixture)
{
    char message[256];
    gboolean is_ready = FALSE;
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    while (!is_ready) {
        g_autoptr(GError) error = NULL;
        gint64 left = deadline - g_get_monotonic_time();
        if (!g_socket_condition_timed_wait(fixture->notify, G_IO_IN, MAX(left, 0), NULL, &error)) {
            fail_msg("berthd was not ready within 60 s: %s", error->message);
        }
        gssize length =
            g_socket_receive(fixture->notify, message, sizeof message - 1, NULL, &error);
        assert_no_error(error);
        message[length] = '\0';
        is_ready = strstr(message, "READY=1") != NULL;
    }
}

static void drain_notify(BerthdFixture *fixture)
{
    char message[256];
    while (g_socket_receive(fixture->notify, message, sizeof message, NULL, NULL) > 0) {
        /* from a daemon before this one */
    }
}

void berthd_fixture_start(BerthdFixture *fixture)
{
    berthd_fixture_start_with(fixture, NULL);
}

void berthd_fixture_start_with(BerthdFixture *fixture, const char *argument)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = program();
    g_autofree char *log = g_build_filename(fixture->dir, "berthd.log", NULL);
    g_autoptr(GSubprocessLauncher) launcher = make_launcher(fixture, G_SUBPROCESS_FLAGS_NONE);
    drain_notify(fixture);
    g_subprocess_launcher_take_stderr_fd(
        launcher, open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    fixture->process = g_subprocess_launcher_spawn(launcher, &error, path, "--config",
                                                   fixture->config, argument, NULL);
    assert_no_error(error);
    wait_ready(fixture);
    fixture->client = berth_rpc_connect_unix(fixture->socket, NULL, &error);
    assert_no_error(error);
    watch(fixture);
}

void berthd_fixture_restart(BerthdFixture *fixture)
{
    berthd_fixture_start(fixture);
    for (guint i = 0; i < fixture->agents->len; i++) {
        FakeAgent *agent = g_ptr_array_index(fixture->agents, i);
        fake_agent_cut(agent);
        fake_agent_heal(agent);
    }
}

void berthd_fixture_restart_anew(BerthdFixture *fixture)
{
    fixture->cursor = 0;
    g_ptr_array_set_size(fixture->events, 0);
    g_hash_table_remove_all(fixture->states);
    berthd_fixture_restart(fixture);
}

int berthd_fixture_run(BerthdFixture *fixture, const char *const *arguments, char **out_stderr)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *path = program();
    g_ptr_array_add(argv, path);
    for (gsize i = 0; arguments && arguments[i]; i++) {
        g_ptr_array_add(argv, (char *)arguments[i]);
    }
    g_ptr_array_add(argv, NULL);
    g_autoptr(GSubprocessLauncher) launcher =
        make_launcher(fixture, G_SUBPROCESS_FLAGS_STDERR_PIPE | G_SUBPROCESS_FLAGS_STDOUT_SILENCE);
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, &error);
    assert_no_error(error);
    g_subprocess_communicate_utf8(process, NULL, NULL, NULL, out_stderr, &error);
    assert_no_error(error);
    assert_true(g_subprocess_get_if_exited(process));
    return g_subprocess_get_exit_status(process);
}

static void disconnect(BerthdFixture *fixture)
{
    g_clear_pointer(&fixture->client, berth_rpc_peer_unref);
    g_clear_pointer(&fixture->watcher, berth_rpc_peer_unref);
}

static void on_waited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    *(gboolean *)user_data = g_subprocess_wait_finish(G_SUBPROCESS(source), result, NULL);
}

int berthd_fixture_wait(BerthdFixture *fixture)
{
    gboolean has_ended = FALSE;
    g_subprocess_wait_async(fixture->process, NULL, on_waited, &has_ended);
    run_until(has_ended);
    disconnect(fixture);
    int status = g_subprocess_get_if_exited(fixture->process)
                     ? g_subprocess_get_exit_status(fixture->process)
                     : 128 + g_subprocess_get_term_sig(fixture->process);
    g_clear_object(&fixture->process);
    return status;
}

void berthd_fixture_signal(BerthdFixture *fixture, int signal)
{
    g_subprocess_send_signal(fixture->process, signal);
}

void berthd_fixture_kill(BerthdFixture *fixture)
{
    berthd_fixture_signal(fixture, SIGKILL);
    assert_int_equal(berthd_fixture_wait(fixture), 128 + SIGKILL);
}

/* Where it reads the memory of a thread that ends just then, the leak checker itself fails, which says nothing of leaks, and
 * makes the status 1 (google/sanitizers, issue 1353). */
static gboolean leak_checker_failed(const char *log)
{
    const char *said = g_strrstr(log, "LeakSanitizer has encountered a fatal error");
    return said != NULL && strstr(said, " berthd ") == NULL; /* a later berthd has said nothing */
}

int berthd_fixture_terminate(BerthdFixture *fixture)
{
    berthd_fixture_signal(fixture, SIGTERM);
    int status = berthd_fixture_wait(fixture);
    g_autofree char *log = status == 1 ? berthd_fixture_log(fixture) : g_strdup("");
    return leak_checker_failed(log) ? 0 : status;
}

gboolean berthd_fixture_is_running(BerthdFixture *fixture)
{
    return fixture->process != NULL;
}

/* Its file of that NAME in /proc. (transfer full) */
static char *read_proc(BerthdFixture *fixture, const char *name)
{
    char *text = NULL;
    g_autofree char *path =
        g_strdup_printf("/proc/%s/%s", g_subprocess_get_identifier(fixture->process), name);
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

guint64 berthd_fixture_rss(BerthdFixture *fixture)
{
    g_autofree char *text = read_proc(fixture, "statm");
    g_auto(GStrv) fields = g_strsplit(text, " ", -1);
    return g_ascii_strtoull(fields[1], NULL, 10) * 4096;
}

guint64 berthd_fixture_n_reads(BerthdFixture *fixture)
{
    g_autofree char *text = read_proc(fixture, "io");
    const char *calls = strstr(text, "syscr: ");
    assert_non_null(calls);
    return g_ascii_strtoull(calls + strlen("syscr: "), NULL, 10);
}

char *berthd_fixture_log(BerthdFixture *fixture)
{
    g_autofree char *path = g_build_filename(fixture->dir, "berthd.log", NULL);
    char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

/* Whatever else a test looks at, nothing that berthd says is impossible may have happened. */
static void check_log(BerthdFixture *fixture)
{
    g_autofree char *path = g_build_filename(fixture->dir, "berthd.log", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return;
    }
    static const char *const defects[] = {"Sanitizer: ", "assertion '", "the core refused",
                                          "runtime error"};
    for (gsize i = 0; i < G_N_ELEMENTS(defects); i++) {
        if (strstr(text, defects[i])) {
            fail_msg("berthd's log has \"%s\":\n%s", defects[i], text);
        }
    }
}

void berthd_fixture_free(BerthdFixture *fixture)
{
    if (fixture->process) {
        assert_int_equal(berthd_fixture_terminate(fixture), 0);
    }
    check_log(fixture);
    g_ptr_array_unref(fixture->agents);
    g_ptr_array_unref(fixture->strings);
    g_ptr_array_unref(fixture->events);
    g_hash_table_unref(fixture->states);
    g_object_unref(fixture->notify);
    g_object_unref(fixture->reserved);
    berth_storage_free(fixture->storage);
    const char *const argv[] = {"rm", "-rf", fixture->dir, NULL};
    tool_run(argv);
    g_free(fixture->dir);
    g_free(fixture->config);
    g_free(fixture->socket);
    g_free(fixture->state);
    g_free(fixture->ca);
    g_free(fixture->ca_key);
    g_free(fixture);
}

/* --- nodes ------------------------------------------------------------------------------------ */

FakeAgent *berthd_fixture_add_host(BerthdFixture *fixture, const char *name, const char *host_id,
                                   const char *boot_id, FakePlanFunc plan, gpointer user_data)
{
    char *certificate = NULL;
    char *key = NULL;
    char *own_name = g_strdup(name);
    berthd_fixture_certificate(fixture, name, FALSE, &certificate, &key);
    g_ptr_array_add(fixture->strings, certificate);
    g_ptr_array_add(fixture->strings, key);
    g_ptr_array_add(fixture->strings, own_name);
    FakeAgentConfig config = {
        .name = own_name,
        .port = fixture->port,
        .certificate = certificate,
        .key = key,
        .ca = fixture->ca,
        .host_id = host_id,
        .boot_id = boot_id,
        .vcpus = 64,
        .memory_mib = 64 * 1024,
        .storage = fixture->storage,
        .plan = plan,
        .user_data = user_data,
    };
    FakeAgent *agent = fake_agent_new(&config);
    g_ptr_array_add(fixture->agents, agent);
    run_until(fake_agent_is_joined(agent) || fake_agent_error(agent));
    return agent;
}

FakeAgent *berthd_fixture_add_agent(BerthdFixture *fixture, const char *name, FakePlanFunc plan,
                                    gpointer user_data)
{
    FakeAgent *agent = berthd_fixture_add_host(fixture, name, NULL, NULL, plan, user_data);
    assert_no_error(fake_agent_error(agent));
    return agent;
}
