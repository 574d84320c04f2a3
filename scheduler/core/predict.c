/* SPDX-License-Identifier: Apache-2.0 */
/* PREDICT: what a guest will need, from what it is measured to use and what its siblings needed.
 *
 * A guest's prediction is a peak with a margin: it jumps up to what is measured and sinks towards it
 * by half lives (as in Autopilot: Rzadca et al., EuroSys 2020), and it is never more than the
 * reservation. Until a new guest has settled it does not fall below what its siblings needed, else of
 * vCPUs what others of its user did, or its reservation. Until it is measured for the first time its
 * memory is taken at its reservation whatever they needed: one that is unlike them may take all of it at
 * once, and what is too little then is short for longer than vCPUs, which are shared out anew at once. For
 * a node, the peaks of guests do not coincide: the share of their sum that is used at once is predicted in
 * the same way (as in Bashir et al., Take it to the limit, EuroSys 2021). */
#include "scheduler/core/predict.h"

#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/job.h"
#include "scheduler/core/learned.h"
#include "scheduler/core/mix.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/owner.h"

#define ONE 65536u

/* What the siblings that ended needed at most; or what the jobs of a user, or of anybody, that reserve so
 * many vCPUs needed of these on average: NAME and all memory are 0 then. */
typedef struct {
    guint32 uid; /* with name and reservation: the key */
    guint64 name;
    CoreSize reserved;
    guint32 n;
    CoreNeeds peak;
    GList link; /* in BerthCore.prior_ages */
} Prior;

static guint prior_hash(gconstpointer data)
{
    const Prior *prior = data;
    guint64 hash = core_mix(core_mix(0, prior->uid), prior->name);
    hash = core_mix(core_mix(hash, prior->reserved.vcpus), prior->reserved.memory_mib);
    return core_mix_end(hash);
}

static gboolean prior_equal(gconstpointer data_a, gconstpointer data_b)
{
    const Prior *a = data_a;
    const Prior *b = data_b;
    return a->uid == b->uid && a->name == b->name && a->reserved.vcpus == b->reserved.vcpus &&
           a->reserved.memory_mib == b->reserved.memory_mib;
}

void core_predict_init(BerthCore *core)
{
    core->priors = g_hash_table_new_full(prior_hash, prior_equal, g_free, NULL);
    g_queue_init(&core->prior_ages);
}

void core_predict_clear(BerthCore *core)
{
    g_hash_table_unref(core->priors);
}

gsize core_predict_bytes(const BerthCore *core)
{
    return g_hash_table_size(core->priors) * (sizeof(Prior) + CORE_SET_ENTRY_BYTES);
}

/* Tasks of an array are siblings; so are jobs of one user and name. */
static gboolean key_of(const CoreJob *job, Prior *out_key)
{
    *out_key = (Prior){.uid = core_owner_uid(job->class->shape.owner),
                       .name = job->name != 0 ? job->name : job->id,
                       .reserved = job->class->shape.size};
    return job->name != 0 || job->array_size > 1;
}

/* Of all jobs of UID that reserve as many vCPUs as JOB; it is no family's. */
static Prior user_key_of(const CoreJob *job, guint32 uid)
{
    return (Prior){.uid = uid, .reserved = {job->class->shape.size.vcpus, 0}};
}

static CoreNeeds whole(CoreSize size)
{
    return (CoreNeeds){size.vcpus * 1000u, size.memory_mib};
}

static CoreNeeds at_most(CoreNeeds a, CoreNeeds b)
{
    return (CoreNeeds){MIN(a.cpu_milli, b.cpu_milli), MIN(a.memory_mib, b.memory_mib)};
}

static CoreNeeds with_margin(const BerthCore *core, CoreNeeds needs)
{
    guint64 margin = 1000 + (guint64)core->tunings[BERTH_TUNING_PEAK_MARGIN_PERMILLE];
    return (CoreNeeds){(guint32)(needs.cpu_milli * margin / 1000),
                       needs.memory_mib * margin / 1000};
}

/* By this core, or by the one before it. */
static gboolean is_measured(const CoreGuest *guest)
{
    return guest->reports > 0 || guest->peak.memory_mib > 0;
}

/* It has been measured, and has all of its memory at once when it is restored. */
static gboolean goes_on(const CoreTask *task)
{
    return task != NULL && task->record.checkpoint_epoch != 0 && is_measured(&task->guests[0]);
}

