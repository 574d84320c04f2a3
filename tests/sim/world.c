/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the fake world: what chance does, and how hosts and agents answer. tests/sim/driver.c owns
 * the driver of the core and its store. */
#include "tests/sim/world_internal.h"

#define TIME_STEP_MAX_USEC (4 * G_USEC_PER_SEC)

/* --- life ----------------------------------------------------------------------------------- */

World *world_new(const WorldConfig *config)
{
    World *world = g_new0(World, 1);
    world->config = *config;
    world->random = g_rand_new_with_seed(config->seed);
    world->now_usec = G_USEC_PER_SEC;
    world->hosts = g_array_new(FALSE, TRUE, sizeof(Host));
    world->guests = g_array_new(FALSE, TRUE, sizeof(Guest));
    world->orders = g_array_new(FALSE, TRUE, sizeof(BerthCoreAction));
    world->results = g_array_new(FALSE, TRUE, sizeof(Result));
    world->jobs = g_array_new(FALSE, TRUE, sizeof(Job));
    world->log = g_string_new(NULL);
    world->counts = g_hash_table_new(g_str_hash, g_str_equal);
    driver_start(world);
    return world;
}

void world_free(World *world)
{
    driver_stop(world);
    g_rand_free(world->random);
    g_array_unref(world->hosts);
    g_array_unref(world->guests);
    g_array_unref(world->orders);
    g_array_unref(world->results);
    g_array_unref(world->jobs);
    g_string_free(world->log, TRUE);
    g_hash_table_unref(world->counts);
    g_free(world);
}

const char *world_log(const World *world)
{
    return world->log->str;
}

guint world_count(const World *world, const char *what)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(world->counts, what));
}

void world_note(World *world, const char *what)
{
    g_hash_table_insert(world->counts, (gpointer)what,
                        GUINT_TO_POINTER(world_count(world, what) + 1));
}

gboolean world_chance(World *world, guint percent)
{
    return (guint)g_rand_int_range(world->random, 0, 100) < percent;
}

guint world_pick(World *world, guint n)
{
    return (guint)g_rand_int_range(world->random, 0, (gint32)n);
}

gboolean world_id_equal(const BerthGuestId *a, const BerthGuestId *b)
{
    return a->job == b->job && a->task == b->task && a->guest == b->guest && a->epoch == b->epoch;
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
        event.kind = BERTH_EVENT_GUEST_GONE;
        event.gone.reason = found->reason;
        break;
    }
    if (g_array_index(world->hosts, Host, guest->node - 1).has_session)
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
    if (world->config.failures && world_chance(world, 6)) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_START_FAILED, .guest = order->guest};
        event.start_failed.reason = reasons[world_pick(world, 2)];
        event.start_failed.permanent = world_chance(world, 5);
        send_result(world, order->node, event);
        world_note(world, "start failed");
        return;
    }
    Guest guest = {.node = order->node,
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

static void agent_stop(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (guest == NULL) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_GONE, .guest = order->guest};
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
        send_result(world, order->node, event);
    } else if (guest->found.phase == BERTH_FOUND_RUNNING) {
        end_guest(world, guest, (BerthCoreExit){.signal = 15});
    } else if (guest->found.phase == BERTH_FOUND_STARTING) {
        lose_guest(world, guest, BERTH_REASON_GUEST_VANISHED);
    } else {
        report(world, guest);
    }
}

static void agent_release(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (guest != NULL && guest->node == order->node)
        g_array_remove_index(world->guests, (guint)(guest - (Guest *)(void *)world->guests->data));
    send_result(world, order->node,
                (BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED, .guest = order->guest});
}

static void send_op_result(World *world, const BerthCoreAction *order, BerthEventKind kind,
                           gboolean ok)
{
    BerthCoreEvent event = {.kind = kind, .guest = order->guest};
    event.result.ok = ok;
    event.result.serial = order->serial;
    send_result(world, order->node, event);
}

/* The source's agent answers; one that was asked again knows how it ended. */
static void agent_migrate(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (guest == NULL) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_GONE, .guest = order->guest};
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
        send_result(world, order->node, event);
        return;
    }
    if (guest->node == order->node && guest->found.phase != BERTH_FOUND_RUNNING) {
        report(world, guest);
        return;
    }
    gboolean fails = !g_array_index(world->hosts, Host, order->to - 1).has_session ||
                     (world->config.failures && world_chance(world, 20));
    if (guest->node == order->node && !fails) {
        guest->node = order->to;
        world_note(world, "migrated");
    }
    send_op_result(world, order, BERTH_EVENT_GUEST_MIGRATED, guest->node == order->to);
}

