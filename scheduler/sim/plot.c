/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the charts: their data files, their gnuplot scripts, and gnuplot. The files stay beside the
 * pictures, so that they can be drawn in another way. */
#include "config.h"

#include "scheduler/sim/plot.h"

#include "common/error.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>

#define DAY_USEC 86400e6
/* The chart of nodes shows so many of them. */
#define NODES_MAX 64u

typedef struct {
    GString *data;
    guint n;
    gint64 last_usec;
} Segments;

struct SimPlot {
    char *dir;
    char *gnuplot;
    Segments segments[SIM_POLICY_N];
    guint32 node_max;
};

SimPlot *sim_plot_new(const char *dir, GError **error)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "--plot: there is no gnuplot; apt-get install gnuplot-nox");
        return NULL;
    }
    if (g_mkdir_with_parents(dir, 0777) != 0) {
        berth_set_error_errno(error, errno, "cannot make the directory %s", dir);
        return NULL;
    }
    SimPlot *plot = g_new0(SimPlot, 1);
    plot->dir = g_strdup(dir);
    plot->gnuplot = g_steal_pointer(&gnuplot);
    for (guint i = 0; i < SIM_POLICY_N; i++)
        plot->segments[i].data = g_string_new("# node from to kind(0 guaranteed, 1 slack) moved\n");
    return plot;
}

void sim_plot_free(SimPlot *plot)
{
    if (plot == NULL)
        return;
    for (guint i = 0; i < SIM_POLICY_N; i++)
        g_string_free(plot->segments[i].data, TRUE);
    g_free(plot->gnuplot);
    g_free(plot->dir);
    g_free(plot);
}

void sim_plot_segment(SimPlot *plot, SimPolicy policy, const SimJob *job, guint32 node,
                      gint64 from_usec, gint64 to_usec, gboolean is_opportunistic, gboolean moved)
{
    Segments *segments = &plot->segments[policy];
    if (node > NODES_MAX || segments->n >= SIM_PLOT_SEGMENTS)
        return;
    segments->n++;
    segments->last_usec = MAX(segments->last_usec, to_usec);
    plot->node_max = MAX(plot->node_max, node);
    g_string_append_printf(segments->data, "%u %.6f %.6f %d %d\n", node,
                           (double)from_usec / DAY_USEC, (double)to_usec / DAY_USEC,
                           is_opportunistic, moved);
}

/* --- files -------------------------------------------------------------------------------------- */

static gboolean write_file(const SimPlot *plot, const char *name, const char *suffix,
                           const char *text, GError **error)
{
    g_autofree char *path = g_strdup_printf("%s/%s.%s", plot->dir, name, suffix);
    return g_file_set_contents(path, text, -1, error);
}

static gboolean run_gnuplot(const SimPlot *plot, const char *name, GError **error)
{
    g_autofree char *script = g_strdup_printf("%s.gp", name);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, plot->dir);
    g_subprocess_launcher_setenv(launcher, "LC_ALL", "C", TRUE);
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawn(launcher, error, plot->gnuplot, script, NULL);
    g_autofree char *said = NULL;
    if (process == NULL || !g_subprocess_communicate_utf8(process, NULL, NULL, NULL, &said, error))
        return FALSE;
    if (g_subprocess_get_successful(process))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "gnuplot failed on %s/%s: %s", plot->dir,
                script, said != NULL ? g_strstrip(said) : "it did not say why");
    return FALSE;
}

static GString *script_new(const char *name, const char *title, const char *x, const char *y)
{
    GString *script = g_string_new(NULL);
    g_string_append_printf(script,
                           "set terminal svg size 1000,420 dynamic noenhanced font 'sans-serif,12' "
                           "background '#ffffff'\nset output '%s.svg'\nset title '%s'\n"
                           "set xlabel '%s'\nset ylabel '%s'\nset grid\nset key outside right\n",
                           name, title, x, y);
    return script;
}

static gboolean draw(const SimPlot *plot, const char *name, const GString *data,
                     const GString *script, GError **error)
{
    return write_file(plot, name, "dat", data->str, error) &&
           write_file(plot, name, "gp", script->str, error) && run_gnuplot(plot, name, error);
}

