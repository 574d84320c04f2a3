/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include "scheduler/store/db.h"

/* Puts the events of what was asked of JOB beside their numbers in its record. */
gboolean store_requests_attach(StoreDb *db, Berth__Job *job, GError **error);