static void agent_checkpoint(World *world, const BerthCoreAction *order)
{
    Guest *guest = find_guest(world, &order->guest);
    if (guest == NULL) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_GONE, .guest = order->guest};
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
        send_result(world, order->node, event);
        return;
    }
    if (guest->found.phase != BERTH_FOUND_RUNNING) {
        report(world, guest);
        return;
    }
    if (!world->config.failures || !world_chance(world, 20))
        guest->is_saved = TRUE;
    send_op_result(world, order, BERTH_EVENT_GUEST_CHECKPOINTED, guest->is_saved);
}

/* What a guest uses: little mostly, and sometimes all at once. */
static void report_usage(World *world)
{
    if (world->guests->len == 0)
        return;
    const Guest *guest =
        &g_array_index(world->guests, Guest, world_pick(world, world->guests->len));
    if (guest->found.phase != BERTH_FOUND_RUNNING ||
        !g_array_index(world->hosts, Host, guest->node - 1).has_session)
        return;
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_REPORTED, .guest = guest->found.id};
    guint part = world_chance(world, 10) ? 100 : world_pick(world, 40);
    event.usage = (BerthCoreUsage){.cpu_milli = part * 20, .memory_used_mib = part * 20};
    driver_handle(world, &event);
    event = (BerthCoreEvent){.kind = BERTH_EVENT_NODE_REPORTED, .node = guest->node};
    event.node_usage.memory_pressure_permille = world_chance(world, 5) ? 300 : 0;
    driver_handle(world, &event);
}

static void storage_fence(World *world, const BerthCoreAction *order)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_FENCED, .guest = order->guest};
    if (world->config.failures && world_chance(world, 30)) {
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

/* Orders for one guest arrive in their order, others in any. */
static void deliver_order(World *world)
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
    switch (order.kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        agent_start(world, &order);
        break;
    case BERTH_ACTION_STOP:
        agent_stop(world, &order);
        break;
    case BERTH_ACTION_RELEASE:
        agent_release(world, &order);
        break;
    case BERTH_ACTION_FENCE:
        storage_fence(world, &order);
        break;
    case BERTH_ACTION_MIGRATE:
        agent_migrate(world, &order);
        break;
    case BERTH_ACTION_CHECKPOINT:
        agent_checkpoint(world, &order);
        break;
    case BERTH_ACTION_RESIZE:
        send_op_result(world, &order, BERTH_EVENT_GUEST_RESIZED, TRUE);
        break;
    default:
        g_error("action %d", order.kind);
    }
}

/* In any order; some come again. */
static void deliver_result(World *world)
{
    if (world->results->len == 0)
        return;
    guint at = world_pick(world, world->results->len);
    Result result = g_array_index(world->results, Result, at);
    if (!world->config.failures || !world_chance(world, 10))
        g_array_remove_index(world->results, at);
    driver_handle(world, &result.event);
}

/* --- guests and hosts ----------------------------------------------------------------------- */

static BerthCoreExit random_exit(World *world)
{
    const BerthCoreExit exits[] = {
        {0}, {0}, {0}, {.status = 3}, {.signal = 11}, {.signal = 9, .oom_kills = 1},
    };
    return exits[world_pick(world, G_N_ELEMENTS(exits))];
}

static void advance_guest(World *world)
{
    if (world->guests->len == 0)
        return;
    Guest *guest = &g_array_index(world->guests, Guest, world_pick(world, world->guests->len));
    if (guest->found.phase == BERTH_FOUND_STARTING) {
        if (world->config.failures && world_chance(world, 5)) {
            lose_guest(world, guest,
                       world_chance(world, 50) ? BERTH_REASON_BOOT_DEADLINE
                                               : BERTH_REASON_START_FAILED);
            return;
        }
        guest->found.phase = BERTH_FOUND_RUNNING;
        guest->found.start_usec = world->now_usec;
        report(world, guest);
    } else if (guest->found.phase == BERTH_FOUND_RUNNING) {
        if (world->config.failures && world_chance(world, 5))
            lose_guest(world, guest, BERTH_REASON_GUEST_CRASHED);
        else if (!guest->is_fenced && !guest->is_saved)
            end_guest(world, guest, random_exit(world));
    }
}

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

void world_break_session(World *world, guint32 node)
{
    g_array_index(world->hosts, Host, node - 1).has_session = FALSE;
    drop_messages_of(world, node);
}

