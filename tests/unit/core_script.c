/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/error.h"
#include "tests/unit/core_script.h"

#include <string.h>

#define N_JOBS_MAX  32
#define N_NODES_MAX 8
/* An instant of 0 means "not yet": scripts count from a later one. */
#define SECOND_0_USEC (1000000 * (gint64)G_USEC_PER_SEC)

const BerthCoreConfig core_script_config = {
    .node_timeout_usec = 60 * (gint64)G_USEC_PER_SEC,
    .stop_grace_usec = 10 * (gint64)G_USEC_PER_SEC,
    .requeues_max = 2,
    .start_retries_max = 2,
    .start_backoff_usec = 4 * (gint64)G_USEC_PER_SEC,
    .can_fence = TRUE,
};

typedef struct {
    gboolean is_known;
    BerthCoreJob job;
    guint32 nodes[N_NODES_MAX];
    BerthCoreTask task;
    BerthCoreGuest guest;
} Record;

typedef struct {
    const char *line; /* for messages */
    char **words;
    BerthCore *core;
    BerthCoreConfig config;
    BerthCoreEffects *effects;
    GError *error;
    gint64 now_usec;
    Record records[N_JOBS_MAX];
    BerthCoreNodeInfo infos[N_NODES_MAX + 1];
} Script;

static const struct {
    const char *name;
    int value;
} names[] = {
    {"PENDING", BERTH_JOB_PENDING},
    {"RUNNING", BERTH_JOB_RUNNING},
    {"COMPLETED", BERTH_JOB_COMPLETED},
    {"FAILED", BERTH_JOB_FAILED},
    {"CANCELLED", BERTH_JOB_CANCELLED},
    {"TIMEOUT", BERTH_JOB_TIMEOUT},
    {"NODE_FAIL", BERTH_JOB_NODE_FAIL},
    {"OUT_OF_MEMORY", BERTH_JOB_OUT_OF_MEMORY},
    {"-", BERTH_REASON_NONE},
    {"priority", BERTH_REASON_PRIORITY},
    {"resources", BERTH_REASON_RESOURCES},
    {"held-by-user", BERTH_REASON_HELD_BY_USER},
    {"held-by-operator", BERTH_REASON_HELD_BY_OPERATOR},
    {"node-unavailable", BERTH_REASON_NODE_UNAVAILABLE},
    {"requeued", BERTH_REASON_REQUEUED},
    {"starting-later", BERTH_REASON_STARTING_LATER},
    {"array-throttle", BERTH_REASON_ARRAY_THROTTLE},
    {"dependency", BERTH_REASON_DEPENDENCY},
    {"dependency-never", BERTH_REASON_DEPENDENCY_NEVER},
    {"account-limit", BERTH_REASON_ACCOUNT_LIMIT},
    {"maintenance", BERTH_REASON_MAINTENANCE},
    {"evicted", BERTH_REASON_EVICTED},
    {"storage-unavailable", BERTH_REASON_STORAGE_UNAVAILABLE},
    {"exit-status", BERTH_REASON_EXIT_STATUS},
    {"signal", BERTH_REASON_SIGNAL},
    {"time-limit", BERTH_REASON_TIME_LIMIT},
    {"memory-limit", BERTH_REASON_MEMORY_LIMIT},
    {"cancelled-by-user", BERTH_REASON_CANCELLED_BY_USER},
    {"cancelled-by-operator", BERTH_REASON_CANCELLED_BY_OPERATOR},
    {"boot-deadline", BERTH_REASON_BOOT_DEADLINE},
    {"guest-crashed", BERTH_REASON_GUEST_CRASHED},
    {"guest-vanished", BERTH_REASON_GUEST_VANISHED},
    {"node-lost", BERTH_REASON_NODE_LOST},
    {"start-failed", BERTH_REASON_START_FAILED},
    {"command-not-found", BERTH_REASON_COMMAND_NOT_FOUND},
    {"disk-full", BERTH_REASON_DISK_FULL},
    {"SUSPENDED", BERTH_JOB_SUSPENDED},
    {"at-limit", BERTH_REASON_AT_LIMIT},
    {"none", BERTH_GUEST_NONE},
    {"starting", BERTH_GUEST_STARTING},
    {"running", BERTH_GUEST_RUNNING},
    {"stopping", BERTH_GUEST_STOPPING},
    {"releasing", BERTH_GUEST_RELEASING},
    {"fencing", BERTH_GUEST_FENCING},
};

