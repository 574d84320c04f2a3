/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One host's hypervisor, through libvirt. No libvirt type leaves this component.
 *
 * Blocking calls run on workers with deadlines; a libvirtd that hangs never blocks the loop. All
 * functions are called, and all callbacks arrive, in the default main context. A caller that
 * wants its operations on one domain in order waits for each before it starts the next.
 *
 * Errors of the operations: UNAVAILABLE (no connection, or libvirtd lost), DEADLINE_EXCEEDED (the
 * operation may still take effect: destroy the domain, or list again), INVALID_ARGUMENT (libvirt
 * refuses what it was asked), NOT_FOUND, ALREADY_EXISTS, RESOURCE_EXHAUSTED, INTERNAL. */

#include <gio/gio.h>

#include "common/types.h"
#include "storage/storage.h"

/* --- what a domain is ---------------------------------------------------------------------- */

/* Name space of the metadata element. */
#define BERTH_DOMAIN_XMLNS "urn:berth:guest:1"

/* What a domain of ours says of itself: who it is, and what its agent must know to adopt it. */
typedef struct {
    BerthGuestId id;
    BerthResources limits; /* disk_mib: size of its disk, rounded up */
    char *disk_id;         /* names in storage */
    char *log_id;
} BerthDomainMetadata;

/* A domain that exists. */
typedef struct {
    char *name;
    BerthDomainMetadata metadata;
    char *channel_path; /* NULL if it has none */
    char *console_path; /* NULL if it has none */
    gboolean
        is_frozen; /* of those in a list: somebody, and not an I/O error, has stopped its vCPUs */
} BerthDomain;
void berth_domain_free(BerthDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDomain, berth_domain_free)

/* Reads a domain's XML. NOT_FOUND: a well-formed domain, but not one of ours. INVALID_ARGUMENT:
 * not XML, larger than BERTH_DOMAIN_XML_MAX, or our metadata is incomplete or out of range. Safe
 * with whatever others defined: entities are not expanded and nothing is loaded. */
#define BERTH_DOMAIN_XML_MAX (1u << 20)
BerthDomain *berth_domain_parse(const char *xml, gsize length, GError **error);

typedef enum {
    BERTH_DISK_CACHE_WRITEBACK,
    BERTH_DISK_CACHE_NONE,
} BerthDiskCache;

/* What a domain is to be. Strings are not changed and may be shared. */
typedef struct {
    const char *name;
    const char *uuid;                    /* NULL: libvirt makes one */
    const BerthDomainMetadata *metadata; /* NULL: a domain without identity (the probe) */
    guint32 vcpus;
    guint64 memory_mib;    /* RAM of the guest, exactly */
    gboolean use_kvm;      /* else TCG */
    const char *machine;   /* versioned: "pc-q35-7.2" */
    const char *cpu_model; /* "host-model", "host-passthrough", "maximum" or a model's name */
    const char *kernel;
    const char *initramfs;
    const char *cmdline;
    const BerthDiskSource *disk; /* NULL: none */
    BerthDiskCache disk_cache;
    const char *channel_path; /* unix socket on which QEMU listens; NULL: none */
    const char *console_path; /* file, appended to */
    const char *partition;    /* cgroup of all guests, or NULL: libvirt's own ("/machine") */
    guint stats_period_sec;   /* of the balloon; 0 = none */
} BerthDomainConfig;

/* The domain's XML (transfer full). Same config, same text. */
char *berth_domain_xml(const BerthDomainConfig *config);

/* --- the host ------------------------------------------------------------------------------ */

typedef struct {
    guint32 id;
    guint32 cpus;
    guint64 memory_mib;
    GArray *distances; /* guint32, to the cells in order of id; may be empty */
} BerthHostCell;

typedef struct {
    guint32 cpus;
    guint64 memory_mib;
    GArray *cells;     /* BerthHostCell, in order of id */
    gboolean has_kvm;  /* libvirt lists it; whether it boots a guest, a probe must tell */
    char *machine;     /* versioned machine type behind "q35" */
    guint32 max_vcpus; /* of that machine */
    char *qemu_version;
    char *libvirt_version;
} BerthHost;
void berth_host_free(BerthHost *host);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthHost, berth_host_free)

/* Reads libvirt's capabilities: cells, has_kvm, machine, max_vcpus; cpus and memory_mib are the
 * sums over the cells. INVALID_ARGUMENT: not capabilities. UNSUPPORTED: no x86-64 guests, or no
 * q35 machine. */
BerthHost *berth_capabilities_parse(const char *xml, gsize length, GError **error);

/* --- the connection ------------------------------------------------------------------------ */

