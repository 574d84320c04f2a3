/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the truth of the nodes: which guests are on them, what these want, and what they get.
 *
 * CPU: weighted max-min fairness. A guest's weight is its vCPUs, times 50 if it is guaranteed, as
 * nodes have it. A guest that gets less than it wants is slower by as much.
 * Memory: guests hold what they want while it fits. When it does not, nobody loses what he holds;
 * what is left goes to guaranteed guests that want more, in order of their arrival on the node,
 * then to the others. A guest that does not get all the memory that it wants stands still; so does
 * one that wants more than its balloon leaves it.
 * Page cache: a running guest fills a share of what it reserved with it, besides what it uses, as
 * far as its node has memory that nobody else holds. It takes host memory like all else, and gives none
 * back to others but by a balloon or by leaving; the guest itself needs it less than anything. That cache
 * makes jobs faster is not modelled.
 *
 * Invariants: what is served, held and cached on a node never exceeds its capacity; sums and totals are
 * those of the guests. */
#include "config.h"

#include "scheduler/sim/state.h"

#define GUARANTEED_WEIGHT (BERTH_CPU_SHARES / BERTH_CPU_SHARES_IN_SLACK)
#define PPM               1000000u

static guint64 capacity_milli(const Sim *sim, const SimNode *node)
{
    return (guint64)sim_machine_vcpus(&sim->machine, node->handle) * 1000;
}

static guint64 capacity_mib(const Sim *sim, const SimNode *node)
{
    return sim_machine_mib(&sim->machine, node->handle);
}

void sim_world_init(Sim *sim)
{
    sim->nodes = g_new0(SimNode, sim->machine.nodes);
    for (guint32 i = 0; i < sim->machine.nodes; i++) {
        sim->nodes[i].handle = i + 1;
        sim->nodes[i].is_up = TRUE;
        sim->nodes[i].guests = g_ptr_array_new();
        sim->nodes[i].incoming = g_ptr_array_new();
    }
}

void sim_world_clear(Sim *sim)
{
    for (guint32 i = 0; sim->nodes != NULL && i < sim->machine.nodes; i++) {
        g_ptr_array_unref(sim->nodes[i].guests);
        g_ptr_array_unref(sim->nodes[i].incoming);
    }
    g_clear_pointer(&sim->nodes, g_free);
}

SimNode *sim_world_node(Sim *sim, guint32 handle)
{
    g_assert(handle >= 1 && handle <= sim->machine.nodes);
    return &sim->nodes[handle - 1];
}

/* --- totals ------------------------------------------------------------------------------------- */

static void add(guint64 *total, guint64 amount, gboolean plus)
{
    g_assert(plus || *total >= amount);
    *total += plus ? amount : (guint64)0 - amount;
}

/* What GUEST now is goes into the totals, or out of them. */
static void count(Sim *sim, SimGuest *guest, gboolean plus)
{
    SimTotals *totals = &sim->totals;
    add(&totals->cpu_served_milli, guest->served_milli, plus);
    add(&totals->cpu_wanted_milli, guest->want.cpu_milli, plus);
    add(&totals->memory_held_mib, guest->held_mib, plus);
    if (guest->is_opportunistic) {
        add(&totals->slack_vcpus, guest->size.vcpus, plus);
        return;
    }
    add(&totals->reserved_vcpus, guest->size.vcpus, plus);
    add(&totals->reserved_mib, guest->size.memory_mib, plus);
    add(&totals->guaranteed_wanted_milli, guest->want.cpu_milli, plus);
    add(&totals->guaranteed_short_milli, guest->want.cpu_milli - guest->served_milli, plus);
    add(&totals->guaranteed_wanted_mib, guest->want.memory_mib, plus);
    add(&totals->guaranteed_short_mib, guest->want.memory_mib - guest->held_mib, plus);
}

/* --- who gets what ------------------------------------------------------------------------------ */

static guint32 rate_of(const SimGuest *guest)
{
    if (guest->phase != SIM_GUEST_RUNNING || guest->is_frozen ||
        guest->held_mib < guest->want.memory_mib)
        return 0;
    if (guest->want.cpu_milli == 0)
        return PPM;
    return (guint32)((guint64)guest->served_milli * PPM / guest->want.cpu_milli);
}

