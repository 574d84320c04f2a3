/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sentences that tell people what happened to a job, from the event log. */
#include "cli/why_events.h"

#include "cli/format.h"
#include "common/words.h"

#include <string.h>

static char *with_text(const char *what, const Berth__Event *event)
{
    gsize length = strcspn(event->text, "\n");
    if (length == 0)
        return g_strdup(what);
    return g_strdup_printf("%s: %.*s", what, (int)length, event->text);
}

/* "to be frozen, says alice: it is too hot". */
static char *wish(const char *what, const Berth__Event *event)
{
    const char *user = *event->user != '\0' ? event->user : "somebody";
    return g_strdup_printf("%s%s%s, says %s%s%s", what, *event->text != '\0' ? " " : "",
                           event->text, user, *event->why != '\0' ? ": " : "", event->why);
}

/* SOMETHING where the text is left out, as it is of another's job. */
static char *wish_for(const char *what, const char *something, const Berth__Event *event)
{
    return wish(*event->text != '\0' ? what : something, event);
}

/* The text between BEFORE and AFTER, or UNNAMED where it is left out. (transfer full) */
static char *named(const char *before, const char *after, const char *unnamed,
                   const Berth__Event *event)
{
    return *event->text != '\0' ? g_strconcat(before, event->text, after, NULL) : g_strdup(unnamed);
}

static char *deed(const char *what, const Berth__Event *event, const char *to)
{
    g_autofree char *text =
        berth_words_deed(what, event->node, to, FALSE, (BerthReason)event->reason);
    gboolean has_cause = *event->cause != '\0', has_place = *event->place != '\0';
    return g_strconcat(text, has_cause ? " (" : "", event->cause, has_cause ? ")" : "",
                       has_place ? "; " : "", event->place, NULL);
}

/* A start, a move, a checkpoint, another size, an end: what the scheduler has done. */
static char *deed_text(const Berth__Event *event)
{
    g_autofree char *what = NULL;
    switch (event->kind) {
    case BERTH__EVENT__KIND__GUEST_START:
        return deed("started", event, NULL);
    case BERTH__EVENT__KIND__GUEST_RESTORE:
        what = named("put back to checkpoint ", "", "put back to a checkpoint", event);
        return deed(what, event, NULL);
    case BERTH__EVENT__KIND__GUEST_MIGRATE:
        if (*event->text == '\0')
            return deed("to be moved to another node; it is", event, NULL);
        return deed("to be moved", event, event->text);
    case BERTH__EVENT__KIND__GUEST_CHECKPOINT:
        what = named("to be checkpointed, as number ", ",", "to be checkpointed", event);
        return deed(what, event, NULL);
    case BERTH__EVENT__KIND__GUEST_RESIZE:
        what = event->reason == BERTH__REASON__REASON_PROMOTION
                   ? g_strdup("to be backed")
                   : named("to have ", "", "to have another size", event);
        return deed(what, event, NULL);
    case BERTH__EVENT__KIND__GUEST_STOP:
        return deed("ended", event, NULL);
    default:
        return NULL;
    }
}

static char *failure_text(const Berth__Event *event)
{
    g_autofree char *what = NULL;
    switch (event->kind) {
    case BERTH__EVENT__KIND__GUEST_START_FAILED:
        what = g_strdup_printf("did not start on %s", event->node);
        return with_text(what, event);
    case BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED:
        what = g_strdup_printf(event->reason == BERTH__REASON__REASON_GUEST_VANISHED
                                   ? "was to be moved from %s"
                                   : "was not moved, and stays on %s",
                               event->node);
        return with_text(what, event);
    case BERTH__EVENT__KIND__GUEST_RESIZE_FAILED:
        return with_text("was not resized", event);
    case BERTH__EVENT__KIND__GUEST_FREEZE_FAILED:
        return with_text("was not frozen", event);
    case BERTH__EVENT__KIND__GUEST_THAW_FAILED:
        return with_text("was not thawed", event);
    case BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED:
        return with_text("was not checkpointed", event);
    default:
        return NULL;
    }
}

