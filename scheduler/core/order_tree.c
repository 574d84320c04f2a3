/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the classes in their order: a treap (Seidel and Aragon 1996), whose links are in the classes. What
 * they call priorities are hashes of the first jobs' numbers, so that its shape depends on what is in it alone, neither
 * on its history nor on addresses.
 *
 * Invariants: from left to right each class is before the next; none has a higher hash than the one it is
 * below; its sum is of itself and of all that are below it. */
#include "scheduler/core/order_tree.h"

#include "scheduler/core/class.h"
#include "scheduler/core/least.h"
#include "scheduler/core/mix.h"

/* --- sums ----------------------------------------------------------------------------------- */

static CoreLeasts leasts_of_one(const BerthCore *core, const CoreClass *class)
{
    CoreLeast least = {class->shape.start, core_class_length_usec(core, class)};
    return core_leasts_of_one(&least, class->shape.guests > 1);
}

static CoreOrderSum sum_of_one(const BerthCore *core, const CoreClass *class)
{
    return (CoreOrderSum){.n = 1,
                          .may_be_in_slack = core_class_may_be_in_slack(core, class),
                          .left_to_slack = class->left_to_slack,
                          .leasts = leasts_of_one(core, class)};
}

static void add(CoreOrderSum *sum, const CoreClass *class)
{
    if (class == NULL)
        return;
    const CoreOrderSum *other = &class->order.sum;
    sum->n += other->n;
    sum->may_be_in_slack |= other->may_be_in_slack;
    sum->left_to_slack = MAX(sum->left_to_slack, other->left_to_slack);
}

/* All of *OUT but the leasts, for CLASS and all below it. */
static void count_up(const BerthCore *core, const CoreClass *class, CoreOrderSum *out)
{
    out->n = 1;
    out->may_be_in_slack = core_class_may_be_in_slack(core, class);
    out->left_to_slack = class->left_to_slack;
    add(out, class->order.left);
    add(out, class->order.right);
}

static const CoreLeasts *leasts_below(const CoreClass *class)
{
    return class != NULL ? &class->order.sum.leasts : NULL;
}

/* *OUT, as it was made or zeroed, becomes those of CLASS and all below it. FALSE: that is what it was. */
static gboolean join_leasts(const BerthCore *core, const CoreClass *class, CoreLeasts *out)
{
    CoreLeasts alone = leasts_of_one(core, class);
    const CoreLeasts *parts[] = {&alone, leasts_below(class->order.left),
                                 leasts_below(class->order.right)};
    return core_leasts_join(out, parts, G_N_ELEMENTS(parts));
}

static void sum_up(const BerthCore *core, CoreClass *class)
{
    count_up(core, class, &class->order.sum);
    join_leasts(core, class, &class->order.sum.leasts);
}

/* *CHANGED: the leasts of one below CLASS have; after that, those of CLASS have. Where many wait one more or less
 * seldom changes those of the larger parts, which take longest. */
static void sum_up_if(const BerthCore *core, CoreClass *class, gboolean *changed)
{
    count_up(core, class, &class->order.sum);
    *changed = *changed && join_leasts(core, class, &class->order.sum.leasts);
}

void core_order_tree_forget(CoreClass *class)
{
    core_leasts_clear(&class->order.sum.leasts);
}

gsize core_order_tree_bytes(const CoreClass *class)
{
    return core_leasts_bytes(&class->order.sum.leasts);
}

static guint n_below(const CoreClass *class)
{
    return class != NULL ? class->order.sum.n : 0;
}

/* --- the tree ------------------------------------------------------------------------------- */

static gint compare(const CoreClass *a, const CoreClass *b)
{
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return a->head < b->head ? -1 : a->head > b->head;
}

gint core_order_compare(const CoreClass *a, const CoreClass *b)
{
    if (!a->is_ordered || !b->is_ordered)
        return b->is_ordered - a->is_ordered;
    return compare(a, b);
}

/* Numbers of jobs follow each other: their low bits are the ones that differ. */
static gboolean is_above(const CoreClass *a, const CoreClass *b)
{
    guint hash_a = core_mix_end(core_mix(core_mix(0, a->head), a->head));
    guint hash_b = core_mix_end(core_mix(core_mix(0, b->head), b->head));
    return hash_a != hash_b ? hash_a > hash_b : a->head < b->head;
}

