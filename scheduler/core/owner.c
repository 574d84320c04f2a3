/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the accounts and users: their running tasks, limits, and past usage, which decays by half
 * lives. All in integers, so that every compiler ranks alike.
 *
 * Invariant: what an account runs and has is the sum over those below it. */
#include "scheduler/core/owner.h"

#include "scheduler/core/effects.h"
#include "scheduler/core/learned.h"
#include "scheduler/core/mix.h"
#include "scheduler/core/order.h"

#define ONE 65536u

/* What is used in a step decays only after it: a half-life of steady use is counted 2 % too high. */
#define STEPS_PER_HALF_LIFE 16

struct CoreOwner {
    guint32 account;
    guint32 uid;
    gboolean is_user;
    CoreOwner *parent; /* NULL = the root */
    guint32 shares;
    guint64 child_shares; /* of those below that have a job */
    guint32 n_jobs;
    BerthCoreLimits limits;
    BerthCoreLimits running;
    guint64 rate_mib; /* what runs: dominant resource, in MiB */
    guint64 used;     /* MiB * seconds, up to USED_AT, decayed to DECAYED_AT */
    gint64 used_at_usec;
    gint64 decayed_at_usec; /* less than a 65536th of a half-life before it */
    guint64 told_at;        /* event that last reported what it has used */
    guint64 ranking;        /* in which FACTOR was reckoned */
    guint64 effective;      /* usage with its part of what those above use, in 1/65536 of all */
    guint64 share;          /* of all, in 1/65536 */
    guint32 factor;
    GPtrArray *parked; /* CoreClass that wait for its limits */
    struct {
        BerthCoreLimits starts;
        guint64 pass; /* in which they were planned */
    } planned[CORE_PLAN_N_PARTS];
};

/* --- arithmetic ----------------------------------------------------------------------------- */

/* 2^(-X / 65536), in 1/2^32. */
static guint64 exp2_neg(guint64 x)
{
    /* 2^(-1/2), 2^(-1/4), ... in 1/2^32. */
    static const guint32 roots[16] = {
        3037000500u, 3611622603u, 3938502376u, 4112874773u, 4202935003u, 4248701965u,
        4271771996u, 4283353945u, 4289156690u, 4292061010u, 4293513907u, 4294240540u,
        4294603903u, 4294785595u, 4294876445u, 4294921870u,
    };
    guint64 value = G_MAXUINT32;
    for (guint bit = 0; bit < 16; bit++)
        if (x & (0x8000u >> bit))
            value = value * roots[bit] >> 32;
    return x >> 16 < 32 ? value >> (x >> 16) : 0;
}

guint32 core_exp2_neg(guint64 x)
{
    return x >> 16 < 17 ? (guint32)((exp2_neg(x & 0xffff) + 0x8000u) >> 16 >> (x >> 16)) : 0;
}

/* By whole 65536ths of a half-life, however often it is looked at: what is left over counts at the
 * next time. */
static void decay(const BerthCore *core, CoreOwner *owner, gint64 until_usec)
{
    gint64 unit_usec = core->tunings[BERTH_TUNING_HALF_LIFE_USEC] >> 16;
    gint64 units = (until_usec - owner->decayed_at_usec) / unit_usec;
    guint64 kept = exp2_neg((guint64)units);
    if (units == 0)
        return;
    owner->used = (owner->used >> 32) * kept + ((owner->used & G_MAXUINT32) * kept >> 32);
    owner->decayed_at_usec += units * unit_usec;
}

/* Up to now: decayed, and with what ran meanwhile, which does not decay within a step. */
static void settle(const BerthCore *core, CoreOwner *owner)
{
    gint64 step_usec = core->tunings[BERTH_TUNING_HALF_LIFE_USEC] / STEPS_PER_HALF_LIFE;
    if (owner->rate_mib == 0)
        owner->used_at_usec = MAX(owner->used_at_usec, core->now_usec);
    while (owner->used_at_usec < core->now_usec) {
        gint64 passed_msec = MIN(core->now_usec - owner->used_at_usec, step_usec) / 1000;
        if (passed_msec == 0)
            break;
        owner->used_at_usec += passed_msec * 1000;
        decay(core, owner, owner->used_at_usec);
        owner->used += owner->rate_mib * (guint64)passed_msec / 1000;
    }
    decay(core, owner, owner->used_at_usec);
}

/* --- the tree ------------------------------------------------------------------------------- */

static guint owner_hash(gconstpointer data)
{
    const CoreOwner *owner = data;
    return core_mix_end(core_mix(core_mix(owner->is_user != FALSE, owner->account), owner->uid));
}