static void give(Sim *sim, SimGuest *guest, guint32 served_milli, guint64 held_mib)
{
    guint32 rate_ppm = guest->rate_ppm;
    if (guest->served_milli != served_milli || guest->held_mib != held_mib) {
        sim_reports_count(sim, guest);
        count(sim, guest, FALSE);
        guest->served_milli = served_milli;
        guest->held_mib = held_mib;
        count(sim, guest, TRUE);
    }
    sim_run_set_rate(sim, guest, rate_of(guest));
    if (guest->rate_ppm != rate_ppm)
        sim_reports_changed(sim, guest);
}

static guint64 weight_of(const SimGuest *guest)
{
    return (guint64)guest->size.vcpus * (guest->is_opportunistic ? 1 : GUARANTEED_WEIGHT);
}

/* Rounds of: whoever wants no more than his share of what is left gets it, and leaves the rest to
 * the others. */
static void share_cpu(const Sim *sim, const SimNode *node, guint32 *out_milli)
{
    guint64 left = capacity_milli(sim, node), weights = 0;
    gboolean changed = TRUE;
    for (guint i = 0; i < node->guests->len; i++) {
        const SimGuest *guest = g_ptr_array_index(node->guests, i);
        out_milli[i] = guest->want.cpu_milli == 0 ? 0 : G_MAXUINT32;
        weights += out_milli[i] != 0 ? weight_of(guest) : 0;
    }
    while (changed) {
        changed = FALSE;
        guint64 round_left = left, round_weights = weights;
        for (guint i = 0; i < node->guests->len; i++) {
            const SimGuest *guest = g_ptr_array_index(node->guests, i);
            if (out_milli[i] != G_MAXUINT32 ||
                guest->want.cpu_milli * round_weights > round_left * weight_of(guest))
                continue;
            out_milli[i] = guest->want.cpu_milli;
            left -= guest->want.cpu_milli;
            weights -= weight_of(guest);
            changed = TRUE;
        }
    }
    for (guint i = 0; i < node->guests->len; i++)
        if (out_milli[i] == G_MAXUINT32)
            out_milli[i] =
                (guint32)(left * weight_of(g_ptr_array_index(node->guests, i)) / weights);
}

guint64 sim_world_may_hold_mib(const SimGuest *guest)
{
    return MIN(guest->want.memory_mib, guest->size.memory_mib - guest->balloon_mib);
}

static guint64 top_up(const SimGuest *guest, guint64 held_mib, guint64 *left)
{
    guint64 more = MIN(sim_world_may_hold_mib(guest) - held_mib, *left);
    *left -= more;
    return held_mib + more;
}

static void share_memory(const Sim *sim, const SimNode *node, guint64 *out_mib)
{
    guint64 taken = sim->overhead_mib * (node->guests->len + node->incoming->len);
    for (guint i = 0; i < node->incoming->len; i++)
        taken += ((const SimGuest *)g_ptr_array_index(node->incoming, i))->copied_mib;
    for (guint i = 0; i < node->guests->len; i++) {
        const SimGuest *guest = g_ptr_array_index(node->guests, i);
        out_mib[i] = MIN(guest->held_mib, sim_world_may_hold_mib(guest));
        taken += out_mib[i] + guest->cache_mib;
    }
    guint64 left = capacity_mib(sim, node) - MIN(taken, capacity_mib(sim, node));
    for (guint opportunistic = 0; opportunistic <= 1; opportunistic++) {
        for (guint i = 0; i < node->guests->len; i++) {
            const SimGuest *guest = g_ptr_array_index(node->guests, i);
            if (guest->is_opportunistic == (gboolean)opportunistic)
                out_mib[i] = top_up(guest, out_mib[i], &left);
        }
    }
}

static gboolean fits(const Sim *sim, const SimNode *node)
{
    return node->wanted_milli <= capacity_milli(sim, node) &&
           node->wanted_mib + node->cache_mib <= capacity_mib(sim, node);
}

/* --- page cache --------------------------------------------------------------------------------- */

