/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how what people asked of a job, and what came of it, is told. */
#include "cli/requests.h"

#include "cli/format.h"
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

/* Answers are sentences, whose lines are no use to programs. */
#define NO_TERMINAL_WIDTH 120u

#define KIND(name) BERTH__EVENT__KIND__##name

/* --- what was asked for ------------------------------------------------------------------------- */

static const char *verb_of(Berth__Event__Kind kind)
{
    switch (kind) {
    case KIND(JOB_HELD):
        return "hold";
    case KIND(JOB_RELEASED):
        return "release";
    case KIND(JOB_CANCEL_REQUESTED):
        return "cancel";
    case KIND(JOB_FREEZE_REQUESTED):
        return "freeze";
    case KIND(JOB_THAW_REQUESTED):
        return "thaw";
    case KIND(JOB_MIGRATE_REQUESTED):
        return "migrate";
    case KIND(JOB_MIGRATE_CANCEL_REQUESTED):
        return "migrate --cancel";
    case KIND(JOB_RESIZE_REQUESTED):
        return "resize";
    case KIND(JOB_EXTEND_REQUESTED):
        return "extend";
    case KIND(JOB_CHECKPOINT_REQUESTED):
    case KIND(JOB_CHECKPOINT_EVERY_REQUESTED):
        return "checkpoint";
    case KIND(JOB_RESTORE_REQUESTED):
        return "restore";
    case KIND(CHECKPOINT_REMOVED):
        return "checkpoint rm";
    default:
        return berth_event_name(kind);
    }
}

/* "freeze to disk", "migrate to n2", "resize: 2 vCPUs, 512M", "checkpoint rm 3". ASKED may be NULL. (transfer full) */
static char *what_text(Berth__Event__Kind kind, const Berth__Event *asked)
{
    const char *verb = verb_of(kind);
    gboolean is_number = kind == KIND(JOB_RESTORE_REQUESTED) || kind == KIND(CHECKPOINT_REMOVED);
    gboolean is_phrase = is_number || kind == KIND(JOB_FREEZE_REQUESTED) ||
                         kind == KIND(JOB_CHECKPOINT_EVERY_REQUESTED);
    if (asked == NULL || (*asked->text == '\0' && *asked->node == '\0'))
        return g_strdup(verb);
    if (*asked->text == '\0')
        return g_strdup_printf("%s to %s", verb, asked->node);
    gsize length = strcspn(asked->text, is_number ? ":\n" : "\n");
    return g_strdup_printf("%s%s %.*s", verb, is_phrase ? "" : ":", (int)length, asked->text);
}

/* --- what came of it ---------------------------------------------------------------------------- */

/* SETTLED may be NULL: it was done at once. (transfer full) */
static char *done_text(const Berth__Event *settled)
{
    if (settled == NULL)
        return g_strdup("done");
    switch (settled->kind) {
    case KIND(GUEST_MIGRATED):
        return g_strdup_printf("done: on %s", settled->node);
    case KIND(GUEST_RESIZED):
        return g_strdup_printf("done: has %s", settled->text);
    case KIND(GUEST_CHECKPOINTED):
        return g_strdup_printf("done: checkpoint %s", settled->text);
    default:
        return g_strdup("done");
    }
}

static char *failed_text(const Berth__JobRequest *request)
{
    const Berth__Event *settled = request->settled;
    if (settled == NULL)
        return g_strdup("failed");
    if (settled->kind == KIND(GUEST_MIGRATED))
        return request->kind == KIND(JOB_RESIZE_REQUESTED)
                   ? g_strdup_printf("failed: moved to %s, which has no room for it any more",
                                     settled->node)
                   : g_strdup_printf("failed: too late, it is on %s", settled->node);
    if (settled->kind == KIND(TASK_STATE))
        return g_strdup_printf("failed: its guest is no more (%s)",
                               berth_reason_name(settled->reason));
    return g_strdup_printf("failed: %s%.*s",
                           settled->kind == KIND(CHECKPOINT_REMOVED) ? "checkpoint " : "",
                           (int)strcspn(settled->text, "\n"), settled->text);
}

static char *overtaken_text(const Berth__Event *settled)
{
    if (settled == NULL)
        return g_strdup("overtaken");
    if (settled->kind == KIND(TASK_STATE))
        return g_strdup_printf("overtaken: the job ended (%s)",
                               berth_job_state_name(settled->state));
    return g_strdup_printf("overtaken: %s, by %s", verb_of(settled->kind), settled->user);
}

/* Who may not see the event's words is told that much. */
static char *refused_text(const Berth__Event *asked)
{
    if (asked == NULL || *asked->refusal == '\0')
        return g_strdup("refused");
    return g_strdup_printf("refused: %s", asked->refusal);
}

static char *outcome_text(const Berth__JobRequest *request)
{
    switch (request->outcome) {
    case BERTH__JOB_REQUEST__OUTCOME__DONE:
        return done_text(request->settled);
    case BERTH__JOB_REQUEST__OUTCOME__FAILED:
        return failed_text(request);
    case BERTH__JOB_REQUEST__OUTCOME__OVERTAKEN:
        return overtaken_text(request->settled);
    case BERTH__JOB_REQUEST__OUTCOME__REFUSED:
        return refused_text(request->asked);
    case BERTH__JOB_REQUEST__OUTCOME__TAKEN:
        return g_strdup("taken up: see its tasks");
    default:
        return g_strdup("under way");
    }
}

/* --- the table ---------------------------------------------------------------------------------- */

static void add_row(BerthTable *table, const Berth__JobRequest *request)
{
    const Berth__Event *asked = request->asked;
    berth_table_add(table, asked != NULL ? berth_format_time(asked->time_usec) : NULL);
    berth_table_add(table, asked != NULL ? g_strdup(asked->user) : NULL);
    berth_table_add(table, what_text(request->kind, asked));
    berth_table_add(table, outcome_text(request));
    berth_table_add(table, asked != NULL && *asked->why != '\0' ? g_strdup(asked->why) : NULL);
}

GPtrArray *berth_request_lines(const Berth__Job *job, guint width)
{
    static const BerthColumn columns[] = {{.title = "WHEN"},
                                          {.title = "WHO"},
                                          {.title = "WHAT", .flexible = TRUE},
                                          {.title = "OUTCOME", .flexible = TRUE},
                                          {.title = "WHY", .flexible = TRUE}};
    g_autoptr(BerthTable) table = berth_table_new(columns, G_N_ELEMENTS(columns));
    for (gsize i = 0; i < job->n_requests; i++)
        add_row(table, job->requests[i]);
    return job->n_requests > 0 ? berth_table_wrapped_lines(table, width)
                               : g_ptr_array_new_with_free_func(g_free);
}

void berth_requests_print(const Berth__Job *job)
{
    guint width = berth_terminal_width(stdout);
    g_autoptr(GPtrArray) lines = berth_request_lines(job, width > 0 ? width : NO_TERMINAL_WIDTH);
    if (lines->len > 0)
        puts("What was asked of it, the latest last:");
    for (guint i = 0; i < lines->len; i++)
        puts(g_ptr_array_index(lines, i));
}
