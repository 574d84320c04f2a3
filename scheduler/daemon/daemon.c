/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order in which the parts of berthd come up and go down, and the wires between them.
 *
 * Invariants: nothing is served before the state is restored; nothing is freed while a worker, a
 * commit or a connection may still call back. */
#include "config.h"

#include "scheduler/daemon/daemon.h"

#include "common/error.h"
#include "scheduler/daemon/actions.h"
#include "scheduler/daemon/backup.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/checkpoints.h"
#include "scheduler/daemon/clients.h"
#include "scheduler/daemon/collector.h"
#include "scheduler/daemon/execs.h"
#include "scheduler/daemon/history.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/job_numbers.h"
#include "scheduler/daemon/listeners.h"
#include "scheduler/daemon/loader.h"
#include "scheduler/daemon/logs.h"
#include "scheduler/daemon/migrations.h"
#include "scheduler/daemon/outputs.h"
#include "scheduler/daemon/refusals.h"
#include "scheduler/daemon/sessions.h"
#include "scheduler/daemon/storage_room.h"
#include "scheduler/daemon/submit.h"
#include "scheduler/daemon/top.h"
#include "scheduler/daemon/watch.h"

#include <string.h>

#define DRAIN_MSEC 20000u

/* --- wires -------------------------------------------------------------------------------------- */

static void on_act(const BerthCoreAction *action, gpointer user_data)
{
    const BerthDaemon *daemon = user_data;
    if (action->kind == BERTH_ACTION_MIGRATE)
        berth_migrations_begin(daemon->migrations, action);
    else if (action->kind == BERTH_ACTION_STAY)
        berth_migrations_call_off(daemon->migrations, action);
    else if (action->kind == BERTH_ACTION_CHECKPOINT)
        berth_checkpoints_begin(daemon->checkpoints, action);
    else
        berth_actions_act(daemon->actions, action);
}

static void on_event(const Berth__Event *event, gpointer user_data)
{
    const BerthDaemon *daemon = user_data;
    berth_watchers_publish(daemon->watchers, event);
    if (event->kind == BERTH__EVENT__KIND__NODE_UP || event->kind == BERTH__EVENT__KIND__NODE_LOST)
        berth_migrations_node_changed(daemon->migrations, event->node);
}

static void on_task_changed(guint64 job, guint32 task, gpointer user_data)
{
    const BerthDaemon *daemon = user_data;
    berth_logs_wake(daemon->log_followers, job, task);
    berth_outputs_consider(daemon->outputs, job, task);
}

static void on_failed(const GError *error, gpointer user_data)
{
    const BerthDaemon *daemon = user_data;
    if (daemon->failed_func)
        daemon->failed_func(BERTH_DAEMON_STATE_FAILED, error, daemon->failed_data);
}

void berth_daemon_set_failed_func(BerthDaemon *daemon, BerthDaemonFailedFunc func,
                                  gpointer user_data)
{
    daemon->failed_func = func;
    daemon->failed_data = user_data;
}

/* --- storage ------------------------------------------------------------------------------------ */

static void tell_core(BerthDaemon *daemon, gboolean is_up, gboolean is_logged, const char *why)
{
    BerthCoreEvent event = {.kind = is_up ? BERTH_EVENT_STORAGE_UP : BERTH_EVENT_STORAGE_DOWN};
    g_autoptr(GError) error = NULL;
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    if (is_logged) {
        Berth__Event entry = BERTH__EVENT__INIT;
        entry.kind = is_up ? BERTH__EVENT__KIND__STORAGE_UP : BERTH__EVENT__KIND__STORAGE_DOWN;
        entry.text = (char *)why;
        berth_turn_log(turn, &entry);
    }
    if (!berth_turn_event(turn, &event, NULL, &error))
        g_critical("the core refused the state of storage: %s", error->message);
    berth_turn_commit(turn);
}

