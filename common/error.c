/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the error domain and the mapping of errno values to it. */
#include "common/error.h"

#include <errno.h>

GQuark berth_error_quark(void)
{
    return g_quark_from_static_string("berth-error-quark");
}

const char *berth_error_code_name(int code)
{
    static const char *const names[] = {
        [BERTH_ERROR_INVALID_ARGUMENT] = "invalid-argument",
        [BERTH_ERROR_NOT_FOUND] = "not-found",
        [BERTH_ERROR_ALREADY_EXISTS] = "already-exists",
        [BERTH_ERROR_PERMISSION_DENIED] = "permission-denied",
        [BERTH_ERROR_FAILED_PRECONDITION] = "failed-precondition",
        [BERTH_ERROR_RESOURCE_EXHAUSTED] = "resource-exhausted",
        [BERTH_ERROR_UNAVAILABLE] = "unavailable",
        [BERTH_ERROR_DEADLINE_EXCEEDED] = "deadline-exceeded",
        [BERTH_ERROR_CANCELLED] = "cancelled",
        [BERTH_ERROR_UNSUPPORTED] = "unsupported",
        [BERTH_ERROR_DATA_LOSS] = "data-loss",
        [BERTH_ERROR_PROTOCOL] = "protocol",
        [BERTH_ERROR_INTERNAL] = "internal",
    };
    if (code <= 0 || (gsize)code >= G_N_ELEMENTS(names))
        return "internal";
    return names[code];
}

BerthErrorCode berth_error_code_from_errno(int err)
{
    switch (err) {
    case EINVAL:
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
        return BERTH_ERROR_INVALID_ARGUMENT;
    case ENOENT:
        return BERTH_ERROR_NOT_FOUND;
    case EEXIST:
        return BERTH_ERROR_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return BERTH_ERROR_PERMISSION_DENIED;
    case EBUSY:
    case ENOTEMPTY:
        return BERTH_ERROR_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        return BERTH_ERROR_RESOURCE_EXHAUSTED;
    case ETIMEDOUT:
        return BERTH_ERROR_DEADLINE_EXCEEDED;
    case EOPNOTSUPP:
    case ENOSYS:
        return BERTH_ERROR_UNSUPPORTED;
    case ECANCELED:
        return BERTH_ERROR_CANCELLED;
    case ESHUTDOWN: /* RADOS: this client is blocklisted */
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case EAGAIN:
        return BERTH_ERROR_UNAVAILABLE;
    case EBADMSG:
    case EIO:
        return BERTH_ERROR_DATA_LOSS;
    case EPROTO:
        return BERTH_ERROR_PROTOCOL;
    default:
        return BERTH_ERROR_INTERNAL;
    }
}

void berth_set_error_errno(GError **error, int err, const char *format, ...)
{
    if (error == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, BERTH_ERROR, (gint)berth_error_code_from_errno(err), "%s: %s", what,
                g_strerror(err));
}