/* NULL = too few of them have ended. */
static const Prior *find_prior(const BerthCore *core, const Prior *key)
{
    const Prior *prior = g_hash_table_lookup(core->priors, key);
    gboolean is_known = prior != NULL && prior->n >= core->tunings[BERTH_TUNING_PRIOR_SIBLINGS_MIN];
    return is_known ? prior : NULL;
}

/* As find_prior() for all jobs of UID. */
static const Prior *find_prior_of_user(const BerthCore *core, const CoreJob *job, guint32 uid)
{
    Prior key = user_key_of(job, uid);
    return find_prior(core, &key);
}

/* What its siblings needed. Where they are too few, of vCPUs what its user's jobs that reserve as many
 * needed on average, else what anybody's did; else as much as it reserves. */
static CoreNeeds like_siblings(const BerthCore *core, const CoreJob *job)
{
    Prior key;
    CoreNeeds needs = whole(job->class->shape.size);
    guint32 wanted = BERTH_FEATURE_PREDICTION | BERTH_FEATURE_SIBLING_PRIOR;
    if ((core->config.features & wanted) != wanted)
        return needs;
    const Prior *siblings = key_of(job, &key) ? find_prior(core, &key) : NULL;
    if (siblings != NULL)
        return at_most(with_margin(core, siblings->peak), needs);
    const Prior *others = find_prior_of_user(core, job, core_owner_uid(job->class->shape.owner));
    if (others == NULL)
        others = find_prior_of_user(core, job, BERTH_CORE_UID_ANY);
    if (others != NULL)
        needs.cpu_milli = MIN(with_margin(core, others->peak).cpu_milli, needs.cpu_milli);
    return needs;
}

CoreNeeds core_predict_new(const BerthCore *core, const CoreJob *job, const CoreTask *task)
{
    if (goes_on(task))
        return at_most(task->guests[0].needs, whole(core_job_start_size(core, job, task)));
    return (CoreNeeds){like_siblings(core, job).cpu_milli,
                       core_job_start_size(core, job, task).memory_mib};
}

guint64 core_predict_held_mib(const CoreTask *task)
{
    return goes_on(task) ? task->guests[0].needs.memory_mib : 0;
}

static BerthCorePrior told_of(const Prior *prior)
{
    return (BerthCorePrior){.uid = prior->uid,
                            .family = prior->name,
                            .vcpus = prior->reserved.vcpus,
                            .memory_mib = prior->reserved.memory_mib,
                            .n = prior->n,
                            .peak_milli = prior->peak.cpu_milli,
                            .peak_mib = prior->peak.memory_mib};
}

static void tell(BerthCore *core, const Prior *prior)
{
    BerthCorePrior told = told_of(prior);
    if (core->effects != NULL)
        g_array_append_val(core->effects->priors, told);
}

static void forget_oldest(BerthCore *core)
{
    Prior *oldest = g_queue_peek_head(&core->prior_ages);
    oldest->n = 0;
    tell(core, oldest);
    g_queue_unlink(&core->prior_ages, &oldest->link);
    g_hash_table_remove(core->priors, oldest);
}

/* Now the youngest. */
static Prior *get_prior(BerthCore *core, const Prior *key)
{
    Prior *prior = g_hash_table_lookup(core->priors, key);
    if (prior == NULL) {
        if (core->prior_ages.length >= BERTH_CORE_PRIORS_MAX)
            forget_oldest(core);
        prior = g_memdup2(key, sizeof *key);
        prior->link = (GList){.data = prior};
        g_hash_table_add(core->priors, prior);
    } else {
        g_queue_unlink(&core->prior_ages, &prior->link);
    }
    g_queue_push_tail_link(&core->prior_ages, &prior->link);
    return prior;
}

static void learn_most(BerthCore *core, const Prior *key, CoreNeeds peak)
{
    Prior *prior = get_prior(core, key);
    prior->n++;
    prior->peak.cpu_milli = MAX(prior->peak.cpu_milli, peak.cpu_milli);
    prior->peak.memory_mib = MAX(prior->peak.memory_mib, peak.memory_mib);
    tell(core, prior);
}

/* The mean of all until there are prior_jobs; then each further one weighs as much as that many have. */
static void learn_mean(BerthCore *core, const Prior *key, guint32 peak_milli)
{
    Prior *prior = get_prior(core, key);
    prior->n++;
    guint64 weight = MIN(prior->n, (guint64)core->tunings[BERTH_TUNING_PRIOR_JOBS]);
    guint64 sum = prior->peak.cpu_milli * (weight - 1) + peak_milli;
    prior->peak.cpu_milli = (guint32)((sum + weight / 2) / weight);
    tell(core, prior);
}

