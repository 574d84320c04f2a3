/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The core's own log: everything that it was told, and what it asked for, as text, one entry a line.
 * With it a run can be made again elsewhere, decision by decision. Whoever drives the core writes
 * each entry to a file after it was taken; nothing here does.
 *
 *     config NAME=NUMBER... tunings=N,N,...
 *     node HANDLE NAME
 *     restored-use NAME=NUMBER...
 *     restored-prior NAME=NUMBER...
 *     restored-node NAME=NUMBER... LIST...
 *     restored-job NAME=NUMBER... LIST...
 *     resume TIME
 *     event TIME KIND NAME=NUMBER... LIST=N:N,N:N...
 *     action NAME=NUMBER...
 *
 * Members that are 0 are left out. A log begins with config, the nodes and what was put back from the
 * store, in the order in which the core was told, and resume. */

#include "scheduler/core/learned.h"

#define BERTH_JOURNAL_LISTS_MAX 6 /* of one event */

typedef enum {
    BERTH_JOURNAL_CONFIG = 1,
    BERTH_JOURNAL_NODE,
    BERTH_JOURNAL_RESUME,
    BERTH_JOURNAL_EVENT,
    BERTH_JOURNAL_ACTION,
    BERTH_JOURNAL_RESTORED_NODE,
    BERTH_JOURNAL_RESTORED_JOB,
    BERTH_JOURNAL_RESTORED_USE,
    BERTH_JOURNAL_RESTORED_PRIOR,
} BerthJournalKind;

typedef struct {
    BerthJournalKind kind;
    BerthCoreConfig config; /* CONFIG; its tunings are below */
    gint64 tunings[BERTH_TUNING_N];
    guint32 node; /* NODE, as NAME */
    char *name;
    gint64 now_usec;      /* RESUME, EVENT */
    BerthCoreEvent event; /* EVENT; RESTORED_NODE: .node, .joined.info; RESTORED_JOB: .submitted */
    struct {
        BerthNodeState state;
        gint64 since_usec;
        BerthNodeAdmission admission;
        gboolean has_joined; /* else its information is not told */
    } restored_node;
    struct {
        const BerthCoreTask *tasks; /* their JOB is not in the text */
        gsize n_tasks;
    } restored_job;
    BerthCoreUse use;     /* RESTORED_USE */
    BerthCorePrior prior; /* RESTORED_PRIOR */
    /* Owned: what the lists above were read into, those of the event, and that of its kind of entry. */
    gpointer lists[BERTH_JOURNAL_LISTS_MAX];
    gpointer list;
} BerthJournalEntry;

void berth_journal_config(GString *out, const BerthCoreConfig *config);
void berth_journal_node(GString *out, guint32 node, const char *name);
void berth_journal_resume(GString *out, gint64 now_usec);
void berth_journal_event(GString *out, gint64 now_usec, const BerthCoreEvent *event);
/* ENTRY: of a RESTORED_ kind; its lists are (transfer none). */
void berth_journal_restored(GString *out, const BerthJournalEntry *entry);
/* Puts it back into CORE, which knows the nodes that it names. */
void berth_journal_restore(BerthCore *core, const BerthJournalEntry *entry);
void berth_journal_action(GString *out, const BerthCoreAction *action);

/* Reads LINE (without its end), changing it. An ACTION is not taken apart: it is to be compared with
 * what berth_journal_action() writes. INVALID_ARGUMENT: what is wrong with it. */
gboolean berth_journal_parse(char *line, BerthJournalEntry *out_entry, GError **error);
void berth_journal_entry_clear(BerthJournalEntry *entry);
