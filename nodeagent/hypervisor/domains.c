/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is asked of libvirt about domains and about the host. Each operation is a function for
 * a worker and the pair of functions that starts it and takes its result. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"
#include "common/id.h"

#define QUERY_MSEC 30000u
/* The first such question of a libvirtd has it start each QEMU of the host several times, to see what
 * that can do: minutes, where others keep all CPUs busy. */
#define HOST_MSEC 300000u

/* --- host ----------------------------------------------------------------------------------- */

static char *format_version(unsigned long version)
{
    return g_strdup_printf("%lu.%lu.%lu", version / 1000000, version / 1000 % 1000, version % 1000);
}

static gpointer query_host(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    if (!berth_operation_check(operation, "ask what the host can do", error))
        return NULL;
    virConnectPtr connection = operation->connection;
    g_autofree char *xml = virConnectGetCapabilities(connection);
    unsigned long qemu = 0, libvirt = 0;
    virNodeInfo info;
    if (xml == NULL || virConnectGetVersion(connection, &qemu) < 0 ||
        virConnectGetLibVersion(connection, &libvirt) < 0 ||
        virNodeGetInfo(connection, &info) < 0) {
        berth_set_error_libvirt(error, "cannot ask libvirt what the host can do");
        return NULL;
    }
    g_autoptr(BerthHost) host = berth_capabilities_parse(xml, strlen(xml), error);
    if (host == NULL)
        return NULL;
    /* What the kernel can use, which a cell's size need not be. */
    host->cpus = info.cpus;
    host->memory_mib = info.memory / 1024;
    host->qemu_version = format_version(qemu);
    host->libvirt_version = format_version(libvirt);
    return g_steal_pointer(&host);
}

static void free_host(gpointer host)
{
    berth_host_free(host);
}

void berth_hypervisor_host_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                 gpointer user_data)
{
    berth_hypervisor_run(hypervisor, "ask libvirt what the host can do", query_host, NULL, NULL,
                         free_host, HOST_MSEC, callback, user_data);
}

BerthHost *berth_hypervisor_host_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

/* --- one domain ----------------------------------------------------------------------------- */

typedef struct {
    char *name;
    char *xml;
} CreateInput;

static void create_input_free(gpointer data)
{
    CreateInput *input = data;
    g_free(input->name);
    g_free(input->xml);
    g_free(input);
}

static gpointer create(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const CreateInput *data = operation->data;
    if (!berth_operation_check(operation, "start a domain", error))
        return NULL;
    g_auto(BerthVirDomain) there = virDomainLookupByName(operation->connection, data->name);
    if (there != NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "domain %s runs already",
                    data->name);
        return NULL;
    }
    if (g_cancellable_is_cancelled(cancellable))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainCreateXML(operation->connection, data->xml, 0);
    if (domain == NULL)
        berth_set_error_libvirt(error, "cannot start domain %s", data->name);
    else if (g_cancellable_is_cancelled(cancellable))
        virDomainDestroy(domain); /* nobody knows of it: it was given up, and perhaps undone */
    return NULL;
}

void berth_hypervisor_create_async(BerthHypervisor *hypervisor, const BerthDomainConfig *config,
                                   guint timeout_msec, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
    CreateInput *input = g_new0(CreateInput, 1);
    input->name = g_strdup(config->name);
    input->xml = berth_domain_xml(config);
    g_autofree char *what = g_strdup_printf("start domain %s", config->name);
    berth_hypervisor_run(hypervisor, what, create, input, create_input_free, NULL, timeout_msec,
                         callback, user_data);
}

gboolean berth_hypervisor_create_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

/* FUNC, to VERB the domain NAME, which is its input. */
static void run_on_domain(BerthHypervisor *hypervisor, const char *verb, BerthWorkFunc func,
                          const char *name, GDestroyNotify result_free, guint timeout_msec,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    g_autofree char *what = g_strdup_printf("%s domain %s", verb, name);
    berth_hypervisor_run(hypervisor, what, func, g_strdup(name), g_free, result_free, timeout_msec,
                         callback, user_data);
}

typedef struct {
    char *name;
    gboolean has_id;
    BerthGuestId id;
} DestroyInput;

static void destroy_input_free(gpointer data)
{
    DestroyInput *input = data;
    g_free(input->name);
    g_free(input);
}

/* What cannot be read is taken for that of its name. */
static gboolean is_of_another(virDomainPtr domain, const DestroyInput *input)
{
    g_autofree char *xml = input->has_id ? virDomainGetXMLDesc(domain, 0) : NULL;
    g_autoptr(BerthDomain) found = xml == NULL ? NULL : berth_domain_parse(xml, strlen(xml), NULL);
    return found != NULL && !berth_guest_id_equal(&found->metadata.id, &input->id);
}

