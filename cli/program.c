/* SPDX-License-Identifier: Apache-2.0 */
/* berth: finds the verb, runs it, prints its error once and turns it into an exit status. */
#include "config.h"

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/hint.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SOCKET BERTH_RUNDIR "/berthd.sock"

static void print_usage(FILE *stream)
{
    fprintf(stream, "Usage: berth [--socket PATH] COMMAND [OPTIONS] [ARGUMENTS]\n"
                    "Batch jobs in small virtual machines.\n\nCommands:\n");
    berth_commands_print(stream, NULL);
    fprintf(stream,
            "\n`berth help COMMAND` explains a command; the manual is berth(1).\n"
            "The daemon is reached through --socket, $BERTH_SOCKET or %s.\n",
            DEFAULT_SOCKET);
}

/* Output that could not be written (a full disk, /dev/full) must not look like success. */
static int flush_stdout(const char *prgname, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "%s: cannot write to standard output\n", prgname);
    return status == BERTH_EXIT_OK ? BERTH_EXIT_FAILED : status;
}

/* The PATH of "--socket PATH" or "--socket=PATH" at *I, "" where it is missing; NULL: *I is another
 * option. */
static const char *socket_option(int argc, char **argv, int *i)
{
    if (g_str_has_prefix(argv[*i], "--socket="))
        return argv[*i] + strlen("--socket=");
    if (!g_str_equal(argv[*i], "--socket"))
        return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}

static void refuse_global(const char *word)
{
    static const GOptionEntry entries[] = {{"socket", 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL},
                                           {"version", 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL},
                                           {NULL}};
    g_autofree char *hint = berth_hint_option(entries, word);
    fprintf(stderr, "berth: unknown option %s before the command%s (see berth --help)\n", word,
            hint);
}

/* Takes the options that stand before the verb. Returns the index of the verb, or -1 when all is
 * said, with *out_status. */
static int parse_global(int argc, char **argv, BerthCli *cli, int *out_status)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (g_str_equal(argv[i], "--help") || g_str_equal(argv[i], "-h")) {
            print_usage(stdout);
            *out_status = flush_stdout("berth", BERTH_EXIT_OK);
            return -1;
        }
        if (g_str_equal(argv[i], "--version")) {
            puts("berth " PACKAGE_VERSION);
            *out_status = flush_stdout("berth", BERTH_EXIT_OK);
            return -1;
        }
        const char *path = socket_option(argc, argv, &i);
        if (path == NULL || *path == '\0') {
            if (path == NULL)
                refuse_global(argv[i]);
            else
                fputs("berth: --socket wants the path of berthd's socket\n", stderr);
            *out_status = BERTH_EXIT_USAGE;
            return -1;
        }
        g_free(cli->socket_path);
        cli->socket_path = g_strdup(path);
    }
    return i;
}

static void print_group_usage(FILE *stream, const char *group)
{
    fprintf(stream, "Usage: berth %s COMMAND [OPTIONS] [ARGUMENTS]\n\nCommands:\n", group);
    berth_commands_print(stream, group);
}

static void refuse_in_group(const char *group, const char *word)
{
    g_autofree char *name = g_strdup_printf("%s %s", group, word);
    g_autofree char *hint = berth_hint_command(name);
    if (*hint != '\0') {
        fprintf(stderr, "berth: there is no command \"%s\"%s (see berth %s --help)\n", name, hint,
                group);
        return;
    }
    fprintf(stderr, "berth: there is no command \"%s\"; there are:\n", name);
    berth_commands_print(stderr, group);
}

static const BerthCommand *find_command(int argc, char **argv, int *out_words, int *out_status)
{
    gboolean group;
    const BerthCommand *command = berth_command_find(argc, argv, out_words, &group);
    if (command != NULL)
        return command;
    if (argc == 0) {
        print_usage(stderr);
    } else if (group &&
               (argc == 1 || g_str_equal(argv[1], "--help") || g_str_equal(argv[1], "-h"))) {
        gboolean help = argc > 1;
        print_group_usage(help ? stdout : stderr, argv[0]);
        *out_status = help ? BERTH_EXIT_OK : BERTH_EXIT_USAGE;
        return NULL;
    } else if (group) {
        refuse_in_group(argv[0], argv[1]);
    } else {
        g_autofree char *hint = berth_hint_command(argv[0]);
        fprintf(stderr, "berth: there is no command \"%s\"%s (see berth --help)\n", argv[0], hint);
    }
    *out_status = BERTH_EXIT_USAGE;
    return NULL;
}