void core_predict_learn(BerthCore *core, const CoreGuest *guest)
{
    const CoreJob *job = guest->task->job;
    Prior key;
    if (!is_measured(guest) || guest->is_half_known)
        return;
    if (key_of(job, &key))
        learn_most(core, &key, guest->peak);
    key = user_key_of(job, core_owner_uid(job->class->shape.owner));
    learn_mean(core, &key, guest->peak.cpu_milli);
    key = user_key_of(job, BERTH_CORE_UID_ANY);
    learn_mean(core, &key, guest->peak.cpu_milli);
}

void berth_core_restore_prior(BerthCore *core, const BerthCorePrior *source)
{
    Prior key = {.uid = source->uid,
                 .name = source->family,
                 .reserved = {source->vcpus, source->memory_mib}};
    g_return_if_fail(source->n > 0);
    Prior *prior = get_prior(core, &key);
    prior->n = source->n;
    prior->peak = (CoreNeeds){source->peak_milli, source->peak_mib};
}

/* --- guests --------------------------------------------------------------------------------- */

static void begin(BerthCore *core, CoreGuest *guest)
{
    const CoreJob *job = guest->task->job;
    guest->needs = core_predict_new(core, job, guest->task);
    guest->floor = goes_on(guest->task) ? guest->needs : like_siblings(core, job);
    guest->used = (CoreNeeds){0, 0};
    if (goes_on(guest->task)) {
        guest->used.memory_mib = guest->needs.memory_mib;
    } else {
        guest->peak = (CoreNeeds){0, 0};
        guest->reports = 0;
    }
    guest->touched_mib = guest->extra_mib = guest->ungrown_mib = 0;
    guest->growth = (CoreGrowth){0};
    guest->is_put_back = guest->is_half_known = FALSE;
    guest->reported_usec = guest->began_usec = core->now_usec;
}

void core_predict_begin(BerthCore *core, CoreGuest *guest)
{
    BerthCoreTask *record = &guest->task->record;
    begin(core, guest);
    guest->task->peak_told_usec = core->now_usec;
    if (goes_on(guest->task))
        return;
    record->peak_milli = 0;
    record->peak_mib = 0;
}

/* PEAK and as much as it may have grown by without being told. */
static CoreNeeds with_step(const BerthCore *core, CoreNeeds peak)
{
    guint64 step = 1000 + (guint64)core->tunings[BERTH_TUNING_PEAK_STEP_PERMILLE];
    return (CoreNeeds){(guint32)MIN(peak.cpu_milli * step / 1000, G_MAXINT32),
                       peak.memory_mib * step / 1000};
}

void core_predict_restore(BerthCore *core, CoreGuest *guest)
{
    const BerthCoreTask *record = &guest->task->record;
    begin(core, guest);
    guest->is_put_back = TRUE;
    guest->is_half_known = record->peak_mib == 0;
    if (guest->is_half_known || !(core->config.features & BERTH_FEATURE_PREDICTION))
        return;
    CoreNeeds most = whole(guest->size);
    guest->peak = at_most((CoreNeeds){record->peak_milli, record->peak_mib}, most);
    guest->needs = at_most(with_margin(core, with_step(core, guest->peak)), most);
    guest->used = (CoreNeeds){0, guest->peak.memory_mib};
}

/* One of which something was stored had settled before. */
void core_predict_resume(BerthCore *core, CoreGuest *guest)
{
    guest->reported_usec = guest->began_usec = core->now_usec;
    if (!guest->is_half_known)
        guest->began_usec -= core->tunings[BERTH_TUNING_SETTLE_USEC];
    guest->task->peak_told_usec = core->now_usec;
}

gboolean core_predict_is_awaited(const BerthCore *core, const CoreGuest *guest)
{
    gint64 silent_usec = core->now_usec - guest->reported_usec;
    return guest->is_put_back && guest->reports == 0 && guest->phase == BERTH_GUEST_RUNNING &&
           !guest->is_frozen && silent_usec < core->tunings[BERTH_TUNING_SETTLE_USEC];
}

gboolean core_predict_awaits_any(const BerthCore *core, const CoreNode *node)
{
    gint64 since_usec = core->now_usec - core->resumed_usec;
    if (core->resumed_usec == 0 || since_usec >= core->tunings[BERTH_TUNING_SETTLE_USEC])
        return FALSE; /* so long nobody who was put back is waited for */
    for (guint i = 0; i < node->guests->len; i++)
        if (core_predict_is_awaited(core, g_ptr_array_index(node->guests, i)))
            return TRUE;
    return FALSE;
}

