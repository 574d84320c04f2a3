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

/* A job, or some tasks of an array. */
typedef struct {
    const BerthCliTasks *tasks;
    gboolean is_checked;
    gboolean is_none; /* there is none: that was said */
} Named;

typedef struct {
    BerthCli *cli;
    GArray *arguments; /* BerthCliTasks, in their order; NULL = all events */
    Named *named;      /* as many */
    GHashTable
        *jobs; /* guint64, of those that there are -> BerthIndexSet, NULL = of all its tasks */
    GHashTable *seen; /* of these, those of which there was an event */
    gboolean is_read; /* the log, as far as it is to be */
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
    if (*event->cause != '\0')
        g_string_append_printf(line, " (%s)", event->cause);
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

/* What is of a job as a whole is of each of its tasks. */
static gboolean is_of_jobs(const Events *events, const Berth__Event *event)
{
    gpointer tasks = NULL;
    return events->jobs == NULL ||
           (g_hash_table_lookup_extended(events->jobs, &event->job, NULL, &tasks) &&
            berth_event_is_of(event, tasks));
}

static void note_seen(Events *events, const Berth__Event *event)
{
    if (events->jobs != NULL && g_hash_table_contains(events->jobs, &event->job))
        g_hash_table_add(events->seen, g_memdup2(&event->job, sizeof(guint64)));
}

/* FALSE: nothing more is wanted, or nobody reads it any more. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Events *events = user_data;
    events->since = (BerthSince){.after_seq = event->seq};
    gboolean is_wanted = is_of_jobs(events, event) && is_of_nodes(events, event);
    note_seen(events, event);
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

/* --- what is named ---------------------------------------------------------------------------- */

/* The events of a job whose record is gone are still told: only where there is none it is looked whether there was such a job. Who follows
 * it wants to know at once, as does who names tasks: what is of their job alone tells nothing of them. */
static gboolean is_due(const Events *events, const Named *named)
{
    if (named->is_checked)
        return FALSE;
    return events->is_read ? !g_hash_table_contains(events->seen, &named->tasks->job)
                           : events->follows || named->tasks->tasks != NULL;
}

/* TRUE: JOB has what is NAMED. */
static gboolean has_named(const Berth__Job *job, const Named *named, GError **error)
{
    g_autoptr(BerthIndexSet) found = NULL;
    if (named->tasks->tasks == NULL)
        return TRUE;
    found = berth_job_find_tasks(job, named->tasks->tasks, NULL, error);
    return found != NULL;
}

static gboolean check_one(BerthCli *cli, Events *events, Named *named, GError **error)
{
    g_autoptr(GError) local = NULL;
    Berth__Job *job = berth_get_job(cli, named->tasks->job, &local);
    gboolean is_gone = job == NULL && g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND);
    if (job == NULL && !is_gone) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (is_gone && !events->is_read && !events->follows)
        return TRUE; /* there may be events of it */
    named->is_checked = TRUE;
    named->is_none = is_gone || !has_named(job, named, &local);
    if (named->is_none)
        berth_cli_report(local, &events->status);
    if (job != NULL)
        berth__job__free_unpacked(job, NULL);
    return TRUE;
}

/* Says of what is named if there is none. */
static gboolean check_jobs(BerthCli *cli, gpointer user_data, GError **error)
{
    Events *events = user_data;
    for (guint i = 0; i < events->arguments->len; i++)
        if (is_due(events, &events->named[i]) && !check_one(cli, events, &events->named[i], error))
            return FALSE;
    return TRUE;
}

static void add_job(GHashTable *jobs, const BerthCliTasks *named)
{
    gpointer tasks = NULL;
    gboolean is_known = g_hash_table_lookup_extended(jobs, &named->job, NULL, &tasks);
    gboolean is_of_all = named->tasks == NULL || (is_known && tasks == NULL);
    if (is_known && !is_of_all)
        berth_index_set_add_all(tasks, named->tasks);
    else
        g_hash_table_insert(jobs, g_memdup2(&named->job, sizeof(guint64)),
                            is_of_all ? NULL : berth_index_set_copy(named->tasks));
}

static void add_jobs(Events *events)
{
    for (guint i = 0; i < events->arguments->len; i++) {
        if (events->named[i].is_none)
            continue;
        add_job(events->jobs, events->named[i].tasks);
        events->job = events->named[i].tasks->job;
    }
    if (g_hash_table_size(events->jobs) > 1)
        events->job = 0;
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
    gboolean from_now = events->follows && events->arguments == NULL && since == NULL;
    if (from_now && !berth_cli_persist(events->cli, FALSE, begin_now, events, error))
        return FALSE;
    if (events->arguments != NULL) {
        if (!berth_cli_persist(events->cli, FALSE, check_jobs, events, error))
            return FALSE;
        add_jobs(events);
        if (g_hash_table_size(events->jobs) == 0)
            return TRUE;
    }
    if (!berth_cli_persist(events->cli, events->follows, read_log, events, error))
        return FALSE;
    events->is_read = TRUE;
    return events->arguments == NULL ||
           berth_cli_persist(events->cli, FALSE, check_jobs, events, error);
}

static void free_tasks(gpointer tasks)
{
    if (tasks != NULL)
        berth_index_set_free(tasks);
}

/* FALSE: an argument is none. */
static gboolean name_jobs(Events *events, int argc, char **argv, int *out_status, GError **error)
{
    if (argc < 2)
        return TRUE;
    events->arguments = berth_cli_task_arguments(argc, argv, out_status, error);
    if (events->arguments == NULL)
        return FALSE;
    events->named = g_new0(Named, events->arguments->len);
    for (guint i = 0; i < events->arguments->len; i++)
        events->named[i].tasks = &g_array_index(events->arguments, BerthCliTasks, i);
    events->jobs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_tasks);
    events->seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
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
            &argc, &argv, entries, "[JOB[[INDICES]]...]",
            "One line an event: its number, when, of what, what, by whom and why. All that is "
            "known, or of\nthe JOBs alone; with --follow and neither a JOB nor --since, what "
            "comes from now on.\nJOB[0-9,20] names tasks of an array: what is of all of it is "
            "shown, too.\n--since: 1234, 2h, 2026-03-01 or \"2026-03-01 12:00\".",
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
    g_clear_pointer(&events.named, g_free);
    g_clear_pointer(&events.arguments, g_array_unref);
    g_clear_pointer(&events.nodes, g_hash_table_unref);
    if (ok)
        *out_status = events.status;
    return ok;
}
