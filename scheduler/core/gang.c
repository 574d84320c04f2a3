/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the guests of one task mean together: when an event of one is one of the task. */
#include "scheduler/core/outcome.h"
#include "scheduler/core/task.h"

/* These two look at the last guest first: events come in the order of the guests, mostly. */
static gboolean all_heard(const CoreTask *task)
{
    for (guint32 i = task->n_guests; i > 0; i--)
        if (!task->guests[i - 1].heard)
            return FALSE;
    return TRUE;
}

static gboolean all_exited(const CoreTask *task)
{
    for (guint32 i = task->n_guests; i > 0; i--)
        if (!task->guests[i - 1].has_exited)
            return FALSE;
    return TRUE;
}

static gboolean has_run(CoreGuest *guest)
{
    guest->heard = TRUE;
    return guest->phase != BERTH_GUEST_STARTING || all_heard(guest->task);
}

/* The first bad end is the task's; a good one, or any while it is stopped, only with the others'. */
static gboolean has_ended(CoreGuest *guest, gboolean is_good)
{
    guest->has_exited = TRUE;
    if (!is_good && guest->phase != BERTH_GUEST_STOPPING)
        return TRUE;
    return all_exited(guest->task);
}

/* Whether EVENT of one guest is one for the whole task, now. */
static gboolean concerns_task(CoreGuest *guest, CoreTaskEvent event, CoreTaskInput *input)
{
    CoreTask *task = guest->task;
    switch (event) {
    case CORE_TASK_RUNNING:
        return has_run(guest);
    case CORE_TASK_EXITED:
        task->end_usec = MAX(task->end_usec, input->end_usec);
        input->end_usec = task->end_usec;
        return has_ended(guest, core_outcome_of_exit(&input->exit).state == BERTH_JOB_COMPLETED);
    case CORE_TASK_GONE:
    case CORE_TASK_MISSING:
    case CORE_TASK_START_FAILED:
        return guest->phase != BERTH_GUEST_STOPPING || has_ended(guest, FALSE);
    default:
        return TRUE;
    }
}

void core_guest_handle(BerthCore *core, CoreGuest *guest, CoreTaskEvent event,
                       const CoreTaskInput *input)
{
    CoreTask *task = guest->task;
    CoreTaskInput copy = {0};
    if (input != NULL)
        copy = *input;
    /* One that has come to its end has been running. */
    if (task->n_guests > 1 && event == CORE_TASK_EXITED && guest->phase == BERTH_GUEST_STARTING &&
        !copy.exit.not_started && concerns_task(guest, CORE_TASK_RUNNING, &copy))
        core_task_apply(core, task, guest, CORE_TASK_RUNNING, &copy);
    if (task->n_guests == 1 || concerns_task(guest, event, &copy))
        core_task_apply(core, task, guest, event, &copy);
}
