/* SPDX-License-Identifier: Apache-2.0 */
/* The XML of a domain that anybody may have defined, as the agent reads it to find its own. What is
 * read back keeps its bounds. */
#include "nodeagent/hypervisor/hypervisor.h"

#include <glib.h>

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    gsize length = strlen(name);
    g_assert(length >= 1 && length <= 128 && name[0] != '.' && strchr(name, '/') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomain) domain = berth_domain_parse((const char *)data, size, &error);
    g_assert((domain == NULL) == (error != NULL));
    if (domain != NULL) {
        g_assert(domain->name != NULL);
        g_assert(domain->metadata.id.job >= 1 && domain->metadata.id.epoch >= 1);
        check_name(domain->metadata.disk_id);
        check_name(domain->metadata.log_id);
    }
    g_autoptr(GError) refused = NULL;
    g_autoptr(BerthHost) host = berth_capabilities_parse((const char *)data, size, &refused);
    g_assert((host == NULL) == (refused != NULL));
    return 0;
}
