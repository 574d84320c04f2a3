/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what each node will have left and when: the ends of its guests, by their time limits, and the
 * room that waiting tasks are planned to take there. Guests only leave, so that without plans the
 * room of a node never shrinks; with them it shrinks only where a planned start is. */
#include "scheduler/core/profile.h"

#include "scheduler/core/maintenance.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/timers.h"

static int compare_ends(gconstpointer a, gconstpointer b)
{
    gint64 end_a = ((const CoreStep *)a)->start_usec;
    gint64 end_b = ((const CoreStep *)b)->start_usec;
    return end_a < end_b ? -1 : end_a > end_b;
}

/* First the ends with what each frees, then sums of them. */
static void rebuild_steps(CoreNode *node)
{
    GArray *steps = node->steps;
    node->steps_are_old = FALSE;
    g_array_set_size(steps, 0);
    if (!core_node_is_open(node) || node->n_strays > 0)
        return;
    CoreStep now = {G_MININT64, core_node_free(node)};
    g_array_append_val(steps, now);
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        CoreStep end = {guest->task->planned_end_usec, guest->size};
        if (!guest->is_opportunistic)
            g_array_append_val(steps, end);
    }
    for (guint i = 0; i < node->incoming->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        CoreStep end = {guest->task->planned_end_usec, guest->to_size};
        if (!guest->is_opportunistic_there)
            g_array_append_val(steps, end);
    }
    g_array_sort(steps, compare_ends);
    CoreSize left = node->reserved;
    for (guint i = 1; i < steps->len; i++) {
        CoreStep *step = &g_array_index(steps, CoreStep, i);
        left = core_size_sub(left, step->room);
        step->room = core_size_sub(core_node_capacity(node), left);
    }
}

static const GArray *steps_of(CoreNode *node)
{
    if (node->steps_are_old)
        rebuild_steps(node);
    return node->steps;
}

gint64 core_profile_earliest(const BerthCore *core, CoreNode *node, CoreSize size)
{
    const GArray *steps = steps_of(node);
    for (guint i = 0; i < steps->len; i++) {
        const CoreStep *step = &g_array_index(steps, CoreStep, i);
        if (core_size_fits(size, step->room))
            return step->start_usec;
    }
    return G_MAXINT64;
}

/* Guests that overstay are still there now, and are thought to leave any moment. */
static CoreSize base_room(const BerthCore *core, const GArray *steps, gint64 at_usec)
{
    CoreSize room = {0, 0};
    for (guint i = 0; i < steps->len; i++) {
        const CoreStep *step = &g_array_index(steps, CoreStep, i);
        if (step->start_usec > at_usec || (i > 0 && at_usec <= core->now_usec))
            break;
        room = step->room;
    }
    return room;
}

static CoreSize room_at(const BerthCore *core, const GArray *steps, const GArray *reservations,
                        guint heeds, gint64 at_usec)
{
    CoreSize room = base_room(core, steps, at_usec);
    for (guint i = 0; reservations != NULL && i < reservations->len; i++) {
        const CoreReservation *reservation = &g_array_index(reservations, CoreReservation, i);
        if (reservation->place < heeds && reservation->start_usec <= at_usec &&
            at_usec < reservation->end_usec)
            room = core_size_sub(room, reservation->size);
    }
    return room;
}

guint32 core_size_count(CoreSize size, CoreSize room, guint32 max)
{
    guint64 by_vcpus = size.vcpus > 0 ? room.vcpus / size.vcpus : max;
    guint64 by_memory = size.memory_mib > 0 ? room.memory_mib / size.memory_mib : max;
    return (guint32)MIN(MIN(by_vcpus, by_memory), max);
}

guint32 core_profile_count(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                           gint64 from_usec, guint32 max)
{
    const GArray *steps = steps_of(node);
    const GArray *reservations = core_plan_reservations(core, node);
    gint64 end_usec = core_time_add(from_usec, need->length_usec);
    if (!need->may_move && core_maintenance_blocks(node, from_usec, end_usec))
        return 0;
    CoreSize room = room_at(core, steps, reservations, need->heeds, from_usec);
    guint32 count = core_size_count(need->size, room, max);
    for (guint i = 0; reservations != NULL && i < reservations->len && count > 0; i++) {
        gint64 at_usec = g_array_index(reservations, CoreReservation, i).start_usec;
        if (at_usec <= from_usec || at_usec >= end_usec)
            continue;
        room = room_at(core, steps, reservations, need->heeds, at_usec);
        count = core_size_count(need->size, room, count);
    }
    return count;
}

void core_profile_outlook(const BerthCore *core, CoreNode *node, guint heeds, GArray *out_steps)
{
    const GArray *steps = steps_of(node);
    const GArray *reservations = core_plan_reservations(core, node);
    CoreStep now = {core->now_usec, room_at(core, steps, reservations, heeds, core->now_usec)};
    g_array_append_val(out_steps, now);
    for (guint i = 0; reservations != NULL && i < reservations->len; i++) {
        gint64 at_usec = g_array_index(reservations, CoreReservation, i).start_usec;
        CoreStep later = {at_usec, room_at(core, steps, reservations, heeds, at_usec)};
        if (at_usec > core->now_usec)
            g_array_append_val(out_steps, later);
    }
}

gint64 core_profile_first(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                          guint32 count)
{
    const GArray *steps = steps_of(node);
    const GArray *reservations = core_plan_reservations(core, node);
    gint64 soon_usec = core_time_add(core->now_usec, 1);
    gint64 best_usec = G_MAXINT64;
    for (guint i = 0; i < steps->len; i++) {
        gint64 at_usec = MAX(g_array_index(steps, CoreStep, i).start_usec, soon_usec);
        if (at_usec >= best_usec)
            break;
        if (core_profile_count(core, node, need, at_usec, count) == count) {
            best_usec = at_usec;
            break;
        }
    }
    for (guint i = 0; reservations != NULL && i < reservations->len; i++) {
        gint64 at_usec = MAX(g_array_index(reservations, CoreReservation, i).end_usec, soon_usec);
        if (at_usec < best_usec && core_profile_count(core, node, need, at_usec, count) == count)
            best_usec = at_usec;
    }
    for (guint i = 0; node->blocks != NULL && i < node->blocks->len; i++) {
        gint64 at_usec = MAX(g_array_index(node->blocks, CoreBlock, i).end_usec, soon_usec);
        if (at_usec < best_usec && core_profile_count(core, node, need, at_usec, count) == count)
            best_usec = at_usec;
    }
    return best_usec;
}