static int value_of(const Script *script, const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_strcmp0(names[i].name, name) == 0)
            return names[i].value;
    fail_msg("%s: no such name: %s", script->line, name);
    return -1;
}

static guint64 number_of(const Script *script, const char *text)
{
    guint64 number = 0;
    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32, &number, NULL))
        fail_msg("%s: no number: %s", script->line, text);
    return number;
}

/* The value of option NAME ("v=") among the words, or FALLBACK. */
static guint64 option(const Script *script, const char *name, guint64 fallback)
{
    for (char **word = script->words; *word != NULL; word++)
        if (g_str_has_prefix(*word, name))
            return number_of(script, *word + strlen(name));
    return fallback;
}

static gboolean has_word(const Script *script, const char *word)
{
    return g_strv_contains((const char *const *)script->words, word);
}

/* JOB[/TASK][+GUEST].EPOCH */
static BerthGuestId guest_of(const Script *script, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : "", ".", 2);
    if (g_strv_length(parts) != 2)
        fail_msg("%s: not JOB.EPOCH: %s", script->line, text);
    g_auto(GStrv) by_plus = g_strsplit(parts[0], "+", 2);
    g_auto(GStrv) by_slash = g_strsplit(by_plus[0], "/", 2);
    BerthGuestId id = {.job = number_of(script, by_slash[0]),
                       .epoch = (guint32)number_of(script, parts[1])};
    if (by_slash[1] != NULL)
        id.task = (guint32)number_of(script, by_slash[1]);
    if (by_plus[1] != NULL)
        id.guest = (guint32)number_of(script, by_plus[1]);
    return id;
}

static void append_guest(GString *text, const BerthGuestId *id)
{
    g_string_append_printf(text, "%u", (guint)id->job);
    if (id->task > 0)
        g_string_append_printf(text, "/%u", id->task);
    if (id->guest > 0)
        g_string_append_printf(text, "+%u", id->guest);
    g_string_append_printf(text, ".%u", id->epoch);
}

/* --- the driver ----------------------------------------------------------------------------- */

static void keep_records(Script *script)
{
    for (guint i = 0; i < script->effects->changed->len; i++) {
        guint64 job = g_array_index(script->effects->changed, BerthGuestId, i).job;
        Record *record = &script->records[job];
        BerthCoreJob now;
        if (!berth_core_get_task(script->core, job, 0, &record->task))
            continue;
        if (!berth_core_get_guest(script->core, job, 0, 0, &record->guest))
            record->guest.phase = BERTH_GUEST_NONE;
        assert_true(berth_core_get_job(script->core, job, &now));
        record->job.held = now.held;
        record->job.held_by_operator = now.held_by_operator;
    }
}

static void handle(Script *script, const BerthCoreEvent *event)
{
    gboolean ok =
        berth_core_handle(script->core, script->now_usec, event, script->effects, &script->error);
    assert_true(ok == (script->error == NULL));
    keep_records(script);
}

static void restart(Script *script)
{
    guint32 n_nodes = berth_core_n_nodes(script->core);
    BerthCoreNode nodes[N_NODES_MAX + 1];
    BerthCore *core = berth_core_new(&script->config);
    for (guint32 node = 1; node <= n_nodes; node++) {
        assert_true(berth_core_get_node(script->core, node, &nodes[node]));
        assert_int_equal(berth_core_add_node(core, nodes[node].name), node);
        berth_core_restore_node(core, node, nodes[node].state, nodes[node].since_usec,
                                &script->infos[node]);
    }
    for (guint i = 1; i < N_JOBS_MAX; i++) {
        const Record *record = &script->records[i];
        if (record->is_known && !(berth_job_state_is_final(record->task.state) &&
                                  record->task.phase == BERTH_GUEST_NONE))
            berth_core_restore_job(core, &record->job, &record->task, 1);
        if (record->is_known && has_word(script, "guests") &&
            record->guest.phase != BERTH_GUEST_NONE)
            berth_core_restore_guest(core, &record->guest);
    }
    berth_core_free(script->core);
    script->core = core;
    berth_core_resume(core, script->now_usec, script->effects);
    keep_records(script);
}

