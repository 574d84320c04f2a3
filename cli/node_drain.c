/* SPDX-License-Identifier: Apache-2.0 */
/* berth node drain: says what would be done, or asks for it and follows in the event log until nothing is
 * left on the nodes, or a deadline has passed. The drain is the daemon's: it goes on without whoever asked for it. */
#include "cli/node_drain.h"

#include "cli/format.h"
#include "cli/node_change.h"
#include "cli/table.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/id.h"
#include "common/types.h"
#include "common/units.h"

#include <glib-unix.h>
#include <stdio.h>
#include <unistd.h>

typedef struct {
    BerthCli *cli;
    char **names;
    const char *reason;
    gboolean is_ours; /* nobody else may have closed them */
    char *nodes;      /* as they were named, for messages */
    GHashTable *left; /* names of those that are not empty yet */
    GHashTable *ways; /* Way: who is on his way from one of them */
    gboolean was_asked;
    guint64 last_seq;
    gint64 deadline_usec; /* monotonic; G_MAXINT64 = none */
    gboolean is_late;     /* it has passed */
    gboolean has_failed;  /* somebody has ended the drain of one of them */
} Drain;

/* --- the plan -------------------------------------------------------------------------------- */

static const BerthColumn columns[] = {
    {.title = "NODE", .flexible = TRUE},
    {.title = "JOB", .right = TRUE},
    {.title = "NAME", .flexible = TRUE, .drop = 2},
    {.title = "USER", .flexible = TRUE, .drop = 1},
    {.title = "STATE"},
    {.title = "WHAT"},
    {.title = "TAKES", .right = TRUE},
    {.title = "TIME LIMIT"},
};

/* What becomes of a guest, if all stays as it is. */
typedef enum {
    MOVES,
    SAVING,      /* at this moment, and leaves, for whatever reason */
    SAVED,       /* it may run nowhere else */
    SAVED_LATER, /* when no room has come for it */
    LODGED,      /* likewise */
    LACKS_ROOM,  /* and cannot be saved */
    LACKS_SPACE, /* likewise, and may run nowhere else */
    ENDED,       /* and its guest is being removed */
    WAITED_FOR,
    N_FATES,
} Fate;

static const char *const fates[] = {[MOVES] = "is moved",
                                    [SAVING] = "is being checkpointed",
                                    [SAVED] = "is checkpointed",
                                    [SAVED_LATER] = "is checkpointed",
                                    [LODGED] = "is moved into slack",
                                    [LACKS_ROOM] = "waits for room",
                                    [LACKS_SPACE] = "waits for space",
                                    [ENDED] = "is being removed",
                                    [WAITED_FOR] = "is waited for"};

typedef struct {
    BerthTable *table;
    guint n_guests;
    guint n_of[N_FATES];
    guint n_unknown; /* of those that are waited for: of which nobody knows when they end */
    guint64 limit_usec;
    guint64 expected_usec; /* for all that leave */
} Plan;

static Fate fate_of(const Berth__DrainStep *step)
{
    if (berth_job_state_is_final((BerthJobState)step->state))
        return ENDED;
    if (step->moves && !step->lacks_room)
        return MOVES;
    if (step->is_leaving)
        return SAVING;
    if (step->into_slack)
        return LODGED;
    if (step->checkpoints && !step->lacks_space)
        return step->moves ? SAVED_LATER : SAVED;
    if (step->moves)
        return LACKS_ROOM;
    return step->checkpoints ? LACKS_SPACE : WAITED_FOR;
}

