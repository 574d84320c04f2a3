/* SPDX-License-Identifier: Apache-2.0 */
/* Owns one run of the program: opens the trace, simulates each policy, and hands the results to
 * whoever shows them. */
#include "config.h"

#include "scheduler/sim/app.h"

#include "common/error.h"
#include "scheduler/sim/bound.h"
#include "scheduler/sim/joblist.h"
#include "scheduler/sim/notes.h"
#include "scheduler/sim/output.h"
#include "scheduler/sim/plot.h"
#include "scheduler/sim/progress.h"
#include "scheduler/sim/replay.h"
#include "scheduler/sim/report.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    SimOptions *options;
    SimTrace *trace;
    SimTrace *shapes_trace;
    SimWorkload *workload;
    SimUsageModel usage;
    SimResult results[SIM_POLICY_N];
    guint n_results, n_shown;
    SimOutput *json;  /* NULL = none, or standard output */
    SimJobList *jobs; /* NULL = none */
    SimPlot *plot;
    SimProgress *progress;
    SimPolicy policy; /* under way */
    FILE *journal;    /* of it; NULL = none */
} App;

/* --- what a run tells --------------------------------------------------------------------------- */

static void on_progress(guint64 n_arrived, guint64 n_ended, gint64 now_usec, gpointer user_data)
{
    App *app = user_data;
    sim_progress_tell(app->progress, sim_policy_name(app->policy), n_arrived, n_ended,
                      sim_workload_survey(app->workload)->n_jobs, now_usec);
}

static void on_job(const SimJob *job, const SimOutcome *outcome, gpointer user_data)
{
    App *app = user_data;
    sim_joblist_add(app->jobs, app->policy, job, outcome);
}

static void on_stay(const SimStay *stay, gpointer user_data)
{
    App *app = user_data;
    sim_plot_stay(app->plot, app->policy, stay);
}

static gboolean json_is_stdout(const App *app)
{
    return app->options->json != NULL && g_str_equal(app->options->json, "-");
}

static void on_explain(gint64 now_usec, const SimJob *job, const char *text, gpointer user_data)
{
    const App *app = user_data;
    g_autofree char *name = sim_job_name(job->number, job->task);
    sim_progress_clear(app->progress);
    fprintf(json_is_stdout(app) ? stderr : stdout, "%-12s %12.0f s  job %s: %s\n",
            sim_policy_name(app->policy), (double)now_usec / (double)G_USEC_PER_SEC, name, text);
}

static void on_journal(const char *text, gpointer user_data)
{
    App *app = user_data;
    fputs(text, app->journal); /* errors are seen when it is closed */
}

/* For whatever reason a result cannot be written: the command line may well be right. Returns FALSE. */
static gboolean blame_output(GError **error)
{
    if (error != NULL && g_error_matches(*error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT))
        (*error)->code = BERTH_ERROR_FAILED_PRECONDITION;
    return FALSE;
}

/* --- the core's log ---------------------------------------------------------------------------- */

/* It is made where only it is missing: one with more parts may be meant as the name of a file. */
static gboolean make_journal_dir(const App *app, GError **error)
{
    const char *dir = app->options->journal;
    return dir == NULL || sim_output_make_dir("--journal", dir, error) || blame_output(error);
}

static gboolean open_journal(App *app, GError **error)
{
    if (app->options->journal == NULL || app->policy == SIM_POLICY_BOUND)
        return TRUE;
    g_autofree char *name = g_strconcat(sim_policy_name(app->policy), ".log", NULL);
    g_autofree char *path = g_build_filename(app->options->journal, name, NULL);
    app->journal = g_fopen(path, "we");
    if (app->journal == NULL)
        berth_set_error_errno(error, errno, "--journal: cannot write %s", path);
    return app->journal != NULL || blame_output(error);
}

static gboolean close_journal(App *app, GError **error)
{
    if (app->journal == NULL)
        return TRUE;
    gboolean failed = ferror(app->journal) != 0;
    failed |= fclose(g_steal_pointer(&app->journal)) != 0;
    if (failed)
        berth_set_error_errno(error, errno, "cannot write all of the log below %s",
                              app->options->journal);
    return !failed;
}

/* --- results ------------------------------------------------------------------------------------ */

static gboolean is_same_file(const char *a, const char *b)
{
    GStatBuf at_a, at_b;
    return g_stat(a, &at_a) == 0 && g_stat(b, &at_b) == 0 && at_a.st_dev == at_b.st_dev &&
           at_a.st_ino == at_b.st_ino;
}

