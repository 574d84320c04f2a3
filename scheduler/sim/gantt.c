/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the stacking of guests in the rows of their nodes: in order of their arrival, each takes the
 * lowest vCPUs that nobody has. */
#include "config.h"

#include "scheduler/sim/gantt.h"

typedef struct {
    guint64 low, high;
    gint64 until_usec;
} Taken;

static gint compare(gconstpointer a, gconstpointer b)
{
    const GanttStay *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->is_slack != y->is_slack)
        return x->is_slack ? 1 : -1;
    if (x->from_usec != y->from_usec)
        return x->from_usec < y->from_usec ? -1 : 1;
    if (x->vcpus != y->vcpus)
        return x->vcpus > y->vcpus ? -1 : 1;
    return x->to_usec > y->to_usec ? -1 : x->to_usec < y->to_usec;
}

static void forget(GArray *taken, gint64 now_usec)
{
    guint kept = 0;
    for (guint i = 0; i < taken->len; i++) {
        Taken one = g_array_index(taken, Taken, i);
        if (one.until_usec > now_usec)
            g_array_index(taken, Taken, kept++) = one;
    }
    g_array_set_size(taken, kept);
}

/* TAKEN is in order, and nothing in it overlaps; so it stays. */
static guint64 put(GArray *taken, const GanttStay *stay, GArray *parts)
{
    guint64 left = stay->vcpus, at = 0;
    for (guint i = 0; left > 0; i++) {
        guint64 next = i < taken->len ? g_array_index(taken, Taken, i).low : G_MAXUINT64;
        if (next > at) {
            guint64 n = MIN(left, next - at);
            Taken mine = {at, at + n, stay->to_usec};
            GanttPart part = {stay, at, at + n, left == stay->vcpus};
            g_array_insert_val(taken, i, mine);
            g_array_append_val(parts, part);
            left -= n;
        }
        at = g_array_index(taken, Taken, i).high;
    }
    return at;
}

GArray *gantt_stack(GArray *stays, guint64 *out_guaranteed, guint64 *out_slack)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(GanttPart));
    g_autoptr(GArray) taken = g_array_new(FALSE, FALSE, sizeof(Taken));
    const GanttStay *last = NULL;
    *out_guaranteed = *out_slack = 0;
    g_array_sort(stays, compare);
    for (guint i = 0; i < stays->len; i++) {
        const GanttStay *stay = &g_array_index(stays, GanttStay, i);
        if (last == NULL || last->node != stay->node || last->is_slack != stay->is_slack)
            g_array_set_size(taken, 0);
        last = stay;
        forget(taken, stay->from_usec);
        guint64 *most = stay->is_slack ? out_slack : out_guaranteed;
        guint64 top = put(taken, stay, parts);
        *most = MAX(*most, top);
    }
    return parts;
}
