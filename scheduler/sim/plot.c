/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which charts there are, and what is in them. Their files stay beside the pictures, so that
 * they can be drawn in another way. */
#include "config.h"

#include "scheduler/sim/plot.h"

#include "common/error.h"
#include "scheduler/sim/chart.h"
#include "scheduler/sim/gantt.h"
#include "scheduler/sim/output.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

#define ROW_HEIGHT     32u  /* pixels of a node */
#define ROW_SHARE      0.9  /* of it are used */
#define WAIT_MIN_S     0.01 /* below it a mean wait is none */
#define WAIT_MARGIN    2.0  /* below the smallest bar, as a factor */
#define WHOLE_TICS_MAX 10   /* jobs */

enum {
    MARK_MOVED = 1,
    MARK_RESTORED = 2,
    MARK_CHECKPOINTED = 4,
};

struct SimPlot {
    char *dir;
    char *gnuplot;
    GArray *stays[SIM_POLICY_N]; /* GanttStay */
    gint64
        cut_usec[SIM_POLICY_N]; /* from then on there are more than are kept; 0 = there are not */
};

/* The same policy always looks the same. */
static const struct {
    const char *colour;
    double width;
    guint dash;
} styles[SIM_POLICY_N] = {
    [SIM_POLICY_FCFS] = {CHART_PURPLE, 1.5, 1},      [SIM_POLICY_EASY] = {CHART_BLUE, 1.5, 1},
    [SIM_POLICY_CONSERVATIVE] = {CHART_SKY, 1.5, 1}, [SIM_POLICY_RESERVED] = {CHART_GREEN, 1.5, 1},
    [SIM_POLICY_BERTH] = {CHART_VERMILLION, 2, 1},   [SIM_POLICY_BOUND] = {CHART_BLACK, 1.5, 2},
};

SimPlot *sim_plot_new(const char *dir, GError **error)
{
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (gnuplot == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "--plot: there is no gnuplot; apt-get install gnuplot-nox");
        return NULL;
    }
    if (!sim_output_make_dir("--plot", dir, error))
        return NULL;
    SimPlot *plot = g_new0(SimPlot, 1);
    plot->dir = g_strdup(dir);
    plot->gnuplot = g_steal_pointer(&gnuplot);
    for (guint i = 0; i < SIM_POLICY_N; i++)
        plot->stays[i] = g_array_new(FALSE, FALSE, sizeof(GanttStay));
    return plot;
}

void sim_plot_free(SimPlot *plot)
{
    if (plot == NULL)
        return;
    for (guint i = 0; i < SIM_POLICY_N; i++)
        g_array_unref(plot->stays[i]);
    g_free(plot->gnuplot);
    g_free(plot->dir);
    g_free(plot);
}

void sim_plot_stay(SimPlot *plot, SimPolicy policy, const SimStay *stay)
{
    GArray *stays = plot->stays[policy];
    GanttStay one = {.from_usec = stay->from_usec,
                     .to_usec = stay->to_usec,
                     .node = stay->node,
                     .vcpus = stay->vcpus,
                     .is_slack = stay->is_opportunistic};
    one.mark = (stay->origin == SIM_STAY_MOVED ? MARK_MOVED : 0) |
               (stay->origin == SIM_STAY_RESTORED ? MARK_RESTORED : 0) |
               (stay->is_checkpointed ? MARK_CHECKPOINTED : 0);
    if (stay->node > SIM_PLOT_NODES)
        return;
    if (stays->len < SIM_PLOT_STAYS)
        g_array_append_val(stays, one);
    else if (plot->cut_usec[policy] == 0)
        plot->cut_usec[policy] = stay->to_usec;
}

static gboolean draw(const SimPlot *plot, const char *name, const GString *data,
                     const GString *script, GError **error)
{
    return chart_draw(plot->gnuplot, plot->dir, name, data, script, error);
}

/* --- over time ---------------------------------------------------------------------------------- */

