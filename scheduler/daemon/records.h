/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/job_table.h"
#include "scheduler/daemon/pb.h"

/* Between the core's structs, the stored records and what nodes report. Pure. */

/* What the core knows of a task, into its stored record and back. NODE_NAME: of task->node; TO_NAME: of
 * task->migrate_to. A raised epoch begins a new life: exit, usage, console and storage clients of the last are
 * dropped, and the guest gets the names of its disk and log. */
void berth_record_from_core(BerthTaskEntry *entry, const BerthCoreTask *task, const char *node_name,
                            const char *to_name);
void berth_record_to_core(const Berth__StoredTask *stored, guint32 node, guint32 migrate_to,
                          BerthCoreTask *out_task);
/* The node to which it is being moved; "" = it is not. (transfer none) */
const char *berth_record_migrates_to(const Berth__StoredTask *stored);
/* What a guest that has left its node has used in all, of which USAGE is what that node measured (NULL: as was reported).
 * The record stays as it is, however often that is asked. (transfer full); NULL: nobody knows. */
Berth__Usage *berth_record_usage_of_left(const BerthTaskEntry *entry, const Berth__Usage *usage);
/* It has come to NODE, where it stands still until this is durable: CLIENTS of storage it has there; those that it had are no
 * more. */
void berth_record_take_arrival(BerthTaskEntry *entry, const char *node, char **clients,
                               gsize n_clients);
/* It goes on on NODE, which measures it from 0 on, when it had USED so much (NULL: not known). CLIENTS of storage: as for its
 * arrival; none: those of its arrival stay, if there was one. */
void berth_record_take_move(BerthTaskEntry *entry, const Berth__Usage *used, const char *node,
                            char **clients, gsize n_clients);
/* What the node measured last (NULL: as was reported), with what was used before on other nodes. */
void berth_record_take_usage(BerthTaskEntry *entry, const Berth__Usage *usage);

/* Writes reason_text into the entry's record. */
void berth_record_describe(const BerthJobEntry *job, BerthTaskEntry *task);

/* What a node says of itself as the core needs it. Labels "rack.NAME" and "fabric.NAME" say where it
 * is; NAME counts by its digest, so that the number is the same in every daemon. */
BerthCoreNodeInfo berth_record_node_to_core(const Berth__NodeInfo *info);

void berth_record_exit_to_core(const Berth__Exit *exit, BerthCoreExit *out_exit);

/* Takes what a node reported of a guest into its task's entry: usage, exit, console, log sizes,
 * storage clients. TRUE if something changed that must be stored (storage clients). */
gboolean berth_record_take_status(BerthTaskEntry *entry, const Berth__GuestStatus *status);