/* --- over time ---------------------------------------------------------------------------------- */

/* One block for each policy: day, then all lines of its timeline as shares of CAPACITY where they
 * have one. */
static GString *timeline_data(const SimResult *results, guint n)
{
    GString *data = g_string_new("# day cpu_used cpu_reserved cpu_wanted cpu_slack memory_used "
                                 "memory_reserved waiting running\n");
    for (guint i = 0; i < n; i++) {
        const SimMetrics *metrics = &results[i].metrics;
        const SimTimeline *timeline = metrics->timeline;
        const double of[SIM_LINE_N] = {
            [SIM_LINE_CPU_USED] = metrics->capacity_vcpus,
            [SIM_LINE_CPU_RESERVED] = metrics->capacity_vcpus,
            [SIM_LINE_CPU_WANTED] = metrics->capacity_vcpus,
            [SIM_LINE_CPU_SLACK] = metrics->capacity_vcpus,
            [SIM_LINE_MEMORY_USED] = metrics->capacity_mib,
            [SIM_LINE_MEMORY_RESERVED] = metrics->capacity_mib,
            [SIM_LINE_WAITING] = 1,
            [SIM_LINE_RUNNING] = 1,
        };
        g_string_append_printf(data, "%s# %s\n", i > 0 ? "\n\n" : "",
                               sim_policy_name(results[i].policy));
        for (guint bin = 0; bin < timeline->n_bins; bin++) {
            g_string_append_printf(data, "%.6f",
                                   ((double)bin + 0.5) * (double)timeline->bin_usec / DAY_USEC);
            for (guint line = 0; line < SIM_LINE_N; line++)
                g_string_append_printf(data, " %.6g",
                                       sim_timeline_mean(timeline, bin, (SimLine)line) / of[line]);
            g_string_append_c(data, '\n');
        }
    }
    return data;
}

/* Column COLUMN of each policy. */
static void plot_policies(GString *script, const char *name, guint column, const SimResult *results,
                          guint n)
{
    for (guint i = 0; i < n; i++)
        g_string_append_printf(
            script, "%s'%s.dat' index %u using 1:%u with lines lw 1.5 title '%s'",
            i > 0 ? ", \\\n  " : "plot ", name, i, column, sim_policy_name(results[i].policy));
    g_string_append_c(script, '\n');
}

