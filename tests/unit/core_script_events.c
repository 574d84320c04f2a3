/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the events of a script say: one function makes one of them, or several that are alike, from
 * the words of its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script_internal.h"

#include <string.h>

/* ok:JOB, any:JOB, not:JOB, start:JOB, corr:JOB or singleton among the words. */
static gboolean dependency_of(const Script *script, BerthCoreDependency *out_dependency)
{
    static const struct {
        const char *prefix;
        BerthDependencyKind kind;
    } kinds[] = {{"ok:", BERTH_AFTER_OK},
                 {"any:", BERTH_AFTER_ANY},
                 {"not:", BERTH_AFTER_NOT_OK},
                 {"start:", BERTH_AFTER_START},
                 {"corr:", BERTH_AFTER_CORR}};
    *out_dependency = (BerthCoreDependency){.kind = BERTH_SINGLETON};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        guint64 job = core_script_option(script, kinds[i].prefix, 0);
        if (job != 0)
            *out_dependency = (BerthCoreDependency){.kind = kinds[i].kind, .job = job};
    }
    return out_dependency->job != 0 || core_script_has(script, "singleton");
}

static void on_admission(Script *script)
{
    BerthEventKind kind = core_script_has(script, "cordon")  ? BERTH_EVENT_NODE_CORDONED
                          : core_script_has(script, "drain") ? BERTH_EVENT_NODE_DRAINED
                                                             : BERTH_EVENT_NODE_UNDRAINED;
    core_script_handle(
        script, &(BerthCoreEvent){.kind = kind,
                                  .node = (guint32)core_script_number(script, script->words[1])});
}

static void on_pressed(Script *script)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_REPORTED,
                            .node = (guint32)core_script_number(script, script->words[1])};
    event.node_usage.memory_available_mib = core_script_option(script, "left=", 0);
    event.node_usage.memory_pressure_permille = (guint32)core_script_option(
        script, "psi=", event.node_usage.memory_available_mib > 0 ? 0 : 500);
    core_script_handle(script, &event);
}

static BerthCoreLimits limits_of(const Script *script)
{
    return (BerthCoreLimits){.running_tasks = (guint32)core_script_option(script, "tasks=", 0),
                             .vcpus = (guint32)core_script_option(script, "v=", 0),
                             .memory_mib = core_script_option(script, "m=", 0),
                             .jobs = (guint32)core_script_option(script, "jobs=", 0)};
}

/* Where NODE is, and its equal cells, if the words say so. */
static void read_layout(const Script *script, BerthCoreNodeInfo *info)
{
    info->rack = (guint32)core_script_option(script, "rack=", info->rack);
    info->fabric = (guint32)core_script_option(script, "fabric=", info->fabric);
    info->n_cells = (guint32)core_script_option(script, "cells=", info->n_cells);
    assert_true(info->n_cells <= BERTH_CELLS_MAX);
    for (guint32 i = 0; i < info->n_cells; i++)
        info->cells[i] = (BerthCoreCell){info->capacity.vcpus / info->n_cells,
                                         info->capacity.memory_mib / info->n_cells};
}

static void on_changed(Script *script)
{
    guint32 node = (guint32)core_script_number(script, script->words[1]);
    script->infos[node].cannot_start = core_script_has(script, "cannot");
    script->infos[node].capacity.vcpus =
        (guint32)core_script_option(script, "v=", script->infos[node].capacity.vcpus);
    read_layout(script, &script->infos[node]);
    core_script_handle(script, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_CHANGED,
                                                 .node = node,
                                                 .changed = script->infos[node]});
}

