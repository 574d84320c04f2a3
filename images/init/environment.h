/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The environment of the command: a list of NAME=VALUE where a later setting replaces an earlier. */

#include <stdbool.h>
#include <stddef.h>

typedef struct Environment Environment;

Environment *environment_new(void); /* NULL when out of memory */
void environment_free(Environment *environment);

/* Sets one variable; ENTRY (copied) is NAME=VALUE. An entry without a name or without '=' is no
 * variable and is left out. false when out of memory. */
bool environment_put(Environment *environment, const char *entry);
bool environment_set(Environment *environment, const char *name, const char *value);

/* Puts each of the NUL-ended entries in DATA; the last may lack its NUL. false when out of memory. */
bool environment_put_block(Environment *environment, const char *data, size_t length);

/* The value of NAME, NULL when it is not set. Valid until the next change. */
const char *environment_get(const Environment *environment, const char *name);

/* The NULL-ended list for execve(), owned by ENVIRONMENT. */
char **environment_list(Environment *environment);
