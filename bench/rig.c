/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster that is not there: one process that is the agents of thousands of nodes, each with its own connection over mutual
 * TLS and the real agent's session (nodeagent/session.c), whose guests run for a given time. berthd is loaded by it as by a
 * cluster of that size; nothing else is measured here than what is counted.
 *
 * Says how it fares on stderr, and all that it has counted as JSON on stdout when it ends, which is by SIGINT, SIGTERM or
 * after --seconds. SIGUSR1: all nodes lose their connections at once, and join again. */
#include "config.h"

#include "bench/rig_certificates.h"
#include "bench/rig_shard.h"
#include "common/log.h"

#include <fcntl.h>
#include <glib-unix.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* GLib looks at all connections of a context for each message: with few of them that costs less than the message. */
#define NODES_PER_SHARD 100u

#define EXIT_USAGE 2

typedef struct {
    RigPlan plan;
    char *trace;
    int nodes, port, vcpus, memory_mib, boot_msec, run_msec, report_msec, busy_percent;
    int join_rate, seconds, progress_sec;
} Options;

typedef struct {
    const Options *options;
    GMainLoop *loop;
    GPtrArray *shards; /* RigShard */
    GHashTable *told;  /* RigShard -> its latest RigCounts */
    RigCounts before;  /* when progress was said last */
    gint64 began_usec;
} Rig;

/* --- what it has counted ----------------------------------------------------------------------- */

static void add(RigCounts *sum, const RigCounts *counts)
{
    sum->nodes += counts->nodes;
    sum->guests += counts->guests;
    sum->joins += counts->joins;
    sum->starts += counts->starts;
    sum->repeats += counts->repeats;
    sum->begins += counts->begins;
    sum->ends += counts->ends;
    sum->kept += counts->kept;
    sum->stops += counts->stops;
    sum->releases += counts->releases;
    sum->reports += counts->reports;
    sum->refusals += counts->refusals;
}

static void on_told(RigShard *shard, const RigCounts *counts, gpointer data)
{
    Rig *rig = data;
    g_hash_table_insert(rig->told, shard, g_memdup2(counts, sizeof *counts));
}

static double per_sec(const Rig *rig, guint64 now, guint64 before)
{
    return (double)(now - before) / rig->options->progress_sec;
}

static gboolean say_progress(gpointer data)
{
    Rig *rig = data;
    RigCounts sum = {0};
    GHashTableIter iter;
    gpointer counts;
    g_hash_table_iter_init(&iter, rig->told);
    while (g_hash_table_iter_next(&iter, NULL, &counts))
        add(&sum, counts);
    fprintf(stderr,
            "%.0f s: %" G_GUINT64_FORMAT " of %d nodes, %" G_GUINT64_FORMAT
            " guests; a second: %.0f starts, %.0f ends, %.0f reports, %.0f joins\n",
            (double)(g_get_monotonic_time() - rig->began_usec) / G_USEC_PER_SEC, sum.nodes,
            rig->options->nodes, sum.guests, per_sec(rig, sum.starts, rig->before.starts),
            per_sec(rig, sum.kept, rig->before.kept),
            per_sec(rig, sum.reports, rig->before.reports),
            per_sec(rig, sum.joins, rig->before.joins));
    rig->before = sum;
    return G_SOURCE_CONTINUE;
}

static void print_counts(const RigCounts *sum, double seconds)
{
    const struct {
        const char *name;
        guint64 value;
    } counts[] = {
        {"nodes", sum->nodes},       {"guests", sum->guests},
        {"joins", sum->joins},       {"reconnects", sum->joins - sum->nodes},
        {"starts", sum->starts},     {"repeats", sum->repeats},
        {"begins", sum->begins},     {"ends", sum->ends},
        {"kept", sum->kept},         {"stops", sum->stops},
        {"releases", sum->releases}, {"reports", sum->reports},
        {"refusals", sum->refusals},
    };
    printf("{\"seconds\": %.3f", seconds);
    for (guint i = 0; i < G_N_ELEMENTS(counts); i++)
        printf(", \"%s\": %" G_GUINT64_FORMAT, counts[i].name, counts[i].value);
    puts("}");
}

