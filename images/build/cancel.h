/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gio/gio.h>

#include "common/error.h"

/* TRUE, with a BERTH_ERROR, if the caller gave up. CANCELLABLE may be NULL. */
static inline gboolean berth_image_cancelled(GCancellable *cancellable, GError **error)
{
    if (!g_cancellable_is_cancelled(cancellable))
        return FALSE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_CANCELLED, "cancelled");
    return TRUE;
}
