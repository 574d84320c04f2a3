/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/user_rights.h"

/* A file that is made for who asks for it, with his rights, and has its name only when it is complete. On
 * workers. */

typedef struct BerthBackupFile BerthBackupFile;

/* Makes PATH.partial, mode 0600. RIGHTS must outlive it. Errors name PATH: INVALID_ARGUMENT (not absolute),
 * ALREADY_EXISTS (it is there, or PATH.partial is), NOT_FOUND (no such directory), PERMISSION_DENIED. */
BerthBackupFile *berth_backup_file_new(const char *path, const BerthUserRights *rights,
                                       GError **error);
/* RESOURCE_EXHAUSTED unless BYTES more may be written where it is. */
gboolean berth_backup_file_check_room(BerthBackupFile *file, guint64 bytes, GError **error);
gboolean berth_backup_file_write(BerthBackupFile *file, GBytes *content, guint64 offset,
                                 GError **error);
/* What was written is durable. */
gboolean berth_backup_file_sync(BerthBackupFile *file, GError **error);
/* Makes it durable under its name, which nobody else has taken meanwhile (ALREADY_EXISTS). */
gboolean berth_backup_file_publish(BerthBackupFile *file, GError **error);
/* One that was not published is removed. */
void berth_backup_file_free(BerthBackupFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthBackupFile, berth_backup_file_free)
