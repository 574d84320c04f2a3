/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way through the pages of a list. Does not own what a row shows. */
#include "cli/listing.h"

/* The page after *AFTER, which becomes where the next one begins. */
static gboolean list_page(const BerthListing *listing, BerthCli *cli, BerthTable *table,
                          char **after, GError **error)
{
    ProtobufCMessage *page = listing->ask(cli, *after, error);
    if (page == NULL)
        return FALSE;
    const ProtobufCMessage *item;
    for (size_t i = 0; (item = listing->item(page, i)) != NULL; i++) {
        if (cli->json)
            berth_cli_print_json(item);
        else
            listing->add_row(table, item);
    }
    g_free(*after);
    *after = g_strdup(listing->next_after(page));
    protobuf_c_message_free_unpacked(page, NULL);
    return TRUE;
}

gboolean berth_listing_print(const BerthListing *listing, BerthCli *cli, GError **error)
{
    g_autoptr(BerthTable) table = berth_table_new(listing->columns, listing->n_columns);
    g_autofree char *after = g_strdup("");
    do {
        if (!list_page(listing, cli, table, &after, error))
            return FALSE;
    } while (*after != '\0');
    if (!cli->json)
        berth_table_print(table, stdout, berth_terminal_width(stdout));
    return TRUE;
}
