/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tests/unit/core_script.h"

#define N_JOBS_MAX  1152
#define N_NODES_MAX 32
/* An instant of 0 means "not yet": scripts count from a later one. */
#define SECOND_0_USEC (1000000 * (gint64)G_USEC_PER_SEC)

typedef struct {
    gboolean is_known;
    BerthCoreJob job;
    guint32 nodes[N_NODES_MAX];
    BerthCoreTask task;
    BerthCoreGuest guest;
} Record;

typedef struct {
    const char *line; /* for messages */
    char **words;
    BerthCore *core;
    BerthCoreConfig config;
    BerthCoreEffects *effects;
    GError *error;
    gint64 now_usec;
    Record records[N_JOBS_MAX];
    BerthCoreNode told[N_NODES_MAX + 1]; /* as they were when they were last reported */
    BerthCoreNodeInfo infos[N_NODES_MAX + 1];
} Script;

/* core_script_words.c; whatever is not as it should be fails the test: */
/* A state, reason or phase. */
int core_script_value(const Script *script, const char *name);
guint64 core_script_number(const Script *script, const char *text);
/* The value of option NAME ("v=") among the words, or FALLBACK. */
guint64 core_script_option(const Script *script, const char *name, guint64 fallback);
gboolean core_script_has(const Script *script, const char *word);
/* JOB[/TASK][+GUEST].EPOCH */
BerthGuestId core_script_guest(const Script *script, const char *text);

/* core_script.c; gives the core EVENT: */
void core_script_handle(Script *script, const BerthCoreEvent *event);

/* FALSE: the line's first word is no event, or no question. */
gboolean core_script_play_event(Script *script);
gboolean core_script_ask(Script *script);
