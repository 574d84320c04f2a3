/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"
#include "cli/table.h"

/* A list that the daemon gives page by page, as a table or with --json as one object per line. */

/* What distinguishes the lists. */
typedef struct {
    const BerthColumn *columns;
    guint n_columns;
    /* The page that begins after the name AFTER ("" = the first). (transfer full) */
    ProtobufCMessage *(*ask)(BerthCli *cli, const char *after, GError **error);
    /* The item number I of PAGE; NULL: there are no more. */
    const ProtobufCMessage *(*item)(const ProtobufCMessage *page, size_t i);
    /* The name after which the next page begins; "" = there is none. */
    const char *(*next_after)(const ProtobufCMessage *page);
    void (*add_row)(BerthTable *table, const ProtobufCMessage *item);
} BerthListing;

/* Asks for all of it and prints it. */
gboolean berth_listing_print(const BerthListing *listing, BerthCli *cli, GError **error);
