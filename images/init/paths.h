/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Directories and small files, made without ever following a symbolic link that stands in the way. */

#include "images/init/fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes directory PATH and its missing parents, mode 0755, the new ones owned by UID:GID.
 * Symbolic links in what is already there are followed. *OUT_MADE: PATH itself is new (may be NULL). */
bool path_make_directory(const char *path, uid_t uid, gid_t gid, bool *out_made, Fault *fault);

/* Opens the directory that is to hold PATH, making missing directories as above. A relative PATH is
 * below directory BASE, an absolute one below "/". Refuses ".", ".." and empty last components, and
 * symbolic links on the way. *OUT_NAME is the last component, within PATH. -1 with FAULT set. */
int path_open_parent(const char *base, const char *path, uid_t uid, gid_t gid,
                     const char **out_name, Fault *fault);

/* Reads all of PATH into memory, NUL-terminated, for the caller to free(). NULL with errno set. */
char *path_read(const char *path, size_t *out_length);

/* Reads a small file into BUFFER (terminated, cut at SIZE - 1). false with errno set. */
bool path_read_small(const char *path, char *buffer, size_t size);

/* Writes TEXT to an existing file (sysfs, procfs, cgroupfs) in one write. false with errno set. */
bool path_write(const char *path, const char *text);