static gpointer destroy(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const DestroyInput *data = operation->data;
    const char *name = data->name;
    if (!berth_operation_check(operation, "destroy a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain != NULL && (is_of_another(domain, data) || virDomainDestroy(domain) == 0))
        return NULL;
    /* Gone before, or meanwhile. */
    int code = virGetLastErrorCode();
    if (code != VIR_ERR_NO_DOMAIN && code != VIR_ERR_OPERATION_INVALID)
        berth_set_error_libvirt(error, "cannot destroy domain %s", name);
    return NULL;
}

void berth_hypervisor_destroy_async(BerthHypervisor *hypervisor, const char *name,
                                    const BerthGuestId *id, guint timeout_msec,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
    DestroyInput *input = g_new0(DestroyInput, 1);
    input->name = g_strdup(name);
    input->has_id = id != NULL;
    if (id != NULL)
        input->id = *id;
    g_autofree char *what = g_strdup_printf("destroy domain %s", name);
    berth_hypervisor_run(hypervisor, what, destroy, input, destroy_input_free, NULL, timeout_msec,
                         callback, user_data);
}

gboolean berth_hypervisor_destroy_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

static gpointer suspend(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    if (!berth_operation_check(operation, "suspend a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain == NULL || virDomainSuspend(domain) < 0)
        berth_set_error_libvirt(error, "cannot suspend domain %s", name);
    return NULL;
}

void berth_hypervisor_suspend_async(BerthHypervisor *hypervisor, const char *name,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
    run_on_domain(hypervisor, "suspend", suspend, name, NULL, QUERY_MSEC, callback, user_data);
}

gboolean berth_hypervisor_suspend_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

gboolean berth_domain_note(virDomainPtr domain, const char *name,
                           const BerthDomainMetadata *metadata, GError **error)
{
    g_autoptr(xmlDoc) document = xmlNewDoc(BAD_CAST "1.0");
    xmlNode *node = xmlNewNode(NULL, BAD_CAST "guest");
    xmlDocSetRootElement(document, node);
    berth_domain_metadata_write(node, metadata);
    xmlBuffer *buffer = xmlBufferCreate();
    xmlNodeDump(buffer, document, node, 0, 0);
    gboolean ok = virDomainSetMetadata(domain, VIR_DOMAIN_METADATA_ELEMENT,
                                       (const char *)xmlBufferContent(buffer), "berth",
                                       BERTH_DOMAIN_XMLNS, VIR_DOMAIN_AFFECT_LIVE) == 0;
    if (!ok)
        berth_set_error_libvirt(error, "cannot note what domain %s is", name);
    xmlBufferFree(buffer);
    return ok;
}

/* One that stood still as it was restored does so no more. */
static gboolean note_goes_on(virDomainPtr domain, const char *name, GError **error)
{
    g_autofree char *xml = virDomainGetXMLDesc(domain, 0);
    if (xml == NULL) {
        berth_set_error_libvirt(error, "cannot ask libvirt about domain %s", name);
        return FALSE;
    }
    g_autoptr(BerthDomain) found = berth_domain_parse(xml, strlen(xml), NULL);
    if (found == NULL || !found->metadata.stands)
        return TRUE;
    found->metadata.stands = FALSE;
    return berth_domain_note(domain, name, &found->metadata, error);
}

static gpointer resume(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    int state = VIR_DOMAIN_NOSTATE;
    if (!berth_operation_check(operation, "resume a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain == NULL || virDomainGetState(domain, &state, NULL, 0) < 0 ||
        (state != VIR_DOMAIN_RUNNING && virDomainResume(domain) < 0))
        berth_set_error_libvirt(error, "cannot resume domain %s", name);
    else
        note_goes_on(domain, name, error);
    return NULL;
}

void berth_hypervisor_resume_async(BerthHypervisor *hypervisor, const char *name,
                                   GAsyncReadyCallback callback, gpointer user_data)
{
    run_on_domain(hypervisor, "resume", resume, name, NULL, QUERY_MSEC, callback, user_data);
}

gboolean berth_hypervisor_resume_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

/* --- all domains ---------------------------------------------------------------------------- */

static void free_domain(gpointer domain)
{
    berth_domain_free(domain);
}

/* Why the vCPUs of DOMAIN stand still. One that leaves stands still in the last step of that for the same reason as
 * one that comes. */
static gboolean read_pause(virDomainPtr domain, BerthDomain *found, GError **error)
{
    int state = VIR_DOMAIN_NOSTATE, reason = 0;
    BerthDomainMove move = BERTH_MOVE_NONE;
    if (virDomainGetState(domain, &state, &reason, 0) < 0) {
        berth_set_error_libvirt(error, "cannot ask libvirt about domain %s", found->name);
        return FALSE;
    }
    if (state != VIR_DOMAIN_PAUSED)
        return TRUE;
    if (reason == VIR_DOMAIN_PAUSED_MIGRATION && !berth_domain_find_move(domain, &move, error))
        return FALSE;
    found->stands_still = TRUE;
    found->is_starting = reason == VIR_DOMAIN_PAUSED_STARTING_UP || move == BERTH_MOVE_IN;
    found->is_frozen = reason != VIR_DOMAIN_PAUSED_IOERROR &&
                       reason != VIR_DOMAIN_PAUSED_STARTING_UP &&
                       reason != VIR_DOMAIN_PAUSED_MIGRATION;
    return TRUE;
}

/* NULL with NOT_FOUND: it ended just now, or is none of ours. *OUT_WAS_READ: libvirt has answered, so that
 * any other error is one of what it says. */
static BerthDomain *read_domain(virDomainPtr domain, gboolean *out_was_read, GError **error)
{
    const char *name =
        virDomainGetName(domain); /* before what may fail: it clears libvirt's error */
    g_autofree char *xml = virDomainGetXMLDesc(domain, 0);
    *out_was_read = xml != NULL;
    if (xml == NULL) {
        berth_set_error_libvirt(error, "cannot ask libvirt about domain %s", name);
        return NULL;
    }
    g_autoptr(BerthDomain) found = berth_domain_parse(xml, strlen(xml), error);
    if (found == NULL)
        return NULL;
    *out_was_read = read_pause(domain, found, error);
    return *out_was_read ? g_steal_pointer(&found) : NULL;
}

/* Appends DOMAIN if it is one of ours. FALSE: nobody knows whether it is. */
static gboolean take_domain(GPtrArray *ours, virDomainPtr domain, GError **error)
{
    const char *name = virDomainGetName(domain);
    BerthGuestId id;
    if (!berth_guest_name_parse(name, &id, NULL))
        return TRUE;
    g_autoptr(GError) reason = NULL;
    gboolean was_read = FALSE;
    BerthDomain *found = read_domain(domain, &was_read, &reason);
    if (found != NULL) {
        g_ptr_array_add(ours, found);
    } else if (!g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        if (!was_read) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return FALSE;
        }
        g_debug("domain %s is left alone: %s", name, reason->message);
    }
    return TRUE;
}

static gpointer find(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    if (!berth_operation_check(operation, "look for a domain", error))
        return NULL;
    gboolean was_read = FALSE;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    if (domain != NULL)
        return read_domain(domain, &was_read, error);
    berth_set_error_libvirt(error, "cannot find domain %s", name);
    return NULL;
}

void berth_hypervisor_find_async(BerthHypervisor *hypervisor, const char *name,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    run_on_domain(hypervisor, "find", find, name, free_domain, QUERY_MSEC, callback, user_data);
}

BerthDomain *berth_hypervisor_find_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

static gpointer list(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    if (!berth_operation_check(operation, "list the domains", error))
        return NULL;
    virDomainPtr *domains = NULL;
    int n =
        virConnectListAllDomains(operation->connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
    if (n < 0) {
        berth_set_error_libvirt(error, "cannot list libvirt's domains");
        return NULL;
    }
    g_autoptr(GPtrArray) ours = g_ptr_array_new_with_free_func(free_domain);
    gboolean is_whole = TRUE;
    for (int i = 0; i < n; i++) {
        is_whole = is_whole && take_domain(ours, domains[i], error);
        virDomainFree(domains[i]);
    }
    free(domains);
    return is_whole ? g_steal_pointer(&ours) : NULL;
}

static void unref_array(gpointer array)
{
    g_ptr_array_unref(array);
}

void berth_hypervisor_list_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                 gpointer user_data)
{
    berth_hypervisor_run(hypervisor, "list libvirt's domains", list, NULL, NULL, unref_array,
                         QUERY_MSEC, callback, user_data);
}

GPtrArray *berth_hypervisor_list_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

void berth_domain_stats_free(BerthDomainStats *stats)
{
    if (stats == NULL)
        return;
    g_free(stats->name);
    g_free(stats);
}

static void free_stats(gpointer stats)
{
    berth_domain_stats_free(stats);
}

static guint64 get_ullong(virDomainStatsRecordPtr record, const char *name)
{
    unsigned long long value = 0;
    virTypedParamsGetULLong(record->params, record->nparams, name, &value);
    return value;
}

/* Of each device of a kind: "block.0.rd.bytes" and so on. */
static guint64 sum_of(virDomainStatsRecordPtr record, const char *kind, const char *what)
{
    unsigned int n = 0;
    guint64 sum = 0;
    char name[VIR_TYPED_PARAM_FIELD_LENGTH];
    g_snprintf(name, sizeof name, "%s.count", kind);
    virTypedParamsGetUInt(record->params, record->nparams, name, &n);
    for (guint i = 0; i < n; i++) {
        g_snprintf(name, sizeof name, "%s.%u.%s", kind, i, what);
        sum += get_ullong(record, name);
    }
    return sum;
}

/* A host counts the other end of a guest's network. */
static void read_traffic(virDomainStatsRecordPtr record, BerthDomainStats *stats)
{
    stats->has_traffic = TRUE;
    stats->disk_read_bytes = sum_of(record, "block", "rd.bytes");
    stats->disk_write_bytes = sum_of(record, "block", "wr.bytes");
    stats->net_receive_bytes = sum_of(record, "net", "rx.bytes");
    stats->net_send_bytes = sum_of(record, "net", "tx.bytes");
}

static BerthDomainStats *read_stats(virDomainStatsRecordPtr record, gboolean with_traffic)
{
    BerthDomainStats *stats = g_new0(BerthDomainStats, 1);
    int state = VIR_DOMAIN_NOSTATE, reason = 0;
    virTypedParamsGetInt(record->params, record->nparams, "state.state", &state);
    virTypedParamsGetInt(record->params, record->nparams, "state.reason", &reason);
    stats->name = g_strdup(virDomainGetName(record->dom));
    stats->paused_by_io_error = state == VIR_DOMAIN_PAUSED && reason == VIR_DOMAIN_PAUSED_IOERROR;
    if (with_traffic)
        read_traffic(record, stats);
    return stats;
}

/* Not what the kernel tells more cheaply (qemu_counters.c). Traffic takes several questions to each QEMU. */
#define TRAFFIC_STATS (VIR_DOMAIN_STATS_BLOCK | VIR_DOMAIN_STATS_INTERFACE)

typedef struct {
    gboolean with_traffic;
} StatsInput;

/* Domains that are busy with something else are not waited for. */
static gpointer query_stats(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    if (!berth_operation_check(operation, "measure the domains", error))
        return NULL;
    const StatsInput *wanted = operation->data;
    guint groups = VIR_DOMAIN_STATS_STATE | (wanted->with_traffic ? TRAFFIC_STATS : 0u);
    virDomainStatsRecordPtr *records = NULL;
    int n = virConnectGetAllDomainStats(operation->connection, groups, &records,
                                        VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE |
                                            VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);
    if (n < 0) {
        berth_set_error_libvirt(error, "cannot measure libvirt's domains");
        return NULL;
    }
    GPtrArray *all = g_ptr_array_new_with_free_func(free_stats);
    for (int i = 0; i < n; i++)
        g_ptr_array_add(all, read_stats(records[i], wanted->with_traffic));
    virDomainStatsRecordListFree(records);
    return all;
}

void berth_hypervisor_stats_async(BerthHypervisor *hypervisor, gboolean with_traffic,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
    StatsInput *wanted = g_new0(StatsInput, 1);
    wanted->with_traffic = with_traffic;
    berth_hypervisor_run(hypervisor, "measure libvirt's domains", query_stats, wanted, g_free,
                         unref_array, QUERY_MSEC, callback, user_data);
}

GPtrArray *berth_hypervisor_stats_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

static gpointer query_domain_stats(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthOperation *operation = input;
    const char *name = operation->data;
    if (!berth_operation_check(operation, "measure a domain", error))
        return NULL;
    g_auto(BerthVirDomain) domain = virDomainLookupByName(operation->connection, name);
    virDomainPtr domains[] = {domain, NULL};
    virDomainStatsRecordPtr *records = NULL;
    int n = domain == NULL ? -1
                           : virDomainListGetStats(domains, TRAFFIC_STATS, &records,
                                                   VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT);
    BerthDomainStats *stats = n > 0 ? read_stats(records[0], TRUE) : NULL;
    if (stats != NULL)
        berth_qemu_counters_read_once(name, &stats->qemu);
    if (n < 0)
        berth_set_error_libvirt(error, "cannot measure domain %s", name);
    else if (n == 0)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "domain %s does not run", name);
    if (n >= 0)
        virDomainStatsRecordListFree(records);
    return stats;
}

void berth_hypervisor_domain_stats_async(BerthHypervisor *hypervisor, const char *name,
                                         guint timeout_msec, GAsyncReadyCallback callback,
                                         gpointer user_data)
{
    run_on_domain(hypervisor, "measure", query_domain_stats, name, free_stats, timeout_msec,
                  callback, user_data);
}

BerthDomainStats *berth_hypervisor_domain_stats_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}