/* --- its life ------------------------------------------------------------------------------------ */

static gboolean on_end(gpointer data)
{
    g_main_loop_quit(((Rig *)data)->loop);
    return G_SOURCE_CONTINUE;
}

static gboolean on_join_again(gpointer data)
{
    Rig *rig = data;
    for (guint i = 0; i < rig->shards->len; i++)
        rig_shard_join_again(g_ptr_array_index(rig->shards, i));
    return G_SOURCE_CONTINUE;
}

static void start_shards(Rig *rig)
{
    guint n_nodes = (guint)rig->options->nodes;
    guint n_shards = (n_nodes + NODES_PER_SHARD - 1) / NODES_PER_SHARD;
    for (guint i = 0; i < n_shards; i++)
        g_ptr_array_add(rig->shards, rig_shard_new(&rig->options->plan, i, n_shards, n_nodes,
                                                   (guint)rig->options->join_rate, on_told, rig));
}

static void end_shards(Rig *rig, RigCounts *out_sum)
{
    for (guint i = 0; i < rig->shards->len; i++) {
        RigCounts last;
        rig_shard_free(g_ptr_array_index(rig->shards, i), &last);
        add(out_sum, &last);
    }
}

static void run(const Options *options)
{
    RigCounts sum = {0};
    Rig rig = {.options = options,
               .loop = g_main_loop_new(NULL, FALSE),
               .shards = g_ptr_array_new(),
               .told = g_hash_table_new_full(NULL, NULL, NULL, g_free),
               .began_usec = g_get_monotonic_time()};
    g_unix_signal_add(SIGINT, on_end, &rig);
    g_unix_signal_add(SIGTERM, on_end, &rig);
    g_unix_signal_add(SIGUSR1, on_join_again, &rig);
    if (options->seconds > 0)
        g_timeout_add_seconds((guint)options->seconds, on_end, &rig);
    if (options->progress_sec > 0)
        g_timeout_add_seconds((guint)options->progress_sec, say_progress, &rig);
    start_shards(&rig);
    g_main_loop_run(rig.loop);
    double seconds = (double)(g_get_monotonic_time() - rig.began_usec) / G_USEC_PER_SEC;
    end_shards(&rig, &sum);
    print_counts(&sum, seconds);
    g_ptr_array_unref(rig.shards);
    g_hash_table_unref(rig.told);
    g_main_loop_unref(rig.loop);
}

/* --- options ------------------------------------------------------------------------------------- */

static gboolean parse(Options *options, int *argc, char ***argv, GError **error)
{
    const GOptionEntry entries[] = {
        {"nodes", 0, 0, G_OPTION_ARG_INT, &options->nodes, "how many (100)", "N"},
        {"address", 0, 0, G_OPTION_ARG_STRING, &options->plan.address, "of berthd (127.0.0.1)",
         "ADDRESS"},
        {"port", 0, 0, G_OPTION_ARG_INT, &options->port, "likewise (7440)", "PORT"},
        {"certificates", 0, 0, G_OPTION_ARG_FILENAME, &options->plan.certificates,
         "directory with ca.pem and ca.key of berthd's authority; those of nodes are made there",
         "DIR"},
        {"vcpus", 0, 0, G_OPTION_ARG_INT, &options->vcpus, "of each node (64)", "N"},
        {"memory", 0, 0, G_OPTION_ARG_INT, &options->memory_mib, "likewise (262144)", "MIB"},
        {"boot-msec", 0, 0, G_OPTION_ARG_INT, &options->boot_msec,
         "from a guest's start until its command runs (0)", "MSEC"},
        {"run-msec", 0, 0, G_OPTION_ARG_INT, &options->run_msec,
         "of commands but `sleep N`, `true` and `false` (0)", "MSEC"},
        {"report-interval", 0, 0, G_OPTION_ARG_INT, &options->report_msec,
         "between a node's measurements (0: as berthd says)", "MSEC"},
        {"busy", 0, 0, G_OPTION_ARG_INT, &options->busy_percent,
         "of its vCPUs, that a guest uses (80)", "PERCENT"},
        {"join-rate", 0, 0, G_OPTION_ARG_INT, &options->join_rate,
         "nodes that begin to dial in a second, at first (500)", "N"},
        {"seconds", 0, 0, G_OPTION_ARG_INT, &options->seconds, "end after so long (0: do not)",
         "N"},
        {"progress", 0, 0, G_OPTION_ARG_INT, &options->progress_sec,
         "say how it fares so often (5; 0: do not)", "SECONDS"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &options->trace,
         "append to FILE, for each command that begins or ends, and each end that berthd has: "
         "begin, end or kept; JOB TASK EPOCH; for each node that begins to dial, has joined, or "
         "is made to join again: dial, join or part; NODE; and microseconds since 1970",
         "FILE"},
        G_OPTION_ENTRY_NULL};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, "Thousands of nodes that are not there.");
    g_option_context_add_main_entries(context, entries, NULL);
    return g_option_context_parse(context, argc, argv, error);
}

