/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the view at a glance: sums over the cluster, and the first of its nodes and guests in an order. To look at all of
 * them costs O(nodes + guests), and others wait meanwhile: the latest ranking serves whoever asks for the same soon
 * after, however many do, and however many pages they ask for. Each user may ask for his own guests: that ranking of the nodes,
 * and a list of who is where, serve all of them, and what each costs is to go through the list. What is shown is as it is when
 * it is shown. */
#include "config.h"

#include "scheduler/daemon/top.h"

#include "scheduler/core/look.h"
#include "scheduler/daemon/job_view.h"
#include "scheduler/daemon/node_view.h"
#include "scheduler/daemon/ranking.h"

/* A ranking is as good as new for so long, and for so many times as long as it took. */
#define FRESH_USEC  G_USEC_PER_SEC
#define FRESH_TIMES 10
/* Above what any node tells of its stalls. */
#define PRESSED 1000000u

/* Of what is kept for a while. */
typedef struct {
    gint64 made_usec; /* monotonic */
    gint64 cost_usec;
} Age;

typedef struct {
    BerthGuestId id;
    guint32 node;
    const char *user; /* interned */
} Listed;

struct BerthTop {
    BerthDaemon *daemon;
    Berth__TopRequest__Order order;
    char *node, *user;            /* "" = all */
    BerthRanking *nodes, *guests; /* NULL = there is none yet */
    GArray *listed;               /* Listed: all guests; NULL likewise */
    Age nodes_age, listed_age;
    gint64 ranked_usec;   /* what to rank the guests of all users did cost, the last time */
    Berth__TopReply sums; /* without nodes and guests */
};

BerthTop *berth_top_new(BerthDaemon *daemon)
{
    BerthTop *top = g_new0(BerthTop, 1);
    top->daemon = daemon;
    return top;
}

static void forget(BerthTop *top)
{
    g_clear_pointer(&top->nodes, berth_ranking_free);
    g_clear_pointer(&top->guests, berth_ranking_free);
    g_clear_pointer(&top->listed, g_array_unref);
    g_clear_pointer(&top->node, g_free);
    g_clear_pointer(&top->user, g_free);
}

