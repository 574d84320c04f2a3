/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Plays the core by a script: one line an event, and what must come of it. After each line the
 * core's invariants are checked. Include after cmocka.h.
 *
 *   EVENT                     no action may follow
 *   EVENT -> ACTION ACTION    these must, in that order: START 1.1@2 is job 1, epoch 1, node 2;
 *                             1/4+2.1 is guest 2 of task 4, MIGRATE 1.1@1>2 goes to node 2, ~ is in slack,
 *                             START 1.1@2[0,1] is in cells 0 and 1 of node 2, RESIZE 1.1@1(300) keeps 300
 *                             MiB by a balloon, RESIZE 1.1@1=2/200 gives 2 vCPUs and 200 MiB that
 *                             somebody asked for, RESIZE 1.1@1^ has the guest go on, too, CHECKPOINT 1.1@1#2 is the second, after which the guest runs on
 *   EVENT ! WORDS             it must be refused with WORDS in the message
 *   ? JOB STATE REASON PHASE  a task's record, of an array JOB/TASK; "? JOB -" = it is forgotten
 *   why JOB REASON            why a pending task waits
 *   op JOB REASON             why something is being done to its guest
 *   planned JOB SECONDS|never when it is planned to start
 *   next SECONDS|never        when TIMER is wanted
 *   peak JOB MILLI MIB        what was last told of its peak
 *   lacks NODE yes|no         whether guests have to leave it for memory, as was told
 *   admits NODE open|cordoned|draining [empty]  what it is used for, as was told; empty: likewise
 *   leave NODE [with=NODE] [JOB.EPOCH:moves|waits|slack|no-room:SECONDS|never]...  what a drain would do with the guests there, if
 *                             the other one is drained, too
 *   empties NODE N SECONDS    how long those who move or are saved take to leave it, N nodes being drained at a time
 *   saved JOB SERIAL [epoch=] [ran=SECONDS] [stored=] [kept=]  what it would go on from; MiB of storage
 *   doubted JOB SERIAL [ran=SECONDS]  the checkpoint that may have been made; 0: none
 *   missed JOB SECONDS        when a checkpoint was last due for which there was no space
 *   needs JOB MIB             of memory, that its guest is predicted to need
 *   limit JOB SECONDS|never   when it is at its time limit, as far as is known
 *   holds JOB VCPUS MIB       what is held for its guest
 *   short JOB SECONDS|never   since when it lacks memory, and goes on all the same
 *   waits JOB WHAT...         for what it waits: need=VCPUS/MIB, before=N:JOB,JOB, open=N, nearest=NODE:VCPUS/MIB, closed=NODE,NODE+N,
 *                             plan=SECONDS@NODE,NODE (~SECONDS: it may be put off), leaves=JOB@SECONDS,JOB@SECONDS, slack=no-room: all of these
 *                             that are not 0, and in this order
 *   looks SECONDS|never       when room is looked for next, whoever comes or goes
 *
 * Events: node ID VCPUS MEMORY [cells=N] [rack=] [fabric=] (made known if new, and joins, without
 *   guests; it has N equal cells), left ID,
 *   join ID [JOB.EPOCH:starting|running|exited[:STATUS]|gone[:REASON]]...
 *   submit ID [v=] [m=] [p=] [limit=] [nodes=1,2] [held] [held-op] [no-requeue]
 *   [guests=] [array=] [throttle=]
 *   [may-checkpoint] [every=SECONDS] [slack] [save] [kill|notify] [vmax=] [mmax=]
 *   [uid=] [account=] [qos=] [family=] [may-move] [ok:JOB|any:JOB|not:JOB|start:JOB|corr:JOB|singleton]
 *   account|user NUMBER [parent=|account=] [shares=] [tasks=] [v=] [m=] [jobs=], qos NUMBER p=,
 *   maintenance NUMBER node= from= to= (without to=: cleared)
 *   cancel|hold|release|migrate-not|checkpoint JOB [op], migrate|thaw JOB [to=NODE] [op], freeze JOB [disk] [op],
 *   restore JOB from=SERIAL epoch= ran=, checkpoints JOB [from=SERIAL epoch= ran=] stored=MIB (are left)
 *   resize JOB [v=] [m=] [op], extend JOB limit= [op]
 *   taken|running|released|fenced|fence-failed JOB.EPOCH, exited JOB.EPOCH [status=] [signal=] [oom=]
 *   [full] [not-started], gone JOB.EPOCH REASON, start-failed JOB.EPOCH [permanent] [storage]
 *   (with on=NODE: that node says so, whoever runs it),
 *   report JOB.EPOCH cpu= mem= left= touched= cpu-psi= psi= starved=SECONDS, frozen|thawed|migrated|resized JOB.EPOCH [failed],
 *   checkpointed JOB.EPOCH [stored=] [paused=SECONDS] [failed],
 *   cordon|drain|undrain|give-up|pressed NODE, storage up|down, timer, changed ID can|cannot [v=] [cells=] [rack=] (start guests)
 *   at SECONDS (moves the clock; no event), restart (a new core, restored from the records that
 *   this one reported; nodes are DOWN; "restart guests": from those of guests too). */

#include "scheduler/core/core.h"

/* Second 0 of a script; v=1 m=100 p=0 limit=1000 where a submit says nothing. */
void core_script_run(const BerthCoreConfig *config, const char *script);
/* Conservative, with FEATURES, no margin of predictions and no CPU headroom, 10 s to settle, as many
 * moves in the cluster as nodes have; then TUNING is VALUE. */
void core_script_run_tuned(guint32 features, BerthCoreTuning tuning, gint64 value,
                           const char *script);
/* Timeout 60 s, grace 10 s, no overhead, 2 requeues, 2 retries, 4 s backoff, fencing. */
extern const BerthCoreConfig core_script_config;
