/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the words for each Reason. Pure: the same facts give the same text. */
#include "config.h"

#include "scheduler/daemon/reason_text.h"

#include "common/units.h"

#include <string.h>

static char *duration_text(guint64 seconds)
{
    if (seconds < 60)
        return g_strdup_printf("%" G_GUINT64_FORMAT " s", seconds);
    return g_strdup_printf("%" G_GUINT64_FORMAT ":%02u:%02u", seconds / 3600,
                           (guint)(seconds / 60 % 60), (guint)(seconds % 60));
}

static char *exit_text(const BerthReasonFacts *facts)
{
    return g_strdup_printf("the command ended with status %u",
                           facts->exit ? facts->exit->status : 0);
}

static char *signal_text(const BerthReasonFacts *facts)
{
    guint32 number = facts->exit ? facts->exit->signal : 0;
    const char *name = number > 0 && number < 65 ? strsignal((int)number) : NULL;
    if (!name)
        return g_strdup_printf("the command was ended by signal %u", number);
    return g_strdup_printf("the command was ended by signal %u (%s)", number, name);
}

static char *resources_text(const BerthReasonFacts *facts)
{
    return g_strdup_printf("no node has enough left for %u vCPU%s and %" G_GUINT64_FORMAT
                           " MiB of memory; waits for running jobs to end",
                           facts->vcpus, facts->vcpus == 1 ? "" : "s", facts->memory_mib);
}

static char *memory_text(const BerthReasonFacts *facts)
{
    guint32 kills = facts->exit ? facts->exit->oom_kills : 0;
    if (kills == 0 && facts->memory_mib < facts->memory_max_mib)
        return g_strdup_printf("it was short of its %" G_GUINT64_FORMAT
                               " MiB of memory, could not be given more, up to its "
                               "--memory-max of %" G_GUINT64_FORMAT
                               " MiB%s, and it is ended for that (--on-limit=kill); ask for more "
                               "with --memory, or let it wait for more with --on-limit=freeze",
                               facts->memory_mib, facts->memory_max_mib,
                               facts->is_opportunistic ? ", as it ran in slack" : "");
    if (kills == 0)
        return g_strdup_printf("it was short of its %" G_GUINT64_FORMAT
                               " MiB of memory, and is ended for that (--on-limit=kill); ask for "
                               "more with --memory",
                               facts->memory_mib);
    const char *end = kills == 1 ? "" : "es";
    if (facts->memory_mib >= facts->memory_max_mib)
        return g_strdup_printf("the guest ran out of its %" G_GUINT64_FORMAT
                               " MiB of memory and its kernel ended %u process%s; ask for more "
                               "with --memory, or with --memory-max for more when it is needed",
                               facts->memory_mib, kills, end);
    return g_strdup_printf(
        "the guest ran out of its %" G_GUINT64_FORMAT
        " MiB of memory and its kernel ended %u process%s: it was not given more "
        "in time, up to its --memory-max of %" G_GUINT64_FORMAT " MiB; ask for more with --memory",
        facts->memory_mib, kills, end, facts->memory_max_mib);
}

static char *time_text(const BerthReasonFacts *facts)
{
    g_autofree char *limit = duration_text(facts->time_limit_sec);
    if (facts->is_suspended)
        return g_strdup_printf(
            "it has used its time limit of %s, and stands still as a checkpoint; "
            "berth extend gives it more, and it goes on where there is room",
            limit);
    if (facts->unsaved && *facts->unsaved)
        return g_strdup_printf(
            "it reached its time limit of %s, and could not be checkpointed: %s; "
            "ask for more with --time",
            limit, facts->unsaved);
    return g_strdup_printf("it reached its time limit of %s; ask for more with --time", limit);
}

/* It keeps others from its memory meanwhile. */
static const char *still_text(const BerthReasonFacts *facts)
{
    return facts->time_limit_sec > 0 ? "stands still, while its time limit goes on"
                                     : "stands still";
}

/* Firm plans may come first: they are not counted here. */
static char *backing_text(const BerthReasonFacts *facts)
{
    const BerthReasonBacking *backing = facts->backing;
    if (!backing)
        return g_strdup("");
    g_autofree char *memory = berth_format_size_mib(backing->memory_mib);
    g_autofree char *has_memory = berth_format_size_mib(backing->has_mib);
    return g_strdup_printf(" (which takes %u vCPU%s and %s that nobody has reserved: %s has %u and "
                           "%s, of which jobs that are planned there may take some)",
                           backing->vcpus, backing->vcpus == 1 ? "" : "s", memory, facts->node,
                           backing->has_vcpus, has_memory);
}