guint64 sim_world_available_mib(const Sim *sim, const SimNode *node)
{
    guint64 taken = sim->overhead_mib * (node->guests->len + node->incoming->len) + node->cache_mib;
    for (guint i = 0; i < node->guests->len; i++)
        taken += ((const SimGuest *)g_ptr_array_index(node->guests, i))->held_mib;
    for (guint i = 0; i < node->incoming->len; i++)
        taken += ((const SimGuest *)g_ptr_array_index(node->incoming, i))->copied_mib;
    return capacity_mib(sim, node) - MIN(taken, capacity_mib(sim, node));
}

static void set_cache(SimNode *node, SimGuest *guest, guint64 cache_mib)
{
    node->cache_mib += cache_mib - guest->cache_mib;
    guest->cache_mib = cache_mib;
}

/* A guest that needs all of its memory drops its cache. */
static void trim_cache(SimNode *node, SimGuest *guest)
{
    guint64 rest = guest->size.memory_mib - guest->balloon_mib - sim_world_may_hold_mib(guest);
    if (guest->cache_mib > rest || guest->want.memory_mib == 0)
        set_cache(node, guest, guest->want.memory_mib > 0 ? rest : 0);
}

static void fill_cache(Sim *sim, SimNode *node, SimGuest *guest)
{
    guint64 share = (guint64)sim->costs.values[SIM_COST_CACHE_PERMILLE];
    if (share == 0 || guest->phase != SIM_GUEST_RUNNING || guest->is_frozen)
        return;
    guint64 rest = guest->size.memory_mib - guest->balloon_mib - sim_world_may_hold_mib(guest);
    guint64 wanted = MIN(guest->size.memory_mib * share / 1000, rest);
    if (wanted > guest->cache_mib)
        set_cache(node, guest, MIN(wanted, guest->cache_mib + sim_world_available_mib(sim, node)));
}

static void share_out(Sim *sim, SimNode *node)
{
    guint n = node->guests->len;
    g_autofree guint32 *milli = g_new(guint32, n + 1);
    g_autofree guint64 *mib = g_new(guint64, n + 1);
    gboolean was_contended = node->is_contended;
    share_cpu(sim, node, milli);
    share_memory(sim, node, mib);
    node->is_contended = !fits(sim, node);
    for (guint i = 0; i < n; i++)
        give(sim, g_ptr_array_index(node->guests, i), milli[i], mib[i]);
    if (node->is_contended && !was_contended)
        sim_reports_pressure(sim, node);
}

/* GUEST is on NODE, and what it wants is new. */
static void settle(Sim *sim, SimNode *node, SimGuest *guest)
{
    if (!node->is_contended && fits(sim, node))
        give(sim, guest, guest->want.cpu_milli, sim_world_may_hold_mib(guest));
    else
        share_out(sim, node);
    fill_cache(sim, node, guest);
}

static SimDemand want_of(const SimGuest *guest)
{
    SimDemand want = guest->run->demand;
    if (guest->phase == SIM_GUEST_ABSENT || guest->phase == SIM_GUEST_BOOTING ||
        guest->phase == SIM_GUEST_STOPPED)
        return (SimDemand){0, 0};
    if (guest->phase == SIM_GUEST_PAUSED || guest->is_frozen)
        want.cpu_milli = 0;
    want.cpu_milli = MIN(want.cpu_milli, guest->size.vcpus * 1000);
    want.memory_mib = MIN(want.memory_mib, guest->size.memory_mib);
    return want;
}

void sim_world_update(Sim *sim, SimGuest *guest)
{
    if (guest->node == 0)
        return;
    SimNode *node = sim_world_node(sim, guest->node);
    SimDemand want = want_of(guest);
    if (want.cpu_milli == guest->want.cpu_milli && want.memory_mib == guest->want.memory_mib) {
        sim_run_set_rate(sim, guest, rate_of(guest));
        return;
    }
    sim_reports_count(sim, guest);
    count(sim, guest, FALSE);
    node->wanted_milli += (guint64)want.cpu_milli - guest->want.cpu_milli;
    node->wanted_mib += want.memory_mib - guest->want.memory_mib;
    guest->want = want;
    guest->served_milli = MIN(guest->served_milli, want.cpu_milli);
    guest->held_mib = MIN(guest->held_mib, want.memory_mib);
    count(sim, guest, TRUE);
    trim_cache(node, guest);
    settle(sim, node, guest);
    sim_reports_changed(sim, guest);
}

