/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The story of one job of a log that is run again: what was done with it, and why it waited. */

#include "scheduler/core/journal.h"

typedef struct SimStory SimStory;

/* TELL gets a line of text, with its end, for each thing that happened. */
SimStory *sim_story_new(guint64 job, void (*tell)(const char *text, gpointer user_data),
                        gpointer user_data);
void sim_story_free(SimStory *story);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimStory, sim_story_free)

/* CORE has taken ENTRY, and EFFECTS is what came of it. */
void sim_story_entry(SimStory *story, BerthCore *core, const BerthJournalEntry *entry,
                     const BerthCoreEffects *effects);
/* The log has named the job. */
gboolean sim_story_is_begun(const SimStory *story);