/* All of A are before all of B. */
static CoreClass *join(const BerthCore *core, CoreClass *a, CoreClass *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    CoreClass *top = is_above(a, b) ? a : b;
    if (top == a)
        a->order.right = join(core, a->order.right, b);
    else
        b->order.left = join(core, a, b->order.left);
    sum_up(core, top);
    return top;
}

/* Into those before KEY and those behind it. */
static void split(const BerthCore *core, CoreClass *at, const CoreClass *key, CoreClass **out_left,
                  CoreClass **out_right)
{
    if (at == NULL) {
        *out_left = *out_right = NULL;
        return;
    }
    if (compare(at, key) < 0) {
        split(core, at->order.right, key, &at->order.right, out_right);
        *out_left = at;
    } else {
        split(core, at->order.left, key, out_left, &at->order.left);
        *out_right = at;
    }
    sum_up(core, at);
}

static CoreClass *add_below(const BerthCore *core, CoreClass *at, CoreClass *class,
                            gboolean *changed)
{
    if (at == NULL || is_above(class, at)) {
        split(core, at, class, &class->order.left, &class->order.right);
        at = class;
        *changed = TRUE;
    } else if (compare(class, at) < 0) {
        at->order.left = add_below(core, at->order.left, class, changed);
    } else {
        at->order.right = add_below(core, at->order.right, class, changed);
    }
    sum_up_if(core, at, changed);
    return at;
}

static CoreClass *remove_below(const BerthCore *core, CoreClass *at, CoreClass *class,
                               gboolean *changed)
{
    if (at == class) {
        *changed = TRUE;
        return join(core, class->order.left, class->order.right);
    }
    if (compare(class, at) < 0)
        at->order.left = remove_below(core, at->order.left, class, changed);
    else
        at->order.right = remove_below(core, at->order.right, class, changed);
    sum_up_if(core, at, changed);
    return at;
}

void core_order_tree_add(BerthCore *core, CoreClass *class)
{
    gboolean changed = FALSE;
    core->order = add_below(core, core->order, class, &changed);
}

void core_order_tree_remove(BerthCore *core, CoreClass *class)
{
    gboolean changed = FALSE;
    core->order = remove_below(core, core->order, class, &changed);
    core_order_tree_forget(class);
}

static void refresh_below(const BerthCore *core, CoreClass *at, const CoreClass *class)
{
    gint where = compare(class, at);
    if (where != 0)
        refresh_below(core, where < 0 ? at->order.left : at->order.right, class);
    count_up(core, at, &at->order.sum);
}

void core_order_tree_refresh(BerthCore *core, CoreClass *class)
{
    if (class->is_ordered)
        refresh_below(core, core->order, class);
}

/* --- ranking -------------------------------------------------------------------------------- */

static void list(CoreClass *at, GPtrArray *classes)
{
    if (at == NULL)
        return;
    list(at->order.left, classes);
    g_ptr_array_add(classes, at);
    list(at->order.right, classes);
}

static int compare_listed(gconstpointer a, gconstpointer b)
{
    return compare(*(CoreClass *const *)a, *(CoreClass *const *)b);
}

/* Those that have nobody to the right of them yet, from the top on, are kept in SPINE. */
static CoreClass *build(const BerthCore *core, const GPtrArray *classes)
{
    g_autoptr(GPtrArray) spine = g_ptr_array_new();
    for (guint i = 0; i <= classes->len; i++) {
        CoreClass *class = i < classes->len ? g_ptr_array_index(classes, i) : NULL;
        CoreClass *below = NULL;
        while (spine->len > 0) {
            CoreClass *last = g_ptr_array_index(spine, spine->len - 1);
            if (class != NULL && is_above(last, class))
                break;
            last->order.right = below;
            sum_up(core, last);
            below = last;
            g_ptr_array_set_size(spine, (gint)spine->len - 1);
        }
        if (class == NULL)
            return below;
        class->order.left = below;
        g_ptr_array_add(spine, class);
    }
    return NULL;
}