/* The results would take the place of what is read. */
static gboolean check_unread(const SimOptions *options, const char *option, const char *path,
                             GError **error)
{
    gboolean is_read = options->shapes != NULL && is_same_file(path, options->shapes);
    for (guint i = 0; options->traces[i] != NULL; i++)
        is_read |= is_same_file(path, options->traces[i]);
    if (!is_read)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s %s: that file is read; name another one for the results", option, path);
    return FALSE;
}

static gboolean open_jobs(App *app, GError **error)
{
    const char *path = app->options->jobs, *json = app->options->json;
    if (path == NULL)
        return TRUE;
    if (!check_unread(app->options, "--jobs", path, error))
        return FALSE;
    gboolean is_there = g_file_test(path, G_FILE_TEST_EXISTS);
    if (g_str_equal(path, "-")) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "--jobs -: results go to standard output; name a file, or /dev/stdout "
                            "to have both there");
        return FALSE;
    }
    if (json != NULL && ((g_str_equal(path, json) && !is_there) ||
                         (g_file_test(path, G_FILE_TEST_IS_REGULAR) && is_same_file(path, json)))) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "--jobs %s: --json is written there; name another one for the jobs", path);
        return FALSE;
    }
    app->jobs = sim_joblist_new(path, error);
    return app->jobs != NULL || blame_output(error);
}

/* What cannot be written is known before hours of simulation. */
static gboolean open_json(App *app, GError **error)
{
    if (app->options->json == NULL || json_is_stdout(app))
        return TRUE;
    if (!check_unread(app->options, "--json", app->options->json, error))
        return FALSE;
    app->json = sim_output_open("--json", app->options->json, error);
    return app->json != NULL || blame_output(error);
}

/* Rows that were not shown yet: each as soon as its policy is done, or, where the story of a job is
 * told, all after it. */
static void show_rows(App *app)
{
    if (json_is_stdout(app) || app->n_shown == app->n_results)
        return;
    const SimFailures *failures = &app->options->sim.failures;
    g_autofree char *head = app->n_shown == 0
                                ? sim_report_head(app->workload, app->usage.kind, failures)
                                : g_strdup("");
    fputs(head, stdout);
    for (; app->n_shown < app->n_results; app->n_shown++) {
        g_autofree char *row = sim_report_row(app->workload, &app->results[app->n_shown], failures);
        fputs(row, stdout);
    }
    fflush(stdout); /* errors are seen at the end */
}

/* --- inputs ------------------------------------------------------------------------------------- */

static gboolean open_shapes(App *app, GError **error)
{
    if (app->usage.kind != SIM_USAGE_SHAPES)
        return TRUE;
    const char *paths[] = {app->options->shapes, NULL};
    app->shapes_trace = sim_trace_open(paths, SIM_FORMAT_AUTO, error);
    if (app->shapes_trace == NULL) {
        g_prefix_error(error, "--usage: ");
        return FALSE;
    }
    app->usage.shapes = sim_trace_series(app->shapes_trace);
    if (app->usage.shapes != NULL && app->usage.shapes->series->len > 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "--usage %s: no VM series in it; allowed are reserved, trace, or a file that has",
                app->options->shapes);
    return FALSE;
}

/* For whatever reason a trace or log cannot be read: what was given is wrong. Returns FALSE. */
static gboolean blame_input(GError **error)
{
    if (error != NULL && *error != NULL && (*error)->domain == BERTH_ERROR)
        (*error)->code = BERTH_ERROR_INVALID_ARGUMENT;
    return FALSE;
}

static gboolean open_inputs(App *app, GError **error)
{
    SimOptions *options = app->options;
    app->usage.kind = options->usage;
    app->usage.seed = options->sim.seed;
    app->trace = sim_trace_open((const char *const *)options->traces, options->format, error);
    if (app->trace == NULL || !open_shapes(app, error))
        return blame_input(error);
    app->workload = sim_workload_new(app->trace, &options->workload, error);
    if (app->workload == NULL)
        return blame_input(error);
    app->usage.own = sim_workload_series(app->workload);
    return TRUE;
}

/* --- runs --------------------------------------------------------------------------------------- */

static void say_unexplained(const App *app)
{
    const SimConfig *config = &app->options->sim;
    g_autofree char *name = sim_job_name(config->explain, config->explain_task);
    fprintf(json_is_stdout(app) ? stderr : stdout,
            "%-12s job %s: the bound schedules nothing, and so explains nothing\n",
            sim_policy_name(app->policy), name);
}