static gboolean is_in(int value, int min, int max)
{
    return value >= min && value <= max;
}

static gboolean take(Options *options, GError **error)
{
    RigPlan *plan = &options->plan;
    if (!is_in(options->nodes, 1, 100000) || !is_in(options->port, 1, 65535) ||
        !is_in(options->vcpus, 1, 65536) || !is_in(options->memory_mib, 64, G_MAXINT) ||
        !is_in(options->busy_percent, 0, 100) || !is_in(options->join_rate, 1, 1000000) ||
        options->boot_msec < 0 || options->run_msec < 0 || options->report_msec < 0 ||
        options->seconds < 0 || options->progress_sec < 0 || plan->certificates == NULL) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "a number is out of its range, or --certificates is missing");
        return FALSE;
    }
    plan->port = (guint16)options->port;
    plan->vcpus = (guint32)options->vcpus;
    plan->memory_mib = (guint64)options->memory_mib;
    plan->boot_msec = (guint)options->boot_msec;
    plan->run_msec = (guint)options->run_msec;
    plan->report_msec = (guint)options->report_msec;
    plan->busy_percent = (guint)options->busy_percent;
    if (plan->address == NULL)
        plan->address = g_strdup("127.0.0.1");
    rig_sources_are_local = g_str_has_prefix(plan->address, "127.");
    char *absolute = g_canonicalize_filename(plan->certificates, NULL); /* as GIO wants it */
    g_free(plan->certificates);
    plan->certificates = absolute;
    plan->trace_fd = -1;
    if (options->trace != NULL)
        plan->trace_fd = open(options->trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (options->trace == NULL || plan->trace_fd >= 0)
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "cannot write %s: %s",
                options->trace, g_strerror(errno));
    return FALSE;
}

/* Each node has a connection. */
static void raise_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void clear(Options *options)
{
    g_free(options->plan.address);
    g_free(options->plan.certificates);
    g_free(options->trace);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, clear)

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_auto(Options) options = {.nodes = 100,
                               .port = 7440,
                               .vcpus = 64,
                               .memory_mib = 262144,
                               .busy_percent = 80,
                               .join_rate = 500,
                               .progress_sec = 5};
    prctl(PR_SET_NAME, "rig");
    if (!parse(&options, &argc, &argv, &error) || !take(&options, &error)) {
        fprintf(stderr, "rig: %s\n", error->message);
        return EXIT_USAGE;
    }
    berth_log_init("rig", BERTH_LOG_WARNING);
    raise_limits();
    if (!rig_certificates_make(options.plan.certificates, (guint)options.nodes, &error)) {
        fprintf(stderr, "rig: %s\n", error->message);
        return EXIT_FAILURE;
    }
    run(&options);
    return EXIT_SUCCESS;
}