/* Begun seconds (transfer full); NULL for 0. */
static char *format_takes(guint64 usec)
{
    return usec > 0 ? berth_format_duration_sec((usec + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC)
                    : NULL;
}

static char *name_of(const Berth__DrainStep *step)
{
    return berth_task_name_format(step->guest->job, step->of_array, step->guest->task);
}

static void add_step(Plan *plan, const char *node, const Berth__DrainStep *step)
{
    Fate fate = fate_of(step);
    berth_table_add(plan->table, g_strdup(node));
    berth_table_add(plan->table, name_of(step));
    berth_table_add(plan->table, g_strdup(step->job_name));
    berth_table_add(plan->table, g_strdup(step->user));
    berth_table_add(plan->table, g_strdup(berth_job_state_name(step->state)));
    berth_table_add(plan->table, g_strdup(fates[fate]));
    berth_table_add(plan->table, fate == ENDED ? NULL : format_takes(step->takes_usec));
    berth_table_add(plan->table, fate == ENDED ? NULL : berth_format_time(step->limit_usec));
    plan->n_guests++;
    plan->n_of[fate]++;
    plan->n_unknown += fate == WAITED_FOR && step->limit_usec == 0;
    if (fate == WAITED_FOR)
        plan->limit_usec = MAX(plan->limit_usec, step->limit_usec);
}

/* With all of NAMES. (transfer full) */
static Berth__DrainPlan *ask_plan(BerthCli *cli, const char *node, char **names, GError **error)
{
    Berth__PlanDrainRequest request = BERTH__PLAN_DRAIN_REQUEST__INIT;
    request.name = (char *)node;
    request.others = names;
    request.n_others = g_strv_length(names);
    return (Berth__DrainPlan *)berth_cli_call(cli, &berth__nodes__descriptor, "PlanDrain",
                                              &request.base, error);
}

static gboolean plan_node(BerthCli *cli, Plan *plan, const char *node, char **names, GError **error)
{
    Berth__DrainPlan *reply = ask_plan(cli, node, names, error);
    if (reply == NULL)
        return FALSE;
    for (size_t i = 0; i < reply->n_steps; i++)
        add_step(plan, node, reply->steps[i]);
    plan->expected_usec = MAX(plan->expected_usec, reply->expected_usec);
    if (reply->away && !cli->json)
        printf(
            "%s is not reached now: what is said of its jobs waits until it is, or is given up\n",
            node);
    if (cli->json)
        berth_cli_print_json(&reply->base);
    berth__drain_plan__free_unpacked(reply, NULL);
    return TRUE;
}

static const char *const why_fates[] = {
    [MOVES] = "are moved: there is room for them elsewhere",
    [SAVING] = "are being checkpointed, and leave when that is done",
    [SAVED] = "may run nowhere else: they are checkpointed, and go on when the node is open again",
    [SAVED_LATER] = "have no room elsewhere now: if none comes soon (drain_patience_usec of "
                    "berthd.conf) they are checkpointed, and go on where they have their turn",
    [LODGED] =
        "have no room but in slack now: if none comes soon (drain_patience_usec of berthd.conf) "
        "they are moved there, and backed again as soon as there is room",
    [LACKS_ROOM] =
        "have no room elsewhere now, and cannot be checkpointed, or not for want of space: "
        "they stay until there is room",
    [LACKS_SPACE] =
        "may run nowhere else, and there is not so much space left for checkpoints: they "
        "stay until berth checkpoint rm has made room, or they end",
    [ENDED] = "have ended, and their guests are being removed"};

static void print_plan(const Plan *plan)
{
    g_autofree char *limit = berth_format_time(plan->limit_usec);
    g_autofree char *expected = format_takes(plan->expected_usec);
    if (plan->n_guests == 0) {
        puts("nothing runs there");
        return;
    }
    berth_table_print(plan->table, stdout, berth_terminal_width(stdout));
    for (Fate fate = MOVES; fate < WAITED_FOR; fate++)
        if (plan->n_of[fate] > 0)
            printf("%u of %u %s\n", plan->n_of[fate], plan->n_guests, why_fates[fate]);
    if (expected != NULL)
        printf("those that are moved or checkpointed are expected to have left in %s\n", expected);
    guint n_waited = plan->n_of[WAITED_FOR];
    if (plan->n_unknown > 0)
        printf("nobody knows when %u of %u end: they have no time limit, or an operator froze "
               "them\n",
               plan->n_unknown, plan->n_guests);
    else if (limit != NULL)
        printf("all that %s waited for come%s to %s time limit by %s, or later by the time that "
               "others "
               "on the node take from %s\n",
               n_waited == 1 ? "is" : "are", n_waited == 1 ? "s" : "",
               n_waited == 1 ? "its" : "their", limit, n_waited == 1 ? "it" : "them");
}

/* Of NAMES, as they are now. */
static gboolean show_plan(BerthCli *cli, char **names, GError **error)
{
    g_autoptr(BerthTable) table = berth_table_new(columns, G_N_ELEMENTS(columns));
    Plan plan = {.table = table};
    for (char **name = names; *name != NULL; name++)
        if (!plan_node(cli, &plan, *name, names, error))
            return FALSE;
    if (!cli->json)
        print_plan(&plan);
    fflush(stdout);
    return TRUE;
}

/* --- who is on his way ------------------------------------------------------------------------ */

typedef struct {
    guint64 job; /* with TASK: the key */
    guint32 task;
    char *from;
    guint64 since_usec;
} Way;

static void way_free(gpointer data)
{
    g_free(((Way *)data)->from);
    g_free(data);
}

static guint way_hash(gconstpointer data)
{
    const Way *way = data;
    return g_int64_hash(&way->job) ^ way->task;
}

static gboolean way_equal(gconstpointer a, gconstpointer b)
{
    const Way *left = a, *right = b;
    return left->job == right->job && left->task == right->task;
}

/* --- following ------------------------------------------------------------------------------- */

/* A line, at once: whoever reads it may be a pipe. */
static void say(const Drain *drain, const char *node, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void say(const Drain *drain, const char *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *printable = berth_printable(text);
    if (!drain->cli->json)
        printf("%s: %s\n", node, printable);
    fflush(stdout);
}

/* Only one that was lost has lost work. */
static const char *why_it_waits(Berth__Reason reason)
{
    switch (reason) {
    case BERTH__REASON__REASON_DRAIN:
    case BERTH__REASON__REASON_EVICTED:
    case BERTH__REASON__REASON_STARVED:
        return "was checkpointed, and goes on where a node is open to it";
    case BERTH__REASON__REASON_RESTORING:
        return "goes on from a checkpoint where a node is open to it";
    case BERTH__REASON__REASON_REQUEUED:
        return "has lost its guest, and starts again, from its newest checkpoint if it has one";
    default:
        return "waits to start again";
    }
}

static void take_task(const Drain *drain, const Berth__Event *event)
{
    g_autofree char *name = berth_event_task_format(event);
    if (berth_job_state_is_final((BerthJobState)event->state))
        say(drain, event->node, "job %s has ended: %s", name, berth_job_state_name(event->state));
    else if (event->state == BERTH__JOB_STATE__PENDING)
        say(drain, event->node, "job %s %s", name, why_it_waits(event->reason));
}

static void begin_way(const Drain *drain, const Berth__Event *event)
{
    g_autofree char *name = berth_event_task_format(event);
    Way *way = g_new(Way, 1);
    *way = (Way){event->job, event->task, g_strdup(event->node), event->time_usec};
    g_hash_table_replace(drain->ways, way, way);
    say(drain, event->node, "job %s moves to %s", name, event->text);
}

/* Of where it is now, which need not be drained. */
static void take_arrival(const Drain *drain, const Berth__Event *event)
{
    const Way key = {.job = event->job, .task = event->task};
    const Way *way = g_hash_table_lookup(drain->ways, &key);
    if (way == NULL)
        return;
    g_autofree char *name = berth_event_task_format(event);
    say(drain, way->from, "job %s runs on %s now, after %.1f s", name, event->node,
        (double)(event->time_usec - way->since_usec) / G_USEC_PER_SEC);
    if (drain->cli->json)
        berth_cli_print_json(&event->base);
    g_hash_table_remove(drain->ways, &key);
}

static void end_way(const Drain *drain, const Berth__Event *event)
{
    const Way key = {.job = event->job, .task = event->task};
    g_hash_table_remove(drain->ways, &key);
}

/* Or could not be saved. */
static void take_move(const Drain *drain, const Berth__Event *event)
{
    g_autofree char *name = berth_event_task_format(event);
    if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATE) {
        begin_way(drain, event);
        return;
    }
    end_way(drain, event);
    if (event->reason == BERTH__REASON__REASON_GUEST_VANISHED)
        say(drain, event->node, "job %s %s: %s", name, why_it_waits(BERTH__REASON__REASON_REQUEUED),
            event->text);
    else
        say(drain, event->node, "job %s stays for now: %s", name, event->text);
}

static void take_end(Drain *drain, const Berth__Event *event)
{
    g_hash_table_remove(drain->left, event->node);
    drain->has_failed = TRUE;
    g_autofree char *user = berth_printable(event->user);
    fprintf(stderr, "%s: %s is not to be empty any more%s: %s has %s it\n", g_get_prgname(),
            event->node, event->kind == BERTH__EVENT__KIND__NODE_DRAINED ? " for this" : "", user,
            event->kind == BERTH__EVENT__KIND__NODE_DRAINED    ? "drained"
            : event->kind == BERTH__EVENT__KIND__NODE_CORDONED ? "cordoned"
            : event->kind == BERTH__EVENT__KIND__NODE_GIVEN_UP ? "given up"
                                                               : "undrained");
}

/* FALSE: nothing more is to be waited for. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Drain *drain = user_data;
    drain->last_seq = event->seq;
    if (event->kind == BERTH__EVENT__KIND__GUEST_MIGRATED)
        take_arrival(drain, event);
    if (!g_hash_table_contains(drain->left, event->node))
        return TRUE;
    if (drain->cli->json)
        berth_cli_print_json(item);
    switch (event->kind) {
    case BERTH__EVENT__KIND__TASK_STATE:
        take_task(drain, event);
        break;
    case BERTH__EVENT__KIND__GUEST_MIGRATE:
    case BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED:
        take_move(drain, event);
        break;
    case BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED:
        if (event->reason == BERTH__REASON__REASON_DRAIN)
            take_move(drain, event);
        break;
    case BERTH__EVENT__KIND__NODE_EMPTY:
        say(drain, event->node, "is empty");
        g_hash_table_remove(drain->left, event->node);
        break;
    case BERTH__EVENT__KIND__NODE_DOWN:
        say(drain, event->node, "has no session any more; its jobs may still run");
        break;
    case BERTH__EVENT__KIND__NODE_LOST:
        say(drain, event->node, "is lost; its jobs are given up");
        break;
    case BERTH__EVENT__KIND__NODE_DRAINED:
        if (drain->is_ours && !g_str_equal(event->text, drain->reason))
            take_end(drain, event);
        break;
    case BERTH__EVENT__KIND__NODE_UNDRAINED:
    case BERTH__EVENT__KIND__NODE_UNCORDONED:
    case BERTH__EVENT__KIND__NODE_TAKEN_BACK:
    case BERTH__EVENT__KIND__NODE_CORDONED:
    case BERTH__EVENT__KIND__NODE_GIVEN_UP:
        take_end(drain, event);
        break;
    default:
        break;
    }
    return g_hash_table_size(drain->left) > 0;
}

/* One that was drained before, and is empty since then, has no event to come. */
static gboolean look_at(Drain *drain, const char *name, GError **error)
{
    Berth__Node *node = berth_cli_get_node(drain->cli, name, error);
    if (node == NULL)
        return FALSE;
    const Berth__NodeAdmission *admission = node->admission;
    if (admission != NULL && admission->empty_usec != 0 &&
        admission->empty_usec < admission->since_usec) {
        say(drain, name, "is empty");
        g_hash_table_remove(drain->left, name);
    }
    berth__node__free_unpacked(node, NULL);
    return TRUE;
}

static gboolean ask(BerthCli *cli, Drain *drain, GError **error)
{
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    request.reason = (char *)drain->reason;
    if (drain->is_ours)
        request.if_reason = request.reason;
    if (!berth_cli_change_nodes(cli, "Drain", drain->names, &request, &drain->last_seq, error))
        return FALSE;
    drain->was_asked = TRUE;
    return TRUE;
}

static gboolean ask_once(BerthCli *cli, gpointer user_data, GError **error)
{
    return ask(cli, user_data, error);
}

static gboolean follow(BerthCli *cli, gpointer user_data, GError **error)
{
    Drain *drain = user_data;
    while (g_hash_table_size(drain->left) > 0) {
        drain->is_late = g_get_monotonic_time() >= drain->deadline_usec;
        if (drain->is_late)
            return TRUE;
        if (!berth_cli_watch_until(cli, drain->last_seq, drain->deadline_usec, take_event, drain,
                                   error))
            return FALSE;
    }
    return TRUE;
}

/* --- the deadline ---------------------------------------------------------------------------- */

static const char *why_there(const Berth__DrainStep *step)
{
    switch (fate_of(step)) {
    case LACKS_ROOM:
    case SAVED_LATER:
        return "there was no room for it elsewhere in time";
    case LODGED:
        return "there was no room for it elsewhere in time but in slack, into which it has not "
               "moved yet";
    case MOVES:
        return "it was not moved in time";
    case SAVING:
        return "it is being checkpointed, which was not done in time";
    case SAVED:
        return "it cannot be moved, and was not checkpointed";
    case LACKS_SPACE:
        return "it cannot be moved, and there is not so much space left for a checkpoint of it";
    case ENDED:
        return "it has ended, and its guest is being removed";
    case WAITED_FOR:
    case N_FATES:
        break;
    }
    return "it can be neither moved nor checkpointed";
}

static gboolean tell_left_on(Drain *drain, const char *name, guint *n_left, GError **error)
{
    Berth__DrainPlan *plan = ask_plan(drain->cli, name, drain->names, error);
    if (plan == NULL)
        return FALSE;
    for (size_t i = 0; i < plan->n_steps; i++) {
        g_autofree char *job = name_of(plan->steps[i]);
        say(drain, name, "job %s is still there: %s", job, why_there(plan->steps[i]));
    }
    *n_left += (guint)plan->n_steps;
    if (drain->cli->json)
        berth_cli_print_json(&plan->base);
    berth__drain_plan__free_unpacked(plan, NULL);
    return TRUE;
}

/* Of each guest that is left. Always FALSE. */
static gboolean fail_late(Drain *drain, GError **error)
{
    guint n_left = 0;
    for (char **name = drain->names; *name != NULL; name++)
        if (g_hash_table_contains(drain->left, *name) &&
            !tell_left_on(drain, *name, &n_left, error))
            return FALSE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                "%u job%s not left %s by the deadline; the drain goes on, and ends nobody", n_left,
                n_left == 1 ? " has" : "s have", drain->nodes);
    return FALSE;
}