static double timeline_end(const SimResult *results, guint n)
{
    double end = (double)G_USEC_PER_SEC;
    for (guint i = 0; i < n; i++) {
        const SimTimeline *timeline = results[i].metrics.timeline;
        end = MAX(end, (double)timeline->n_bins * (double)timeline->bin_usec);
    }
    return end;
}

static double value_of(const SimMetrics *metrics, guint bin, SimLine line)
{
    gboolean is_cpu = line <= SIM_LINE_CPU_SLACK;
    gboolean is_memory = line == SIM_LINE_MEMORY_USED || line == SIM_LINE_MEMORY_RESERVED;
    double of = is_cpu ? metrics->capacity_vcpus : is_memory ? metrics->capacity_mib : 1;
    return sim_timeline_mean(metrics->timeline, bin, line) / of;
}

/* One block for each policy: the begin of a bin, then all lines of its timeline as shares of
 * CAPACITY where they have one; the last bin once more, at its end. */
static GString *timeline_data(const SimResult *results, guint n, const ChartUnit *unit)
{
    GString *data = g_string_new(NULL);
    g_string_append_printf(data,
                           "# %s cpu_used cpu_reserved cpu_wanted cpu_slack memory_used "
                           "memory_reserved waiting running\n",
                           unit->name);
    for (guint i = 0; i < n; i++) {
        const SimMetrics *metrics = &results[i].metrics;
        const SimTimeline *timeline = metrics->timeline;
        g_string_append_printf(data, "%s# %s\n", i > 0 ? "\n\n" : "",
                               sim_policy_name(results[i].policy));
        for (guint k = 0; k <= timeline->n_bins && timeline->n_bins > 0; k++) {
            guint bin = MIN(k, timeline->n_bins - 1);
            g_string_append_printf(data, "%.6f",
                                   (double)k * (double)timeline->bin_usec / unit->usec);
            for (guint line = 0; line < SIM_LINE_N; line++)
                g_string_append_printf(data, " %.6g", value_of(metrics, bin, (SimLine)line));
            g_string_append_c(data, '\n');
        }
    }
    return data;
}

static double highest(const SimResult *results, guint n, SimLine line)
{
    double most = 0;
    for (guint i = 0; i < n; i++)
        for (guint bin = 0; bin < results[i].metrics.timeline->n_bins; bin++)
            most = MAX(most, value_of(&results[i].metrics, bin, line));
    return most;
}

/* Axes are stated: gnuplot cannot find those of a single point, or of zeros only. */
static void add_ranges(GString *script, double x_most, double y_most)
{
    g_string_append_printf(script, "set xrange [0:%.6g]\nset yrange [0:%.6g]\n", x_most,
                           y_most > 0 ? 1.05 * y_most : 1.0);
}

/* Where work, cpu % and mem % are measured. The words are on the side that has more room: beyond the end of the
 * axis there is the legend. */
static void add_trace_end(GString *script, const SimResult *result, const ChartUnit *unit,
                          double x_most)
{
    double end = (double)result->metrics.trace_end_usec / unit->usec;
    if (end > 0 && end <= x_most)
        g_string_append_printf(script,
                               "set arrow from %.6g, graph 0 to %.6g, graph 1 nohead dt 3 lw 1.5 "
                               "lc rgb '" CHART_GREY "'\n"
                               "set label 'last arrival' at %.6g, graph 1 %s,-0.6 font ',10' "
                               "tc rgb '" CHART_GREY "' front\n",
                               end, end, end,
                               end > x_most / 2 ? "right offset -1" : "left offset 1");
}

/* gnuplot divides small numbers, too. */
static void add_whole_tics(GString *script, double y_most)
{
    if (y_most <= WHOLE_TICS_MAX)
        g_string_append(script, "set ytics 1\n");
}