/* Of one that may have more. In slack it gets none: it is backed first. */
static char *below_ceiling_text(const BerthReasonFacts *facts)
{
    g_autofree char *backing = backing_text(facts);
    if (facts->is_opportunistic)
        return g_strdup_printf(
            "it needs more than its %" G_GUINT64_FORMAT
            " MiB of memory, and gets no more in slack: it %s; when its node or another "
            "one can back all of it%s, it is given more there, up to %" G_GUINT64_FORMAT
            " MiB, and goes on; berth resize --memory moves it to one that can now, if there is "
            "any, berth thaw lets it go on as it is",
            facts->memory_mib, still_text(facts), backing, facts->memory_max_mib);
    return g_strdup_printf("it needs more than its %" G_GUINT64_FORMAT
                           " MiB of memory, for more there was no room, and it %s; when "
                           "there is some, it is given more, up to %" G_GUINT64_FORMAT
                           " MiB, and goes on; berth resize --memory gives it what little there "
                           "is, berth thaw lets it go on as it is",
                           facts->memory_mib, still_text(facts), facts->memory_max_mib);
}

/* Why it was done something to; or, of one that stands still, what lets it go on. */
static char *at_limit_text(const BerthReasonFacts *facts)
{
    if (!facts->is_suspended)
        return g_strdup("it was at the limit of its memory");
    if (facts->memory_mib < facts->memory_max_mib)
        return below_ceiling_text(facts);
    return g_strdup_printf(
        "it needs more than its %" G_GUINT64_FORMAT " MiB of memory, which "
        "is all that it may have (a larger --memory-max at submission is more), and %s; "
        "berth thaw lets it go on as it is, slowly, or until its kernel ends processes",
        facts->memory_mib, still_text(facts));
}

/* Why something was done to a guest. */
static const char *policy_text(Berth__Reason reason)
{
    switch (reason) {
    case BERTH__REASON__REASON_PRESSURE:
        return "its node ran short of memory";
    case BERTH__REASON__REASON_SLACK_FULL:
        return "what was in its node's slack could not have left in time any more";
    case BERTH__REASON__REASON_ROOM_NEEDED:
        return "a guaranteed start needed its room";
    case BERTH__REASON__REASON_PROMOTION:
        return "its whole reservation is backed there";
    case BERTH__REASON__REASON_BALANCE:
        return "its node had much more to do than another";
    case BERTH__REASON__REASON_DEFRAGMENT:
        return "a job that is too large for what is free on any node gets its room";
    case BERTH__REASON__REASON_DRAIN:
        return "its node is to be empty";
    case BERTH__REASON__REASON_FROZEN_BY_USER:
        return "frozen by its user; berth thaw lets it go on";
    case BERTH__REASON__REASON_FROZEN_BY_OPERATOR:
        return "frozen by an operator";
    case BERTH__REASON__REASON_MOVED_BY_USER:
        return "its user had it moved";
    case BERTH__REASON__REASON_MOVED_BY_OPERATOR:
        return "an operator had it moved";
    case BERTH__REASON__REASON_RESIZED_BY_USER:
        return "its user wants it to have another size";
    case BERTH__REASON__REASON_RESIZED_BY_OPERATOR:
        return "an operator wants it to have another size";
    case BERTH__REASON__REASON_CHECKPOINTED_BY_USER:
        return "its user had it checkpointed";
    case BERTH__REASON__REASON_CHECKPOINTED_BY_OPERATOR:
        return "an operator had it checkpointed";
    case BERTH__REASON__REASON_CHECKPOINT_DUE:
        return "its next checkpoint was due";
    case BERTH__REASON__REASON_STARVED:
        return "others left it hardly any CPU; it waits for its whole reservation";
    case BERTH__REASON__REASON_BELOW_LIMIT:
        return "it does not need the room that it was grown to";
    default:
        return "";
    }
}

