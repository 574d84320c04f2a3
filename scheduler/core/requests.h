/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What people ask for. FALSE: refused, nothing changed; errors as berth_core_handle() says. */
gboolean core_submit(BerthCore *core, const BerthCoreJob *job, GError **error);
gboolean core_cancel(BerthCore *core, guint64 job, gboolean by_operator, GError **error);
/* JOB, waiting, can never start. */
void core_end_hopeless(BerthCore *core, CoreJob *job);
gboolean core_hold(BerthCore *core, guint64 job, gboolean by_operator, GError **error);
gboolean core_release(BerthCore *core, guint64 job, gboolean by_operator, GError **error);
gboolean core_freeze(BerthCore *core, guint64 job, gboolean by_operator, GError **error);
gboolean core_thaw(BerthCore *core, guint64 job, gboolean by_operator, GError **error);
