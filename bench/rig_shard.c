/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the threads of bench/rig (bench/rig_shard.h). Invariant: what a shard has is touched by its thread alone, from its
 * start to its end. */
#include "config.h"

#include "bench/rig_shard.h"

#include "bench/rig_node.h"

#define TELL_MSEC 1000u

struct RigShard {
    GThread *thread;
    GMainContext *context;
    GMainLoop *loop;
    guint first, step, n_nodes, join_rate;
    RigShardFunc func;
    gpointer user_data;
    RigThread own;
    GPtrArray *nodes; /* RigNode; those whose turn has come */
    gint64 began_usec;
    RigCounts last; /* when it ended */
    BerthRpcTimer next_timer, tell_timer;
};

/* On its way to the main context. */
typedef struct {
    RigShard *shard;
    RigCounts counts;
} Told;

char *rig_node_name(guint number)
{
    return g_strdup_printf("n%05u", number);
}

/* --- in the thread ------------------------------------------------------------------------------- */

static guint next_number(const RigShard *shard)
{
    return shard->first + shard->step * shard->nodes->len;
}

static void free_node(gpointer node)
{
    rig_node_free(node);
}

static gint64 next_due_usec(const RigShard *shard)
{
    return shard->began_usec + (gint64)next_number(shard) * G_USEC_PER_SEC / shard->join_rate;
}

static void add_next(RigShard *shard)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = rig_node_name(next_number(shard));
    RigNode *node = rig_node_new(&shard->own, name, &error);
    if (node == NULL)
        g_error("node %s cannot be: %s", name, error->message);
    g_ptr_array_add(shard->nodes, node);
}

/* All whose turn has come: who is late makes up for it. */
static void add_due(gpointer data)
{
    RigShard *shard = data;
    gint64 left_usec = 0;
    berth_rpc_poll_timer_stop(&shard->next_timer);
    while (next_number(shard) < shard->n_nodes &&
           (left_usec = next_due_usec(shard) - g_get_monotonic_time()) <= 0)
        add_next(shard);
    if (next_number(shard) < shard->n_nodes)
        berth_rpc_poll_timer_start(shard->own.poll, &shard->next_timer,
                                   (guint)((left_usec + 999) / 1000), add_due, shard);
}

static gboolean on_told(gpointer data)
{
    const Told *told = data;
    told->shard->func(told->shard, &told->counts, told->shard->user_data);
    return G_SOURCE_REMOVE;
}

static void tell(gpointer data)
{
    RigShard *shard = data;
    Told *told = g_new(Told, 1);
    *told = (Told){shard, shard->own.counts};
    g_main_context_invoke_full(NULL, G_PRIORITY_DEFAULT, on_told, told, g_free);
}

static gpointer run(gpointer data)
{
    RigShard *shard = data;
    g_main_context_push_thread_default(shard->context);
    shard->own.poll = berth_rpc_poll_ref(shard->context);
    shard->nodes = g_ptr_array_new_with_free_func(free_node);
    add_due(shard);
    berth_rpc_poll_timer_start(shard->own.poll, &shard->tell_timer, TELL_MSEC, tell, shard);
    g_main_loop_run(shard->loop);
    berth_rpc_poll_timer_stop(&shard->next_timer);
    berth_rpc_poll_timer_stop(&shard->tell_timer);
    shard->last = shard->own.counts;
    g_ptr_array_unref(shard->nodes);
    while (g_main_context_iteration(shard->context, FALSE)) {
        /* answers that were cancelled */
    }
    berth_rpc_poll_unref(shard->own.poll);
    g_main_context_pop_thread_default(shard->context);
    return NULL;
}

static gboolean on_join_again(gpointer data)
{
    RigShard *shard = data;
    for (guint i = 0; i < shard->nodes->len; i++)
        rig_node_join_again(g_ptr_array_index(shard->nodes, i));
    return G_SOURCE_REMOVE;
}

static gboolean on_quit(gpointer data)
{
    g_main_loop_quit(((RigShard *)data)->loop);
    return G_SOURCE_REMOVE;
}

/* --- in the main thread -------------------------------------------------------------------------- */

static void ask(RigShard *shard, GSourceFunc func)
{
    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_priority(source, G_PRIORITY_DEFAULT);
    g_source_set_callback(source, func, shard, NULL);
    g_source_attach(source, shard->context);
}

RigShard *rig_shard_new(const RigPlan *plan, guint first, guint step, guint n_nodes,
                        guint join_rate, RigShardFunc func, gpointer user_data)
{
    RigShard *shard = g_new0(RigShard, 1);
    shard->own.plan = plan;
    shard->first = first;
    shard->step = step;
    shard->n_nodes = n_nodes;
    shard->join_rate = join_rate;
    shard->func = func;
    shard->user_data = user_data;
    shard->began_usec = g_get_monotonic_time();
    shard->context = g_main_context_new();
    shard->loop = g_main_loop_new(shard->context, FALSE);
    shard->thread = g_thread_new("shard", run, shard);
    return shard;
}

void rig_shard_join_again(RigShard *shard)
{
    ask(shard, on_join_again);
}

void rig_shard_free(RigShard *shard, RigCounts *out_counts)
{
    ask(shard, on_quit);
    g_thread_join(shard->thread);
    while (g_main_context_iteration(NULL, FALSE)) {
        /* what it has told */
    }
    *out_counts = shard->last;
    g_main_loop_unref(shard->loop);
    g_main_context_unref(shard->context);
    g_free(shard);
}
