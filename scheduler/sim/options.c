/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the command line: strict, each value with its bounds. doc/berth-sim.1 describes it. */
#include "config.h"

#include "scheduler/sim/options.h"

#include "common/error.h"
#include "common/units.h"

#include <stdio.h>
#include <string.h>

#define OVERHEAD_MIB_DEFAULT 96u   /* berthd.conf(5), guests.overhead */
#define REPORT_SEC_DEFAULT   5u    /* berthd.conf(5), agents.report_interval */
#define REACT_SEC_DEFAULT    1200u /* assumed: no log says when somebody noticed */

/* As given: NULL = not. */
typedef struct {
    char *format, *policy, *nodes, *vcpus, *memory, *load, *usage, *seed, *json, *plot, *explain,
        *replay, *journal, *max_jobs, *mtbf, *mttr, *fail_actions, *overhead, *report_interval,
        *estimates, *too_short, *extend_after, *without, *jobs;
    char **tune, **cost, **traces;
    gboolean pool, check, quiet, version;
} Given;

#define TEXT(name, member, value, what)                                                            \
    {                                                                                              \
        name, value, what, G_STRUCT_OFFSET(Given, member)                                          \
    }

/* Options that have one value. */
static const struct {
    const char *name, *value, *what;
    glong offset; /* of a member of Given */
} singles[] = {
    TEXT("format", format, "FORMAT", "auto (default), swf, torque, torque-whole or vmseries"),
    TEXT("policy", policy, "LIST", "fcfs,easy,conservative,reserved,berth,bound (default: all)"),
    TEXT("nodes", nodes, "N", "nodes (default: the trace's)"),
    TEXT("vcpus", vcpus, "C", "vCPUs of each node"),
    TEXT("memory", memory, "SIZE", "memory of each node"),
    TEXT("load", load, "L", "scale arrivals so that this share of capacity is reserved"),
    TEXT("estimates", estimates, "F",
         "time limits of 1 to F times the run time (default: the trace's limits)"),
    TEXT("too-short", too_short, "N",
         "of 1000 jobs so many have a first limit below their run time (default: 0)"),
    TEXT("extend-after", extend_after, "TIME",
         "until the user of one that came to it asks for more (default: 20m)"),
    TEXT("usage", usage, "USAGE", "reserved, trace (default), or a VM series to draw from"),
    TEXT("seed", seed, "S", "of all chance (default: 1)"),
    TEXT("json", json, "FILE", "write the results as JSON, - is standard output"),
    TEXT("jobs", jobs, "FILE", "write a line of CSV for each job and policy, as they end"),
    TEXT("plot", plot, "DIR", "draw charts into DIR (needs gnuplot)"),
    TEXT("explain", explain, "JOB", "tell what happened to this job of the trace, and why"),
    TEXT("replay", replay, "LOG", "run a log of the core again and compare decisions"),
    TEXT("journal", journal, "DIR", "write the core's log of each policy into DIR"),
    TEXT("max-jobs", max_jobs, "N", "only the first N jobs of the trace"),
    TEXT("mtbf", mtbf, "TIME", "mean time between failures of a node (default: none fail)"),
    TEXT("mttr", mttr, "TIME", "mean time to its repair (default: 1h)"),
    TEXT("fail-actions", fail_actions, "N", "of 1000 actions so many fail (default: 0)"),
    TEXT("overhead", overhead, "SIZE", "memory that each guest takes besides (default: 96M)"),
    TEXT("report-interval", report_interval, "TIME", "between reports of usage (default: 5s)"),
    TEXT("without", without, "LIST", "parts of policy berth that are switched off"),
};

static char **single_of(Given *given, guint i)
{
    return G_STRUCT_MEMBER_P(given, singles[i].offset);
}

static const struct {
    const char *name;
    BerthCoreFeature feature;
} features[] = {
    {"opportunistic", BERTH_FEATURE_OPPORTUNISTIC}, {"migration", BERTH_FEATURE_MIGRATION},
    {"checkpoint", BERTH_FEATURE_CHECKPOINT},       {"prediction", BERTH_FEATURE_PREDICTION},
    {"sibling-prior", BERTH_FEATURE_SIBLING_PRIOR}, {"promotion", BERTH_FEATURE_PROMOTION},
    {"balancing", BERTH_FEATURE_BALANCING},         {"growth", BERTH_FEATURE_GROWTH},
    {"freezing", BERTH_FEATURE_FREEZING},           {"balloon", BERTH_FEATURE_BALLOON}};

