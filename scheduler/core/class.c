/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the classes: one for each shape of job that is known. A class lives as long as a job refers
 * to it, waiting or not. The table of them is only looked up in, never walked. */
#include "scheduler/core/class.h"

#include "scheduler/core/mix.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"

#include <stdlib.h>
#include <string.h>

static guint64 flags_of(const CoreShape *shape)
{
    return (guint64)shape->may_move | (guint64)shape->may_checkpoint << 1 |
           (guint64)shape->opportunistic << 2 | (guint64)shape->on_timeout << 3 |
           (guint64)shape->on_limit << 4 | (guint64)shape->ceiling_vcpus << 8;
}

static guint class_hash(gconstpointer data)
{
    const CoreShape *shape = &((const CoreClass *)data)->shape;
    guint64 hash = core_mix(shape->size.vcpus, shape->size.memory_mib);
    hash = core_mix(core_mix(hash, shape->start.vcpus), shape->start.memory_mib);
    hash = core_mix(hash, (guint64)shape->time_limit_usec);
    hash = core_mix(hash, core_owner_account(shape->owner));
    hash = core_mix(hash, ((guint64)core_owner_uid(shape->owner) << 32) | shape->qos);
    hash = core_mix(hash, flags_of(shape));
    hash = core_mix(hash, ((guint64)shape->guests << 32) | (guint32)shape->priority);
    for (guint32 i = 0; i < shape->n_nodes; i++)
        hash = core_mix(hash, shape->nodes[i]);
    return core_mix_end(hash);
}

static gboolean class_equal(gconstpointer data_a, gconstpointer data_b)
{
    const CoreShape *a = &((const CoreClass *)data_a)->shape;
    const CoreShape *b = &((const CoreClass *)data_b)->shape;
    return core_size_equal(a->size, b->size) && core_size_equal(a->start, b->start) &&
           a->memory_mib == b->memory_mib && a->time_limit_usec == b->time_limit_usec &&
           a->ceiling_memory_mib == b->ceiling_memory_mib && a->priority == b->priority &&
           a->owner == b->owner && a->qos == b->qos && flags_of(a) == flags_of(b) &&
           a->guests == b->guests && a->n_nodes == b->n_nodes &&
           (a->n_nodes == 0 || memcmp(a->nodes, b->nodes, a->n_nodes * sizeof a->nodes[0]) == 0);
}

static void class_free(gpointer data)
{
    CoreClass *class = data;
    core_heap_clear(&class->waiting);
    core_order_tree_forget(class);
    g_free(class->shape.nodes);
    g_free(class);
}

void core_classes_init(BerthCore *core)
{
    core->classes = g_hash_table_new_full(class_hash, class_equal, class_free, NULL);
}

static int compare_handles(const void *a, const void *b)
{
    guint32 handle_a = *(const guint32 *)a;
    guint32 handle_b = *(const guint32 *)b;
    return handle_a < handle_b ? -1 : handle_a > handle_b;
}

guint32 *core_class_node_set(const guint32 *nodes, gsize n_nodes, guint32 *out_n)
{
    *out_n = 0;
    if (n_nodes == 0)
        return NULL;
    guint32 *set = g_memdup2(nodes, n_nodes * sizeof *nodes);
    qsort(set, n_nodes, sizeof *set, compare_handles);
    guint32 n = 0;
    for (gsize i = 0; i < n_nodes; i++)
        if (n == 0 || set[n - 1] != set[i])
            set[n++] = set[i];
    *out_n = n;
    return set;
}

gboolean core_class_node_set_has(const guint32 *set, guint32 n, guint32 node)
{
    return n > 0 && bsearch(&node, set, n, sizeof node, compare_handles) != NULL;
}

static int compare_waiting(const CoreHeapLink *link_a, const CoreHeapLink *link_b)
{
    guint64 a = CORE_CONTAINER_OF(link_a, const CoreJob, waiting)->id;
    guint64 b = CORE_CONTAINER_OF(link_b, const CoreJob, waiting)->id;
    return a < b ? -1 : a > b;
}

CoreClass *core_class_take(BerthCore *core, const CoreShape *shape)
{
    CoreClass key = {.shape = *shape};
    key.shape.nodes = core_class_node_set(shape->nodes, shape->n_nodes, &key.shape.n_nodes);
    CoreClass *class = g_hash_table_lookup(core->classes, &key);
    if (class == NULL) {
        class = g_memdup2(&key, sizeof key);
        core_heap_init(&class->waiting, compare_waiting);
        g_hash_table_add(core->classes, class);
    } else {
        g_free(key.shape.nodes);
    }
    class->n_jobs++;
    return class;
}

void core_class_drop(BerthCore *core, CoreClass *class)
{
    class->n_jobs--;
    if (class->n_jobs > 0)
        return;
    if (class->is_untried)
        g_ptr_array_remove(core->untried, class);
    if (class->parked != NULL)
        core_owner_forget_class(class->parked, class);
    g_hash_table_remove(core->classes, class);
}

CoreJob *core_class_head(const CoreClass *class)
{
    CoreHeapLink *first = core_heap_first(&class->waiting);
    return first != NULL ? CORE_CONTAINER_OF(first, CoreJob, waiting) : NULL;
}

gboolean core_class_allows(const CoreClass *class, guint32 node)
{
    const CoreShape *shape = &class->shape;
    return shape->n_nodes == 0 || core_class_node_set_has(shape->nodes, shape->n_nodes, node);
}

gboolean core_class_can_move(const BerthCore *core, const CoreClass *class)
{
    return class->shape.may_move && class->shape.guests == 1 &&
           (core->config.features & BERTH_FEATURE_MIGRATION) != 0;
}

gboolean core_class_can_checkpoint(const BerthCore *core, const CoreClass *class)
{
    return class->shape.may_checkpoint && class->shape.guests == 1 &&
           (core->config.features & BERTH_FEATURE_CHECKPOINT) != 0;
}

gboolean core_class_may_be_in_slack(const BerthCore *core, const CoreClass *class)
{
    return class->shape.opportunistic &&
           (core_class_can_move(core, class) || core_class_can_checkpoint(core, class));
}

gint64 core_class_length_usec(const BerthCore *core, const CoreClass *class)
{
    gint64 limit_usec = class->shape.time_limit_usec;
    return limit_usec > 0 ? limit_usec : core->tunings[BERTH_TUNING_ASSUMED_LIMIT_USEC];
}

guint64 core_class_start_memory_mib(const CoreClass *class)
{
    const CoreShape *shape = &class->shape;
    return shape->start.memory_mib - (shape->size.memory_mib - shape->memory_mib);
}
