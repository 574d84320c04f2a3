/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from libvirt's errors to ours. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"

static BerthErrorCode code_of(const virError *reason)
{
    /* Of the way to libvirtd: what was asked over a connection that has been closed. */
    if (reason->domain == VIR_FROM_RPC && reason->code == VIR_ERR_INTERNAL_ERROR)
        return BERTH_ERROR_UNAVAILABLE;
    switch (reason->code) {
    case VIR_ERR_NO_DOMAIN:
    case VIR_ERR_NO_SECRET:
        return BERTH_ERROR_NOT_FOUND;
    case VIR_ERR_DOM_EXIST:
        return BERTH_ERROR_ALREADY_EXISTS;
    case VIR_ERR_XML_ERROR:
    case VIR_ERR_XML_DETAIL:
    case VIR_ERR_XML_INVALID_SCHEMA:
    case VIR_ERR_INVALID_ARG:
    case VIR_ERR_CONFIG_UNSUPPORTED:
        return BERTH_ERROR_INVALID_ARGUMENT;
    case VIR_ERR_AUTH_FAILED:
    case VIR_ERR_OPERATION_DENIED:
    case VIR_ERR_ACCESS_DENIED:
        return BERTH_ERROR_PERMISSION_DENIED;
    case VIR_ERR_NO_MEMORY:
        return BERTH_ERROR_RESOURCE_EXHAUSTED;
    case VIR_ERR_OPERATION_INVALID:
        return BERTH_ERROR_FAILED_PRECONDITION;
    case VIR_ERR_OPERATION_TIMEOUT:
        return BERTH_ERROR_DEADLINE_EXCEEDED;
    case VIR_ERR_NO_CONNECT:
    case VIR_ERR_RPC:
    case VIR_ERR_SYSTEM_ERROR:
    case VIR_ERR_INVALID_CONN:
        return BERTH_ERROR_UNAVAILABLE;
    default:
        return BERTH_ERROR_INTERNAL;
    }
}

void berth_set_error_libvirt(GError **error, const char *format, ...)
{
    const virError *reason = virGetLastError();
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (reason == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "%s: libvirt gives no reason", what);
    else
        g_set_error(error, BERTH_ERROR, (gint)code_of(reason), "%s: %s", what,
                    reason->message == NULL ? "libvirt gives no reason" : reason->message);
}