static gboolean refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean refuse(GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, message);
    return FALSE;
}

/* --- single values ------------------------------------------------------------------------------ */

static gboolean number(const char *option, const char *text, guint64 min, guint64 max,
                       guint64 *value, GError **error)
{
    if (text == NULL || berth_parse_uint64(text, min, max, value, error))
        return TRUE;
    g_prefix_error(error, "%s: ", option);
    return FALSE;
}

static gboolean number32(const char *option, const char *text, guint32 max, guint32 *value,
                         GError **error)
{
    guint64 wide = *value;
    if (!number(option, text, 1, max, &wide, error))
        return FALSE;
    *value = (guint32)wide;
    return TRUE;
}

static gboolean size(const char *option, const char *text, guint64 min_mib, guint64 *mib,
                     GError **error)
{
    if (text == NULL)
        return TRUE;
    if (!berth_parse_size_mib(text, mib, error)) {
        g_prefix_error(error, "%s: ", option);
        return FALSE;
    }
    if (*mib >= min_mib && *mib <= G_GUINT64_CONSTANT(1) << 34)
        return TRUE;
    return refuse(error, "%s %s: from %" G_GUINT64_FORMAT "M to 16384T is allowed", option, text,
                  min_mib);
}

static gboolean duration(const char *option, const char *text, gint64 *usec, GError **error)
{
    guint64 sec;
    if (text == NULL)
        return TRUE;
    if (!berth_parse_duration_sec(text, &sec, error)) {
        g_prefix_error(error, "%s: ", option);
        return FALSE;
    }
    if (sec == 0 || sec > 1000 * 86400)
        return refuse(error, "%s %s: from 1s to 1000d is allowed", option, text);
    *usec = (gint64)sec * (gint64)G_USEC_PER_SEC;
    return TRUE;
}

static gboolean real(const char *option, const char *text, double least, double *value,
                     GError **error)
{
    char *end;
    if (text == NULL)
        return TRUE;
    *value = g_ascii_strtod(text, &end);
    if (end != text && *end == '\0' && *value >= least && *value <= 1000)
        return TRUE;
    return refuse(error, "%s '%s': a number from %g to 1000 is allowed", option, text, least);
}

/* --- lists -------------------------------------------------------------------------------------- */

/* TEXT has names between all of its commas. */
static gboolean check_commas(const char *option, char *const *names, const char *text,
                             GError **error)
{
    for (guint i = 0; names[i] != NULL; i++)
        if (*names[i] == '\0')
            return refuse(error, "%s '%s': a comma too many", option, text);
    return TRUE;
}

static gboolean policies(const char *text, gboolean out_policies[SIM_POLICY_N], GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    if (!check_commas("--policy", names, text, error))
        return FALSE;
    for (guint i = 0; names[i] != NULL; i++) {
        guint k = 0;
        while (k < SIM_POLICY_N && !g_str_equal(names[i], sim_policy_name((SimPolicy)k)))
            k++;
        if (k == SIM_POLICY_N)
            return refuse(error,
                          "--policy '%s': allowed are fcfs, easy, conservative, reserved, berth "
                          "and bound, with commas between",
                          names[i]);
        if (out_policies[k])
            return refuse(error, "--policy: %s is named twice", names[i]);
        out_policies[k] = TRUE;
    }
    return names[0] != NULL || refuse(error, "--policy: names no policy");
}

static gboolean without(const char *text, guint32 *features_off, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    if (!check_commas("--without", names, text, error))
        return FALSE;
    for (guint i = 0; names[i] != NULL; i++) {
        guint k = 0;
        while (k < G_N_ELEMENTS(features) && !g_str_equal(names[i], features[k].name))
            k++;
        if (k == G_N_ELEMENTS(features))
            return refuse(error,
                          "--without '%s': allowed are opportunistic, migration, checkpoint, "
                          "prediction, sibling-prior, promotion, balancing, growth, freezing and "
                          "balloon",
                          names[i]);
        *features_off |= features[k].feature;
    }
    return TRUE;
}

static gboolean tune_one(const char *text, SimOptions *options, GError **error)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return refuse(error, "--tune '%s': wants NAME=NUMBER; --tune help lists them", text);
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
        guint64 value;
        if (strlen(info->name) != (gsize)(equals - text) || !g_str_has_prefix(text, info->name))
            continue;
        if (!berth_parse_uint64(equals + 1, (guint64)info->min, (guint64)info->max, &value,
                                error)) {
            g_prefix_error(error, "--tune %s: ", text);
            return FALSE;
        }
        options->tunings[i] = (gint64)value;
        options->is_tuned[i] = options->tunes = TRUE;
        return TRUE;
    }
    return refuse(error, "--tune %s: there is no constant %.*s; --tune help lists them", text,
                  (int)(equals - text), text);
}

