/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which address has its turn, and which ones are known.
 *
 * Invariants: an address is in the turns of its lane while one of its connections is ready, and in none otherwise, but between
 * berth_rpc_addresses_next() and what is then done with its connection; there is no address without a connection. */
#include "common/rpc_addresses.h"

#include <string.h>

/* Handshakes under way: in a lane, and of one address, which may be that of many nodes behind a router. More of it begin
 * where that leaves room for a whole other one. */
#define LANE_MAX    16u
#define ADDRESS_MAX 4u
/* Addresses that have completed a handshake, and for how long. */
#define KNOWN_MAX  16384u
#define KNOWN_USEC (30 * G_TIME_SPAN_DAY)

enum { N_STAGES = BERTH_RPC_GONE };

/* Known addresses and others have nothing to do with each other. */
typedef struct {
    GQueue stages[N_STAGES]; /* BerthRpcPlace, oldest first */
    GQueue few;  /* BerthRpcAddress with less than ADDRESS_MAX under way; whose turn it is first */
    GQueue many; /* likewise, with as many or more */
} Lane;

struct BerthRpcAddress {
    BerthRpcAddresses *addresses;
    char *text;
    Lane *lane;
    guint n_places;
    GQueue stages[N_STAGES]; /* BerthRpcPlace, oldest first */
    GList link;
    GQueue *turns; /* of its lane; NULL = it is in none */
};

typedef struct {
    char *text;
    gint64 usec; /* of its last handshake */
    GList link;
} Known;

struct BerthRpcAddresses {
    GHashTable *table; /* BerthRpcAddress, by text */
    Lane known_lane, other_lane;
    GHashTable *known; /* Known, by text */
    GQueue by_age;     /* Known, oldest first */
};

/* --- life --------------------------------------------------------------------------------------- */

static void address_free(gpointer data)
{
    BerthRpcAddress *address = data;
    g_free(address->text);
    g_free(address);
}

static void known_free(gpointer data)
{
    Known *known = data;
    g_free(known->text);
    g_free(known);
}

BerthRpcAddresses *berth_rpc_addresses_new(void)
{
    BerthRpcAddresses *addresses = g_new0(BerthRpcAddresses, 1);
    addresses->table = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, address_free);
    addresses->known = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, known_free);
    return addresses;
}

void berth_rpc_addresses_free(BerthRpcAddresses *addresses)
{
    g_hash_table_unref(addresses->table);
    g_hash_table_unref(addresses->known);
    g_free(addresses);
}

/* --- known ones --------------------------------------------------------------------------------- */

static void forget(BerthRpcAddresses *addresses, Known *known)
{
    g_queue_unlink(&addresses->by_age, &known->link);
    g_hash_table_remove(addresses->known, known->text);
}

static void forget_old(BerthRpcAddresses *addresses, gint64 now_usec)
{
    while (addresses->by_age.length > 0) {
        Known *oldest = addresses->by_age.head->data;
        if (addresses->by_age.length <= KNOWN_MAX && oldest->usec >= now_usec - KNOWN_USEC)
            return;
        forget(addresses, oldest);
    }
}

static void remember(BerthRpcAddresses *addresses, const char *text, gint64 now_usec)
{
    Known *known = g_hash_table_lookup(addresses->known, text);
    if (known != NULL) {
        g_queue_unlink(&addresses->by_age, &known->link);
    } else {
        known = g_new0(Known, 1);
        known->text = g_strdup(text);
        known->link.data = known;
        g_hash_table_insert(addresses->known, known->text, known);
    }
    known->usec = now_usec;
    g_queue_push_tail_link(&addresses->by_age, &known->link);
    forget_old(addresses, now_usec);
}

/* --- turns -------------------------------------------------------------------------------------- */

static gpointer oldest(const GQueue *places)
{
    return places->head != NULL ? ((BerthRpcPlace *)places->head->data)->owner : NULL;
}

/* After each change of how many are ready or under way. */
static void update_turns(BerthRpcAddress *address)
{
    Lane *lane = address->lane;
    GQueue *turns =
        address->stages[BERTH_RPC_SHAKING].length < ADDRESS_MAX ? &lane->few : &lane->many;
    if (address->stages[BERTH_RPC_READY].length == 0)
        turns = NULL;
    if (turns == address->turns)
        return;
    if (address->turns != NULL)
        g_queue_unlink(address->turns, &address->link);
    if (turns != NULL)
        g_queue_push_tail_link(turns, &address->link);
    address->turns = turns;
}

static BerthRpcAddress *next_in(Lane *lane)
{
    guint n = lane->stages[BERTH_RPC_SHAKING].length;
    GQueue *turns = NULL;
    if (lane->few.length > 0 && n < LANE_MAX)
        turns = &lane->few;
    else if (lane->many.length > 0 && n < LANE_MAX - ADDRESS_MAX)
        turns = &lane->many;
    if (turns == NULL)
        return NULL;
    BerthRpcAddress *address = g_queue_pop_head_link(turns)->data;
    address->turns = NULL;
    return address;
}

gpointer berth_rpc_addresses_next(BerthRpcAddresses *addresses)
{
    BerthRpcAddress *address = next_in(&addresses->known_lane);
    if (address == NULL)
        address = next_in(&addresses->other_lane);
    return address != NULL ? oldest(&address->stages[BERTH_RPC_READY]) : NULL;
}

/* --- places ------------------------------------------------------------------------------------- */

