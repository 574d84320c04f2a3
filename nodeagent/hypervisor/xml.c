/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how XML that others wrote is read: bounded, without entities, networks or files. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"
#include "common/units.h"

xmlDoc *berth_xml_parse(const char *xml, gsize length, gsize max, const char *what, GError **error)
{
    if (length > max) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot read the %s: %" G_GSIZE_FORMAT " bytes, more than %" G_GSIZE_FORMAT,
                    what, length, max);
        return NULL;
    }
    /* No XML_PARSE_NOENT, no XML_PARSE_HUGE: the parser's own limits on depth and expansion hold. */
    g_autoptr(xmlDoc) document = xmlReadMemory(
        xml, (int)length, NULL, NULL, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    if (document == NULL || xmlDocGetRootElement(document) == NULL) {
        const xmlError *reason = xmlGetLastError();
        g_autofree char *text = g_strdup(reason == NULL ? "no text" : reason->message);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "cannot read the %s: %s",
                    what, text == NULL ? "not XML" : g_strstrip(text));
        return NULL;
    }
    if (document->intSubset != NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot read the %s: it has a document type declaration", what);
        return NULL;
    }
    return g_steal_pointer(&document);
}

xmlXPathObject *berth_xml_find_all(xmlNode *node, const char *path)
{
    g_autoptr(xmlXPathContext) context = xmlXPathNewContext(node->doc);
    if (context == NULL)
        return NULL;
    xmlXPathRegisterNs(context, BAD_CAST "berth", BAD_CAST BERTH_DOMAIN_XMLNS);
    g_autoptr(xmlXPathObject) found = xmlXPathNodeEval(node, BAD_CAST path, context);
    if (found == NULL || xmlXPathNodeSetIsEmpty(found->nodesetval))
        return NULL;
    return g_steal_pointer(&found);
}

xmlNode *berth_xml_find(xmlNode *node, const char *path)
{
    g_autoptr(xmlXPathObject) found = berth_xml_find_all(node, path);
    return found == NULL ? NULL : found->nodesetval->nodeTab[0];
}

char *berth_xml_attribute(xmlNode *node, const char *name)
{
    xmlChar *value = xmlGetNoNsProp(node, BAD_CAST name);
    char *copy = g_strdup((const char *)value);
    xmlFree(value);
    return copy;
}

gboolean berth_xml_number(xmlNode *node, const char *name, guint64 min, guint64 max,
                          guint64 *out_value, GError **error)
{
    g_autofree char *text = berth_xml_attribute(node, name);
    if (text == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "element %s has no attribute %s", (const char *)node->name, name);
        return FALSE;
    }
    if (berth_parse_uint64(text, min, max, out_value, error))
        return TRUE;
    g_prefix_error(error, "attribute %s of element %s: ", name, (const char *)node->name);
    return FALSE;
}
