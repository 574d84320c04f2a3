/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/rpc.h"

/* Who may do what. Users act on their own jobs, operators on all, on images and on nodes. Operators are
 * root and the members of one group. */

typedef struct {
    gboolean has_group;
    gid_t group; /* of operators */
} BerthOperators;

/* Looks the group up (blocks: at start only). NAME NULL or "": root alone.
 * NOT_FOUND: no such group. */
gboolean berth_operators_init(BerthOperators *operators, const char *name, GError **error);

gboolean berth_permission_is_operator(const BerthOperators *operators, const BerthRpcIdentity *who);
/* PERMISSION_DENIED unless WHO owns the job (OWNER is its uid) or is an operator. */
gboolean berth_permission_check_job(const BerthOperators *operators, const BerthRpcIdentity *who,
                                    guint64 job, guint32 owner, GError **error);
/* PERMISSION_DENIED unless WHO is an operator; WHAT in words: "import images". */
gboolean berth_permission_check_operator(const BerthOperators *operators,
                                         const BerthRpcIdentity *who, const char *what,
                                         GError **error);
