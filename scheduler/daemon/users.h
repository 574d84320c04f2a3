/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/workers.h"
#include <sys/types.h>

/* User names for the loop: looked up on workers (a name service may be slow), and remembered for
 * a few minutes. */

typedef struct BerthUsers BerthUsers;
/* WORKERS outlives it. */
BerthUsers *berth_users_new(BerthWorkers *workers);
void berth_users_free(BerthUsers *users);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthUsers, berth_users_free)

/* FUNC with the name of UID, at once if it is known. A user without a name is named by its number,
 * and so, with ERROR (UNAVAILABLE) set, is one that cannot be looked up now: good enough for the
 * event log, not for a job, whose user's groups are found by that name. */
typedef void (*BerthUserNameFunc)(const char *name, const GError *error, gpointer user_data);
void berth_users_name(BerthUsers *users, uid_t uid, BerthUserNameFunc func, gpointer user_data);

/* --- on workers ----------------------------------------------------------------------------- */

/* NOT_FOUND: no such user. UNAVAILABLE: the user database does not answer. */
gboolean berth_user_uid(const char *name, uid_t *out_uid, GError **error);
/* Name of UID (transfer full), or its number in decimal if it has none. UNAVAILABLE: the user
 * database does not answer. */
char *berth_user_name(uid_t uid, GError **error);
#define BERTH_USER_GROUPS_MAX 1024
/* Groups of NAME (the first BERTH_USER_GROUPS_MAX), as berth_user_name() gave it, with GID among them; never empty (guint32, transfer
 * full). GID alone for who has no name (any more). UNAVAILABLE as above. */
GArray *berth_user_groups(const char *name, gid_t gid, GError **error);
