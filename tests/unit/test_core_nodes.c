/* SPDX-License-Identifier: Apache-2.0 */
/* The containers of the core, against plain searches: the heaps and the tree over the nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/core/heap.h"
#include "scheduler/core/key_heap.h"
#include "scheduler/core/nodes.h"

#define SEED 20261120u

/* --- heap ----------------------------------------------------------------------------------- */

typedef struct {
    int value;
    CoreHeapLink link;
} Item;

static int compare_items(const CoreHeapLink *a, const CoreHeapLink *b)
{
    return CORE_CONTAINER_OF(a, const Item, link)->value -
           CORE_CONTAINER_OF(b, const Item, link)->value;
}

static int smallest(const Item *items, guint n)
{
    int found = G_MAXINT;
    for (guint i = 0; i < n; i++)
        if (core_heap_has(&items[i].link))
            found = MIN(found, items[i].value);
    return found;
}

static void heap_first_is_always_the_smallest(void **state)
{
    enum { N = 64 };
    Item items[N] = {0};
    CoreHeap heap;
    core_heap_init(&heap, compare_items);
    assert_null(core_heap_first(&heap));
    g_autoptr(GRand) random = g_rand_new_with_seed(SEED);
    for (guint step = 0; step < 20000; step++) {
        Item *item = &items[g_rand_int_range(random, 0, N)];
        int value = g_rand_int_range(random, 0, 1000) * N + (int)(item - items);
        if (!core_heap_has(&item->link)) {
            item->value = value;
            core_heap_push(&heap, &item->link);
        } else if (g_rand_boolean(random)) {
            item->value = value;
            core_heap_moved(&heap, &item->link);
        } else {
            core_heap_remove(&heap, &item->link);
        }
        const CoreHeapLink *first = core_heap_first(&heap);
        int found = first != NULL ? CORE_CONTAINER_OF(first, const Item, link)->value : G_MAXINT;
        assert_int_equal(found, smallest(items, N));
    }
    core_heap_clear(&heap);
}

static gboolean is_before(CoreKeyed a, CoreKeyed b)
{
    return a.key < b.key || (a.key == b.key && a.id < b.id);
}

static guint least_of(const CoreKeyed *items, guint n)
{
    guint least = 0;
    for (guint i = 1; i < n; i++)
        if (is_before(items[i], items[least]))
            least = i;
    return least;
}

