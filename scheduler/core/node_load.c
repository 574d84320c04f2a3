/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how busy nodes are predicted to be, and how much less if guests change their places. Computes only. */
#include "scheduler/core/node_load.h"

#include "scheduler/core/predict.h"

guint64 core_node_load(const CoreNode *node)
{
    return (guint64)core_predict_node(node).cpu_milli / MAX(node->capacity.vcpus, 1);
}

/* With COMES, all that it needs counted, instead of LEAVES. */
static guint64 load_after(const CoreNode *node, const CoreGuest *leaves, const CoreGuest *comes)
{
    guint64 left_milli =
        (guint64)(node->needs.cpu_milli - leaves->needs.cpu_milli) * node->coincidence >> 16;
    return (left_milli + comes->needs.cpu_milli) / MAX(node->capacity.vcpus, 1);
}

guint64 core_node_load_gain(const CoreGuest *guest, const CoreNode *from, const CoreNode *to)
{
    guint64 busier = core_node_load(from);
    guint64 there = core_node_load(to) + guest->needs.cpu_milli / MAX(to->capacity.vcpus, 1);
    return there < busier
               ? MIN(busier - there, guest->needs.cpu_milli / MAX(from->capacity.vcpus, 1))
               : 0;
}

guint64 core_node_load_gain_of_both(const CoreGuest *mover, const CoreGuest *back,
                                    const CoreNode *from, const CoreNode *to)
{
    guint64 busier = core_node_load(from);
    guint64 after = MAX(load_after(from, mover, back), load_after(to, back, mover));
    return after < busier ? busier - after : 0;
}
