/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of addresses: without sockets, at instants that are made up. */
#include "tests/lib/assert.h"

#include "common/rpc_addresses.h"

enum { N_PLACES = 64, LANE = 16, ADDRESS = 4 };

typedef struct {
    BerthRpcAddresses *addresses;
    BerthRpcPlace places[N_PLACES]; /* their owners are themselves */
    guint n_places;
} Table;

static int setup(void **state)
{
    Table *table = g_new0(Table, 1);
    table->addresses = berth_rpc_addresses_new();
    *state = table;
    return 0;
}

static int teardown(void **state)
{
    Table *table = *state;
    for (guint i = 0; i < table->n_places; i++)
        if (table->places[i].address != NULL)
            berth_rpc_place_end(&table->places[i]);
    berth_rpc_addresses_free(table->addresses);
    g_free(table);
    return 0;
}

static BerthRpcPlace *take(Table *table, const char *ip, gint64 now_usec)
{
    g_autoptr(GSocketAddress) remote = g_inet_socket_address_new_from_string(ip, 1000);
    assert_non_null(remote);
    assert_in_range(table->n_places, 0, N_PLACES - 1);
    BerthRpcPlace *place = &table->places[table->n_places++];
    berth_rpc_place_take(place, table->addresses, remote, now_usec, place);
    return place;
}

static void end(BerthRpcPlace *place)
{
    berth_rpc_place_end(place);
    place->address = NULL;
}

static BerthRpcPlace *take_ready(Table *table, const char *ip)
{
    BerthRpcPlace *place = take(table, ip, 0);
    berth_rpc_place_move(place, BERTH_RPC_READY);
    return place;
}

/* The next one, which is under way from now on. */
static BerthRpcPlace *begin(Table *table)
{
    BerthRpcPlace *place = berth_rpc_addresses_next(table->addresses);
    if (place != NULL)
        berth_rpc_place_move(place, BERTH_RPC_SHAKING);
    return place;
}

static void make_known(Table *table, const char *ip, gint64 now_usec)
{
    BerthRpcPlace *place = take(table, ip, now_usec);
    berth_rpc_place_completed(place, now_usec);
    end(place);
}

/* N handshakes under way, each of an address of its own. */
static void fill(Table *table, guint n)
{
    for (guint i = 0; i < n; i++) {
        g_autofree char *ip = g_strdup_printf("10.9.0.%u", i + 1);
        BerthRpcPlace *place = take_ready(table, ip);
        assert_ptr_equal(begin(table), place);
    }
}

static void next_is_of_each_address_in_turn(void **state)
{
    Table *table = *state;
    BerthRpcPlace *a1 = take_ready(table, "10.0.0.1");
    BerthRpcPlace *a2 = take_ready(table, "10.0.0.1");
    BerthRpcPlace *a3 = take_ready(table, "10.0.0.1");
    BerthRpcPlace *b1 = take_ready(table, "10.0.0.2");
    BerthRpcPlace *b2 = take_ready(table, "10.0.0.2");
    BerthRpcPlace *c1 = take_ready(table, "10.0.0.3");
    BerthRpcPlace *order[] = {a1, b1, c1, a2, b2, a3};
    for (guint i = 0; i < G_N_ELEMENTS(order); i++)
        assert_ptr_equal(begin(table), order[i]);
    assert_null(begin(table));
}

static void next_is_of_an_address_with_few_under_way_first(void **state)
{
    Table *table = *state;
    BerthRpcPlace *a[ADDRESS + 2];
    for (guint i = 0; i < G_N_ELEMENTS(a); i++)
        a[i] = take_ready(table, "10.0.0.1");
    for (guint i = 0; i < ADDRESS; i++)
        assert_ptr_equal(begin(table), a[i]);
    BerthRpcPlace *b = take_ready(table, "10.0.0.2");
    assert_ptr_equal(begin(table), b);
    assert_ptr_equal(begin(table), a[ADDRESS]);
}

static void next_of_one_address_leaves_room_for_another(void **state)
{
    Table *table = *state;
    for (guint i = 0; i < LANE; i++)
        take_ready(table, "10.0.0.1");
    for (guint i = 0; i < LANE - ADDRESS; i++)
        assert_non_null(begin(table));
    assert_null(begin(table));
    for (guint i = 0; i <= ADDRESS; i++)
        take_ready(table, "10.0.0.2");
    for (guint i = 0; i < ADDRESS; i++)
        assert_string_equal(berth_rpc_place_text(begin(table)), "10.0.0.2");
    assert_null(begin(table));
}

static void next_is_none_while_there_is_no_room(void **state)
{
    Table *table = *state;
    fill(table, LANE);
    BerthRpcPlace *place = take_ready(table, "10.0.0.1");
    assert_null(begin(table));
    berth_rpc_place_move(&table->places[0], BERTH_RPC_GONE);
    assert_ptr_equal(begin(table), place);
}