void berth_top_free(BerthTop *top)
{
    forget(top);
    g_free(top);
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Those that are short of memory, or are about to be, come before all that stall (cli/top_order.c has the same). */
static guint64 pressure_of_node(const BerthTop *top, const BerthCoreNode *node,
                                const Berth__NodeUsage *usage)
{
    gint64 now_usec = berth_engine_now_usec(top->daemon->engine);
    guint64 first = node->pressed_until_usec > now_usec ? PRESSED : 0;
    return first +
           (usage ? MAX(MAX(usage->psi_cpu_some, usage->psi_memory_some), usage->psi_io_some) : 0);
}

/* One that is away uses nothing. */
static guint64 key_of_node(const BerthTop *top, const BerthCoreNode *node,
                           const Berth__NodeUsage *usage, Berth__TopRequest__Order order)
{
    if (node->state != BERTH_NODE_UP)
        return 0;
    switch (order) {
    case BERTH__TOP_REQUEST__ORDER__BY_CPU:
        return node->used_milli;
    case BERTH__TOP_REQUEST__ORDER__BY_MEMORY:
        return node->used_mib;
    case BERTH__TOP_REQUEST__ORDER__BY_PRESSURE:
        return pressure_of_node(top, node, usage);
    default:
        return 0;
    }
}

static void add_sums(Berth__TopReply *reply, const BerthCoreNode *node)
{
    reply->nodes_total++;
    if (node->state != BERTH_NODE_UP)
        return;
    reply->nodes_up++;
    reply->vcpus += node->capacity.vcpus;
    reply->memory_mib += node->capacity.memory_mib;
    reply->vcpus_reserved += node->reserved.vcpus;
    reply->memory_reserved_mib += node->reserved.memory_mib;
    reply->vcpus_slack += node->opportunistic.vcpus;
    reply->memory_slack_mib += node->opportunistic.memory_mib;
    reply->used_milli += node->used_milli;
    reply->used_mib += node->used_mib;
    reply->predicted_milli += node->predicted_milli;
    reply->predicted_mib += node->predicted_mib;
}

/* --- guests ----------------------------------------------------------------------------------- */

/* One that stands still lacks nothing. */
static guint32 starved_permille(const BerthTaskEntry *entry, const BerthCoreGuest *guest)
{
    return entry->stored->task->state == BERTH__JOB_STATE__SUSPENDED ? 0 : guest->starved_permille;
}

static guint32 worst_pressure(const BerthTaskEntry *entry, const BerthCoreGuest *guest)
{
    const Berth__Usage *usage = entry->stored->task->usage;
    guint32 starved = starved_permille(entry, guest) * 10;
    if (!usage)
        return starved;
    guint32 stalled = MAX(MAX(usage->psi_cpu_some, usage->psi_memory_some), usage->psi_io_some);
    return MAX(MAX(stalled, usage->throttled_permille * 10), starved);
}

static guint64 used_mib(const Berth__Usage *usage)
{
    return usage
               ? usage->memory_total_mib - MIN(usage->memory_available_mib, usage->memory_total_mib)
               : 0;
}

static guint64 key_of_guest(const BerthTop *top, const BerthTaskEntry *entry,
                            const BerthCoreGuest *guest)
{
    const Berth__Task *task = entry->stored->task;
    gint64 limit_usec;
    switch (top->order) {
    case BERTH__TOP_REQUEST__ORDER__BY_CPU:
        return guest->used_milli;
    case BERTH__TOP_REQUEST__ORDER__BY_MEMORY:
        return used_mib(task->usage);
    case BERTH__TOP_REQUEST__ORDER__BY_PRESSURE:
        return worst_pressure(entry, guest);
    case BERTH__TOP_REQUEST__ORDER__BY_TIME_LEFT:
        limit_usec = berth_core_limit_usec(top->daemon->core, task->job, task->index);
        return (guint64)(G_MAXINT64 - limit_usec);
    case BERTH__TOP_REQUEST__ORDER__BY_MOVE:
        return task->moved ? task->moved->time_usec : 0;
    default:
        return 0;
    }
}

static void rank_guest(BerthTop *top, const Listed *listed)
{
    BerthCoreGuest guest;
    const BerthGuestId *id = &listed->id;
    const BerthNodeEntry *node = berth_node_table_find(top->daemon->nodes, listed->node);
    const BerthTaskEntry *entry = berth_job_table_find_task(top->daemon->jobs, id->job, id->task);
    if (!entry || !node ||
        !berth_core_get_guest(top->daemon->core, id->job, id->task, id->guest, &guest))
        return;
    BerthRanked ranked = {key_of_guest(top, entry, &guest), node->handle, node->name, *id};
    berth_ranking_add(top->guests, &ranked);
    top->sums.guests_total++;
    top->sums.guests_slack += guest.is_opportunistic != 0;
    top->sums.guests_moving += guest.op == BERTH_OP_MIGRATING && !guest.waits_for_room;
}

static void rank_node(BerthTop *top, const BerthNodeEntry *entry)
{
    BerthCoreNode node;
    if ((*top->node && !g_str_equal(entry->name, top->node)) ||
        !berth_core_get_node(top->daemon->core, entry->handle, &node))
        return;
    BerthRanked ranked = {.key = key_of_node(top, &node, entry->usage, top->order),
                          .node = entry->handle,
                          .name = entry->name};
    berth_ranking_add(top->nodes, &ranked);
    add_sums(&top->sums, &node);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static gboolean is_young(Age age)
{
    return g_get_monotonic_time() - age.made_usec < MAX(FRESH_USEC, FRESH_TIMES * age.cost_usec);
}

static Age age_since(gint64 begin_usec)
{
    gint64 now_usec = g_get_monotonic_time();
    return (Age){now_usec, now_usec - begin_usec};
}

static void rank_nodes(BerthTop *top)
{
    gint64 begin_usec = g_get_monotonic_time();
    guint32 n = berth_core_n_nodes(top->daemon->core);
    g_clear_pointer(&top->nodes, berth_ranking_free);
    top->nodes = berth_ranking_new();
    berth__top_reply__init(&top->sums);
    for (guint32 handle = 1; handle <= n; handle++) {
        const BerthNodeEntry *entry = berth_node_table_find(top->daemon->nodes, handle);
        if (entry)
            rank_node(top, entry);
    }
    berth_ranking_at(top->nodes, 0); /* it takes as long as all that follow */
    top->nodes_age = age_since(begin_usec);
}

static void list_guests_of(BerthTop *top, guint32 node, GArray *ids)
{
    g_array_set_size(ids, 0);
    berth_core_add_guests_of(top->daemon->core, node, ids);
    for (guint i = 0; i < ids->len; i++) {
        Listed listed = {.id = g_array_index(ids, BerthGuestId, i), .node = node};
        const BerthJobEntry *job = berth_job_table_find(top->daemon->jobs, listed.id.job);
        if (!job)
            continue;
        listed.user = g_intern_string(job->job->user);
        g_array_append_val(top->listed, listed);
    }
}

static void list_guests(BerthTop *top)
{
    gint64 begin_usec = g_get_monotonic_time();
    guint32 n = berth_core_n_nodes(top->daemon->core);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    if (!top->listed)
        top->listed = g_array_new(FALSE, FALSE, sizeof(Listed));
    g_array_set_size(top->listed, 0);
    for (guint32 handle = 1; handle <= n; handle++)
        list_guests_of(top, handle, ids);
    top->listed_age = age_since(begin_usec);
}

/* USER: interned; NULL = all. */
static gboolean is_asked_for(const BerthTop *top, const Listed *listed, const char *user)
{
    if (user && listed->user != user)
        return FALSE;
    const BerthNodeEntry *node = berth_node_table_find(top->daemon->nodes, listed->node);
    return !*top->node || (node && g_str_equal(node->name, top->node));
}

static void rank_guests(BerthTop *top)
{
    gint64 begin_usec = g_get_monotonic_time();
    /* Who has no guest has no name here, and gets none: people may ask for any. */
    GQuark known = g_quark_try_string(top->user);
    const char *user = !*top->user ? NULL : known != 0 ? g_quark_to_string(known) : "";
    g_clear_pointer(&top->guests, berth_ranking_free);
    top->guests = berth_ranking_new();
    top->sums.guests_total = top->sums.guests_slack = top->sums.guests_moving = 0;
    for (guint i = 0; i < top->listed->len; i++) {
        const Listed *listed = &g_array_index(top->listed, Listed, i);
        if (is_asked_for(top, listed, user))
            rank_guest(top, listed);
    }
    berth_ranking_at(top->guests, 0); /* as above */
    if (!user)
        top->ranked_usec = g_get_monotonic_time() - begin_usec;
}

/* Who asks for all guests has them ranked with each list. */
static gboolean is_list_young(const BerthTop *top)
{
    Age age = {top->listed_age.made_usec, top->listed_age.cost_usec + top->ranked_usec};
    return top->listed != NULL && is_young(age);
}

static void refresh(BerthTop *top, const Berth__TopRequest *request)
{
    gboolean is_same_view =
        top->nodes && top->order == request->order && g_str_equal(top->node, request->node);
    gboolean are_nodes_old = !is_same_view || !is_young(top->nodes_age);
    gboolean is_list_old = !is_list_young(top);
    gboolean is_same_user = top->user && g_str_equal(top->user, request->user);
    if (!is_same_view) {
        top->order = request->order;
        g_free(top->node);
        top->node = g_strdup(request->node);
    }
    if (!is_same_user) {
        g_free(top->user);
        top->user = g_strdup(request->user);
    }
    if (are_nodes_old)
        rank_nodes(top);
    if (is_list_old)
        list_guests(top);
    if (are_nodes_old || is_list_old || !is_same_user || !top->guests)
        rank_guests(top);
}

/* --- what is shown ---------------------------------------------------------------------------- */

typedef struct {
    Berth__Node node;
    Berth__NodeInfo info; /* no more of it than is shown */
} ShownNode;

static void show_node(BerthDaemon *daemon, const BerthRanked *ranked, ShownNode *out)
{
    berth_node_view_fill(daemon, berth_node_table_find(daemon->nodes, ranked->node), &out->node);
    berth__node_info__init(&out->info);
    out->info.name = out->node.info->name;
    out->info.vcpus = out->node.info->vcpus;
    out->info.guest_memory_mib = out->node.info->guest_memory_mib;
    out->node.info = &out->info;
}

typedef struct {
    Berth__TopGuest guest;
    Berth__Task task; /* shallow */
} ShownGuest;

/* What only its owner may read is left out, and what only berth show needs. */
static void show_task(BerthDaemon *daemon, const BerthTaskEntry *entry, const BerthGuestId *id,
                      guint32 node, Berth__Task *out)
{
    *out = *entry->stored->task;
    out->reason_text = out->console_tail = out->unsaved_text = (char *)protobuf_c_empty_string;
    out->exit = NULL;
    out->checkpoints = NULL;
    out->n_checkpoints = 0;
    out->node = (char *)berth_node_table_name(daemon->nodes, node);
    berth_job_view_measure(daemon, id->guest, out);
}

/* FALSE: it has gone since it was ranked. */
static gboolean show_guest(BerthDaemon *daemon, const BerthGuestId *id, ShownGuest *out)
{
    const BerthJobEntry *job = berth_job_table_find(daemon->jobs, id->job);
    const BerthTaskEntry *entry = berth_job_table_find_task(daemon->jobs, id->job, id->task);
    gint64 limit_usec = berth_core_limit_usec(daemon->core, id->job, id->task);
    BerthCoreGuest guest;
    if (!job || !entry ||
        !berth_core_get_guest(daemon->core, id->job, id->task, id->guest, &guest) ||
        guest.phase == BERTH_GUEST_NONE)
        return FALSE;
    show_task(daemon, entry, id, guest.node, &out->task);
    berth__top_guest__init(&out->guest);
    out->guest.task = &out->task;
    out->guest.name = job->job->name;
    out->guest.user = job->job->user;
    out->guest.vcpus = guest.resources.vcpus;
    out->guest.memory_mib = guest.resources.memory_mib;
    out->guest.limit_usec = limit_usec == G_MAXINT64 ? 0 : (guint64)limit_usec;
    out->guest.starved_permille = starved_permille(entry, &guest);
    out->guest.guest = id->guest;
    out->guest.of_array = job->unstarted != NULL;
    return TRUE;
}

static guint show_nodes(BerthTop *top, guint32 skip, guint32 limit, ShownNode *shown)
{
    const BerthRanked *ranked;
    guint n = 0;
    for (guint32 at = skip; n < limit && (ranked = berth_ranking_at(top->nodes, at)); at++)
        show_node(top->daemon, ranked, &shown[n++]);
    return n;
}

/* In place of those that have gone there are more of those behind them. */
static guint show_guests(BerthTop *top, guint32 skip, guint32 limit, ShownGuest *shown)
{
    const BerthRanked *ranked;
    guint n = 0;
    for (guint32 at = skip; n < limit && (ranked = berth_ranking_at(top->guests, at)); at++)
        n += show_guest(top->daemon, &ranked->guest, &shown[n]) ? 1 : 0;
    return n;
}

static guint32 most_of(const BerthTop *top, const BerthRanking *ranking, guint32 limit)
{
    return MIN(MIN(limit, top->daemon->config->page_size), berth_ranking_size(ranking));
}

static void reply(BerthTop *top, const Berth__TopRequest *request, BerthRpcCall *call)
{
    Berth__TopReply out = top->sums;
    guint32 most_nodes = most_of(top, top->nodes, request->node_limit);
    guint32 most_guests = most_of(top, top->guests, request->guest_limit);
    g_autofree ShownNode *nodes = g_new0(ShownNode, most_nodes + 1);
    g_autofree ShownGuest *guests = g_new0(ShownGuest, most_guests + 1);
    g_autofree Berth__Node **node_pointers = g_new0(Berth__Node *, most_nodes + 1);
    g_autofree Berth__TopGuest **guest_pointers = g_new0(Berth__TopGuest *, most_guests + 1);
    out.n_nodes = show_nodes(top, request->node_skip, most_nodes, nodes);
    out.n_guests = show_guests(top, request->guest_skip, most_guests, guests);
    for (gsize i = 0; i < out.n_nodes; i++)
        node_pointers[i] = &nodes[i].node;
    for (gsize i = 0; i < out.n_guests; i++)
        guest_pointers[i] = &guests[i].guest;
    out.nodes = node_pointers;
    out.guests = guest_pointers;
    out.now_usec = (guint64)berth_engine_now_usec(top->daemon->engine);
    out.jobs_waiting = berth_core_n_waiting(top->daemon->core);
    berth_rpc_call_reply(call, &out.base);
    for (gsize i = 0; i < out.n_nodes; i++)
        berth_node_view_clear(&nodes[i].node);
}

void berth_top_answer(BerthTop *top, const Berth__TopRequest *request, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    if (*request->node && !berth_node_view_find(top->daemon, request->node, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    refresh(top, request);
    reply(top, request, call);
}
