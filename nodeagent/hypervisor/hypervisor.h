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
    BerthResources
        limits; /* as of the last resize that was done; disk_mib: size of its disk, rounded up */
    guint64 balloon_mib;       /* of its memory, that a balloon keeps from it */
    gboolean is_opportunistic; /* its CPU weight is that of a guest in slack */
    gboolean stands;           /* it was restored, and nobody has let it go yet */
    char *disk_id;             /* names in storage */
    char *log_id;
} BerthDomainMetadata;

/* A domain that exists. */
typedef struct {
    char *name;
    BerthDomainMetadata metadata;
    char *channel_path; /* NULL if it has none */
    char *console_path; /* NULL if it has none */
    gboolean
        is_frozen; /* of those in a list: somebody, and neither an I/O error nor the last step of a
                         * move, has stopped its vCPUs */
    gboolean stands_still; /* likewise: its vCPUs do, for whatever reason */
    gboolean
        is_starting; /* likewise: it is being made, or its memory is on its way from another host */
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
    guint64 memory_mib; /* RAM of the guest, exactly */
    guint32 vcpus_max;  /* it may be grown up to these; below VCPUS and MEMORY_MIB: not */
    guint64
        memory_max_mib; /* there is room for as much; not more than that is ever to be asked for */
    gboolean is_opportunistic;
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
    const char *guest_cpus; /* of the host, on which its vCPUs run, as "2-63"; NULL: all, and ... */
    const char *host_cpus;  /* ... on which all its other threads do; NULL with it */
    guint stats_period_sec; /* of the balloon; 0 = none */
} BerthDomainConfig;

/* What is plugged into a guest beyond its first memory comes and goes in blocks of this size: the largest
 * that Linux's page allocator knows, and so what it takes and gives back at a time. */
#define BERTH_GROWTH_BLOCK_MIB 4u
/* Linux on x86 lays out room for these in regions of this size, and uses none that is not whole; how many of the blocks in
 * one are plugged in does not matter (drivers/virtio/virtio_mem.c, "Sub Block Mode"). */
#define BERTH_GROWTH_REGION_MIB 128u

/* The domain's XML (transfer full). Same config, same text. */
char *berth_domain_xml(const BerthDomainConfig *config);

/* --- the host ------------------------------------------------------------------------------ */

typedef struct {
    guint32 id;
    guint32 cpus;
    guint64 memory_mib;
    GArray *cpu_ids;   /* guint32, of its CPUs; may be empty: libvirt does not say */
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
    BERTH_DOMAIN_SUSPENDED, /* its vCPUs stand still */
    BERTH_DOMAIN_RESUMED,   /* they run on */
    BERTH_DOMAIN_RESIZED,   /* its guest has taken, or given back, some memory */
    /* Its QEMU is gone: */
    BERTH_DOMAIN_ENDED,   /* by the guest: it powered off, reset or panicked */
    BERTH_DOMAIN_STOPPED, /* by the host: destroyed, or its QEMU was told to end */
    BERTH_DOMAIN_FAILED,  /* by itself: it failed, or was killed */
    BERTH_DOMAIN_LEFT,    /* it is another host's now */
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
/* Waits for operations that run, but for moves, unless libvirtd does not answer; no callback arrives after that. */
void berth_hypervisor_free(BerthHypervisor *hypervisor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthHypervisor, berth_hypervisor_free)

gboolean berth_hypervisor_is_connected(const BerthHypervisor *hypervisor);

void berth_hypervisor_host_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                 gpointer user_data);
/* (transfer full) */
BerthHost *berth_hypervisor_host_finish(GAsyncResult *result, GError **error);

