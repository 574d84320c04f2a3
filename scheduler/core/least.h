/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* So many of single guests are kept of some classes together, and as many of gangs. */
#define CORE_LEASTS_MAX 32u

/* Those of one class, which asks for LEAST. */
CoreLeasts core_leasts_of_one(const CoreLeast *least, gboolean is_gang);
/* OUT, as it was made or zeroed, becomes those of all of PARTS, of N_PARTS, no more than three; a NULL is of no class.
 * FALSE: that is what it was. O(square of how many they are). */
gboolean core_leasts_join(CoreLeasts *out, const CoreLeasts *const *parts, guint n_parts);
/* Of no class; frees what it has. */
void core_leasts_clear(CoreLeasts *leasts);
/* Those of the singles, or of the gangs, of which there are *OUT_N; rising in vCPUs. (transfer none) */
const CoreLeast *core_leasts_singles(const CoreLeasts *leasts, guint *out_n);
const CoreLeast *core_leasts_gangs(const CoreLeasts *leasts, guint *out_n);
gboolean core_leasts_equal(const CoreLeasts *a, const CoreLeasts *b);
/* Beside the struct itself. */
gsize core_leasts_bytes(const CoreLeasts *leasts);
