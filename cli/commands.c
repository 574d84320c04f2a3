/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the command table: which verbs there are and who does them. */
#include "cli/commands.h"

#include <string.h>

static const BerthCommand commands[] = {
    {"submit", "Submit a script or a command as a job and print its number", berth_cli_submit},
    {"bulk", "Submit a job for each line of JSON", berth_cli_bulk},
    {"run", "Submit, follow the output, exit with the job's status", berth_cli_run},
    {"ls", "List jobs", berth_cli_ls},
    {"show", "Show all that is known of a job", berth_cli_show},
    {"why", "Say why a job waits, or runs where it does, and what was done with it", berth_cli_why},
    {"top", "Show what nodes and guests reserve, need and use now", berth_cli_top},
    {"logs", "Print what a job has written", berth_cli_logs},
    {"wait", "Wait until jobs have ended", berth_cli_wait},
    {"events", "Print what has happened, and what happens", berth_cli_events},
    {"cancel", "End jobs", berth_cli_cancel},
    {"hold", "Keep pending jobs from starting", berth_cli_hold},
    {"release", "Let held jobs start", berth_cli_release},
    {"freeze", "Stop running jobs where they are, in memory or to disk", berth_cli_freeze},
    {"thaw", "Let frozen jobs go on", berth_cli_thaw},
    {"attach", "Open a shell in the guest of a running job", berth_cli_attach},
    {"exec", "Run a command in the guest of a running job", berth_cli_exec},
    {"checkpoint ls", "List the checkpoints of a job", berth_cli_checkpoint_ls},
    {"checkpoint rm", "Remove a checkpoint of a job", berth_cli_checkpoint_rm},
    {"checkpoint", "Save running jobs, which run on", berth_cli_checkpoint},
    {"restore", "Put a job back to one of its checkpoints", berth_cli_restore},
    {"migrate", "Move running jobs to another node", berth_cli_migrate},
    {"resize", "Give running jobs more or less", berth_cli_resize},
    {"extend", "Let jobs run for longer", berth_cli_extend},
    {"node ls", "List nodes", berth_cli_node_ls},
    {"node show", "Show a node", berth_cli_node_show},
    {"node cordon", "Let no new jobs come to nodes", berth_cli_node_cordon},
    {"node uncordon", "Let jobs come to cordoned nodes again", berth_cli_node_uncordon},
    {"node drain", "Empty nodes, and say how that goes", berth_cli_node_drain},
    {"node undrain", "Let jobs come to drained nodes again", berth_cli_node_undrain},
    {"node down", "Give up nodes whose hosts are dead", berth_cli_node_down},
    {"node up", "Let nodes that were given up join again", berth_cli_node_up},
    {"node exec", "Run a command on the hosts of nodes", berth_cli_node_exec},
    {"node roll", "Drain nodes in turn, run a command on each, open it again", berth_cli_node_roll},
    {"image import", "Make an image of a directory, a tar or an ext4 file", berth_cli_image_import},
    {"image ls", "List images", berth_cli_image_ls},
    {"image show", "Show an image", berth_cli_image_show},
    {"image rm", "Remove an image that no job needs", berth_cli_image_rm},
    {"backup", "Copy the daemon's state into a file of its host", berth_cli_backup},
    {"version", "Print the versions of this program and of the daemon", berth_cli_version},
};

const BerthCommand *berth_commands(gsize *out_n)
{
    *out_n = G_N_ELEMENTS(commands);
    return commands;
}

const BerthCommand *berth_command_find(int argc, char **argv, int *out_words, gboolean *out_group)
{
    *out_group = FALSE;
    if (argc < 1)
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        const char *name = commands[i].name;
        const char *space = strchr(name, ' ');
        if (space == NULL) {
            if (g_str_equal(name, argv[0])) {
                *out_group = FALSE; /* which has verbs of its own beside it */
                *out_words = 1;
                return &commands[i];
            }
            continue;
        }
        if (strncmp(name, argv[0], (gsize)(space - name)) != 0 || argv[0][space - name] != '\0')
            continue;
        *out_group = TRUE;
        if (argc > 1 && g_str_equal(space + 1, argv[1])) {
            *out_words = 2;
            return &commands[i];
        }
    }
    return NULL;
}

void berth_commands_print(FILE *stream, const char *group)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (group != NULL &&
            !(g_str_has_prefix(commands[i].name, group) && commands[i].name[strlen(group)] == ' '))
            continue;
        fprintf(stream, "  %-14s %s\n", commands[i].name, commands[i].summary);
    }
}
