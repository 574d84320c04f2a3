/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/rpc.h"
#include "scheduler/daemon/daemon_config.h"
#include "scheduler/daemon/engine.h"
#include "scheduler/daemon/permission.h"
#include "scheduler/daemon/storage_link.h"
#include "scheduler/daemon/users.h"
#include "scheduler/daemon/workers.h"

/* berthd as a whole: what its parts share, and how they start and end. */

typedef struct BerthDaemon BerthDaemon;
typedef struct BerthActions BerthActions;
typedef struct BerthSessions BerthSessions;
typedef struct BerthClients BerthClients;
typedef struct BerthImageTable BerthImageTable;
typedef struct BerthBlobGuard BerthBlobGuard;
typedef struct BerthMigrations BerthMigrations;
typedef struct BerthCheckpoints BerthCheckpoints;
typedef struct BerthSubmissions BerthSubmissions;
typedef struct BerthLogFollowers BerthLogFollowers;
typedef struct BerthWatchers BerthWatchers;
typedef struct BerthRefusals BerthRefusals;
typedef struct BerthExecs BerthExecs;
typedef struct BerthTop BerthTop;
typedef struct BerthCollector BerthCollector;
typedef struct BerthHistory BerthHistory;
typedef struct BerthStorageRoom BerthStorageRoom;
typedef struct BerthBackups BerthBackups;
typedef struct BerthOutputs BerthOutputs;
typedef struct BerthListeners BerthListeners;
typedef struct BerthJobNumbers BerthJobNumbers;

typedef enum {
    BERTH_DAEMON_STATE_FAILED, /* the store cannot write any more */
    BERTH_DAEMON_STORAGE_FOREIGN, /* storage was found to be another state's when it was first opened */
} BerthDaemonFailure;

/* Called once for a failure with which the daemon cannot go on: end at once. */
typedef void (*BerthDaemonFailedFunc)(BerthDaemonFailure failure, const GError *error,
                                      gpointer user_data);

/* Members are set by daemon.c, in this order, before any request is served; each part uses those
 * before it. */
struct BerthDaemon {
    BerthDaemonConfig *config;
    BerthOperators operators;
    BerthWorkers *workers;
    BerthUsers *users;
    BerthStorageLink *storage;
    BerthStore *store;
    BerthJournalFile *journal; /* NULL = none */
    BerthCore *core;
    BerthJobTable *jobs;
    BerthNodeTable *nodes;
    BerthImageTable *images;
    BerthBlobGuard *blob_guard;
    BerthEngine *engine;
    BerthJobNumbers *numbers;
    BerthActions *actions;
    BerthMigrations *migrations;
    BerthCheckpoints *checkpoints;
    BerthOutputs *outputs;
    BerthLogFollowers *log_followers;
    BerthWatchers *watchers;
    BerthRefusals *refusals;
    BerthSubmissions *submissions;
    BerthSessions *sessions;
    BerthExecs *execs;
    BerthTop *top;
    BerthClients *clients;
    BerthCollector *collector;
    BerthHistory *history;
    BerthStorageRoom *storage_room;
    BerthBackups *backups;
    BerthListeners *listeners;
    guint64 next_job;
    gint64 start_usec;
    gboolean storage_was_down; /* as it was last heard of */
    gboolean storage_is_known; /* it was heard of */
    gboolean storage_is_ours;  /* it has answered, and said so last */
    BerthDaemonFailedFunc failed_func;
    gpointer failed_data;
};

/* Opens the state, restores the core and listens. CONFIG (transfer full). Errors name what cannot
 * be had: state, certificate, socket, port. */
BerthDaemon *berth_daemon_start(BerthDaemonConfig *config, GError **error);
void berth_daemon_set_failed_func(BerthDaemon *daemon, BerthDaemonFailedFunc func,
                                  gpointer user_data);
/* The port on which agents are awaited. */
guint16 berth_daemon_agents_port(BerthDaemon *daemon);
/* Closes all connections, waits for commits and workers, and frees. FALSE: some worker did not
 * return in time; the process has to end without freeing anything more. */
gboolean berth_daemon_stop(BerthDaemon *daemon);
