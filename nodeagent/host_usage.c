/* SPDX-License-Identifier: Apache-2.0 */
/* Owns measuring the host as a whole: what its guests and everybody else leave of it. */
#include <config.h>

#include "nodeagent/host_usage.h"

#include <glib.h>
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

static void measure_memory(const char *proc, Berth__NodeUsage *usage)
{
    static const char available[] = "\nMemAvailable:";
    g_autofree char *text = text_of(proc, "meminfo");
    const char *line = text != NULL ? strstr(text, available) : NULL;
    if (line != NULL)
        usage->memory_free_mib = g_ascii_strtoull(line + strlen(available), NULL, 10) / 1024;
}

static void measure_load(const char *proc, Berth__NodeUsage *usage)
{
    g_autofree char *text = text_of(proc, "loadavg");
    if (text != NULL)
        usage->load_centi = (uint32_t)(g_ascii_strtod(text, NULL) * 100 + 0.5);
}

static void measure_pressure(const char *proc, const char *name, uint32_t *psi)
{
    g_autofree char *text = text_of(proc, name);
    if (text != NULL)
        *psi = berth_pressure_parse(text, "some");
}

void berth_host_usage_measure(const char *proc, Berth__NodeUsage *usage)
{
    measure_memory(proc, usage);
    measure_load(proc, usage);
    measure_pressure(proc, "pressure/cpu", &usage->psi_cpu_some);
    measure_pressure(proc, "pressure/memory", &usage->psi_memory_some);
}
