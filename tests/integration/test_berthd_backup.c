/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd that is asked for backups of its state: what is in one that was made while jobs were submitted as fast as
 * it takes them, who gets one, and where. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"
#include "tests/lib/integrity.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_AT_ONCE    32u
#define N_BEFORE     400u
#define OPERATOR     1234u
#define OPERATORS    1u /* the group "daemon" */
#define NO_GROUP     4321u
#define COMMAND_SIZE (100u << 10)

/* --- jobs that come all the time ------------------------------------------------------------------ */

typedef struct {
    BerthdTest *test;
    Berth__JobSpec spec;
    char *command[2];
    guint n_open;
    gboolean is_ending;
    GArray *jobs; /* guint64: those that were acknowledged */
} Submitter;

static void submit_next(Submitter *submitter);

static void on_submitted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Submitter *submitter = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    assert_no_error(error);
    g_array_append_val(submitter->jobs, ((Berth__SubmitReply *)(void *)reply)->job);
    submitter->n_open--;
    if (!submitter->is_ending)
        submit_next(submitter);
}

static void submit_next(Submitter *submitter)
{
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &submitter->spec;
    submitter->n_open++;
    berth_rpc_peer_call_async(berthd_fixture_client(submitter->test->berthd),
                              &berth__jobs__descriptor, "Submit", &request.base, 0, NULL,
                              on_submitted, submitter);
}

/* Each job takes so much of the state that a copy of it is made in many pieces. */
static Submitter *submitter_new(BerthdTest *test)
{
    Submitter *submitter = g_new0(Submitter, 1);
    submitter->test = test;
    submitter->jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    submitter->command[0] = g_strdup("true");
    submitter->command[1] = g_strnfill(COMMAND_SIZE, 'x');
    submitter->spec = berthd_fixture_spec();
    submitter->spec.hold = TRUE;
    submitter->spec.command = submitter->command;
    submitter->spec.n_command = G_N_ELEMENTS(submitter->command);
    for (guint i = 0; i < N_AT_ONCE; i++)
        submit_next(submitter);
    run_until(submitter->jobs->len >= N_BEFORE);
    return submitter;
}

static void submitter_end(Submitter *submitter)
{
    submitter->is_ending = TRUE;
    run_until(submitter->n_open == 0);
}

static void submitter_free(Submitter *submitter)
{
    g_array_unref(submitter->jobs);
    g_free(submitter->command[0]);
    g_free(submitter->command[1]);
    g_free(submitter);
}

/* --- backups ------------------------------------------------------------------------------------ */

static char *path_of(BerthdTest *test, const char *name)
{
    return g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
}

static gboolean on_progress(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__BackupProgress *said = (const Berth__BackupProgress *)(const void *)item;
    Berth__BackupProgress *last = user_data;
    assert_true(said->copied_pages >= last->copied_pages);
    last->copied_pages = said->copied_pages;
    last->total_pages = said->total_pages;
    last->page_bytes = said->page_bytes;
    last->done = said->done;
    return TRUE;
}

/* TRUE: it was made. */
static gboolean back_up_as(BerthRpcPeer *peer, const char *path, Berth__BackupProgress *out_last,
                           GError **error)
{
    Berth__BackupRequest request = BERTH__BACKUP_REQUEST__INIT;
    berth__backup_progress__init(out_last);
    request.path = (char *)path;
    return berth_rpc_peer_stream(peer, &berth__server__descriptor, "Backup", &request.base, 0,
                                 on_progress, out_last, error) &&
           out_last->done;
}

static gboolean back_up(BerthdTest *test, const char *path, GError **error)
{
    Berth__BackupProgress last;
    return back_up_as(berthd_fixture_client(test->berthd), path, &last, error);
}

static gboolean is_there(const char *path)
{
    return g_access(path, F_OK) == 0;
}

static void assert_nothing_at(const char *path)
{
    g_autofree char *partial = g_strconcat(path, ".partial", NULL);
    assert_false(is_there(path));
    assert_false(is_there(partial));
}

/* As berthd(8) has it. */
static void put_back(BerthdTest *test, const char *path)
{
    static const char *const beside[] = {"-wal", "-shm"};
    g_autoptr(GError) error = NULL;
    const char *state = berthd_fixture_state(test->berthd);
    g_autoptr(GFile) from = g_file_new_for_path(path);
    g_autoptr(GFile) to = g_file_new_for_path(state);
    berthd_fixture_kill(test->berthd);
    for (gsize i = 0; i < G_N_ELEMENTS(beside); i++) {
        g_autofree char *file = g_strconcat(state, beside[i], NULL);
        g_unlink(file);
    }
    g_file_copy(from, to, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, &error);
    assert_no_error(error);
    berthd_fixture_restart_anew(test->berthd);
}

static void backup_under_load_has_every_job_that_was_acknowledged_before(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) error = NULL;
    Berth__BackupProgress last;
    struct stat info;
    g_autofree char *path = path_of(test, "backup.db");
    Submitter *submitter = submitter_new(test);
    guint n_before = submitter->jobs->len;
    assert_true(back_up_as(berthd_fixture_client(test->berthd), path, &last, &error));
    assert_no_error(error);
    submitter_end(submitter);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(info.st_size, last.total_pages * last.page_bytes);
    assert_int_equal(last.copied_pages, last.total_pages);
    assert_true((guint64)info.st_size > (guint64)N_BEFORE * COMMAND_SIZE);
    assert_integrity(path);
    put_back(test, path);
    guint64 newest = 0;
    for (guint i = 0; i < n_before; i++) {
        guint64 number = g_array_index(submitter->jobs, guint64, i);
        newest = MAX(newest, number);
        Berth__Job *job = berthd_fixture_get(test->berthd, number);
        assert_int_equal(job->id, number);
        assert_int_equal(strlen(job->spec->command[1]), COMMAND_SIZE);
        berth_message_free(&job->base);
    }
    assert_true(berthd_fixture_submit_plain(test->berthd) > newest);
    submitter_free(submitter);
}