/* Is there a secret UUID, for Ceph? NOT_FOUND, INVALID_ARGUMENT: there is not. Whether its value is right QEMU alone finds out. */
void berth_hypervisor_check_secret_async(BerthHypervisor *hypervisor, const char *uuid,
                                         GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_hypervisor_check_secret_finish(GAsyncResult *result, GError **error);

/* Starts a transient domain that outlives this connection. ALREADY_EXISTS: one of that name runs. Past
 * its deadline it is not started any more; one that was just then is destroyed again. */
void berth_hypervisor_create_async(BerthHypervisor *hypervisor, const BerthDomainConfig *config,
                                   guint timeout_msec, GAsyncReadyCallback callback,
                                   gpointer user_data);
gboolean berth_hypervisor_create_finish(GAsyncResult *result, GError **error);

/* Ends the domain NAME and waits until its QEMU is gone, if it is that of the guest ID: one that was restored has the name
 * of an earlier epoch. NULL: whoever's it is. One that is not there is no error. */
void berth_hypervisor_destroy_async(BerthHypervisor *hypervisor, const char *name,
                                    const BerthGuestId *id, guint timeout_msec,
                                    GAsyncReadyCallback callback, gpointer user_data);
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

/* The domain NAME if it is one of ours. NOT_FOUND: there is none. */
void berth_hypervisor_find_async(BerthHypervisor *hypervisor, const char *name,
                                 GAsyncReadyCallback callback, gpointer user_data);
/* (transfer full) */
BerthDomain *berth_hypervisor_find_finish(GAsyncResult *result, GError **error);

/* --- moving one to another host ------------------------------------------------------------ */

/* Where a domain goes, and what of it is the other host's own. */
typedef struct {
    char *libvirt_uri; /* of its libvirt */
    char *stream_uri;  /* at which its QEMU is reached: "tcp://HOST" */
    char *channel_path;
    char *console_path;
    char *kernel;
    char *initramfs;
    char *partition;           /* NULL: libvirt's own */
    char *guest_cpus;          /* as in BerthDomainConfig */
    char *host_cpus;           /* as there */
    char *secret_uuid;         /* of its libvirt's secret for storage; NULL: the disk needs none */
    char *domain;              /* its name there; NULL: as here */
    gboolean is_opportunistic; /* its CPU weight there is that of a guest in slack ... */
    gboolean sets_weight;      /* ... as soon as its agent has taken it, which sets it itself */
} BerthMigrationTarget;
BerthMigrationTarget *berth_migration_target_copy(const BerthMigrationTarget *target);
void berth_migration_target_free(BerthMigrationTarget *target);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthMigrationTarget, berth_migration_target_free)

/* Where another host says that it is reached: its libvirt over TLS, at a host and nothing else, and its QEMU.
 * INVALID_ARGUMENT: elsewhere, or otherwise. */
gboolean berth_migration_uris_check(const char *libvirt_uri, const char *stream_uri,
                                    GError **error);

/* The domain's XML as TARGET is to have it (transfer full). INVALID_ARGUMENT: not a domain's, or none
 * with a kernel, a channel and a console. */
char *berth_domain_xml_for(const char *xml, gsize length, const BerthMigrationTarget *target,
                           GError **error);

/* Moves the domain to TARGET, over TLS, which takes as long as it takes; its vCPUs stand still there until
 * they are resumed. libvirt goes on with it though this process ends meanwhile, and berth_hypervisor_free() does
 * not wait for it. FALSE: it may be where it was, which berth_hypervisor_stay_async() tells; UNAVAILABLE:
 * libvirt was lost. */