/* Column COLUMN of each policy. */
static void plot_policies(GString *script, const char *name, guint column, const SimResult *results,
                          guint n)
{
    for (guint i = 0; i < n; i++) {
        SimPolicy policy = results[i].policy;
        g_string_append_printf(
            script,
            "%s'%s.dat' index %u using 1:%u with steps lw %.1f dt %u lc rgb '%s' title '%s'",
            i > 0 ? ", \\\n  " : "plot ", name, i, column, styles[policy].width,
            styles[policy].dash, styles[policy].colour, sim_policy_name(policy));
    }
    g_string_append_c(script, '\n');
}

/* The bound, which is the last, schedules nothing: nobody waits in it, as jobs wait elsewhere. */
static guint n_scheduled(const SimResult *results, guint n)
{
    return n > 0 && results[n - 1].policy == SIM_POLICY_BOUND ? n - 1 : n;
}

typedef struct {
    const char *name, *title, *y;
    SimLine line;
} LineChart;

static gboolean draw_line(const SimPlot *plot, const LineChart *chart, const SimResult *results,
                          guint n, GError **error)
{
    double end = timeline_end(results, n), most = highest(results, n, chart->line);
    const ChartUnit *unit = chart_unit(end);
    gboolean has_bound = n_scheduled(results, n) < n;
    g_autofree char *title = g_strconcat(
        chart->title, has_bound ? " (bound: the demand in one queue, not scheduled)" : "", NULL);
    g_autoptr(GString) data = timeline_data(results, n, unit);
    g_autoptr(GString) script =
        chart_script(chart->name, title, unit->name, chart->y, CHART_HEIGHT);
    add_ranges(script, end / unit->usec, most);
    add_trace_end(script, &results[0], unit, end / unit->usec);
    if (chart->line == SIM_LINE_WAITING)
        add_whole_tics(script, most);
    plot_policies(script, chart->name, 2 + chart->line, results, n);
    return draw(plot, chart->name, data, script, error);
}

static gboolean draw_lines(const SimPlot *plot, const SimResult *results, guint n, GError **error)
{
    static const LineChart cpu = {"utilisation-cpu", "CPU used", "of capacity", SIM_LINE_CPU_USED};
    static const LineChart memory = {"utilisation-memory", "Memory used", "of capacity",
                                     SIM_LINE_MEMORY_USED};
    static const LineChart queue = {"queue", "Waiting jobs", "jobs", SIM_LINE_WAITING};
    guint n_waiting = n_scheduled(results, n);
    if (!draw_line(plot, &cpu, results, n, error) || !draw_line(plot, &memory, results, n, error))
        return FALSE;
    return n_waiting > 0 ? draw_line(plot, &queue, results, n_waiting, error)
                         : chart_remove(plot->dir, queue.name, error);
}

/* The bound reserves nothing, and only berth starts guests in slack. */
static gboolean has_line(SimPolicy policy, SimLine line)
{
    if (line == SIM_LINE_CPU_SLACK)
        return policy == SIM_POLICY_BERTH;
    return policy != SIM_POLICY_BOUND ||
           (line != SIM_LINE_CPU_RESERVED && line != SIM_LINE_MEMORY_RESERVED);
}

/* What is wanted is often what is used: it is drawn wide, and below it. */
static void plot_reserved(GString *script, const char *name, SimPolicy policy)
{
    static const struct {
        const char *title, *style;
        SimLine line;
    } lines[] = {
        {"CPU reserved", "lw 1.5 lc rgb '" CHART_BLUE "'", SIM_LINE_CPU_RESERVED},
        {"CPU reserved in slack", "lw 1.5 lc rgb '" CHART_SKY "'", SIM_LINE_CPU_SLACK},
        {"CPU wanted", "lw 5 lc rgb '" CHART_ORANGE "'", SIM_LINE_CPU_WANTED},
        {"CPU used", "lw 1.5 lc rgb '" CHART_VERMILLION "'", SIM_LINE_CPU_USED},
        {"memory reserved", "lw 1.5 dt 2 lc rgb '" CHART_BLACK "'", SIM_LINE_MEMORY_RESERVED},
        {"memory used", "lw 1.5 dt 2 lc rgb '" CHART_GREEN "'", SIM_LINE_MEMORY_USED}};
    const char *before = "plot ";
    for (guint k = 0; k < G_N_ELEMENTS(lines); k++) {
        if (!has_line(policy, lines[k].line))
            continue;
        g_string_append_printf(script, "%s'%s.dat' using 1:%u with steps %s title '%s'", before,
                               name, 2 + lines[k].line, lines[k].style, lines[k].title);
        before = ", \\\n  ";
    }
    g_string_append_c(script, '\n');
}