static gboolean owner_equal(gconstpointer data_a, gconstpointer data_b)
{
    const CoreOwner *a = data_a;
    const CoreOwner *b = data_b;
    return a->account == b->account && a->uid == b->uid && a->is_user == b->is_user;
}

static void owner_free(gpointer data)
{
    CoreOwner *owner = data;
    g_ptr_array_unref(owner->parked);
    g_free(owner);
}

void core_owners_init(BerthCore *core)
{
    core->owners = g_hash_table_new_full(owner_hash, owner_equal, owner_free, NULL);
}

void core_owners_clear(BerthCore *core)
{
    g_hash_table_unref(core->owners);
}

gsize core_owners_bytes(BerthCore *core)
{
    gsize bytes = 0;
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, core->owners);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const CoreOwner *owner = key;
        guint parked = owner->parked != NULL ? owner->parked->len : 0;
        bytes += sizeof *owner + CORE_SET_ENTRY_BYTES + parked * sizeof(gpointer);
    }
    return bytes;
}

static CoreOwner *get(BerthCore *core, guint32 account, guint32 uid, gboolean is_user)
{
    CoreOwner key = {.account = account, .uid = uid, .is_user = is_user};
    CoreOwner *owner = g_hash_table_lookup(core->owners, &key);
    if (owner != NULL)
        return owner;
    owner = g_memdup2(&key, sizeof key);
    owner->shares = 1;
    owner->used_at_usec = owner->decayed_at_usec = core->now_usec;
    owner->parked = g_ptr_array_new();
    g_hash_table_add(core->owners, owner);
    if (is_user || account != 0)
        owner->parent = get(core, is_user ? account : 0, 0, FALSE);
    return owner;
}

CoreOwner *core_owner_of_user(BerthCore *core, guint32 account, guint32 uid)
{
    return get(core, account, uid, TRUE);
}

static void count_shares(CoreOwner *owner, gboolean counts)
{
    if (owner->parent == NULL || owner->n_jobs == 0)
        return;
    if (counts)
        owner->parent->child_shares += owner->shares;
    else
        owner->parent->child_shares -= owner->shares;
}

/* All that waits for its limits is tried again. */
static void unpark(BerthCore *core, CoreOwner *owner)
{
    for (guint i = 0; i < owner->parked->len; i++)
        core_order_unpark(core, g_ptr_array_index(owner->parked, i));
    g_ptr_array_set_size(owner->parked, 0);
}

static void set(BerthCore *core, CoreOwner *owner, guint32 shares, const BerthCoreLimits *limits)
{
    count_shares(owner, FALSE);
    owner->shares = MAX(shares, 1);
    count_shares(owner, TRUE);
    owner->limits = *limits;
    unpark(core, owner);
}

void core_owner_set_user(BerthCore *core, guint32 account, guint32 uid, guint32 shares,
                         const BerthCoreLimits *limits)
{
    set(core, get(core, account, uid, TRUE), shares, limits);
}

static void add_to(CoreOwner *above, const CoreOwner *owner, gint sign)
{
    for (; above != NULL; above = above->parent) {
        count_shares(above, FALSE);
        above->n_jobs += (guint32)sign * owner->n_jobs;
        count_shares(above, TRUE);
        above->running.running_tasks += (guint32)sign * owner->running.running_tasks;
        above->running.vcpus += (guint32)sign * owner->running.vcpus;
        above->running.memory_mib += (guint64)(gint64)sign * owner->running.memory_mib;
        above->rate_mib += (guint64)(gint64)sign * owner->rate_mib;
    }
}

/* From now on something else runs below OWNER. */
static void settle_up(const BerthCore *core, CoreOwner *owner)
{
    for (; owner != NULL; owner = owner->parent)
        settle(core, owner);
}

gboolean core_owner_set_account(BerthCore *core, guint32 account, guint32 parent, guint32 shares,
                                const BerthCoreLimits *limits)
{
    CoreOwner *owner = get(core, account, 0, FALSE);
    CoreOwner *above = account != 0 ? get(core, parent, 0, FALSE) : NULL;
    for (const CoreOwner *up = above; up != NULL; up = up->parent)
        if (up == owner)
            return FALSE;
    if (owner->parent != above) {
        settle_up(core, owner->parent);
        settle_up(core, above);
        /* Who waits there for what runs below OWNER would wait for ever. */
        for (CoreOwner *up = owner->parent; up != NULL; up = up->parent)
            unpark(core, up);
        count_shares(owner, FALSE);
        add_to(owner->parent, owner, -1);
        owner->parent = above;
        add_to(owner->parent, owner, 1);
        count_shares(owner, TRUE);
    }
    set(core, owner, shares, limits);
    return TRUE;
}