/* --- events --------------------------------------------------------------------------------- */

/* ok:JOB, any:JOB, not:JOB, start:JOB or singleton among the words. */
static gboolean dependency_of(const Script *script, BerthCoreDependency *out_dependency)
{
    static const struct {
        const char *prefix;
        BerthDependencyKind kind;
    } kinds[] = {{"ok:", BERTH_AFTER_OK},
                 {"any:", BERTH_AFTER_ANY},
                 {"not:", BERTH_AFTER_NOT_OK},
                 {"start:", BERTH_AFTER_START}};
    *out_dependency = (BerthCoreDependency){.kind = BERTH_SINGLETON};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        guint64 job = option(script, kinds[i].prefix, 0);
        if (job != 0)
            *out_dependency = (BerthCoreDependency){.kind = kinds[i].kind, .job = job};
    }
    return out_dependency->job != 0 || has_word(script, "singleton");
}

static void on_drain(Script *script)
{
    handle(script, &(BerthCoreEvent){.kind = has_word(script, "drain") ? BERTH_EVENT_NODE_DRAINED
                                                                       : BERTH_EVENT_NODE_UNDRAINED,
                                     .node = (guint32)number_of(script, script->words[1])});
}

static void on_pressed(Script *script)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_REPORTED,
                            .node = (guint32)number_of(script, script->words[1])};
    event.node_usage.memory_available_mib = option(script, "left=", 0);
    event.node_usage.memory_pressure_permille =
        (guint32)option(script, "psi=", event.node_usage.memory_available_mib > 0 ? 0 : 500);
    handle(script, &event);
}

static BerthCoreLimits limits_of(const Script *script)
{
    return (BerthCoreLimits){.running_tasks = (guint32)option(script, "tasks=", 0),
                             .vcpus = (guint32)option(script, "v=", 0),
                             .memory_mib = option(script, "m=", 0),
                             .jobs = (guint32)option(script, "jobs=", 0)};
}

/* Where NODE is, and its equal cells, if the words say so. */
static void read_layout(const Script *script, BerthCoreNodeInfo *info)
{
    info->rack = (guint32)option(script, "rack=", info->rack);
    info->fabric = (guint32)option(script, "fabric=", info->fabric);
    info->n_cells = (guint32)option(script, "cells=", info->n_cells);
    assert_true(info->n_cells <= BERTH_CELLS_MAX);
    for (guint32 i = 0; i < info->n_cells; i++)
        info->cells[i] = (BerthCoreCell){info->capacity.vcpus / info->n_cells,
                                         info->capacity.memory_mib / info->n_cells};
}

static void on_changed(Script *script)
{
    guint32 node = (guint32)number_of(script, script->words[1]);
    script->infos[node].cannot_start = has_word(script, "cannot");
    script->infos[node].capacity.vcpus =
        (guint32)option(script, "v=", script->infos[node].capacity.vcpus);
    read_layout(script, &script->infos[node]);
    handle(script, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_CHANGED,
                                     .node = node,
                                     .changed = script->infos[node]});
}