static gboolean draw_lines(const SimPlot *plot, const SimResult *results, guint n, GError **error)
{
    static const struct {
        const char *name, *title, *y;
        guint column;
    } charts[] = {
        {"utilisation-cpu", "CPU used", "of capacity", 2 + SIM_LINE_CPU_USED},
        {"utilisation-memory", "Memory used", "of capacity", 2 + SIM_LINE_MEMORY_USED},
        {"queue", "Waiting jobs", "jobs", 2 + SIM_LINE_WAITING},
    };
    g_autoptr(GString) data = timeline_data(results, n);
    for (guint i = 0; i < G_N_ELEMENTS(charts); i++) {
        g_autoptr(GString) script = script_new(charts[i].name, charts[i].title, "day", charts[i].y);
        plot_policies(script, charts[i].name, charts[i].column, results, n);
        if (!draw(plot, charts[i].name, data, script, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean draw_reserved(const SimPlot *plot, const SimResult *results, guint n,
                              GError **error)
{
    static const struct {
        const char *title;
        SimLine line;
    } lines[] = {{"CPU reserved", SIM_LINE_CPU_RESERVED},
                 {"CPU reserved in slack", SIM_LINE_CPU_SLACK},
                 {"CPU wanted", SIM_LINE_CPU_WANTED},
                 {"CPU used", SIM_LINE_CPU_USED},
                 {"memory reserved", SIM_LINE_MEMORY_RESERVED},
                 {"memory used", SIM_LINE_MEMORY_USED}};
    for (guint i = 0; i < n; i++) {
        g_autofree char *name = g_strconcat("reserved-", sim_policy_name(results[i].policy), NULL);
        g_autofree char *title =
            g_strconcat("Reserved and used: ", sim_policy_name(results[i].policy), NULL);
        g_autoptr(GString) data = timeline_data(&results[i], 1);
        g_autoptr(GString) script = script_new(name, title, "day", "of capacity");
        for (guint k = 0; k < G_N_ELEMENTS(lines); k++)
            g_string_append_printf(script, "%s'%s.dat' using 1:%u with lines lw 1.5 title '%s'",
                                   k > 0 ? ", \\\n  " : "plot ", name, 2 + lines[k].line,
                                   lines[k].title);
        g_string_append_c(script, '\n');
        if (!draw(plot, name, data, script, error))
            return FALSE;
    }
    return TRUE;
}

/* --- waits -------------------------------------------------------------------------------------- */

static gboolean draw_waits(const SimPlot *plot, const SimResult *results, guint n, GError **error)
{
    g_autoptr(GString) data = g_string_new("width");
    g_autoptr(GString) script =
        script_new("waits", "Mean wait by width of the job", "vCPUs", "hours");
    for (guint i = 0; i < n; i++)
        g_string_append_printf(data, " %s", sim_policy_name(results[i].policy));
    for (guint k = 0; k < SIM_WIDTH_CLASSES; k++) {
        g_string_append_printf(data, "\n\"%s\"", sim_width_name(k));
        for (guint i = 0; i < n; i++) {
            const SimMetrics *metrics = &results[i].metrics;
            double jobs = metrics->waits_by_width[k]->total;
            g_string_append_printf(data, " %.6g",
                                   jobs > 0 ? metrics->wait_sum_by_width_s[k] / jobs / 3600 : 0.0);
        }
    }
    g_string_append_printf(data, "\n");
    g_string_append(script, "set style data histograms\nset style fill solid 0.8\n"
                            "set yrange [0:*]\n");
    g_string_append_printf(
        script, "plot for [i=2:%u] 'waits.dat' using i:xtic(1) title columnheader(i)\n", n + 1);
    return draw(plot, "waits", data, script, error);
}

/* --- nodes -------------------------------------------------------------------------------------- */

static gboolean draw_nodes_of(const SimPlot *plot, const SimResult *result, guint32 nodes,
                              GError **error)
{
    const Segments *segments = &plot->segments[result->policy];
    const char *policy = sim_policy_name(result->policy);
    g_autofree char *name = g_strconcat("nodes-", policy, NULL);
    g_autofree char *title = g_strdup_printf(
        "Guests on nodes: %s%s%s", policy, nodes > NODES_MAX ? ", the first 64 nodes" : "",
        segments->n >= SIM_PLOT_SEGMENTS ? ", the first 20000 stays" : "");
    g_autoptr(GString) script = script_new(name, title, "day", "node");
    g_string_append_printf(
        script,
        "set yrange [0.4:%u.6]\nset style fill transparent solid 0.25 noborder\n"
        "plot '%s.dat' using ($4==0?$2:NaN):1:2:3:($1-0.4):($1+0.4) with boxxyerror "
        "lc rgb '#2060a0' title 'guaranteed', \\\n"
        "  '' using ($4==1?$2:NaN):1:2:3:($1-0.4):($1+0.4) with boxxyerror "
        "lc rgb '#e08020' title 'in slack', \\\n"
        "  '' using ($5==1?$2:NaN):1 with points pt 7 ps 0.4 "
        "lc rgb '#c00000' title 'moved here'\n",
        MAX(plot->node_max, 1), name);
    return draw(plot, name, segments->data, script, error);
}

gboolean sim_plot_draw(SimPlot *plot, const SimWorkload *workload, const SimResult *results,
                       guint n, GError **error)
{
    guint32 nodes = sim_workload_machine(workload)->nodes;
    for (guint i = 0; i < n; i++)
        if (plot->segments[results[i].policy].n > 0 &&
            !draw_nodes_of(plot, &results[i], nodes, error))
            return FALSE;
    return draw_lines(plot, results, n, error) && draw_reserved(plot, results, n, error) &&
           draw_waits(plot, results, n, error);
}