/* --- what they have and run ------------------------------------------------------------------ */

gboolean core_owner_may_add_job(const CoreOwner *owner)
{
    for (const CoreOwner *up = owner; up != NULL; up = up->parent)
        if (up->limits.jobs > 0 && up->n_jobs >= up->limits.jobs)
            return FALSE;
    return TRUE;
}

void core_owner_add_job(CoreOwner *owner)
{
    for (CoreOwner *up = owner; up != NULL; up = up->parent) {
        up->n_jobs++;
        if (up->n_jobs == 1)
            count_shares(up, TRUE);
    }
}

void core_owner_remove_job(CoreOwner *owner)
{
    for (CoreOwner *up = owner; up != NULL; up = up->parent) {
        if (up->n_jobs == 1)
            count_shares(up, FALSE);
        up->n_jobs--;
    }
}

static BerthCoreUse use_of(const CoreOwner *owner)
{
    return (BerthCoreUse){.account = owner->account,
                          .uid = owner->uid,
                          .is_user = owner->is_user,
                          .used_mib_sec = owner->used,
                          .at_usec = owner->used_at_usec};
}

/* The dominant resource, so that neither memory nor vCPUs come free. */
static guint64 rate_of(const BerthCore *core, CoreSize size, guint32 guests)
{
    return guests * MAX((guint64)size.vcpus << core->nodes.vcpu_shift, size.memory_mib);
}

/* Nothing is told of what is put back from the store. */
static void tell(BerthCore *core, CoreOwner *owner)
{
    if (core->effects == NULL || owner->told_at == core->event)
        return;
    owner->told_at = core->event;
    BerthCoreUse use = use_of(owner);
    g_array_append_val(core->effects->uses, use);
}

/* What each of its guests has, and is to have where it is being moved. */
static CoreSize held_by(const CoreTask *task)
{
    const CoreGuest *guest = &task->guests[0];
    return guest->op == BERTH_OP_MIGRATING ? core_size_max(guest->size, guest->to_size)
                                           : guest->size;
}

/* TASK counts SIZE from now on, where it counted another; N_MORE of tasks. */
static void count(BerthCore *core, CoreTask *task, CoreSize size, gint n_more)
{
    CoreSize was = task->counted;
    guint64 rate_mib = rate_of(core, size, task->n_guests);
    gboolean is_less = n_more < 0 || size.vcpus < was.vcpus || size.memory_mib < was.memory_mib;
    for (CoreOwner *up = task->job->class->shape.owner; up != NULL; up = up->parent) {
        settle(core, up);
        tell(core, up);
        up->running.running_tasks += (guint32)n_more;
        up->running.vcpus += task->n_guests * (size.vcpus - was.vcpus);
        up->running.memory_mib += task->n_guests * (size.memory_mib - was.memory_mib);
        up->rate_mib += rate_mib - task->rate_mib;
        if (is_less)
            unpark(core, up);
    }
    task->counted = size;
    task->rate_mib = rate_mib;
}

void core_owner_start(BerthCore *core, CoreTask *task)
{
    count(core, task, held_by(task), 1);
}

void core_owner_recount(BerthCore *core, CoreTask *task)
{
    if (task->counted.vcpus > 0 && !core_size_equal(task->counted, held_by(task)))
        count(core, task, held_by(task), 0);
}

void core_owner_end(BerthCore *core, CoreTask *task)
{
    count(core, task, (CoreSize){0, 0}, -1);
}

static guint64 left_of(guint64 limit, guint64 running)
{
    return limit == 0 ? G_MAXUINT32 : limit - MIN(limit, running);
}

CoreSize core_owner_left(const CoreOwner *owner)
{
    CoreSize left = {G_MAXUINT32, G_MAXUINT32};
    for (const CoreOwner *up = owner; up != NULL; up = up->parent) {
        left.vcpus = MIN(left.vcpus, (guint32)left_of(up->limits.vcpus, up->running.vcpus));
        left.memory_mib =
            MIN(left.memory_mib, left_of(up->limits.memory_mib, up->running.memory_mib));
    }
    return left;
}

gboolean core_owner_counts(const CoreTask *task)
{
    gboolean is_up = task->record.phase != BERTH_GUEST_NONE;
    return core_size_equal(task->counted, is_up ? held_by(task) : (CoreSize){0, 0});
}

BerthCoreLimits core_owner_all_running(BerthCore *core)
{
    return get(core, 0, 0, FALSE)->running;
}

