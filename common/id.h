/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Names that Berth makes and reads back. Each has exactly one spelling: what parses is what
 * formatting would print (no leading zeros, signs or spaces). Parsers fail with INVALID_ARGUMENT
 * and leave *out_ alone; all strings are (transfer full). */

#include "common/index_set.h"
#include "common/types.h"

/* "123" for a plain job. */
char *berth_job_id_format(guint64 job);
/* "123[4]": one task of an array job. */
char *berth_task_id_format(guint64 job, guint32 task);
/* The second form if the job is an array, else the first. */
char *berth_task_name_format(guint64 job, gboolean of_array, guint32 task);

/* "123", or some tasks of an array: "123[4]", "123[0-9,20]". OUT_TASKS: (transfer full), NULL of the first form. The one form
 * here that has many spellings. Job numbers start at 1. */
gboolean berth_job_tasks_parse(const char *text, guint64 *out_job, BerthIndexSet **out_tasks,
                               GError **error);

/* "berth-JOB-TASK-GUEST-EPOCH": the name of a guest's libvirt domain. */
char *berth_guest_name_format(const BerthGuestId *id);
gboolean berth_guest_name_parse(const char *text, BerthGuestId *out_id, GError **error);

/* Objects in storage that belong to a guest in one of its lives: "disk-JOB-TASK-GUEST-EPOCH",
 * "log-JOB-TASK-GUEST-EPOCH". */
char *berth_disk_id_format(const BerthGuestId *id);
gboolean berth_disk_id_parse(const char *text, BerthGuestId *out_id, GError **error);
char *berth_log_id_format(const BerthGuestId *id);
gboolean berth_log_id_parse(const char *text, BerthGuestId *out_id, GError **error);
/* The log in storage that one stream of that goes to: "log-JOB-TASK-GUEST-EPOCH.out", ".err". */
enum { BERTH_STDOUT = 0, BERTH_STDERR = 1, BERTH_N_STREAMS = 2 };
char *berth_log_name_format(const char *log_id, guint stream);

/* "JOB-TASK-SERIAL": a checkpoint in storage. */
char *berth_checkpoint_id_format(guint64 job, guint32 task, guint32 serial);
gboolean berth_checkpoint_id_parse(const char *text, guint64 *out_job, guint32 *out_task,
                                   guint32 *out_serial, GError **error);

/* The path that a user's PATTERN means for a task: "%j" is its job's number, "%a" its index, "%%" a percent sign. The one
 * thing here that has many spellings and is not read back. */
char *berth_job_path_format(const char *pattern, guint64 job, guint32 task);
/* Whether PATTERN means another path for each task of a job. */
gboolean berth_job_path_is_of_task(const char *pattern);

/* Same guest in the same life? */
gboolean berth_guest_id_equal(const BerthGuestId *a, const BerthGuestId *b);
/* For GHashTable, with keys of const BerthGuestId *. */
guint berth_guest_id_hash(gconstpointer id);
gboolean berth_guest_id_equal_func(gconstpointer a, gconstpointer b);
