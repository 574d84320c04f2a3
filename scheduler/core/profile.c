/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what each node will have left and when: the ends of its guests, by their time limits, and the
 * room that waiting tasks are planned to take there. One that is being moved leaves when that is thought to be done. Guests only leave, so that without plans the
 * room of a node never shrinks; with them it shrinks only where a planned start is. */
#include "scheduler/core/profile.h"

#include "scheduler/core/leaving.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/timers.h"

/* More than any node has. */
static const CoreSize all_of_it = {G_MAXUINT32, G_MAXUINT64};

static int compare_ends(gconstpointer a, gconstpointer b)
{
    gint64 end_a = ((const CoreStep *)a)->start_usec;
    gint64 end_b = ((const CoreStep *)b)->start_usec;
    return end_a < end_b ? -1 : end_a > end_b;
}

/* From what each end frees to what is left then; one entry for each instant. */
static void sum_up(CoreNode *node)
{
    GArray *steps = node->steps;
    CoreSize left = node->reserved;
    guint n = 1;
    for (guint i = 1; i < steps->len; i++) {
        CoreStep step = g_array_index(steps, CoreStep, i);
        left = core_size_sub(left, step.room);
        step.room = core_size_sub(core_node_capacity(node), left);
        if (n == 1 || g_array_index(steps, CoreStep, n - 1).start_usec != step.start_usec)
            n++;
        g_array_index(steps, CoreStep, n - 1) = step;
    }
    g_array_set_size(steps, n);
}

/* First the ends with what each frees, then sums of them. */
static void rebuild_steps(CoreNode *node)
{
    GArray *steps = node->steps;
    node->steps_are_old = FALSE;
    g_array_set_size(steps, 0);
    if (!core_node_is_open(node) || node->n_strays > 0)
        return;
    CoreStep now = {G_MININT64, core_node_free(node)};
    g_array_append_val(steps, now);
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        CoreStep end = {core_leaving_usec(guest), guest->size};
        if (!guest->is_opportunistic)
            g_array_append_val(steps, end);
    }
    for (guint i = 0; i < node->incoming->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        CoreStep end = {core_leaving_there_usec(guest), guest->to_size};
        if (!guest->is_opportunistic_there)
            g_array_append_val(steps, end);
    }
    g_array_sort(steps, compare_ends);
    sum_up(node);
}

static const GArray *steps_of(CoreNode *node)
{
    if (node->steps_are_old)
        rebuild_steps(node);
    return node->steps;
}

gint64 core_profile_earliest(const BerthCore *core, CoreNode *node, CoreSize size)
{
    const GArray *steps = steps_of(node);
    for (guint i = 0; i < steps->len; i++) {
        const CoreStep *step = &g_array_index(steps, CoreStep, i);
        if (core_size_fits(size, step->room))
            return step->start_usec;
    }
    return G_MAXINT64;
}

/* --- beside what is planned ------------------------------------------------------------------- */

/* The first entry that is not before AT_USEC. */
static guint first_from(const GArray *left, gint64 at_usec)
{
    guint low = 0;
    guint high = left->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(left, CoreStep, middle).start_usec < at_usec)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The entry that begins at AT_USEC, which is not the very first instant; put there if there is none. */
static guint split(GArray *left, gint64 at_usec)
{
    guint place = first_from(left, at_usec);
    if (place == left->len || g_array_index(left, CoreStep, place).start_usec != at_usec) {
        CoreStep step = {at_usec, g_array_index(left, CoreStep, place - 1).room};
        g_array_insert_val(left, place, step);
    }
    return place;
}

static void cut(GArray *left, gint64 start_usec, gint64 end_usec, CoreSize size)
{
    if (left->len == 0 || start_usec >= end_usec)
        return;
    guint begin = split(left, MAX(start_usec, G_MININT64 + 1));
    guint end = split(left, end_usec);
    for (guint i = begin; i < end; i++) {
        CoreStep *step = &g_array_index(left, CoreStep, i);
        step->room = core_size_sub(step->room, size);
    }
}

void core_profile_cut(GArray *left, const CoreReservation *reservation)
{
    cut(left, reservation->start_usec, reservation->end_usec, reservation->size);
}

