/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is asked of libvirt about a domain that moves to another host. libvirtd itself talks to the
 * other libvirtd (peer to peer), and QEMU to QEMU, both over TLS.
 *
 * The domain arrives with its vCPUs stopped, whether they ran or not: libvirt takes a lost answer in the last
 * step for a failure, and lets the domain go on here while it may go on there. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"

#define QUERY_MSEC 30000u

typedef struct {
    char *name;
    BerthMigrationTarget *target;
} MigrateInput;

static void migrate_input_free(gpointer data)
{
    MigrateInput *input = data;
    g_free(input->name);
    berth_migration_target_free(input->target);
    g_free(input);
}

/* --- what libvirt does ---------------------------------------------------------------------- */

/* Which job libvirt does on DOMAIN, in *OUT_PARAMS, to be freed. The host that a domain comes to refuses to say
 * anything of that. */
static gboolean read_job(virDomainPtr domain, BerthDomainMove *out_move,
                         virTypedParameterPtr *out_params, int *out_n, GError **error)
{
    int type = VIR_DOMAIN_JOB_NONE, operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;
    if (virDomainGetJobStats(domain, &type, out_params, out_n, 0) < 0) {
        int code = virGetLastErrorCode();
        *out_move = BERTH_MOVE_IN;
        if ((code == VIR_ERR_OPERATION_INVALID || code == VIR_ERR_OPERATION_UNSUPPORTED) &&
            virDomainIsActive(domain) == 1)
            return TRUE;
        berth_set_error_libvirt(error, "cannot ask libvirt what it does with domain %s",
                                virDomainGetName(domain));
        return FALSE;
    }
    virTypedParamsGetInt(*out_params, *out_n, VIR_DOMAIN_JOB_OPERATION, &operation);
    *out_move = type != VIR_DOMAIN_JOB_NONE && operation == VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT
                    ? BERTH_MOVE_OUT
                    : BERTH_MOVE_NONE;
    return TRUE;
}

gboolean berth_domain_find_move(virDomainPtr domain, BerthDomainMove *out_move, GError **error)
{
    virTypedParameterPtr params = NULL;
    int n = 0;
    gboolean ok = read_job(domain, out_move, &params, &n, error);
    virTypedParamsFree(params, n);
    return ok;
}

/* --- moving it ------------------------------------------------------------------------------ */

static gboolean move(virDomainPtr domain, const char *name, const BerthMigrationTarget *target,
                     GError **error)
{
    const unsigned int flags = VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER | VIR_MIGRATE_TLS |
                               VIR_MIGRATE_AUTO_CONVERGE | VIR_MIGRATE_PAUSED;
    virTypedParameterPtr params = NULL;
    int n = 0, most = 0;
    g_autofree char *xml = virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_MIGRATABLE);
    if (xml == NULL) {
        berth_set_error_libvirt(error, "cannot ask libvirt about domain %s", name);
        return FALSE;
    }
    g_autofree char *moved = berth_domain_xml_for(xml, strlen(xml), target, error);
    if (moved == NULL)
        return FALSE;
    gboolean ok =
        virTypedParamsAddString(&params, &n, &most, VIR_MIGRATE_PARAM_DEST_XML, moved) == 0 &&
        virTypedParamsAddString(&params, &n, &most, VIR_MIGRATE_PARAM_URI, target->stream_uri) ==
            0 &&
        (target->domain == NULL ||
         virTypedParamsAddString(&params, &n, &most, VIR_MIGRATE_PARAM_DEST_NAME, target->domain) ==
             0) &&
        virDomainMigrateToURI3(domain, target->libvirt_uri, params, (unsigned int)n, flags) == 0;
    if (!ok)
        berth_set_error_libvirt(error, "cannot move domain %s", name);
    virTypedParamsFree(params, n);
    return ok;
}

/* What libvirt says of the other host is not what it says of this one: while it answers, it is reached, and knows
 * the domain. */
static void blame_move(virConnectPtr connection, GError *error)
{
    error->code =
        virConnectIsAlive(connection) == 1 ? BERTH_ERROR_INTERNAL : BERTH_ERROR_UNAVAILABLE;
}

static gpointer migrate(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const MigrateInput *data = operation->data;
    g_auto(BerthVirConnect) connection = berth_operation_connect(operation, error);
    if (connection == NULL)
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(connection, data->name);
    if (domain == NULL) {
        berth_set_error_libvirt(error, "cannot move domain %s", data->name);
        return NULL;
    }
    g_autoptr(GError) reason = NULL;
    if (!move(domain, data->name, data->target, &reason)) {
        blame_move(connection, reason);
        g_propagate_error(error, g_steal_pointer(&reason));
    }
    return NULL;
}

void berth_hypervisor_migrate_async(BerthHypervisor *hypervisor, const char *name,
                                    const BerthMigrationTarget *target,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
    MigrateInput *input = g_new0(MigrateInput, 1);
    *input = (MigrateInput){g_strdup(name), berth_migration_target_copy(target)};
    g_autofree char *what = g_strdup_printf("move domain %s", name);
    berth_hypervisor_run_move(hypervisor, what, migrate, input, migrate_input_free, callback,
                              user_data);
}

gboolean berth_hypervisor_migrate_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

/* --- how far it is -------------------------------------------------------------------------- */