static int run_command(BerthCli *cli, const BerthCommand *command, int argc, char **argv)
{
    int status = BERTH_EXIT_OK;
    g_autoptr(GError) error = NULL;
    g_autofree char *prgname = g_strdup_printf("berth %s", command->name);
    /* GOption takes arguments out of the array: give it one of its own. */
    g_autofree char **arguments = g_new0(char *, (gsize)argc + 2);
    arguments[0] = prgname;
    for (int i = 0; i < argc; i++)
        arguments[i + 1] = argv[i];
    if (!command->func(cli, argc + 1, arguments, &status, &error)) {
        fflush(stdout);
        if (error != NULL)
            fprintf(stderr, "%s: %s\n", prgname, error->message);
        if (status == BERTH_EXIT_OK)
            status = BERTH_EXIT_FAILED;
    }
    return flush_stdout(prgname, status);
}

/* `berth help COMMAND` is `berth COMMAND --help`. ARGV: what follows "help". */
static int print_help(BerthCli *cli, int argc, char **argv)
{
    int status = BERTH_EXIT_OK;
    int words = 0;
    if (argc == 0 || g_str_equal(argv[0], "--help") || g_str_equal(argv[0], "-h")) {
        print_usage(stdout);
        return flush_stdout("berth", BERTH_EXIT_OK);
    }
    g_autofree char **asked = g_new0(char *, (gsize)argc + 1);
    memcpy(asked, argv, sizeof(char *) * (gsize)argc);
    asked[argc] = (char *)"--help";
    const BerthCommand *command = find_command(argc + 1, asked, &words, &status);
    if (command == NULL)
        return flush_stdout("berth", status);
    if (words < argc) {
        fprintf(stderr, "berth help: \"%s\" is one argument too many\n", argv[words]);
        return BERTH_EXIT_USAGE;
    }
    return run_command(cli, command, 1, &asked[argc]);
}

/* ARGV: the command and what follows it. */
static int dispatch(BerthCli *cli, int argc, char **argv)
{
    int status = BERTH_EXIT_OK;
    int words = 0;
    if (argc > 0 && g_str_equal(argv[0], "help"))
        return print_help(cli, argc - 1, argv + 1);
    const BerthCommand *command = find_command(argc, argv, &words, &status);
    return command ? run_command(cli, command, argc - words, argv + words) : status;
}

/* A standard stream that the caller has closed must not become the number of our socket: output
 * would go to the daemon. Opened the wrong way round, so that its use still fails. */
static void occupy_closed_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

/* GSocket ignores SIGPIPE in the whole process when it is first used, though it writes with
 * MSG_NOSIGNAL. `berth logs | head` is to end as quietly as any filter. */
static void keep_sigpipe(void)
{
    struct sigaction inherited;
    sigaction(SIGPIPE, NULL, &inherited);
    g_type_class_unref(g_type_class_ref(G_TYPE_SOCKET));
    sigaction(SIGPIPE, &inherited, NULL);
}

int berth_cli_main(int argc, char **argv, BerthVerbFunc image_import)
{
    occupy_closed_streams();
    keep_sigpipe();
    setlocale(LC_CTYPE, "");
    const char *environment = g_getenv("BERTH_SOCKET");
    BerthCli cli = {.socket_path =
                        g_strdup(environment && *environment ? environment : DEFAULT_SOCKET),
                    .image_import = image_import};
    int status = BERTH_EXIT_OK;
    int first = parse_global(argc, argv, &cli, &status);
    if (first >= 0)
        status = dispatch(&cli, argc - first, argv + first);
    g_clear_pointer(&cli.peer, berth_rpc_peer_unref);
    g_free(cli.socket_path);
    return status;
}
