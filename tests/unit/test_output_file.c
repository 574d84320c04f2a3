/* SPDX-License-Identifier: Apache-2.0 */
/* Whose rights each system call on a user's file is made with. */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "scheduler/daemon/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USER  4711u
#define GROUP 4712u
#define OTHER 4713u

/* What the thread may do at the moment of a call. */
typedef struct {
    guint calls;
    uid_t uid;
    gid_t gid;
    gid_t group;
    guint64 capabilities;
} Seen;

static Seen opened, emptied, written;
static int write_errno; /* 0 = it works */
static gboolean is_watching;

static guint64 effective(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    return data[0].effective | (guint64)data[1].effective << 32;
}

static void look(Seen *seen)
{
    gid_t groups[64] = {0};
    if (!is_watching)
        return;
    seen->calls++;
    seen->uid = (uid_t)setfsuid((uid_t)-1);
    seen->gid = (gid_t)setfsgid((gid_t)-1);
    if (syscall(SYS_getgroups, G_N_ELEMENTS(groups), groups) == 1)
        seen->group = groups[0];
    seen->capabilities = effective();
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    look(&written);
    if (is_watching && write_errno != 0) {
        errno = write_errno;
        return -1;
    }
    /* In pieces, as a file system may. */
    return __real_write(fd, data, is_watching ? MIN(size, 1000) : size);
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size)
{
    look(&emptied);
    return __real_ftruncate(fd, size);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;
    va_end(args);
    look(&opened);
    return __real_open(path, flags, mode);
}

static void assert_was_user(const Seen *seen)
{
    assert_true(seen->calls > 0);
    assert_int_equal(seen->uid, USER);
    assert_int_equal(seen->gid, GROUP);
    assert_int_equal(seen->group, OTHER);
    assert_int_equal(seen->capabilities, 0);
}

static void output_file_is_opened_and_written_as_the_user(void **state)
{
    const char *directory = *state;
    const gid_t groups[] = {OTHER};
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(directory, "out", NULL);
    g_autofree char *text = g_strnfill(5000, 'x');
    g_autoptr(GBytes) content = g_bytes_new(text, 5000);
    guint64 own = effective();
    if (geteuid() != 0)
        skip(); /* only root can act for others */
    assert_int_equal(chown(directory, USER, GROUP), 0);
    is_watching = TRUE;
    BerthOutputFile *file = berth_output_file_open(path, USER, GROUP, groups, 1, &error);
    assert_no_error(error);
    assert_true(berth_output_file_write(file, content, &error));
    assert_true(berth_output_file_close(file, &error));
    is_watching = FALSE;
    assert_was_user(&opened);
    assert_was_user(&emptied);
    assert_was_user(&written);
    assert_int_equal(written.calls, 5);
    assert_int_equal(setfsuid((uid_t)-1), 0);
    assert_int_equal(effective(), own);
    g_autofree char *got = NULL;
    assert_true(g_file_get_contents(path, &got, NULL, NULL));
    assert_string_equal(got, text);
}

static void output_file_that_is_full_names_path_and_gives_rights_back(void **state)
{
    const char *directory = *state;
    const gid_t groups[] = {OTHER};
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(directory, "out", NULL);
    g_autoptr(GBytes) content = g_bytes_new_static("x", 1);
    guint64 own = effective();
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(directory, USER, GROUP), 0);
    g_autoptr(BerthOutputFile) file = berth_output_file_open(path, USER, GROUP, groups, 1, &error);
    is_watching = TRUE;
    write_errno = EDQUOT;
    assert_false(berth_output_file_write(file, content, &error));
    is_watching = FALSE;
    write_errno = 0;
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, path);
    assert_int_equal(setfsuid((uid_t)-1), 0);
    assert_int_equal(effective(), own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(output_file_is_opened_and_written_as_the_user, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(output_file_that_is_full_names_path_and_gives_rights_back,
                                        tempdir_make, tempdir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
