/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the hosts of the fake world, their agents and guests, storage, and the ways that messages
 * take. Whatever an agent is asked for can fail, at any time. */
#include "tests/sim/world_internal.h"

/* In percent. */
#define START_FAILS 6u
#define OP_FAILS    20u
#define FENCE_FAILS 30u
#define END_FAILS   20u /* STOP and RELEASE */
#define END_HANGS   10u /* of these */

static gboolean fails(World *world, guint percent)
{
    return world->config.failures && world_chance(world, percent);
}

static Guest *find_guest(World *world, const BerthGuestId *id)
{
    for (guint i = 0; i < world->guests->len; i++) {
        Guest *guest = &g_array_index(world->guests, Guest, i);
        if (world_id_equal(&guest->found.id, id))
            return guest;
    }
    return NULL;
}

/* --- agents --------------------------------------------------------------------------------- */

/* NODE 0: storage says so. */
static void send_result(World *world, guint32 node, BerthCoreEvent event)
{
    event.node = node;
    Result result = {event, node};
    g_array_append_val(world->results, result);
}

/* What the agent says of a guest, as an event. */
static void report(World *world, const Guest *guest)
{
    const BerthFoundGuest *found = &guest->found;
    BerthCoreEvent event = {.guest = found->id};
    switch (found->phase) {
    case BERTH_FOUND_STARTING:
        return;
    case BERTH_FOUND_RUNNING:
        event.kind = BERTH_EVENT_GUEST_RUNNING;
        event.running.start_usec = found->start_usec;
        break;
    case BERTH_FOUND_EXITED:
        event.kind = BERTH_EVENT_GUEST_EXITED;
        event.exited.start_usec = found->start_usec;
        event.exited.end_usec = found->end_usec;
        event.exited.exit = found->exit;
        break;
    case BERTH_FOUND_GONE:
    case BERTH_FOUND_NOT_BEGUN:
    case BERTH_FOUND_LEFT:
        event.kind = BERTH_EVENT_GUEST_GONE;
        event.gone.reason = found->reason;
        event.gone.not_begun = found->phase == BERTH_FOUND_NOT_BEGUN;
        event.gone.has_left = found->phase == BERTH_FOUND_LEFT;
        break;
    }
    if (world_host(world, guest->node)->has_session)
        send_result(world, guest->node, event);
}

static void agent_start(World *world, const BerthCoreAction *order)
{
    static const BerthReason reasons[] = {BERTH_REASON_START_FAILED,
                                          BERTH_REASON_STORAGE_UNAVAILABLE};
    const Guest *known = find_guest(world, &order->guest);
    if (known != NULL) {
        report(world, known);
        return;
    }
    if (fails(world, START_FAILS)) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_START_FAILED, .guest = order->guest};
        event.start_failed.reason = reasons[world_pick(world, 2)];
        event.start_failed.permanent = world_chance(world, 5);
        send_result(world, order->node, event);
        world_note(world, "start failed");
        return;
    }
    /* One that is restored has what it had: whoever counts on less has counted wrong. */
    const Saved *saved =
        order->kind == BERTH_ACTION_RESTORE
            ? savers_find(world, order->guest.job, order->guest.task, order->checkpoint)
            : NULL;
    Guest guest = {.node = order->node,
                   .size = saved != NULL ? saved->size : order->resources,
                   .is_opportunistic = order->is_opportunistic,
                   .found = {.id = order->guest, .phase = BERTH_FOUND_STARTING}};
    g_array_append_val(world->guests, guest);
    BerthCoreEvent taken = {.kind = BERTH_EVENT_START_TAKEN, .guest = order->guest};
    send_result(world, order->node, taken);
}

static void end_guest(World *world, Guest *guest, BerthCoreExit exit)
{
    guest->found.phase = BERTH_FOUND_EXITED;
    guest->found.end_usec = world->now_usec;
    guest->found.exit = exit;
    report(world, guest);
}

static void lose_guest(World *world, Guest *guest, BerthReason reason)
{
    guest->found.phase = BERTH_FOUND_GONE;
    guest->found.reason = reason;
    report(world, guest);
}