static void on_setting(Script *script)
{
    BerthCoreEvent event = {0};
    guint32 number = (guint32)core_script_number(script, script->words[1]);
    guint32 nodes[] = {(guint32)core_script_option(script, "node=", 1)};
    if (core_script_has(script, "account")) {
        event.kind = BERTH_EVENT_ACCOUNT_SET;
        event.account_set.account = number;
        event.account_set.parent = (guint32)core_script_option(script, "parent=", 0);
        event.account_set.shares = (guint32)core_script_option(script, "shares=", 1);
        event.account_set.limits = limits_of(script);
    } else if (core_script_has(script, "user")) {
        event.kind = BERTH_EVENT_USER_SET;
        event.user_set.uid = number;
        event.user_set.account = (guint32)core_script_option(script, "account=", 0);
        event.user_set.shares = (guint32)core_script_option(script, "shares=", 1);
        event.user_set.limits = limits_of(script);
    } else if (core_script_has(script, "qos")) {
        event.kind = BERTH_EVENT_QOS_SET;
        event.qos_set.qos = number;
        event.qos_set.priority_permille = (gint32)core_script_option(script, "p=", 0);
    } else {
        event.kind = core_script_option(script, "to=", 0) > 0 ? BERTH_EVENT_MAINTENANCE_SET
                                                              : BERTH_EVENT_MAINTENANCE_CLEARED;
        event.maintenance.id = number;
        event.maintenance.nodes = nodes;
        event.maintenance.n_nodes = 1;
        event.maintenance.start_usec =
            SECOND_0_USEC + (gint64)core_script_option(script, "from=", 0) * G_USEC_PER_SEC;
        event.maintenance.end_usec =
            SECOND_0_USEC + (gint64)core_script_option(script, "to=", 0) * G_USEC_PER_SEC;
    }
    core_script_handle(script, &event);
}

static void on_submit(Script *script)
{
    guint64 id = core_script_number(script, script->words[1]);
    assert_true(id < N_JOBS_MAX);
    Record *record = &script->records[id];
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    BerthCoreJob *job = &event.submitted;
    *job = (BerthCoreJob){
        .id = id,
        .uid = (guint32)core_script_option(script, "uid=", 1000),
        .resources = {(guint32)core_script_option(script, "v=", 1),
                      core_script_option(script, "m=", 100), 10},
        .time_limit_usec = (gint64)core_script_option(script, "limit=", 1000) * G_USEC_PER_SEC,
        .priority = (gint32)core_script_option(script, "p=", 0),
        .held = core_script_has(script, "held") || core_script_has(script, "held-op"),
        .held_by_operator = core_script_has(script, "held-op"),
        .no_requeue = core_script_has(script, "no-requeue"),
        .submit_usec = script->now_usec,
        .guests = (guint32)core_script_option(script, "guests=", 1),
        .array_size = (guint32)core_script_option(script, "array=", 1),
        .array_throttle = (guint32)core_script_option(script, "throttle=", 0),
        .account = (guint32)core_script_option(script, "account=", 0),
        .qos = (guint32)core_script_option(script, "qos=", 0),
        .family = core_script_option(script, "family=", 0),
        .may_move = core_script_has(script, "may-move"),
        .may_checkpoint = core_script_has(script, "may-checkpoint"),
        .opportunistic = core_script_has(script, "slack"),
        .checkpoint_every_usec =
            (gint64)core_script_option(script, "every=", 0) * (gint64)G_USEC_PER_SEC,
        .checkpoint_signal_usec =
            (gint64)core_script_option(script, "signal=", 0) * (gint64)G_USEC_PER_SEC,
        .on_limit = core_script_has(script, "kill")     ? BERTH_ON_LIMIT_KILL
                    : core_script_has(script, "notify") ? BERTH_ON_LIMIT_NOTIFY
                                                        : BERTH_ON_LIMIT_FREEZE,
        .ceiling = {(guint32)core_script_option(script, "vmax=", 0),
                    core_script_option(script, "mmax=", 0), 0},
        .on_timeout =
            core_script_has(script, "save") ? BERTH_ON_TIMEOUT_CHECKPOINT : BERTH_ON_TIMEOUT_KILL,
    };
    BerthCoreDependency after;
    if (dependency_of(script, &after)) {
        job->dependencies = &after;
        job->n_dependencies = 1;
    }
    guint32 nodes[N_NODES_MAX];
    for (char **word = script->words; *word != NULL; word++) {
        if (!g_str_has_prefix(*word, "nodes="))
            continue;
        g_auto(GStrv) parts = g_strsplit(*word + strlen("nodes="), ",", N_NODES_MAX);
        for (; parts[job->n_nodes] != NULL; job->n_nodes++)
            nodes[job->n_nodes] = (guint32)core_script_number(script, parts[job->n_nodes]);
        job->nodes = nodes;
    }
    core_script_handle(script, &event);
    if (script->error != NULL)
        return;
    record->is_known = TRUE;
    record->job = *job;
    memcpy(record->nodes, nodes, job->n_nodes * sizeof nodes[0]);
    record->job.nodes = job->n_nodes > 0 ? record->nodes : NULL;
    record->job.dependencies = NULL;
    record->job.n_dependencies = 0;
}

