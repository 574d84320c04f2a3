/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checkpoints of storage/storage.h in memory, for what is linked with FAKE_CHECKPOINTS_WRAP: one is made, or read, at a
 * time. Workers come here: what is set for them is set while none is at it. */

#include "storage/storage.h"

typedef struct {
    gint made, freed, committed, used, removed; /* atomic: how often */
    GBytes *record; /* that was committed, or is to be read; NULL: none */
    const char *create_fails;
    int create_code;
    const char *append_fails; /* why; NULL: it does not */
    int append_code;
    const char *read_fails; /* opening it for its memory */
    int read_code;
    const char *next_fails; /* the first piece of it */
    int next_code;
    const char *disk_fails; /* putting its disk back */
    int disk_code;
    gint mib;              /* atomic: of memory that it has still to give */
    gint disk_fails_times; /* atomic: so often, and then no more; 0 = always */
    gint is_impatient;     /* atomic: who would wait for libvirt for minutes does so for a moment */
} FakeCheckpoints;

extern FakeCheckpoints fake_checkpoints;
void fake_checkpoints_reset(void);
