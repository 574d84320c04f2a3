/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a domain of ours is told from others, and what is read back from it. Trusts nothing: on
 * a shared host anybody may define domains, also some that look like ours. */
#include "nodeagent/hypervisor/private.h"

#include "common/channel.h"
#include "common/error.h"

#define NAME_MAX_BYTES 128u

void berth_domain_metadata_clear(BerthDomainMetadata *metadata)
{
    g_clear_pointer(&metadata->disk_id, g_free);
    g_clear_pointer(&metadata->log_id, g_free);
}

void berth_domain_free(BerthDomain *domain)
{
    if (domain == NULL)
        return;
    g_free(domain->name);
    berth_domain_metadata_clear(&domain->metadata);
    g_free(domain->channel_path);
    g_free(domain->console_path);
    g_free(domain);
}

static gboolean read_number32(xmlNode *node, const char *name, guint32 min, guint32 *out_value,
                              GError **error)
{
    guint64 value;
    if (!berth_xml_number(node, name, min, G_MAXUINT32, &value, error))
        return FALSE;
    *out_value = (guint32)value;
    return TRUE;
}

/* Reads the name of an object in storage. */
static gboolean read_name(xmlNode *node, const char *name, char **out_value, GError **error)
{
    g_autofree char *text = berth_xml_attribute(node, name);
    gsize length = text == NULL ? 0 : strlen(text);
    if (length == 0 || length > NAME_MAX_BYTES || text[0] == '.' ||
        strspn(text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-") != length) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "attribute %s of element %s is no name in storage", name,
                    (const char *)node->name);
        return FALSE;
    }
    *out_value = g_steal_pointer(&text);
    return TRUE;
}

/* What a resize has left there; 0 where none has. */
static gboolean read_optional(xmlNode *node, const char *name, guint64 max, guint64 *out_value,
                              GError **error)
{
    g_autofree char *text = berth_xml_attribute(node, name);
    return text == NULL || berth_xml_number(node, name, 0, max, out_value, error);
}

gboolean berth_domain_metadata_read(xmlNode *node, BerthDomainMetadata *metadata, GError **error)
{
    guint64 is_opportunistic = 0, stands = 0;
    if (!read_optional(node, "balloon-mib", G_MAXINT64, &metadata->balloon_mib, error) ||
        !read_optional(node, "opportunistic", 1, &is_opportunistic, error) ||
        !read_optional(node, "stands", 1, &stands, error))
        return FALSE;
    metadata->is_opportunistic = is_opportunistic != 0;
    metadata->stands = stands != 0;
    BerthGuestId *id = &metadata->id;
    BerthResources *limits = &metadata->limits;
    return berth_xml_number(node, "job", 1, G_MAXUINT64, &id->job, error) &&
           read_number32(node, "task", 0, &id->task, error) &&
           read_number32(node, "guest", 0, &id->guest, error) &&
           read_number32(node, "epoch", 1, &id->epoch, error) &&
           read_number32(node, "vcpus", 1, &limits->vcpus, error) &&
           berth_xml_number(node, "memory-mib", 1, G_MAXINT64, &limits->memory_mib, error) &&
           berth_xml_number(node, "disk-mib", 0, G_MAXINT64, &limits->disk_mib, error) &&
           read_name(node, "disk", &metadata->disk_id, error) &&
           read_name(node, "log", &metadata->log_id, error);
}

/* Attribute NAME of the element at PATH; NULL: no such element or attribute, or not absolute. */
static char *read_path(xmlNode *root, const char *path, const char *name)
{
    xmlNode *node = berth_xml_find(root, path);
    g_autofree char *text = node == NULL ? NULL : berth_xml_attribute(node, name);
    return text != NULL && g_path_is_absolute(text) ? g_steal_pointer(&text) : NULL;
}

xmlNode *berth_domain_metadata_find(xmlNode *root)
{
    return berth_xml_find(root, "/domain/metadata/berth:guest");
}

BerthDomain *berth_domain_parse(const char *xml, gsize length, GError **error)
{
    g_autoptr(xmlDoc) document =
        berth_xml_parse(xml, length, BERTH_DOMAIN_XML_MAX, "domain's XML", error);
    if (document == NULL)
        return NULL;
    xmlNode *root = xmlDocGetRootElement(document);
    xmlNode *node = berth_domain_metadata_find(root);
    if (node == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                            "the domain is none of Berth's");
        return NULL;
    }
    g_autoptr(BerthDomain) domain = g_new0(BerthDomain, 1);
    if (!berth_domain_metadata_read(node, &domain->metadata, error)) {
        g_prefix_error(error, "cannot read the domain's metadata: ");
        return NULL;
    }
    xmlNode *name = berth_xml_find(root, "/domain/name");
    xmlChar *text = name == NULL ? NULL : xmlNodeGetContent(name);
    domain->name = g_strdup(text == NULL ? "" : (const char *)text);
    xmlFree(text);
    domain->channel_path = read_path(root,
                                     "/domain/devices/channel[@type='unix'][target/@name='" //
                                     BERTH_CHANNEL_PORT "']/source",
                                     "path");
    domain->console_path = read_path(root, "/domain/devices/serial[@type='file']/source", "path");
    return g_steal_pointer(&domain);
}