static BerthFoundGuest found_of(Script *script, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    BerthFoundGuest found = {.id = core_script_guest(script, parts[0])};
    const char *detail = g_strv_length(parts) > 2 ? parts[2] : NULL;
    found.start_usec = script->now_usec;
    found.end_usec = script->now_usec;
    if (g_strcmp0(parts[1], "starting") == 0)
        found.phase = BERTH_FOUND_STARTING;
    else if (g_strcmp0(parts[1], "running") == 0)
        found.phase = BERTH_FOUND_RUNNING;
    else if (g_strcmp0(parts[1], "exited") == 0)
        found.phase = BERTH_FOUND_EXITED;
    else if (g_strcmp0(parts[1], "not-begun") == 0)
        found.phase = BERTH_FOUND_NOT_BEGUN;
    else if (g_strcmp0(parts[1], "left") == 0)
        found.phase = BERTH_FOUND_LEFT;
    else
        found.phase = BERTH_FOUND_GONE;
    if (detail != NULL && found.phase == BERTH_FOUND_EXITED)
        found.exit.status = (guint32)core_script_number(script, detail);
    if (detail != NULL && found.phase >= BERTH_FOUND_GONE)
        found.reason = (BerthReason)core_script_value(script, detail);
    return found;
}

static void on_join(Script *script)
{
    guint32 node = (guint32)core_script_number(script, script->words[1]);
    BerthFoundGuest found[N_JOBS_MAX];
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = script->infos[node];
    event.joined.guests = found;
    for (char **word = script->words + 2; *word != NULL; word++)
        found[event.joined.n_guests++] = found_of(script, *word);
    core_script_handle(script, &event);
}

static void on_node(Script *script)
{
    guint32 node = (guint32)core_script_number(script, script->words[1]);
    assert_true(node <= N_NODES_MAX);
    g_autofree char *name = g_strdup_printf("n%u", node);
    assert_int_equal(berth_core_add_node(script->core, name), node);
    script->infos[node].capacity =
        (BerthResources){(guint32)core_script_number(script, script->words[2]),
                         core_script_number(script, script->words[3]), 0};
    script->words[2][0] = '\0';
    read_layout(script, &script->infos[node]);
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = script->infos[node];
    core_script_handle(script, &event);
}

static BerthCoreCheckpoint checkpoint_of(const Script *script)
{
    return (BerthCoreCheckpoint){.serial = (guint32)core_script_option(script, "from=", 0),
                                 .epoch = (guint32)core_script_option(script, "epoch=", 0),
                                 .ran_usec = (gint64)core_script_option(script, "ran=", 0) *
                                             (gint64)G_USEC_PER_SEC,
                                 .resources = {(guint32)core_script_option(script, "v=", 0),
                                               core_script_option(script, "m=", 0), 0}};
}

static void on_request(Script *script, BerthEventKind kind)
{
    BerthCoreEvent event = {.kind = kind,
                            .guest = {.job = core_script_number(script, script->words[1])}};
    event.request.by_operator = core_script_has(script, "op");
    event.node = (guint32)core_script_option(script, "to=", 0);
    event.request.resources = (BerthResources){(guint32)core_script_option(script, "v=", 0),
                                               core_script_option(script, "m=", 0), 0};
    event.request.to_disk = core_script_has(script, "disk");
    if (kind == BERTH_EVENT_JOB_RESTORE_WANTED)
        event.request.checkpoint = checkpoint_of(script);
    if (kind == BERTH_EVENT_JOB_TIME_LIMIT_SET)
        event.request.time_limit_usec =
            (gint64)core_script_option(script, "limit=", 0) * (gint64)G_USEC_PER_SEC;
    if (kind == BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET)
        event.request.checkpoint_every_usec =
            (gint64)core_script_option(script, "every=", 0) * (gint64)G_USEC_PER_SEC;
    core_script_handle(script, &event);
}