/* Its kernel crashed before the command began, or did not come so far in time. */
static void crash_boot(World *world, Guest *guest)
{
    guest->found.phase = BERTH_FOUND_NOT_BEGUN;
    guest->found.reason =
        world_chance(world, 30) ? BERTH_REASON_BOOT_DEADLINE : BERTH_REASON_GUEST_CRASHED;
    report(world, guest);
}

/* --- ends that fail ------------------------------------------------------------------------- */

/* STOP is dropped once the core does not wait for its effect any more, RELEASE never. */
static gboolean is_wanted_still(World *world, const BerthCoreAction *order)
{
    BerthCoreTask task;
    return order->kind == BERTH_ACTION_RELEASE ||
           (berth_core_get_task(world->core, order->guest.job, order->guest.task, &task) &&
            task.epoch == order->guest.epoch &&
            (task.phase == BERTH_GUEST_STOPPING || task.stop_reason != BERTH_REASON_NONE));
}

/* No answer, or one that does not say how it ended: berthd asks again as long as the session lives, and
 * what is asked for later may be there first. */
static void ask_again(World *world, const BerthCoreAction *order)
{
    if (is_wanted_still(world, order))
        g_array_append_val(world->orders, *order);
}

/* No more than that can become of STOP and RELEASE: neither has an answer that says that it has failed. What
 * hangs is asked for again, too, but that changes nothing before the agent begins anew. TRUE: nothing was done. */
static gboolean cannot_end(World *world, Guest *guest, const BerthCoreAction *order,
                           const char *failed, const char *hung)
{
    if (guest != NULL && guest->is_hung)
        return TRUE;
    if (!fails(world, END_FAILS))
        return FALSE;
    if (guest != NULL && world_chance(world, END_HANGS)) {
        guest->is_hung = TRUE;
        world_note(world, hung);
    } else {
        ask_again(world, order);
        world_note(world, failed);
    }
    return TRUE;
}

/* Its command ends by the signal or, having just come to it, by itself; or it does not, and the guest is
 * destroyed. */
static void end_stopped(World *world, Guest *guest)
{
    guest->is_frozen = guest->is_stopping = FALSE;
    if (fails(world, 20))
        lose_guest(world, guest, BERTH_REASON_NONE);
    else if (fails(world, 20))
        end_guest(world, guest, (BerthCoreExit){0});
    else
        end_guest(world, guest, (BerthCoreExit){.signal = 15});
}

static void agent_stop(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (cannot_end(world, guest, order, "stop failed", "stop hung"))
        return;
    if (guest == NULL) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_GONE, .guest = order->guest};
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
        send_result(world, order->node, event);
    } else if (guest->found.phase == BERTH_FOUND_RUNNING && fails(world, 30)) {
        guest->is_stopping = TRUE;
        world_note(world, "stop slow");
    } else if (guest->found.phase == BERTH_FOUND_RUNNING) {
        end_stopped(world, guest);
    } else if (guest->found.phase == BERTH_FOUND_STARTING) {
        lose_guest(world, guest, BERTH_REASON_GUEST_VANISHED);
    } else {
        report(world, guest);
    }
    if (fails(world, END_FAILS)) /* it was taken, and the answer was lost */
        ask_again(world, order);
}

static void agent_release(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (guest != NULL && guest->node != order->node)
        guest = NULL;
    if (cannot_end(world, guest, order, "release failed", "release hung"))
        return;
    if (guest != NULL)
        g_array_remove_index(world->guests, (guint)(guest - (Guest *)(void *)world->guests->data));
    if (fails(world, END_FAILS)) {
        ask_again(world, order); /* done, and the answer was lost */
        world_note(world, "released unheard");
    } else {
        send_result(world, order->node,
                    (BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED, .guest = order->guest});
    }
}

/* --- other orders --------------------------------------------------------------------------- */

/* NODE says so. */
static void send_op_result_of(World *world, guint32 node, const BerthCoreAction *order,
                              BerthEventKind kind, gboolean ok)
{
    BerthCoreEvent event = {.kind = kind, .guest = order->guest};
    event.result.ok = ok;
    event.result.serial = order->serial;
    send_result(world, node, event);
}

