/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what of a domain's XML changes with its host, and where hosts may be. What the guest sees is not
 * touched. */
#include "nodeagent/hypervisor/private.h"

#include "common/channel.h"
#include "common/error.h"

BerthMigrationTarget *berth_migration_target_copy(const BerthMigrationTarget *target)
{
    BerthMigrationTarget *copy = g_new0(BerthMigrationTarget, 1);
    *copy = (BerthMigrationTarget){
        .libvirt_uri = g_strdup(target->libvirt_uri),
        .stream_uri = g_strdup(target->stream_uri),
        .channel_path = g_strdup(target->channel_path),
        .console_path = g_strdup(target->console_path),
        .kernel = g_strdup(target->kernel),
        .initramfs = g_strdup(target->initramfs),
        .partition = g_strdup(target->partition),
        .guest_cpus = g_strdup(target->guest_cpus),
        .host_cpus = g_strdup(target->host_cpus),
        .secret_uuid = g_strdup(target->secret_uuid),
        .domain = g_strdup(target->domain),
        .is_opportunistic = target->is_opportunistic,
        .sets_weight = target->sets_weight,
    };
    return copy;
}

void berth_migration_target_free(BerthMigrationTarget *target)
{
    if (target == NULL)
        return;
    g_free(target->libvirt_uri);
    g_free(target->stream_uri);
    g_free(target->channel_path);
    g_free(target->console_path);
    g_free(target->kernel);
    g_free(target->initramfs);
    g_free(target->partition);
    g_free(target->guest_cpus);
    g_free(target->host_cpus);
    g_free(target->secret_uuid);
    g_free(target->domain);
    g_free(target);
}

/* SCHEME://HOST[:PORT]PATH and nothing else. What a URI of libvirt's may have besides names files, commands and
 * what is not to be checked. */
static gboolean check_uri(const char *text, const char *scheme, const char *path, GError **error)
{
    g_autoptr(GUri) uri = g_uri_parse(text, G_URI_FLAGS_NONE, NULL);
    const char *host = uri == NULL ? NULL : g_uri_get_host(uri);
    if (host != NULL && *host != '\0' && g_str_equal(g_uri_get_scheme(uri), scheme) &&
        g_str_equal(g_uri_get_path(uri), path) && g_uri_get_userinfo(uri) == NULL &&
        g_uri_get_query(uri) == NULL && g_uri_get_fragment(uri) == NULL &&
        strspn(host, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS ".:-_") == strlen(host))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" is not where guests are moved to: %s://HOST%s is, and may have a port",
                text, scheme, path);
    return FALSE;
}

gboolean berth_migration_uris_check(const char *libvirt_uri, const char *stream_uri, GError **error)
{
    return check_uri(libvirt_uri, "qemu+tls", "/system", error) &&
           check_uri(stream_uri, "tcp", "", error);
}

static gboolean set_text(xmlNode *root, const char *path, const char *text, GError **error)
{
    xmlNode *node = berth_xml_find(root, path);
    if (node == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "the domain has no %s", path);
        return FALSE;
    }
    xmlNodeSetContent(node, NULL);
    xmlNodeAddContent(node, BAD_CAST text);
    return TRUE;
}

/* Of all elements that PATH names. */
static gboolean set_attribute(xmlNode *root, const char *path, const char *name, const char *value,
                              GError **error)
{
    g_autoptr(xmlXPathObject) found = berth_xml_find_all(root, path);
    if (found == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "the domain has no %s", path);
        return FALSE;
    }
    for (int i = 0; i < found->nodesetval->nodeNr; i++)
        xmlSetProp(found->nodesetval->nodeTab[i], BAD_CAST name, BAD_CAST value);
    return TRUE;
}

/* libvirt has written its own one into the definition of a domain that asked for none. */
static void set_partition(xmlNode *root, const char *partition)
{
    xmlNode *node = berth_xml_find(root, "/domain/resource");
    if (node != NULL) {
        xmlUnlinkNode(node);
        xmlFreeNode(node);
    }
    if (partition == NULL)
        return;
    node = xmlNewChild(root, NULL, BAD_CAST "resource", NULL);
    xmlNewTextChild(node, NULL, BAD_CAST "partition", BAD_CAST partition);
}

/* Where its threads run is its host's own, whoever has said so, and nothing to another. */
static void drop_cpus(xmlNode *root)
{
    static const char path[] = "/domain/cputune/vcpupin|/domain/cputune/emulatorpin|"
                               "/domain/cputune/iothreadpin";
    xmlNode *vcpu = berth_xml_find(root, "/domain/vcpu");
    g_autoptr(xmlXPathObject) pins = berth_xml_find_all(root, path);
    if (vcpu != NULL)
        xmlUnsetProp(vcpu, BAD_CAST "cpuset");
    for (int i = 0; pins != NULL && i < pins->nodesetval->nodeNr; i++) {
        xmlUnlinkNode(pins->nodesetval->nodeTab[i]);
        xmlFreeNode(pins->nodesetval->nodeTab[i]);
        pins->nodesetval->nodeTab[i] = NULL; /* which is looked at when the set is freed */
    }
}

static gboolean set_cpus(xmlNode *root, const BerthMigrationTarget *target, GError **error)
{
    xmlNode *vcpu = berth_xml_find(root, "/domain/vcpu");
    xmlNode *tune = berth_xml_find(root, "/domain/cputune");
    if ((target->guest_cpus == NULL) != (target->host_cpus == NULL)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the host that it is to go to names CPUs for %s alone, not for both vCPUs and "
                    "all else",
                    target->guest_cpus != NULL ? "vCPUs" : "what is no vCPU");
        return FALSE;
    }
    if ((vcpu == NULL || tune == NULL) && target->guest_cpus != NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "the domain has no /domain/vcpu or no /domain/cputune");
        return FALSE;
    }
    drop_cpus(root);
    berth_domain_set_cpus(vcpu, tune, target->guest_cpus, target->host_cpus);
    return TRUE;
}

