/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules of who may do what, and nothing else: who somebody is, the connection says. */
#include "config.h"

#include "scheduler/daemon/permission.h"

#include "common/error.h"

#include <errno.h>
#include <grp.h>

gboolean berth_operators_init(BerthOperators *operators, const char *name, GError **error)
{
    *operators = (BerthOperators){0};
    if (!name || !*name)
        return TRUE;
    errno = 0;
    const struct group *found = getgrnam(name);
    if (!found) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "operators_group: there is no group \"%s\"%s%s; create it (groupadd --system "
                    "%s) or leave operators_group out, so that only root is an operator",
                    name, errno ? ": " : "", errno ? g_strerror(errno) : "", name);
        return FALSE;
    }
    operators->has_group = TRUE;
    operators->group = found->gr_gid;
    return TRUE;
}

gboolean berth_permission_is_operator(const BerthOperators *operators, const BerthRpcIdentity *who)
{
    if (!who->is_unix)
        return FALSE;
    if (who->uid == 0)
        return TRUE;
    if (!operators->has_group)
        return FALSE;
    gboolean is_member = who->gid == operators->group;
    for (gsize i = 0; i < who->n_groups && !is_member; i++)
        is_member = who->groups[i] == operators->group;
    return is_member;
}

gboolean berth_permission_check_job(const BerthOperators *operators, const BerthRpcIdentity *who,
                                    guint64 job, guint32 owner, GError **error)
{
    if ((who->is_unix && who->uid == owner) || berth_permission_is_operator(operators, who))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                "job %" G_GUINT64_FORMAT " belongs to another user; only its owner and operators "
                "may do this",
                job);
    return FALSE;
}

gboolean berth_permission_check_operator(const BerthOperators *operators,
                                         const BerthRpcIdentity *who, const char *what,
                                         GError **error)
{
    if (berth_permission_is_operator(operators, who))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                "only operators (root and the members of operators_group) may %s", what);
    return FALSE;
}
