/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what tells hosts apart. */
#include <config.h>

#include "nodeagent/host_id.h"

#include <string.h>

#define HOST_ID_LENGTH 32

/* The words of the file, or "". */
static char *read_id(const char *path)
{
    char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return g_strdup("");
    return g_strstrip(text);
}

char *berth_host_id_new(const char *machine_id, const char *product_uuid)
{
    g_autofree char *machine = read_id(machine_id != NULL ? machine_id : "/etc/machine-id");
    g_autofree char *product =
        read_id(product_uuid != NULL ? product_uuid : "/sys/class/dmi/id/product_uuid");
    if (machine[0] == '\0' && product[0] == '\0')
        return g_strdup("");
    g_autofree char *both = g_strdup_printf("%s %s", machine, product);
    /* As sd_id128_get_machine_app_specific() does it: the machine id itself is to stay here. */
    char *id = g_compute_hmac_for_string(G_CHECKSUM_SHA256, (const guchar *)"berth-node", 10, both,
                                         (gssize)strlen(both));
    id[HOST_ID_LENGTH] = '\0';
    return id;
}
