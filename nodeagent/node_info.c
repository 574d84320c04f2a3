/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the scheduler is told of the node itself. */
#include <config.h>

#include "nodeagent/agent_private.h"

#include "common/message.h"
#include "nodeagent/host_cpus.h"
#include "nodeagent/host_id.h"

/* No vCPU runs on those that are kept for the host. */
static guint32 cpus_for_guests(const BerthNodeConfig *config, const BerthHostCell *cell)
{
    if (config->guest_cpus == NULL || cell->cpu_ids->len == 0)
        return cell->cpus;
    return berth_host_cpus_count_of(
        config->guest_cpus, (const guint32 *)(const void *)cell->cpu_ids->data, cell->cpu_ids->len);
}

static Berth__NumaCell **cells_new(const BerthNodeConfig *config, const BerthHost *host)
{
    Berth__NumaCell **cells = g_new0(Berth__NumaCell *, host->cells->len + 1);
    for (guint i = 0; i < host->cells->len; i++) {
        const BerthHostCell *cell = &g_array_index(host->cells, BerthHostCell, i);
        cells[i] = g_new(Berth__NumaCell, 1);
        berth__numa_cell__init(cells[i]);
        cells[i]->id = cell->id;
        cells[i]->cpus = cpus_for_guests(config, cell);
        cells[i]->memory_mib = cell->memory_mib;
        cells[i]->distances = (guint32 *)(void *)cell->distances->data;
        cells[i]->n_distances = cell->distances->len;
    }
    return cells;
}

guint64 berth_node_offered_mib(const BerthNodeConfig *config, const BerthHost *host)
{
    if (config->memory_mib != 0)
        return config->memory_mib;
    return host->memory_mib > config->reserve_mib ? host->memory_mib - config->reserve_mib : 0;
}

static guint32 offered_vcpus(const BerthNodeConfig *config, const BerthHost *host)
{
    if (config->vcpus != 0)
        return config->vcpus;
    return config->guest_cpus != NULL ? berth_host_cpus_count(config->guest_cpus) : host->cpus;
}

/* Of this process. */
static const char *instance(void)
{
    static char *id;
    if (id == NULL)
        id = g_uuid_string_random();
    return id;
}

Berth__NodeInfo *berth_node_info_new(const BerthNodeConfig *config, const BerthHost *host,
                                     const BerthProbeResult *acceleration, const char *cpu_model,
                                     const char *storage_client, const char *cannot_start)
{
    g_autofree char *boot_id = NULL;
    g_autofree char *host_id = berth_host_id_new(NULL, NULL);
    g_autofree char *hypervisor =
        g_strdup_printf("QEMU %s, libvirt %s", host->qemu_version, host->libvirt_version);
    g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot_id, NULL, NULL);
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    info.name = config->name;
    info.version = (char *)PACKAGE_VERSION;
    info.boot_id = boot_id == NULL ? (char *)"" : g_strstrip(boot_id);
    info.host_id = host_id;
    info.instance = (char *)instance();
    info.cpus = host->cpus;
    info.memory_mib = host->memory_mib;
    info.vcpus = offered_vcpus(config, host);
    info.guest_memory_mib = berth_node_offered_mib(config, host);
    info.cells = cells_new(config, host);
    info.n_cells = host->cells->len;
    info.hypervisor = hypervisor;
    info.acceleration = (char *)(acceleration->use_kvm ? "kvm" : "tcg");
    info.acceleration_reason = acceleration->reason;
    info.cpu_model = (char *)cpu_model;
    info.machine = host->machine;
    info.labels = config->labels;
    info.n_labels = config->labels == NULL ? 0 : g_strv_length(config->labels);
    info.storage_client = (char *)storage_client;
    info.cannot_start = (char *)(cannot_start == NULL ? "" : cannot_start);
    Berth__NodeInfo *copy = (Berth__NodeInfo *)(void *)berth_message_copy(&info.base);
    for (gsize i = 0; i < info.n_cells; i++)
        g_free(info.cells[i]);
    g_free(info.cells);
    return copy;
}