static gboolean tune(char **texts, SimOptions *options, GError **error)
{
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        options->tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    for (guint i = 0; texts != NULL && texts[i] != NULL; i++)
        if (!tune_one(texts[i], options, error))
            return FALSE;
    return TRUE;
}

static gboolean print_tunings(void)
{
    printf("%-32s %-9s %16s  %s\n", "constant", "unit", "default", "range");
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
        printf("%-32s %-9s %16" G_GINT64_FORMAT "  %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT "\n",
               info->name, info->unit, info->value, info->min, info->max);
    }
    return TRUE;
}

static gboolean lists(const Given *given, SimOptions *options, GError **error)
{
    if (!tune(given->tune, options, error))
        return FALSE;
    sim_costs_of_guests(&options->sim.costs);
    for (guint i = 0; given->cost != NULL && given->cost[i] != NULL; i++)
        if (!sim_costs_parse(&options->sim.costs, given->cost[i], error))
            return FALSE;
    return policies(given->policy != NULL ? given->policy
                                          : "fcfs,easy,conservative,reserved,berth,bound",
                    options->policies, error) &&
           (given->without == NULL || without(given->without, &options->sim.features_off, error));
}

/* --- all together ------------------------------------------------------------------------------- */

static void usage_kind(const char *text, SimOptions *options)
{
    options->usage = SIM_USAGE_TRACE;
    if (text == NULL || g_str_equal(text, "trace"))
        return;
    options->usage = g_str_equal(text, "reserved") ? SIM_USAGE_RESERVED : SIM_USAGE_SHAPES;
    if (options->usage == SIM_USAGE_SHAPES)
        options->shapes = g_strdup(text);
}

static gboolean world_options(const Given *given, SimOptions *options, GError **error)
{
    SimWorkloadConfig *workload = &options->workload;
    SimFailures *failures = &options->sim.failures;
    gint64 interval = REPORT_SEC_DEFAULT * (gint64)G_USEC_PER_SEC;
    guint64 too_short = 0;
    options->sim.react_usec = REACT_SEC_DEFAULT * (gint64)G_USEC_PER_SEC;
    failures->mttr_usec = 3600 * (gint64)G_USEC_PER_SEC;
    workload->overhead_mib = OVERHEAD_MIB_DEFAULT;
    if (!number32("--nodes", given->nodes, 1000000, &workload->machine.nodes, error) ||
        !number32("--vcpus", given->vcpus, 65536, &workload->machine.vcpus, error) ||
        !size("--memory", given->memory, 64, &workload->machine.memory_mib, error) ||
        !size("--overhead", given->overhead, 0, &workload->overhead_mib, error) ||
        !real("--load", given->load, 0.001, &workload->load, error) ||
        !real("--estimates", given->estimates, 1, &workload->estimates, error) ||
        !number("--too-short", given->too_short, 0, 1000, &too_short, error) ||
        !duration("--extend-after", given->extend_after, &options->sim.react_usec, error) ||
        !number("--max-jobs", given->max_jobs, 1, G_MAXINT64, &workload->jobs_max, error) ||
        !duration("--mtbf", given->mtbf, &failures->mtbf_usec, error) ||
        !duration("--mttr", given->mttr, &failures->mttr_usec, error) ||
        !duration("--report-interval", given->report_interval, &interval, error))
        return FALSE;
    workload->is_pool = given->pool;
    workload->short_permille = (guint32)too_short;
    options->has_react = given->extend_after != NULL;
    options->sim.overhead_mib = workload->overhead_mib;
    options->sim.report_interval_usec = interval;
    return TRUE;
}

