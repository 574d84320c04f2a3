/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the view at a glance: sums over the cluster, and the first of its nodes and guests in an order. Costs
 * O(nodes + guests) for looking, and no more than what is asked for to send. */
#include "config.h"

#include "scheduler/daemon/top.h"

#include "scheduler/core/look.h"
#include "scheduler/daemon/job_view.h"
#include "scheduler/daemon/node_view.h"

#include <string.h>

typedef struct {
    guint64 key; /* larger comes first */
    const BerthNodeEntry *node;
    BerthGuestId guest;
    const BerthTaskEntry *task;
} Ranked;

typedef struct {
    BerthDaemon *daemon;
    const Berth__TopRequest *request;
    GArray *nodes;  /* Ranked */
    GArray *guests; /* likewise */
    Berth__TopReply reply;
} Top;

static int compare_ranked(gconstpointer a_data, gconstpointer b_data)
{
    const Ranked *a = a_data, *b = b_data;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    if (a->task == NULL)
        return strcmp(a->node->name, b->node->name);
    if (a->guest.job != b->guest.job)
        return a->guest.job < b->guest.job ? -1 : 1;
    if (a->guest.task != b->guest.task)
        return a->guest.task < b->guest.task ? -1 : 1;
    return a->guest.guest < b->guest.guest ? -1 : a->guest.guest > b->guest.guest;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static guint64 key_of_node(const BerthCoreNode *node, const Berth__NodeUsage *usage,
                           Berth__TopRequest__Order order)
{
    switch (order) {
    case BERTH__TOP_REQUEST__ORDER__BY_CPU:
        return node->used_milli;
    case BERTH__TOP_REQUEST__ORDER__BY_MEMORY:
        return node->used_mib;
    case BERTH__TOP_REQUEST__ORDER__BY_PRESSURE:
        return usage ? MAX(usage->psi_cpu_some, usage->psi_memory_some) : 0;
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

static guint32 worst_pressure(const BerthTaskEntry *entry, const BerthCoreGuest *guest)
{
    const Berth__Usage *usage = entry->stored->task->usage;
    guint32 starved = guest->starved_permille * 10;
    return usage ? MAX(MAX(usage->psi_cpu_some, usage->psi_memory_some), starved) : starved;
}

static guint64 used_mib(const Berth__Usage *usage)
{
    return usage
               ? usage->memory_total_mib - MIN(usage->memory_available_mib, usage->memory_total_mib)
               : 0;
}

static guint64 key_of_guest(const Top *top, const BerthTaskEntry *entry,
                            const BerthCoreGuest *guest)
{
    const Berth__Task *task = entry->stored->task;
    gint64 limit_usec;
    switch (top->request->order) {
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

static gboolean is_of_user(const Top *top, const BerthGuestId *id)
{
    const BerthJobEntry *job = berth_job_table_find(top->daemon->jobs, id->job);
    return job && (!*top->request->user || g_str_equal(job->job->user, top->request->user));
}

static void add_guest(Top *top, const BerthNodeEntry *node, const BerthGuestId *id)
{
    BerthCoreGuest guest;
    const BerthTaskEntry *entry = berth_job_table_find_task(top->daemon->jobs, id->job, id->task);
    if (!entry || !is_of_user(top, id) ||
        !berth_core_get_guest(top->daemon->core, id->job, id->task, id->guest, &guest))
        return;
    Ranked ranked = {key_of_guest(top, entry, &guest), node, *id, entry};
    g_array_append_val(top->guests, ranked);
    top->reply.guests_total++;
    top->reply.guests_slack += guest.is_opportunistic != 0;
    top->reply.guests_moving += guest.op == BERTH_OP_MIGRATING;
}

static void add_node(Top *top, const BerthNodeEntry *entry, GArray *ids)
{
    BerthCoreNode node;
    if ((*top->request->node && !g_str_equal(entry->name, top->request->node)) ||
        !berth_core_get_node(top->daemon->core, entry->handle, &node))
        return;
    Ranked ranked = {.key = key_of_node(&node, entry->usage, top->request->order), .node = entry};
    g_array_append_val(top->nodes, ranked);
    add_sums(&top->reply, &node);
    g_array_set_size(ids, 0);
    berth_core_add_guests_of(top->daemon->core, entry->handle, ids);
    for (guint i = 0; i < ids->len; i++)
        add_guest(top, entry, &g_array_index(ids, BerthGuestId, i));
}

/* --- what is shown ---------------------------------------------------------------------------- */

/* Of RANKED those from SKIP on, LIMIT at most. */
static guint n_shown(const Top *top, const GArray *ranked, guint32 skip, guint32 limit)
{
    guint left = ranked->len - MIN(skip, ranked->len);
    return MIN(MIN(left, limit), top->daemon->config->page_size);
}

typedef struct {
    Berth__Node node;
    Berth__NodeInfo info; /* no more of it than is shown */
} ShownNode;

static void show_node(const Top *top, const Ranked *ranked, ShownNode *out)
{
    berth_node_view_fill(top->daemon, ranked->node, &out->node);
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
static void show_guest(const Top *top, const Ranked *ranked, ShownGuest *out)
{
    BerthDaemon *daemon = top->daemon;
    const BerthGuestId *id = &ranked->guest;
    const Berth__Job *job = berth_job_table_find(daemon->jobs, id->job)->job;
    gint64 limit_usec = berth_core_limit_usec(daemon->core, id->job, id->task);
    BerthCoreGuest guest = {0};
    out->task = *ranked->task->stored->task;
    out->task.reason_text = out->task.console_tail = out->task.unsaved_text =
        (char *)protobuf_c_empty_string;
    out->task.exit = NULL;
    out->task.checkpoints = NULL;
    out->task.n_checkpoints = 0;
    out->task.node = ranked->node->name;
    berth_job_view_measure(daemon, id->guest, &out->task);
    berth_core_get_guest(daemon->core, id->job, id->task, id->guest, &guest);
    berth__top_guest__init(&out->guest);
    out->guest.task = &out->task;
    out->guest.name = job->name;
    out->guest.user = job->user;
    out->guest.vcpus = guest.resources.vcpus;
    out->guest.memory_mib = guest.resources.memory_mib;
    out->guest.limit_usec = limit_usec == G_MAXINT64 ? 0 : (guint64)limit_usec;
    out->guest.starved_permille = guest.starved_permille;
    out->guest.guest = id->guest;
}

static void reply(Top *top, BerthRpcCall *call)
{
    const Berth__TopRequest *request = top->request;
    Berth__TopReply *out = &top->reply;
    guint n_nodes = n_shown(top, top->nodes, request->node_skip, request->node_limit);
    guint n_guests = n_shown(top, top->guests, request->guest_skip, request->guest_limit);
    g_autofree ShownNode *nodes = g_new0(ShownNode, n_nodes + 1);
    g_autofree ShownGuest *guests = g_new0(ShownGuest, n_guests + 1);
    g_autofree Berth__Node **node_pointers = g_new0(Berth__Node *, n_nodes + 1);
    g_autofree Berth__TopGuest **guest_pointers = g_new0(Berth__TopGuest *, n_guests + 1);
    for (guint i = 0; i < n_nodes; i++) {
        show_node(top, &g_array_index(top->nodes, Ranked, request->node_skip + i), &nodes[i]);
        node_pointers[i] = &nodes[i].node;
    }
    for (guint i = 0; i < n_guests; i++) {
        show_guest(top, &g_array_index(top->guests, Ranked, request->guest_skip + i), &guests[i]);
        guest_pointers[i] = &guests[i].guest;
    }
    out->nodes = node_pointers;
    out->n_nodes = n_nodes;
    out->guests = guest_pointers;
    out->n_guests = n_guests;
    berth_rpc_call_reply(call, &out->base);
    for (guint i = 0; i < n_nodes; i++)
        berth_node_view_clear(&nodes[i].node);
}

void berth_top_answer(BerthDaemon *daemon, const Berth__TopRequest *request, BerthRpcCall *call)
{
    Top top = {.daemon = daemon,
               .request = request,
               .nodes = g_array_new(FALSE, FALSE, sizeof(Ranked)),
               .guests = g_array_new(FALSE, FALSE, sizeof(Ranked)),
               .reply = BERTH__TOP_REPLY__INIT};
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    guint32 n = berth_core_n_nodes(daemon->core);
    for (guint32 handle = 1; handle <= n; handle++) {
        const BerthNodeEntry *entry = berth_node_table_find(daemon->nodes, handle);
        if (entry)
            add_node(&top, entry, ids);
    }
    top.reply.now_usec = (guint64)berth_engine_now_usec(daemon->engine);
    top.reply.jobs_waiting = berth_core_n_waiting(daemon->core);
    g_array_sort(top.nodes, compare_ranked);
    g_array_sort(top.guests, compare_ranked);
    reply(&top, call);
    g_array_unref(top.nodes);
    g_array_unref(top.guests);
}
