/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* What `berth top` shows of a snapshot. Pure: the same snapshot gives the same lines. */

typedef struct {
    guint width;  /* columns; 0 = as many as are needed */
    guint height; /* lines; 0 = as many as there are */
    Berth__TopRequest__Order order;
    guint node_skip, guest_skip; /* so many come before the first of the snapshot */
    const char *note;            /* NULL, or what is said at the end in place of the keys */
    gboolean has_keys;           /* tell them */
} BerthTopLook;

/* So many lines of nodes and of guests fit, where there are so many. */
void berth_top_share(guint height, guint n_nodes, guint n_guests, guint *out_nodes,
                     guint *out_guests);
/* The lines of a screen (char *, transfer full): no more, and no wider, than LOOK says. */
GPtrArray *berth_top_lines(const Berth__TopReply *reply, const BerthTopLook *look);
/* "cpu", "time"; as `berth top --sort` takes it. NULL: there is no such order. */
const char *berth_top_order_name(Berth__TopRequest__Order order);
/* FALSE: there is none of that name, or that key. */
gboolean berth_top_order_find(const char *name, Berth__TopRequest__Order *out_order);
gboolean berth_top_order_of_key(char key, Berth__TopRequest__Order *out_order);