static gboolean on_signal(gpointer user_data)
{
    const Drain *drain = user_data;
    fflush(stdout);
    fprintf(stderr,
            "%s: left; the drain goes on. `berth node undrain %s` ends it, `berth node ls` shows "
            "how it stands\n",
            g_get_prgname(), drain->nodes);
    _exit(128 + SIGINT);
}

static gboolean show_plan_once(BerthCli *cli, gpointer user_data, GError **error)
{
    const Drain *drain = user_data;
    return show_plan(cli, drain->names, error);
}

static gboolean look_at_all(BerthCli *cli, gpointer user_data, GError **error)
{
    Drain *drain = user_data;
    for (char **name = drain->names; *name != NULL; name++)
        if (g_hash_table_contains(drain->left, *name) && !look_at(drain, *name, error))
            return FALSE;
    return TRUE;
}

/* Over restarts of the daemon, from the first question on. */
static gboolean wait_until_empty(Drain *drain, GError **error)
{
    BerthCli *cli = drain->cli;
    gint64 deadline_usec = drain->deadline_usec;
    if ((!cli->json &&
         !berth_cli_persist_until(cli, TRUE, deadline_usec, show_plan_once, drain, error)) ||
        !berth_cli_persist_until(cli, TRUE, deadline_usec, look_at_all, drain, error) ||
        !berth_cli_persist_until(cli, TRUE, deadline_usec, follow, drain, error))
        return FALSE;
    return !drain->is_late || fail_late(drain, error);
}