static gboolean draw_reserved_of(const SimPlot *plot, const SimResult *result, GError **error)
{
    double end = timeline_end(result, 1), most = 0;
    const ChartUnit *unit = chart_unit(end);
    g_autofree char *name = g_strconcat("reserved-", sim_policy_name(result->policy), NULL);
    g_autofree char *title =
        result->policy == SIM_POLICY_BOUND
            ? g_strdup("Wanted, and served as in one queue: bound, which schedules nothing")
            : g_strconcat("Reserved and used: ", sim_policy_name(result->policy), NULL);
    g_autoptr(GString) data = timeline_data(result, 1, unit);
    g_autoptr(GString) script = chart_script(name, title, unit->name, "of capacity", CHART_HEIGHT);
    for (guint line = 0; line <= SIM_LINE_MEMORY_RESERVED; line++)
        most = MAX(most, highest(result, 1, (SimLine)line));
    add_ranges(script, end / unit->usec, most);
    add_trace_end(script, result, unit, end / unit->usec);
    plot_reserved(script, name, result->policy);
    return draw(plot, name, data, script, error);
}

/* --- waits -------------------------------------------------------------------------------------- */

static double mean_wait_s(const SimResult *result, guint width)
{
    double jobs = result->metrics.waits_by_width[width]->total;
    return jobs > 0 ? result->metrics.wait_sum_by_width_s[width] / jobs : 0;
}

static gboolean has_width(const SimResult *results, guint n, guint width)
{
    for (guint i = 0; i < n; i++)
        if (results[i].metrics.waits_by_width[width]->total > 0)
            return TRUE;
    return FALSE;
}

/* In seconds. *OUT_LEAST and *OUT_MOST: of the waits that are any; both 0: there are none. */
static GString *waits_data(const SimResult *results, guint n, double *out_least, double *out_most)
{
    GString *data = g_string_new("width");
    *out_least = *out_most = 0;
    for (guint i = 0; i < n; i++)
        g_string_append_printf(data, " %s", sim_policy_name(results[i].policy));
    for (guint k = 0; k < SIM_WIDTH_CLASSES; k++) {
        if (!has_width(results, n, k))
            continue;
        g_string_append_printf(data, "\n\"%s\"", sim_width_name(k));
        for (guint i = 0; i < n; i++) {
            double wait_s = mean_wait_s(&results[i], k);
            g_string_append_printf(data, " %.6g", wait_s >= WAIT_MIN_S ? wait_s : 0);
            if (wait_s < WAIT_MIN_S)
                continue;
            *out_least = *out_least > 0 ? MIN(*out_least, wait_s) : wait_s;
            *out_most = MAX(*out_most, wait_s);
        }
    }
    g_string_append_c(data, '\n');
    return data;
}

