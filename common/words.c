/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the words for why and what the scheduler does, which berth-sim and berth say alike. */
#include "common/words.h"

static const struct {
    BerthReason reason;
    const char *name, *text;
} reasons[] = {
    {BERTH_REASON_NONE, "none", "no reason"},
    {BERTH_REASON_PRIORITY, "priority", "others are before it"},
    {BERTH_REASON_RESOURCES, "resources", "no node has room for it now"},
    {BERTH_REASON_HELD_BY_USER, "held-by-user", "its user holds it"},
    {BERTH_REASON_HELD_BY_OPERATOR, "held-by-operator", "an operator holds it"},
    {BERTH_REASON_NODE_UNAVAILABLE, "node-unavailable", "the nodes that it could use are away"},
    {BERTH_REASON_REQUEUED, "requeued", "its guest was lost"},
    {BERTH_REASON_STARTING_LATER, "starting-later", "its last start failed"},
    {BERTH_REASON_STORAGE_UNAVAILABLE, "storage-unavailable", "storage is away"},
    {BERTH_REASON_DEPENDENCY, "dependency", "jobs that it comes after have not come that far"},
    {BERTH_REASON_ACCOUNT_LIMIT, "account-limit", "a limit of its user or account"},
    {BERTH_REASON_ROOM_KEPT, "room-kept",
     "there is room, and it would delay a job before it that is planned to need it"},
    {BERTH_REASON_ARRAY_THROTTLE, "array-throttle", "as many tasks of its array run as may"},
    {BERTH_REASON_MAINTENANCE, "maintenance", "nodes are kept for maintenance"},
    {BERTH_REASON_EVICTED, "evicted", "it made room for another, and waits for some"},
    {BERTH_REASON_RESTORING, "restoring", "it goes on from a checkpoint where there is room"},
    {BERTH_REASON_EXIT_STATUS, "exit-status", "its command ended with a status other than 0"},
    {BERTH_REASON_SIGNAL, "signal", "its command was ended by a signal"},
    {BERTH_REASON_TIME_LIMIT, "time-limit", "its time limit"},
    {BERTH_REASON_MEMORY_LIMIT, "memory-limit", "its memory was used up"},
    {BERTH_REASON_CANCELLED_BY_USER, "cancelled-by-user", "its user cancelled it"},
    {BERTH_REASON_CANCELLED_BY_OPERATOR, "cancelled-by-operator", "an operator cancelled it"},
    {BERTH_REASON_BOOT_DEADLINE, "boot-deadline", "its guest did not boot in time"},
    {BERTH_REASON_GUEST_CRASHED, "guest-crashed", "its guest ended itself"},
    {BERTH_REASON_GUEST_VANISHED, "guest-vanished", "its guest vanished"},
    {BERTH_REASON_CROWDED_OUT, "crowded-out",
     "its node had no memory left for those who have reserved it"},
    {BERTH_REASON_NODE_LOST, "node-lost", "its node was lost"},
    {BERTH_REASON_START_FAILED, "start-failed", "the start failed"},
    {BERTH_REASON_COMMAND_NOT_FOUND, "command-not-found", "its image cannot execute the command"},
    {BERTH_REASON_DISK_FULL, "disk-full", "its disk was full"},
    {BERTH_REASON_DEPENDENCY_NEVER, "dependency-never",
     "a job that it comes after did not end as it must have"},
    {BERTH_REASON_PRESSURE, "pressure", "its node is short of memory"},
    {BERTH_REASON_SLACK_FULL, "slack-full",
     "what is in its node's slack could not have left in time any more"},
    {BERTH_REASON_ROOM_NEEDED, "room-needed", "a job with a guaranteed place needs the room"},
    {BERTH_REASON_PROMOTION, "promotion", "its whole reservation is backed there"},
    {BERTH_REASON_BALANCE, "balance", "the load of the nodes differs too much"},
    {BERTH_REASON_DEFRAGMENT, "defragment",
     "a job that is too large for what is free on any node gets its room"},
    {BERTH_REASON_DRAIN, "drain", "its node is drained"},
    {BERTH_REASON_AT_LIMIT, "at-limit", "it is at its limit"},
    {BERTH_REASON_STARVED, "starved", "others left it hardly any CPU"},
    {BERTH_REASON_BELOW_LIMIT, "below-limit", "it is below its limit again"},
    {BERTH_REASON_FROZEN_BY_USER, "frozen-by-user", "its user froze it"},
    {BERTH_REASON_FROZEN_BY_OPERATOR, "frozen-by-operator", "an operator froze it"},
    {BERTH_REASON_MOVED_BY_USER, "moved-by-user", "its user had it moved"},
    {BERTH_REASON_MOVED_BY_OPERATOR, "moved-by-operator", "an operator had it moved"},
    {BERTH_REASON_CHECKPOINTED_BY_USER, "checkpointed-by-user", "its user had it checkpointed"},
    {BERTH_REASON_CHECKPOINTED_BY_OPERATOR, "checkpointed-by-operator",
     "an operator had it checkpointed"},
    {BERTH_REASON_CHECKPOINT_DUE, "checkpoint-due", "its next checkpoint was due"},
    {BERTH_REASON_RESIZED_BY_USER, "resized-by-user", "its user had it resized"},
    {BERTH_REASON_RESIZED_BY_OPERATOR, "resized-by-operator", "an operator had it resized"},
};

const char *berth_words_reason_name(guint reason)
{
    for (guint i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (reasons[i].reason == reason)
            return reasons[i].name;
    return NULL;
}

const char *berth_words_reason(BerthReason reason)
{
    for (guint i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (reasons[i].reason == reason)
            return reasons[i].text;
    return "another reason";
}

const char *berth_words_state(BerthJobState state)
{
    static const char *const names[] = {[BERTH_JOB_PENDING] = "PENDING",
                                        [BERTH_JOB_RUNNING] = "RUNNING",
                                        [BERTH_JOB_SUSPENDED] = "SUSPENDED",
                                        [BERTH_JOB_COMPLETED] = "COMPLETED",
                                        [BERTH_JOB_FAILED] = "FAILED",
                                        [BERTH_JOB_CANCELLED] = "CANCELLED",
                                        [BERTH_JOB_TIMEOUT] = "TIMEOUT",
                                        [BERTH_JOB_NODE_FAIL] = "NODE_FAIL",
                                        [BERTH_JOB_OUT_OF_MEMORY] = "OUT_OF_MEMORY"};
    return (guint)state < G_N_ELEMENTS(names) ? names[state] : NULL;
}

char *berth_words_deed(const char *what, const char *node, const char *to, gboolean in_slack,
                       BerthReason reason)
{
    GString *text = g_string_new(what);
    g_string_append_printf(text, " %s node %s", to != NULL ? "from" : "on", node);
    if (to != NULL)
        g_string_append_printf(text, " to node %s", to);
    if (in_slack)
        g_string_append(text, ", in slack");
    if (reason != BERTH_REASON_NONE)
        g_string_append_printf(text, ": %s", berth_words_reason(reason));
    return g_string_free(text, FALSE);
}

char *berth_words_waiting(BerthReason reason, gint64 planned_usec, gint64 now_usec)
{
    if (planned_usec <= 0)
        return g_strdup_printf("waits: %s", berth_words_reason(reason));
    return g_strdup_printf("waits: %s; planned to start %.0f s from now",
                           berth_words_reason(reason),
                           (double)(planned_usec - now_usec) / G_USEC_PER_SEC);
}
