/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the virtual cluster of bench/core. Jobs have the shapes that batch sites see: few vCPUs mostly,
 * memory in steps, limits from a list, a few hundred users, who submit series. In Berth's own mode one guest in
 * ten uses nearly all that it reserved and the others about a third, as on mason. */
#include "config.h"

#include "bench/core_cluster.h"

#define SEED            20261120u
#define NODE_CPUS       64u
#define NODE_MIB        262144u
#define NODES_PER_RACK  32u
#define USERS           300u
#define SHAPES_PER_USER 10u
#define GUESTS_MAX      9u /* of a gang */
#define OVERHEAD_MIB    128u
#define FILLING_VCPUS   8u /* of a guest of those that fill the nodes before lopsided ones */
#define FILLING_MIB     (NODE_MIB / NODE_CPUS * FILLING_VCPUS)
#define ANSWER_USEC     (5 * (gint64)G_USEC_PER_SEC)
#define STEP_USEC       (G_USEC_PER_SEC / 10)
/* Between two reports of all guests while the cluster settles; so many at most. */
#define SETTLE_USEC (60 * (gint64)G_USEC_PER_SEC)
#define SETTLES_MAX 20u

typedef struct {
    gint64 due_usec;
    BerthCoreEvent event;
} Answer;

typedef struct {
    BerthGuestId id;
    guint64 memory_mib;
    guint32 vcpus;
    gboolean has_begun;
} Running;

struct Cluster {
    ClusterConfig config;
    BerthCore *core;
    BerthCoreEffects *effects;
    GRand *random;
    gint64 now_usec;
    guint64 next_job;
    GArray *running;    /* Running */
    GHashTable *places; /* place in RUNNING by key_of() */
    GQueue answers;     /* Answer, by time */
    GArray *started;    /* BerthGuestId: their command has not begun */
    GArray *released;   /* BerthGuestId: likewise, is to be told */
    GArray *costs[CLUSTER_N_KINDS];
};

Cluster *cluster_new(const ClusterConfig *config)
{
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_PLAN_DEPTH] = config->plan_depth;
    if (config->is_berth)
        tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] = tunings[BERTH_TUNING_WEIGHT_AGE] = 1000;
    BerthCoreConfig core_config = {.node_timeout_usec = 60 * (gint64)G_USEC_PER_SEC,
                                   .guest_overhead_mib = OVERHEAD_MIB,
                                   .policy = BERTH_POLICY_CONSERVATIVE,
                                   .features = BERTH_FEATURE_ALL,
                                   .tunings = tunings};
    Cluster *cluster = g_new0(Cluster, 1);
    cluster->config = *config;
    cluster->core = berth_core_new(&core_config);
    cluster->effects = berth_core_effects_new();
    cluster->random = g_rand_new_with_seed(SEED);
    cluster->now_usec = G_USEC_PER_SEC;
    cluster->running = g_array_new(FALSE, FALSE, sizeof(Running));
    cluster->places = g_hash_table_new(g_direct_hash, g_direct_equal);
    cluster->started = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    cluster->released = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    for (guint i = 0; i < CLUSTER_N_KINDS; i++)
        cluster->costs[i] = g_array_new(FALSE, FALSE, sizeof(gint64));
    return cluster;
}

void cluster_free(Cluster *cluster)
{
    for (guint i = 0; i < CLUSTER_N_KINDS; i++)
        g_array_unref(cluster->costs[i]);
    g_queue_clear_full(&cluster->answers, g_free);
    g_array_unref(cluster->started);
    g_array_unref(cluster->released);
    g_array_unref(cluster->running);
    g_hash_table_unref(cluster->places);
    g_rand_free(cluster->random);
    berth_core_effects_free(cluster->effects);
    berth_core_free(cluster->core);
    g_free(cluster);
}

static guint pick(Cluster *cluster, guint n)
{
    return (guint)g_rand_int_range(cluster->random, 0, (gint32)n);
}

/* --- who runs ------------------------------------------------------------------------------- */

static gpointer key_of(const BerthGuestId *id)
{
    return GSIZE_TO_POINTER(id->job * (GUESTS_MAX + 1) + id->guest + 1);
}

