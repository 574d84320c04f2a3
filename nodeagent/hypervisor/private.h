/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Within nodeagent/hypervisor only. */

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>

#include "common/work.h"
#include "nodeagent/hypervisor/hypervisor.h"

static inline void berth_vir_domain_clear(virDomainPtr *domain)
{
    if (*domain != NULL)
        virDomainFree(*domain);
}
static inline void berth_vir_connect_unref(virConnectPtr connection)
{
    if (connection != NULL)
        virConnectClose(connection);
}
static inline void berth_vir_connect_clear(virConnectPtr *connection)
{
    berth_vir_connect_unref(*connection);
}
typedef virDomainPtr BerthVirDomain;
typedef virConnectPtr BerthVirConnect;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthVirDomain, berth_vir_domain_clear)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthVirConnect, berth_vir_connect_clear)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathContext, xmlXPathFreeContext)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathObject, xmlXPathFreeObject)

/* --- xml.c: reading XML that others wrote --- */

/* WHAT is for messages. INVALID_ARGUMENT: not well-formed, or longer than MAX. */
xmlDoc *berth_xml_parse(const char *xml, gsize length, gsize max, const char *what, GError **error);
/* The first node that PATH names below NODE; NULL: none. */
xmlNode *berth_xml_find(xmlNode *node, const char *path);
/* All of them, in document order; NULL: none. */
xmlXPathObject *berth_xml_find_all(xmlNode *node, const char *path);
/* Attribute NAME without a name space (transfer full); NULL: absent. */
char *berth_xml_attribute(xmlNode *node, const char *name);
/* A decimal attribute from MIN to MAX. INVALID_ARGUMENT: absent, or not one. */
gboolean berth_xml_number(xmlNode *node, const char *name, guint64 min, guint64 max,
                          guint64 *out_value, GError **error);

/* --- domain_metadata.c --- */

/* The metadata of a domain of ours; NULL: it has none. */
xmlNode *berth_domain_metadata_find(xmlNode *root);
/* INVALID_ARGUMENT: incomplete, or out of range. To be cleared also after an error. */
gboolean berth_domain_metadata_read(xmlNode *node, BerthDomainMetadata *out_metadata,
                                    GError **error);
void berth_domain_metadata_clear(BerthDomainMetadata *metadata);

/* --- domain_xml.c --- */

/* Its attributes, on NODE. */
void berth_domain_metadata_write(xmlNode *node, const BerthDomainMetadata *metadata);
/* DOMAIN, which runs, says that of itself from now on. */
gboolean berth_domain_note(virDomainPtr domain, const char *name,
                           const BerthDomainMetadata *metadata, GError **error);
/* Of those that NODE has. */
void berth_domain_metadata_set_weight(xmlNode *node, gboolean is_opportunistic);
/* CPU weight, as libvirt's cpu_shares. */
guint64 berth_domain_shares(guint32 vcpus, gboolean is_opportunistic);
/* Writes into /domain/vcpu and /domain/cputune, which have nothing of it, where a domain's vCPUs run and where its other threads
 * do: BerthDomainConfig. */
void berth_domain_set_cpus(xmlNode *vcpu, xmlNode *tune, const char *guest_cpus,
                           const char *host_cpus);
/* Of one host CPU, in microseconds: the period of its quota is the whole of it. */
#define BERTH_CPU_PERIOD_USEC 100000
/* Name of the device by which a guest's memory is grown. */
#define BERTH_GROWTH_ALIAS "ua-growth"

/* --- resize_plan.c: what is to be asked of libvirt for a resize --- */

/* What a running domain has, by its XML. */
typedef struct {
    BerthDomainMetadata metadata;
    guint32 vcpus;         /* that are plugged in */
    guint32 vcpus_max;     /* that can be */
    guint64 base_mib;      /* memory that it was started with */
    guint64 growth_mib;    /* that can be plugged in beyond that; its ceiling may be less */
    guint64 requested_mib; /* that is to be plugged in */
    guint64 plugged_mib;
    guint64 memory_mib; /* that the guest can use: base and plugged, without what its balloon has */
} BerthDomainState;

gboolean berth_domain_state_parse(const char *xml, gsize length, BerthDomainState *out_state,
                                  GError **error);
void berth_domain_state_clear(BerthDomainState *state);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthDomainState, berth_domain_state_clear)

typedef struct {
    guint32 vcpus;         /* to be plugged in */
    gint64 quota_usec;     /* of all threads together, in a period; -1: each has its own only */
    guint64 shares;        /* CPU weight */
    guint64 requested_mib; /* to be plugged in beyond the base */
    guint64 base_left_mib; /* of the base, that the balloon leaves; 0: it stays as it is */
    gboolean is_done;      /* the guest has the memory that it is to have */
} BerthResizePlan;

/* Nothing of the NEEDED_MIB is asked for, or taken by the balloon. INVALID_ARGUMENT: STATE's domain can never have WANTED. */
gboolean berth_resize_plan(const BerthDomainState *state, const BerthDomainSize *wanted,
                           guint64 needed_mib, gboolean presses, BerthResizePlan *out_plan,
                           GError **error);

/* --- qemu_counters.c --- */

/* RUN_DIR: where libvirt writes DOMAIN.pid. PROC_DIR, CGROUP_DIR: "/proc" and "/sys/fs/cgroup", but in tests. MAY_KEEP: its
 * files may stay open from one reading to the next. */
BerthQemuCounters *berth_qemu_counters_new_at(const char *run_dir, const char *proc_dir,
                                              const char *cgroup_dir, const char *domain,
                                              gboolean may_keep);
/* As berth_qemu_counters_read(), of one that nobody asks for again: no file stays open. */
gboolean berth_qemu_counters_read_once(const char *domain, BerthQemuUsage *out_usage);

/* --- vir_error.c --- */

/* Sets ERROR from this thread's last libvirt error, after the words of FORMAT. */
void berth_set_error_libvirt(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* --- migration.c --- */

typedef enum {
    BERTH_MOVE_NONE,
    BERTH_MOVE_OUT,
    BERTH_MOVE_IN,
} BerthDomainMove;
/* Is DOMAIN being moved, by whomever? */
gboolean berth_domain_find_move(virDomainPtr domain, BerthDomainMove *out_move, GError **error);

/* --- connection.c --- */

/* An operation for a worker: FUNC(BerthOperation) with the connection of the moment, or NULL if
 * there is none. DATA belongs to it. */
typedef struct {
    virConnectPtr connection;
    char *uri; /* for a connection of its own; NULL: it gets none */
    gpointer data;
    GDestroyNotify data_free;
} BerthOperation;
/* Fails with UNAVAILABLE where the operation has no connection. */
gboolean berth_operation_check(const BerthOperation *operation, const char *what, GError **error);
/* A connection of its own, for an operation of berth_hypervisor_run_move() (transfer full). */
virConnectPtr berth_operation_connect(const BerthOperation *operation, GError **error);
/* The same for one that takes as long as it takes: it keeps no other waiting, and nobody waits for it in the end. */
void berth_hypervisor_run_move(BerthHypervisor *hypervisor, const char *what, BerthWorkFunc func,
                               gpointer data, GDestroyNotify data_free,
                               GAsyncReadyCallback callback, gpointer user_data);
void berth_hypervisor_run(BerthHypervisor *hypervisor, const char *what, BerthWorkFunc func,
                          gpointer data, GDestroyNotify data_free, GDestroyNotify result_free,
                          guint timeout_msec, GAsyncReadyCallback callback, gpointer user_data);
