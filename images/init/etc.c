/* SPDX-License-Identifier: Apache-2.0 */
/* Owns additions to passwd, group and hosts. Invariants: no existing line is changed, each addition
 * is one whole line written at once, and nothing is written through a symbolic link. */
#include "images/init/etc.h"

#include "images/init/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Copies the colon-separated field INDEX of LINE (up to newline or end); false if absent or long. */
static bool copy_field(const char *line, int index, char *out, size_t size)
{
    size_t length;

    for (; index > 0; index--) {
        line += strcspn(line, ":\n");
        if (*line++ != ':')
            return false;
    }
    length = strcspn(line, ":\n");
    if (length >= size)
        return false;
    memcpy(out, line, length);
    out[length] = '\0';
    return true;
}

static bool field_is(const char *line, int index, const char *value)
{
    char field[256];

    return copy_field(line, index, field, sizeof field) && strcmp(field, value) == 0;
}

/* The line of TEXT whose field INDEX is VALUE; NULL when there is none. */
static const char *find_line(const char *text, int index, const char *value)
{
    for (const char *line = text; *line != '\0';) {
        if (field_is(line, index, value))
            return line;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

static void etc_path(char path[PATH_MAX], const char *directory, const char *file)
{
    (void)snprintf(path, PATH_MAX, "%s/%s", directory, file);
}

/* The text of a file in DIRECTORY for the caller to free(), "" when it does not exist; NULL with
 * FAULT set otherwise. */
static char *read_text(const char *directory, const char *file, Fault *fault)
{
    char path[PATH_MAX];
    size_t length;
    char *text;

    etc_path(path, directory, file);
    text = path_read(path, &length);
    if (text == NULL && errno == ENOENT)
        text = strdup("");
    if (text == NULL)
        fault_set_errno(fault, errno, "cannot read %s of the guest", path);
    return text;
}

/* Appends LINE to FILE, whose text so far is TEXT. */
static bool append(const char *directory, const char *file, const char *text, const char *line,
                   Fault *fault)
{
    char path[PATH_MAX];
    char out[PATH_MAX + 512];
    size_t length = strlen(text);
    bool needs_newline = length > 0 && text[length - 1] != '\n';
    int out_length = snprintf(out, sizeof out, "%s%s", needs_newline ? "\n" : "", line);
    bool ok;
    int fd;

    if (!path_make_directory(directory, 0, 0, NULL, fault))
        return false;
    etc_path(path, directory, file);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    errno = fd < 0 ? errno : ENOSPC;
    ok = fd >= 0 && write(fd, out, (size_t)out_length) == out_length;
    if (!ok)
        fault_set_errno(fault, errno, "cannot add a line to %s of the guest", path);
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool name_can_stand(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length >= sizeof((EtcUser *)NULL)->name)
        return false;
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f || *c == ':' || *c == ',' || *c == '/')
            return false;
    return true;
}

static bool home_can_stand(const char *home)
{
    return strpbrk(home, ":\n") == NULL && strlen(home) < sizeof((EtcUser *)NULL)->home;
}

bool etc_find_user(const char *directory, uid_t uid, EtcUser *out_user)
{
    char id[16];
    char *text = read_text(directory, "passwd", NULL);
    const char *line;
    EtcUser user;
    bool found;

    if (text == NULL)
        return false;
    (void)snprintf(id, sizeof id, "%u", uid);
    line = find_line(text, 2, id);
    found = line != NULL && copy_field(line, 0, user.name, sizeof user.name) &&
            copy_field(line, 5, user.home, sizeof user.home);
    free(text);
    if (found)
        *out_user = user;
    return found;
}

bool etc_add_user(const char *directory, uid_t uid, gid_t gid, const char *name, const char *home,
                  Fault *fault)
{
    char id[16];
    char fallback[16];
    char line[PATH_MAX + 400];
    char *text = read_text(directory, "passwd", fault);
    bool ok = true;

    if (text == NULL)
        return false;
    (void)snprintf(id, sizeof id, "%u", uid);
    (void)snprintf(fallback, sizeof fallback, "u%u", uid);
    if (find_line(text, 2, id) == NULL) {
        (void)snprintf(line, sizeof line, "%s:x:%u:%u::%s:/bin/sh\n",
                       name_can_stand(name) ? name : fallback, uid, gid,
                       home_can_stand(home) ? home : "/");
        ok = append(directory, "passwd", text, line, fault);
    }
    free(text);
    return ok;
}

bool etc_add_group(const char *directory, gid_t gid, const char *name, Fault *fault)
{
    char id[16];
    char fallback[16];
    char line[400];
    char *text = read_text(directory, "group", fault);
    bool ok = true;

    if (text == NULL)
        return false;
    (void)snprintf(id, sizeof id, "%u", gid);
    (void)snprintf(fallback, sizeof fallback, "g%u", gid);
    if (find_line(text, 2, id) == NULL) {
        bool usable = name_can_stand(name) && find_line(text, 0, name) == NULL;

        (void)snprintf(line, sizeof line, "%s:x:%u:\n", usable ? name : fallback, gid);
        ok = append(directory, "group", text, line, fault);
    }
    free(text);
    return ok;
}

/* Whether a line of hosts file TEXT gives NAME an address. */
static bool hosts_has(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; *line != '\0';) {
        size_t end = strcspn(line, "#\n");

        for (size_t at = strcspn(line, " \t#\n"); at < end;) {
            size_t word;

            at += strspn(line + at, " \t");
            word = strcspn(line + at, " \t#\n");
            if (at < end && word == length && memcmp(line + at, name, length) == 0)
                return true;
            at += word;
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return false;
}

bool etc_add_host(const char *directory, const char *name, Fault *fault)
{
    char line[600];
    char *text = read_text(directory, "hosts", fault);
    const char *localhost;
    bool ok = true;

    if (text == NULL)
        return false;
    localhost = hosts_has(text, "localhost") ? "" : "127.0.0.1 localhost\n";
    if (name_can_stand(name) && !hosts_has(text, name))
        (void)snprintf(line, sizeof line, "%s127.0.1.1 %s\n", localhost, name);
    else
        (void)snprintf(line, sizeof line, "%s", localhost);
    if (line[0] != '\0')
        ok = append(directory, "hosts", text, line, fault);
    free(text);
    return ok;
}