static Running *find_running(const Cluster *cluster, const BerthGuestId *id)
{
    gpointer place;
    if (!g_hash_table_lookup_extended(cluster->places, key_of(id), NULL, &place))
        return NULL;
    Running *running = &g_array_index(cluster->running, Running, GPOINTER_TO_UINT(place));
    return running->id.epoch == id->epoch ? running : NULL;
}

static void add_running(Cluster *cluster, const BerthCoreAction *action)
{
    Running running = {.id = action->guest,
                       .memory_mib = action->resources.memory_mib,
                       .vcpus = action->resources.vcpus};
    g_hash_table_insert(cluster->places, key_of(&running.id),
                        GUINT_TO_POINTER(cluster->running->len));
    g_array_append_val(cluster->running, running);
}

static void remove_running(Cluster *cluster, const BerthGuestId *id)
{
    const Running *running = find_running(cluster, id);
    if (running == NULL)
        return;
    guint at = (guint)(running - (const Running *)(const void *)cluster->running->data);
    g_hash_table_remove(cluster->places, key_of(id));
    g_array_remove_index_fast(cluster->running, at);
    if (at < cluster->running->len)
        g_hash_table_insert(cluster->places,
                            key_of(&g_array_index(cluster->running, Running, at).id),
                            GUINT_TO_POINTER(at));
}

/* --- events --------------------------------------------------------------------------------- */

static void answer_later(Cluster *cluster, const BerthCoreAction *action, BerthEventKind kind)
{
    Answer *answer = g_new0(Answer, 1);
    answer->due_usec = cluster->now_usec + ANSWER_USEC;
    answer->event = (BerthCoreEvent){.kind = kind, .guest = action->guest, .node = action->node};
    if (kind == BERTH_EVENT_GUEST_EXITED) {
        answer->event.exited.start_usec = cluster->now_usec;
        answer->event.exited.end_usec = cluster->now_usec;
    } else {
        answer->event.result.ok = TRUE;
        answer->event.result.serial = action->serial;
        if (kind == BERTH_EVENT_GUEST_MIGRATED)
            answer->event.node = action->to;
        if (kind == BERTH_EVENT_GUEST_CHECKPOINTED)
            answer->event.result.stored_mib = action->space_mib;
    }
    g_queue_push_tail(&cluster->answers, answer);
}

static void take_action(Cluster *cluster, const BerthCoreAction *action)
{
    switch (action->kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        add_running(cluster, action);
        g_array_append_val(cluster->started, action->guest);
        break;
    case BERTH_ACTION_RELEASE:
        remove_running(cluster, &action->guest);
        g_array_append_val(cluster->released, action->guest);
        break;
    case BERTH_ACTION_MIGRATE:
        answer_later(cluster, action, BERTH_EVENT_GUEST_MIGRATED);
        break;
    case BERTH_ACTION_CHECKPOINT:
        answer_later(cluster, action, BERTH_EVENT_GUEST_CHECKPOINTED);
        break;
    case BERTH_ACTION_RESIZE:
        answer_later(cluster, action, BERTH_EVENT_GUEST_RESIZED);
        break;
    case BERTH_ACTION_STOP:
        answer_later(cluster, action, BERTH_EVENT_GUEST_EXITED);
        break;
    case BERTH_ACTION_STAY: /* too late */
        break;
    default:
        g_error("nobody asked for action %d", action->kind);
    }
}

static void handle_one(Cluster *cluster, ClusterKind kind, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(cluster->effects);
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    if (!berth_core_handle(cluster->core, cluster->now_usec, event, cluster->effects, &error))
        g_error("%s", error->message);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    gint64 cost = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
    g_array_append_val(cluster->costs[kind], cost);
    for (guint i = 0; i < cluster->effects->actions->len; i++)
        take_action(cluster, &g_array_index(cluster->effects->actions, BerthCoreAction, i));
}

/* And what is released for it, at once. */
static void handle(Cluster *cluster, ClusterKind kind, const BerthCoreEvent *event)
{
    handle_one(cluster, kind, event);
    while (cluster->released->len > 0) {
        guint last = cluster->released->len - 1;
        BerthCoreEvent released = {.kind = BERTH_EVENT_GUEST_RELEASED,
                                   .guest = g_array_index(cluster->released, BerthGuestId, last)};
        g_array_set_size(cluster->released, last);
        handle_one(cluster, CLUSTER_EXIT, &released);
    }
}