static void send_op_result(World *world, const BerthCoreAction *order, BerthEventKind kind,
                           gboolean ok)
{
    send_op_result_of(world, order->node, order, kind, ok);
}

/* NULL: there is none that could be dealt with, and the answer says what became of it. */
static Guest *get_running(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (guest == NULL) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_GONE, .guest = order->guest};
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
        send_result(world, order->node, event);
    } else if (guest->node == order->node && guest->found.phase != BERTH_FOUND_RUNNING) {
        report(world, guest);
        return NULL;
    }
    return guest;
}

/* The source's agent answers; one that was asked again knows how it ended. Of one that has arrived its new
 * node may say so too, whatever becomes of the old one. */
static void agent_migrate(World *world, const BerthCoreAction *order)
{
    Guest *guest = get_running(world, order);
    if (guest == NULL)
        return;
    gboolean failed = !world_host(world, order->to)->has_session || fails(world, OP_FAILS);
    if (guest->node == order->node && !failed) {
        guest->node = order->to;
        guest->is_opportunistic = order->is_opportunistic;
        world_note(world, "migrated");
    }
    gboolean has_moved = guest->node == order->to;
    send_op_result_of(world, order->node, order, BERTH_EVENT_GUEST_MIGRATED, has_moved);
    if (has_moved && world_chance(world, 30))
        send_op_result_of(world, order->to, order, BERTH_EVENT_GUEST_MIGRATED, TRUE);
}

static void agent_checkpoint(World *world, const BerthCoreAction *order)
{
    Guest *guest = get_running(world, order);
    if (guest == NULL)
        return;
    gboolean has = savers_has(world, order->guest.job, order->guest.task, order->checkpoint,
                              order->guest.epoch);
    gboolean failed = !has && fails(world, OP_FAILS);
    if (!has && !failed)
        savers_saved(world, order, &guest->size);
    guest->is_saved |= order->stops && !failed;
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_CHECKPOINTED, .guest = order->guest};
    event.result.ok = !failed;
    event.result.serial = order->serial;
    event.result.paused_usec = world_pick(world, 2000000);
    event.result.stored_mib = world_pick(world, 200);
    send_result(world, order->node, event);
}

static void agent_freeze(World *world, const BerthCoreAction *order)
{
    gboolean freezes = order->kind == BERTH_ACTION_FREEZE;
    Guest *guest = get_running(world, order);
    if (guest == NULL)
        return;
    if (!fails(world, OP_FAILS))
        guest->is_frozen = freezes;
    send_op_result(world, order, freezes ? BERTH_EVENT_GUEST_FROZEN : BERTH_EVENT_GUEST_THAWED,
                   guest->is_frozen == freezes);
}

static void agent_resize(World *world, const BerthCoreAction *order)
{
    Guest *guest = get_running(world, order);
    if (guest == NULL)
        return;
    gboolean has = guest->balloon_mib == order->balloon_mib &&
                   guest->is_opportunistic == order->is_opportunistic &&
                   guest->size.vcpus == order->resources.vcpus &&
                   guest->size.memory_mib == order->resources.memory_mib;
    gboolean failed = !has && fails(world, OP_FAILS);
    if (failed && guest->balloon_mib != order->balloon_mib)
        world_note(world, "balloon failed");
    if (!failed) {
        if (order->resources.memory_mib < guest->size.memory_mib)
            world_note(world, "shrunk");
        guest->size = order->resources;
        guest->is_opportunistic = order->is_opportunistic;
        world_note(world, order->balloon_mib > guest->balloon_mib   ? "balloon taken"
                          : order->balloon_mib < guest->balloon_mib ? "balloon given back"
                                                                    : "resized");
        guest->balloon_mib = order->balloon_mib;
    }
    send_op_result(world, order, BERTH_EVENT_GUEST_RESIZED, !failed);
}

static void storage_fence(World *world, const BerthCoreAction *order)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_FENCED, .guest = order->guest};
    if (fails(world, FENCE_FAILS)) {
        event.kind = BERTH_EVENT_FENCE_FAILED;
        world_note(world, "fence failed");
    } else {
        Guest *guest = find_guest(world, &order->guest);
        if (guest != NULL)
            guest->is_fenced = TRUE;
        world_note(world, "fenced");
    }
    send_result(world, 0, event);
}

