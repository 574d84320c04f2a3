/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* How many tasks of an array are in each state. */

/* The counter of STATE in COUNTS; NULL: it has none. */
uint32_t *berth_task_counter(Berth__TaskCounts *counts, Berth__JobState state);
