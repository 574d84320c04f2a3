/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is asked of libvirt about a domain whose memory is saved and restored. What libvirt calls an external
 * snapshot, of the memory alone: of the disk, which is said to be somebody else's to take, it leaves the
 * domain standing still. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"

/* A job of a caller that is gone ends within this, or is left alone. */
#define OLD_JOB_MSEC 30000u
#define LOOK_MSEC    50u

typedef struct {
    char *name;
    char *path;
    char *xml;
} SavingInput;

static void saving_input_free(gpointer data)
{
    SavingInput *input = data;
    g_free(input->name);
    g_free(input->path);
    g_free(input->xml);
    g_free(input);
}

static void run(BerthHypervisor *hypervisor, const char *verb, BerthWorkFunc func,
                SavingInput *input, GDestroyNotify result_free, GAsyncReadyCallback callback,
                gpointer user_data)
{
    g_autofree char *what = g_strdup_printf("%s domain %s", verb, input->name);
    berth_hypervisor_run(hypervisor, what, func, input, saving_input_free, result_free, 0, callback,
                         user_data);
}

/* --- saving --------------------------------------------------------------------------------- */

static gboolean has_job(virDomainPtr domain)
{
    virDomainJobInfo info;
    return virDomainGetJobInfo(domain, &info) == 0 && info.type != VIR_DOMAIN_JOB_NONE;
}

/* What an earlier caller has begun is called off: nobody could tell how it ends. */
static gboolean end_old_job(virDomainPtr domain, GError **error)
{
    if (!has_job(domain))
        return TRUE;
    virDomainAbortJob(domain);
    for (guint waited = 0; has_job(domain); waited += LOOK_MSEC) {
        if (waited >= OLD_JOB_MSEC) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                        "libvirt is busy with domain %s", virDomainGetName(domain));
            return FALSE;
        }
        g_usleep(LOOK_MSEC * 1000);
    }
    return TRUE;
}

static gboolean take_snapshot(virDomainPtr domain, const char *path, GError **error)
{
    g_autofree char *xml =
        g_markup_printf_escaped("<domainsnapshot><memory snapshot='external' file='%s'/>"
                                "<disks><disk name='vda' snapshot='manual'/></disks>"
                                "</domainsnapshot>",
                                path);
    virDomainSnapshotPtr snapshot = virDomainSnapshotCreateXML(
        domain, xml, VIR_DOMAIN_SNAPSHOT_CREATE_LIVE | VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA);
    if (snapshot == NULL) {
        berth_set_error_libvirt(error, "cannot save domain %s", virDomainGetName(domain));
        return FALSE;
    }
    virDomainSnapshotFree(snapshot);
    return TRUE;
}

/* The domain's XML as it is to be restored, on whatever host (transfer full). */
static char *xml_to_keep(virDomainPtr domain, const char *name, GError **error)
{
    g_autofree char *xml =
        domain == NULL ? NULL : virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_MIGRATABLE);
    if (xml != NULL)
        return berth_domain_xml_of_no_host(xml, strlen(xml), error);
    berth_set_error_libvirt(error, "cannot save domain %s", name);
    return NULL;
}

static gpointer save(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const SavingInput *data = operation->data;
    if (!berth_operation_check(operation, "save a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, data->name);
    g_autofree char *xml = xml_to_keep(domain, data->name, error);
    if (xml == NULL || !end_old_job(domain, error))
        return NULL;
    /* Nobody reads the FIFO any more, at which libvirt would wait with the domain locked. */
    if (g_cancellable_set_error_if_cancelled(cancellable, error) ||
        !take_snapshot(domain, data->path, error))
        return NULL;
    return g_steal_pointer(&xml);
}

void berth_hypervisor_save_async(BerthHypervisor *hypervisor, const char *name, const char *path,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    SavingInput *input = g_new0(SavingInput, 1);
    *input = (SavingInput){g_strdup(name), g_strdup(path), NULL};
    run(hypervisor, "save", save, input, g_free, callback, user_data);
}

char *berth_hypervisor_save_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

/* --- restoring ------------------------------------------------------------------------------ */

static gpointer restore(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const SavingInput *data = operation->data;
    if (!berth_operation_check(operation, "restore a domain", error))
        return NULL;
    g_auto(BerthVirDomain) there = virDomainLookupByName(operation->connection, data->name);
    if (there != NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "domain %s runs already",
                    data->name);
    else if (virDomainRestoreFlags(operation->connection, data->path, data->xml,
                                   VIR_DOMAIN_SAVE_PAUSED) < 0)
        berth_set_error_libvirt(error, "cannot restore domain %s", data->name);
    return NULL;
}

void berth_hypervisor_restore_async(BerthHypervisor *hypervisor, const char *name, const char *xml,
                                    const char *path, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
    SavingInput *input = g_new0(SavingInput, 1);
    *input = (SavingInput){g_strdup(name), g_strdup(path), g_strdup(xml)};
    run(hypervisor, "restore", restore, input, NULL, callback, user_data);
}

gboolean berth_hypervisor_restore_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}
