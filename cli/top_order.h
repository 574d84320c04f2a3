/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* The order in which `berth top` prints all of a cluster once, of which the daemon tells in pages by name. */

/* Nodes and guests of SNAPSHOT, which are by name, come as ORDER says, and by name where that says nothing. */
void berth_top_put_in_order(Berth__TopReply *snapshot, Berth__TopRequest__Order order);
/* Moves what PAGE, by name, tells of nodes and guests behind those of ALL, but for such as are there already: between two
 * pages others may have come and gone. */
void berth_top_add_page(Berth__TopReply *all, Berth__TopReply *page);