/* Each in the unit in which people say it: waits go from a second to weeks. */
static void add_wait_tics(GString *script, double least_s, double most_s)
{
    static const struct {
        const char *unit;
        double seconds, counts[10];
    } tics[] = {{"s", 1, {0.01, 0.1, 1, 10, 0.02, 0.05, 0.2, 0.5, 2, 5}},
                {"s", 1, {20, 30}},
                {"min", 60, {1, 10, 2, 5, 20, 30}},
                {"h", 3600, {1, 10, 2, 5}},
                {"d", 86400, {1, 10, 100, 1000, 2, 5, 20, 50, 200, 500}}};
    static const guint n_sparse[] = {4, 0, 2, 2, 4};
    gboolean is_sparse = most_s > 100 * least_s;
    const char *before = "set ytics (";
    for (guint i = 0; i < G_N_ELEMENTS(tics); i++) {
        guint n = is_sparse ? n_sparse[i] : G_N_ELEMENTS(tics[i].counts);
        for (guint k = 0; k < n && tics[i].counts[k] > 0; k++) {
            double count = tics[i].counts[k];
            g_string_append_printf(script, "%s'%g %s' %g", before, count, tics[i].unit,
                                   count * tics[i].seconds);
            before = ", ";
        }
    }
    g_string_append(script, ")\n");
}

static gboolean draw_waits(const SimPlot *plot, const SimResult *results, guint n, GError **error)
{
    double least, most;
    if (n == 0)
        return chart_remove(plot->dir, "waits", error);
    g_autoptr(GString) data = waits_data(results, n, &least, &most);
    g_autoptr(GString) script =
        chart_script("waits", "Mean wait by width of the job (no bar: none)", "vCPUs",
                     most > 0 ? "mean wait (s, logarithmic)" : "mean wait (s)", CHART_HEIGHT);
    g_string_append(script, "set style data histograms\nset style fill solid 0.9\n");
    if (most > 0) {
        g_string_append_printf(script, "set logscale y\nset yrange [%.6g:%.6g]\n",
                               least / WAIT_MARGIN, most * WAIT_MARGIN);
        add_wait_tics(script, least, most);
    } else {
        g_string_append(script, "set yrange [0:1]\n");
    }
    /* gnuplot refuses a histogram without any point: none is one at the bottom. */
    for (guint i = 0; i < n; i++)
        g_string_append_printf(script,
                               "%s'waits.dat' using ($%u>0?$%u:%.6g):xtic(1) lc rgb '%s' "
                               "title columnheader(%u)",
                               i > 0 ? ", \\\n  " : "plot ", i + 2, i + 2, least / WAIT_MARGIN,
                               styles[results[i].policy].colour, i + 2);
    g_string_append_c(script, '\n');
    return draw(plot, "waits", data, script, error);
}

/* --- nodes -------------------------------------------------------------------------------------- */

/* from to bottom top kind(0 guaranteed, 1 slack) marks, one line for each part */
static GString *nodes_data(const GArray *parts, const ChartUnit *unit, guint64 base, double rows)
{
    GString *data = g_string_new("# from to bottom top slack moved restored checkpointed\n");
    for (guint i = 0; i < parts->len; i++) {
        const GanttPart *part = &g_array_index(parts, GanttPart, i);
        const GanttStay *stay = part->stay;
        guint mark = part->is_first ? stay->mark : 0;
        double floor = (double)stay->node - ROW_SHARE / 2;
        double above = stay->is_slack ? (double)base : 0;
        g_string_append_printf(
            data, "%.6f %.6f %.6f %.6f %d %d %d %d\n", (double)stay->from_usec / unit->usec,
            (double)stay->to_usec / unit->usec,
            floor + (above + (double)part->low) / rows * ROW_SHARE,
            floor + (above + (double)part->high) / rows * ROW_SHARE, stay->is_slack,
            (mark & MARK_MOVED) != 0, (mark & MARK_RESTORED) != 0, (mark & MARK_CHECKPOINTED) != 0);
    }
    return data;
}