static void leave(World *world)
{
    guint32 node = 1 + world_pick(world, world->hosts->len);
    if (!g_array_index(world->hosts, Host, node - 1).has_session)
        return;
    world_break_session(world, node);
    /* Sometimes the agent is back before the driver noticed. */
    if (world_chance(world, 80))
        driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT, .node = node});
}

static void reboot(World *world)
{
    guint32 node = 1 + world_pick(world, world->hosts->len);
    for (guint i = world->guests->len; i > 0; i--)
        if (g_array_index(world->guests, Guest, i - 1).node == node)
            g_array_remove_index(world->guests, i - 1);
    world_break_session(world, node);
    driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT, .node = node});
    world_note(world, "reboot");
}

static void join(World *world, guint32 node)
{
    Host *host = &g_array_index(world->hosts, Host, node - 1);
    if (host->has_session)
        return;
    host->has_session = TRUE;
    g_autoptr(GArray) found = g_array_new(FALSE, TRUE, sizeof(BerthFoundGuest));
    for (guint i = 0; i < world->guests->len; i++) {
        const Guest *guest = &g_array_index(world->guests, Guest, i);
        if (guest->node == node)
            g_array_append_val(found, guest->found);
    }
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = host->info;
    event.joined.guests = (const BerthFoundGuest *)(void *)found->data;
    event.joined.n_guests = found->len;
    driver_handle(world, &event);
}

/* --- time and people ------------------------------------------------------------------------ */

static void pass_time(World *world)
{
    world->now_usec += g_rand_int_range(world->random, 1, TIME_STEP_MAX_USEC);
    if (berth_core_next_timer_usec(world->core) <= world->now_usec)
        driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
}

static void ask(World *world, BerthEventKind kind)
{
    if (world->jobs->len == 0)
        return;
    BerthCoreEvent event = {.kind = kind};
    event.guest.job = 1 + world_pick(world, world->jobs->len);
    event.request.by_operator = world_chance(world, 50);
    driver_handle(world, &event);
}

static void change_storage(World *world)
{
    BerthEventKind kind =
        world_chance(world, 30) ? BERTH_EVENT_STORAGE_DOWN : BERTH_EVENT_STORAGE_UP;
    driver_handle(world, &(BerthCoreEvent){.kind = kind});
}

static void fail_somehow(World *world)
{
    switch (world_pick(world, 12)) {
    case 0:
        reboot(world);
        break;
    case 1:
        driver_restart(world);
        break;
    case 2:
        change_storage(world);
        break;
    case 3:
        /* The next event is handled, but the scheduler dies before or after its commit. */
        world->dies_at = world_chance(world, 50) ? DIES_BEFORE_COMMIT : DIES_AFTER_COMMIT;
        break;
    default:
        leave(world);
    }
}

void world_step(World *world)
{
    guint dice = world_pick(world, 100);
    if (dice < 10)
        driver_submit(world);
    else if (dice < 35)
        deliver_order(world);
    else if (dice < 60)
        deliver_result(world);
    else if (dice < 66)
        advance_guest(world);
    else if (dice < 72)
        report_usage(world);
    else if (dice < 82)
        pass_time(world);
    else if (dice < 92)
        join(world, 1 + world_pick(world, world->hosts->len));
    else if (dice < 94)
        ask(world, BERTH_EVENT_JOB_CANCELLED);
    else if (dice < 96)
        ask(world, BERTH_EVENT_JOB_HELD);
    else if (dice < 98)
        ask(world, BERTH_EVENT_JOB_RELEASED);
    else if (world->config.failures)
        fail_somehow(world);
}

void world_settle(World *world)
{
    world->config.failures = FALSE;
    world->dies_at = DIES_NEVER;
    driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_STORAGE_UP});
    for (guint64 job = 1; job <= world->jobs->len; job++) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_RELEASED, .guest = {.job = job}};
        event.request.by_operator = TRUE;
        driver_handle(world, &event);
    }
    for (guint round = 0; driver_has_unfinished(world) || world->guests->len > 0; round++) {
        if (round > 20000)
            g_error("seed %u: job %u never ends:\n%s", world->config.seed,
                    driver_first_unfinished(world), world->log->str);
        for (guint32 node = 1; node <= world->hosts->len; node++)
            join(world, node);
        deliver_order(world);
        deliver_result(world);
        advance_guest(world);
        if (round % 10 == 0)
            pass_time(world);
    }
}