static void on_checkpoints(Script *script)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_CHECKPOINTS_CHANGED,
                            .guest = {.job = core_script_number(script, script->words[1])}};
    event.checkpoints.newest = checkpoint_of(script);
    event.checkpoints.stored_mib = core_script_option(script, "stored=", 0);
    core_script_handle(script, &event);
}

static void on_guest(Script *script, BerthEventKind kind)
{
    BerthCoreEvent event = {.kind = kind,
                            .guest = core_script_guest(script, script->words[1]),
                            .node = (guint32)core_script_option(script, "on=", 0)};
    if (kind == BERTH_EVENT_GUEST_RUNNING)
        event.running.start_usec = script->now_usec;
    if (kind == BERTH_EVENT_GUEST_EXITED) {
        event.exited.start_usec = script->now_usec;
        event.exited.end_usec = script->now_usec;
        event.exited.exit = (BerthCoreExit){
            .status = (guint32)core_script_option(script, "status=", 0),
            .signal = (guint32)core_script_option(script, "signal=", 0),
            .oom_kills = (guint32)core_script_option(script, "oom=", 0),
            .disk_full = core_script_has(script, "full"),
            .not_started = core_script_has(script, "not-started"),
        };
    }
    if (kind == BERTH_EVENT_GUEST_REPORTED)
        event.usage = (BerthCoreUsage){
            .cpu_milli = (guint32)core_script_option(script, "cpu=", 0),
            .memory_used_mib = core_script_option(script, "mem=", 0),
            .memory_available_mib = core_script_option(script, "left=", 0),
            .memory_pressure_permille = (guint32)core_script_option(script, "psi=", 0),
            .starved_usec =
                (gint64)core_script_option(script, "starved=", 0) * (gint64)G_USEC_PER_SEC,
            .cpu_pressure_permille = (guint32)core_script_option(script, "cpu-psi=", 0),
            .touched_mib = core_script_option(script, "touched=", 0)};
    if (kind >= BERTH_EVENT_GUEST_MIGRATED && kind <= BERTH_EVENT_GUEST_RESIZED)
        event.result.ok = !core_script_has(script, "failed");
    if (kind == BERTH_EVENT_GUEST_RESIZED)
        event.result.has = (BerthResources){(guint32)core_script_option(script, "v=", 0),
                                            core_script_option(script, "m=", 0), 0};
    if (kind == BERTH_EVENT_GUEST_CHECKPOINTED) {
        event.result.stored_mib = core_script_option(script, "stored=", 0);
        event.result.paused_usec =
            (gint64)core_script_option(script, "paused=", 0) * (gint64)G_USEC_PER_SEC;
    }
    if (kind == BERTH_EVENT_GUEST_GONE) {
        event.gone.reason = (BerthReason)core_script_value(script, script->words[2]);
        event.gone.not_begun = core_script_has(script, "not-begun");
        event.gone.has_left = core_script_has(script, "left");
    }
    if (kind == BERTH_EVENT_START_FAILED) {
        event.start_failed.reason = core_script_has(script, "storage")
                                        ? BERTH_REASON_STORAGE_UNAVAILABLE
                                        : BERTH_REASON_START_FAILED;
        event.start_failed.permanent = core_script_has(script, "permanent");
        event.start_failed.passes = core_script_has(script, "passes");
    }
    core_script_handle(script, &event);
}

static void on_storage(Script *script)
{
    BerthCoreEvent event = {.kind = core_script_has(script, "down") ? BERTH_EVENT_STORAGE_DOWN
                                                                    : BERTH_EVENT_STORAGE_UP};
    if (core_script_option(script, "room=", G_MAXUINT64) != G_MAXUINT64) {
        event.kind = BERTH_EVENT_STORAGE_ROOM;
        event.storage_room.mib = core_script_option(script, "room=", 0);
    }
    core_script_handle(script, &event);
}