/* How many of RESERVATIONS are among the first HEEDS planned starts. */
static guint n_heeded(const GArray *reservations, guint heeds)
{
    guint n = reservations != NULL ? reservations->len : 0;
    while (n > 0 && g_array_index(reservations, CoreReservation, n - 1).place >= heeds)
        n--;
    return n;
}

/* STEPS without the first N of RESERVATIONS; LEFT, whatever it was, if it is not NULL. */
static GArray *make_left(GArray *left, const GArray *steps, const GArray *reservations, guint n)
{
    if (left == NULL)
        left = g_array_sized_new(FALSE, FALSE, sizeof(CoreStep), steps->len + 2 * n);
    g_array_set_size(left, 0);
    g_array_append_vals(left, steps->data, steps->len);
    for (guint i = 0; i < n; i++)
        core_profile_cut(left, &g_array_index(reservations, CoreReservation, i));
    return left;
}

/* Beside all that is planned there, and beside the first N of it: both are kept. */
static const GArray *left_of_all(CoreNode *node, CoreTouched *touched)
{
    if (node->left_is_old)
        touched->left = make_left(touched->left, node->steps, touched->reservations,
                                  touched->reservations->len);
    node->left_is_old = FALSE;
    return touched->left;
}

static const GArray *left_of_part(CoreNode *node, CoreTouched *touched, guint n)
{
    if (node->part_is_old || touched->n_part != n)
        touched->part = make_left(touched->part, node->steps, touched->reservations, n);
    node->part_is_old = FALSE;
    touched->n_part = n;
    return touched->part;
}

static void cut_blocks(GArray *left, const CoreNode *node)
{
    for (guint i = 0; node->blocks != NULL && i < node->blocks->len; i++) {
        const CoreBlock *block = &g_array_index(node->blocks, CoreBlock, i);
        cut(left, block->start_usec, block->end_usec, all_of_it);
    }
}

/* What NODE has left, as steps_of(), beside what NEED heeds. OUT_OWN: to be unreferenced; NULL = it is
 * kept with the node. */
static const GArray *left_of(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                             GArray **out_own)
{
    const GArray *steps = steps_of(node);
    CoreTouched *touched = core_plan_on(core, node);
    const GArray *reservations = touched != NULL ? touched->reservations : NULL;
    guint n = n_heeded(reservations, need->heeds);
    gboolean is_blocked = !need->may_move && node->blocks != NULL && node->blocks->len > 0;
    *out_own = NULL;
    if (n == 0 && !is_blocked)
        return steps;
    if (!is_blocked)
        return n == reservations->len ? left_of_all(node, touched) : left_of_part(node, touched, n);
    *out_own = make_left(NULL, steps, reservations, n);
    cut_blocks(*out_own, node);
    return *out_own;
}

guint32 core_size_count(CoreSize size, CoreSize room, guint32 max)
{
    if (max <= 1)
        return max == 1 && core_size_fits(size, room) ? 1 : 0;
    guint64 by_vcpus = size.vcpus > 0 ? room.vcpus / size.vcpus : max;
    guint64 by_memory = size.memory_mib > 0 ? room.memory_mib / size.memory_mib : max;
    return (guint32)MIN(MIN(by_vcpus, by_memory), max);
}

/* Guests that overstay are still there now, and are thought to leave any moment. */
static CoreSize room_now(const BerthCore *core, const CoreNode *node, const GArray *steps,
                         guint heeds)
{
    const GArray *reservations = core_plan_reservations(core, node);
    CoreSize room = {0, 0};
    if (steps->len > 0)
        room = g_array_index(steps, CoreStep, 0).room;
    guint n = n_heeded(reservations, heeds);
    for (guint i = 0; i < n; i++) {
        const CoreReservation *reservation = &g_array_index(reservations, CoreReservation, i);
        if (reservation->start_usec <= core->now_usec && core->now_usec < reservation->end_usec)
            room = core_size_sub(room, reservation->size);
    }
    return room;
}

/* The entry that AT_USEC, after now, is in. */
static guint entry_at(const GArray *left, gint64 at_usec)
{
    return first_from(left, at_usec + 1) - 1;
}

/* COUNT, or as many of SIZE as fit in each entry of LEFT from number FROM on until UNTIL_USEC. */
static guint32 least_of(const GArray *left, guint from, gint64 until_usec, CoreSize size,
                        guint32 count)
{
    for (guint i = from; i < left->len && count > 0; i++) {
        const CoreStep *step = &g_array_index(left, CoreStep, i);
        if (step->start_usec >= until_usec)
            break;
        count = core_size_count(size, step->room, count);
    }
    return count;
}