static void next_is_known_though_others_have_no_room(void **state)
{
    Table *table = *state;
    make_known(table, "10.0.0.1", 0);
    fill(table, LANE);
    BerthRpcPlace *other = take_ready(table, "10.0.0.2");
    BerthRpcPlace *known = take_ready(table, "10.0.0.1");
    assert_ptr_equal(begin(table), known);
    assert_null(begin(table));
    assert_false(berth_rpc_place_is_in_the_way(known));
    assert_true(berth_rpc_place_is_in_the_way(&table->places[1]));
    end(other);
    assert_false(berth_rpc_place_is_in_the_way(&table->places[1]));
}

/* The others that it has go with it. */
static void address_is_known_from_its_first_completed_one_on(void **state)
{
    Table *table = *state;
    BerthRpcPlace *first = take_ready(table, "10.0.0.1");
    assert_ptr_equal(begin(table), first);
    fill(table, LANE - 1);
    BerthRpcPlace *second = take_ready(table, "10.0.0.1");
    BerthRpcPlace *silent = take(table, "10.0.0.1", 0);
    BerthRpcPlace *other = take(table, "10.0.0.2", 0);
    assert_null(begin(table));
    berth_rpc_place_completed(first, 5);
    assert_ptr_equal(begin(table), second);
    assert_ptr_equal(berth_rpc_addresses_oldest(table->addresses, BERTH_RPC_SILENT), other);
    end(other);
    assert_ptr_equal(berth_rpc_addresses_oldest(table->addresses, BERTH_RPC_SILENT), silent);
}

static void address_is_forgotten_in_time(void **state)
{
    static const struct {
        gint64 later_usec;
        gboolean is_known;
    } cases[] = {{29 * G_TIME_SPAN_DAY, TRUE}, {31 * G_TIME_SPAN_DAY, FALSE}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Table *table = NULL;
        setup((void **)&table);
        make_known(table, "10.0.0.1", 0);
        fill(table, LANE);
        BerthRpcPlace *place = take(table, "10.0.0.1", cases[i].later_usec);
        berth_rpc_place_move(place, BERTH_RPC_READY);
        assert_int_equal(begin(table) == place, cases[i].is_known);
        teardown((void **)&table);
    }
}

static void known_addresses_are_bounded(void **state)
{
    Table *table = *state;
    for (guint i = 0; i <= 16384; i++) {
        g_autofree char *ip = g_strdup_printf("10.%u.%u.%u", 1 + (i >> 14), i >> 7 & 127, i & 127);
        make_known(table, ip, i);
        table->n_places = 0;
    }
    fill(table, LANE);
    take_ready(table, "10.1.0.0"); /* was the first */
    assert_null(begin(table));
    BerthRpcPlace *newer = take_ready(table, "10.1.0.1");
    assert_ptr_equal(begin(table), newer);
}

static void late_one_is_in_the_way_of_who_can_begin(void **state)
{
    Table *table = *state;
    BerthRpcPlace *first = take_ready(table, "10.0.0.1");
    begin(table);
    assert_false(berth_rpc_place_is_in_the_way(first));
    fill(table, LANE - 1);
    assert_false(berth_rpc_place_is_in_the_way(first));
    take_ready(table, "10.0.0.2");
    for (guint i = 0; i < LANE; i++)
        assert_true(berth_rpc_place_is_in_the_way(&table->places[i]));
    berth_rpc_place_move(first, BERTH_RPC_GONE);
    assert_false(berth_rpc_place_is_in_the_way(first));
    assert_non_null(begin(table));
    assert_false(berth_rpc_place_is_in_the_way(&table->places[1]));
}

static void text_is_of_what_counts_as_one_address(void **state)
{
    static const struct {
        const char *ip, *text;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1"},
        {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
        {"2001:db8:1:2::9", "2001:db8:1:2::/64"},
        {"::ffff:10.0.0.1", "10.0.0.1"},
    };
    Table *table = *state;
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthRpcPlace *place = take(table, cases[i].ip, 0);
        assert_string_equal(berth_rpc_place_text(place), cases[i].text);
    }
    assert_int_equal(berth_rpc_place_count(&table->places[0], BERTH_RPC_SILENT), 2);
    assert_int_equal(berth_rpc_place_count(&table->places[1], BERTH_RPC_SILENT), 2);
    berth_rpc_place_take(&table->places[table->n_places], table->addresses, NULL, 0, NULL);
    assert_string_equal(berth_rpc_place_text(&table->places[table->n_places++]),
                        "an unknown address");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(next_is_of_each_address_in_turn),
        TEST(next_is_of_an_address_with_few_under_way_first),
        TEST(next_of_one_address_leaves_room_for_another),
        TEST(next_is_none_while_there_is_no_room),
        TEST(next_is_known_though_others_have_no_room),
        TEST(address_is_known_from_its_first_completed_one_on),
        TEST(address_is_forgotten_in_time),
        TEST(known_addresses_are_bounded),
        TEST(late_one_is_in_the_way_of_who_can_begin),
        TEST(text_is_of_what_counts_as_one_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