/* Nothing has been done with it. What is found at the start is most likely a wrong configuration, which
 * is to be seen at once; a daemon that runs goes on as while storage is away. */
static void refuse_storage(BerthDaemon *daemon, const GError *error)
{
    if (!daemon->storage_is_known && daemon->failed_func)
        daemon->failed_func(BERTH_DAEMON_STORAGE_FOREIGN, error, daemon->failed_data);
    else
        g_critical("nothing is started, and storage is left alone: %s", error->message);
}

static void on_storage_changed(const GError *error, gpointer user_data)
{
    BerthDaemon *daemon = user_data;
    if (berth_engine_is_stopped(daemon->engine))
        return;
    berth_job_numbers_storage_changed(daemon->numbers, error);
    if (berth_storage_link_is_foreign(error)) {
        daemon->storage_is_ours = FALSE;
        refuse_storage(daemon, error);
        tell_core(daemon, FALSE, TRUE, error->message);
    } else if (error) {
        g_warning("storage does not answer, nothing is started until it does: %s", error->message);
        tell_core(daemon, FALSE, TRUE, error->message);
    } else {
        /* That it answers from the start is no news. */
        g_message("storage (%s) answers", berth_storage_link_kind(daemon->storage));
        daemon->storage_is_ours = TRUE;
        tell_core(daemon, TRUE, daemon->storage_was_down, "");
        berth_actions_let_go(daemon->actions);
        berth_outputs_consider_all(daemon->outputs);
        berth_collector_run(daemon->collector);
        berth_storage_room_look(daemon->storage_room);
        berth_history_run(daemon->history);
    }
    daemon->storage_was_down = error != NULL;
    daemon->storage_is_known = TRUE;
}

/* --- up ----------------------------------------------------------------------------------------- */

/* Without one berthd does all that it has to do. */
static BerthJournalFile *open_journal(const BerthDaemonConfig *config)
{
    g_autoptr(GError) error = NULL;
    if (!config->journal)
        return NULL;
    gboolean is_beside_state = !g_str_has_prefix(config->state, "file:");
    g_autofree char *directory =
        is_beside_state ? g_path_get_dirname(config->state) : g_strdup(BERTH_STATEDIR);
    g_autofree char *path = g_build_filename(directory, "core.journal", NULL);
    BerthJournalFile *journal =
        berth_journal_file_open(path, config->journal_max_mib << 20,
                                is_beside_state ? config->state_kept_mib << 20 : 0, &error);
    if (!journal)
        g_warning("no journal is kept: %s", error->message);
    return journal;
}

/* What the core may do by itself. Without shared storage no guest can leave its node. */
static guint32 features_of(const BerthDaemonConfig *config)
{
    guint32 features = BERTH_FEATURE_PREDICTION | BERTH_FEATURE_SIBLING_PRIOR |
                       BERTH_FEATURE_GROWTH | BERTH_FEATURE_FREEZING;
    if (strcmp(config->storage.kind, "rbd") != 0)
        return features;
    features |= BERTH_FEATURE_MIGRATION | BERTH_FEATURE_CHECKPOINT;
    if (config->slack)
        features |= BERTH_FEATURE_OPPORTUNISTIC | BERTH_FEATURE_PROMOTION | BERTH_FEATURE_BALANCING;
    if (config->slack && config->balloons)
        features |= BERTH_FEATURE_BALLOON;
    return features;
}

static BerthCore *make_core(const BerthDaemonConfig *config, BerthJournalFile *journal)
{
    gboolean is_shared = strcmp(config->storage.kind, "rbd") == 0;
    BerthCoreConfig core_config = {
        .node_timeout_usec = config->node_timeout_sec * G_USEC_PER_SEC,
        .stop_grace_usec = config->stop_grace_sec * G_USEC_PER_SEC,
        .guest_overhead_mib = config->guest_overhead_mib,
        .requeues_max = config->requeues_max,
        .start_retries_max = config->start_retries_max,
        .start_backoff_usec = config->start_backoff_sec * G_USEC_PER_SEC,
        .can_fence = is_shared,
        .policy = BERTH_POLICY_CONSERVATIVE,
        .features = features_of(config),
        .tunings = config->tunings,
    };
    GString *text = berth_journal_file_begin(journal);
    if (text) {
        berth_journal_config(text, &core_config);
        berth_journal_file_commit(journal, text);
    }
    return berth_core_new(&core_config);
}

