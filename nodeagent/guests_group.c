/* SPDX-License-Identifier: Apache-2.0 */
/* Owns where the memory of all guests together is counted and limited, and kept from the host's swap, in version 1 and 2 of the
 * kernel's control groups. (cgroups(7); Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of Linux.)
 *
 * A guest that is swapped out looks small: others would be packed beside it, and nobody would see that there is no room for what it
 * has. So none is: in version 2 the group may have nothing in swap. Version 1 has no such limit (memory.memsw bounds the sum
 * of both, within which the host swaps as it likes); there the group's processes are none that the kernel would choose to swap,
 * unless it has nothing else left at all. What is in swap all the same, as from before, counts as used. */
#include <config.h>

#include "nodeagent/guests_group.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/units.h"
#include "common/write.h"

#define BYTES_PER_MIB (G_GUINT64_CONSTANT(1) << 20)
#define LEVELS_BELOW  2u

/* What the files of a version are called. */
typedef struct {
    const char *limit;
    const char *used;
    const char *cache;  /* in memory.stat: of files, with SHARED ... */
    const char *shared; /* ... which is a guest's memory, or a tmpfs: it cannot be dropped */
    const char *swap;   /* with 0 in it nothing is swapped out ... */
    gboolean is_own;    /* ... of the group itself; one below it has its own from its beginning */
    const char *events; /* NULL: of what was below it nothing is counted */
} Names;

static const Names v1_names = {
    .limit = "memory.limit_in_bytes",
    .used = "memory.usage_in_bytes",
    .cache = "total_cache",
    .shared = "total_shmem",
    .swap = "memory.swappiness",
    .is_own = TRUE,
};
static const Names v2_names = {
    .limit = "memory.max",
    .used = "memory.current",
    .cache = "file",
    .shared = "shmem",
    .swap = "memory.swap.max",
    .events = "memory.events",
};

struct BerthGuestsGroup {
    const Names *names;
    char *path;
};

/* --- where it is ---------------------------------------------------------------------------- */

static char *read_file(const char *dir, const char *name, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) why = NULL;
    char *text = NULL;
    if (g_file_get_contents(path, &text, NULL, &why))
        return text;
    g_set_error_literal(error, BERTH_ERROR,
                        g_error_matches(why, G_FILE_ERROR, G_FILE_ERROR_NOENT)
                            ? BERTH_ERROR_NOT_FOUND
                            : BERTH_ERROR_UNAVAILABLE,
                        why->message);
    return NULL;
}

static gboolean has_word(const char *list, const char *word)
{
    g_auto(GStrv) words = g_strsplit(list, ",", -1);
    return g_strv_contains((const char *const *)words, word);
}

/* Of /proc/PID/cgroup, "ID:CONTROLLERS:PATH": the memory controller's line; without one, that of version 2, which names
 * none. (transfer full); NULL: there is neither. */
static char *path_of_process(const char *text, gboolean *out_is_v2)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    char *path = NULL;
    *out_is_v2 = TRUE;
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ":", 3);
        if (g_strv_length(parts) < 3)
            continue;
        gboolean is_v1 = has_word(parts[1], "memory");
        if (!is_v1 && (*parts[1] != '\0' || path != NULL))
            continue;
        g_free(path);
        path = g_strdup(parts[2]);
        *out_is_v2 = !is_v1;
        if (is_v1)
            break;
    }
    return path;
}

/* Of the first group on PATH that libvirt has made for a guest, the one above: with systemd it is called
 * machine-qemu\x2d1\x2dNAME.scope, else qemu-1-NAME.libvirt-qemu. (transfer full); NULL: there is none. */
static char *partition_of(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (guint i = 1; i < g_strv_length(parts); i++) {
        if (!g_str_has_suffix(parts[i], ".libvirt-qemu") &&
            !g_str_has_prefix(parts[i], "machine-qemu"))
            continue;
        g_clear_pointer(&parts[i], g_free);
        char *partition = g_strjoinv("/", parts);
        for (guint rest = i + 1; parts[rest] != NULL; rest++)
            g_clear_pointer(&parts[rest], g_free);
        return partition;
    }
    return NULL;
}

