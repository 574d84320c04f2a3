/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "common/rpc.h"
#include "proto/berth.pb-c.h"
#include <glib.h>

/* What all verbs share: where the daemon is, how to print, the connection. */

/* Exit statuses. `berth run` and `berth wait` pass the job's own status through instead. */
enum {
    BERTH_EXIT_OK = 0,
    BERTH_EXIT_FAILED = 1,  /* the request was refused or failed */
    BERTH_EXIT_USAGE = 2,   /* wrong options or arguments */
    BERTH_EXIT_BERTH = 125, /* run, wait: Berth's own failure, as opposed to the job's */
};

typedef struct BerthCli BerthCli;

/* A verb. STATUS is BERTH_EXIT_OK when it is called; FALSE with ERROR makes the caller print it
 * and exit with *out_status or, where that is 0, with BERTH_EXIT_FAILED. */
typedef gboolean (*BerthVerbFunc)(BerthCli *cli, int argc, char **argv, int *out_status,
                                  GError **error);

struct BerthCli {
    char *socket_path;
    BerthVerbFunc image_import; /* NULL: another program does it */
    gboolean json;
    BerthRpcPeer *peer;                         /* NULL until first needed; stays when it is lost */
    void (*connected_func)(gpointer user_data); /* after each new connection; or NULL */
    gpointer connected_data;
    gboolean is_left; /* nobody waits for what is tried any more: berth_cli_persist() succeeds */
};

/* The whole program. IMAGE_IMPORT may be NULL. Returns the exit status. */
int berth_cli_main(int argc, char **argv, BerthVerbFunc image_import);

/* Connects if there is no live connection. */
gboolean berth_cli_connect(BerthCli *cli, GError **error);

/* A unary call on the connection that there is, or on the first one. A connection that was lost is
 * not replaced: what belongs to it (an import, an upload) is lost with it. (transfer full) */
ProtobufCMessage *berth_cli_call(BerthCli *cli, const ProtobufCServiceDescriptor *service,
                                 const char *method, const ProtobufCMessage *request,
                                 GError **error);

/* Does ATTEMPT, again when the connection was lost meanwhile, until it succeeds or fails for another
 * reason; if PATIENT, also when the daemon says that it cannot do it now (UNAVAILABLE). Gives up
 * when the daemon is away for longer than an upgrade or a failover takes, and at once if it does
 * not run to begin with. */
typedef gboolean (*BerthAttemptFunc)(BerthCli *cli, gpointer user_data, GError **error);
gboolean berth_cli_persist(BerthCli *cli, gboolean patient, BerthAttemptFunc attempt,
                           gpointer user_data, GError **error);
/* Likewise, and gives up with DEADLINE_EXCEEDED when the daemon is away at DEADLINE_USEC (monotonic; G_MAXINT64 = none). That ATTEMPT
 * keeps to it is its own affair. */
gboolean berth_cli_persist_until(BerthCli *cli, gboolean patient, gint64 deadline_usec,
                                 BerthAttemptFunc attempt, gpointer user_data, GError **error);

/* Watches the events after AFTER_SEQ until TAKE has had enough. TRUE also when that is not before DEADLINE_USEC, as above. */
gboolean berth_cli_watch_until(BerthCli *cli, guint64 after_seq, gint64 deadline_usec,
                               BerthRpcItemFunc take, gpointer user_data, GError **error);

/* What the daemon says of itself: to be freed with berth__server_info__free_unpacked(). */
Berth__ServerInfo *berth_cli_server_info(BerthCli *cli, GError **error);

/* Prints a message as JSON on one line (--json). */
void berth_cli_print_json(const ProtobufCMessage *message);

/* Reads a verb's options with GOption: SYNOPSIS is what follows the verb in the usage line.
 * --help prints and exits. FALSE sets *out_status to BERTH_EXIT_USAGE. ARGV[0] must be
 * "berth VERB". */
gboolean berth_cli_parse(int *argc, char ***argv, const GOptionEntry *entries, const char *synopsis,
                         const char *description, gpointer user_data, int *out_status,
                         GError **error);

