/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd and whose storage it is: two states on one storage, and a state that is older than its
 * storage. */
#include "tests/lib/berthd_storage.h"
#include "tests/lib/berthd_test.h"

#include "common/id.h"
#include "scheduler/daemon/pb.h"

#include <glib/gstdio.h>
#include <sysexits.h>
#include <time.h>
#include <utime.h>

#define BLOCK 10000u /* of scheduler/daemon/job_numbers.c */

/* --- helpers ------------------------------------------------------------------------------------ */

static int setup_one(void **state)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    test->berthd = berthd_fixture_new_storage(NULL, "check_interval = 1s\n");
    berthd_fixture_start(test->berthd);
    test->agent = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
    berthd_fixture_import(test->berthd, "tiny");
    *state = test;
    return 0;
}

/* Another state on the storage of TEST, which must live longer. */
static BerthdFixture *second_state(BerthdTest *test)
{
    g_autofree char *lines = g_strdup_printf("kind = dir\npath = %s/storage\ncheck_interval = 1s\n",
                                             berthd_fixture_dir(test->berthd));
    return berthd_fixture_new_on(NULL, lines,
                                 berth_storage_ref(berthd_fixture_storage(test->berthd)));
}

static void write_mark(BerthdFixture *berthd, const Berth__StorageMark *mark)
{
    BerthStorage *storage = berthd_fixture_storage(berthd);
    g_autoptr(GBytes) present = berth_storage_mark_read(storage, NULL);
    g_autoptr(GBytes) content = berth_message_pack(&mark->base);
    assert_true(berth_storage_mark_replace(storage, present, content, NULL));
}

static gboolean has_storage_error(BerthdFixture *berthd, const char *text)
{
    g_autofree char *error = berthd_test_storage_error(berthd);
    return strstr(error, text) != NULL;
}

static gboolean is_refused(BerthdFixture *berthd)
{
    return has_storage_error(berthd, "this storage belongs to state ");
}

/* What a writer that crashed two days ago has left, which is swept. */
static char *leave_stage(BerthdTest *test)
{
    struct utimbuf two_days_ago = {.actime = time(NULL) - 48 * 3600,
                                   .modtime = time(NULL) - 48 * 3600};
    char *path = g_build_filename(berthd_fixture_dir(test->berthd), "storage/tmp/crashed", NULL);
    assert_int_equal(g_mkdir(path, 0700), 0);
    assert_int_equal(utime(path, &two_days_ago), 0);
    return path;
}

static guint64 run_job(BerthdTest *test, const char *out)
{
    test->plan = (FakePlan){.out = out};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    return job;
}

static void assert_output(BerthdTest *test, guint64 job, const char *expected)
{
    g_autofree char *text = berthd_fixture_logs(test->berthd, job, FALSE, FALSE);
    assert_string_equal(text, expected);
}

static guint times_logged(BerthdTest *test, const char *text)
{
    g_autofree char *log = berthd_fixture_log(test->berthd);
    g_auto(GStrv) parts = g_strsplit(log, text, -1);
    return g_strv_length(parts) - 1;
}

static void assert_logged(BerthdTest *test, const char *text, guint times)
{
    assert_int_equal(times_logged(test, text), times);
}

#define OLDER_STATE "storage knows of later jobs than the state database"

/* FROM takes the place of TO, for a berthd that does not run. */
static void copy_file(const char *from, const char *to)
{
    g_autofree char *content = NULL;
    gsize length = 0;
    assert_true(g_file_get_contents(from, &content, &length, NULL));
    assert_true(g_file_set_contents(to, content, (gssize)length, NULL));
}

static void put_state(BerthdTest *test, const char *name, gboolean is_back)
{
    const char *state = berthd_fixture_state(test->berthd);
    g_autofree char *backup = g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
    g_autofree char *journal = g_strconcat(state, "-wal", NULL);
    assert_false(g_file_test(journal, G_FILE_TEST_EXISTS)); /* it ended well: it is all in one */
    copy_file(is_back ? backup : state, is_back ? state : backup);
}

/* --- two states --------------------------------------------------------------------------------- */