static gboolean set_secret(xmlNode *root, const char *uuid, GError **error)
{
    static const char path[] = "/domain/devices/disk/auth/secret";
    return uuid == NULL || set_attribute(root, path, "uuid", uuid, error);
}

/* For as long as its memory comes one in slack has a weight that does not count its vCPUs, which do not run: on a host whose
 * CPUs are all used it would take many times as long to come. An older agent would leave it that weight. */
static guint64 shares_for(const BerthMigrationTarget *target, guint32 vcpus)
{
    if (target->is_opportunistic && target->sets_weight)
        return berth_domain_shares(BERTH_COPYING_CPUS, FALSE);
    return berth_domain_shares(vcpus, target->is_opportunistic);
}

/* Its CPU weight, which its metadata say, too. The host that it leaves may have held it back. */
static gboolean set_weight(xmlNode *root, const BerthMigrationTarget *target, GError **error)
{
    xmlNode *node = berth_domain_metadata_find(root);
    BerthDomainMetadata metadata = {0};
    if (node == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "the domain is none of Berth's");
        return FALSE;
    }
    gboolean ok = berth_domain_metadata_read(node, &metadata, error);
    g_autofree char *shares =
        g_strdup_printf("%" G_GUINT64_FORMAT, shares_for(target, metadata.limits.vcpus));
    berth_domain_metadata_clear(&metadata);
    if (!ok || !set_text(root, "/domain/cputune/shares", shares, error) ||
        !set_text(root, "/domain/cputune/quota", G_STRINGIFY(BERTH_CPU_PERIOD_USEC), error))
        return FALSE;
    berth_domain_metadata_set_weight(node, target->is_opportunistic);
    return TRUE;
}

static gboolean set_host(xmlNode *root, const BerthMigrationTarget *target, GError **error)
{
    static const char channel[] = "/domain/devices/channel[@type='unix'][target/@name='" //
        BERTH_CHANNEL_PORT "']/source";
    static const char console[] =
        "/domain/devices/serial[@type='file']/source|/domain/devices/console[@type='file']/source";
    if (!set_text(root, "/domain/os/kernel", target->kernel, error) ||
        !set_text(root, "/domain/os/initrd", target->initramfs, error) ||
        !set_attribute(root, channel, "path", target->channel_path, error) ||
        !set_attribute(root, console, "path", target->console_path, error) ||
        !set_weight(root, target, error) || !set_cpus(root, target, error) ||
        !set_secret(root, target->secret_uuid, error))
        return FALSE;
    set_partition(root, target->partition);
    return TRUE;
}

static char *dump(xmlDoc *document)
{
    xmlChar *text = NULL;
    int size = 0;
    xmlDocDumpMemory(document, &text, &size);
    char *copy = g_strndup((const char *)text, (gsize)size);
    xmlFree(text);
    return copy;
}

char *berth_domain_xml_for(const char *xml, gsize length, const BerthMigrationTarget *target,
                           GError **error)
{
    g_autoptr(xmlDoc) document =
        berth_xml_parse(xml, length, BERTH_DOMAIN_XML_MAX, "domain's XML", error);
    if (document == NULL || !set_host(xmlDocGetRootElement(document), target, error))
        return NULL;
    return dump(document);
}

static gboolean set_number(xmlNode *root, const char *path, const char *name, guint32 value,
                           GError **error)
{
    g_autofree char *text = g_strdup_printf("%u", value);
    return set_attribute(root, path, name, text, error);
}

/* Who it is from now on: the same guest in another epoch, which may stand still at first. */
static gboolean set_identity(xmlNode *root, const BerthDomainMetadata *metadata, GError **error)
{
    static const char path[] = "/domain/metadata/berth:guest";
    xmlNode *node = berth_domain_metadata_find(root);
    if (metadata->stands)
        xmlSetProp(node, BAD_CAST "stands", BAD_CAST "1");
    else
        xmlUnsetProp(node, BAD_CAST "stands");
    return set_number(root, path, "epoch", metadata->id.epoch, error) &&
           set_attribute(root, path, "disk", metadata->disk_id, error) &&
           set_attribute(root, path, "log", metadata->log_id, error);
}

char *berth_domain_xml_for_restore(const char *xml, const BerthMigrationTarget *host,
                                   const BerthDomainMetadata *metadata, const BerthDiskSource *disk,
                                   GError **error)
{
    g_autofree char *image = g_strdup_printf("%s/%s", disk->rbd_pool, disk->rbd_image);
    g_autoptr(xmlDoc) document =
        berth_xml_parse(xml, strlen(xml), BERTH_DOMAIN_XML_MAX, "domain's XML", error);
    if (document == NULL)
        return NULL;
    xmlNode *root = xmlDocGetRootElement(document);
    if (!set_host(root, host, error) || !set_identity(root, metadata, error) ||
        !set_attribute(root, "/domain/devices/disk/source[@protocol='rbd']", "name", image, error))
        return NULL;
    return dump(document);
}

char *berth_domain_xml_of_no_host(const char *xml, gsize length, GError **error)
{
    g_autoptr(xmlDoc) document =
        berth_xml_parse(xml, length, BERTH_DOMAIN_XML_MAX, "domain's XML", error);
    if (document == NULL)
        return NULL;
    drop_cpus(xmlDocGetRootElement(document));
    return dump(document);
}
