/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the core's log: whole entries, bounded, and an end where it cannot go on. */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "scheduler/daemon/journal_file.h"

#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

static gint64 room_bytes;  /* of the disk that write() sees; -1 = there is no bound */
static guint64 all_blocks; /* of 1 MiB */
static guint64 free_blocks;
static guint64 kept_mib; /* for others */
static char *warned;     /* all warnings */

ssize_t __real_write(int fd, const void *data, size_t length);
ssize_t __wrap_write(int fd, const void *data, size_t length);
int __wrap_fstatvfs(int fd, struct statvfs *status);

/* A disk takes what it has room for, and then nothing. */
ssize_t __wrap_write(int fd, const void *data, size_t length)
{
    if (fd <= 2 || room_bytes < 0)
        return __real_write(fd, data, length);
    if (room_bytes == 0) {
        errno = ENOSPC;
        return -1;
    }
    size_t n = MIN(length, (size_t)room_bytes);
    room_bytes -= (gint64)n;
    return __real_write(fd, data, n);
}

int __wrap_fstatvfs(int fd, struct statvfs *status)
{
    *status = (struct statvfs){.f_frsize = 1 << 20,
                               .f_blocks = all_blocks,
                               .f_bfree = free_blocks,
                               .f_bavail = free_blocks};
    return 0;
}

static GLogWriterOutput on_log(GLogLevelFlags level, const GLogField *fields, gsize n_fields,
                               gpointer user_data)
{
    for (gsize i = 0; level == G_LOG_LEVEL_WARNING && i < n_fields; i++) {
        if (!g_str_equal(fields[i].key, "MESSAGE"))
            continue;
        char *all = g_strconcat(warned, fields[i].value, "\n", NULL);
        g_free(warned);
        warned = all;
    }
    return G_LOG_WRITER_HANDLED;
}

static int setup(void **state)
{
    room_bytes = -1;
    all_blocks = 10000;
    free_blocks = 5000;
    kept_mib = 256;
    g_free(warned);
    warned = g_strdup("");
    return tempdir_make(state);
}

static char *path_in(const char *dir)
{
    return g_build_filename(dir, "core.journal", NULL);
}

static void put(BerthJournalFile *journal, guint i)
{
    GString *text = berth_journal_file_begin(journal);
    if (text == NULL)
        return;
    berth_journal_resume(text, i); /* "resume I\n" */
    berth_journal_file_commit(journal, text);
}

/* N entries of 12 bytes each, one after the other. */
static char *written(const char *dir, guint64 max_bytes, guint n)
{
    g_autofree char *path = path_in(dir);
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    BerthJournalFile *journal = berth_journal_file_open(path, max_bytes, kept_mib << 20, &error);
    assert_no_error(error);
    for (guint i = 0; i < n; i++)
        put(journal, 1000 + i);
    berth_journal_file_close(journal);
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void journal_file_has_all_in_order(void **state)
{
    g_autofree char *text = written(*state, 1 << 20, 1000);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    assert_int_equal(g_strv_length(lines), 1001);
    assert_string_equal(lines[0], "resume 1000");
    assert_string_equal(lines[999], "resume 1999");
    assert_string_equal(warned, "");
}

static void journal_file_of_the_run_before_is_kept_once(void **state)
{
    g_autofree char *old_path = g_build_filename(*state, "core.journal.1", NULL);
    g_autofree char *old = NULL;
    g_free(written(*state, 1 << 20, 1));
    g_free(written(*state, 1 << 20, 2));
    g_free(written(*state, 1 << 20, 3));
    assert_true(g_file_get_contents(old_path, &old, NULL, NULL));
    assert_string_equal(old, "resume 1000\nresume 1001\n");
}

static void journal_file_ends_at_half_of_its_bound(void **state)
{
    g_autofree char *text = written(*state, 2 * 30, 100);
    assert_string_equal(text, "resume 1000\nresume 1001\n");
    assert_non_null(strstr(warned, "journal_max"));
    assert_ptr_equal(strchr(warned, '\n'), strrchr(warned, '\n')); /* once */
}

static void journal_file_ends_with_a_whole_entry_on_a_full_disk(void **state)
{
    room_bytes = 30;
    g_autofree char *text = written(*state, 1 << 20, 100);
    assert_string_equal(text, "resume 1000\nresume 1001\n");
    assert_non_null(strstr(warned, "No space left on device"));
    assert_non_null(strstr(warned, "core.journal ends here"));
    assert_ptr_equal(strchr(warned, '\n'), strrchr(warned, '\n'));
}

static void journal_file_leaves_room_to_others(void **state)
{
    free_blocks = 256; /* and 1 for itself is too much */
    g_autofree char *text = written(*state, 1 << 20, 100);
    assert_string_equal(text, "");
    assert_non_null(strstr(warned, "hardly any room"));
    assert_ptr_equal(strchr(warned, '\n'), strrchr(warned, '\n'));
}

/* A file system, what is kept on it for others, and what stays free of a journal. */
static const struct {
    guint64 all, kept, stays;
} rooms[] = {
    {10000, 256, 512}, /* the most that it takes into account by itself */
    {4000, 256, 400},  /* a tenth */
    {2000, 256, 256 + 64}, {400, 256, 256 + 64}, {10000, 1024, 1024 + 64},
    {2000, 0, 200},        {400, 0, 64},
};

static void journal_file_leaves_more_than_is_kept_for_others(void **state)
{
    for (guint i = 0; i < G_N_ELEMENTS(rooms); i++) {
        all_blocks = rooms[i].all;
        kept_mib = rooms[i].kept;
        free_blocks = rooms[i].stays;
        g_autofree char *none = written(*state, 1 << 20, 1);
        assert_string_equal(none, "");
        free_blocks++; /* which is for itself */
        g_autofree char *text = written(*state, 1 << 20, 1);
        assert_string_equal(text, "resume 1000\n");
    }
}

static void journal_file_that_has_ended_takes_no_more(void **state)
{
    g_autofree char *path = path_in(*state);
    BerthJournalFile *journal = berth_journal_file_open(path, 2, 0, NULL);
    GString *text;
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    while ((text = berth_journal_file_begin(journal)) != NULL) {
        assert_true(g_get_monotonic_time() < deadline);
        berth_journal_resume(text, 1);
        berth_journal_file_commit(journal, text);
    }
    berth_journal_file_close(journal);
    assert_null(berth_journal_file_begin(NULL));
    berth_journal_file_close(NULL);
}

static void journal_file_in_no_directory_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    assert_null(berth_journal_file_open("/nonexistent/core.journal", 1 << 20, 0, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "/nonexistent/core.journal");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(journal_file_has_all_in_order),
        TEST(journal_file_of_the_run_before_is_kept_once),
        TEST(journal_file_ends_at_half_of_its_bound),
        TEST(journal_file_ends_with_a_whole_entry_on_a_full_disk),
        TEST(journal_file_leaves_room_to_others),
        TEST(journal_file_leaves_more_than_is_kept_for_others),
        TEST(journal_file_that_has_ended_takes_no_more),
        TEST(journal_file_in_no_directory_is_refused),
    };
    g_log_set_writer_func(on_log, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