/* GUESTS of SIZE each, beside what it runs and what is PLANNED. */
static gboolean is_beyond(const CoreOwner *owner, const BerthCoreLimits *planned, CoreSize size,
                          guint32 guests)
{
    const BerthCoreLimits *limits = &owner->limits;
    const BerthCoreLimits *running = &owner->running;
    return (limits->running_tasks > 0 &&
            running->running_tasks + planned->running_tasks >= limits->running_tasks) ||
           (limits->vcpus > 0 &&
            running->vcpus + planned->vcpus + guests * size.vcpus > limits->vcpus) ||
           (limits->memory_mib > 0 &&
            running->memory_mib + planned->memory_mib + guests * size.memory_mib >
                limits->memory_mib);
}

static const BerthCoreLimits none;

CoreOwner *core_owner_hinders(CoreOwner *owner, CoreSize size, guint32 guests)
{
    for (CoreOwner *up = owner; up != NULL; up = up->parent)
        if (is_beyond(up, &none, size, guests))
            return up;
    return NULL;
}

void core_owner_plan(const BerthCore *core, const CoreClass *class, CorePlanPart part)
{
    const CoreShape *shape = &class->shape;
    for (CoreOwner *up = shape->owner; up != NULL; up = up->parent) {
        if (up->planned[part].pass != core->pass)
            up->planned[part].starts = none;
        up->planned[part].pass = core->pass;
        up->planned[part].starts.running_tasks++;
        up->planned[part].starts.vcpus += shape->guests * shape->start.vcpus;
        up->planned[part].starts.memory_mib += shape->guests * shape->start.memory_mib;
    }
}

gboolean core_owner_hinders_plan(const BerthCore *core, const CoreClass *class, CorePlanPart part)
{
    const CoreShape *shape = &class->shape;
    for (const CoreOwner *up = shape->owner; up != NULL; up = up->parent)
        if (is_beyond(up, up->planned[part].pass == core->pass ? &up->planned[part].starts : &none,
                      shape->start, shape->guests))
            return TRUE;
    return FALSE;
}

void core_owner_park(CoreOwner *owner, CoreClass *class)
{
    g_ptr_array_add(owner->parked, class);
}

void core_owner_forget_class(CoreOwner *owner, CoreClass *class)
{
    g_ptr_array_remove(owner->parked, class);
}

guint32 core_owner_uid(const CoreOwner *owner)
{
    return owner->uid;
}

guint32 core_owner_account(const CoreOwner *owner)
{
    return owner->account;
}

/* --- fair share ----------------------------------------------------------------------------- */

static void reckon(BerthCore *core, CoreOwner *owner, const CoreOwner *root)
{
    if (owner->ranking == core->ranking)
        return;
    owner->ranking = core->ranking;
    settle(core, owner);
    if (owner->parent == NULL) {
        owner->effective = owner->share = owner->factor = ONE;
        return;
    }
    reckon(core, owner->parent, root);
    const CoreOwner *parent = owner->parent;
    guint64 of_shares = owner->shares * (guint64)ONE / MAX(parent->child_shares, owner->shares);
    guint64 own = owner->used / MAX(root->used >> 16, 1);
    own = MIN(own, parent->effective);
    owner->share = parent->share * of_shares >> 16;
    owner->effective = own + ((parent->effective - own) * of_shares >> 16);
    owner->factor = core_exp2_neg((owner->effective << 16) / MAX(owner->share, 1));
}

guint32 core_owner_factor(BerthCore *core, CoreOwner *owner)
{
    CoreOwner *root = get(core, 0, 0, FALSE);
    settle(core, root);
    reckon(core, owner, root);
    return owner->factor;
}

/* --- from the store and back ---------------------------------------------------------------- */

void berth_core_restore_use(BerthCore *core, const BerthCoreUse *use)
{
    CoreOwner *owner = get(core, use->account, use->is_user ? use->uid : 0, use->is_user);
    owner->used = use->used_mib_sec;
    owner->used_at_usec = owner->decayed_at_usec = use->at_usec;
}

gboolean berth_core_get_use(BerthCore *core, guint32 account, guint32 uid, gboolean is_user,
                            BerthCoreUse *out_use)
{
    const CoreOwner key = {.account = account, .uid = uid, .is_user = is_user};
    const CoreOwner *owner = g_hash_table_lookup(core->owners, &key);
    if (owner == NULL)
        return FALSE;
    CoreOwner settled = *owner; /* looking changes nothing */
    settle(core, &settled);
    *out_use = use_of(&settled);
    return TRUE;
}

void core_owners_resume(BerthCore *core)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, core->owners);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        CoreOwner *owner = key;
        if (owner->used_at_usec == 0)
            owner->used_at_usec = owner->decayed_at_usec = core->now_usec;
    }
}
