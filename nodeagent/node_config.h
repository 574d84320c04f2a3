/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* berth-node.conf(5). */

#include "common/config.h"
#include "common/log.h"
#include "nodeagent/hypervisor/hypervisor.h"
#include "nodeagent/pace.h"
#include "storage/storage.h"

typedef struct {
    char *name; /* of the node; NULL: the host's name */
    char **labels;
    char *run_dir;
    char *console_dir; /* NULL: below run_dir */
    BerthLogLevel log_level;
    gboolean allow_exec;

    char *scheduler_address;
    guint scheduler_port;
    char *certificate;
    char *key;
    char *ca;

    char *libvirt_uri;
    char *partition; /* NULL: libvirt's own */
    char *
        host_cpus; /* list, as "0-1,8", of those that no guest's vCPU runs on, and all else does; NULL: none */
    char *guest_cpus; /* the others, from berth_node_config_take_cpus() on; NULL with host_cpus */
    /* How guests come here from other nodes, and leave for them. */
    char *reached_at; /* URI of this host's libvirt */
    char *stream_at;  /* ... of its QEMUs */
    char *pki_dir;    /* for libvirt's calls of others; NULL: libvirt's own */

    guint vcpus;        /* offered; 0 = the host's CPUs */
    guint64 memory_mib; /* offered; 0 = the host's less the reserve */
    guint64 reserve_mib;
    guint64
        limit_mib; /* of all guests together; 0 = what is offered, and a quarter of the reserve */
    guint64
        margin_mib; /* with less of it free, guests in slack are held back; 0 = by what is offered */
    guint64
        memory_patience_sec; /* who takes more waits so long for those in slack; 0 = not at all */
    guint64 output_rate_mib; /* a second, of a guest's output; 0 = no limit */
    char *kernel;
    char *initramfs;
    char *extra_cmdline;
    char *cpu_model; /* NULL: as the acceleration has it best */
    BerthDiskCache disk_cache;
    gboolean allow_emulation;
    guint probe_deadline_sec;

    BerthPaceLimits pace;
    guint traffic_interval_sec;
    guint guest_stall_msec; /* 0 = guests do not speak up by themselves */

    BerthStorageConfig storage;
} BerthNodeConfig;

/* INVALID_ARGUMENT and errno codes, as berth_config_load(). What is NULL above stays NULL only where
 * it says so: name and console_dir are filled in. */
BerthNodeConfig *berth_node_config_load(const char *path, GError **error);
void berth_node_config_free(BerthNodeConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthNodeConfig, berth_node_config_free)

/* When the agent starts: of host_cpus those stay that are online now, and guest_cpus are the others that are. *OUT_OFFLINE:
 * what was taken off host_cpus (transfer full); NULL: nothing. FAILED_PRECONDITION: none would be left for the host, or for
 * guests; UNAVAILABLE: the kernel does not say which are online. Both may pass: CONFIG is as it was. */
gboolean berth_node_config_take_cpus(BerthNodeConfig *config, char **out_offline, GError **error);

/* (transfer full) what CONFIG names and this host lacks; see common/config_warnings.h. */
GPtrArray *berth_node_config_warnings(const BerthNodeConfig *config);

/* The table, for the test of the man page. */
const BerthConfigOption *berth_node_config_options(gsize *out_n);