/* The same for a verb that runs a command: what follows its first argument is left alone, options too. */
gboolean berth_cli_parse_command(int *argc, char ***argv, const GOptionEntry *entries,
                                 const char *synopsis, const char *description, int *out_status,
                                 GError **error);

/* The entry of --reason, of verbs that change a job. TEXT: a char **. */
#define BERTH_CLI_REASON(text)                                                                     \
    {                                                                                              \
        "reason", 'r', 0, G_OPTION_ARG_STRING, (text), "Why, for the job's owner and operators",   \
            "TEXT"                                                                                 \
    }

/* The message of GOption's ERROR about options that are to be ENTRIES (may be NULL), with what may have
 * been meant by one that there is not. (transfer full) */
char *berth_cli_option_error(const GError *error, const GOptionEntry *entries);

/* A job, or some tasks of an array. */
typedef struct {
    guint64 job;
    BerthIndexSet *tasks; /* NULL = all of it */
} BerthCliTasks;

/* The ARGC-1 arguments after ARGV[0]: "JOB", "JOB[7]" or "JOB[0-9,20]"; at least one. (transfer full, BerthCliTasks, which it
 * owns) */
GArray *berth_cli_task_arguments(int argc, char **argv, int *out_status, GError **error);
/* Whether JOBS, of these, are whole jobs. */
gboolean berth_cli_check_whole(const GArray *jobs, int *out_status, GError **error);
/* Likewise, their numbers: whole jobs. (transfer full, guint64) */
GArray *berth_cli_job_arguments(int argc, char **argv, int *out_status, GError **error);

/* Whether NAMED, read from TEXT, is one task at most, or a whole job. INVALID_ARGUMENT. */
gboolean berth_cli_check_one_task(const char *text, const BerthCliTasks *named, GError **error);

/* The task of a plain job, or one of an array; which of them JOB is the daemon knows. */
typedef struct {
    guint64 job;
    gboolean of_array; /* it was named: */
    guint32 task;
} BerthCliTask;

/* "JOB" or "JOB[7]". INVALID_ARGUMENT: it is neither. */
gboolean berth_cli_task_argument(const char *text, BerthCliTask *out_task, GError **error);

/* Sets a usage error and *out_status. Always FALSE. */
gboolean berth_cli_usage_error(int *out_status, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Prints ERROR, which is of one of several arguments and does not keep the verb from the others, and
 * sets *out_status to BERTH_EXIT_FAILED. */
void berth_cli_report(const GError *error, int *out_status);

/* --- verbs (cli/<verb>.c), listed in cli/commands.c ------------------------------------------ */

gboolean berth_cli_submit(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_bulk(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_run(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_ls(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_show(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_why(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_top(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_logs(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_cancel(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_wait(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_hold(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_release(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_events(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_attach(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_exec(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_freeze(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_thaw(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_checkpoint(BerthCli *cli, int argc, char **argv, int *out_status,
                              GError **error);
gboolean berth_cli_checkpoint_ls(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error);
gboolean berth_cli_checkpoint_rm(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error);
gboolean berth_cli_restore(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_migrate(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_extend(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_resize(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_node_ls(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_node_show(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_node_cordon(BerthCli *cli, int argc, char **argv, int *out_status,
                               GError **error);
gboolean berth_cli_node_uncordon(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error);
gboolean berth_cli_node_drain(BerthCli *cli, int argc, char **argv, int *out_status,
                              GError **error);
gboolean berth_cli_node_undrain(BerthCli *cli, int argc, char **argv, int *out_status,
                                GError **error);
gboolean berth_cli_node_down(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_node_exec(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_node_roll(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_node_up(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_image_import(BerthCli *cli, int argc, char **argv, int *out_status,
                                GError **error);
gboolean berth_cli_image_ls(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_image_show(BerthCli *cli, int argc, char **argv, int *out_status,
                              GError **error);
gboolean berth_cli_image_rm(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_backup(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
gboolean berth_cli_version(BerthCli *cli, int argc, char **argv, int *out_status, GError **error);