static void drain_init(Drain *drain, BerthCli *cli, char **names, const char *reason,
                       guint64 patience_sec)
{
    *drain = (Drain){.cli = cli, .names = names, .reason = reason, .deadline_usec = G_MAXINT64};
    if (patience_sec > 0)
        drain->deadline_usec = g_get_monotonic_time() + (gint64)patience_sec * G_USEC_PER_SEC;
    drain->left = g_hash_table_new(g_str_hash, g_str_equal);
    drain->ways = g_hash_table_new_full(way_hash, way_equal, NULL, way_free);
    for (char **name = names; *name != NULL; name++)
        g_hash_table_add(drain->left, *name);
}

static void drain_clear(Drain *drain)
{
    g_hash_table_unref(drain->left);
    g_hash_table_unref(drain->ways);
    g_free(drain->nodes);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Drain, drain_clear)

gboolean berth_cli_drain_nodes(BerthCli *cli, char **names, const char *reason,
                               guint64 patience_sec, gboolean *out_asked, GError **error)
{
    g_auto(Drain) drain;
    drain_init(&drain, cli, names, reason, patience_sec);
    drain.is_ours = TRUE;
    drain.nodes = g_strjoinv(",", names);
    gboolean ok =
        berth_cli_persist(cli, FALSE, ask_once, &drain, error) && wait_until_empty(&drain, error);
    *out_asked = drain.was_asked;
    if (!ok)
        return FALSE;
    if (drain.has_failed)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "somebody has ended the drain of %s", drain.nodes);
    return !drain.has_failed;
}

