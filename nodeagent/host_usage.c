/* SPDX-License-Identifier: Apache-2.0 */
/* Owns measuring the host as a whole: what its guests and everybody else leave of it. */
#include <config.h>

#include "nodeagent/host_usage.h"

#include <string.h>

#include "common/pressure.h"

/* (transfer full); NULL: there is no such file. */
static char *text_of(const char *proc, const char *name)
{
    g_autofree char *path = g_build_filename(proc, name, NULL);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_steal_pointer(&text);
}

/* KEY with what comes before and after it in its line. */
static guint64 mib_after(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line != NULL ? g_ascii_strtoull(line + strlen(key), NULL, 10) / 1024 : 0;
}

static void measure_memory(const char *proc, Berth__NodeUsage *usage)
{
    g_autofree char *text = text_of(proc, "meminfo");
    if (text == NULL)
        return;
    guint64 swap_mib = mib_after(text, "\nSwapTotal:");
    usage->memory_total_mib = mib_after(text, "MemTotal:");
    usage->memory_free_mib = mib_after(text, "\nMemAvailable:");
    usage->swap_used_mib = swap_mib - MIN(mib_after(text, "\nSwapFree:"), swap_mib);
}

guint64 berth_host_usage_swap_mib(const char *proc)
{
    g_autofree char *text = text_of(proc, "meminfo");
    return text != NULL ? mib_after(text, "\nSwapTotal:") : 0;
}

static void measure_load(const char *proc, Berth__NodeUsage *usage)
{
    g_autofree char *text = text_of(proc, "loadavg");
    if (text != NULL)
        usage->load_centi = (uint32_t)(g_ascii_strtod(text, NULL) * 100 + 0.5);
}

/* FULL may be NULL. */
static void measure_pressure(const char *proc, const char *name, uint32_t *some, uint32_t *full)
{
    g_autofree char *text = text_of(proc, name);
    if (text == NULL)
        return;
    *some = berth_pressure_parse(text, "some");
    if (full != NULL)
        *full = berth_pressure_parse(text, "full");
}

void berth_host_usage_measure(const char *proc, Berth__NodeUsage *usage)
{
    measure_memory(proc, usage);
    measure_load(proc, usage);
    measure_pressure(proc, "pressure/cpu", &usage->psi_cpu_some, NULL);
    measure_pressure(proc, "pressure/memory", &usage->psi_memory_some, &usage->psi_memory_full);
    measure_pressure(proc, "pressure/io", &usage->psi_io_some, &usage->psi_io_full);
}
