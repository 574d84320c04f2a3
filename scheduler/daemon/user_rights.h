/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>
#include <sys/types.h>

/* System calls that are made with the rights of a user. On workers. */

typedef struct {
    gboolean is_own; /* of the user that this process runs as: nothing is to be changed */
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    gsize n_groups;
} BerthUserRights;

/* Copies GROUPS. */
void berth_user_rights_init(BerthUserRights *rights, gboolean is_own, uid_t uid, gid_t gid,
                            const gid_t *groups, gsize n_groups);
void berth_user_rights_clear(BerthUserRights *rights);
/* PERMISSION_DENIED, which names PATH: this process may not act for others. */
gboolean berth_user_rights_check(const BerthUserRights *rights, const char *path, GError **error);

/* Runs FUNC, which says whether it worked by its return value and errno. WHAT it does to PATH is for the
 * message: "write". */
gboolean berth_user_rights_run(const BerthUserRights *rights, gboolean (*func)(gpointer data),
                               gpointer data, const char *what, const char *path, GError **error);