/* A line of /proc/self/mountinfo (proc(5)): "ID PARENT DEVICE ROOT POINT OPTIONS [TAGS] - TYPE SOURCE OPTIONS". TRUE: the
 * hierarchy that counts memory is mounted there. */
static gboolean is_memory_mount(char *const *words, gboolean is_v2)
{
    guint n = g_strv_length((GStrv)words);
    guint i = 6;
    while (i < n && !g_str_equal(words[i], "-"))
        i++;
    if (i + 3 >= n)
        return FALSE;
    return is_v2 ? g_str_equal(words[i + 1], "cgroup2")
                 : g_str_equal(words[i + 1], "cgroup") && has_word(words[i + 3], "memory");
}

/* The directory of the group PATH (transfer full); NULL: its hierarchy is not mounted. */
static char *find_directory(const char *mountinfo, const char *path, gboolean is_v2)
{
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", -1);
        if (!is_memory_mount(words, is_v2))
            continue;
        const char *root = g_str_equal(words[3], "/") ? "" : words[3];
        if (g_str_has_prefix(path, root))
            return g_build_filename(words[4], path + strlen(root), NULL);
    }
    return NULL;
}

static BerthGuestsGroup *group_new(const char *mountinfo, const char *of_process, GError **error)
{
    gboolean is_v2;
    g_autofree char *path = path_of_process(of_process, &is_v2);
    g_autofree char *partition = path == NULL ? NULL : partition_of(path);
    if (partition == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "the guest is in no control group that libvirt has made");
        return NULL;
    }
    g_autofree char *directory = find_directory(mountinfo, partition, is_v2);
    g_autofree char *limit =
        directory == NULL
            ? NULL
            : g_build_filename(directory, is_v2 ? v2_names.limit : v1_names.limit, NULL);
    if (limit == NULL || !g_file_test(limit, G_FILE_TEST_EXISTS)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                            "this host has no memory controller for the guests' control group; "
                            "see cgroups(7)");
        return NULL;
    }
    BerthGuestsGroup *group = g_new0(BerthGuestsGroup, 1);
    group->names = is_v2 ? &v2_names : &v1_names;
    group->path = g_steal_pointer(&directory);
    return group;
}

BerthGuestsGroup *berth_guests_group_find(const char *proc, guint64 pid, GError **error)
{
    g_autofree char *process = g_strdup_printf("%s/%" G_GUINT64_FORMAT, proc, pid);
    g_autofree char *of_process = read_file(process, "cgroup", error);
    g_autofree char *mountinfo =
        of_process == NULL ? NULL : read_file(proc, "self/mountinfo", error);
    return mountinfo == NULL ? NULL : group_new(mountinfo, of_process, error);
}

BerthGuestsGroup *berth_guests_group_copy(const BerthGuestsGroup *group)
{
    BerthGuestsGroup *copy = g_new0(BerthGuestsGroup, 1);
    copy->names = group->names;
    copy->path = g_strdup(group->path);
    return copy;
}

void berth_guests_group_free(BerthGuestsGroup *group)
{
    if (group == NULL)
        return;
    g_free(group->path);
    g_free(group);
}

const char *berth_guests_group_path(const BerthGuestsGroup *group)
{
    return group->path;
}

/* --- its memory ----------------------------------------------------------------------------- */

/* "max": G_MAXUINT64. */
static gboolean read_number(const BerthGuestsGroup *group, const char *name, guint64 *out_value,
                            GError **error)
{
    g_autofree char *text = read_file(group->path, name, error);
    if (text == NULL)
        return FALSE;
    g_strstrip(text);
    if (g_str_equal(text, "max")) {
        *out_value = G_MAXUINT64;
        return TRUE;
    }
    return berth_parse_uint64(text, 0, G_MAXUINT64, out_value, error);
}