static void second_state_on_a_storage_is_refused_and_changes_nothing(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *ended = NULL;
    BerthdFixture *second = second_state(test);
    g_autofree char *stage = leave_stage(test);
    const char *const arguments[] = {"--config", berthd_fixture_config(second), NULL};
    Berth__StorageMark *mark = berthd_test_read_mark(test->berthd);
    assert_int_equal(berthd_fixture_run(second, arguments, &ended), EX_CONFIG);
    assert_non_null(strstr(ended, "this storage belongs to state "));
    assert_non_null(strstr(ended, mark->state_id));
    assert_non_null(strstr(ended, "\"berth\""));
    assert_non_null(strstr(ended, "give each its own pool or directory"));
    assert_non_null(strstr(ended, "--take-over-storage"));
    assert_null(strstr(ended, "removed up to"));
    assert_true(g_file_test(stage, G_FILE_TEST_EXISTS));
    berth__storage_mark__free_unpacked(mark, NULL);
    berthd_fixture_free(second);
    assert_int_equal(run_job(test, NULL), 1); /* with the image that the second does not know */
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    berthd_fixture_restart(test->berthd); /* its own */
    assert_int_equal(run_job(test, NULL), 2);
    assert_false(g_file_test(stage, G_FILE_TEST_EXISTS));
}

/* As a check that writes before it looks whose storage it is would say that it cannot write. */
static void storage_that_became_anothers_is_not_written_to(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "storage", NULL);
    g_autofree char *tmp = g_build_filename(path, "tmp", NULL);
    g_autofree char *away = g_build_filename(path, "away", NULL);
    g_autofree char *mark = g_build_filename(path, "mark", NULL);
    Berth__StorageMark other = BERTH__STORAGE_MARK__INIT;
    other.state_id = (char *)"another";
    other.cluster = (char *)"other";
    g_autoptr(GBytes) content = berth_message_pack(&other.base);
    run_until(berthd_test_mark_has(test->berthd, BLOCK + 1, 1));
    assert_int_equal(g_rename(tmp, away), 0);
    assert_true(g_file_set_contents(mark, g_bytes_get_data(content, NULL),
                                    (gssize)g_bytes_get_size(content), NULL));
    run_until(is_refused(test->berthd));
    assert_int_equal(g_rename(away, tmp), 0);
}

static void foreign_storage_that_comes_later_is_left_alone(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "storage", NULL);
    g_autofree char *away = g_build_filename(berthd_fixture_dir(test->berthd), "away", NULL);
    BerthdFixture *second = second_state(test);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_int_equal(g_rename(path, away), 0);
    berthd_fixture_start(second);
    berthd_fixture_wait_event(second, BERTH__EVENT__KIND__STORAGE_DOWN, 0);
    assert_int_equal(g_rename(away, path), 0);
    run_until(is_refused(second));
    Berth__ImportBeginRequest begin = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    begin.name = (char *)"other";
    begin.size_bytes = 4096;
    g_autoptr(GError) error =
        berthd_fixture_call_error(second, &berth__images__descriptor, "ImportBegin", &begin.base);
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "this storage belongs to state ");
    g_autofree char *log = berthd_fixture_log(second);
    assert_non_null(strstr(log, "storage is left alone: this storage belongs to state "));
    assert_null(strstr(log, "removed up to"));
    berthd_fixture_free(second);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, NULL), 1);
}

static void take_over_makes_it_the_second_ones_and_numbers_go_on(void **state)
{
    BerthdTest *test = *state;
    assert_int_equal(run_job(test, "old\n"), 1);
    BerthdTest other = {.berthd = second_state(test)};
    berthd_fixture_start_with(other.berthd, "--take-over-storage");
    /* The first one still runs, and sees it. */
    run_until(is_refused(test->berthd));
    other.agent = berthd_fixture_add_agent(other.berthd, "n1", berthd_test_plan, &other.plan);
    berthd_fixture_import(other.berthd, "tiny");
    guint64 job = run_job(&other, "new\n");
    assert_int_equal(job, BLOCK + 1); /* the bound that the first had reserved */
    assert_output(&other, job, "new\n");
    assert_logged(&other, "took the storage over", 1);
    assert_int_equal(berthd_fixture_terminate(other.berthd), 0);
    berthd_fixture_restart(other.berthd); /* it needs the option once */
    assert_int_equal(run_job(&other, NULL), job + 1);
    berthd_fixture_free(other.berthd);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    g_autofree char *ended = NULL;
    const char *const arguments[] = {"--config", berthd_fixture_config(test->berthd), NULL};
    assert_int_equal(berthd_fixture_run(test->berthd, arguments, &ended), EX_CONFIG);
}

/* --- storage without the mark that it had ------------------------------------------------------- */

static guint count_entries(const char *path)
{
    guint count = 0;
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    assert_non_null(dir);
    while (g_dir_read_name(dir) != NULL)
        count++;
    return count;
}