static void obey(World *world, const BerthCoreAction *order)
{
    switch (order->kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        agent_start(world, order);
        break;
    case BERTH_ACTION_STOP:
        agent_stop(world, order);
        break;
    case BERTH_ACTION_RELEASE:
        agent_release(world, order);
        break;
    case BERTH_ACTION_FENCE:
        storage_fence(world, order);
        break;
    case BERTH_ACTION_MIGRATE:
        agent_migrate(world, order);
        break;
    case BERTH_ACTION_STAY:
        break; /* it is too late for that */
    case BERTH_ACTION_CHECKPOINT:
        agent_checkpoint(world, order);
        break;
    case BERTH_ACTION_FREEZE:
    case BERTH_ACTION_THAW:
        agent_freeze(world, order);
        break;
    case BERTH_ACTION_RESIZE:
        agent_resize(world, order);
        break;
    }
}

/* --- messages ------------------------------------------------------------------------------- */

/* Orders for one guest arrive in their order, others in any. */
void agents_deliver_order(World *world)
{
    if (world->orders->len == 0)
        return;
    guint at = world_pick(world, world->orders->len);
    BerthGuestId id = g_array_index(world->orders, BerthCoreAction, at).guest;
    for (guint i = 0; i < at; i++)
        if (world_id_equal(&g_array_index(world->orders, BerthCoreAction, i).guest, &id))
            at = i;
    BerthCoreAction order = g_array_index(world->orders, BerthCoreAction, at);
    g_array_remove_index(world->orders, at);
    obey(world, &order);
}

static void deliver_one(World *world, gboolean more)
{
    guint at = world_pick(world, world->results->len);
    Result result = g_array_index(world->results, Result, at);
    if (!fails(world, 10))
        g_array_remove_index(world->results, at);
    result.event.more = more;
    driver_handle(world, &result.event);
}

/* In any order; some come again, and some two at once. */
void agents_deliver_result(World *world)
{
    if (world->results->len > 1 && world->dies_at == DIES_NEVER && world_chance(world, 20))
        deliver_one(world, TRUE);
    if (world->results->len > 0)
        deliver_one(world, FALSE);
}

/* --- guests --------------------------------------------------------------------------------- */

static BerthCoreExit random_exit(World *world)
{
    const BerthCoreExit exits[] = {
        {0}, {0}, {0}, {.status = 3}, {.signal = 11}, {.signal = 9, .oom_kills = 1},
    };
    return exits[world_pick(world, G_N_ELEMENTS(exits))];
}

void agents_advance_guest(World *world)
{
    if (world->guests->len == 0)
        return;
    Guest *guest = &g_array_index(world->guests, Guest, world_pick(world, world->guests->len));
    if (guest->found.phase == BERTH_FOUND_STARTING) {
        if (fails(world, 5)) {
            crash_boot(world, guest);
            return;
        }
        if (fails(world, 5)) {
            lose_guest(world, guest,
                       world_chance(world, 50) ? BERTH_REASON_BOOT_DEADLINE
                                               : BERTH_REASON_START_FAILED);
            return;
        }
        guest->found.phase = BERTH_FOUND_RUNNING;
        guest->found.start_usec = world->now_usec;
        report(world, guest);
    } else if (guest->found.phase == BERTH_FOUND_RUNNING && guest->is_stopping) {
        end_stopped(world, guest);
    } else if (guest->found.phase == BERTH_FOUND_RUNNING) {
        /* Where guests are measured they run for longer. */
        if (world->config.features != 0 && world_chance(world, world->config.idles ? 90 : 70))
            return;
        if (fails(world, 5))
            lose_guest(world, guest, BERTH_REASON_GUEST_CRASHED);
        else if (!guest->is_fenced && !guest->is_saved && !guest->is_frozen)
            end_guest(world, guest, random_exit(world));
    }
}