static gboolean ignore(const ProtobufCMessage *item, gpointer user_data)
{
    return TRUE;
}

static void backup_that_nobody_waits_for_leaves_nothing(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *first = path_of(test, "first.db");
    g_autofree char *second = path_of(test, "second.db");
    Submitter *submitter = submitter_new(test);
    submitter_end(submitter);
    g_autoptr(BerthRpcPeer) other = berthd_fixture_connect_as(test->berthd, 0, 0);
    g_autoptr(GAsyncResult) result = NULL;
    Berth__BackupRequest request = BERTH__BACKUP_REQUEST__INIT;
    request.path = first;
    berth_rpc_peer_stream_async(other, &berth__server__descriptor, "Backup", &request.base, 0, NULL,
                                ignore, berthd_test_keep_result, &result);
    berth_rpc_peer_close(other, FALSE);
    run_until(result != NULL);
    for (gboolean is_made = FALSE; !is_made;) {
        g_autoptr(GError) error = NULL;
        is_made = back_up(test, second, &error);
        if (!is_made)
            assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "another backup");
    }
    assert_nothing_at(first);
    assert_true(is_there(second));
    submitter_free(submitter);
}

static void backup_is_refused_where_it_cannot_be_made(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *there = path_of(test, "there.db");
    g_autofree char *nowhere = path_of(test, "no/such/directory.db");
    g_autofree char *cut_off = path_of(test, "cut-off.db");
    g_autofree char *partial = g_strconcat(cut_off, ".partial", NULL);
    assert_true(g_file_set_contents(there, "precious", -1, NULL));
    assert_true(g_file_set_contents(partial, "half", -1, NULL));
    const struct {
        const char *path;
        int code;
        const char *text;
    } cases[] = {
        {there, BERTH_ERROR_ALREADY_EXISTS, "name a file that there is not yet"},
        {nowhere, BERTH_ERROR_NOT_FOUND, "the directory must exist"},
        {cut_off, BERTH_ERROR_ALREADY_EXISTS, "a backup that was cut off is in the way"},
        {"berth.db", BERTH_ERROR_INVALID_ARGUMENT, "by its whole path"},
        {"", BERTH_ERROR_INVALID_ARGUMENT, "by its whole path"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(back_up(test, cases[i].path, &error));
        assert_berth_error(error, cases[i].code, cases[i].text);
        assert_non_null(strstr(error->message, cases[i].path));
    }
    g_autofree char *kept = NULL;
    assert_true(g_file_get_contents(there, &kept, NULL, NULL));
    assert_string_equal(kept, "precious");
    assert_true(is_there(partial));
}

static void backup_is_made_with_the_rights_of_an_operator(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) refused = NULL;
    g_autoptr(GError) forbidden = NULL;
    g_autoptr(GError) error = NULL;
    Berth__BackupProgress last;
    struct stat info;
    g_autoptr(BerthRpcPeer) user = berthd_fixture_connect_as(test->berthd, OPERATOR, NO_GROUP);
    g_autoptr(BerthRpcPeer) member = berthd_fixture_connect_as(test->berthd, OPERATOR, OPERATORS);
    g_autofree char *of_root = path_of(test, "backup.db");
    g_autofree char *directory = path_of(test, "theirs");
    g_autofree char *path = g_build_filename(directory, "backup.db", NULL);
    assert_int_equal(g_mkdir(directory, 0700), 0);
    assert_int_equal(chown(directory, OPERATOR, NO_GROUP), 0);
    assert_false(back_up_as(user, path, &last, &refused));
    assert_berth_error(refused, BERTH_ERROR_PERMISSION_DENIED, "only operators");
    assert_false(back_up_as(member, of_root, &last, &forbidden));
    assert_berth_error(forbidden, BERTH_ERROR_PERMISSION_DENIED, of_root);
    assert_nothing_at(of_root);
    assert_nothing_at(path);
    assert_true(back_up_as(member, path, &last, &error));
    assert_no_error(error);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_uid, OPERATOR);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_integrity(path);
}

static void command_takes_a_path_of_where_it_runs_and_says_how_large_it_is(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = path_of(test, "here.db");
    g_autofree char *other = path_of(test, "other.db");
    g_autofree char *out = cli_output_of(CLI(test->berthd, "backup", "here.db"));
    assert_true(g_str_has_prefix(out, path));
    assert_contains(out, " bytes, ");
    assert_integrity(path);
    g_autofree char *json = cli_output_of(CLI(test->berthd, "backup", "--json", other));
    assert_contains(json, "\"done\":true");
    assert_true(is_there(other));
    g_autoptr(CliProcess) again = CLI(test->berthd, "backup", path);
    assert_cli_status(again, 1);
    assert_contains(cli_err(again), "berth backup: name a file that there is not yet");
    g_autoptr(CliProcess) nothing = CLI(test->berthd, "backup");
    assert_cli_status(nothing, 2);
    assert_contains(cli_err(nothing), "name one file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(backup_under_load_has_every_job_that_was_acknowledged_before),
        BERTHD_TEST(backup_that_nobody_waits_for_leaves_nothing),
        BERTHD_TEST(backup_is_refused_where_it_cannot_be_made),
        BERTHD_TEST(command_takes_a_path_of_where_it_runs_and_says_how_large_it_is),
        BERTHD_TEST(backup_is_made_with_the_rights_of_an_operator),
    };
    return cmocka_run_group_tests_name("berthd_backup", tests, NULL, NULL);
}