/* The state as it was, and the parts that only need memory. */
static gboolean restore(BerthDaemon *daemon, GError **error)
{
    BerthStoreCounters counters = {0};
    daemon->store = berth_store_open(daemon->config->state, error);
    if (!daemon->store)
        return FALSE;
    daemon->journal = open_journal(daemon->config);
    daemon->core = make_core(daemon->config, daemon->journal);
    daemon->jobs = berth_job_table_new();
    daemon->nodes = berth_node_table_new();
    daemon->images = berth_image_table_new();
    daemon->blob_guard = berth_blob_guard_new();
    if (!berth_loader_run(daemon, &counters, error))
        return FALSE;
    daemon->next_job = counters.next_job;
    daemon->engine = berth_engine_new(daemon->core, daemon->store, daemon->jobs, daemon->nodes,
                                      counters.last_seq, counters.last_usec);
    berth_engine_set_journal(daemon->engine, daemon->journal);
    daemon->numbers = berth_job_numbers_new(daemon, &counters);
    berth_storage_link_set_guard(daemon->storage, berth_job_numbers_guard, daemon->numbers);
    g_message("restored %u unfinished jobs and %u nodes; the next job is %" G_GUINT64_FORMAT,
              berth_job_table_size(daemon->jobs), berth_core_n_nodes(daemon->core),
              daemon->next_job);
    return TRUE;
}

static void make_parts(BerthDaemon *daemon)
{
    static const BerthEngineHooks hooks = {
        .act = on_act, .event = on_event, .task_changed = on_task_changed, .failed = on_failed};
    daemon->actions = berth_actions_new(daemon);
    daemon->migrations = berth_migrations_new(daemon);
    daemon->checkpoints = berth_checkpoints_new(daemon);
    daemon->outputs = berth_outputs_new(daemon);
    daemon->log_followers = berth_log_followers_new(daemon);
    daemon->watchers = berth_watchers_new(daemon);
    daemon->refusals = berth_refusals_new(daemon);
    daemon->submissions = berth_submissions_new(daemon);
    daemon->sessions = berth_sessions_new(daemon);
    daemon->execs = berth_execs_new(daemon);
    daemon->top = berth_top_new(daemon);
    daemon->clients = berth_clients_new(daemon);
    daemon->collector = berth_collector_new(daemon);
    daemon->history = berth_history_new(daemon, daemon->config->history_keep_sec);
    daemon->storage_room =
        berth_storage_room_new(daemon, daemon->config->storage_check_interval_sec);
    daemon->backups = berth_backups_new(daemon);
    berth_engine_set_hooks(daemon->engine, &hooks, daemon);
}

static gboolean bring_up(BerthDaemon *daemon, GError **error)
{
    if (!berth_operators_init(&daemon->operators, daemon->config->operators_group, error))
        return FALSE;
    daemon->workers = berth_workers_new();
    daemon->users = berth_users_new(daemon->workers);
    daemon->storage = berth_storage_link_new(&daemon->config->storage, daemon->workers,
                                             daemon->config->storage_check_interval_sec);
    if (!restore(daemon, error))
        return FALSE;
    make_parts(daemon);
    daemon->listeners = berth_listeners_new(daemon, error);
    if (!daemon->listeners)
        return FALSE;
    daemon->start_usec = berth_engine_now_usec(daemon->engine);
    berth_engine_start(daemon->engine);
    tell_core(daemon, FALSE, FALSE, "");
    berth_storage_link_start(daemon->storage, on_storage_changed, daemon);
    return TRUE;
}