guint32 core_profile_count(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                           gint64 from_usec, guint32 max)
{
    g_autoptr(GArray) own = NULL;
    gint64 end_usec = core_time_add(from_usec, need->length_usec);
    if (core_maintenance_blocks(node, from_usec, need->may_move ? from_usec + 1 : end_usec))
        return 0;
    const GArray *steps = steps_of(node);
    if (steps->len == 0)
        return 0;
    gboolean is_now = from_usec <= core->now_usec;
    guint32 count = max;
    if (is_now)
        count = core_size_count(need->size, room_now(core, node, steps, need->heeds), max);
    if (count == 0)
        return 0;
    const GArray *left = left_of(core, node, need, &own);
    guint i = entry_at(left, is_now ? core->now_usec : from_usec);
    if (!is_now)
        count = core_size_count(need->size, g_array_index(left, CoreStep, i).room, max);
    /* Without plans a node has never less than before. */
    return left != steps ? least_of(left, i + 1, end_usec, need->size, count) : count;
}

/* What NODE would have left if GUEST had left it. */
static GArray *steps_without(CoreNode *node, const CoreGuest *guest)
{
    GArray *steps = make_left(NULL, steps_of(node), NULL, 0);
    for (guint i = 0; i < steps->len; i++) {
        CoreStep *step = &g_array_index(steps, CoreStep, i);
        if (step->start_usec < core_leaving_usec(guest))
            step->room = core_size_add(step->room, guest->size);
    }
    return steps;
}

guint32 core_profile_count_without(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                                   const CoreGuest *guest, guint32 max)
{
    gint64 now_usec = core->now_usec;
    gint64 end_usec = core_time_add(now_usec, need->length_usec);
    const GArray *reservations = core_plan_reservations(core, node);
    g_autoptr(GArray) steps = steps_without(node, guest);
    if (steps->len == 0 ||
        core_maintenance_blocks(node, now_usec, need->may_move ? now_usec + 1 : end_usec))
        return 0;
    guint32 count = core_size_count(need->size, room_now(core, node, steps, need->heeds), max);
    g_autoptr(GArray) left =
        make_left(NULL, steps, reservations, n_heeded(reservations, need->heeds));
    if (!need->may_move)
        cut_blocks(left, node);
    return least_of(left, entry_at(left, now_usec) + 1, end_usec, need->size, count);
}

void core_profile_outlook(const BerthCore *core, CoreNode *node, guint heeds, GArray *out_steps)
{
    g_autoptr(GArray) own = NULL;
    const GArray *reservations = core_plan_reservations(core, node);
    CoreNeed need = {.heeds = heeds, .may_move = TRUE};
    const GArray *left = left_of(core, node, &need, &own);
    CoreStep now = {core->now_usec, room_now(core, node, steps_of(node), heeds)};
    g_array_append_val(out_steps, now);
    guint n = n_heeded(reservations, heeds);
    for (guint i = 0; i < n; i++) {
        CoreStep later = {g_array_index(reservations, CoreReservation, i).start_usec, {0, 0}};
        if (later.start_usec <= core->now_usec)
            continue;
        if (left->len > 0)
            later.room = g_array_index(left, CoreStep, entry_at(left, later.start_usec)).room;
        g_array_append_val(out_steps, later);
    }
}

static gboolean is_same_left(const GArray *made, const GArray *kept)
{
    gboolean is_same = made->len == kept->len;
    for (guint i = 0; i < made->len && is_same; i++) {
        const CoreStep *a = &g_array_index(made, CoreStep, i);
        const CoreStep *b = &g_array_index(kept, CoreStep, i);
        is_same = a->start_usec == b->start_usec && a->room.vcpus == b->room.vcpus &&
                  a->room.memory_mib == b->room.memory_mib;
    }
    return is_same;
}

gboolean core_profile_is_sound(const BerthCore *core, CoreNode *node)
{
    const CoreTouched *touched = core_plan_on(core, node);
    if (touched == NULL)
        return TRUE;
    g_autoptr(GArray) all =
        make_left(NULL, steps_of(node), touched->reservations, touched->reservations->len);
    if (!node->left_is_old && !is_same_left(all, touched->left))
        return FALSE;
    if (node->part_is_old)
        return TRUE;
    g_autoptr(GArray) part =
        make_left(NULL, steps_of(node), touched->reservations, touched->n_part);
    return is_same_left(part, touched->part);
}

