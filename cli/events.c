/* SPDX-License-Identifier: Apache-2.0 */
/* berth events: the event log, one line an event, as it is or as it grows. What was printed is not asked for
 * again, whatever becomes of the daemon meanwhile. */
#include "cli/cli.h"

#include "cli/events_since.h"
#include "cli/format.h"
#include "cli/job_get.h"
#include "cli/node_change.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/node_list.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    BerthCli *cli;
    GHashTable *jobs; /* guint64; NULL = all events */
    GArray *named;    /* likewise, in their order */
    GHashTable *seen; /* of these, those of which there was an event, or that were asked for */
    int status;
    guint64 job;       /* the only one; 0 = all, or several */
    GHashTable *nodes; /* their names; NULL = wherever they are of */
    BerthSince since;  /* its time: until the first event came */
    gboolean follows;
    guint64 until_seq; /* 0 = goes on */
} Events;

/* --- one line -------------------------------------------------------------------------------- */

static void append_subject(GString *line, const Berth__Event *event)
{
    if (event->job != 0) {
        g_autofree char *name = berth_event_task_format(event);
        g_string_append_printf(line, "job %s", name);
    } else if (*event->node != '\0') {
        g_string_append_printf(line, "node %s", event->node);
    } else {
        g_string_append(line, "cluster");
    }
}

/* What a state is says more than that there is one. */
static void append_what(GString *line, const Berth__Event *event)
{
    if (event->kind == BERTH__EVENT__KIND__REQUEST_REFUSED)
        g_string_append_printf(line, " %s (%s)", berth_event_name(event->kind),
                               berth_event_name(event->wanted));
    else if (event->kind == BERTH__EVENT__KIND__TASK_STATE)
        g_string_append_printf(line, " %s", berth_job_state_name(event->state));
    else
        g_string_append_printf(line, " %s", berth_event_name(event->kind));
    if (event->job != 0 && *event->node != '\0')
        g_string_append_printf(line, " on %s", event->node);
}

/* Who wanted it, and why; of several lines (a console) the first. The last is in their own words. */
static void append_why(GString *line, const Berth__Event *event)
{
    if (*event->user != '\0')
        g_string_append_printf(line, " by %s", event->user);
    if (event->reason != BERTH__REASON__REASON_NONE)
        g_string_append_printf(line, ": %s", berth_reason_name(event->reason));
    gsize length = strcspn(event->text, "\n");
    if (length > 0)
        g_string_append_printf(line, ": %.*s%s", (int)length, event->text,
                               event->text[length] != '\0' ? " ..." : "");
    if (*event->why != '\0')
        g_string_append_printf(line, " (why: %s)", event->why);
    if (*event->refusal != '\0')
        g_string_append_printf(line, "; the answer: %s", event->refusal);
    if (event->untold > 0)
        g_string_append_printf(line, " (%u more of %s were refused before, and are not listed)",
                               event->untold, event->user);
}

static void print_event(const Berth__Event *event)
{
    g_autofree char *time = berth_format_time(event->time_usec);
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_append_printf(line, "%8" G_GUINT64_FORMAT "  %s  ", event->seq, time ? time : "-");
    append_subject(line, event);
    append_what(line, event);
    append_why(line, event);
    g_autofree char *printable = berth_printable(line->str);
    puts(printable);
}

/* --- the log --------------------------------------------------------------------------------- */

/* A move is of both of its ends. */
static gboolean is_of_nodes(const Events *events, const Berth__Event *event)
{
    return events->nodes == NULL || g_hash_table_contains(events->nodes, event->node) ||
           (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE &&
            g_hash_table_contains(events->nodes, event->text));
}

/* FALSE: nothing more is wanted, or nobody reads it any more. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Events *events = user_data;
    events->since = (BerthSince){.after_seq = event->seq};
    gboolean is_of_jobs = events->jobs == NULL || g_hash_table_contains(events->jobs, &event->job);
    gboolean is_wanted = is_of_jobs && is_of_nodes(events, event);
    if (is_of_jobs && events->jobs != NULL)
        g_hash_table_add(events->seen, g_memdup2(&event->job, sizeof(guint64)));
    if (is_wanted && events->cli->json)
        berth_cli_print_json(item);
    else if (is_wanted)
        print_event(event);
    if (is_wanted && events->follows)
        fflush(stdout);
    return !ferror(stdout) && (events->until_seq == 0 || event->seq < events->until_seq);
}

/* All that there is by now, if it is not to go on. FALSE with ERROR: who follows tries again. */
static gboolean begin(BerthCli *cli, Events *events, GError **error)
{
    if (events->follows)
        return TRUE;
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    events->until_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    return TRUE;
}

static gboolean read_log(BerthCli *cli, gpointer user_data, GError **error)
{
    Events *events = user_data;
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    if (events->until_seq == 0 && !begin(cli, events, error))
        return FALSE;
    if (!events->follows && events->since.after_seq >= events->until_seq)
        return TRUE;
    request.after_seq = events->since.after_seq;
    request.since_usec = events->since.since_usec;
    request.job = events->job;
    request.until_seq = events->until_seq;
    return berth_rpc_peer_stream(cli->peer, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                 take_event, events, error);
}

