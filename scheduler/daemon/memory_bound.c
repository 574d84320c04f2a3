/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is known of berthd's own memory. */
#include "config.h"

#include "scheduler/daemon/memory_bound.h"

#include "common/error.h"
#include "common/log.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A group of ten thousand jobs, the largest that comes at once, takes less than 10 MiB. */
#define LOOK_USEC (100 * 1000)
/* The allocator keeps what was freed; to give it back takes it milliseconds. */
#define TRIM_USEC (10 * G_USEC_PER_SEC)
#define MIB       ((guint64)1 << 20)

struct BerthMemoryBound {
    guint64 max_bytes;
    guint64 bytes; /* at the last look */
    gint64 looked_usec;
    gint64 trimmed_usec;
    BerthLogLimit limit;
};

/* cgroups(7): "0::" and the path of the process in version 2. NULL: it is in none. */
static char *own_cgroup(const char *proc_dir)
{
    g_autofree char *path = g_build_filename(proc_dir, "self", "cgroup", NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    const char *line = g_str_has_prefix(text, "0::/") ? text : strstr(text, "\n0::/");
    if (line == NULL)
        return NULL;
    const char *from = strchr(line, '/');
    return g_strndup(from, strcspn(from, "\n"));
}

/* A file that is not there, and "max": no limit. */
static guint64 limit_of(const char *cgroup_dir, const char *cgroup)
{
    g_autofree char *path = g_build_filename(cgroup_dir, cgroup, "memory.max", NULL);
    g_autofree char *text = NULL;
    guint64 limit = G_MAXUINT64;
    if (g_file_get_contents(path, &text, NULL, NULL))
        g_ascii_string_to_unsigned(g_strchomp(text), 10, 0, G_MAXUINT64, &limit, NULL);
    return limit;
}

guint64 berth_memory_bound_of_host(guint64 host_bytes, const char *proc_dir, const char *cgroup_dir)
{
    g_autofree char *cgroup = own_cgroup(proc_dir);
    guint64 bytes = host_bytes;
    while (cgroup != NULL) {
        bytes = MIN(bytes, limit_of(cgroup_dir, cgroup));
        char *above = strlen(cgroup) > 1 ? g_path_get_dirname(cgroup) : NULL;
        g_free(cgroup);
        cgroup = above;
    }
    return bytes;
}

static guint64 most_of_host(void)
{
    guint64 host_bytes = (guint64)sysconf(_SC_PHYS_PAGES) * (guint64)sysconf(_SC_PAGESIZE);
    return berth_memory_bound_of_host(host_bytes, "/proc", "/sys/fs/cgroup");
}

guint64 berth_memory_bound_bytes(guint64 max_mib)
{
    return max_mib != 0 ? max_mib * MIB : most_of_host() / 2;
}

BerthMemoryBound *berth_memory_bound_new(guint64 max_mib)
{
    BerthMemoryBound *bound = g_new0(BerthMemoryBound, 1);
    guint64 most_bytes = most_of_host();
    bound->max_bytes = berth_memory_bound_bytes(max_mib);
    if (bound->max_bytes > most_bytes)
        g_warning(
            "memory_max is %" G_GUINT64_FORMAT
            " MiB, but the host, or the cgroup that berthd is in, lets it have %" G_GUINT64_FORMAT
            ": it would be killed before it took no new jobs",
            max_mib, most_bytes / MIB);
    bound->looked_usec = bound->trimmed_usec = G_MININT64 / 2;
    return bound;
}

void berth_memory_bound_free(BerthMemoryBound *bound)
{
    g_free(bound);
}

/* proc(5), statm: in pages. Where it cannot be read nothing is bounded. */
static guint64 own_bytes(void)
{
    g_autofree char *text = NULL;
    unsigned long long resident = 0, shared = 0;
    if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL) ||
        sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || shared > resident)
        return 0;
    return (guint64)(resident - shared) * (guint64)sysconf(_SC_PAGESIZE);
}

/* What is left is for those who have few jobs, or none. */
static gboolean is_shared_out(const BerthMemoryBound *bound)
{
    return bound->bytes >= bound->max_bytes / 4 * 3;
}

static void look(BerthMemoryBound *bound)
{
    gint64 now_usec = g_get_monotonic_time();
    if (now_usec - bound->looked_usec < LOOK_USEC)
        return;
    bound->looked_usec = now_usec;
    bound->bytes = own_bytes();
    if (!is_shared_out(bound) || now_usec - bound->trimmed_usec < TRIM_USEC)
        return;
    bound->trimmed_usec = now_usec;
    malloc_trim(0);
    bound->bytes = own_bytes();
}

/* Than each would have if there were one user more: who has none is to find something left. */
static gboolean has_more_than_share(const BerthMemoryJobs *jobs)
{
    return (guint64)jobs->of_user * ((guint64)jobs->n_users + 1) > jobs->of_all;
}

static gboolean check_share(BerthMemoryBound *bound, const BerthMemoryJobs *jobs, GError **error)
{
    if (!is_shared_out(bound) || !has_more_than_share(jobs))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "you have %u of the %u jobs that have not ended, of %u users, and berthd takes "
                "%" G_GUINT64_FORMAT " MiB of memory, of the %" G_GUINT64_FORMAT
                " that it may (memory_max): what is left is for others; submit it when some of "
                "yours have ended, or "
                "many tasks as one array",
                jobs->of_user, jobs->of_all, jobs->n_users, bound->bytes / MIB,
                bound->max_bytes / MIB);
    return FALSE;
}

gboolean berth_memory_bound_check(BerthMemoryBound *bound, const BerthMemoryJobs *jobs,
                                  GError **error)
{
    look(bound);
    if (bound->bytes < bound->max_bytes)
        return check_share(bound, jobs, error);
    berth_log_warning_limited(&bound->limit,
                              "no new jobs are taken: %" G_GUINT64_FORMAT
                              " MiB of memory are in use, of %" G_GUINT64_FORMAT " (memory_max)",
                              bound->bytes / MIB, bound->max_bytes / MIB);
    g_set_error(
        error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
        "berthd takes %" G_GUINT64_FORMAT " MiB of memory, of the %" G_GUINT64_FORMAT
        " that it may (memory_max), and no new jobs until some have ended: submit it later, or "
        "many tasks as one array",
        bound->bytes / MIB, bound->max_bytes / MIB);
    return FALSE;
}