gboolean core_predict_settles_anew(const BerthCore *core, const CoreGuest *guest)
{
    gint64 known_usec = guest->reported_usec - guest->began_usec;
    return core_predict_is_awaited(core, guest) ||
           (guest->is_half_known && guest->reports > 0 &&
            known_usec < core->tunings[BERTH_TUNING_SETTLE_USEC]);
}

/* OLD sinks towards MEASURED, KEPT 65536ths of the way are left; it rises at once. */
static guint64 follow(guint64 old, guint64 measured, guint64 kept)
{
    if (measured >= old)
        return measured;
    return measured + ((old - measured) * kept >> 16);
}

static void set_needs(BerthCore *core, CoreGuest *guest, CoreNeeds needs)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    node->needs.cpu_milli += needs.cpu_milli - guest->needs.cpu_milli;
    node->needs.memory_mib += needs.memory_mib - guest->needs.memory_mib;
    guest->needs = needs;
}

guint64 core_predict_occupied_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 touched_mib = guest->touched_mib;
    guint64 with_overhead = touched_mib > 0 ? touched_mib + core->config.guest_overhead_mib : 0;
    return MIN(with_overhead, guest->size.memory_mib);
}

guint64 core_predict_taken_mib(const CoreGuest *guest)
{
    return guest->needs.memory_mib + guest->extra_mib;
}

guint64 core_predict_measured_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 needed = at_most(with_margin(core, guest->peak), whole(guest->size)).memory_mib;
    return MAX(needed, core_predict_occupied_mib(core, guest));
}

void core_predict_touched(BerthCore *core, CoreGuest *guest, guint64 touched_mib)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    guest->touched_mib = touched_mib;
    guint64 occupied = core_predict_occupied_mib(core, guest);
    guint64 extra = occupied - MIN(occupied, guest->needs.memory_mib);
    node->extra_mib += extra - guest->extra_mib;
    guest->extra_mib = extra;
}

static void set_memory_need(BerthCore *core, CoreGuest *guest, guint64 memory_mib)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    if (memory_mib == guest->needs.memory_mib)
        return;
    set_needs(core, guest, (CoreNeeds){guest->needs.cpu_milli, memory_mib});
    core_predict_touched(core, guest, guest->touched_mib);
    core_nodes_slack_changed(&core->nodes, node);
}

static gboolean is_growing(const CoreGuest *guest)
{
    return guest->op == BERTH_OP_RESIZING && guest->size.memory_mib > guest->old_size.memory_mib;
}

void core_predict_grows(BerthCore *core, CoreGuest *guest)
{
    guest->ungrown_mib = guest->needs.memory_mib;
    set_memory_need(core, guest, guest->size.memory_mib);
}

guint64 core_predict_growth_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 without_mib = MAX(guest->ungrown_mib, MIN(core_predict_occupied_mib(core, guest),
                                                      guest->old_size.memory_mib));
    return guest->size.memory_mib - MIN(guest->size.memory_mib, without_mib);
}

void core_predict_grew(CoreGuest *guest)
{
    guest->ungrown_mib = 0;
}

void core_predict_fits(BerthCore *core, CoreGuest *guest)
{
    guint64 memory_mib = guest->ungrown_mib > 0 ? guest->ungrown_mib : guest->needs.memory_mib;
    guest->ungrown_mib = 0;
    set_memory_need(core, guest, MIN(memory_mib, guest->size.memory_mib));
}

/* However seldom its guests have been seen busy together, some of their peaks may be. */
static void note_coincidence(const BerthCore *core, CoreNode *node, guint64 kept)
{
    guint64 least = (guint64)core->tunings[BERTH_TUNING_COINCIDENCE_MIN_PERMILLE] * ONE / 1000;
    if (node->needs.cpu_milli == 0)
        return;
    guint64 now = MIN(((guint64)node->used.cpu_milli << 16) / node->needs.cpu_milli, ONE);
    node->coincidence = (guint32)MAX(follow(node->coincidence, now, kept), least);
}

/* What is left of a difference after PASSED_USEC, in 65536ths. */
static guint64 kept_after(const BerthCore *core, BerthCoreTuning half_life, gint64 passed_usec)
{
    guint64 half_life_ms = (guint64)MAX(core->tunings[half_life] / 1000, 1);
    return core_exp2_neg(((guint64)MIN(passed_usec / 1000, G_MAXINT32) << 16) / half_life_ms);
}

/* --- what the driver stores of them ------------------------------------------------------------ */

static gboolean is_above(const BerthCore *core, guint64 peak, guint64 told)
{
    guint64 step = 1000 + (guint64)core->tunings[BERTH_TUNING_PEAK_STEP_PERMILLE];
    return peak * 1000 > told * step;
}