/* Who follows everything, and does not say from when on, wants what comes. */
static gboolean begin_now(BerthCli *cli, gpointer user_data, GError **error)
{
    Events *events = user_data;
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    events->since.after_seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    return TRUE;
}

/* Says of each job that was not seen if there is none: the events of one whose record is gone are still told. */
static gboolean check_jobs(BerthCli *cli, gpointer user_data, GError **error)
{
    Events *events = user_data;
    for (guint i = 0; i < events->named->len; i++) {
        guint64 number = g_array_index(events->named, guint64, i);
        g_autoptr(GError) local = NULL;
        if (g_hash_table_contains(events->seen, &number))
            continue;
        Berth__Job *job = berth_get_job(cli, number, &local);
        if (job == NULL && !g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
        g_hash_table_add(events->seen, g_memdup2(&number, sizeof number));
        if (job == NULL) {
            berth_cli_report(local, &events->status);
            g_hash_table_remove(events->jobs, &number);
        } else {
            berth__job__free_unpacked(job, NULL);
        }
    }
    return TRUE;
}

/* Says of each node that there is none of that name. */
static gboolean check_nodes(BerthCli *cli, gpointer user_data, GError **error)
{
    Events *events = user_data;
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, events->nodes);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        g_autoptr(GError) local = NULL;
        Berth__Node *node = berth_cli_get_node(cli, name, &local);
        if (node != NULL) {
            berth__node__free_unpacked(node, NULL);
        } else if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
            berth_cli_report(local, &events->status);
            g_hash_table_iter_remove(&iter);
        } else {
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
    }
    return TRUE;
}

/* --- the verb -------------------------------------------------------------------------------- */

static gboolean print_events(Events *events, const char *since, GError **error)
{
    if (events->nodes != NULL) {
        if (!berth_cli_persist(events->cli, FALSE, check_nodes, events, error))
            return FALSE;
        if (g_hash_table_size(events->nodes) == 0)
            return TRUE;
    }
    gboolean from_now = events->follows && events->jobs == NULL && since == NULL;
    if (from_now && !berth_cli_persist(events->cli, FALSE, begin_now, events, error))
        return FALSE;
    if (events->follows && events->jobs != NULL) {
        if (!berth_cli_persist(events->cli, FALSE, check_jobs, events, error))
            return FALSE;
        if (g_hash_table_size(events->jobs) == 0)
            return TRUE;
    }
    return berth_cli_persist(events->cli, events->follows, read_log, events, error) &&
           (events->jobs == NULL ||
            berth_cli_persist(events->cli, FALSE, check_jobs, events, error));
}

/* FALSE: an argument is none. */
static gboolean name_jobs(Events *events, int argc, char **argv, int *out_status, GError **error)
{
    if (argc < 2)
        return TRUE;
    GArray *jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    events->named = jobs;
    events->jobs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    events->seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (guint i = 0; i < jobs->len; i++)
        g_hash_table_add(events->jobs,
                         g_memdup2(&g_array_index(jobs, guint64, i), sizeof(guint64)));
    if (g_hash_table_size(events->jobs) == 1)
        events->job = g_array_index(jobs, guint64, 0);
    return TRUE;
}

/* TEXT: a list, or NULL: all. */
static gboolean name_nodes(Events *events, const char *text, int *out_status, GError **error)
{
    if (text == NULL)
        return TRUE;
    g_auto(GStrv) names = berth_node_list_parse(text, error);
    if (names == NULL) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    events->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **name = names; *name != NULL; name++)
        g_hash_table_add(events->nodes, g_strdup(*name));
    return TRUE;
}

gboolean berth_cli_events(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *since = NULL, *nodes = NULL;
    Events events = {.cli = cli};
    const GOptionEntry entries[] = {
        {"follow", 'f', 0, G_OPTION_ARG_NONE, &events.follows, "Go on with what happens", NULL},
        {"since", 's', 0, G_OPTION_ARG_STRING, &since,
         "Begin after the event of that number, so long ago, or at that time", "NUMBER|AGO|TIME"},
        {"node", 'w', 0, G_OPTION_ARG_STRING, &nodes, "Only of these nodes, and of guests there",
         "NODES"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object per line", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "[JOB...]",
            "One line an event: its number, when, of what, what, by whom and why. All that is "
            "known, or of\nthe JOBs alone; with --follow and neither a JOB nor --since, what "
            "comes from now on.\n--since: 1234, 2h, 2026-03-01 or \"2026-03-01 12:00\".",
            NULL, out_status, error))
        return FALSE;
    if (since != NULL && !berth_since_parse(since, g_get_real_time(), &events.since, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    gboolean ok = name_nodes(&events, nodes, out_status, error) &&
                  name_jobs(&events, argc, argv, out_status, error) &&
                  print_events(&events, since, error);
    g_clear_pointer(&events.jobs, g_hash_table_unref);
    g_clear_pointer(&events.seen, g_hash_table_unref);
    g_clear_pointer(&events.named, g_array_unref);
    g_clear_pointer(&events.nodes, g_hash_table_unref);
    if (ok)
        *out_status = events.status;
    return ok;
}