/* GLib gives an IPv4 address that is mapped into IPv6 as what it is. */
static char *address_text(GSocketAddress *remote)
{
    guint8 bytes[16] = {0};
    if (remote == NULL || !G_IS_INET_SOCKET_ADDRESS(remote))
        return g_strdup("an unknown address");
    GInetAddress *inet = g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(remote));
    if (g_inet_address_get_family(inet) != G_SOCKET_FAMILY_IPV6)
        return g_inet_address_to_string(inet);
    memcpy(bytes, g_inet_address_to_bytes(inet), sizeof bytes / 2);
    g_autoptr(GInetAddress) network = g_inet_address_new_from_bytes(bytes, G_SOCKET_FAMILY_IPV6);
    g_autofree char *text = g_inet_address_to_string(network);
    return g_strconcat(text, "/64", NULL);
}

static BerthRpcAddress *find_address(BerthRpcAddresses *addresses, GSocketAddress *remote,
                                     gint64 now_usec)
{
    g_autofree char *text = address_text(remote);
    BerthRpcAddress *address = g_hash_table_lookup(addresses->table, text);
    if (address != NULL)
        return address;
    forget_old(addresses, now_usec);
    address = g_new0(BerthRpcAddress, 1);
    address->addresses = addresses;
    address->lane = g_hash_table_contains(addresses->known, text) ? &addresses->known_lane
                                                                  : &addresses->other_lane;
    address->text = g_steal_pointer(&text);
    address->link.data = address;
    g_hash_table_insert(addresses->table, address->text, address);
    return address;
}

static void leave(BerthRpcPlace *place)
{
    if (place->stage == BERTH_RPC_GONE)
        return;
    g_queue_unlink(&place->address->stages[place->stage], &place->link);
    g_queue_unlink(&place->address->lane->stages[place->stage], &place->lane_link);
    place->stage = BERTH_RPC_GONE;
}

void berth_rpc_place_move(BerthRpcPlace *place, BerthRpcStage stage)
{
    leave(place);
    if (stage != BERTH_RPC_GONE) {
        g_queue_push_tail_link(&place->address->stages[stage], &place->link);
        g_queue_push_tail_link(&place->address->lane->stages[stage], &place->lane_link);
    }
    place->stage = stage;
    update_turns(place->address);
}

void berth_rpc_place_take(BerthRpcPlace *place, BerthRpcAddresses *addresses,
                          GSocketAddress *remote, gint64 now_usec, gpointer owner)
{
    place->address = find_address(addresses, remote, now_usec);
    place->address->n_places++;
    place->owner = owner;
    place->link.data = place->lane_link.data = place;
    place->stage = BERTH_RPC_GONE;
    berth_rpc_place_move(place, BERTH_RPC_SILENT);
}

void berth_rpc_place_end(BerthRpcPlace *place)
{
    BerthRpcAddress *address = place->address;
    berth_rpc_place_move(place, BERTH_RPC_GONE);
    if (--address->n_places == 0)
        g_hash_table_remove(address->addresses->table, address->text);
}

static void change_lane(BerthRpcAddress *address, Lane *lane)
{
    for (guint stage = 0; stage < N_STAGES; stage++) {
        for (const GList *link = address->stages[stage].head; link != NULL; link = link->next) {
            BerthRpcPlace *place = link->data;
            g_queue_unlink(&address->lane->stages[stage], &place->lane_link);
            g_queue_push_tail_link(&lane->stages[stage], &place->lane_link);
        }
    }
    if (address->turns != NULL)
        g_queue_unlink(address->turns, &address->link);
    address->turns = NULL;
    address->lane = lane;
    update_turns(address);
}

void berth_rpc_place_completed(BerthRpcPlace *place, gint64 now_usec)
{
    BerthRpcAddress *address = place->address;
    Lane *lane = &address->addresses->known_lane;
    remember(address->addresses, address->text, now_usec);
    if (address->lane != lane)
        change_lane(address, lane);
}

/* --- what there is ------------------------------------------------------------------------------ */

const char *berth_rpc_place_text(const BerthRpcPlace *place)
{
    return place->address->text;
}

guint berth_rpc_place_count(const BerthRpcPlace *place, BerthRpcStage stage)
{
    return place->address->stages[stage].length;
}

gpointer berth_rpc_place_oldest(const BerthRpcPlace *place, BerthRpcStage stage)
{
    return oldest(&place->address->stages[stage]);
}

gboolean berth_rpc_place_is_in_the_way(const BerthRpcPlace *place)
{
    const BerthRpcAddress *address = place->address;
    return place->stage == BERTH_RPC_SHAKING &&
           (address->lane->few.length > 0 || address->stages[BERTH_RPC_READY].length > 0);
}

guint berth_rpc_addresses_count(const BerthRpcAddresses *addresses, BerthRpcStage stage)
{
    return addresses->known_lane.stages[stage].length + addresses->other_lane.stages[stage].length;
}

gpointer berth_rpc_addresses_oldest(const BerthRpcAddresses *addresses, BerthRpcStage stage)
{
    gpointer owner = oldest(&addresses->other_lane.stages[stage]);
    return owner != NULL ? owner : oldest(&addresses->known_lane.stages[stage]);
}

static void add_owners(GPtrArray *owners, const GQueue *places)
{
    for (const GList *link = places->head; link != NULL; link = link->next)
        g_ptr_array_add(owners, ((BerthRpcPlace *)link->data)->owner);
}

GPtrArray *berth_rpc_addresses_list(const BerthRpcAddresses *addresses, BerthRpcStage stage)
{
    GPtrArray *owners = g_ptr_array_new();
    add_owners(owners, &addresses->other_lane.stages[stage]);
    add_owners(owners, &addresses->known_lane.stages[stage]);
    return owners;
}
