/* SPDX-License-Identifier: Apache-2.0 */
/* Owns walking, making and reading paths in the guest. Invariant: path_open_parent() never follows
 * a symbolic link, so what is written below it lands where its name says. */
#include "images/init/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool path_make_directory(const char *path, uid_t uid, gid_t gid, bool *out_made, Fault *fault)
{
    char part[PATH_MAX];
    bool made = false;
    size_t length = strlen(path);

    if (path[0] != '/' || length >= sizeof part) {
        fault_set(fault, "cannot make directory '%s': its path is not absolute or too long", path);
        return false;
    }
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        if (mkdir(part, 0755) == 0) {
            made = true;
            if (chown(part, uid, gid) == 0)
                continue;
        } else if (errno == EEXIST) {
            made = false;
            continue;
        }
        fault_set_errno(fault, errno, "cannot make directory '%s'", part);
        return false;
    }
    if (out_made != NULL)
        *out_made = made;
    return true;
}

/* Enters NAME below DIRECTORY, making it if need be; closes DIRECTORY. -1 with errno set. */
static int enter_directory(int directory, const char *name, uid_t uid, gid_t gid)
{
    bool made = mkdirat(directory, name, 0755) == 0;
    int inner = -1;

    if (made || errno == EEXIST)
        inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner >= 0 && made && fchown(inner, uid, gid) != 0) {
        int err = errno;

        close(inner);
        inner = -1;
        errno = err;
    }
    int err = errno;
    close(directory);
    errno = err;
    return inner;
}

static bool component_is_plain(const char *component, size_t length)
{
    return length > 0 && length <= NAME_MAX && !(length == 1 && component[0] == '.') &&
           !(length == 2 && component[0] == '.' && component[1] == '.');
}

int path_open_parent(const char *base, const char *path, uid_t uid, gid_t gid,
                     const char **out_name, Fault *fault)
{
    const char *from = path + strspn(path, "/");
    int directory = open(path[0] == '/' ? "/" : base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *slash;

    if (directory < 0) {
        fault_set_errno(fault, errno, "cannot open directory '%s'", path[0] == '/' ? "/" : base);
        return -1;
    }
    for (; (slash = strchr(from, '/')) != NULL; from = slash + strspn(slash, "/")) {
        char name[NAME_MAX + 1];
        size_t length = (size_t)(slash - from);

        if (!component_is_plain(from, length))
            break;
        memcpy(name, from, length);
        name[length] = '\0';
        directory = enter_directory(directory, name, uid, gid);
        if (directory < 0) {
            fault_set_errno(fault, errno, "cannot enter directory '%s' of '%s'%s", name, path,
                            errno == ELOOP || errno == ENOTDIR
                                ? " (a symbolic link or a file stands in its place)"
                                : "");
            return -1;
        }
    }
    if (slash != NULL || !component_is_plain(from, strlen(from))) {
        fault_set(fault, "refusing the path '%s': it must name a file, without '.' and '..'", path);
        close(directory);
        return -1;
    }
    *out_name = from;
    return directory;
}

char *path_read(const char *path, size_t *out_length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    size_t size = 4096;
    char *text = malloc(size);
    ssize_t got = -1;

    while (fd >= 0 && text != NULL && (got = read(fd, text + length, size - length - 1)) != 0) {
        char *larger;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        length += (size_t)got;
        if (size - length > 1)
            continue;
        larger = realloc(text, size * 2);
        if (larger == NULL) {
            got = -1;
            break;
        }
        text = larger;
        size *= 2;
    }
    int err = errno;
    if (fd >= 0)
        close(fd);
    errno = err;
    if (got != 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *out_length = length;
    return text;
}

bool path_read_small(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t got = -1;

    if (fd < 0)
        return false;
    while (length < size - 1 && (got = read(fd, buffer + length, size - 1 - length)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        length += (size_t)got;
    }
    buffer[length] = '\0';
    int err = errno;
    close(fd);
    errno = err;
    return got >= 0;
}

bool path_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t wrote;

    if (fd < 0)
        return false;
    do
        wrote = write(fd, text, strlen(text));
    while (wrote < 0 && errno == EINTR);
    int err = errno;
    close(fd);
    errno = err;
    return wrote == (ssize_t)strlen(text);
}
