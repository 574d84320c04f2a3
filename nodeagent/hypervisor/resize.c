/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how libvirt is asked for a resize. Each time all of it is asked for, which changes nothing of what
 * the domain has got already, so that whoever goes on with it after a crash need not know how far it had
 * come. When it is done, the domain's metadata say so, and that is what it had before the next. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"

#define RESIZE_MSEC 30000u
#define KIB_PER_MIB 1024u

typedef struct {
    char *name;
    BerthDomainSize wanted;
    guint64 needed_mib;
    gboolean presses;
} ResizeInput;

static void resize_input_free(gpointer data)
{
    ResizeInput *input = data;
    g_free(input->name);
    g_free(input);
}

/* NAME: asking libvirt for it would make it forget why something failed. */
static gboolean read_state(virDomainPtr domain, const char *name, BerthDomainState *out_state,
                           GError **error)
{
    g_autofree char *xml = virDomainGetXMLDesc(domain, 0);
    if (xml != NULL)
        return berth_domain_state_parse(xml, strlen(xml), out_state, error);
    berth_set_error_libvirt(error, "cannot ask libvirt what domain %s has", name);
    return FALSE;
}

static gboolean set_cpu(virDomainPtr domain, const char *name, const BerthDomainState *state,
                        const BerthResizePlan *plan, GError **error)
{
    virTypedParameterPtr parameters = NULL;
    int n = 0, most = 0;
    gboolean ok =
        virTypedParamsAddULLong(&parameters, &n, &most, VIR_DOMAIN_SCHEDULER_CPU_SHARES,
                                plan->shares) == 0 &&
        virTypedParamsAddULLong(&parameters, &n, &most, VIR_DOMAIN_SCHEDULER_GLOBAL_PERIOD,
                                BERTH_CPU_PERIOD_USEC) == 0 &&
        virTypedParamsAddLLong(&parameters, &n, &most, VIR_DOMAIN_SCHEDULER_GLOBAL_QUOTA,
                               plan->quota_usec) == 0 &&
        virDomainSetSchedulerParametersFlags(domain, parameters, n, VIR_DOMAIN_AFFECT_LIVE) == 0 &&
        (plan->vcpus == state->vcpus ||
         virDomainSetVcpusFlags(domain, plan->vcpus, VIR_DOMAIN_VCPU_LIVE) == 0);
    if (!ok)
        berth_set_error_libvirt(error, "cannot give domain %s %u vCPU%s", name, plan->vcpus,
                                plan->vcpus == 1 ? "" : "s");
    virTypedParamsFree(parameters, n);
    return ok;
}

/* libvirt knows the device by all of what it is. */
static gboolean set_plugged(virDomainPtr domain, const char *name, const BerthDomainState *state,
                            const BerthResizePlan *plan, GError **error)
{
    if (plan->requested_mib == state->requested_mib)
        return TRUE;
    g_autofree char *xml = g_strdup_printf(
        "<memory model='virtio-mem'><target><size unit='MiB'>%" G_GUINT64_FORMAT
        "</size><node>0</node><block unit='MiB'>%u</block><requested unit='MiB'>%" G_GUINT64_FORMAT
        "</requested></target><alias name='" BERTH_GROWTH_ALIAS "'/><address type='pci' "
        "domain='0x0000' bus='0x00' slot='0x06' function='0x0'/></memory>",
        state->growth_mib, BERTH_GROWTH_BLOCK_MIB, plan->requested_mib);
    if (virDomainUpdateDeviceFlags(domain, xml, VIR_DOMAIN_DEVICE_MODIFY_LIVE) == 0)
        return TRUE;
    berth_set_error_libvirt(error, "cannot change the memory of domain %s", name);
    return FALSE;
}

static gboolean set_balloon(virDomainPtr domain, const char *name, const BerthResizePlan *plan,
                            GError **error)
{
    if (plan->base_left_mib == 0 ||
        virDomainSetMemoryFlags(domain, (unsigned long)plan->base_left_mib * KIB_PER_MIB,
                                VIR_DOMAIN_MEM_LIVE) == 0)
        return TRUE;
    berth_set_error_libvirt(error, "cannot set the balloon of domain %s", name);
    return FALSE;
}

static gboolean is_settled(const BerthDomainMetadata *settled, const BerthDomainSize *wanted)
{
    return settled->limits.vcpus == wanted->vcpus &&
           settled->limits.memory_mib == wanted->memory_mib &&
           settled->balloon_mib == wanted->balloon_mib &&
           settled->is_opportunistic == wanted->is_opportunistic;
}

static gboolean settle(virDomainPtr domain, const char *name, const BerthDomainMetadata *settled,
                       const BerthDomainSize *wanted, GError **error)
{
    BerthDomainMetadata metadata = *settled;
    if (is_settled(settled, wanted))
        return TRUE;
    metadata.limits.vcpus = wanted->vcpus;
    metadata.limits.memory_mib = wanted->memory_mib;
    metadata.balloon_mib = wanted->balloon_mib;
    metadata.is_opportunistic = wanted->is_opportunistic;
    return berth_domain_note(domain, name, &metadata, error);
}

static gpointer resize(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const ResizeInput *data = operation->data;
    g_auto(BerthDomainState) state = {0};
    BerthResizePlan plan;
    if (!berth_operation_check(operation, "resize a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, data->name);
    if (domain == NULL) {
        berth_set_error_libvirt(error, "cannot resize domain %s", data->name);
        return NULL;
    }
    if (!read_state(domain, data->name, &state, error) ||
        !berth_resize_plan(&state, &data->wanted, data->needed_mib, data->presses, &plan, error) ||
        !set_cpu(domain, data->name, &state, &plan, error) ||
        !set_plugged(domain, data->name, &state, &plan, error) ||
        !set_balloon(domain, data->name, &plan, error) ||
        (plan.is_done && !settle(domain, data->name, &state.metadata, &data->wanted, error)))
        return NULL;
    BerthResizeProgress *progress = g_new(BerthResizeProgress, 1);
    *progress = (BerthResizeProgress){plan.is_done, state.memory_mib};
    return progress;
}

void berth_hypervisor_resize_async(BerthHypervisor *hypervisor, const char *name,
                                   const BerthDomainSize *wanted, guint64 needed_mib,
                                   gboolean presses, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
    ResizeInput *input = g_new0(ResizeInput, 1);
    *input = (ResizeInput){g_strdup(name), *wanted, needed_mib, presses};
    g_autofree char *what = g_strdup_printf("resize domain %s", name);
    berth_hypervisor_run(hypervisor, what, resize, input, resize_input_free, g_free, RESIZE_MSEC,
                         callback, user_data);
}

gboolean berth_hypervisor_resize_finish(GAsyncResult *result, BerthResizeProgress *out_progress,
                                        GError **error)
{
    g_autofree BerthResizeProgress *progress = berth_work_finish(result, error);
    if (progress == NULL)
        return FALSE;
    *out_progress = *progress;
    return TRUE;
}
