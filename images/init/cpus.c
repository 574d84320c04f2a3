/* SPDX-License-Identifier: Apache-2.0 */
/* Owns that processors which are plugged into the running guest are used. */
#include "images/init/cpus.h"

#include "images/init/paths.h"
#include "images/init/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CPUS "/sys/devices/system/cpu"

static bool take_number(const char **at, uint32_t *out_number)
{
    char *end;
    unsigned long number = strtoul(*at, &end, 10);

    if (end == *at || number > UINT32_MAX)
        return false;
    *at = end;
    *out_number = (uint32_t)number;
    return true;
}

bool cpus_next_range(const char **at, uint32_t *out_first, uint32_t *out_last)
{
    *at += **at == ',';
    if (!take_number(at, out_first))
        return false;
    *out_last = *out_first;
    if (**at != '-')
        return true;
    (*at)++;
    return take_number(at, out_last);
}

/* One that always works has no such file. */
static void use(uint32_t cpu)
{
    char path[64];
    char state[4];

    (void)snprintf(path, sizeof path, CPUS "/cpu%" PRIu32 "/online", cpu);
    if (path_read_small(path, state, sizeof state) && state[0] == '0' && !path_write(path, "1"))
        say("cannot use processor %" PRIu32 ": %m", cpu);
}

void cpus_use_all(void)
{
    char present[256];
    const char *at = present;
    uint32_t first;
    uint32_t last;

    if (!path_read_small(CPUS "/present", present, sizeof present))
        return;
    while (cpus_next_range(&at, &first, &last))
        for (uint64_t cpu = first; cpu <= last; cpu++)
            use((uint32_t)cpu);
}