static void add_boxes(GString *script, const char *name)
{
    static const struct {
        const char *colour, *edge, *title;
    } kinds[] = {{CHART_SKY, CHART_SKY_EDGE, "guaranteed"},
                 {CHART_ORANGE, CHART_ORANGE_EDGE, "in slack"}};
    static const struct {
        const char *x, *look, *title;
        guint column;
    } marks[] = {{"$1", "pt 9 ps 0.3 lc rgb '" CHART_BLACK "'", "moved here", 6},
                 {"$1", "pt 6 ps 0.7 lw 1.5 lc rgb '" CHART_BLUE "'", "restored", 7},
                 {"$2", "pt 2 ps 0.6 lw 1.5 lc rgb '" CHART_VERMILLION "'", "checkpointed", 8}};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        g_string_append_printf(script,
                               "'%s.dat' using ($5==%u?$1:NaN):3:1:2:3:($4-0.1*($4-$3)) with "
                               "boxxyerror fc rgb '%s' fs solid border lc rgb '%s' lw 0.3 title "
                               "'%s', \\\n  ",
                               name, i, kinds[i].colour, kinds[i].edge, kinds[i].title);
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++)
        g_string_append_printf(script,
                               "'%s.dat' using ($%u==1?%s:NaN):(($3+$4)/2) with points %s "
                               "title '%s', \\\n  ",
                               name, marks[i].column, marks[i].x, marks[i].look, marks[i].title);
    g_string_append(script, "-1 notitle\n");
}

/* What all nodes' charts of a run have in common, so that they can be compared. */
typedef struct {
    guint32 nodes, of_nodes;
    guint32 n_larger; /* of NODES; the others have one vCPU less */
    guint64 capacity; /* vCPUs of a node; those in slack are drawn above */
    guint64 base;     /* that, or what was ever had of guaranteed guests, if it is more */
    guint64 rows;     /* vCPUs of all height */
    gint64 end_usec;
    const ChartUnit *unit;
} NodesFrame;

static void frame_nodes(const SimPlot *plot, const SimResult *results, guint n,
                        const SimMachine *machine, NodesFrame *out_frame)
{
    NodesFrame frame = {.nodes = MIN(machine->nodes, SIM_PLOT_NODES),
                        .of_nodes = machine->nodes,
                        .n_larger = MIN(machine->nodes - machine->n_smaller, SIM_PLOT_NODES),
                        .capacity = machine->vcpus,
                        .base = machine->vcpus,
                        .end_usec = G_USEC_PER_SEC};
    guint64 above = 0;
    for (guint i = 0; i < n; i++) {
        GArray *stays = plot->stays[results[i].policy];
        guint64 base, slack;
        g_autoptr(GArray) parts = gantt_stack(stays, &base, &slack);
        frame.base = MAX(frame.base, base);
        above = MAX(above, slack);
        for (guint k = 0; k < stays->len; k++)
            frame.end_usec = MAX(frame.end_usec, g_array_index(stays, GanttStay, k).to_usec);
    }
    frame.rows = frame.base + above;
    frame.unit = chart_unit((double)frame.end_usec);
    *out_frame = frame;
}

static void add_capacity_line(GString *script, const char *before, guint32 first, guint32 last,
                              guint64 vcpus, guint64 rows)
{
    if (first <= last)
        g_string_append_printf(
            script,
            "%sfor [node=%u:%u] node + %.6f with lines lw 0.5 lc rgb '" CHART_GREY
            "' notitle, \\\n  ",
            before, first, last, (double)vcpus / (double)rows * ROW_SHARE - ROW_SHARE / 2);
}

/* Guaranteed guests end there. */
static void add_capacity(GString *script, const NodesFrame *frame)
{
    g_autofree char *smaller = frame->n_larger < frame->nodes
                                   ? g_strdup_printf(", or %" G_GUINT64_FORMAT, frame->capacity - 1)
                                   : g_strdup("");
    add_capacity_line(script, "plot ", 1, frame->n_larger, frame->capacity, frame->rows);
    add_capacity_line(script, "", frame->n_larger + 1, frame->nodes, frame->capacity - 1,
                      frame->rows);
    g_string_append_printf(script,
                           "NaN with lines lw 0.5 lc rgb '" CHART_GREY
                           "' title 'capacity: %" G_GUINT64_FORMAT "%s vCPU%s', \\\n  ",
                           frame->capacity, smaller, frame->capacity == 1 ? "" : "s");
}

