/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what all verbs share in reading options and arguments. */
#include "cli/cli.h"

#include "cli/hint.h"
#include "cli/tasks.h"
#include "common/error.h"
#include "common/id.h"
#include "common/json.h"

#include <stdio.h>
#include <string.h>

void berth_cli_print_json(const ProtobufCMessage *message)
{
    g_autofree char *text = berth_json_print_message(message, BERTH_JSON_WITH_DEFAULTS);
    puts(text);
}

gboolean berth_cli_usage_error(int *out_status, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    *out_status = BERTH_EXIT_USAGE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, message);
    return FALSE;
}

void berth_cli_report(const GError *error, int *out_status)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", g_get_prgname(), error->message);
    *out_status = BERTH_EXIT_FAILED;
}

char *berth_cli_option_error(const GError *error, const GOptionEntry *entries)
{
    const char *word = strstr(error->message, " -");
    if (!g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) || word == NULL)
        return g_strdup(error->message);
    g_autofree char *hint = berth_hint_option(entries, word + 1);
    return g_strconcat(error->message, hint, NULL);
}

/* CONTEXT (transfer full). */
static gboolean parse(GOptionContext *new_context, int *argc, char ***argv,
                      const GOptionEntry *entries, const char *description, gpointer user_data,
                      int *out_status, GError **error)
{
    g_autoptr(GOptionContext) context = new_context;
    g_autoptr(GError) local = NULL;
    /* The program's name in the usage line is "berth VERB". */
    g_set_prgname((*argv)[0]);
    if (description != NULL)
        g_option_context_set_description(context, description);
    GOptionGroup *group = g_option_group_new("", "", "", user_data, NULL);
    if (entries != NULL)
        g_option_group_add_entries(group, entries);
    g_option_context_set_main_group(context, group);
    if (g_option_context_parse(context, argc, argv, &local))
        return TRUE;
    g_autofree char *message = berth_cli_option_error(local, entries);
    return berth_cli_usage_error(out_status, error, "%s (see %s --help)", message, g_get_prgname());
}

gboolean berth_cli_parse(int *argc, char ***argv, const GOptionEntry *entries, const char *synopsis,
                         const char *description, gpointer user_data, int *out_status,
                         GError **error)
{
    return parse(g_option_context_new(synopsis), argc, argv, entries, description, user_data,
                 out_status, error);
}

gboolean berth_cli_parse_command(int *argc, char ***argv, const GOptionEntry *entries,
                                 const char *synopsis, const char *description, int *out_status,
                                 GError **error)
{
    GOptionContext *context = g_option_context_new(synopsis);
    g_option_context_set_strict_posix(context, TRUE);
    return parse(context, argc, argv, entries, description, NULL, out_status, error);
}

static void clear_tasks(gpointer data)
{
    BerthCliTasks *named = data;
    g_clear_pointer(&named->tasks, berth_index_set_free);
}

GArray *berth_cli_task_arguments(int argc, char **argv, int *out_status, GError **error)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(BerthCliTasks));
    g_array_set_clear_func(all, clear_tasks);
    if (argc < 2) {
        berth_cli_usage_error(out_status, error, "name at least one job (see %s --help)", argv[0]);
        return NULL;
    }
    for (int i = 1; i < argc; i++) {
        BerthCliTasks named = {0};
        if (!berth_job_tasks_parse(argv[i], &named.job, &named.tasks, error)) {
            *out_status = BERTH_EXIT_USAGE;
            return NULL;
        }
        g_array_append_val(all, named);
    }
    return g_steal_pointer(&all);
}

gboolean berth_cli_check_whole(const GArray *jobs, int *out_status, GError **error)
{
    for (guint i = 0; i < jobs->len; i++) {
        const BerthCliTasks *named = &g_array_index(jobs, BerthCliTasks, i);
        g_autofree char *name = berth_tasks_format(named->job, named->tasks);
        if (named->tasks != NULL)
            return berth_cli_usage_error(out_status, error,
                                         "\"%s\" names tasks of an array, and %s is of whole jobs: "
                                         "name it as %" G_GUINT64_FORMAT,
                                         name, g_get_prgname(), named->job);
    }
    return TRUE;
}

GArray *berth_cli_job_arguments(int argc, char **argv, int *out_status, GError **error)
{
    g_autoptr(GArray) named = berth_cli_task_arguments(argc, argv, out_status, error);
    if (named == NULL || !berth_cli_check_whole(named, out_status, error))
        return NULL;
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; i < named->len; i++)
        g_array_append_val(jobs, g_array_index(named, BerthCliTasks, i).job);
    return jobs;
}

gboolean berth_cli_check_one_task(const char *text, const BerthCliTasks *named, GError **error)
{
    if (named->tasks == NULL || berth_index_set_count(named->tasks) == 1)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" names several tasks, and %s is of one: name it as %" G_GUINT64_FORMAT
                "[INDEX]",
                text, g_get_prgname(), named->job);
    return FALSE;
}

gboolean berth_cli_task_argument(const char *text, BerthCliTask *out_task, GError **error)
{
    BerthCliTasks named = {0};
    if (!berth_job_tasks_parse(text, &named.job, &named.tasks, error))
        return FALSE;
    gboolean ok = berth_cli_check_one_task(text, &named, error);
    if (ok)
        *out_task = (BerthCliTask){named.job, named.tasks != NULL,
                                   named.tasks != NULL ? berth_index_set_last(named.tasks) : 0};
    clear_tasks(&named);
    return ok;
}
