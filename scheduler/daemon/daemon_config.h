/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/config.h"
#include "common/log.h"
#include "scheduler/core/core.h"
#include "storage/storage.h"

/* What berthd.conf(5) describes. Strings are owned; see the option table for ranges. */
typedef struct {
    /* [berthd] */
    char *cluster;
    char *socket;
    char *socket_mode_text; /* as written, octal */
    guint socket_mode;      /* permission bits */
    char *operators_group;  /* or NULL: root alone */
    char *state;            /* path or "file:" URI */
    BerthLogLevel log_level;
    gboolean journal;
    guint history_keep_sec;  /* 0 = for ever */
    guint64 journal_max_mib; /* of this run's and the last one's together */
    /* [agents] */
    char *agents_address;
    guint agents_port;
    char *certificate;
    char *key;
    char *ca;
    guint node_timeout_sec;
    guint report_interval_sec;
    guint report_near_sec;
    guint report_calm_sec;
    /* [defaults] of a job */
    char *default_image;
    guint default_vcpus;
    guint64 default_memory_mib;
    guint64 default_disk_mib;
    guint64 default_time_limit_sec;
    guint default_on_limit;   /* 0 grow, 1 freeze, 2 kill */
    guint default_on_timeout; /* 0 checkpoint where storage can, 1 kill */
    /* [guests] */
    guint stop_grace_sec;
    guint boot_deadline_sec;
    guint checkpoint_patience_sec;
    guint requeues_max;
    guint start_retries_max;
    guint start_backoff_sec;
    guint64 guest_overhead_mib;
    gboolean slack;
    gboolean balloons;
    /* [limits] */
    guint64 input_file_max_mib;
    guint64 inputs_max_mib; /* of one job, together */
    guint inputs_max;       /* files of one job */
    guint64 image_max_mib;
    guint command_max_bytes;
    guint environment_max_bytes;
    guint user_jobs_max; /* unfinished jobs of one user */
    guint64 memory_max_mib;
    guint64 state_kept_mib;
    guint user_connections_max;
    guint user_requests_per_sec; /* 0 = any number */
    guint array_tasks_max;       /* of one job */
    guint stop_grace_max_sec;
    guint checkpoint_signal_max_sec;
    guint page_size; /* jobs in one answer */
    /* [policy] */
    gint64 tunings[BERTH_TUNING_N];
    /* [storage], beside what storage.h describes */
    guint storage_check_interval_sec;
    guint gc_interval_sec;
    guint stale_client_after_sec;
    BerthStorageConfig storage;
    /* of the command line, not of the file */
    gboolean take_over_storage;
} BerthDaemonConfig;

/* Reads PATH. Errors: those of berth_config_load(). */
BerthDaemonConfig *berth_daemon_config_load(const char *path, GError **error);
void berth_daemon_config_free(BerthDaemonConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDaemonConfig, berth_daemon_config_free)

/* (transfer full) what CONFIG names and this host lacks; see common/config_warnings.h. */
GPtrArray *berth_daemon_config_warnings(const BerthDaemonConfig *config);

/* The table of all options but [policy]'s and [storage]'s own, for tests and --help. */
const BerthConfigOption *berth_daemon_config_options(gsize *out_n);
