/* SPDX-License-Identifier: Apache-2.0 */
/* berth image ls, show, rm. An import is image_import.c's. */
#include "config.h"

#include "cli/image.h"

#include "cli/format.h"
#include "cli/listing.h"
#include "common/units.h"

#include <stdio.h>

/* Rounded up to what fits. (transfer full) */
static char *format_bytes(guint64 bytes)
{
    return berth_format_size_mib((bytes >> 20) + (bytes % (1u << 20) != 0));
}

static void print_image(const Berth__Image *image)
{
    g_autofree char *size = format_bytes(image->size_bytes);
    g_autofree char *created = berth_format_time(image->created_usec);
    berth_print_field("Image", image->name);
    berth_print_field("Size", size);
    berth_print_field("Imported", created);
    berth_print_field("By", image->created_by);
    berth_print_field("From", image->source);
    berth_print_fieldf("Jobs", "%" G_GUINT64_FORMAT " pending or running", image->jobs);
    berth_print_field("In storage", image->id);
}

void berth_cli_print_image(BerthCli *cli, Berth__Image *image)
{
    if (cli->json)
        berth_cli_print_json(&image->base);
    else
        print_image(image);
    berth__image__free_unpacked(image, NULL);
}

static const BerthColumn columns[] = {
    {.title = "IMAGE", .flexible = TRUE}, {.title = "SIZE", .right = TRUE},
    {.title = "JOBS", .right = TRUE},     {.title = "BY", .flexible = TRUE, .drop = 1},
    {.title = "IMPORTED", .drop = 2},
};

static void add_row(BerthTable *table, const ProtobufCMessage *item)
{
    const Berth__Image *image = (const Berth__Image *)item;
    berth_table_add(table, g_strdup(image->name));
    berth_table_add(table, format_bytes(image->size_bytes));
    berth_table_add(table, g_strdup_printf("%" G_GUINT64_FORMAT, image->jobs));
    berth_table_add(table, g_strdup(image->created_by));
    berth_table_add(table, berth_format_time(image->created_usec));
}

static ProtobufCMessage *ask_page(BerthCli *cli, const char *after, GError **error)
{
    Berth__ListImagesRequest request = BERTH__LIST_IMAGES_REQUEST__INIT;
    request.after = (char *)after;
    return berth_cli_call(cli, &berth__images__descriptor, "List", &request.base, error);
}

static const ProtobufCMessage *item_of_page(const ProtobufCMessage *page, size_t i)
{
    const Berth__ListImagesReply *reply = (const Berth__ListImagesReply *)page;
    return i < reply->n_images ? &reply->images[i]->base : NULL;
}

static const char *next_of_page(const ProtobufCMessage *page)
{
    return ((const Berth__ListImagesReply *)page)->next_after;
}

static const BerthListing listing = {
    .columns = columns,
    .n_columns = G_N_ELEMENTS(columns),
    .ask = ask_page,
    .item = item_of_page,
    .next_after = next_of_page,
    .add_row = add_row,
};

gboolean berth_cli_image_ls(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object per line", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, NULL, NULL, NULL, out_status, error))
        return FALSE;
    if (argc > 1)
        return berth_cli_usage_error(out_status, error, "\"%s\" is one argument too many", argv[1]);
    return berth_listing_print(&listing, cli, error);
}

gboolean berth_cli_image_show(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print JSON", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "NAME", NULL, NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one image (see %s --help)", argv[0]);
    Berth__GetImageRequest request = BERTH__GET_IMAGE_REQUEST__INIT;
    request.name = argv[1];
    Berth__Image *image = (Berth__Image *)berth_cli_call(cli, &berth__images__descriptor, "Get",
                                                         &request.base, error);
    if (image == NULL)
        return FALSE;
    berth_cli_print_image(cli, image);
    return TRUE;
}

/* An image that cannot be removed does not keep the others from it. */
static gboolean remove_each(BerthCli *cli, int n, char **names, int *out_status, GError **error)
{
    for (int i = 0; i < n; i++) {
        g_autoptr(GError) local = NULL;
        Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        request.name = names[i];
        ProtobufCMessage *reply =
            berth_cli_call(cli, &berth__images__descriptor, "Remove", &request.base, &local);
        if (reply == NULL)
            berth_cli_report(local, out_status);
        else
            protobuf_c_message_free_unpacked(reply, NULL);
    }
    return TRUE;
}

gboolean berth_cli_image_rm(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    if (!berth_cli_parse(&argc, &argv, NULL, "NAME...",
                         "Refused while a pending or running job needs the image.", NULL,
                         out_status, error))
        return FALSE;
    if (argc < 2)
        return berth_cli_usage_error(out_status, error, "name an image (see %s --help)", argv[0]);
    return remove_each(cli, argc - 1, argv + 1, out_status, error);
}