static void on_setting(Script *script)
{
    BerthCoreEvent event = {0};
    guint32 number = (guint32)number_of(script, script->words[1]);
    guint32 nodes[] = {(guint32)option(script, "node=", 1)};
    if (has_word(script, "account")) {
        event.kind = BERTH_EVENT_ACCOUNT_SET;
        event.account_set.account = number;
        event.account_set.parent = (guint32)option(script, "parent=", 0);
        event.account_set.shares = (guint32)option(script, "shares=", 1);
        event.account_set.limits = limits_of(script);
    } else if (has_word(script, "user")) {
        event.kind = BERTH_EVENT_USER_SET;
        event.user_set.uid = number;
        event.user_set.account = (guint32)option(script, "account=", 0);
        event.user_set.shares = (guint32)option(script, "shares=", 1);
        event.user_set.limits = limits_of(script);
    } else if (has_word(script, "qos")) {
        event.kind = BERTH_EVENT_QOS_SET;
        event.qos_set.qos = number;
        event.qos_set.priority_permille = (gint32)option(script, "p=", 0);
    } else {
        event.kind = option(script, "to=", 0) > 0 ? BERTH_EVENT_MAINTENANCE_SET
                                                  : BERTH_EVENT_MAINTENANCE_CLEARED;
        event.maintenance.id = number;
        event.maintenance.nodes = nodes;
        event.maintenance.n_nodes = 1;
        event.maintenance.start_usec =
            SECOND_0_USEC + (gint64)option(script, "from=", 0) * G_USEC_PER_SEC;
        event.maintenance.end_usec =
            SECOND_0_USEC + (gint64)option(script, "to=", 0) * G_USEC_PER_SEC;
    }
    handle(script, &event);
}

static void on_submit(Script *script)
{
    guint64 id = number_of(script, script->words[1]);
    assert_true(id < N_JOBS_MAX);
    Record *record = &script->records[id];
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    BerthCoreJob *job = &event.submitted;
    *job = (BerthCoreJob){
        .id = id,
        .uid = (guint32)option(script, "uid=", 1000),
        .resources = {(guint32)option(script, "v=", 1), option(script, "m=", 100), 10},
        .time_limit_usec = (gint64)option(script, "limit=", 1000) * G_USEC_PER_SEC,
        .priority = (gint32)option(script, "p=", 0),
        .held = has_word(script, "held") || has_word(script, "held-op"),
        .held_by_operator = has_word(script, "held-op"),
        .no_requeue = has_word(script, "no-requeue"),
        .submit_usec = script->now_usec,
        .guests = (guint32)option(script, "guests=", 1),
        .array_size = (guint32)option(script, "array=", 1),
        .array_throttle = (guint32)option(script, "throttle=", 0),
        .account = (guint32)option(script, "account=", 0),
        .qos = (guint32)option(script, "qos=", 0),
        .family = option(script, "family=", 0),
        .may_move = has_word(script, "may-move"),
        .may_checkpoint = has_word(script, "may-checkpoint"),
        .opportunistic = has_word(script, "slack"),
        .on_limit = has_word(script, "kill")     ? BERTH_ON_LIMIT_KILL
                    : has_word(script, "notify") ? BERTH_ON_LIMIT_NOTIFY
                                                 : BERTH_ON_LIMIT_FREEZE,
        .ceiling = {(guint32)option(script, "vmax=", 0), option(script, "mmax=", 0), 0},
        .on_timeout =
            has_word(script, "save") ? BERTH_ON_TIMEOUT_CHECKPOINT : BERTH_ON_TIMEOUT_KILL,
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
            nodes[job->n_nodes] = (guint32)number_of(script, parts[job->n_nodes]);
        job->nodes = nodes;
    }
    handle(script, &event);
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
    BerthFoundGuest found = {.id = guest_of(script, parts[0])};
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
    else
        found.phase = BERTH_FOUND_GONE;
    if (detail != NULL && found.phase == BERTH_FOUND_EXITED)
        found.exit.status = (guint32)number_of(script, detail);
    if (detail != NULL && found.phase >= BERTH_FOUND_GONE)
        found.reason = (BerthReason)value_of(script, detail);
    return found;
}

static void on_join(Script *script)
{
    guint32 node = (guint32)number_of(script, script->words[1]);
    BerthFoundGuest found[N_JOBS_MAX];
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = script->infos[node];
    event.joined.guests = found;
    for (char **word = script->words + 2; *word != NULL; word++)
        found[event.joined.n_guests++] = found_of(script, *word);
    handle(script, &event);
}

