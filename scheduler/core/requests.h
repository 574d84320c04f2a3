/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What of a job somebody asks for. */
typedef struct {
    guint64 job;
    BerthIndexRange tasks;         /* of an array; step 0 = all */
    const BerthIndexRange *others; /* beside TASKS, if that is some: rising, and behind it */
    gsize n_others;
    gboolean by_operator;
} CoreAsk;

/* What people ask for. FALSE: refused, nothing changed; errors as berth_core_handle() says. */
gboolean core_submit(BerthCore *core, const BerthCoreJob *job, GError **error);
gboolean core_cancel(BerthCore *core, const CoreAsk *ask, GError **error);
/* Those of JOB, or of its TASKS if it is an array (NULL = all), that have not started never can. */
void core_end_hopeless(BerthCore *core, CoreJob *job, const BerthIndexSet *tasks, guint64 after);
gboolean core_hold(BerthCore *core, const CoreAsk *ask, GError **error);
gboolean core_release(BerthCore *core, const CoreAsk *ask, GError **error);
gboolean core_freeze(BerthCore *core, const CoreAsk *ask, gboolean to_disk, GError **error);
/* In migrate.c. TO: handle of a node; 0 = wherever there is room. */
gboolean core_migrate(BerthCore *core, const CoreAsk *ask, guint32 to, GError **error);
gboolean core_migrate_not(BerthCore *core, const CoreAsk *ask, GError **error);
/* In resize.c. Within what its guest was started for; a 0 in WANTED: as it has. */
gboolean core_resize(BerthCore *core, const CoreAsk *ask, const BerthResources *wanted,
                     GError **error);
/* In time_limit.c. LIMIT_USEC: in all; 0 = none. */
gboolean core_set_time_limit(BerthCore *core, const CoreAsk *ask, gint64 limit_usec,
                             GError **error);
/* The job if it has not ended, nor have all of the tasks that are asked for. */
CoreJob *core_get_unfinished(BerthCore *core, const CoreAsk *ask, GError **error);
/* Whether TASK is one of those that are asked for. */
gboolean core_ask_has(const CoreAsk *ask, const CoreTask *task);
/* Those of JOB that never started, and are asked for. (transfer full) */
BerthIndexSet *core_ask_fresh(const CoreJob *job, const CoreAsk *ask);
/* TO: handle of the node on which one that is frozen to disk goes on; 0 = wherever there is room. */
gboolean core_thaw(BerthCore *core, const CoreAsk *ask, guint32 to, GError **error);

/* In saves.c. EVERY_USEC: of running; 0 = not. */
gboolean core_set_checkpoint_every(BerthCore *core, const CoreAsk *ask, gint64 every_usec,
                                   GError **error);
gboolean core_checkpoint(BerthCore *core, const CoreAsk *ask, GError **error);
gboolean core_restore(BerthCore *core, const CoreAsk *ask, guint32 task,
                      const BerthCoreCheckpoint *checkpoint, GError **error);
/* Whether what runs of JOB, and is asked for, can be saved, and there is space for that; TO_DISK: to be frozen so. */
gboolean core_saves_check(const BerthCore *core, const CoreJob *job, const CoreAsk *ask,
                          gboolean to_disk, GError **error);
/* TASK is frozen, and has no guest any more, or will have none soon. */
gboolean core_saves_is_on_disk(const CoreTask *task);
/* Such a one waits to go on. */
void core_saves_thaw(BerthCore *core, CoreTask *task);
/* JOB's goes on on a node at once, or is refused. */
gboolean core_saves_thaw_to(BerthCore *core, CoreJob *job, const CoreAsk *ask, guint32 handle,
                            GError **error);
/* In migrate.c: the node if one of JOB may go there, and has room for SIZE for LEFT_USEC beside what is planned. */
CoreNode *core_migrate_check_node(BerthCore *core, const CoreJob *job, CoreSize size,
                                  gint64 left_usec, guint32 handle, GError **error);
