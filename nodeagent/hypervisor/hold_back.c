/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a domain is kept from running at more than a small part of its vCPUs, for as long as its host is short
 * of memory. Each vCPU by itself: a resize limits all of them together, and neither undoes the other. The CPU weight is
 * that of the whole domain, and a resize sets it, too. */
#include "nodeagent/hypervisor/private.h"

#define HOLD_BACK_MSEC 10000u
/* The least that libvirt and the kernel take: a hundredth of a CPU. It still answers its agent, gives memory back
 * when its balloon asks for it, and can be moved or saved as if nothing were. */
#define HELD_BACK_USEC 1000

typedef struct {
    char *name;
    BerthDomainShare share;
} HoldBackInput;

static void hold_back_input_free(gpointer data)
{
    HoldBackInput *input = data;
    g_free(input->name);
    g_free(input);
}

/* The quota first: one that is to be held back gets no weight for its vCPUs. */
static gboolean set_share(virDomainPtr domain, const HoldBackInput *input, GError **error)
{
    gint64 quota_usec = input->share.is_held_back ? HELD_BACK_USEC : BERTH_CPU_PERIOD_USEC;
    guint64 shares = berth_domain_shares(input->share.vcpus, input->share.is_opportunistic);
    virTypedParameterPtr parameters = NULL;
    int n = 0, most = 0;
    gboolean ok =
        virTypedParamsAddULLong(&parameters, &n, &most, VIR_DOMAIN_SCHEDULER_VCPU_PERIOD,
                                BERTH_CPU_PERIOD_USEC) == 0 &&
        virTypedParamsAddLLong(&parameters, &n, &most, VIR_DOMAIN_SCHEDULER_VCPU_QUOTA,
                               quota_usec) == 0 &&
        virTypedParamsAddULLong(&parameters, &n, &most, VIR_DOMAIN_SCHEDULER_CPU_SHARES, shares) ==
            0 &&
        virDomainSetSchedulerParametersFlags(domain, parameters, n, VIR_DOMAIN_AFFECT_LIVE) == 0;
    if (!ok)
        berth_set_error_libvirt(error, "cannot set how much CPU domain %s gets", input->name);
    virTypedParamsFree(parameters, n);
    return ok;
}

static gpointer hold_back(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const HoldBackInput *data = operation->data;
    if (!berth_operation_check(operation, "hold back a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, data->name);
    if (domain == NULL)
        berth_set_error_libvirt(error, "cannot hold back domain %s", data->name);
    else
        set_share(domain, data, error);
    return NULL;
}

void berth_hypervisor_hold_back_async(BerthHypervisor *hypervisor, const char *name,
                                      const BerthDomainShare *share, GAsyncReadyCallback callback,
                                      gpointer user_data)
{
    HoldBackInput *input = g_new0(HoldBackInput, 1);
    *input = (HoldBackInput){g_strdup(name), *share};
    g_autofree char *what = g_strdup_printf("hold back domain %s", name);
    berth_hypervisor_run(hypervisor, what, hold_back, input, hold_back_input_free, NULL,
                         HOLD_BACK_MSEC, callback, user_data);
}

gboolean berth_hypervisor_hold_back_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}
