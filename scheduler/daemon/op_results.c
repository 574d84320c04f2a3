/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how the answers to what is done to running guests become events of the core. */
#include "config.h"

#include "scheduler/daemon/op_results.h"

#include "common/error.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/turn_records.h"

BerthEventKind berth_op_result_of(BerthActionKind kind)
{
    switch (kind) {
    case BERTH_ACTION_FREEZE:
        return BERTH_EVENT_GUEST_FROZEN;
    case BERTH_ACTION_THAW:
        return BERTH_EVENT_GUEST_THAWED;
    case BERTH_ACTION_RESIZE:
        return BERTH_EVENT_GUEST_RESIZED;
    default:
        return 0;
    }
}

/* CANCELLED: its node took another question for a later one than this. */
gboolean berth_op_may_pass(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED);
}

const Berth__ResizeGuestReply *berth_op_settled(const BerthCoreAction *action,
                                                const ProtobufCMessage *reply)
{
    const Berth__ResizeGuestReply *resize = (const Berth__ResizeGuestReply *)(const void *)reply;
    return reply && action->kind == BERTH_ACTION_RESIZE && resize->error ? resize : NULL;
}

void berth_op_answered(BerthDaemon *daemon, const BerthCoreAction *action, const char *why,
                       const Berth__ResizeGuestReply *has)
{
    BerthCoreEvent event = {.kind = berth_op_result_of(action->kind),
                            .guest = action->guest,
                            .node = action->node,
                            .result = {.ok = why == NULL, .serial = action->serial}};
    if (has)
        event.result.has = (BerthResources){has->vcpus, has->memory_mib, 0};
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    g_autoptr(GError) error = NULL;
    if (why) {
        Berth__Event failure = BERTH__EVENT__INIT;
        berth_event_op_failed(action, berth_node_table_name(daemon->nodes, action->node), why,
                              &failure);
        berth_turn_log(turn, &failure);
    }
    if (!berth_turn_event(turn, &event, NULL, &error))
        g_critical("the core refused the answer to an action: %s", error->message);
    berth_turn_commit(turn);
}