static void on_node(Script *script)
{
    guint32 node = (guint32)number_of(script, script->words[1]);
    assert_true(node <= N_NODES_MAX);
    g_autofree char *name = g_strdup_printf("n%u", node);
    assert_int_equal(berth_core_add_node(script->core, name), node);
    script->infos[node].capacity = (BerthResources){(guint32)number_of(script, script->words[2]),
                                                    number_of(script, script->words[3]), 0};
    script->words[2][0] = '\0';
    read_layout(script, &script->infos[node]);
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = script->infos[node];
    handle(script, &event);
}

static void on_request(Script *script, BerthEventKind kind)
{
    BerthCoreEvent event = {.kind = kind, .guest = {.job = number_of(script, script->words[1])}};
    event.request.by_operator = has_word(script, "op");
    handle(script, &event);
}

static void on_guest(Script *script, BerthEventKind kind)
{
    BerthCoreEvent event = {.kind = kind,
                            .guest = guest_of(script, script->words[1]),
                            .node = (guint32)option(script, "on=", 0)};
    if (kind == BERTH_EVENT_GUEST_RUNNING)
        event.running.start_usec = script->now_usec;
    if (kind == BERTH_EVENT_GUEST_EXITED) {
        event.exited.start_usec = script->now_usec;
        event.exited.end_usec = script->now_usec;
        event.exited.exit = (BerthCoreExit){
            .status = (guint32)option(script, "status=", 0),
            .signal = (guint32)option(script, "signal=", 0),
            .oom_kills = (guint32)option(script, "oom=", 0),
            .disk_full = has_word(script, "full"),
            .not_started = has_word(script, "not-started"),
        };
    }
    if (kind == BERTH_EVENT_GUEST_REPORTED)
        event.usage = (BerthCoreUsage){
            .cpu_milli = (guint32)option(script, "cpu=", 0),
            .memory_used_mib = option(script, "mem=", 0),
            .memory_available_mib = option(script, "left=", 0),
            .memory_pressure_permille = (guint32)option(script, "psi=", 0),
            .starved_usec = (gint64)option(script, "starved=", 0) * (gint64)G_USEC_PER_SEC,
            .throttled_permille = (guint32)option(script, "throttled=", 0),
            .touched_mib = option(script, "touched=", 0)};
    if (kind >= BERTH_EVENT_GUEST_MIGRATED && kind <= BERTH_EVENT_GUEST_RESIZED)
        event.result.ok = !has_word(script, "failed");
    if (kind == BERTH_EVENT_GUEST_GONE) {
        event.gone.reason = (BerthReason)value_of(script, script->words[2]);
        event.gone.not_begun = has_word(script, "not-begun");
    }
    if (kind == BERTH_EVENT_START_FAILED) {
        event.start_failed.reason = has_word(script, "storage") ? BERTH_REASON_STORAGE_UNAVAILABLE
                                                                : BERTH_REASON_START_FAILED;
        event.start_failed.permanent = has_word(script, "permanent");
    }
    handle(script, &event);
}

static void on_storage(Script *script)
{
    BerthCoreEvent event = {.kind = has_word(script, "down") ? BERTH_EVENT_STORAGE_DOWN
                                                             : BERTH_EVENT_STORAGE_UP};
    handle(script, &event);
}

static void on_left(Script *script)
{
    handle(script, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT,
                                     .node = (guint32)number_of(script, script->words[1])});
}

/* --- questions ------------------------------------------------------------------------------ */

static void ask_record(Script *script)
{
    guint64 job = number_of(script, script->words[1]);
    BerthCoreTask task;
    gboolean known = berth_core_get_task(script->core, job, 0, &task);
    if (strcmp(script->words[2], "-") == 0) {
        if (known)
            fail_msg("%s: it is still known", script->line);
        return;
    }
    if (!known)
        fail_msg("%s: it is not known", script->line);
    if ((int)task.state != value_of(script, script->words[2]) ||
        (int)task.reason != value_of(script, script->words[3]) ||
        (int)task.phase != value_of(script, script->words[4]))
        fail_msg("%s: it is state %d reason %d phase %d", script->line, task.state, task.reason,
                 task.phase);
}