/* A balloon takes no memory that is in use. */
static void set_balloon(Sim *sim, SimGuest *guest, guint64 balloon_mib)
{
    SimNode *node = sim_world_node(sim, guest->node);
    guint64 most = guest->size.memory_mib - guest->held_mib;
    guint64 before = guest->balloon_mib;
    guest->balloon_mib = MIN(balloon_mib, most);
    if (guest->balloon_mib == before)
        return;
    trim_cache(node, guest);
    settle(sim, node, guest);
    sim_reports_changed(sim, guest);
}

/* --- where -------------------------------------------------------------------------------------- */

static void attach(Sim *sim, SimGuest *guest, guint32 handle)
{
    SimNode *node = sim_world_node(sim, handle);
    guest->node = handle;
    guest->place = node->guests->len;
    guest->placed_usec = sim->now_usec;
    g_ptr_array_add(node->guests, guest);
    node->wanted_milli += guest->want.cpu_milli;
    node->wanted_mib += guest->want.memory_mib + sim->overhead_mib;
    if (!fits(sim, node))
        share_out(sim, node);
}

static void tell_stay(Sim *sim, const SimGuest *guest)
{
    const SimHooks *hooks = &sim->config->hooks;
    SimStay stay = {.job = &guest->run->job,
                    .guest = guest->index,
                    .node = guest->node,
                    .vcpus = guest->size.vcpus,
                    .from_usec = guest->placed_usec,
                    .to_usec = sim->now_usec,
                    .is_opportunistic = guest->is_opportunistic,
                    .origin = guest->origin,
                    .is_checkpointed = guest->is_checkpointed};
    if (hooks->stay != NULL && stay.to_usec > stay.from_usec)
        hooks->stay(&stay, hooks->user_data);
}

/* From now on it has the weight of a guest that is backed. */
static void promote(Sim *sim, SimGuest *guest)
{
    tell_stay(sim, guest);
    guest->placed_usec = sim->now_usec;
    guest->origin = SIM_STAY_PROMOTED;
    sim_reports_count(sim, guest);
    count(sim, guest, FALSE);
    guest->is_opportunistic = FALSE;
    count(sim, guest, TRUE);
    if (sim_world_node(sim, guest->node)->is_contended)
        share_out(sim, sim_world_node(sim, guest->node));
}

void sim_world_resize(Sim *sim, SimGuest *guest, const BerthCoreAction *action)
{
    count(sim, guest, FALSE);
    guest->size = action->resources;
    count(sim, guest, TRUE);
    if (guest->is_opportunistic && !action->is_opportunistic)
        promote(sim, guest);
    set_balloon(sim, guest, action->balloon_mib);
    sim_world_update(sim, guest);
}

/* Others keep their order: it decides who gets memory first. */
static void detach(Sim *sim, SimGuest *guest)
{
    SimNode *node = sim_world_node(sim, guest->node);
    tell_stay(sim, guest);
    g_ptr_array_remove_index(node->guests, guest->place);
    for (guint i = guest->place; i < node->guests->len; i++)
        ((SimGuest *)g_ptr_array_index(node->guests, i))->place = i;
    node->wanted_milli -= guest->want.cpu_milli;
    node->wanted_mib -= guest->want.memory_mib + sim->overhead_mib;
    set_cache(node, guest, 0);
    guest->node = 0;
    if (node->is_contended)
        share_out(sim, node);
}

void sim_world_place(Sim *sim, SimGuest *guest, guint32 node, gboolean is_opportunistic)
{
    g_assert(guest->node == 0 && guest->want.memory_mib == 0);
    guest->is_opportunistic = is_opportunistic;
    guest->origin = SIM_STAY_STARTED;
    guest->is_checkpointed = FALSE;
    guest->balloon_mib = 0;
    count(sim, guest, TRUE);
    if (guest->run->n_placed++ == 0) {
        sim->totals.waiting--;
        sim->totals.running++;
    }
    attach(sim, guest, node);
}

void sim_world_remove(Sim *sim, SimGuest *guest)
{
    g_assert(guest->node != 0);
    guest->phase = SIM_GUEST_ABSENT;
    guest->is_frozen = FALSE;
    if (guest->to != 0)
        sim_world_end_move(sim, guest, FALSE, guest->is_opportunistic);
    sim_world_update(sim, guest);
    detach(sim, guest);
    count(sim, guest, FALSE);
    if (--guest->run->n_placed == 0) {
        sim->totals.running--;
        sim->totals.waiting++;
    }
}