static char *result_text(const Berth__Event *event)
{
    g_autofree char *what = NULL;
    switch (event->kind) {
    case BERTH__EVENT__KIND__GUEST_RUNNING:
        return g_strdup_printf("its command runs on %s", event->node);
    case BERTH__EVENT__KIND__GUEST_EXITED:
        if (event->reason == BERTH__REASON__REASON_NONE)
            return g_strdup("its command has ended");
        what = g_strdup_printf("its guest is gone: %s",
                               berth_words_reason((BerthReason)event->reason));
        return with_text(what, event);
    case BERTH__EVENT__KIND__GUEST_FENCED:
        return g_strdup_printf("cut off from storage on %s, which was lost", event->node);
    case BERTH__EVENT__KIND__GUEST_MIGRATED:
        return g_strdup_printf("runs on %s now", event->node);
    case BERTH__EVENT__KIND__GUEST_RESIZED:
        return named("has ", " now", "has another size now", event);
    case BERTH__EVENT__KIND__GUEST_CHECKPOINTED:
        return with_text("was checkpointed", event);
    case BERTH__EVENT__KIND__CHECKPOINT_REMOVED:
        return with_text("a checkpoint was removed", event);
    case BERTH__EVENT__KIND__GUEST_SHORT:
        return with_text("short of memory", event);
    case BERTH__EVENT__KIND__GUEST_OOM_KILL:
        return with_text("out of memory", event);
    case BERTH__EVENT__KIND__GUEST_HELD_BACK:
        what = g_strdup_printf("held back on %s, with next to no CPU", event->node);
        return with_text(what, event);
    case BERTH__EVENT__KIND__GUEST_LET_GO:
        return g_strdup_printf("gets CPU on %s again", event->node);
    default:
        return failure_text(event);
    }
}

static char *wish_text(const Berth__Event *event)
{
    switch (event->kind) {
    case BERTH__EVENT__KIND__JOB_SUBMITTED:
        return g_strdup_printf("submitted by %s", event->user);
    case BERTH__EVENT__KIND__JOB_HELD:
        return wish("not to start", event);
    case BERTH__EVENT__KIND__JOB_RELEASED:
        return wish("free to start", event);
    case BERTH__EVENT__KIND__JOB_CANCEL_REQUESTED:
        return wish("to be ended", event);
    case BERTH__EVENT__KIND__JOB_FREEZE_REQUESTED:
        return wish("to stand still", event);
    case BERTH__EVENT__KIND__JOB_THAW_REQUESTED:
        return wish("to go on", event);
    case BERTH__EVENT__KIND__JOB_MIGRATE_REQUESTED:
        return wish("to be moved", event);
    case BERTH__EVENT__KIND__JOB_MIGRATE_CANCEL_REQUESTED:
        return wish("not to be moved", event);
    case BERTH__EVENT__KIND__JOB_RESIZE_REQUESTED:
        return wish_for("to have", "to have another size", event);
    case BERTH__EVENT__KIND__JOB_EXTEND_REQUESTED:
        return wish_for("to have a time limit of", "to have another time limit", event);
    case BERTH__EVENT__KIND__JOB_CHECKPOINT_REQUESTED:
        return wish("to be checkpointed", event);
    case BERTH__EVENT__KIND__JOB_CHECKPOINT_EVERY_REQUESTED:
        return wish_for("to be checkpointed", "to be checkpointed more or less often", event);
    case BERTH__EVENT__KIND__JOB_RESTORE_REQUESTED:
        return wish_for("to go on from checkpoint", "to go on from a checkpoint", event);
    default:
        return NULL;
    }
}

/* The daemon's text may say it itself. (transfer full) */
static char *still_text(const Berth__Event *event)
{
    if (*event->text == '\0')
        return g_strdup_printf("stands still: %s", berth_words_reason((BerthReason)event->reason));
    if (strstr(event->text, "stands still") != NULL)
        return g_strndup(event->text, strcspn(event->text, "\n"));
    return with_text("stands still", event);
}

/* That it runs is said by its start, but where it stood still. */
static char *state_text(const Berth__Event *event, Berth__JobState before)
{
    switch (event->state) {
    case BERTH__JOB_STATE__RUNNING:
        return before == BERTH__JOB_STATE__SUSPENDED ? g_strdup("goes on") : NULL;
    case BERTH__JOB_STATE__PENDING:
        return berth_words_waiting((BerthReason)event->reason, 0, 0);
    case BERTH__JOB_STATE__SUSPENDED:
        return still_text(event);
    default:
        return with_text(berth_job_state_name(event->state), event);
    }
}

char *berth_why_event(const Berth__Event *event, Berth__JobState *state)
{
    Berth__JobState before = *state;
    char *text = NULL;
    if (event->kind == BERTH__EVENT__KIND__TASK_STATE) {
        *state = event->state;
        return state_text(event, before);
    }
    if ((text = deed_text(event)) == NULL && (text = result_text(event)) == NULL)
        text = wish_text(event);
    return text;
}
