/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which CPUs guests' vCPUs run on where some are kept for the host. */
#include <config.h>

#include "nodeagent/host_cpus.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "common/error.h"
#include "common/index_set.h"

#define ONLINE "/sys/devices/system/cpu/online"
/* More than Linux can be built for. */
#define CPUS_MAX   65536u
#define MASK_BYTES CPU_ALLOC_SIZE(CPUS_MAX)

char *berth_host_cpus_online(GError **error)
{
    g_autoptr(GError) local = NULL;
    char *text = NULL;
    if (g_file_get_contents(ONLINE, &text, NULL, &local))
        return g_strstrip(text);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                "cannot find which CPUs of this host run: %s; /sys is to be mounted",
                local->message);
    return NULL;
}

/* As people write it: "0, 32". */
static char *without_blanks(const char *list)
{
    g_auto(GStrv) parts = g_strsplit(list, ",", -1);
    for (char **part = parts; *part != NULL; part++)
        g_strstrip(*part);
    return g_strjoinv(",", parts);
}

/* Ranges as those of an array, but without the steps that these may have. */
static BerthIndexSet *parse(const char *list, GError **error)
{
    g_autofree char *plain = without_blanks(list);
    g_autoptr(BerthIndexSet) set =
        strchr(plain, ':') != NULL ? NULL : berth_index_set_parse(plain, CPUS_MAX, NULL);
    if (set == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is no list of CPUs, as 0-1,8 is", list);
    else if (berth_index_set_last(set) >= CPUS_MAX)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" has CPU %u, and no Linux has more than %u", list,
                    berth_index_set_last(set), CPUS_MAX);
    else
        return g_steal_pointer(&set);
    return NULL;
}

gboolean berth_host_cpus_check(const char *list, GError **error)
{
    g_autoptr(BerthIndexSet) set = parse(list, error);
    return set != NULL;
}

static void append(GString *list, guint32 first, guint32 last)
{
    g_string_append_printf(list, first == last ? "%s%u" : "%s%u-%u", list->len > 0 ? "," : "",
                           first, last);
}

static char *format(const BerthIndexSet *set)
{
    GString *list = g_string_new(NULL);
    guint32 first, last;
    for (guint32 from = 0; berth_index_set_next(set, from, &first); from = last + 1) {
        for (last = first; berth_index_set_contains(set, last + 1); last++)
            ;
        append(list, first, last);
    }
    return g_string_free(list, FALSE);
}

static gboolean is_empty(const BerthIndexSet *set)
{
    return berth_index_set_count(set) == 0;
}

gboolean berth_host_cpus_split(const char *kept, const char *online, BerthHostCpus *out_cpus,
                               GError **error)
{
    g_autoptr(BerthIndexSet) wanted = parse(kept, error);
    g_autoptr(BerthIndexSet) all = wanted == NULL ? NULL : parse(online, error);
    if (all == NULL)
        return FALSE;
    g_autoptr(BerthIndexSet) offline = berth_index_set_without(wanted, all);
    g_autoptr(BerthIndexSet) host = berth_index_set_without(wanted, offline);
    g_autoptr(BerthIndexSet) guests = berth_index_set_without(all, wanted);
    if (is_empty(host)) {
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
            "of CPUs %s none is online, which are to be the host's; name some of those that "
            "are (%s)",
            kept, online);
        return FALSE;
    }
    if (is_empty(guests)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "CPUs %s are all that this host has online (%s), and none is left for guests; "
                    "keep fewer",
                    kept, online);
        return FALSE;
    }
    *out_cpus =
        (BerthHostCpus){format(host), format(guests), is_empty(offline) ? NULL : format(offline)};
    return TRUE;
}

void berth_host_cpus_clear(BerthHostCpus *cpus)
{
    g_free(cpus->host);
    g_free(cpus->guests);
    g_free(cpus->offline);
    *cpus = (BerthHostCpus){0};
}

guint32 berth_host_cpus_count(const char *list)
{
    g_autoptr(BerthIndexSet) set = parse(list, NULL);
    return set != NULL ? berth_index_set_count(set) : 0;
}

guint32 berth_host_cpus_count_of(const char *list, const guint32 *cpus, gsize n)
{
    g_autoptr(BerthIndexSet) set = parse(list, NULL);
    guint32 count = 0;
    for (gsize i = 0; set != NULL && i < n; i++)
        count += berth_index_set_contains(set, cpus[i]);
    return count;
}

/* --- where this process runs ------------------------------------------------------------------ */

/* As it was before it was bound; NULL: it is not. Whoever started it may have said so. */
static cpu_set_t *mask_before;

/* cpu_set_t itself has room for 1024 of them. */
static cpu_set_t *mask_new(void)
{
    return g_malloc0(MASK_BYTES);
}

/* Of this thread, now (transfer full); NULL: the kernel does not say. */
static cpu_set_t *mask_now(void)
{
    g_autofree cpu_set_t *mask = mask_new();
    return sched_getaffinity(0, MASK_BYTES, mask) == 0 ? g_steal_pointer(&mask) : NULL;
}

static cpu_set_t *mask_of(const BerthIndexSet *set)
{
    cpu_set_t *mask = mask_new();
    guint32 cpu;
    for (guint32 from = 0; berth_index_set_next(set, from, &cpu); from = cpu + 1)
        CPU_SET_S(cpu, MASK_BYTES, mask);
    return mask;
}

/* Of WANTED, those on which this thread may not run. */
static BerthIndexSet *barred_of(const BerthIndexSet *wanted)
{
    g_autofree cpu_set_t *mask = mask_now();
    BerthIndexSet *barred = berth_index_set_new();
    guint32 cpu;
    for (guint32 from = 0; mask != NULL && berth_index_set_next(wanted, from, &cpu); from = cpu + 1)
        if (!CPU_ISSET_S(cpu, MASK_BYTES, mask))
            berth_index_set_add_one(barred, cpu);
    return barred;
}

static void refuse_bind(const char *list, int err, GError **error)
{
    if (err == EINVAL) /* sched_setaffinity(2): no CPU would be left */
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
            "cannot run on CPUs %s: the cpuset of this process has none of them; give it some "
            "(AllowedCPUs= of its unit, or the container that it is in), or name others",
            list);
    else
        berth_set_error_errno(error, err, "cannot run on CPUs %s", list);
}

/* Of what the cpuset does not have the kernel says nothing, as long as one is left. */
gboolean berth_host_cpus_bind(const char *list, char **out_barred, GError **error)
{
    g_autoptr(BerthIndexSet) set = parse(list, error);
    if (set == NULL)
        return FALSE;
    g_autofree cpu_set_t *mask = mask_of(set);
    g_autofree cpu_set_t *now = mask_now();
    if (sched_setaffinity(0, MASK_BYTES, mask) != 0) {
        refuse_bind(list, errno, error);
        return FALSE;
    }
    if (mask_before == NULL)
        mask_before = g_steal_pointer(&now);
    g_autoptr(BerthIndexSet) barred = barred_of(set);
    *out_barred = is_empty(barred) ? NULL : format(barred);
    return TRUE;
}

/* Between fork and exec: a system call, and nothing else. */
void berth_host_cpus_restore(gpointer unused)
{
    if (mask_before != NULL)
        (void)sched_setaffinity(0, MASK_BYTES, mask_before);
}
