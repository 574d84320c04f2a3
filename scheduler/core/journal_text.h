/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/journal.h"

/* The tables by which entries of the core's log are written (journal.c) and read (journal_read.c). */

typedef enum { JOURNAL_U32, JOURNAL_U64, JOURNAL_I32, JOURNAL_I64 } JournalType;

typedef struct {
    const char *name;
    gsize offset;
    JournalType type;
} JournalMember;

/* A pointer and a number of elements; or an array within the struct, where COUNT is a guint32. */
typedef struct {
    const char *name;
    gsize offset, count_offset, stride;
    gboolean is_inline;
    guint max;
    const JournalMember *members;
    guint n_members;
} JournalList;

/* Members and lists of a struct. */
typedef struct {
    const char *name;
    const JournalMember *members;
    guint n_members;
    const JournalList *lists;
    guint n_lists;
} JournalTable;

/* Of a BerthCoreConfig without its tunings. */
extern const JournalTable journal_config;
/* What every event has, and what each kind has beside it: of a BerthCoreEvent. NAME of the latter
 * is the event's word. */
extern const JournalTable journal_event_common;
const JournalTable *journal_event(guint kind); /* NULL: there is none */
const JournalTable *journal_event_of(const char *word, BerthEventKind *out_kind);

/* What was put back from the store, by the word that begins its line: of a BerthJournalEntry, with
 * the node's information and the job as those of their events. */
const JournalTable *journal_restored(BerthJournalKind kind);
const JournalTable *journal_restored_of(const char *word, BerthJournalKind *out_kind);
/* The event of which it has the members too, beside its own; 0 = none. */
BerthEventKind journal_restored_event(BerthJournalKind kind);