void cluster_add_nodes(Cluster *cluster)
{
    guint32 n_cells = cluster->config.cells;
    for (guint i = 0; i < cluster->config.nodes; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED,
                               .node = berth_core_add_node(cluster->core, name)};
        join.joined.info.capacity = (BerthResources){NODE_CPUS, NODE_MIB, 0};
        join.joined.info.rack = 1 + i / NODES_PER_RACK;
        join.joined.info.n_cells = n_cells;
        for (guint32 cell = 0; cell < n_cells; cell++)
            join.joined.info.cells[cell] = (BerthCoreCell){NODE_CPUS / n_cells, NODE_MIB / n_cells};
        handle(cluster, CLUSTER_SUBMIT, &join);
    }
}

void cluster_set_storage(Cluster *cluster, gboolean is_up)
{
    handle(cluster, CLUSTER_SUBMIT,
           &(BerthCoreEvent){.kind = is_up ? BERTH_EVENT_STORAGE_UP : BERTH_EVENT_STORAGE_DOWN});
}

/* Guests of one size that fill the nodes, then by turns what has the vCPUs and what has the memory where one of these
 * ends, but not the other. */
static BerthResources lopsided(const Cluster *cluster)
{
    guint64 n_filling = cluster->config.nodes * (guint64)(NODE_CPUS / FILLING_VCPUS);
    if (cluster->next_job <= n_filling) /* with room for the MiB that are to make them distinct */
        return (BerthResources){FILLING_VCPUS, FILLING_MIB - 2 * OVERHEAD_MIB, 10};
    if (cluster->next_job % 2 == 0)
        return (BerthResources){FILLING_VCPUS / 2, FILLING_MIB + FILLING_MIB / 8, 10};
    return (BerthResources){FILLING_VCPUS + 1, FILLING_MIB / 2, 10};
}

void cluster_submit(Cluster *cluster)
{
    static const guint32 vcpus[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 32, 64};
    static const guint32 hours[] = {1, 1, 2, 4, 4, 8, 12, 24, 24, 48, 72, 168};
    /* Users submit series: each has a few shapes of his own. */
    guint32 user = pick(cluster, USERS);
    guint32 shape = (user * SHAPES_PER_USER + pick(cluster, SHAPES_PER_USER)) * 2654435761u;
    guint32 cpus = vcpus[(shape >> 8) % G_N_ELEMENTS(vcpus)];
    gboolean is_gang = (shape >> 5) % 1000 < cluster->config.gangs_permille;
    gboolean may_be_in_slack = cluster->config.is_berth;
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = (BerthCoreJob){
        .id = ++cluster->next_job,
        .uid = 1000 + user,
        .resources = {cpus, (guint64)cpus * 480 * (1 + (shape >> 16) % 8), 10},
        .time_limit_usec =
            hours[(shape >> 20) % G_N_ELEMENTS(hours)] * 3600 * (gint64)G_USEC_PER_SEC,
        .submit_usec = cluster->now_usec,
        .guests = is_gang ? 2 + (shape >> 12) % (GUESTS_MAX - 1) : 1,
        .family = cluster->config.is_berth ? 1 + shape : 0,
        .may_move = may_be_in_slack,
        .may_checkpoint = may_be_in_slack,
        .opportunistic = may_be_in_slack,
    };
    if (cluster->config.is_lopsided)
        event.submitted.resources = lopsided(cluster);
    /* A few seconds and MiB that no other job has. */
    if (cluster->config.is_distinct) {
        event.submitted.time_limit_usec +=
            (gint64)(cluster->next_job * 7919 % 1000003) * G_USEC_PER_SEC / 1000;
        event.submitted.resources.memory_mib += cluster->next_job * 104729 % 127;
    }
    handle(cluster, CLUSTER_SUBMIT, &event);
}

