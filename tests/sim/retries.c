/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what goes wrong with STOP and RELEASE, and that the fake driver asks for them again, as berthd does: of a
 * failure nothing is told to the core, which waits for the end of the guest, or for the next session of its node. */
#include "tests/sim/world_internal.h"

#define TROUBLE_PERCENT 20u

/* One of these: nothing goes on there until a session ends, so that those are few. */
static const Trouble troubles[] = {TROUBLE_REFUSED,    TROUBLE_REFUSED, TROUBLE_UNANSWERED,
                                   TROUBLE_UNANSWERED, TROUBLE_STUCK,   TROUBLE_SILENT};
static const char *const stop_notes[] = {NULL, "stop refused", "stop unanswered", "stop stuck",
                                         "stop silent"};
static const char *const release_notes[] = {NULL, "release refused", "release unanswered",
                                            "release stuck", "release silent"};

Trouble retries_draw_trouble(World *world, const BerthCoreAction *order)
{
    if (!world->config.failures || !world_chance(world, TROUBLE_PERCENT))
        return TROUBLE_NONE;
    Trouble trouble = troubles[world_pick(world, G_N_ELEMENTS(troubles))];
    world_note(world, (order->kind == BERTH_ACTION_STOP ? stop_notes : release_notes)[trouble]);
    return trouble;
}

void retries_take_trouble(World *world, const BerthCoreAction *order, Trouble trouble,
                          guint n_before)
{
    gboolean is_lost = trouble == TROUBLE_SILENT || trouble == TROUBLE_UNANSWERED;
    /* That a guest ended is told beside the answer to STOP: it may come twice. */
    if (trouble == TROUBLE_UNANSWERED && order->kind == BERTH_ACTION_STOP)
        is_lost = world_chance(world, 50);
    if (is_lost)
        g_array_set_size(world->results, n_before);
    if (trouble == TROUBLE_REFUSED || trouble == TROUBLE_UNANSWERED)
        g_array_append_val(world->retries, *order);
    if (trouble == TROUBLE_STUCK || trouble == TROUBLE_SILENT)
        world_host(world, order->node)->owes = TRUE;
}

/* RELEASE always is: whatever the epoch, it is to go. */
static gboolean is_wanted(const World *world, const BerthCoreAction *order)
{
    const BerthGuestId *id = &order->guest;
    BerthCoreGuest guest;
    BerthCoreTask task;
    if (order->kind == BERTH_ACTION_RELEASE)
        return TRUE;
    return berth_core_get_guest(world->core, id->job, id->task, id->guest, &guest) &&
           berth_core_get_task(world->core, id->job, id->task, &task) && task.epoch == id->epoch &&
           guest.node == order->node &&
           (task.phase == BERTH_GUEST_STOPPING || task.stop_reason != BERTH_REASON_NONE);
}

void retries_send(World *world)
{
    if (world->retries->len == 0 || (world->orders->len > 0 && !world_chance(world, 30)))
        return;
    guint at = world_pick(world, world->retries->len);
    BerthCoreAction order = g_array_index(world->retries, BerthCoreAction, at);
    g_array_remove_index(world->retries, at);
    world_note(world, is_wanted(world, &order) ? "asked again" : "not wanted any more");
    if (is_wanted(world, &order))
        g_array_append_val(world->orders, order);
}

void retries_drop(World *world, guint32 node)
{
    for (guint i = world->retries->len; i > 0; i--)
        if (g_array_index(world->retries, BerthCoreAction, i - 1).node == node)
            g_array_remove_index(world->retries, i - 1);
}
