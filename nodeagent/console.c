/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how much of a guest's console is kept and shown. What is in it is the guest's: it may be
 * anything. */
#include <config.h>

#include "nodeagent/console.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The last bytes of the file, BERTH_CONSOLE_TAIL_BYTES at most. */
static gssize read_tail(const char *path, char buffer[BERTH_CONSOLE_TAIL_BYTES])
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    gssize length = -1;
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        length = pread(fd, buffer, BERTH_CONSOLE_TAIL_BYTES,
                       MAX(status.st_size - (off_t)BERTH_CONSOLE_TAIL_BYTES, 0));
    close(fd);
    return length;
}

void berth_console_remove(const char *path)
{
    gboolean is_removed = TRUE;
    unlink(path);
    for (guint i = 0; is_removed; i++) {
        g_autofree char *older = g_strdup_printf("%s.%u", path, i);
        is_removed = unlink(older) == 0;
    }
}

char *berth_console_owner(const char *file)
{
    gsize length = strlen(file), end = length;
    while (end > 0 && g_ascii_isdigit(file[end - 1]))
        end--;
    gboolean is_older = end > 0 && end < length && file[end - 1] == '.';
    return g_strndup(file, is_older ? end - 1 : length);
}

char *berth_console_tail(const char *path)
{
    char buffer[BERTH_CONSOLE_TAIL_BYTES];
    gssize length = read_tail(path, buffer);
    GString *text = g_string_new(NULL);
    for (gssize i = 0; i < length; i++) {
        if (buffer[i] == '\n' || buffer[i] == '\t' || (buffer[i] >= ' ' && buffer[i] < 0x7f))
            g_string_append_c(text, buffer[i]);
        else if (buffer[i] != '\r' && buffer[i] != '\0')
            g_string_append_c(text, '?');
    }
    return g_string_free(text, FALSE);
}

gboolean berth_console_contains(const char *path, const char *text)
{
    char buffer[BERTH_CONSOLE_TAIL_BYTES];
    gssize length = read_tail(path, buffer);
    return length > 0 && memmem(buffer, (gsize)length, text, strlen(text)) != NULL;
}

void berth_console_bound(const char *path)
{
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > (off_t)BERTH_CONSOLE_MAX_BYTES && truncate(path, 0) != 0)
        g_debug("cannot shorten %s", path);
}
