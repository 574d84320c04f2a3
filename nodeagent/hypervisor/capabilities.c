/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what libvirt's capabilities say of a host: its NUMA cells, the domain types and the machine
 * type that guests get. Versions and totals come from the connection. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"

#define CAPABILITIES_MAX (16u << 20)
#define X86_64_GUEST     "/capabilities/guest[os_type='hvm']/arch[@name='x86_64']"

static void clear_cell(gpointer data)
{
    BerthHostCell *cell = data;
    g_clear_pointer(&cell->cpu_ids, g_array_unref);
    g_clear_pointer(&cell->distances, g_array_unref);
}

void berth_host_free(BerthHost *host)
{
    if (host == NULL)
        return;
    g_array_unref(host->cells);
    g_free(host->machine);
    g_free(host->qemu_version);
    g_free(host->libvirt_version);
    g_free(host);
}

/* Text of the first node at PATH as a number; 0: none. */
static guint64 text_number(xmlNode *node, const char *path)
{
    xmlNode *found = berth_xml_find(node, path);
    xmlChar *text = found == NULL ? NULL : xmlNodeGetContent(found);
    guint64 value = text == NULL ? 0 : g_ascii_strtoull((const char *)text, NULL, 10);
    xmlFree(text);
    return value;
}

/* Attribute NAME of all elements that PATH names below NODE. */
static gboolean read_numbers(xmlNode *node, const char *path, const char *name, GArray *out_numbers,
                             GError **error)
{
    g_autoptr(xmlXPathObject) found = berth_xml_find_all(node, path);
    for (int i = 0; found != NULL && i < found->nodesetval->nodeNr; i++) {
        guint64 value;
        if (!berth_xml_number(found->nodesetval->nodeTab[i], name, 0, G_MAXUINT32, &value, error))
            return FALSE;
        guint32 number = (guint32)value;
        g_array_append_val(out_numbers, number);
    }
    return TRUE;
}

static gboolean read_cell(xmlNode *node, BerthHost *host, GError **error)
{
    guint64 id, cpus = 0;
    if (!berth_xml_number(node, "id", 0, G_MAXUINT32, &id, error))
        return FALSE;
    xmlNode *list = berth_xml_find(node, "./cpus");
    if (list != NULL && !berth_xml_number(list, "num", 0, G_MAXUINT32, &cpus, error))
        return FALSE;
    BerthHostCell cell = {.id = (guint32)id,
                          .cpus = (guint32)cpus,
                          .memory_mib = text_number(node, "./memory[@unit='KiB']") / 1024,
                          .cpu_ids = g_array_new(FALSE, FALSE, sizeof(guint32)),
                          .distances = g_array_new(FALSE, FALSE, sizeof(guint32))};
    g_array_append_val(host->cells, cell); /* owned by the host from here on */
    host->cpus += cell.cpus;
    host->memory_mib += cell.memory_mib;
    return read_numbers(node, "./cpus/cpu", "id", cell.cpu_ids, error) &&
           read_numbers(node, "./distances/sibling", "value", cell.distances, error);
}

static gboolean read_cells(xmlNode *root, BerthHost *host, GError **error)
{
    g_autoptr(xmlXPathObject) cells =
        berth_xml_find_all(root, "/capabilities/host/topology/cells/cell");
    for (int i = 0; cells != NULL && i < cells->nodesetval->nodeNr; i++) {
        if (!read_cell(cells->nodesetval->nodeTab[i], host, error))
            return FALSE;
    }
    return TRUE;
}

/* Resolves the alias "q35": its name changes with QEMU, and a guest must keep its machine. */
static gboolean read_machine(xmlNode *root, BerthHost *host, GError **error)
{
    xmlNode *node = berth_xml_find(root, X86_64_GUEST "//machine[.='q35'][@canonical]");
    if (node == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                            "libvirt offers no x86-64 guests with machine type q35 on this host; "
                            "install qemu-system-x86");
        return FALSE;
    }
    guint64 max_vcpus;
    if (!berth_xml_number(node, "maxCpus", 1, G_MAXUINT32, &max_vcpus, error))
        return FALSE;
    host->max_vcpus = (guint32)max_vcpus;
    host->machine = berth_xml_attribute(node, "canonical");
    return TRUE;
}

BerthHost *berth_capabilities_parse(const char *xml, gsize length, GError **error)
{
    g_autoptr(xmlDoc) document =
        berth_xml_parse(xml, length, CAPABILITIES_MAX, "host's capabilities", error);
    if (document == NULL)
        return NULL;
    xmlNode *root = xmlDocGetRootElement(document);
    if (!xmlStrEqual(root->name, BAD_CAST "capabilities")) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot read the host's capabilities: the root is <%s>",
                    (const char *)root->name);
        return NULL;
    }
    g_autoptr(BerthHost) host = g_new0(BerthHost, 1);
    host->cells = g_array_new(FALSE, FALSE, sizeof(BerthHostCell));
    g_array_set_clear_func(host->cells, clear_cell);
    if (!read_cells(root, host, error) || !read_machine(root, host, error))
        return NULL;
    host->has_kvm = berth_xml_find(root, X86_64_GUEST "/domain[@type='kvm']") != NULL;
    return g_steal_pointer(&host);
}