/* What a guest uses: little mostly, and sometimes all at once, or more than it has. */
void agents_report_usage(World *world)
{
    if (world->guests->len == 0)
        return;
    const Guest *guest =
        &g_array_index(world->guests, Guest, world_pick(world, world->guests->len));
    guint32 node = guest->node;
    if (guest->found.phase != BERTH_FOUND_RUNNING || !world_host(world, node)->has_session)
        return;
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_REPORTED, .guest = guest->found.id};
    guint percent = world_chance(world, world->config.idles ? 1 : 4)
                        ? 100
                        : world_pick(world, world->config.idles ? 15 : 40);
    gboolean stalls = percent == 100;
    gboolean is_busy = world->config.idles && guest->found.id.job % 3 == 0;
    guint64 capacity_mib = world_host(world, node)->info.capacity.memory_mib;
    guint64 most_mib = guest->size.memory_mib - guest->balloon_mib;
    /* All that it does not use is page cache then. */
    gboolean caches = guest->is_opportunistic && guest->found.id.job % 2 == 0;
    guint64 used_mib = MIN(guest->size.memory_mib * percent / 100, most_mib);
    event.usage = (BerthCoreUsage){
        .cpu_milli = guest->size.vcpus * (is_busy ? 900 : percent * 10),
        .memory_used_mib = used_mib,
        .memory_available_mib = most_mib - used_mib,
        .memory_pressure_permille = stalls ? 300 : 0,
        .cpu_pressure_permille = world_chance(world, 10) ? 300 : 0,
        .starved_usec = world_chance(world, 20) ? world_pick(world, 500000) : 0,
        .touched_mib = caches ? most_mib : used_mib,
    };
    world_job(world, guest->found.id.job)->stalled[guest->found.id.task] |= stalls;
    driver_handle(world, &event);
    event = (BerthCoreEvent){.kind = BERTH_EVENT_NODE_REPORTED, .node = node};
    event.node_usage.memory_pressure_permille = world_chance(world, 5) ? 300 : 0;
    /* One that is full of cache mostly says so. */
    if (world_chance(world, caches ? 60 : 10))
        event.node_usage.memory_available_mib =
            1 + world_pick(world, (guint)capacity_mib / (caches ? 10 : 1));
    driver_handle(world, &event);
}

/* --- sessions ------------------------------------------------------------------------------- */

static void drop_messages_of(World *world, guint32 node)
{
    for (guint i = world->orders->len; i > 0; i--) {
        const BerthCoreAction *order = &g_array_index(world->orders, BerthCoreAction, i - 1);
        if (order->node == node && order->kind != BERTH_ACTION_FENCE)
            g_array_remove_index(world->orders, i - 1);
    }
    for (guint i = world->results->len; i > 0; i--)
        if (g_array_index(world->results, Result, i - 1).node == node)
            g_array_remove_index(world->results, i - 1);
}

void agents_break_session(World *world, guint32 node)
{
    world_host(world, node)->has_session = FALSE;
    drop_messages_of(world, node);
}

void agents_reboot(World *world, guint32 node)
{
    for (guint i = world->guests->len; i > 0; i--)
        if (g_array_index(world->guests, Guest, i - 1).node == node)
            g_array_remove_index(world->guests, i - 1);
    agents_break_session(world, node);
    driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT, .node = node});
    world_note(world, "reboot");
}

void agents_join(World *world, guint32 node)
{
    Host *host = world_host(world, node);
    if (host->has_session)
        return;
    host->has_session = TRUE;
    g_autoptr(GArray) found = g_array_new(FALSE, TRUE, sizeof(BerthFoundGuest));
    for (guint i = 0; i < world->guests->len; i++) {
        Guest *guest = &g_array_index(world->guests, Guest, i);
        if (guest->node != node)
            continue;
        guest->is_hung = guest->is_hung && fails(world, 30);
        guest->is_stopping =
            guest->is_stopping && fails(world, 50); /* a new agent knows of no STOP */
        g_array_append_val(found, guest->found);
    }
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = host->info;
    event.joined.guests = (const BerthFoundGuest *)(void *)found->data;
    event.joined.n_guests = found->len;
    driver_handle(world, &event);
}

void agents_break_hung(World *world)
{
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *guest = &g_array_index(world->guests, Guest, i);
        guint32 node = guest->node;
        if (!guest->is_hung || !world_host(world, node)->has_session)
            continue;
        agents_break_session(world, node);
        driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT, .node = node});
    }
}