typedef enum {
    BERTH_DOMAIN_STARTED,
    BERTH_DOMAIN_RESUMED, /* its vCPUs run on after a pause */
    /* Its QEMU is gone: */
    BERTH_DOMAIN_ENDED,   /* by the guest: it powered off, reset or panicked */
    BERTH_DOMAIN_STOPPED, /* by the host: destroyed, or its QEMU was told to end */
    BERTH_DOMAIN_FAILED,  /* by itself: it failed, or was killed */
} BerthDomainEvent;

typedef struct BerthHypervisor BerthHypervisor;

typedef struct {
    /* The connection is up (again): list the domains, events may have been missed. */
    void (*connected)(gpointer user_data);
    /* It was lost, or could not be made; REASON says why. It is tried again until it is up. */
    void (*lost)(const GError *reason, gpointer user_data);
    /* A domain, ours or not, NAME, has changed. UUID tells it from another that had this name. */
    void (*domain)(const char *name, const char *uuid, BerthDomainEvent event, gpointer user_data);
} BerthHypervisorFuncs;

/* Starts to connect to URI ("qemu:///system"). Once per process: it takes over libvirt's event
 * loop. FUNCS must stay valid. */
BerthHypervisor *berth_hypervisor_new(const char *uri, const BerthHypervisorFuncs *funcs,
                                      gpointer user_data);
/* Waits for operations that run; no callback arrives after that. */
void berth_hypervisor_free(BerthHypervisor *hypervisor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthHypervisor, berth_hypervisor_free)

gboolean berth_hypervisor_is_connected(const BerthHypervisor *hypervisor);

void berth_hypervisor_host_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                 gpointer user_data);
/* (transfer full) */
BerthHost *berth_hypervisor_host_finish(GAsyncResult *result, GError **error);

/* Starts a transient domain that outlives this connection. ALREADY_EXISTS: one of that name runs. Past
 * its deadline it is not started any more; one that was just then is destroyed again. */
void berth_hypervisor_create_async(BerthHypervisor *hypervisor, const BerthDomainConfig *config,
                                   guint timeout_msec, GAsyncReadyCallback callback,
                                   gpointer user_data);
gboolean berth_hypervisor_create_finish(GAsyncResult *result, GError **error);

/* Ends the domain and waits until its QEMU is gone. One that is not there is no error. */
void berth_hypervisor_destroy_async(BerthHypervisor *hypervisor, const char *name,
                                    guint timeout_msec, GAsyncReadyCallback callback,
                                    gpointer user_data);
gboolean berth_hypervisor_destroy_finish(GAsyncResult *result, GError **error);

/* Stops the vCPUs of a domain; one whose vCPUs stand still is left as it is. */
void berth_hypervisor_suspend_async(BerthHypervisor *hypervisor, const char *name,
                                    GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_hypervisor_suspend_finish(GAsyncResult *result, GError **error);

/* Lets a domain run on whose vCPUs were stopped (by the former, or by an I/O error that may have
 * passed); one that runs is left as it is. */
void berth_hypervisor_resume_async(BerthHypervisor *hypervisor, const char *name,
                                   GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_hypervisor_resume_finish(GAsyncResult *result, GError **error);

/* All running domains that have a guest's name and our metadata. A domain whose metadata cannot be
 * read is left out and logged at debug; if libvirt cannot be asked about one, there is no list: who
 * is not in a list does not run. */
void berth_hypervisor_list_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                 gpointer user_data);
/* GPtrArray of BerthDomain (transfer full). */
GPtrArray *berth_hypervisor_list_finish(GAsyncResult *result, GError **error);

typedef struct {
    char *name;
    gboolean paused_by_io_error;
    guint64 cpu_usec;     /* of its vCPUs */
    guint64 starved_usec; /* for which the vCPU that waited most had no CPU; 0 = not known */
    guint64 host_memory_mib;
    guint64 disk_read_bytes;
    guint64 disk_write_bytes;
} BerthDomainStats;
void berth_domain_stats_free(BerthDomainStats *stats);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDomainStats, berth_domain_stats_free)

/* Of all running domains, ours or not, in one call. */
void berth_hypervisor_stats_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                  gpointer user_data);
/* GPtrArray of BerthDomainStats (transfer full). */
GPtrArray *berth_hypervisor_stats_finish(GAsyncResult *result, GError **error);

/* Of one, for its end: what it has used in all, CPU time and disk traffic, and nothing else (0, FALSE).
 * NOT_FOUND: it does not run. */
void berth_hypervisor_domain_stats_async(BerthHypervisor *hypervisor, const char *name,
                                         guint timeout_msec, GAsyncReadyCallback callback,
                                         gpointer user_data);
/* (transfer full) */
BerthDomainStats *berth_hypervisor_domain_stats_finish(GAsyncResult *result, GError **error);
