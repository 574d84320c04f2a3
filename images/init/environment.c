/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the list of the command's environment variables. Invariant: each name occurs once, in the
 * order in which it was first set, and the list ends with NULL. */
#include "images/init/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Environment {
    char **entries; /* count + 1 of them, the last NULL */
    size_t count;
    size_t room; /* entries that the array can hold without its NULL */
};

Environment *environment_new(void)
{
    Environment *environment = calloc(1, sizeof *environment);

    if (environment == NULL)
        return NULL;
    environment->room = 32;
    environment->entries = calloc(environment->room + 1, sizeof *environment->entries);
    if (environment->entries == NULL) {
        free(environment);
        return NULL;
    }
    return environment;
}

void environment_free(Environment *environment)
{
    if (environment == NULL)
        return;
    for (size_t i = 0; i < environment->count; i++)
        free(environment->entries[i]);
    free(environment->entries);
    free(environment);
}

/* Index of the variable whose name is the first LENGTH bytes of NAME; count when there is none. */
static size_t find(const Environment *environment, const char *name, size_t length)
{
    size_t i = 0;

    while (i < environment->count && (strncmp(environment->entries[i], name, length) != 0 ||
                                      environment->entries[i][length] != '='))
        i++;
    return i;
}

static bool make_room(Environment *environment)
{
    size_t room = environment->room * 2;
    char **larger;

    if (environment->count < environment->room)
        return true;
    larger = realloc(environment->entries, (room + 1) * sizeof *larger);
    if (larger == NULL)
        return false;
    environment->entries = larger;
    environment->room = room;
    return true;
}

/* Takes ENTRY, which has a name. */
static bool take(Environment *environment, char *entry)
{
    size_t at = find(environment, entry, (size_t)(strchr(entry, '=') - entry));

    if (at == environment->count && !make_room(environment)) {
        free(entry);
        return false;
    }
    if (at < environment->count) {
        free(environment->entries[at]);
    } else {
        environment->count++;
        environment->entries[environment->count] = NULL;
    }
    environment->entries[at] = entry;
    return true;
}

bool environment_put(Environment *environment, const char *entry)
{
    return environment_put_block(environment, entry, strlen(entry));
}

bool environment_set(Environment *environment, const char *name, const char *value)
{
    char *entry;

    if (asprintf(&entry, "%s=%s", name, value) < 0)
        return false;
    return take(environment, entry);
}

bool environment_put_block(Environment *environment, const char *data, size_t length)
{
    size_t start = 0;

    while (start < length) {
        size_t size = strnlen(data + start, length - start);
        const char *equals = memchr(data + start, '=', size);
        char *entry;

        if (equals != NULL && equals != data + start) {
            entry = strndup(data + start, size);
            if (entry == NULL || !take(environment, entry))
                return false;
        }
        start += size + 1;
    }
    return true;
}

const char *environment_get(const Environment *environment, const char *name)
{
    size_t length = strlen(name);
    size_t at = find(environment, name, length);

    return at < environment->count ? environment->entries[at] + length + 1 : NULL;
}

char **environment_list(Environment *environment)
{
    return environment->entries;
}