static void directory_that_is_not_mounted_is_refused_and_stays_empty(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "storage", NULL);
    g_autofree char *away = g_build_filename(berthd_fixture_dir(test->berthd), "away", NULL);
    g_autofree char *ended = NULL;
    const char *const arguments[] = {"--config", berthd_fixture_config(test->berthd), NULL};
    assert_int_equal(run_job(test, "first\n"), 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_int_equal(g_rename(path, away), 0);
    assert_int_equal(g_mkdir(path, 0755), 0); /* what is below the mount point */
    assert_int_equal(berthd_fixture_run(test->berthd, arguments, &ended), EX_CONFIG);
    assert_non_null(strstr(ended, "this storage has no mark"));
    assert_non_null(strstr(ended, "is mounted"));
    assert_int_equal(count_entries(path), 0);
    assert_int_equal(g_rmdir(path), 0);
    assert_int_equal(g_rename(away, path), 0);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, NULL), 2);
    assert_output(test, 1, "first\n");
}

static void mark_that_vanishes_stops_all_until_it_is_back(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *mark =
        g_build_filename(berthd_fixture_dir(test->berthd), "storage/mark", NULL);
    g_autofree char *away = g_build_filename(berthd_fixture_dir(test->berthd), "away", NULL);
    assert_int_equal(run_job(test, NULL), 1);
    assert_int_equal(g_rename(mark, away), 0);
    run_until(has_storage_error(test->berthd, "this storage has no mark"));
    assert_false(g_file_test(mark, G_FILE_TEST_EXISTS));
    assert_int_equal(g_rename(away, mark), 0);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__STORAGE_UP, 0);
    assert_int_equal(run_job(test, NULL), 2);
}

static void take_over_makes_a_lost_mark_and_skips_what_was_reserved(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *mark =
        g_build_filename(berthd_fixture_dir(test->berthd), "storage/mark", NULL);
    assert_int_equal(run_job(test, "old\n"), 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_int_equal(g_unlink(mark), 0);
    berthd_fixture_start_with(test->berthd, "--take-over-storage");
    fake_agent_cut(test->agent);
    fake_agent_heal(test->agent);
    assert_int_equal(run_job(test, "new\n"), BLOCK + 1);
    assert_output(test, BLOCK + 1, "new\n");
    assert_logged(test, "made a new mark", 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, NULL), BLOCK + 2);
}

/* --- a state that is older than storage --------------------------------------------------------- */

static void backup_put_back_gives_no_number_again(void **state)
{
    BerthdTest *test = *state;
    assert_int_equal(run_job(test, "first\n"), 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    put_state(test, "backup.db", FALSE);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, "lost, and long enough to show\n"), 2);
    run_until(berthd_test_mark_has(test->berthd, BLOCK + 1, 3));
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    put_state(test, "backup.db", TRUE);
    berthd_fixture_restart_anew(test->berthd);
    guint64 job = run_job(test, "new\n");
    assert_int_equal(job, BLOCK + 1);
    assert_output(test, job, "new\n");
    assert_output(test, 1, "first\n");
    assert_logged(test, OLDER_STATE, 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, NULL), job + 1);
    assert_logged(test, OLDER_STATE, 1);
}

static void kill_and_restart_skips_no_number(void **state)
{
    BerthdTest *test = *state;
    for (guint64 i = 1; i <= 3; i++) {
        assert_int_equal(run_job(test, NULL), i);
        berthd_fixture_kill(test->berthd);
        berthd_fixture_restart(test->berthd);
    }
    assert_int_equal(run_job(test, NULL), 4);
    assert_logged(test, OLDER_STATE, 0);
}

/* As it is when berthd was killed after the database had a reservation, and before the mark did. */
static void kill_between_the_writes_skips_no_number(void **state)
{
    BerthdTest *test = *state;
    assert_int_equal(run_job(test, NULL), 1);
    run_until(berthd_test_mark_has(test->berthd, BLOCK + 1, 2));
    berthd_fixture_kill(test->berthd);
    Berth__StorageMark *mark = berthd_test_read_mark(test->berthd);
    mark->jobs_reserved = 2;
    write_mark(test->berthd, mark);
    berth__storage_mark__free_unpacked(mark, NULL);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, NULL), 2);
    run_until(berthd_test_mark_has(test->berthd, BLOCK + 1, 3));
    assert_logged(test, OLDER_STATE, 0);
}