static void on_left(Script *script)
{
    core_script_handle(
        script, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT,
                                  .node = (guint32)core_script_number(script, script->words[1])});
}

static void on_given_up(Script *script)
{
    core_script_handle(
        script, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_GIVEN_UP,
                                  .node = (guint32)core_script_number(script, script->words[1])});
}

static void on_timer(Script *script)
{
    core_script_handle(script, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
}

static gboolean play_special(Script *script)
{
    static const struct {
        const char *word;
        void (*func)(Script *script);
    } specials[] = {
        {"submit", on_submit},
        {"join", on_join},
        {"node", on_node},
        {"left", on_left},
        {"storage", on_storage},
        {"changed", on_changed},
        {"account", on_setting},
        {"user", on_setting},
        {"qos", on_setting},
        {"maintenance", on_setting},
        {"drain", on_admission},
        {"undrain", on_admission},
        {"cordon", on_admission},
        {"pressed", on_pressed},
        {"timer", on_timer},
        {"give-up", on_given_up},
        {"checkpoints", on_checkpoints},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(specials); i++) {
        if (strcmp(script->words[0], specials[i].word) != 0)
            continue;
        specials[i].func(script);
        return TRUE;
    }
    return FALSE;
}

/* Those whose words are the same, or a guest's, and the others. */
gboolean core_script_play_event(Script *script)
{
    static const struct {
        const char *word;
        BerthEventKind kind;
        gboolean is_request;
    } events[] = {
        {"cancel", BERTH_EVENT_JOB_CANCELLED, TRUE},
        {"hold", BERTH_EVENT_JOB_HELD, TRUE},
        {"freeze", BERTH_EVENT_JOB_FREEZE_WANTED, TRUE},
        {"thaw", BERTH_EVENT_JOB_THAW_WANTED, TRUE},
        {"migrate", BERTH_EVENT_JOB_MIGRATE_WANTED, TRUE},
        {"migrate-not", BERTH_EVENT_JOB_MIGRATE_UNWANTED, TRUE},
        {"checkpoint", BERTH_EVENT_JOB_CHECKPOINT_WANTED, TRUE},
        {"restore", BERTH_EVENT_JOB_RESTORE_WANTED, TRUE},
        {"resize", BERTH_EVENT_JOB_RESIZE_WANTED, TRUE},
        {"extend", BERTH_EVENT_JOB_TIME_LIMIT_SET, TRUE},
        {"checkpoint-every", BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET, TRUE},
        {"release", BERTH_EVENT_JOB_RELEASED, TRUE},
        {"taken", BERTH_EVENT_START_TAKEN, FALSE},
        {"running", BERTH_EVENT_GUEST_RUNNING, FALSE},
        {"exited", BERTH_EVENT_GUEST_EXITED, FALSE},
        {"gone", BERTH_EVENT_GUEST_GONE, FALSE},
        {"start-failed", BERTH_EVENT_START_FAILED, FALSE},
        {"released", BERTH_EVENT_GUEST_RELEASED, FALSE},
        {"fenced", BERTH_EVENT_GUEST_FENCED, FALSE},
        {"fence-failed", BERTH_EVENT_FENCE_FAILED, FALSE},
        {"report", BERTH_EVENT_GUEST_REPORTED, FALSE},
        {"migrated", BERTH_EVENT_GUEST_MIGRATED, FALSE},
        {"checkpointed", BERTH_EVENT_GUEST_CHECKPOINTED, FALSE},
        {"resized", BERTH_EVENT_GUEST_RESIZED, FALSE},
        {"frozen", BERTH_EVENT_GUEST_FROZEN, FALSE},
        {"thawed", BERTH_EVENT_GUEST_THAWED, FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(events); i++) {
        if (strcmp(script->words[0], events[i].word) != 0)
            continue;
        if (events[i].is_request)
            on_request(script, events[i].kind);
        else
            on_guest(script, events[i].kind);
        return TRUE;
    }
    return play_special(script);
}
