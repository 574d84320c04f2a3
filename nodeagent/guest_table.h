/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All guests of this node, by id and by the name of their domain. */

#include "nodeagent/guest.h"

typedef struct BerthGuestTable BerthGuestTable;

BerthGuestTable *berth_guest_table_new(void);
void berth_guest_table_free(BerthGuestTable *table); /* and its guests */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestTable, berth_guest_table_free)

/* NULL: unknown (transfer none). */
BerthGuest *berth_guest_table_find(BerthGuestTable *table, const BerthGuestId *id);
BerthGuest *berth_guest_table_find_name(BerthGuestTable *table, const char *name);
/* Takes GUEST, whose id is not there yet. */
void berth_guest_table_add(BerthGuestTable *table, BerthGuest *guest);
/* Frees GUEST. */
void berth_guest_table_remove(BerthGuestTable *table, BerthGuest *guest);
/* BerthGuest, in no order (transfer container): stays valid while guests are removed from the table,
 * which the elements then must not be used after. */
GPtrArray *berth_guest_table_list(BerthGuestTable *table);