void sim_world_begin_move(Sim *sim, SimGuest *guest, guint32 to)
{
    SimNode *node = sim_world_node(sim, to);
    guest->to = to;
    guest->copied_mib = guest->want.memory_mib + guest->cache_mib;
    g_ptr_array_add(node->incoming, guest);
    sim_world_node(sim, guest->node)->n_transfers++;
    node->n_transfers++;
    /* What it grows by meanwhile comes with its arrival. */
    node->wanted_mib += guest->copied_mib + sim->overhead_mib;
    if (!fits(sim, node))
        share_out(sim, node);
}

void sim_world_end_move(Sim *sim, SimGuest *guest, gboolean moved, gboolean is_opportunistic)
{
    guint32 to = guest->to;
    SimNode *node = sim_world_node(sim, to);
    sim_world_node(sim, guest->node)->n_transfers--;
    node->n_transfers--;
    g_ptr_array_remove(node->incoming, guest);
    node->wanted_mib -= guest->copied_mib + sim->overhead_mib;
    guest->to = 0;
    if (moved) {
        detach(sim, guest);
        sim_reports_count(sim, guest);
        count(sim, guest, FALSE);
        guest->is_opportunistic = is_opportunistic;
        guest->served_milli = 0;
        guest->held_mib = 0;
        count(sim, guest, TRUE);
        guest->origin = SIM_STAY_MOVED;
        attach(sim, guest, to);
        settle(sim, node, guest);
    }
    if (node->is_contended)
        share_out(sim, node);
}

/* --- checks ------------------------------------------------------------------------------------- */

static void check_node(Sim *sim, SimNode *node, SimTotals *sums)
{
    guint64 wanted_milli = 0, served = 0, held = 0, cached = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const SimGuest *guest = g_ptr_array_index(node->guests, i);
        g_assert_cmpuint(guest->node, ==, node->handle);
        g_assert_cmpuint(guest->place, ==, i);
        g_assert_cmpuint(guest->served_milli, <=, guest->want.cpu_milli);
        g_assert_cmpuint(guest->held_mib, <=, sim_world_may_hold_mib(guest));
        g_assert_cmpuint(guest->held_mib + guest->cache_mib + guest->balloon_mib, <=,
                         guest->size.memory_mib);
        g_assert_cmpuint(guest->want.cpu_milli, <=, (guint64)guest->size.vcpus * 1000);
        g_assert_cmpuint(guest->want.memory_mib, <=, guest->size.memory_mib);
        wanted_milli += guest->want.cpu_milli;
        served += guest->served_milli;
        held += guest->held_mib;
        cached += guest->cache_mib;
        sums->reserved_vcpus += guest->is_opportunistic ? 0 : guest->size.vcpus;
        sums->reserved_mib += guest->is_opportunistic ? 0 : guest->size.memory_mib;
    }
    g_assert_cmpuint(wanted_milli, ==, node->wanted_milli);
    g_assert_cmpuint(served, <=, capacity_milli(sim, node));
    g_assert_cmpuint(held + cached, <=, capacity_mib(sim, node));
    g_assert_cmpuint(cached, ==, node->cache_mib);
    g_assert_true(node->is_up || node->guests->len == 0);
    sums->cpu_served_milli += served;
    sums->memory_held_mib += held;
}

void sim_world_check(Sim *sim)
{
    SimTotals sums = {0};
    for (guint32 i = 0; i < sim->machine.nodes; i++)
        check_node(sim, &sim->nodes[i], &sums);
    g_assert_cmpuint(sums.cpu_served_milli, ==, sim->totals.cpu_served_milli);
    g_assert_cmpuint(sums.memory_held_mib, ==, sim->totals.memory_held_mib);
    g_assert_cmpuint(sums.reserved_vcpus, ==, sim->totals.reserved_vcpus);
    g_assert_cmpuint(sums.reserved_mib, ==, sim->totals.reserved_mib);
    g_assert_cmpuint(sim->totals.waiting + sim->totals.running, ==, g_hash_table_size(sim->runs));
}
