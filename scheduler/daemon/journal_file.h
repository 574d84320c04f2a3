/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/journal.h"

/* The log of the core (scheduler/core/journal.h) in a file: all that it is told from the start of
 * berthd on, which `berth-sim --replay` runs again. A thread writes; the loop only hands text over.
 * The log ends, with one warning, when it is as large as it may be, or cannot be written, or would
 * leave the disk without room: never does it hold up, fail or harm what it is written for. */

typedef struct BerthJournalFile BerthJournalFile;

/* PATH is the new file; what was there becomes PATH.1, in the place of an older one. MAX_BYTES: of
 * both together. KEPT_BYTES: on its file system, for others; the journal ends while more than that is free. NULL with ERROR: it
 * cannot be made. */
BerthJournalFile *berth_journal_file_open(const char *path, guint64 max_bytes, guint64 kept_bytes,
                                          GError **error);
/* Waits until all is written. NULL is taken. */
void berth_journal_file_close(BerthJournalFile *journal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthJournalFile, berth_journal_file_close)

/* To be appended to, by the functions of scheduler/core/journal.h, and then handed over. NULL: there
 * is no journal (JOURNAL is NULL) or it has ended. */
GString *berth_journal_file_begin(BerthJournalFile *journal);
void berth_journal_file_commit(BerthJournalFile *journal, GString *text); /* (transfer full) */
