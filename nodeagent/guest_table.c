/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the set of guests. Decides nothing about them. */
#include <config.h>

#include "nodeagent/guest_table.h"

#include "common/id.h"

struct BerthGuestTable {
    GHashTable *by_id; /* BerthGuestId of the guest -> BerthGuest, owned */
};

static void free_guest(gpointer guest)
{
    berth_guest_free(guest);
}

BerthGuestTable *berth_guest_table_new(void)
{
    BerthGuestTable *table = g_new0(BerthGuestTable, 1);
    table->by_id =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, NULL, free_guest);
    return table;
}

void berth_guest_table_free(BerthGuestTable *table)
{
    if (table == NULL)
        return;
    g_hash_table_unref(table->by_id);
    g_free(table);
}

BerthGuest *berth_guest_table_find(BerthGuestTable *table, const BerthGuestId *id)
{
    return g_hash_table_lookup(table->by_id, id);
}

static gboolean has_name(const BerthGuest *guest, const char *name)
{
    return g_str_equal(berth_guest_name(guest), name);
}

/* One that was restored has the name of an earlier epoch: all are looked at then, which is seldom. */
BerthGuest *berth_guest_table_find_name(BerthGuestTable *table, const char *name)
{
    BerthGuestId id;
    if (!berth_guest_name_parse(name, &id, NULL))
        return NULL;
    BerthGuest *found = berth_guest_table_find(table, &id);
    if (found != NULL && has_name(found, name) && !berth_guest_is_over(found))
        return found;
    GHashTableIter iter;
    gpointer guest;
    g_hash_table_iter_init(&iter, table->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &guest)) {
        if (has_name(guest, name) && !berth_guest_is_over(guest))
            return guest;
    }
    return found;
}

void berth_guest_table_add(BerthGuestTable *table, BerthGuest *guest)
{
    g_hash_table_insert(table->by_id, (gpointer)berth_guest_id(guest), guest);
}

void berth_guest_table_remove(BerthGuestTable *table, BerthGuest *guest)
{
    g_hash_table_remove(table->by_id, berth_guest_id(guest));
}

GPtrArray *berth_guest_table_list(BerthGuestTable *table)
{
    GPtrArray *guests = g_ptr_array_new();
    GHashTableIter iter;
    gpointer guest;
    g_hash_table_iter_init(&iter, table->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &guest))
        g_ptr_array_add(guests, guest);
    return guests;
}