/* "526998[1].m1.mason", as logs write it, or as much of it as says which. */
static gboolean job_name(const char *text, guint64 *out_number, guint32 *out_task, GError **error)
{
    guint64 number = 0, task = 0;
    gsize digits = strspn(text, "0123456789"), task_digits = 0;
    const char *rest = text + digits;
    if (*rest == '[') {
        task_digits = strspn(rest + 1, "0123456789");
        g_autofree char *index = g_strndup(rest + 1, task_digits);
        if (rest[1 + task_digits] != ']' ||
            !g_ascii_string_to_unsigned(index, 10, 0, G_MAXUINT32 - 1, &task, NULL))
            rest = "[";
        else
            rest += task_digits + 2;
    }
    g_autofree char *first = g_strndup(text, digits);
    if ((*rest != '\0' && *rest != '.') ||
        !g_ascii_string_to_unsigned(first, 10, 1, G_MAXUINT64, &number, NULL))
        return refuse(error,
                      "--explain '%s': the number of a job is allowed, as 4711, and one of an "
                      "array's tasks, as 4711[3]",
                      text);
    *out_number = number;
    *out_task = task_digits > 0 ? (guint32)task + 1 : 0;
    return TRUE;
}

static gboolean explained(const Given *given, SimOptions *options, GError **error)
{
    if (given->explain == NULL)
        return TRUE;
    if (!job_name(given->explain, &options->sim.explain, &options->sim.explain_task, error))
        return FALSE;
    if (given->replay != NULL && options->sim.explain_task > 0)
        return refuse(error,
                      "--explain %s: of a log, say the number of the job alone: its tasks "
                      "are told together",
                      given->explain);
    options->workload.explain = options->sim.explain;
    options->workload.explain_task = options->sim.explain_task;
    return TRUE;
}

static gboolean other_options(const Given *given, SimOptions *options, GError **error)
{
    guint64 permille = 0;
    options->sim.seed = 1;
    if (!number("--seed", given->seed, 0, G_MAXUINT64, &options->sim.seed, error) ||
        !explained(given, options, error) ||
        !number("--fail-actions", given->fail_actions, 0, 900, &permille, error))
        return FALSE;
    options->sim.failures.action_permille = (guint32)permille;
    options->sim.check = given->check;
    options->has_seed = given->seed != NULL;
    options->workload.seed = options->sim.seed;
    options->has_mttr = given->mttr != NULL;
    options->has_costs = given->cost != NULL;
    options->has_report_interval = given->report_interval != NULL;
    options->quiet = given->quiet;
    options->json = g_strdup(given->json);
    options->jobs = g_strdup(given->jobs);
    options->plot = g_strdup(given->plot);
    options->replay = g_strdup(given->replay);
    options->journal = g_strdup(given->journal);
    return TRUE;
}

static gboolean refuse_beside_replay(const char *other, GError **error)
{
    return refuse(error,
                  "--replay runs what its log says, and takes no more than --tune, --explain and "
                  "--quiet: not %s",
                  other);
}

/* Its log says what a replay is of: all else is another run's. */
static gboolean check_replay(Given *given, GError **error)
{
    if (given->replay == NULL)
        return TRUE;
    if (given->traces != NULL)
        return refuse_beside_replay("a trace", error);
    for (guint i = 0; i < G_N_ELEMENTS(singles); i++) {
        g_autofree char *name = g_strconcat("--", singles[i].name, NULL);
        if (*single_of(given, i) != NULL && !g_str_equal(name, "--replay") &&
            !g_str_equal(name, "--explain"))
            return refuse_beside_replay(name, error);
    }
    if (given->pool || given->check)
        return refuse_beside_replay(given->pool ? "--pool" : "--check", error);
    return given->cost == NULL || refuse_beside_replay("--cost", error);
}

/* Where results go, and what is told beside them. */
static gboolean decides_results(const char *name)
{
    static const char *const others[] = {"policy",  "json",   "jobs",    "plot",
                                         "explain", "replay", "journal", NULL};
    return !g_strv_contains(others, name);
}

static void append_all(GStrvBuilder *builder, const char *name, char **values)
{
    for (guint i = 0; values != NULL && values[i] != NULL; i++) {
        g_autofree char *text = g_strdup_printf("--%s=%s", name, values[i]);
        g_strv_builder_add(builder, text);
    }
}

static char **list_given(Given *given)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    for (guint i = 0; i < G_N_ELEMENTS(singles); i++) {
        char *values[] = {*single_of(given, i), NULL};
        if (decides_results(singles[i].name))
            append_all(builder, singles[i].name, values);
    }
    append_all(builder, "tune", given->tune);
    append_all(builder, "cost", given->cost);
    if (given->pool)
        g_strv_builder_add(builder, "--pool");
    return g_strv_builder_end(builder);
}