void core_order_tree_rank(BerthCore *core, gint64 (*rank_of)(BerthCore *, const CoreClass *))
{
    g_autoptr(GPtrArray) classes = g_ptr_array_sized_new(core_order_n(core));
    gboolean is_sorted = TRUE;
    list(core->order, classes);
    for (guint i = 0; i < classes->len; i++) {
        CoreClass *class = g_ptr_array_index(classes, i);
        class->rank = rank_of(core, class);
        is_sorted &= i == 0 || compare(g_ptr_array_index(classes, i - 1), class) < 0;
    }
    if (is_sorted)
        return;
    g_ptr_array_sort(classes, compare_listed);
    core->order = build(core, classes);
}

/* --- places --------------------------------------------------------------------------------- */

guint core_order_n(const BerthCore *core)
{
    return n_below(core->order);
}

CoreClass *core_order_at(const BerthCore *core, guint at)
{
    CoreClass *class = core->order;
    while (class != NULL && at != n_below(class->order.left)) {
        if (at < n_below(class->order.left)) {
            class = class->order.left;
        } else {
            at -= n_below(class->order.left) + 1;
            class = class->order.right;
        }
    }
    return class;
}

guint core_order_place(const BerthCore *core, const CoreClass *class)
{
    const CoreClass *at = class->is_ordered ? core->order : NULL;
    guint place = 0;
    if (at == NULL)
        return core_order_n(core);
    for (gint where; (where = compare(class, at)) != 0;) {
        place += where > 0 ? n_below(at->order.left) + 1 : 0;
        at = where < 0 ? at->order.left : at->order.right;
    }
    return place + n_below(at->order.left);
}

typedef struct {
    BerthCore *core;
    CoreOrderMay may;
    gpointer user_data;
} Look;

/* From place FROM of those below AT on; *OUT_PLACE is among these. */
static CoreClass *find_below(const Look *look, CoreClass *at, guint from, guint *out_place)
{
    if (at == NULL || from >= at->order.sum.n)
        return NULL;
    look->core->n_looked_at++;
    if (!look->may(&at->order.sum, look->user_data))
        return NULL;
    CoreClass *found = find_below(look, at->order.left, from, out_place);
    if (found != NULL)
        return found;
    guint own = n_below(at->order.left);
    CoreOrderSum alone = sum_of_one(look->core, at);
    if (from <= own && look->may(&alone, look->user_data)) {
        *out_place = own;
        return at;
    }
    found = find_below(look, at->order.right, from > own ? from - own - 1 : 0, out_place);
    if (found != NULL)
        *out_place += own + 1;
    return found;
}

CoreClass *core_order_find(BerthCore *core, guint *at, CoreOrderMay may, gpointer user_data)
{
    Look look = {core, may, user_data};
    CoreClass *found = find_below(&look, core->order, *at, at);
    if (found == NULL)
        *at = core_order_n(core);
    return found;
}

/* --- invariants ----------------------------------------------------------------------------- */

static gboolean is_summed_up(const BerthCore *core, const CoreClass *class)
{
    const CoreOrderSum *kept = &class->order.sum;
    CoreOrderSum sum = {.n = 0};
    count_up(core, class, &sum);
    join_leasts(core, class, &sum.leasts);
    gboolean is_same = sum.n == kept->n && sum.may_be_in_slack == kept->may_be_in_slack &&
                       sum.left_to_slack == kept->left_to_slack &&
                       core_leasts_equal(&sum.leasts, &kept->leasts);
    core_leasts_clear(&sum.leasts);
    return is_same;
}

static gboolean is_below(const CoreClass *at, const CoreClass *top)
{
    return at == NULL || is_above(top, at);
}

gboolean core_order_tree_is_sound(const BerthCore *core)
{
    g_autoptr(GPtrArray) classes = g_ptr_array_new();
    list(core->order, classes);
    for (guint i = 0; i < classes->len; i++) {
        const CoreClass *class = g_ptr_array_index(classes, i);
        if ((i > 0 && compare(g_ptr_array_index(classes, i - 1), class) >= 0) ||
            !is_below(class->order.left, class) || !is_below(class->order.right, class) ||
            !is_summed_up(core, class))
            return FALSE;
    }
    return TRUE;
}
