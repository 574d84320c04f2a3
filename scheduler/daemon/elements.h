/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"

/* Which tasks complete while somebody looks which have, for an array that comes after them one by one: what is in the store
 * when he looks, and what is told of here since he began, is all. On the loop. */
typedef struct BerthElements BerthElements;

BerthElements *berth_elements_new(void);
/* Nobody may be looking. */
void berth_elements_free(BerthElements *elements);

/* Somebody begins to look at JOB's tasks, or ends; several may at a time. What was decided before he begins may not be committed
 * then: he has to wait for that before he looks into the store. */
void berth_elements_watch(BerthElements *elements, guint64 job);
void berth_elements_unwatch(BerthElements *elements, guint64 job);
/* TASKS of JOB have COMPLETED. */
void berth_elements_note(BerthElements *elements, guint64 job, BerthIndexRange tasks);
/* Adds what was noted of JOB, which is watched, to COMPLETED (BerthTaskRange). */
void berth_elements_add(const BerthElements *elements, guint64 job, GArray *completed);