/* How much of the time it is that is drawn: ", the first 30 of 260 days"; "" where it is all. */
static char *drawn_share(const SimPlot *plot, const SimResult *result)
{
    gint64 cut_usec = plot->cut_usec[result->policy];
    gint64 end_usec = MAX(result->metrics.last_end_usec, cut_usec);
    const ChartUnit *unit = chart_unit((double)cut_usec); /* in which it is some */
    if (cut_usec == 0)
        return g_strdup("");
    return g_strdup_printf(", the first %.0f of %.0f %s", (double)cut_usec / unit->usec,
                           (double)end_usec / unit->usec, unit->name);
}

static gboolean draw_nodes_of(const SimPlot *plot, const SimResult *result, const NodesFrame *frame,
                              GError **error)
{
    GArray *stays = plot->stays[result->policy];
    const char *policy = sim_policy_name(result->policy);
    guint64 base, slack;
    g_autoptr(GArray) parts = gantt_stack(stays, &base, &slack);
    g_autoptr(GString) data = nodes_data(parts, frame->unit, frame->base, (double)frame->rows);
    g_autofree char *name = g_strconcat("nodes-", policy, NULL);
    g_autofree char *of =
        frame->of_nodes > frame->nodes
            ? g_strdup_printf(", the first %u of %u nodes", frame->nodes, frame->of_nodes)
            : g_strdup("");
    g_autofree char *share = drawn_share(plot, result);
    g_autofree char *title =
        g_strdup_printf("Guests on nodes, as high as they have vCPUs: %s%s%s", policy, of, share);
    g_autoptr(GString) script = chart_script(name, title, frame->unit->name, "node",
                                             MAX(120 + frame->nodes * ROW_HEIGHT, CHART_HEIGHT));
    g_string_append_printf(script,
                           "set xrange [0:%.6g]\nset yrange [0.4:%u.6]\nset ytics 1\n"
                           "set grid noytics\n",
                           (double)frame->end_usec / frame->unit->usec, frame->nodes);
    add_trace_end(script, result, frame->unit, (double)frame->end_usec / frame->unit->usec);
    add_capacity(script, frame);
    add_boxes(script, name);
    return draw(plot, name, data, script, error);
}

/* --- all ---------------------------------------------------------------------------------------- */

/* What an earlier run left, of a policy that this one had not. */
static gboolean remove_others(const SimPlot *plot, const SimResult *results, guint n,
                              GError **error)
{
    for (guint policy = 0; policy < SIM_POLICY_N; policy++) {
        gboolean is_there = FALSE;
        for (guint i = 0; i < n; i++)
            is_there |= results[i].policy == (SimPolicy)policy;
        const char *name = sim_policy_name((SimPolicy)policy);
        g_autofree char *reserved = g_strconcat("reserved-", name, NULL);
        g_autofree char *nodes = g_strconcat("nodes-", name, NULL);
        if (!is_there &&
            (!chart_remove(plot->dir, reserved, error) || !chart_remove(plot->dir, nodes, error)))
            return FALSE;
    }
    return TRUE;
}

gboolean sim_plot_draw(SimPlot *plot, const SimWorkload *workload, const SimResult *results,
                       guint n, GError **error)
{
    NodesFrame frame;
    frame_nodes(plot, results, n, sim_workload_machine(workload), &frame);
    if (!remove_others(plot, results, n, error))
        return FALSE;
    for (guint i = 0; i < n; i++)
        if (!draw_reserved_of(plot, &results[i], error) ||
            (results[i].policy != SIM_POLICY_BOUND &&
             !draw_nodes_of(plot, &results[i], &frame, error)))
            return FALSE;
    return draw_lines(plot, results, n, error) &&
           draw_waits(plot, results, n_scheduled(results, n), error);
}