static gboolean run_policy(App *app, SimPolicy policy, GError **error)
{
    SimConfig config = app->options->sim;
    SimResult *result = &app->results[app->n_results];
    config.policy = policy;
    config.tunings = app->options->tunings;
    config.hooks = (SimHooks){.stay = app->plot != NULL ? on_stay : NULL,
                              .job = app->jobs != NULL ? on_job : NULL,
                              .explain = on_explain,
                              .progress = on_progress,
                              .user_data = app};
    app->policy = policy;
    result->policy = policy;
    if (!open_journal(app, error))
        return FALSE;
    if (policy == SIM_POLICY_BOUND && config.explain > 0)
        say_unexplained(app);
    config.hooks.journal = app->journal != NULL ? on_journal : NULL;
    gboolean ok = policy == SIM_POLICY_BOUND
                      ? sim_bound_run(&config, app->workload, &app->usage, &result->metrics, error)
                      : sim_run(&config, app->workload, &app->usage, &result->metrics, error);
    sim_progress_clear(app->progress);
    app->n_results += ok;
    if (config.explain == 0)
        show_rows(app);
    return close_journal(app, ok ? error : NULL) && ok;
}

static gboolean run_all(App *app, GError **error)
{
    if (app->options->plot != NULL) {
        app->plot = sim_plot_new(app->options->plot, error);
        if (app->plot == NULL)
            return blame_output(error);
    }
    if (app->jobs != NULL && !sim_joblist_begin(app->jobs, error))
        return blame_output(error);
    gboolean ok = TRUE;
    for (guint i = 0; ok && i < SIM_POLICY_N; i++)
        ok = !app->options->policies[i] || run_policy(app, (SimPolicy)i, error);
    show_rows(app);
    if (app->jobs != NULL && !sim_joblist_end(app->jobs, ok ? error : NULL))
        return ok ? blame_output(error) : FALSE;
    return ok;
}

static gboolean show(App *app, GError **error)
{
    g_autofree char *json =
        sim_report_json(app->workload, app->options, app->results, app->n_results);
    if (json_is_stdout(app))
        fputs(json, stdout);
    if (app->json != NULL && !sim_output_write(app->json, json, error))
        return blame_output(error);
    return app->plot == NULL ||
           sim_plot_draw(app->plot, app->workload, app->results, app->n_results, error);
}

static void clear(App *app)
{
    for (guint i = 0; i < app->n_results; i++)
        sim_metrics_clear(&app->results[i].metrics);
    sim_plot_free(app->plot);
    sim_output_close(app->json);
    sim_joblist_free(app->jobs);
    sim_workload_free(app->workload);
    sim_trace_close(app->shapes_trace);
    sim_trace_close(app->trace);
    sim_progress_free(app->progress);
}

static void on_text(const char *text, gpointer user_data)
{
    fputs(text, stdout);
}

static gboolean replay(const SimOptions *options, GError **error)
{
    SimReplay counts;
    SimReplayConfig config = {.path = options->replay,
                              .tunings = options->tunings,
                              .is_tuned = options->tunes ? options->is_tuned : NULL,
                              .explain = options->sim.explain,
                              .tell = on_text};
    if (!sim_replay_run(&config, &counts, error))
        return blame_input(error);
    g_autofree char *notes = sim_notes_of_replay(options, &counts);
    fputs(notes, stderr);
    if (counts.torn_line > 0)
        printf("the log breaks off at line %" G_GUINT64_FORMAT
               ": whoever wrote it was killed, or is not done\n",
               counts.torn_line);
    printf("%" G_GUINT64_FORMAT " events, %" G_GUINT64_FORMAT " actions: ", counts.n_events,
           counts.n_actions);
    if (counts.n_different == 0) {
        puts("all decisions are the same");
        return TRUE;
    }
    printf("decisions differ after %" G_GUINT64_FORMAT " of the events", counts.n_different);
    puts(counts.n_different > SIM_REPLAY_TOLD_MAX ? ", of which the first are shown" : "");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                options->tunes ? "%s: with these constants the core decides otherwise"
                               : "%s: this core decides otherwise than the one that wrote it",
                options->replay);
    return FALSE;
}

gboolean sim_app_run(SimOptions *options, GError **error)
{
    if (options->replay != NULL)
        return replay(options, error);

    g_autofree char *notes = sim_notes(options);
    fputs(notes, stderr);
    App *app = g_new0(App, 1);
    app->options = options;
    app->progress = sim_progress_new(options->quiet);
    gboolean ok = open_json(app, error) && open_jobs(app, error) && open_inputs(app, error) &&
                  make_journal_dir(app, error) && run_all(app, error) && show(app, error);
    clear(app);
    g_free(app);
    return ok;
}