void berth_hypervisor_migrate_async(BerthHypervisor *hypervisor, const char *name,
                                    const BerthMigrationTarget *target,
                                    GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_hypervisor_migrate_finish(GAsyncResult *result, GError **error);

/* How far that is, or one that another process has begun; all 0: it has not begun, or is over. */
typedef struct {
    gboolean is_under_way;
    guint64 left_bytes; /* of its memory */
    guint64 copied_bytes;
    guint64 bytes_per_sec;
    guint64 dirty_bytes_per_sec;
    guint downtime_msec; /* that is to be expected */
} BerthMigrationState;
void berth_hypervisor_migration_async(BerthHypervisor *hypervisor, const char *name,
                                      GAsyncReadyCallback callback, gpointer user_data);
/* (transfer full) to be freed with g_free(). */
BerthMigrationState *berth_hypervisor_migration_finish(GAsyncResult *result, GError **error);

/* The domain is to stay, whoever moves it. TRUE: it is here, and nothing moves it. UNAVAILABLE, DEADLINE_EXCEEDED:
 * it is not yet so, or nobody knows; ask again. NOT_FOUND: there is no such domain (any more). */
void berth_hypervisor_stay_async(BerthHypervisor *hypervisor, const char *name,
                                 GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_hypervisor_stay_finish(GAsyncResult *result, GError **error);

/* The job of the domain, a save or a move, is to end. That it was told says not that it has. */
void berth_hypervisor_abort_job_async(BerthHypervisor *hypervisor, const char *name,
                                      GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_hypervisor_abort_job_finish(GAsyncResult *result, GError **error);

/* From now on the domain that is being moved may stand still for so long in the end. No answer: the migration's own
 * tells. */
void berth_hypervisor_migration_allow(BerthHypervisor *hypervisor, const char *name,
                                      guint downtime_msec);

/* What a guest is to have of what it may have. */
typedef struct {
    guint32 vcpus;       /* so many CPUs' worth of time */
    guint64 memory_mib;  /* its RAM, with what its balloon keeps from it */
    guint64 balloon_mib; /* below MEMORY_MIB */
    gboolean is_opportunistic;
} BerthDomainSize;

/* How far a resize has come. */
typedef struct {
    gboolean is_done;   /* it has what was wanted, and its metadata say so */
    guint64 memory_mib; /* RAM that the guest can use now */
} BerthResizeProgress;

/* Brings a domain of ours nearer to WANTED: at once with vCPUs (more are plugged in, of those that it has
 * some get no time) and CPU weight, as its guest goes along with memory (BERTH_DOMAIN_RESIZED tells).
 * To be asked again with the same until it is done. NEEDED_MIB: what the guest uses of its memory and is to
 * have free beyond that, of which nothing is taken. PRESSES: memory that the guest has not given back
 * in blocks is to be taken by the balloon. INVALID_ARGUMENT: it can never have that. */
void berth_hypervisor_resize_async(BerthHypervisor *hypervisor, const char *name,
                                   const BerthDomainSize *wanted, guint64 needed_mib,
                                   gboolean presses, GAsyncReadyCallback callback,
                                   gpointer user_data);
gboolean berth_hypervisor_resize_finish(GAsyncResult *result, BerthResizeProgress *out_progress,
                                        GError **error);

/* Of the threads that copy a domain's memory, together. */
#define BERTH_COPYING_CPUS 1u

/* How a domain gets its host's CPUs, within what it may have in all (berth_hypervisor_resize_async()). */
typedef struct {
    gboolean
        is_held_back; /* a hundredth of each of its vCPUs; what else its QEMU does is not slowed down */
    guint32 vcpus;             /* the CPU weight is that of a guest of so many ... */
    gboolean is_opportunistic; /* ... in slack, or not */
} BerthDomainShare;
/* Until it is told otherwise, moved or restored. */
void berth_hypervisor_hold_back_async(BerthHypervisor *hypervisor, const char *name,
                                      const BerthDomainShare *share, GAsyncReadyCallback callback,
                                      gpointer user_data);
gboolean berth_hypervisor_hold_back_finish(GAsyncResult *result, GError **error);

/* The process of the running domain NAME, by what libvirt has written; 0: not known. */
guint64 berth_hypervisor_pid(const char *name);

/* --- its memory to a pipe, and from one ---------------------------------------------------- */

/* Writes the domain's memory into the FIFO PATH, which takes as long as who reads it. It runs meanwhile, and stands
 * still when it is done, or if it did before. FALSE: it runs, or stands still, as before; with UNAVAILABLE
 * nobody knows. What libvirt writes: see nodeagent/memory_pipe.h. */
void berth_hypervisor_save_async(BerthHypervisor *hypervisor, const char *name, const char *path,
                                 GAsyncReadyCallback callback, gpointer user_data);
/* The domain's XML, as it is to be restored (transfer full). */
char *berth_hypervisor_save_finish(GAsyncResult *result, GError **error);

/* XML, of a domain that runs, as it is to be kept with its memory: without the CPUs of its host, which an agent of a release
 * before would leave in it on another (transfer full). INVALID_ARGUMENT: not XML, or longer than BERTH_DOMAIN_XML_MAX. */
char *berth_domain_xml_of_no_host(const char *xml, gsize length, GError **error);
/* XML, of a domain that was saved, for this host and a guest with METADATA, whose disk is DISK (transfer full). Errors
 * of berth_domain_xml_for(). */
char *berth_domain_xml_for_restore(const char *xml, const BerthMigrationTarget *host,
                                   const BerthDomainMetadata *metadata, const BerthDiskSource *disk,
                                   GError **error);
/* Makes a transient domain NAME, as XML has it, of the memory that comes from the FIFO PATH. Its vCPUs stand still.
 * ALREADY_EXISTS: one of that name runs. */
void berth_hypervisor_restore_async(BerthHypervisor *hypervisor, const char *name, const char *xml,
                                    const char *path, GAsyncReadyCallback callback,
                                    gpointer user_data);
gboolean berth_hypervisor_restore_finish(GAsyncResult *result, GError **error);

/* All running domains that have a guest's name and our metadata. A domain whose metadata cannot be
 * read is left out and logged at debug; if libvirt cannot be asked about one, there is no list: who
 * is not in a list does not run. */
void berth_hypervisor_list_async(BerthHypervisor *hypervisor, GAsyncReadyCallback callback,
                                 gpointer user_data);
/* GPtrArray of BerthDomain (transfer full). */
GPtrArray *berth_hypervisor_list_finish(GAsyncResult *result, GError **error);

/* What the host's kernel counts of a domain's QEMU, since that began. 0: not known. */
typedef struct {
    guint64 cpu_usec;        /* of its vCPUs */
    guint64 starved_usec;    /* for which its host left the vCPU that waited most without a CPU */
    guint64 throttled_usec;  /* for which vCPUs were ready, and had used up their CPU quota */
    guint64 host_memory_mib; /* that QEMU occupies now */
} BerthQemuUsage;

/* Where the kernel counts it. Neither libvirt nor QEMU is asked: to be read from the loop. */
typedef struct BerthQemuCounters BerthQemuCounters;
BerthQemuCounters *berth_qemu_counters_new(const char *domain);
void berth_qemu_counters_free(BerthQemuCounters *counters);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthQemuCounters, berth_qemu_counters_free)
/* FALSE: the domain does not run. */
gboolean berth_qemu_counters_read(BerthQemuCounters *counters, BerthQemuUsage *out_usage);
/* Its vCPUs may have become more: looks for them anew. */
void berth_qemu_counters_find(BerthQemuCounters *counters);

typedef struct {
    char *name;
    gboolean paused_by_io_error;
    BerthQemuUsage qemu; /* berth_hypervisor_domain_stats_async() only */
    gboolean has_traffic;
    guint64 disk_read_bytes;
    guint64 disk_write_bytes;
    guint64 net_receive_bytes; /* by the guest */
    guint64 net_send_bytes;
} BerthDomainStats;
void berth_domain_stats_free(BerthDomainStats *stats);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDomainStats, berth_domain_stats_free)

/* Of all running domains, ours or not, in one call: what state they are in, which libvirt knows by itself.
 * WITH_TRAFFIC: of their disks and networks too, for which it has to ask each QEMU. */
void berth_hypervisor_stats_async(BerthHypervisor *hypervisor, gboolean with_traffic,
                                  GAsyncReadyCallback callback, gpointer user_data);
/* GPtrArray of BerthDomainStats (transfer full). */
GPtrArray *berth_hypervisor_stats_finish(GAsyncResult *result, GError **error);

/* Of one, for its end: what it has used in all, CPU time and disk traffic, and nothing else (0, FALSE).
 * NOT_FOUND: it does not run. */
void berth_hypervisor_domain_stats_async(BerthHypervisor *hypervisor, const char *name,
                                         guint timeout_msec, GAsyncReadyCallback callback,
                                         gpointer user_data);
/* (transfer full) */
BerthDomainStats *berth_hypervisor_domain_stats_finish(GAsyncResult *result, GError **error);
