/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The few entries that the guest's /etc must have for the submitting user: without network and
 * directory services, whoami, ~ and the guest's own name are looked up there. Entries are only added.
 * DIRECTORY is "/etc", or another place in tests. */

#include "images/init/fault.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct {
    char name[256];
    char home[4096];
} EtcUser;

/* What DIRECTORY/passwd says of UID; false when it has no such entry. */
bool etc_find_user(const char *directory, uid_t uid, EtcUser *out_user);

/* Adds UID to passwd unless it is there. A NAME that cannot stand in the file (empty, or with a colon
 * or a control character) is replaced by "u<uid>". */
bool etc_add_user(const char *directory, uid_t uid, gid_t gid, const char *name, const char *home,
                  Fault *fault);

/* Adds GID to group unless it is there; "g<gid>" where NAME cannot stand or belongs to another. */
bool etc_add_group(const char *directory, gid_t gid, const char *name, Fault *fault);

/* Makes NAME (and localhost) resolvable through hosts. */
bool etc_add_host(const char *directory, const char *name, Fault *fault);
