/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "scheduler/daemon/daemon_config.h"
#include "scheduler/daemon/pb.h"

/* Whether what a user submits makes sense in itself. Pure: whether its image, nodes and blobs
 * exist is looked up elsewhere. */

#define BERTH_BLOB_INLINE_MAX_BYTES (64u * 1024u)

/* Fills what SPEC (a heap message) leaves to the daemon: image, vCPUs, memory, disk, time limit, and what becomes of
 * it at its limits. */
void berth_spec_apply_defaults(Berth__JobSpec *spec, const BerthDaemonConfig *config);

/* INVALID_ARGUMENT, or PERMISSION_DENIED for what only operators may ask for; the message names
 * the field, what is wrong, and what is allowed. */
gboolean berth_spec_check(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                          gboolean is_operator, GError **error);

/* The indices of an array. INVALID_ARGUMENT: they are none, or more than the configuration allows, or all of its tasks would write
 * into the same file. (transfer full) */
BerthIndexSet *berth_spec_array(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                                GError **error);

/* No guest boots with less. */
#define BERTH_MEMORY_MIN_MIB 64u

/* Can a guest have so many vCPUs and so much memory? INVALID_ARGUMENT if not. */
gboolean berth_size_check(guint32 vcpus, guint64 memory_mib, GError **error);

/* May a job run for so long? INVALID_ARGUMENT if not. */
gboolean berth_time_limit_check(guint64 seconds, GError **error);

/* May a job be checkpointed so often, in seconds of running (0: not)? UNSUPPORTED: none can be checkpointed here;
 * INVALID_ARGUMENT: too often, or too seldom. */
gboolean berth_checkpoint_every_check(guint32 every_sec, const BerthDaemonConfig *config,
                                      GError **error);

/* Is the disk, with an image of IMAGE_BYTES, one that storage can hold? INVALID_ARGUMENT if not.
 * berth_spec_check() does not know the image, and asks with 0. */
gboolean berth_spec_check_disk(const Berth__JobSpec *spec, guint64 image_bytes, GError **error);

/* Printable enough for a table and a log: valid UTF-8 without control characters, of MAX_BYTES at most.
 * WHAT begins the message: "the reason". */
gboolean berth_text_check(const char *what, const char *text, gsize max_bytes, GError **error);

/* Likewise, of the words in which somebody says why; "" = not said. INVALID_ARGUMENT if not. */
gboolean berth_why_check(const char *why, GError **error);

/* NAME=VALUE entries, each ended by a NUL; names are not empty. They need not be such as a shell can name: programs set others, shells pass
 * those on, and so does --env-all. */
gboolean berth_environment_check(const guint8 *data, gsize length, GError **error);

/* A path below the working directory: relative, no empty part, no "." or "..". */
gboolean berth_input_name_check(const char *name, GError **error);

/* Names of images: [A-Za-z0-9][A-Za-z0-9._-]*, at most 64 bytes. */
gboolean berth_image_name_check(const char *name, GError **error);

/* Every blob that SPEC names: environment, script, inputs, in this order (transfer container). */
GPtrArray *berth_spec_blobs(const Berth__JobSpec *spec);