static void free_all(BerthDaemon *daemon);

BerthDaemon *berth_daemon_start(BerthDaemonConfig *config, GError **error)
{
    BerthDaemon *daemon = g_new0(BerthDaemon, 1);
    daemon->config = config;
    if (!bring_up(daemon, error)) {
        free_all(daemon);
        return NULL;
    }
    return daemon;
}

guint16 berth_daemon_agents_port(BerthDaemon *daemon)
{
    return berth_listeners_agents_port(daemon->listeners);
}

/* --- down --------------------------------------------------------------------------------------- */

static void free_all(BerthDaemon *daemon)
{
    g_clear_pointer(&daemon->listeners, berth_listeners_free);
    g_clear_pointer(&daemon->backups, berth_backups_free);
    g_clear_pointer(&daemon->history, berth_history_free);
    g_clear_pointer(&daemon->storage_room, berth_storage_room_free);
    g_clear_pointer(&daemon->collector, berth_collector_free);
    g_clear_pointer(&daemon->clients, berth_clients_free);
    g_clear_pointer(&daemon->top, berth_top_free);
    g_clear_pointer(&daemon->execs, berth_execs_free);
    g_clear_pointer(&daemon->sessions, berth_sessions_free);
    g_clear_pointer(&daemon->submissions, berth_submissions_free);
    g_clear_pointer(&daemon->refusals, berth_refusals_free);
    g_clear_pointer(&daemon->watchers, berth_watchers_free);
    g_clear_pointer(&daemon->log_followers, berth_log_followers_free);
    g_clear_pointer(&daemon->outputs, berth_outputs_free);
    g_clear_pointer(&daemon->checkpoints, berth_checkpoints_free);
    g_clear_pointer(&daemon->migrations, berth_migrations_free);
    g_clear_pointer(&daemon->actions, berth_actions_free);
    g_clear_pointer(&daemon->engine, berth_engine_free);
    g_clear_pointer(&daemon->blob_guard, berth_blob_guard_free);
    g_clear_pointer(&daemon->images, berth_image_table_free);
    g_clear_pointer(&daemon->nodes, berth_node_table_free);
    g_clear_pointer(&daemon->jobs, berth_job_table_free);
    g_clear_pointer(&daemon->core, berth_core_free);
    g_clear_pointer(&daemon->journal, berth_journal_file_close);
    g_clear_pointer(&daemon->store, berth_store_close);
    g_clear_pointer(&daemon->users, berth_users_free);
    /* Workers before the storage that they may still be using, and what a check of it looks at. */
    g_clear_pointer(&daemon->workers, berth_workers_free);
    g_clear_pointer(&daemon->numbers, berth_job_numbers_free);
    g_clear_pointer(&daemon->storage, berth_storage_link_free);
    berth_daemon_config_free(daemon->config);
    g_free(daemon);
}

gboolean berth_daemon_stop(BerthDaemon *daemon)
{
    berth_sessions_keep_heard(daemon->sessions);
    berth_engine_stop(daemon->engine);
    berth_submissions_stop(daemon->submissions);
    berth_listeners_close(daemon->listeners);
    berth_storage_room_stop(daemon->storage_room);
    berth_history_stop(daemon->history);
    berth_storage_link_stop(daemon->storage);
    berth_job_numbers_stop(daemon->numbers);
    berth_sessions_close(daemon->sessions);
    gboolean is_quiet = berth_clients_close(daemon->clients, DRAIN_MSEC) &&
                        berth_workers_drain(daemon->workers, DRAIN_MSEC);
    /* What a worker has brought may have been committed since. */
    berth_engine_stop(daemon->engine);
    if (!is_quiet)
        return FALSE;
    free_all(daemon);
    return TRUE;
}