static gboolean take(Given *given, SimOptions *options, GError **error)
{
    if (!check_replay(given, error))
        return FALSE;
    if (given->format != NULL && !sim_format_parse(given->format, &options->format, error))
        return FALSE;
    usage_kind(given->usage, options);
    if (!lists(given, options, error) || !world_options(given, options, error) ||
        !other_options(given, options, error))
        return FALSE;
    if (given->replay == NULL && given->traces == NULL)
        return refuse(error, "no trace is named; try berth-sim --help");
    options->traces = g_strdupv(given->traces);
    options->given = list_given(given);
    return TRUE;
}

static void given_clear(Given *given)
{
    for (guint i = 0; i < G_N_ELEMENTS(singles); i++)
        g_free(*single_of(given, i));
    g_strfreev(given->tune);
    g_strfreev(given->cost);
    g_strfreev(given->traces);
}

/* Of two values one would be dropped: whoever wrote both may mean either. LISTS: as many as SINGLES; some may be NULL. */
static gboolean take_singles(Given *given, char **lists[], GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(singles); i++) {
        if (lists[i] == NULL)
            continue;
        if (lists[i][1] != NULL)
            return refuse(error, "--%s is given twice, as '%s' and as '%s'", singles[i].name,
                          lists[i][0], lists[i][1]);
        *single_of(given, i) = g_strdup(lists[i][0]);
    }
    return TRUE;
}

#define FLAG(name, member, what)                                                                   \
    {                                                                                              \
        name, 0, 0, G_OPTION_ARG_NONE, &given->member, what, NULL                                  \
    }

static gboolean parse_with(GOptionContext *context, int argc, char **argv, GError **error)
{
    g_auto(GStrv) copy = g_new0(char *, (gsize)argc + 1);
    g_autoptr(GError) problem = NULL;
    for (int i = 0; i < argc; i++)
        copy[i] = g_strdup(argv[i]);
    g_autofree char **rest = g_memdup2(copy, sizeof(char *) * ((gsize)argc + 1));
    return g_option_context_parse(context, &argc, &rest, &problem) ||
           refuse(error, "%s; try berth-sim --help", problem->message);
}

static gboolean parse(Given *given, int argc, char **argv, GError **error)
{
    const GOptionEntry others[] = {
        {"tune", 0, 0, G_OPTION_ARG_STRING_ARRAY, &given->tune,
         "set a constant of the core; help lists them", "NAME=N"},
        {"cost", 0, 0, G_OPTION_ARG_STRING_ARRAY, &given->cost, "set a cost of the world",
         "NAME=N"},
        FLAG("pool", pool, "one node with the capacity of all"),
        FLAG("check", check, "check all invariants after every step (slow)"),
        FLAG("quiet", quiet, "no progress on standard error"),
        FLAG("version", version, "print the version"),
        {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &given->traces, NULL, "TRACE..."},
        {NULL}};
    GOptionEntry entries[G_N_ELEMENTS(singles) + 1] = {0};
    char **lists[G_N_ELEMENTS(singles)] = {0};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(singles); i++)
        entries[i] = (GOptionEntry){singles[i].name,           0,         0,
                                    G_OPTION_ARG_STRING_ARRAY, &lists[i], singles[i].what,
                                    singles[i].value};
    g_option_context_set_summary(
        context, "Replays workload traces through the scheduler in virtual time. Manual: "
                 "berth-sim(1).");
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, others, NULL);
    gboolean ok = parse_with(context, argc, argv, error) && take_singles(given, lists, error);
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++)
        g_strfreev(lists[i]);
    return ok;
}

gboolean sim_options_parse(int argc, char **argv, SimOptions *out_options, gboolean *out_stop,
                           GError **error)
{
    Given given = {0};
    *out_options = (SimOptions){0};
    *out_stop = FALSE;
    gboolean ok = parse(&given, argc, argv, error);
    if (ok && given.version)
        *out_stop = printf("berth-sim %s\n", PACKAGE_VERSION) > 0;
    else if (ok && given.tune != NULL && g_strv_contains((const char *const *)given.tune, "help"))
        *out_stop = print_tunings();
    else if (ok)
        ok = take(&given, out_options, error);
    given_clear(&given);
    if (!ok)
        sim_options_clear(out_options);
    return ok;
}

void sim_options_clear(SimOptions *options)
{
    g_free(options->shapes);
    g_free(options->json);
    g_free(options->jobs);
    g_free(options->plot);
    g_free(options->replay);
    g_free(options->journal);
    g_strfreev(options->traces);
    g_strfreev(options->given);
    *options = (SimOptions){0};
}