/* What needs no facts. */
static const char *fixed_text(Berth__Reason reason)
{
    switch (reason) {
    case BERTH__REASON__REASON_PRIORITY:
        return "jobs before it in the order wait for the same nodes";
    case BERTH__REASON__REASON_ROOM_KEPT:
        return "there is room, but it would run for so long that a job before it started later";
    case BERTH__REASON__REASON_HELD_BY_USER:
        return "held by its user; berth release lets it go";
    case BERTH__REASON__REASON_HELD_BY_OPERATOR:
        return "held by an operator";
    case BERTH__REASON__REASON_NODE_UNAVAILABLE:
        return "the nodes that it may use are down, absent or closed; "
               "berth node ls says which and why";
    case BERTH__REASON__REASON_REQUEUED:
        return "its node or guest was lost; waits to start again";
    case BERTH__REASON__REASON_STARTING_LATER:
        return "its start failed for a passing reason; it will be tried again";
    case BERTH__REASON__REASON_STORAGE_UNAVAILABLE:
        return "storage does not answer; nothing is started until it does";
    case BERTH__REASON__REASON_CANCELLED_BY_USER:
        return "cancelled by its user";
    case BERTH__REASON__REASON_CANCELLED_BY_OPERATOR:
        return "cancelled by an operator";
    case BERTH__REASON__REASON_BOOT_DEADLINE:
        return "the guest did not boot in time";
    case BERTH__REASON__REASON_GUEST_CRASHED:
        return "the guest crashed";
    case BERTH__REASON__REASON_GUEST_VANISHED:
        return "the guest was gone without a word of its end: its host ended it, or QEMU failed; "
               "submit the job again, and if that recurs ask an operator for its node's log";
    case BERTH__REASON__REASON_CROWDED_OUT:
        return "it ran in slack, and its node ended it, which had no memory left for those who "
               "have reserved it; it gets a "
               "guaranteed place when it starts again, or when it is submitted with --guaranteed";
    case BERTH__REASON__REASON_NODE_LOST:
        return "its node was lost while it ran";
    case BERTH__REASON__REASON_START_FAILED:
        return "the node could not start its guest";
    case BERTH__REASON__REASON_COMMAND_NOT_FOUND:
        return "the command could not be executed in the image";
    case BERTH__REASON__REASON_DISK_FULL:
        return "the guest's disk was full; ask for more with --disk";
    case BERTH__REASON__REASON_DEPENDENCY:
        return "waits for the jobs that it comes after";
    case BERTH__REASON__REASON_ACCOUNT_LIMIT:
        return "its user or account runs as much as it may at a time";
    case BERTH__REASON__REASON_ARRAY_THROTTLE:
        return "as many tasks of its array run as may at a time";
    case BERTH__REASON__REASON_MAINTENANCE:
        return "it would still run when its nodes are needed for maintenance";
    case BERTH__REASON__REASON_EVICTED:
        return "checkpointed to make room; goes on where there is some";
    case BERTH__REASON__REASON_RESTORING:
        return "goes on from its checkpoint where there is room";
    default:
        return policy_text(reason);
    }
}

/* An older release has not noted which. */
static char *never_text(const BerthReasonNever *never)
{
    if (never->job == 0)
        return g_strdup("a job that it comes after did not end as it must have");
    if (!never->by_task)
        return g_strdup_printf("job %" G_GUINT64_FORMAT
                               ", which it comes after, did not end as it must have",
                               never->job);
    g_autofree char *tasks = berth_index_range_format(&never->tasks);
    return g_strdup_printf("job %" G_GUINT64_FORMAT
                           "[%s], which it comes after, did not end COMPLETED",
                           never->job, tasks);
}

static char *base_text(const BerthReasonFacts *facts)
{
    switch (facts->reason) {
    case BERTH__REASON__REASON_EXIT_STATUS:
        return exit_text(facts);
    case BERTH__REASON__REASON_SIGNAL:
        return signal_text(facts);
    case BERTH__REASON__REASON_RESOURCES:
        return resources_text(facts);
    case BERTH__REASON__REASON_MEMORY_LIMIT:
        return memory_text(facts);
    case BERTH__REASON__REASON_TIME_LIMIT:
        return time_text(facts);
    case BERTH__REASON__REASON_AT_LIMIT:
        return at_limit_text(facts);
    case BERTH__REASON__REASON_DEPENDENCY_NEVER:
        return never_text(&facts->never);
    default:
        return g_strdup(fixed_text(facts->reason));
    }
}

/* Reasons that are about a node, whose name helps to find out more. */
static gboolean names_node(Berth__Reason reason)
{
    return reason == BERTH__REASON__REASON_BOOT_DEADLINE ||
           reason == BERTH__REASON__REASON_GUEST_CRASHED ||
           reason == BERTH__REASON__REASON_GUEST_VANISHED ||
           reason == BERTH__REASON__REASON_CROWDED_OUT ||
           reason == BERTH__REASON__REASON_NODE_LOST ||
           reason == BERTH__REASON__REASON_START_FAILED;
}

/* Reasons about which a node may have said something. */
static const char *detail_of(const BerthReasonFacts *facts)
{
    if (facts->reason == BERTH__REASON__REASON_COMMAND_NOT_FOUND && facts->exit &&
        *facts->exit->error)
        return facts->exit->error;
    if ((names_node(facts->reason) || facts->reason == BERTH__REASON__REASON_STARTING_LATER ||
         facts->reason == BERTH__REASON__REASON_REQUEUED ||
         facts->reason == BERTH__REASON__REASON_STORAGE_UNAVAILABLE) &&
        facts->detail && *facts->detail)
        return facts->detail;
    return NULL;
}

char *berth_reason_text(const BerthReasonFacts *facts)
{
    GString *text = g_string_new(NULL);
    g_autofree char *base = base_text(facts);
    g_string_append(text, base);
    if (names_node(facts->reason) && facts->node && *facts->node)
        g_string_append_printf(text, " (node %s)", facts->node);
    const char *detail = detail_of(facts);
    if (detail)
        g_string_append_printf(text, ": %s", detail);
    return g_string_free(text, FALSE);
}