static void ask_why(Script *script)
{
    BerthReason reason =
        berth_core_pending_reason(script->core, number_of(script, script->words[1]), 0);
    if ((int)reason != value_of(script, script->words[2]))
        fail_msg("%s: it is %d", script->line, reason);
}

static void ask_planned(Script *script)
{
    gint64 planned_usec =
        berth_core_planned_usec(script->core, number_of(script, script->words[1]));
    gint64 expected =
        strcmp(script->words[2], "never") == 0
            ? 0
            : SECOND_0_USEC + (gint64)number_of(script, script->words[2]) * G_USEC_PER_SEC;
    if (planned_usec != expected)
        fail_msg("%s: it is second %" G_GINT64_FORMAT, script->line,
                 (planned_usec - SECOND_0_USEC) / (gint64)G_USEC_PER_SEC);
}

static void ask_next(Script *script)
{
    gint64 next = berth_core_next_timer_usec(script->core);
    gint64 expected =
        strcmp(script->words[1], "never") == 0
            ? G_MAXINT64
            : SECOND_0_USEC + (gint64)number_of(script, script->words[1]) * G_USEC_PER_SEC;
    if (next != expected)
        fail_msg("%s: it is %" G_GINT64_FORMAT " us", script->line, next);
}

static void ask_peak(Script *script)
{
    const BerthCoreTask *told = &script->records[number_of(script, script->words[1])].task;
    if (told->peak_milli != number_of(script, script->words[2]) ||
        told->peak_mib != number_of(script, script->words[3]))
        fail_msg("%s: it is %u %" G_GUINT64_FORMAT, script->line, told->peak_milli, told->peak_mib);
}

static void ask_needs(Script *script)
{
    BerthCoreGuest guest;
    guint64 job = number_of(script, script->words[1]);
    assert_true(berth_core_get_guest(script->core, job, 0, 0, &guest));
    if (guest.predicted_mib != number_of(script, script->words[2]))
        fail_msg("%s: it is %" G_GUINT64_FORMAT, script->line, guest.predicted_mib);
}

/* --- lines ---------------------------------------------------------------------------------- */

static gboolean play_special(Script *script)
{
    static const struct {
        const char *word;
        void (*func)(Script *script);
    } specials[] = {
        {"submit", on_submit},    {"join", on_join},       {"node", on_node},
        {"left", on_left},        {"storage", on_storage}, {"restart", restart},
        {"?", ask_record},        {"why", ask_why},        {"next", ask_next},
        {"planned", ask_planned}, {"changed", on_changed}, {"account", on_setting},
        {"user", on_setting},     {"qos", on_setting},     {"maintenance", on_setting},
        {"drain", on_drain},      {"undrain", on_drain},   {"pressed", on_pressed},
        {"peak", ask_peak},       {"needs", ask_needs},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(specials); i++) {
        if (strcmp(script->words[0], specials[i].word) != 0)
            continue;
        specials[i].func(script);
        return TRUE;
    }
    return FALSE;
}