static CoreNeeds most_of(const CoreTask *task)
{
    CoreNeeds most = {0, 0};
    for (guint32 i = 0; i < task->n_guests; i++) {
        most.cpu_milli = MAX(most.cpu_milli, task->guests[i].peak.cpu_milli);
        most.memory_mib = MAX(most.memory_mib, task->guests[i].peak.memory_mib);
    }
    return most;
}

/* Memory that has grown is told at once: what is let in beside it after a restart would be too much.
 * All else can wait, and so can looking at the other guests of a gang. */
static void tell_peak(BerthCore *core, CoreGuest *guest)
{
    CoreTask *task = guest->task;
    BerthCoreTask *record = &task->record;
    gboolean has_grown = is_above(core, guest->peak.memory_mib, record->peak_mib);
    gint64 passed_usec = core->now_usec - task->peak_told_usec;
    if (!has_grown && passed_usec < core->tunings[BERTH_TUNING_PEAK_INTERVAL_USEC])
        return;
    CoreNeeds most = most_of(task);
    if (!has_grown)
        task->peak_told_usec = core->now_usec;
    if (!has_grown && !is_above(core, record->peak_mib, most.memory_mib) &&
        !is_above(core, most.cpu_milli, record->peak_milli) &&
        !is_above(core, record->peak_milli, most.cpu_milli))
        return;
    record->peak_milli = most.cpu_milli;
    record->peak_mib = MAX(most.memory_mib, 1);
    core_emit_changed(core, task);
}

/* Where it is, and where it goes. */
static void note_growth(BerthCore *core, CoreGuest *guest, guint64 touched_mib)
{
    core_growth_note(&guest->growth, core->now_usec, touched_mib);
    if (!guest->is_opportunistic)
        core_nodes_note_growth(core_nodes_get(&core->nodes, guest->node), guest);
    if (guest->op == BERTH_OP_MIGRATING && !guest->is_opportunistic_there)
        core_nodes_note_growth(core_nodes_get(&core->nodes, guest->to), guest);
}

void core_predict_report(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    guint64 overhead_mib = core->config.guest_overhead_mib;
    CoreNeeds used = at_most((CoreNeeds){usage->cpu_milli, usage->memory_used_mib + overhead_mib},
                             whole(guest->size));
    gint64 passed_usec = core->now_usec - guest->reported_usec;
    guint64 kept_cpu = kept_after(core, BERTH_TUNING_CPU_DECAY_HALF_LIFE_USEC, passed_usec);
    guint64 kept = kept_after(core, BERTH_TUNING_DECAY_HALF_LIFE_USEC, passed_usec);
    node->used.cpu_milli += used.cpu_milli - guest->used.cpu_milli;
    node->used.memory_mib += used.memory_mib - guest->used.memory_mib;
    if (guest->is_opportunistic)
        node->slack_used_mib += used.memory_mib - guest->used.memory_mib;
    guest->used = used;
    guest->reports++;
    guest->reported_usec = core->now_usec;
    note_growth(core, guest, usage->touched_mib);
    guest->touched_mib = usage->touched_mib;
    guest->dirty_mib_per_sec = usage->dirty_mib_per_sec;
    guest->peak.cpu_milli = (guint32)follow(guest->peak.cpu_milli, used.cpu_milli, kept_cpu);
    guest->peak.memory_mib = follow(guest->peak.memory_mib, used.memory_mib, kept);
    if (!(core->config.features & BERTH_FEATURE_PREDICTION))
        return;
    CoreNeeds needs = at_most(with_margin(core, guest->peak), whole(guest->size));
    if (core->now_usec - guest->began_usec < core->tunings[BERTH_TUNING_SETTLE_USEC]) {
        needs.cpu_milli = MAX(needs.cpu_milli, guest->floor.cpu_milli);
        needs.memory_mib = MAX(needs.memory_mib, guest->floor.memory_mib);
    } else {
        tell_peak(core, guest);
    }
    if (is_growing(guest)) {
        guest->ungrown_mib = needs.memory_mib;
        needs.memory_mib = guest->size.memory_mib;
    }
    set_needs(core, guest, needs);
    core_predict_touched(core, guest, guest->touched_mib);
    note_coincidence(core, node, kept_cpu);
}

CoreNeeds core_predict_node(const CoreNode *node)
{
    return (CoreNeeds){(guint32)((guint64)node->needs.cpu_milli * node->coincidence >> 16),
                       node->needs.memory_mib};
}
