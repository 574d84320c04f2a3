/* SPDX-License-Identifier: Apache-2.0 */
/* Owns, for one planned gang, what nodes have room for before it starts: so that a node that changes
 * is looked at alone, and no search is made as long as all of them together are too few.
 *
 * The time until the start is cut into parts where room was seen to sink, which is where planned
 * starts before it are. Of each node is kept in which parts it has any room, and for how many guests
 * at most in any of them. Invariant: sums[i] is that, over all nodes with room in part i, so that it
 * is never less than the gang could have at any instant of the part. Where nothing is planned room
 * only grows, and what there is at the end of a part is just that. */
#include "scheduler/core/supply.h"

#include "scheduler/core/timers.h"

#define PARTS_MAX 32u

typedef struct {
    guint32 parts; /* a bit for each in which there is room */
    guint16 most;  /* for so many guests, in any of them */
    guint16 planned;
} Offer;

struct CoreSupply {
    CoreNeed need;
    guint32 guests;
    guint n_parts;
    gint64 ends[PARTS_MAX]; /* of each part; the last one is the gang's start */
    guint64 sums[PARTS_MAX];
    GArray *offers; /* Offer, handle - 1 */
};

static Offer *offer_of(CoreSupply *supply, guint32 handle)
{
    if (supply->offers->len < handle)
        g_array_set_size(supply->offers, handle);
    return &g_array_index(supply->offers, Offer, handle - 1);
}

CoreSupply *core_supply_new(const CoreNeed *need, guint32 guests, gint64 start_usec,
                            const guint32 *nodes, const GArray *falls)
{
    if (guests > G_MAXUINT16)
        return NULL;
    CoreSupply *supply = g_new0(CoreSupply, 1);
    supply->need = *need;
    supply->guests = guests;
    supply->offers = g_array_new(FALSE, TRUE, sizeof(Offer));
    guint n = MIN(falls->len, PARTS_MAX - 1);
    for (guint i = 0; i < n; i++)
        supply->ends[supply->n_parts++] = g_array_index(falls, gint64, i * falls->len / n);
    supply->ends[supply->n_parts++] = start_usec;
    for (guint32 i = 0; i < guests; i++)
        offer_of(supply, nodes[i])->planned++;
    return supply;
}

void core_supply_free(CoreSupply *supply)
{
    g_array_unref(supply->offers);
    g_free(supply);
}

/* Those that share an instant with FROM_USEC to UNTIL_USEC. */
static guint32 parts_between(const CoreSupply *supply, gint64 from_usec, gint64 until_usec)
{
    guint32 parts = 0;
    for (guint i = 0; i < supply->n_parts; i++) {
        if (supply->ends[i] > from_usec)
            parts |= 1u << i;
        if (supply->ends[i] >= until_usec)
            break;
    }
    return parts;
}

static Offer ask(const CoreSupply *supply, const BerthCore *core, CoreNode *node, guint heeds)
{
    CoreCurve curve;
    Offer offer = {0};
    CoreNeed need = supply->need;
    gint64 start_usec = supply->ends[supply->n_parts - 1];
    need.heeds = heeds;
    if (core_profile_earliest(core, node, need.size) >= start_usec)
        return offer;
    core_curve_begin(&curve, core, node, &need, supply->guests, core->now_usec);
    gboolean more = TRUE;
    while (more && curve.at_usec < start_usec) {
        gint64 from_usec = curve.at_usec;
        guint32 count = curve.count;
        more = core_curve_next(&curve);
        if (count == 0)
            continue;
        offer.parts |=
            parts_between(supply, from_usec, more ? MIN(curve.at_usec, start_usec) : start_usec);
        offer.most = (guint16)MAX(offer.most, count);
    }
    core_curve_end(&curve);
    return offer;
}

static void add(CoreSupply *supply, Offer offer, gint sign)
{
    for (guint i = 0; i < supply->n_parts; i++)
        if ((offer.parts & 1u << i) != 0)
            supply->sums[i] += (guint64)(gint64)(sign * offer.most);
}

void core_supply_take(CoreSupply *supply, const BerthCore *core, CoreNode *node, guint heeds)
{
    Offer *kept = offer_of(supply, node->handle);
    Offer offer = ask(supply, core, node, heeds);
    if (offer.parts == kept->parts && offer.most == kept->most)
        return;
    add(supply, *kept, -1);
    add(supply, offer, 1);
    kept->parts = offer.parts;
    kept->most = offer.most;
}

guint32 core_supply_planned_on(const CoreSupply *supply, const CoreNode *node)
{
    return node->handle <= supply->offers->len
               ? g_array_index(supply->offers, Offer, node->handle - 1).planned
               : 0;
}

gboolean core_supply_may_be_earlier(const CoreSupply *supply, gint64 now_usec)
{
    for (guint i = 0; i < supply->n_parts; i++)
        if (supply->ends[i] > now_usec && supply->sums[i] >= supply->guests)
            return TRUE;
    return FALSE;
}

gsize core_supply_bytes(const CoreSupply *supply)
{
    return sizeof *supply + supply->offers->len * sizeof(Offer);
}