static void play_event(Script *script)
{
    static const struct {
        const char *word;
        BerthEventKind kind;
        gboolean is_request;
    } events[] = {
        {"cancel", BERTH_EVENT_JOB_CANCELLED, TRUE},
        {"hold", BERTH_EVENT_JOB_HELD, TRUE},
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
        {"thaw", BERTH_EVENT_GUEST_THAW_WANTED, FALSE},
    };
    if (strcmp(script->words[0], "at") == 0) {
        script->now_usec =
            SECOND_0_USEC + (gint64)number_of(script, script->words[1]) * G_USEC_PER_SEC;
        return;
    }
    if (strcmp(script->words[0], "timer") == 0) {
        handle(script, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(events); i++) {
        if (strcmp(script->words[0], events[i].word) != 0)
            continue;
        if (events[i].is_request)
            on_request(script, events[i].kind);
        else
            on_guest(script, events[i].kind);
        return;
    }
    fail_msg("%s: what is that?", script->line);
}

static void append_cells(GString *text, guint32 cells)
{
    const char *before = "[";
    for (guint i = 0; i < BERTH_CELLS_MAX; i++) {
        if (!(cells & (1u << i)))
            continue;
        g_string_append_printf(text, "%s%u", before, i);
        before = ",";
    }
    if (cells != 0)
        g_string_append_c(text, ']');
}

static char *actions_as_text(const BerthCoreEffects *effects)
{
    static const char *const kinds[] = {
        [BERTH_ACTION_START] = "START",     [BERTH_ACTION_STOP] = "STOP",
        [BERTH_ACTION_RELEASE] = "RELEASE", [BERTH_ACTION_FENCE] = "FENCE",
        [BERTH_ACTION_MIGRATE] = "MIGRATE", [BERTH_ACTION_CHECKPOINT] = "CHECKPOINT",
        [BERTH_ACTION_RESTORE] = "RESTORE", [BERTH_ACTION_RESIZE] = "RESIZE",
        [BERTH_ACTION_FREEZE] = "FREEZE",   [BERTH_ACTION_THAW] = "THAW"};
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, i);
        g_string_append_printf(text, "%s%s ", i > 0 ? " " : "", kinds[action->kind]);
        append_guest(text, &action->guest);
        g_string_append_printf(text, "@%u", action->node);
        if (action->kind == BERTH_ACTION_MIGRATE)
            g_string_append_printf(text, ">%u", action->to);
        append_cells(text, action->cells);
        if (action->balloon_mib > 0)
            g_string_append_printf(text, "(%" G_GUINT64_FORMAT ")", action->balloon_mib);
        if (action->is_opportunistic)
            g_string_append(text, "~");
    }
    return g_string_free(text, FALSE);
}

static void check_refusal(const Script *script, const char *words)
{
    if (words == NULL && script->error != NULL)
        fail_msg("%s: refused: %s", script->line, script->error->message);
    if (words != NULL && script->error == NULL)
        fail_msg("%s: not refused", script->line);
    if (words != NULL && strstr(script->error->message, words) == NULL)
        fail_msg("%s: refused with other words: %s", script->line, script->error->message);
    if (words != NULL)
        assert_true(script->error->domain == BERTH_ERROR);
}

static void play_line(Script *script, const char *line)
{
    g_auto(GStrv) by_arrow = g_strsplit(line, "->", 2);
    g_auto(GStrv) by_bang = g_strsplit(by_arrow[0], "!", 2);
    const char *expected = g_strv_length(by_arrow) > 1 ? g_strstrip(by_arrow[1]) : "";
    const char *refusal = g_strv_length(by_bang) > 1 ? g_strstrip(by_bang[1]) : NULL;
    g_auto(GStrv) words = g_strsplit(g_strstrip(by_bang[0]), " ", -1);
    script->line = line;
    script->words = words;
    if (!play_special(script))
        play_event(script);
    g_autofree char *actions = actions_as_text(script->effects);
    if (strcmp(actions, expected) != 0)
        fail_msg("%s: the actions are: %s", line, actions);
    check_refusal(script, refusal);
    g_clear_error(&script->error);
    berth_core_effects_clear(script->effects);
    berth_core_assert_invariants(script->core);
}

void core_script_run(const BerthCoreConfig *config, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree Script *script = g_new0(Script, 1);
    script->config = *config;
    script->now_usec = SECOND_0_USEC;
    script->core = berth_core_new(config);
    script->effects = berth_core_effects_new();
    for (char **line = lines; *line != NULL; line++)
        if (*g_strstrip(*line) != '\0')
            play_line(script, *line);
    berth_core_free(script->core);
    berth_core_effects_free(script->effects);
}

void core_script_run_tuned(guint32 features, BerthCoreTuning tuning, gint64 value,
                           const char *script)
{
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_SETTLE_USEC] = 10 * (gint64)G_USEC_PER_SEC;
    tunings[BERTH_TUNING_PEAK_MARGIN_PERMILLE] = 0;
    tunings[BERTH_TUNING_CPU_HEADROOM_PERMILLE] = 0;
    tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] = 1000;
    tunings[tuning] = value;
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    config.features = features;
    config.tunings = tunings;
    core_script_run(&config, script);
}