/* The same where the reservation was that of a state which found itself too old. */
static void kill_between_the_writes_of_an_older_state_goes_on_from_the_same_number(void **state)
{
    BerthdTest *test = *state;
    run_until(berthd_test_mark_has(test->berthd, BLOCK + 1, 1));
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    Berth__StorageMark *mark = berthd_test_read_mark(test->berthd);
    mark->jobs_reserved = 3 * BLOCK; /* nothing else tells that the state is old */
    write_mark(test->berthd, mark);
    berthd_fixture_restart(test->berthd);
    run_until(berthd_test_mark_has(test->berthd, 4 * BLOCK, 3 * BLOCK));
    berthd_fixture_kill(test->berthd);
    write_mark(test->berthd, mark);
    berth__storage_mark__free_unpacked(mark, NULL);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(run_job(test, NULL), 3 * BLOCK);
    assert_logged(test, OLDER_STATE, 1);
}

/* --- guests ------------------------------------------------------------------------------------- */

#define HAS_JOINED "node n1 has joined"

/* With storage away: whose the guests are, nobody can say. */
static void restart_without_storage(BerthdTest *test, const char *state_name)
{
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "storage", NULL);
    g_autofree char *away = g_build_filename(berthd_fixture_dir(test->berthd), "away", NULL);
    if (state_name)
        put_state(test, state_name, TRUE);
    else
        assert_int_equal(g_unlink(berthd_fixture_state(test->berthd)), 0);
    assert_int_equal(g_rename(path, away), 0);
    guint joined = times_logged(test, HAS_JOINED);
    berthd_fixture_restart_anew(test->berthd);
    run_until(times_logged(test, HAS_JOINED) > joined);
    assert_int_equal(g_rename(away, path), 0);
}

static guint64 start_lasting_job(BerthdTest *test)
{
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    run_until(fake_agent_n_guests(test->agent) == 1);
    return job;
}

static void guests_outlive_a_berthd_whose_storage_it_is_not(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start_lasting_job(test);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    put_state(test, "own.db", FALSE);
    restart_without_storage(test, NULL);
    run_until(is_refused(test->berthd));
    assert_int_equal(fake_agent_n_guests(test->agent), 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    put_state(test, "own.db", TRUE);
    guint joined = times_logged(test, HAS_JOINED);
    berthd_fixture_restart_anew(test->berthd);
    run_until(times_logged(test, HAS_JOINED) > joined);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
}

static void strays_are_removed_when_storage_is_known_to_be_ours(void **state)
{
    BerthdTest *test = *state;
    assert_int_equal(run_job(test, NULL), 1);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    put_state(test, "backup.db", FALSE);
    berthd_fixture_restart(test->berthd);
    start_lasting_job(test);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    restart_without_storage(test, "backup.db");
    run_until(fake_agent_n_guests(test->agent) == 0);
}

/* --- what is beyond the end of a log ------------------------------------------------------------ */

static void output_ends_where_the_exit_says(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "out.txt", NULL);
    BerthGuestId id = {.job = 1, .epoch = 1};
    g_autofree char *log_id = berth_log_id_format(&id);
    g_autofree char *name = g_strconcat(log_id, ".out", NULL);
    static const char older[] = "what another job wrote";
    assert_true(berth_storage_log_write(berthd_fixture_storage(test->berthd), name, 0, older,
                                        sizeof older - 1, NULL));
    test->plan = (FakePlan){.out = "mine\n"};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.stdout_path = path;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    guint64 size = 0;
    assert_true(berth_storage_log_size(berthd_fixture_storage(test->berthd), name, &size, NULL));
    assert_int_equal(size, sizeof older - 1); /* it is there */
    assert_output(test, job, "mine\n");
    run_until(g_file_test(path, G_FILE_TEST_EXISTS));
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0); /* waits for the copy */
    g_autofree char *copied = NULL;
    assert_true(g_file_get_contents(path, &copied, NULL, NULL));
    assert_string_equal(copied, "mine\n");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup_one, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(second_state_on_a_storage_is_refused_and_changes_nothing),
        TEST(storage_that_became_anothers_is_not_written_to),
        TEST(foreign_storage_that_comes_later_is_left_alone),
        TEST(take_over_makes_it_the_second_ones_and_numbers_go_on),
        TEST(directory_that_is_not_mounted_is_refused_and_stays_empty),
        TEST(mark_that_vanishes_stops_all_until_it_is_back),
        TEST(take_over_makes_a_lost_mark_and_skips_what_was_reserved),
        TEST(backup_put_back_gives_no_number_again),
        TEST(kill_and_restart_skips_no_number),
        TEST(kill_between_the_writes_skips_no_number),
        TEST(kill_between_the_writes_of_an_older_state_goes_on_from_the_same_number),
        TEST(guests_outlive_a_berthd_whose_storage_it_is_not),
        TEST(strays_are_removed_when_storage_is_known_to_be_ours),
        TEST(output_ends_where_the_exit_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
