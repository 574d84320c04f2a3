/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Within nodeagent/hypervisor only. */

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>

#include "common/work.h"
#include "nodeagent/hypervisor/hypervisor.h"

static inline void berth_vir_domain_clear(virDomainPtr *domain)
{
    if (*domain != NULL)
        virDomainFree(*domain);
}
static inline void berth_vir_connect_unref(virConnectPtr connection)
{
    if (connection != NULL)
        virConnectClose(connection);
}
static inline void berth_vir_connect_clear(virConnectPtr *connection)
{
    berth_vir_connect_unref(*connection);
}
typedef virDomainPtr BerthVirDomain;
typedef virConnectPtr BerthVirConnect;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthVirDomain, berth_vir_domain_clear)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthVirConnect, berth_vir_connect_clear)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlDoc, xmlFreeDoc)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathContext, xmlXPathFreeContext)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(xmlXPathObject, xmlXPathFreeObject)

/* --- xml.c: reading XML that others wrote --- */

/* WHAT is for messages. INVALID_ARGUMENT: not well-formed, or longer than MAX. */
xmlDoc *berth_xml_parse(const char *xml, gsize length, gsize max, const char *what, GError **error);
/* The first node that PATH names below NODE; NULL: none. */
xmlNode *berth_xml_find(xmlNode *node, const char *path);
/* All of them, in document order; NULL: none. */
xmlXPathObject *berth_xml_find_all(xmlNode *node, const char *path);
/* Attribute NAME without a name space (transfer full); NULL: absent. */
char *berth_xml_attribute(xmlNode *node, const char *name);
/* A decimal attribute from MIN to MAX. INVALID_ARGUMENT: absent, or not one. */
gboolean berth_xml_number(xmlNode *node, const char *name, guint64 min, guint64 max,
                          guint64 *out_value, GError **error);

/* --- vcpu_wait.c --- */

/* For how long the vCPU of DOMAIN that waited most was ready to run and had no CPU of the host's, since
 * QEMU began. RUN_DIR: where libvirt writes DOMAIN.pid. PROC_DIR: "/proc", but in tests. 0: not known. */
guint64 berth_vcpu_wait_usec(const char *run_dir, const char *proc_dir, const char *domain);

/* --- vir_error.c --- */

/* Sets ERROR from this thread's last libvirt error, after the words of FORMAT. */
void berth_set_error_libvirt(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* --- connection.c --- */

/* An operation for a worker: FUNC(BerthOperation) with the connection of the moment, or NULL if
 * there is none. DATA belongs to it. */
typedef struct {
    virConnectPtr connection;
    gpointer data;
    GDestroyNotify data_free;
} BerthOperation;
/* Fails with UNAVAILABLE where the operation has no connection. */
gboolean berth_operation_check(const BerthOperation *operation, const char *what, GError **error);
void berth_hypervisor_run(BerthHypervisor *hypervisor, const char *what, BerthWorkFunc func,
                          gpointer data, GDestroyNotify data_free, GDestroyNotify result_free,
                          guint timeout_msec, GAsyncReadyCallback callback, gpointer user_data);