static void exit_one(Cluster *cluster)
{
    g_assert(cluster->running->len > 0); /* what is left fits: the first that waits starts */
    guint at = pick(cluster, cluster->running->len);
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_EXITED,
                            .guest = g_array_index(cluster->running, Running, at).id};
    remove_running(cluster, &event.guest);
    event.exited.start_usec = event.exited.end_usec = cluster->now_usec;
    event.exited.exit.status = 1; /* a gang's other guests are released with it */
    handle(cluster, CLUSTER_EXIT, &event);
}

static void begin(Cluster *cluster, Running *running)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_RUNNING, .guest = running->id};
    event.running.start_usec = cluster->now_usec;
    running->has_begun = TRUE;
    handle(cluster, CLUSTER_RUN, &event);
}

static void report(Cluster *cluster, const Running *running)
{
    guint64 job = running->id.job;
    guint permille = job % 10 == 0 ? 900 : 150 + (guint)(job * 2654435761u >> 7) % 350;
    guint noisy = permille - pick(cluster, 1 + permille / 20);
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_REPORTED, .guest = running->id};
    event.usage =
        (BerthCoreUsage){.cpu_milli = running->vcpus * noisy,
                         .memory_used_mib = running->memory_mib * permille / 1000,
                         .memory_available_mib = running->memory_mib * (1000 - permille) / 1000,
                         .touched_mib = running->memory_mib * permille / 1000};
    handle(cluster, CLUSTER_REPORT, &event);
}

static void report_at(Cluster *cluster, guint at)
{
    Running *running = &g_array_index(cluster->running, Running, at);
    BerthGuestId id = running->id;
    if (!running->has_begun)
        begin(cluster, running);
    running = find_running(cluster, &id);
    if (running != NULL)
        report(cluster, running);
}

static void fire_timers(Cluster *cluster)
{
    while (berth_core_next_timer_usec(cluster->core) <= cluster->now_usec)
        handle(cluster, CLUSTER_TIMER, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
}

static void send_answers(Cluster *cluster)
{
    Answer *answer;
    while ((answer = g_queue_peek_head(&cluster->answers)) != NULL &&
           answer->due_usec <= cluster->now_usec) {
        g_queue_pop_head(&cluster->answers);
        if (find_running(cluster, &answer->event.guest) != NULL) {
            if (answer->event.kind == BERTH_EVENT_GUEST_EXITED)
                remove_running(cluster, &answer->event.guest);
            handle(cluster, CLUSTER_ANSWER, &answer->event);
        }
        g_free(answer);
    }
}

/* All that have started since. */
static void begin_all(Cluster *cluster)
{
    for (guint i = 0; i < cluster->started->len; i++) {
        Running *running = find_running(cluster, &g_array_index(cluster->started, BerthGuestId, i));
        if (running != NULL && !running->has_begun)
            begin(cluster, running);
    }
    g_array_set_size(cluster->started, 0);
}

void cluster_settle(Cluster *cluster)
{
    guint n = 0;
    for (guint i = 0; i < SETTLES_MAX && (i < 8 || cluster->running->len > n + n / 100); i++) {
        n = cluster->running->len;
        cluster->now_usec += SETTLE_USEC;
        fire_timers(cluster);
        send_answers(cluster);
        begin_all(cluster);
        for (guint at = 0; at < cluster->running->len; at++)
            report_at(cluster, at);
    }
    cluster_forget_costs(cluster);
}

void cluster_step(Cluster *cluster)
{
    cluster->now_usec += STEP_USEC;
    if (cluster->config.is_berth) {
        fire_timers(cluster);
        send_answers(cluster);
        begin_all(cluster);
    }
    cluster_submit(cluster);
    exit_one(cluster);
    report_at(cluster, pick(cluster, cluster->running->len));
}

/* --- what it has cost ------------------------------------------------------------------------ */

gsize cluster_bytes(const Cluster *cluster)
{
    return berth_core_memory_bytes(cluster->core);
}

guint cluster_n_running(const Cluster *cluster)
{
    return cluster->running->len;
}

GArray *cluster_costs(const Cluster *cluster, ClusterKind kind)
{
    return cluster->costs[kind];
}

void cluster_forget_costs(Cluster *cluster)
{
    for (guint i = 0; i < CLUSTER_N_KINDS; i++)
        g_array_set_size(cluster->costs[i], 0);
}