/* --- curves ---------------------------------------------------------------------------------- */

static guint32 count_in(const CoreCurve *curve, guint i, guint32 max)
{
    return core_size_count(curve->need->size, g_array_index(curve->left, CoreStep, i).room, max);
}

static gint64 start_of(const CoreCurve *curve, guint i)
{
    return g_array_index(curve->left, CoreStep, i).start_usec;
}

static guint32 least_in_sight(const CoreCurve *curve)
{
    guint32 count = count_in(curve, curve->from, curve->max);
    for (guint i = curve->from + 1; i < curve->to && count > 0; i++)
        count = count_in(curve, i, count);
    return count;
}

/* To AT_USEC, the next instant at which entries come into sight or leave it. */
static void move_to(CoreCurve *curve, gint64 at_usec)
{
    guint from = curve->from;
    gint64 end_usec = core_time_add(at_usec, curve->need->length_usec);
    gboolean any_left = FALSE;
    curve->at_usec = at_usec;
    while (from + 1 < curve->n && start_of(curve, from + 1) <= at_usec) {
        any_left |= count_in(curve, from, curve->max) == curve->count;
        from++;
    }
    curve->from = from;
    curve->to = MAX(curve->to, from + 1);
    if (curve->rises) {
        curve->count = count_in(curve, from, curve->max);
        curve->to = from + 1;
        return;
    }
    if (any_left)
        curve->count = least_in_sight(curve);
    for (; curve->to < curve->n && start_of(curve, curve->to) < end_usec; curve->to++)
        curve->count = count_in(curve, curve->to, curve->count);
}

void core_curve_begin(CoreCurve *curve, const BerthCore *core, CoreNode *node, const CoreNeed *need,
                      guint32 max, gint64 from_usec)
{
    *curve = (CoreCurve){.at_usec = from_usec, .need = need, .max = max};
    curve->left = left_of(core, node, need, &curve->own);
    curve->rises = curve->left == node->steps;
    curve->n = first_from(curve->left, G_MAXINT64); /* what comes then never comes */
    if (curve->n == 0)
        return;
    curve->from = entry_at(curve->left, from_usec);
    curve->to = curve->from + 1;
    curve->count = count_in(curve, curve->from, max);
    move_to(curve, from_usec);
}

gboolean core_curve_next(CoreCurve *curve)
{
    guint32 count = curve->count;
    while (count == curve->count) {
        gint64 next_usec = G_MAXINT64;
        if (curve->from + 1 < curve->n)
            next_usec = start_of(curve, curve->from + 1);
        if (!curve->rises && curve->to < curve->n)
            next_usec = MIN(next_usec, start_of(curve, curve->to) - curve->need->length_usec + 1);
        if (next_usec == G_MAXINT64)
            return FALSE;
        move_to(curve, next_usec);
    }
    return TRUE;
}

void core_curve_end(CoreCurve *curve)
{
    g_clear_pointer(&curve->own, g_array_unref);
}

/* At AT_USEC, or when what is under way there then is over. */
static gint64 after_maintenance(const CoreNode *node, gint64 at_usec)
{
    for (guint i = 0; node->blocks != NULL && i < node->blocks->len; i++) {
        const CoreBlock *block = &g_array_index(node->blocks, CoreBlock, i);
        if (block->start_usec <= at_usec && at_usec < block->end_usec)
            return after_maintenance(node, block->end_usec);
    }
    return at_usec;
}

gint64 core_profile_first(const BerthCore *core, CoreNode *node, const CoreNeed *need,
                          guint32 count)
{
    CoreCurve curve;
    gint64 first_usec = G_MAXINT64;
    gboolean more = TRUE;
    core_curve_begin(&curve, core, node, need, count, core_time_add(core->now_usec, 1));
    for (; more && curve.at_usec < first_usec; more = core_curve_next(&curve)) {
        gint64 at_usec = after_maintenance(node, curve.at_usec);
        if (curve.count >= count && (at_usec == curve.at_usec ||
                                     core_profile_count(core, node, need, at_usec, count) == count))
            first_usec = MIN(first_usec, at_usec);
    }
    core_curve_end(&curve);
    return first_usec;
}
