/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how it is seen that libvirt has the secret with which QEMU opens disks in Ceph. Its value libvirt does not show to
 * anybody, when it is private. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"

#define SECRET_MSEC 10000u

static gpointer check_secret(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *uuid = operation->data;
    if (!berth_operation_check(operation, "look for a secret", error))
        return NULL;
    virSecretPtr secret = virSecretLookupByUUIDString(operation->connection, uuid);
    if (secret == NULL) {
        berth_set_error_libvirt(error, "libvirt's secret %s (secret_uuid) cannot be used", uuid);
        return NULL;
    }
    if (virSecretGetUsageType(secret) != VIR_SECRET_USAGE_TYPE_CEPH)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "libvirt's secret %s (secret_uuid) is not for Ceph: its usage is of another "
                    "type than \"ceph\"",
                    uuid);
    virSecretFree(secret);
    return NULL;
}

void berth_hypervisor_check_secret_async(BerthHypervisor *hypervisor, const char *uuid,
                                         GAsyncReadyCallback callback, gpointer user_data)
{
    berth_hypervisor_run(hypervisor, "look for a secret", check_secret, g_strdup(uuid), g_free,
                         NULL, SECRET_MSEC, callback, user_data);
}

gboolean berth_hypervisor_check_secret_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}