static void key_heap_gives_the_least_and_its_value(void **state)
{
    enum { N = 64 };
    CoreKeyed items[N];
    guint n = 0;
    CoreKeyHeap heap = {NULL, 0, 0};
    g_autoptr(GRand) random = g_rand_new_with_seed(SEED);
    for (guint32 step = 0; step < 20000; step++) {
        CoreKeyed item = {(guint64)g_rand_int_range(random, 0, 8), g_rand_int(random), step};
        gboolean comes = n == 0 || (n < N && g_rand_boolean(random));
        if (comes) {
            items[n++] = item;
            core_key_heap_push(&heap, item);
        } else {
            guint least = least_of(items, n);
            assert_int_equal(core_key_heap_first(&heap).value, items[least].value);
            gboolean is_replaced = g_rand_boolean(random);
            items[least] = is_replaced ? item : items[--n];
            if (is_replaced)
                core_key_heap_replace_first(&heap, item);
            else
                core_key_heap_pop(&heap);
        }
        assert_int_equal(heap.n, n);
    }
    for (; n > 0; n--) {
        guint least = least_of(items, n);
        assert_int_equal(core_key_heap_pop(&heap).value, items[least].value);
        items[least] = items[n - 1];
    }
    core_key_heap_clear(&heap);
    assert_null(heap.items);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static const CoreNode *first_by_search(const CoreNodes *nodes, CoreSize need, CoreLookAt look_at,
                                       CoreBarriers barriers)
{
    for (guint i = 0; i < nodes->nodes->len; i++) {
        const CoreNode *node = g_ptr_array_index(nodes->nodes, i);
        CoreSize room =
            look_at == CORE_LOOK_AT_FREE ? core_node_free(node) : core_node_capacity(node);
        if (core_node_is_open(node) && core_size_fits(need, room) &&
            !core_barriers_close(barriers, core_node_capacity(node)))
            return node;
    }
    return NULL;
}

static CoreSize random_size(GRand *random, gint32 max)
{
    return (CoreSize){(guint32)g_rand_int_range(random, 1, max),
                      (guint64)g_rand_int_range(random, 1, max)};
}

static void change_randomly(CoreNodes *nodes, GRand *random)
{
    guint32 handle = 1 + (guint32)g_rand_int_range(random, 0, (gint32)nodes->nodes->len);
    CoreNode *node = core_nodes_get(nodes, handle);
    CoreSize capacity = random_size(random, 16);
    node->capacity = (BerthResources){capacity.vcpus, capacity.memory_mib, 0};
    node->reserved = random_size(random, 12);
    node->state = g_rand_int_range(random, 0, 4) == 0 ? BERTH_NODE_DOWN : BERTH_NODE_UP;
    node->is_hidden = g_rand_int_range(random, 0, 8) == 0;
    node->n_strays = g_rand_int_range(random, 0, 8) == 0;
    core_nodes_changed(nodes, node);
}

static void nodes_first_is_what_a_search_finds(void **state)
{
    CoreNodes nodes;
    core_nodes_init(&nodes);
    CoreBarriers none = {NULL, 0};
    assert_null(core_nodes_first(&nodes, (CoreSize){0, 0}, CORE_LOOK_AT_FREE, none));
    g_autoptr(GRand) random = g_rand_new_with_seed(SEED);
    for (guint i = 1; i <= 37; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        assert_int_equal(core_nodes_add(&nodes, name)->handle, i);
        for (guint step = 0; step < 300; step++) {
            change_randomly(&nodes, random);
            CoreSize sizes[2] = {random_size(random, 18), random_size(random, 18)};
            CoreBarriers barriers = {sizes, (guint)g_rand_int_range(random, 0, 3)};
            CoreSize need = random_size(random, 16);
            for (int look_at = CORE_LOOK_AT_FREE; look_at <= CORE_LOOK_AT_CAPACITY; look_at++)
                assert_ptr_equal(core_nodes_first(&nodes, need, (CoreLookAt)look_at, barriers),
                                 first_by_search(&nodes, need, (CoreLookAt)look_at, barriers));
        }
    }
    assert_null(core_nodes_get(&nodes, 0));
    assert_null(core_nodes_get(&nodes, 38));
    assert_non_null(core_nodes_find_name(&nodes, "n37"));
    core_nodes_clear(&nodes);
}

static void join(CoreNodes *nodes, CoreNode *node, guint32 vcpus, guint64 memory_mib)
{
    const BerthCoreNodeInfo info = {.capacity = {vcpus, memory_mib, 0}};
    core_nodes_set_info(nodes, node, &info);
    node->has_joined = TRUE;
}

static void assert_largest(CoreNodes *nodes, const CoreNode *node, guint32 vcpus,
                           guint64 memory_mib)
{
    CoreSize most;
    assert_ptr_equal(core_nodes_largest(nodes, &most), node);
    assert_int_equal(most.vcpus, vcpus);
    assert_int_equal(most.memory_mib, memory_mib);
}

static void nodes_largest_is_what_they_have_become(void **state)
{
    CoreNodes nodes;
    core_nodes_init(&nodes);
    CoreNode *a = core_nodes_add(&nodes, "a");
    CoreNode *b = core_nodes_add(&nodes, "b");
    CoreNode *c = core_nodes_add(&nodes, "c");
    assert_largest(&nodes, NULL, 0, 0);
    join(&nodes, b, 8, 500);
    assert_largest(&nodes, b, 8, 500);
    join(&nodes, a, 4, 1000);
    join(&nodes, c, 4, 1000);
    assert_largest(&nodes, a, 8, 1000);
    join(&nodes, c, 5, 1000);
    assert_largest(&nodes, c, 8, 1000);
    join(&nodes, b, 1, 10);
    join(&nodes, c, 1, 20);
    assert_largest(&nodes, a, 4, 1000);
    core_nodes_clear(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heap_first_is_always_the_smallest),
        cmocka_unit_test(key_heap_gives_the_least_and_its_value),
        cmocka_unit_test(nodes_first_is_what_a_search_finds),
        cmocka_unit_test(nodes_largest_is_what_they_have_become),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
