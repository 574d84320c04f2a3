/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tests/lib/scripted_daemon.h"

/* A daemon for `berth` that has two jobs: 42, an array of the tasks 0-9 of which five run at a time, and 17, which is none. How the
 * tasks stand, and what happens, a test says. An answer has three tasks at most. Those that have started have written which they are, and
 * one that has failed left that line unfinished. */

typedef struct {
    Berth__Event__Kind kind;
    Berth__JobState state;
    guint32 task, rest_last, rest_step;
    /* The tasks have the states later[BECOMES - 1] then, and what follows happens once a job was looked at; 0 = neither. */
    guint becomes;
    gboolean ends_plain; /* it is of job 17, which has ended then */
} ArrayHappening;

typedef struct {
    Berth__Jobs_Service jobs; /* first: handlers get its address */
    ScriptedDaemon daemon;
    /* The states of its tasks, a letter each: C, F, R, S, P, and W of one that was never started; L is a C whose output is lost. */
    const char *tasks;
    /* What a watch tells of what it names, until one without a kind. */
    const ArrayHappening *happenings;
    const char *const *later; /* the states that one of these makes them have */
    gboolean output_pending;  /* of tasks that have ended */
    gboolean no_files;        /* are named for its output */
    GString *asked;           /* "Cancel 42[0-9]\n" */
    guint n_gets;             /* but for: */
    guint n_pages;            /* of all tasks that have started or ended */
    guint n_watches;
    GArray *watched;    /* guint64: the jobs that the newest of them names */
    BerthRpcCall *call; /* that watch, if it is open */
    guint n_told;       /* of the happenings */
    gboolean awaits_look;
    gboolean tells_early; /* what follows comes before the answer that does not know of it */
    gboolean plain_has_ended;
} ArrayScript;

/* Of a cmocka test; its state is the ArrayScript. */
int array_script_setup(void **state);
int array_script_teardown(void **state);