static guint64 get_ullong(virTypedParameterPtr params, int n, const char *name)
{
    unsigned long long value = 0;
    virTypedParamsGetULLong(params, n, name, &value);
    return value;
}

static gpointer query(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    virTypedParameterPtr params = NULL;
    int n = 0, job = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;
    BerthDomainMove found = BERTH_MOVE_NONE;
    if (!berth_operation_check(operation, "look at a migration", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain == NULL) {
        berth_set_error_libvirt(error, "cannot look at the migration of domain %s", name);
        return NULL;
    }
    if (!read_job(domain, &found, &params, &n, error))
        return NULL;
    virTypedParamsGetInt(params, n, VIR_DOMAIN_JOB_OPERATION, &job);
    BerthMigrationState *state = g_new0(BerthMigrationState, 1);
    if (found == BERTH_MOVE_OUT || job == VIR_DOMAIN_JOB_OPERATION_SNAPSHOT) {
        guint64 pages = get_ullong(params, n, VIR_DOMAIN_JOB_MEMORY_DIRTY_RATE);
        state->is_under_way = found == BERTH_MOVE_OUT;
        state->copied_bytes = get_ullong(params, n, VIR_DOMAIN_JOB_MEMORY_PROCESSED);
        state->left_bytes = get_ullong(params, n, VIR_DOMAIN_JOB_MEMORY_REMAINING);
        state->bytes_per_sec = get_ullong(params, n, VIR_DOMAIN_JOB_MEMORY_BPS);
        state->dirty_bytes_per_sec = pages * get_ullong(params, n, VIR_DOMAIN_JOB_MEMORY_PAGE_SIZE);
        state->downtime_msec =
            (guint)MIN(get_ullong(params, n, VIR_DOMAIN_JOB_DOWNTIME), G_MAXUINT32);
    }
    virTypedParamsFree(params, n);
    return state;
}

void berth_hypervisor_migration_async(BerthHypervisor *hypervisor, const char *name,
                                      GAsyncReadyCallback callback, gpointer user_data)
{
    g_autofree char *what = g_strdup_printf("look at the migration of domain %s", name);
    berth_hypervisor_run(hypervisor, what, query, g_strdup(name), g_free, g_free, QUERY_MSEC,
                         callback, user_data);
}

BerthMigrationState *berth_hypervisor_migration_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

/* --- steering ------------------------------------------------------------------------------- */

typedef struct {
    char *name;
    guint downtime_msec;
} AllowInput;

static void allow_input_free(gpointer data)
{
    AllowInput *input = data;
    g_free(input->name);
    g_free(input);
}

static gpointer allow(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const AllowInput *data = operation->data;
    if (!berth_operation_check(operation, "steer a migration", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, data->name);
    if (domain == NULL || virDomainMigrateSetMaxDowntime(domain, data->downtime_msec, 0) < 0)
        berth_set_error_libvirt(error, "cannot steer the migration of domain %s", data->name);
    return NULL;
}

static void on_allowed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GError) error = NULL;
    if (!berth_work_finish_empty(result, &error))
        g_debug("%s", error->message);
}

void berth_hypervisor_migration_allow(BerthHypervisor *hypervisor, const char *name,
                                      guint downtime_msec)
{
    AllowInput *input = g_new0(AllowInput, 1);
    *input = (AllowInput){g_strdup(name), downtime_msec};
    g_autofree char *what = g_strdup_printf("steer the migration of domain %s", name);
    berth_hypervisor_run(hypervisor, what, allow, input, allow_input_free, NULL, QUERY_MSEC,
                         on_allowed, NULL);
}

static gpointer abort_job(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    if (!berth_operation_check(operation, "end a job", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain == NULL || virDomainAbortJob(domain) < 0)
        berth_set_error_libvirt(error, "cannot end the job of domain %s", name);
    return NULL;
}

void berth_hypervisor_abort_job_async(BerthHypervisor *hypervisor, const char *name,
                                      GAsyncReadyCallback callback, gpointer user_data)
{
    g_autofree char *what = g_strdup_printf("end the job of domain %s", name);
    berth_hypervisor_run(hypervisor, what, abort_job, g_strdup(name), g_free, NULL, QUERY_MSEC,
                         callback, user_data);
}

gboolean berth_hypervisor_abort_job_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

/* --- calling it off ------------------------------------------------------------------------- */

static gpointer stay(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    BerthDomainMove found = BERTH_MOVE_NONE;
    if (!berth_operation_check(operation, "call a move off", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain == NULL) {
        berth_set_error_libvirt(error, "cannot keep domain %s here", name);
        return NULL;
    }
    if (!berth_domain_find_move(domain, &found, error) || found == BERTH_MOVE_NONE)
        return NULL;
    if (found == BERTH_MOVE_OUT)
        virDomainAbortJob(domain);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "libvirt still moves domain %s", name);
    return NULL;
}

void berth_hypervisor_stay_async(BerthHypervisor *hypervisor, const char *name,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    g_autofree char *what = g_strdup_printf("call a move of domain %s off", name);
    berth_hypervisor_run(hypervisor, what, stay, g_strdup(name), g_free, NULL, QUERY_MSEC, callback,
                         user_data);
}

gboolean berth_hypervisor_stay_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}