gboolean berth_guests_group_has_limit(const BerthGuestsGroup *group, guint64 limit_mib,
                                      gboolean *out_has, GError **error)
{
    guint64 bytes;
    if (!read_number(group, group->names->limit, &bytes, error))
        return FALSE;
    *out_has = bytes == limit_mib * BYTES_PER_MIB;
    return TRUE;
}

static gboolean write_file(const char *dir, const char *name, const char *text, GError **error)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    int fd = g_open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    gboolean ok = fd >= 0 && berth_write_all(fd, text, strlen(text));
    if (!ok)
        berth_set_error_errno(error, errno, "cannot write %s into %s", text, path);
    if (fd >= 0)
        close(fd);
    return ok;
}

gboolean berth_guests_group_limit(const BerthGuestsGroup *group, guint64 limit_mib, GError **error)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, limit_mib * BYTES_PER_MIB);
    return write_file(group->path, group->names->limit, text, error);
}

/* Of each guest that was there before its group above was written, whose QEMU is in the group of its scope, or one below that (libvirt
 * with systemd). One that ends meanwhile needs it no more. */
static gboolean write_below(const char *above, const char *file, guint levels, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(above, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(above, name, NULL);
        g_autoptr(GError) why = NULL;
        if (!g_file_test(path, G_FILE_TEST_IS_DIR))
            continue;
        if (!write_file(path, file, "0", &why) &&
            !g_error_matches(why, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
        if (levels > 1 && !write_below(path, file, levels - 1, error))
            return FALSE;
    }
    return TRUE;
}

/* ERROR stays NOT_FOUND where the group is gone, and is UNSUPPORTED where only the file is missing. */
static void tell_missing(const BerthGuestsGroup *group, GError **error)
{
    if (error == NULL || !g_error_matches(*error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) ||
        !g_file_test(group->path, G_FILE_TEST_IS_DIR))
        return;
    g_clear_error(error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED, "its kernel has no %s in %s",
                group->names->swap, group->path);
}

gboolean berth_guests_group_keep_from_swap(const BerthGuestsGroup *group, GError **error)
{
    guint64 now;
    gboolean ok = read_number(group, group->names->swap, &now, error);
    if (ok && now != 0)
        ok = write_file(group->path, group->names->swap, "0", error) &&
             (!group->names->is_own ||
              write_below(group->path, group->names->swap, LEVELS_BELOW, error));
    if (!ok)
        tell_missing(group, error);
    return ok;
}

/* The value of the line "NAME VALUE"; 0: there is no such line. */
static guint64 read_line(const char *stat, const char *name)
{
    gsize length = strlen(name);
    for (const char *line = stat; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return g_ascii_strtoull(line + length + 1, NULL, 10);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return 0;
}

gboolean berth_guests_group_kills(const BerthGuestsGroup *group, BerthGuestsKills *out_kills,
                                  GError **error)
{
    if (group->names->events == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                    "version 1 of cgroups does not say whom the kernel has ended in %s",
                    group->path);
        return FALSE;
    }
    g_autofree char *events = read_file(group->path, group->names->events, error);
    if (events == NULL)
        return FALSE;
    *out_kills = (BerthGuestsKills){read_line(events, "oom"), read_line(events, "oom_kill")};
    return TRUE;
}

/* 0 where the kernel does not count it. */
static guint64 swapped(const BerthGuestsGroup *group, const char *stat)
{
    guint64 bytes = 0;
    if (group->names == &v1_names)
        return read_line(stat, "total_swap");
    return read_number(group, "memory.swap.current", &bytes, NULL) ? bytes : 0;
}

gboolean berth_guests_group_used(const BerthGuestsGroup *group, guint64 *out_mib, GError **error)
{
    guint64 used;
    g_autofree char *stat = read_file(group->path, "memory.stat", error);
    if (stat == NULL || !read_number(group, group->names->used, &used, error))
        return FALSE;
    guint64 cache = read_line(stat, group->names->cache);
    cache -= MIN(cache, read_line(stat, group->names->shared));
    *out_mib = (used - MIN(used, cache) + swapped(group, stat)) / BYTES_PER_MIB;
    return TRUE;
}
