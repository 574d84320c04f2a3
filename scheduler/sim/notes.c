/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the knowledge of which options concern which policies and which runs. */
#include "config.h"

#include "scheduler/sim/notes.h"

static void note(GString *text, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void note(GString *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_string_append(text, "berth-sim: ");
    g_string_append_vprintf(text, format, arguments);
    g_string_append_c(text, '\n');
    va_end(arguments);
}

/* All others are of what only policy berth does: slack, prediction, moves, growth. */
static gboolean is_of_all(BerthCoreTuning tuning)
{
    switch (tuning) {
    case BERTH_TUNING_PLAN_DEPTH:
    case BERTH_TUNING_BACKFILL_DEPTH:
    case BERTH_TUNING_ASSUMED_LIMIT_USEC:
    case BERTH_TUNING_OVERSTAY_USEC:
    case BERTH_TUNING_WEIGHT_FAIR_SHARE:
    case BERTH_TUNING_WEIGHT_AGE:
    case BERTH_TUNING_WEIGHT_QOS:
    case BERTH_TUNING_AGE_MAX_USEC:
    case BERTH_TUNING_HALF_LIFE_USEC:
    case BERTH_TUNING_RANK_INTERVAL_USEC:
    case BERTH_TUNING_START_DOUBLINGS_MAX:
    case BERTH_TUNING_BOOT_RETRIES_MAX:
    case BERTH_TUNING_NODE_FAILURES_MAX:
    case BERTH_TUNING_BACKOFF_DOUBLINGS_MAX:
        return TRUE;
    default:
        return FALSE;
    }
}

static void note_plan_depth(const SimOptions *options, GString *text)
{
    gint64 depth = options->tunings[BERTH_TUNING_PLAN_DEPTH];
    const gboolean *policies = options->policies;
    if (!options->is_tuned[BERTH_TUNING_PLAN_DEPTH])
        return;
    if (policies[SIM_POLICY_CONSERVATIVE] && depth <= SIM_CONSERVATIVE_DEPTH)
        note(text,
             "--tune plan_depth=%" G_GINT64_FORMAT " has no effect on policy "
             "conservative, which plans %d starts at least",
             depth, SIM_CONSERVATIVE_DEPTH);
    if (!policies[SIM_POLICY_CONSERVATIVE] && !policies[SIM_POLICY_RESERVED] &&
        !policies[SIM_POLICY_BERTH])
        note(text, "--tune plan_depth has no effect: none of the policies is "
                   "conservative, reserved or berth");
}

static void note_world(const SimOptions *options, GString *text)
{
    const SimFailures *failures = &options->sim.failures;
    const gboolean *policies = options->policies;
    if (options->has_seed && options->usage != SIM_USAGE_SHAPES && failures->mtbf_usec == 0 &&
        failures->action_permille == 0 && options->workload.estimates <= 1 &&
        options->workload.short_permille == 0)
        note(text, "--seed has no effect: without a VM series for --usage, --mtbf, --fail-actions, "
                   "--estimates and --too-short nothing is left to chance");
    if (options->has_react && options->workload.short_permille == 0)
        note(text, "--extend-after has no effect: without --too-short no job comes to a limit that "
                   "is too short");
    if (options->has_mttr && failures->mtbf_usec == 0)
        note(text, "--mttr has no effect: without --mtbf no node fails");
    if (options->has_costs && !policies[SIM_POLICY_RESERVED] && !policies[SIM_POLICY_BERTH])
        note(text, "--cost has no effect: none of the policies is reserved or berth");
    if (options->has_report_interval && !policies[SIM_POLICY_BERTH])
        note(text, "--report-interval has no effect: berth is none of the policies");
}

char *sim_notes(const SimOptions *options)
{
    GString *text = g_string_new(NULL);
    note_plan_depth(options, text);
    note_world(options, text);
    if (options->policies[SIM_POLICY_BERTH])
        return g_string_free(text, FALSE);
    if (options->sim.features_off != 0)
        note(text, "--without has no effect: berth is none of the policies");
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        if (options->is_tuned[i] && !is_of_all((BerthCoreTuning)i))
            note(text, "--tune %s has no effect: berth is none of the policies",
                 berth_core_tuning((BerthCoreTuning)i)->name);
    return g_string_free(text, FALSE);
}

char *sim_notes_of_replay(const SimOptions *options, const SimReplay *replay)
{
    GString *text = g_string_new(NULL);
    /* Predictions alone, as berthd makes them, decide nothing. */
    gboolean acts = (replay->features &
                     ~(guint32)(BERTH_FEATURE_PREDICTION | BERTH_FEATURE_SIBLING_PRIOR)) != 0;
    if (options->is_tuned[BERTH_TUNING_PLAN_DEPTH] && replay->policy != BERTH_POLICY_CONSERVATIVE)
        note(text, "--tune plan_depth has no effect: the log is of %s, which plans %s",
             replay->policy == BERTH_POLICY_EASY ? "easy" : "fcfs",
             replay->policy == BERTH_POLICY_EASY ? "one start" : "none");
    for (guint i = 0; !acts && i < BERTH_TUNING_N; i++)
        if (options->is_tuned[i] && !is_of_all((BerthCoreTuning)i))
            note(text,
                 "--tune %s has no effect: the log is of a core that places by "
                 "reservation alone",
                 berth_core_tuning((BerthCoreTuning)i)->name);
    return g_string_free(text, FALSE);
}
