/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"

#include <glib.h>

/* What a job is asked to be, gathered from three places, each stronger than the one before:
 * #BERTH lines at the head of the script, environment variables, options of the command line. */

/* That a daemon may take; as a rule it takes a million. */
#define BERTH_CLI_ARRAY_TASKS_MAX 10000000u

typedef struct {
    guint32 vcpus; /* 0 = the daemon's default, as the next three */
    guint64 memory_mib;
    guint64 disk_mib;
    guint64 time_limit_sec;
    guint32 vcpus_max; /* 0 = no more than it begins with, as the next */
    guint64 memory_max_mib;
    int on_limit; /* Berth__OnLimit; 0 = the daemon's default, as ON_TIMEOUT */
    int on_timeout;
    guint32 grace_sec;
    guint32 checkpoint_every_sec; /* 0 = not */
    guint32 checkpoint_keep;      /* 0 = the daemon's default */
    guint32 checkpoint_signal;    /* 0 = none, as the next but one */
    guint32 checkpoint_signal_sec;
    guint32 restore_signal;
    gint32 priority;
    char *image; /* NULL = the daemon's default */
    char *name;  /* NULL = the script's or command's base name */
    char *chdir;
    char *output; /* NULL = the job's log only */
    char *error;
    char **nodes;
    BerthIndexSet *array; /* NULL = it is none, but for EACH */
    char *each;           /* file with a line for each task; NULL = none */
    guint32 array_running_max;
    GPtrArray *dependencies; /* Berth__Dependency; NULL = none */
    gboolean hold;
    gboolean no_requeue;
    gboolean guaranteed;
    gboolean environment_all;
    GPtrArray *environment; /* "NAME=VALUE" */
    GPtrArray *inputs;      /* "NAME=PATH" or "PATH" */
    char *idempotency_key;
    const char
        *foreign; /* "#SBATCH": whose lines the script has, which are not read; NULL = none */
} BerthJobOptions;

BerthJobOptions *berth_job_options_new(void);
void berth_job_options_free(BerthJobOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthJobOptions, berth_job_options_free)

/* Sets the option of this long NAME, as "--NAME=VALUE" would. INVALID_ARGUMENT: there is none, or VALUE is none of its. */
gboolean berth_job_options_set(BerthJobOptions *options, const char *name, const char *value,
                               GError **error);

/* GOption entries for all of them; the group's user data must be the BerthJobOptions. (static) */
const GOptionEntry *berth_job_option_entries(void);

/* Takes the #BERTH lines of SCRIPT: those before its first line that is neither blank nor a
 * comment. NAME is for messages: "NAME:LINE: ...". */
gboolean berth_job_options_from_script(BerthJobOptions *options, const char *script, gsize length,
                                       const char *name, GError **error);

/* Takes BERTH_VCPUS, BERTH_MEMORY, ... : BERTH_ and the option's name in capitals. One that is empty
 * counts as not set. */
gboolean berth_job_options_from_environment(BerthJobOptions *options, GError **error);

/* The leading options of a command line, with short options parted from their values ("-c2" as
 * "-c" "2", which GOption does not do itself): ARGV[0], then all up to the first argument that is no
 * option. *out_rest: index in ARGV of what follows, *out_dashes: "--" stood before it. The array's
 * strings are its own; NULL-terminated. */
GPtrArray *berth_job_option_words(int argc, char **argv, int *out_rest, gboolean *out_dashes);

/* Is one of ARGV[1] to ARGV[REST-1] "-it", as for a container with a terminal? Taken literally, that
 * is an image "t"; "-ti" is a time limit "i". */
gboolean berth_job_options_want_terminal(char **argv, int rest);
