/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The core's own log: everything that it was told, and what it asked for, as text, one entry a line.
 * With it a run can be made again elsewhere, decision by decision. Whoever drives the core writes
 * each entry to a file after it was taken; nothing here does.
 *
 *     config NAME=NUMBER... tunings=N,N,...
 *     node HANDLE NAME
 *     resume TIME
 *     event TIME KIND NAME=NUMBER... LIST=N:N,N:N...
 *     action NAME=NUMBER...
 *
 * Members that are 0 are left out. A log begins with config, the nodes and resume, as of an empty
 * store. */

#include "scheduler/core/core.h"

typedef enum {
    BERTH_JOURNAL_CONFIG = 1,
    BERTH_JOURNAL_NODE,
    BERTH_JOURNAL_RESUME,
    BERTH_JOURNAL_EVENT,
    BERTH_JOURNAL_ACTION,
} BerthJournalKind;

typedef struct {
    BerthJournalKind kind;
    BerthCoreConfig config; /* CONFIG; its tunings are below */
    gint64 tunings[BERTH_TUNING_N];
    guint32 node; /* NODE, as NAME */
    char *name;
    gint64 now_usec;      /* RESUME, EVENT */
    BerthCoreEvent event; /* EVENT */
    gpointer lists[2];    /* that EVENT refers to */
} BerthJournalEntry;

void berth_journal_config(GString *out, const BerthCoreConfig *config);
void berth_journal_node(GString *out, guint32 node, const char *name);
void berth_journal_resume(GString *out, gint64 now_usec);
void berth_journal_event(GString *out, gint64 now_usec, const BerthCoreEvent *event);
void berth_journal_action(GString *out, const BerthCoreAction *action);

/* Reads LINE (without its end), changing it. An ACTION is not taken apart: it is to be compared with
 * what berth_journal_action() writes. INVALID_ARGUMENT: what is wrong with it. */
gboolean berth_journal_parse(char *line, BerthJournalEntry *out_entry, GError **error);
void berth_journal_entry_clear(BerthJournalEntry *entry);