/* --- the verb -------------------------------------------------------------------------------- */

static gboolean drain_named(Drain *drain, gboolean waits, int *out_status, GError **error)
{
    if (!berth_cli_persist(drain->cli, FALSE, ask_once, drain, error))
        return FALSE;
    if (!waits)
        return TRUE;
    guint signal = g_unix_signal_add(SIGINT, on_signal, drain);
    gboolean ok = wait_until_empty(drain, error);
    g_source_remove(signal);
    if (ok && drain->has_failed)
        *out_status = BERTH_EXIT_FAILED;
    return ok;
}

static gboolean plan_named(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_auto(GStrv) names = berth_cli_node_arguments(argc, argv, out_status, error);
    return names != NULL && show_plan(cli, names, error);
}

gboolean berth_cli_node_drain(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *reason = NULL;
    g_autofree char *deadline = NULL;
    guint64 patience_sec = 0;
    gboolean plan = FALSE, no_wait = FALSE;
    const GOptionEntry entries[] = {
        {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason, "Why, for everybody to see", "TEXT"},
        {"plan", 0, 0, G_OPTION_ARG_NONE, &plan,
         "Only say what would be done with each job, how long that takes, and when it comes to its "
         "time limit",
         NULL},
        {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, "Do not wait until the nodes are empty",
         NULL},
        {"deadline", 0, 0, G_OPTION_ARG_STRING, &deadline,
         "Wait so long at most (30m, 2h), and say of each job that is left why it is", "TIME"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json,
         "Print the events of the nodes, or with --plan the plan of each, as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "NODES...",
            "The nodes get no new jobs. Those that run there are moved, or, where there is no "
            "room for\nthem, checkpointed, to go on elsewhere later; who can be neither is "
            "waited for, and none is\nended. Returns when nothing is left on the nodes. Ctrl-C "
            "leaves the drain on; `berth node\nundrain` ends it at any time. NODES: n1,n2 or "
            "n[1-3,7] or r[1-2]n[01-12]. For operators.",
            NULL, out_status, error))
        return FALSE;
    if (plan && (no_wait || deadline != NULL))
        return berth_cli_usage_error(
            out_status, error, "--plan drains nothing: there is nothing to wait for; leave out %s",
            no_wait ? "--no-wait" : "--deadline");
    if (plan)
        return plan_named(cli, argc, argv, out_status, error);
    if (reason == NULL || *reason == '\0')
        return berth_cli_usage_error(out_status, error, "say why, with --reason TEXT");
    if (no_wait && deadline != NULL)
        return berth_cli_usage_error(out_status, error,
                                     "--deadline is for how long it is waited: not with --no-wait");
    if (deadline != NULL && !berth_cli_patience(deadline, &patience_sec, out_status, error))
        return FALSE;
    g_auto(GStrv) names = berth_cli_node_arguments(argc, argv, out_status, error);
    if (names == NULL)
        return FALSE;
    g_auto(Drain) drain;
    drain_init(&drain, cli, names, reason, patience_sec);
    drain.nodes = g_strjoinv(" ", argv + 1);
    return drain_named(&drain, !no_wait, out_status, error);
}
