/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of job options: one entry serves the command line, the environment and the
 * #BERTH lines, so that the three cannot differ. */
#include "config.h"

#include "cli/options.h"

#include "cli/cli.h"
#include "cli/dependency.h"
#include "cli/table.h"
#include "cli/variable.h"
#include "common/error.h"
#include "common/node_list.h"
#include "common/units.h"

#include <signal.h>
#include <string.h>

/* Those beyond mean what a program says. */
#define SIGNAL_MAX 31

#define CHECKPOINT_SIGNAL_MAX_SEC 3600u

typedef gboolean (*SetFunc)(BerthJobOptions *options, const char *value, GError **error);

typedef struct {
    const char *name;
    char letter;
    const char *argument; /* NULL: a flag */
    SetFunc set;
    const char *help;
    gboolean takes_bytes; /* the value need not be UTF-8 */
} JobOption;

static gboolean set_vcpus(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 number;
    if (!berth_parse_uint64(value, 1, 1024, &number, error))
        return FALSE;
    options->vcpus = (guint32)number;
    return TRUE;
}

/* 0 would be the daemon's default, which is not what it says. */
static gboolean set_not_zero(guint64 *field, guint64 number, const char *value, const char *least,
                             GError **error)
{
    if (number == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is too little: %s at least (leave the option out for the default)",
                    value, least);
        return FALSE;
    }
    *field = number;
    return TRUE;
}

static gboolean set_memory(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 mib;
    return berth_parse_size_mib(value, &mib, error) &&
           set_not_zero(&options->memory_mib, mib, value, "64M", error);
}

static gboolean set_vcpus_max(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 number;
    if (!berth_parse_uint64(value, 1, 1024, &number, error))
        return FALSE;
    options->vcpus_max = (guint32)number;
    return TRUE;
}

static gboolean set_memory_max(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 mib;
    return berth_parse_size_mib(value, &mib, error) &&
           set_not_zero(&options->memory_max_mib, mib, value, "64M", error);
}

static gboolean set_disk(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 mib;
    return berth_parse_size_mib(value, &mib, error) &&
           set_not_zero(&options->disk_mib, mib, value, "1M", error);
}

static gboolean set_time(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 seconds;
    return berth_parse_duration_sec(value, &seconds, error) &&
           set_not_zero(&options->time_limit_sec, seconds, value, "1s", error);
}

/* The place of VALUE in NAMES, from 1. */
static gboolean set_choice(int *field, const char *const *names, const char *value, GError **error)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (!g_str_equal(names[i], value))
            continue;
        *field = i + 1;
        return TRUE;
    }
    g_autofree char *choices = g_strjoinv(", ", (char **)names);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "\"%s\" is none of %s", value,
                choices);
    return FALSE;
}

static gboolean set_on_limit(BerthJobOptions *options, const char *value, GError **error)
{
    static const char *const names[] = {[BERTH__ON_LIMIT__ON_LIMIT_GROW - 1] = "grow",
                                        [BERTH__ON_LIMIT__ON_LIMIT_FREEZE - 1] = "freeze",
                                        [BERTH__ON_LIMIT__ON_LIMIT_KILL - 1] = "kill",
                                        NULL};
    return set_choice(&options->on_limit, names, value, error);
}

static gboolean set_on_timeout(BerthJobOptions *options, const char *value, GError **error)
{
    static const char *const names[] = {[BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT - 1] =
                                            "checkpoint",
                                        [BERTH__ON_TIMEOUT__ON_TIMEOUT_KILL - 1] = "kill",
                                        NULL};
    return set_choice(&options->on_timeout, names, value, error);
}

static gboolean set_grace(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 seconds;
    if (!berth_parse_duration_sec(value, &seconds, error))
        return FALSE;
    if (seconds < 1 || seconds > 3600) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not between 1s and 1h", value);
        return FALSE;
    }
    options->grace_sec = (guint32)seconds;
    return TRUE;
}

static gboolean set_checkpoint_every(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 seconds;
    if (!berth_parse_duration_sec(value, &seconds, error))
        return FALSE;
    if (seconds < 1 || seconds > G_MAXUINT32) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not a time after which to save a job; try 30m", value);
        return FALSE;
    }
    options->checkpoint_every_sec = (guint32)seconds;
    return TRUE;
}

static gboolean set_checkpoint_keep(BerthJobOptions *options, const char *value, GError **error)
{
    guint64 number;
    if (!g_ascii_string_to_unsigned(value, 10, 1, 1000, &number, NULL)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not a number of checkpoints; try 2", value);
        return FALSE;
    }
    options->checkpoint_keep = (guint32)number;
    return TRUE;
}

/* Those that a command can catch. */
static gboolean parse_signal(const char *text, guint32 *out_signal, GError **error)
{
    const char *name = g_ascii_strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    guint64 number = 0;
    for (int i = 1; i <= SIGNAL_MAX && number == 0; i++) {
        const char *known = sigabbrev_np(i);
        if (known != NULL && g_ascii_strcasecmp(name, known) == 0)
            number = (guint64)i;
    }
    if ((number == 0 && !g_ascii_string_to_unsigned(text, 10, 1, SIGNAL_MAX, &number, NULL)) ||
        number == SIGKILL || number == SIGSTOP) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not a signal that a command can catch; try USR1", text);
        return FALSE;
    }
    *out_signal = (guint32)number;
    return TRUE;
}

static gboolean set_checkpoint_signal(BerthJobOptions *options, const char *value, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(value, "@", 2);
    guint64 seconds = 0; /* as the daemon has it */
    guint32 number;
    if (!parse_signal(parts[0] != NULL ? parts[0] : "", &number, error) ||
        (parts[1] != NULL && !berth_parse_duration_sec(parts[1], &seconds, error)))
        return FALSE;
    if (parts[1] != NULL && seconds == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is no time from the signal to the checkpoint: 1s at least", parts[1]);
        return FALSE;
    }
    if (seconds > CHECKPOINT_SIGNAL_MAX_SEC) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is more than an hour from the signal to the checkpoint", parts[1]);
        return FALSE;
    }
    options->checkpoint_signal = number;
    options->checkpoint_signal_sec = (guint32)seconds;
    return TRUE;
}

static gboolean set_restore_signal(BerthJobOptions *options, const char *value, GError **error)
{
    return parse_signal(value, &options->restore_signal, error);
}

static gboolean set_priority(BerthJobOptions *options, const char *value, GError **error)
{
    gint64 number;
    g_autoptr(GError) local = NULL;
    if (!g_ascii_string_to_signed(value, 10, -1000000, 1000000, &number, &local)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not a whole number between -1000000 and 1000000", value);
        return FALSE;
    }
    options->priority = (gint32)number;
    return TRUE;
}

static gboolean refuse_empty(GError **error)
{
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "the value is empty");
    return FALSE;
}

static gboolean set_text(char **field, const char *value, GError **error)
{
    if (*value == '\0')
        return refuse_empty(error);
    g_free(*field);
    *field = g_strdup(value);
    return TRUE;
}

static gboolean set_image(BerthJobOptions *options, const char *value, GError **error)
{
    return set_text(&options->image, value, error);
}

static gboolean set_name(BerthJobOptions *options, const char *value, GError **error)
{
    return set_text(&options->name, value, error);
}

static gboolean set_chdir(BerthJobOptions *options, const char *value, GError **error)
{
    if (*value != '/') {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not an absolute path (it is a directory in the guest)", value);
        return FALSE;
    }
    return set_text(&options->chdir, value, error);
}

static gboolean set_output(BerthJobOptions *options, const char *value, GError **error)
{
    return set_text(&options->output, value, error);
}

static gboolean set_error(BerthJobOptions *options, const char *value, GError **error)
{
    return set_text(&options->error, value, error);
}

static gboolean set_key(BerthJobOptions *options, const char *value, GError **error)
{
    return set_text(&options->idempotency_key, value, error);
}

static gboolean set_nodes(BerthJobOptions *options, const char *value, GError **error)
{
    if (*value == '\0')
        return refuse_empty(error);
    g_auto(GStrv) nodes = berth_node_list_parse(value, error);
    if (nodes == NULL)
        return FALSE;
    g_strfreev(options->nodes);
    options->nodes = g_steal_pointer(&nodes);
    return TRUE;
}

/* "0-99%10" */
static gboolean set_array(BerthJobOptions *options, const char *value, GError **error)
{
    const char *percent = strchr(value, '%');
    guint64 running_max = 0;
    g_autofree char *indices =
        percent != NULL ? g_strndup(value, (gsize)(percent - value)) : g_strdup(value);
    if (percent != NULL && !berth_parse_uint64(percent + 1, 1, G_MAXUINT32, &running_max, error)) {
        g_prefix_error(error, "how many tasks run at a time: ");
        return FALSE;
    }
    BerthIndexSet *array = berth_index_set_parse(indices, BERTH_CLI_ARRAY_TASKS_MAX, error);
    if (array == NULL)
        return FALSE;
    g_clear_pointer(&options->array, berth_index_set_free);
    options->array = array;
    options->array_running_max = (guint32)running_max;
    return TRUE;
}

static gboolean set_each(BerthJobOptions *options, const char *value, GError **error)
{
    return set_text(&options->each, value, error);
}

static gboolean set_dependency(BerthJobOptions *options, const char *value, GError **error)
{
    GPtrArray *dependencies = berth_dependencies_parse(value, error);
    if (dependencies == NULL)
        return FALSE;
    g_clear_pointer(&options->dependencies, g_ptr_array_unref);
    options->dependencies = dependencies;
    return TRUE;
}

static gboolean set_environment(BerthJobOptions *options, const char *value, GError **error)
{
    char *variable = berth_variable_parse(value, error);
    if (variable != NULL)
        g_ptr_array_add(options->environment, variable);
    return variable != NULL;
}

static gboolean set_input(BerthJobOptions *options, const char *value, GError **error)
{
    if (*value == '\0') {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "name a file: PATH or NAME=PATH");
        return FALSE;
    }
    g_ptr_array_add(options->inputs, g_strdup(value));
    return TRUE;
}

static gboolean set_flag(gboolean *field, const char *value, GError **error)
{
    if (value == NULL || g_str_equal(value, "1") || g_str_equal(value, "yes")) {
        *field = TRUE;
        return TRUE;
    }
    if (g_str_equal(value, "0") || g_str_equal(value, "no")) {
        *field = FALSE;
        return TRUE;
    }
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" is neither yes (1) nor no (0)", value);
    return FALSE;
}

static gboolean set_hold(BerthJobOptions *options, const char *value, GError **error)
{
    return set_flag(&options->hold, value, error);
}

static gboolean set_no_requeue(BerthJobOptions *options, const char *value, GError **error)
{
    return set_flag(&options->no_requeue, value, error);
}

static gboolean set_environment_all(BerthJobOptions *options, const char *value, GError **error)
{
    return set_flag(&options->environment_all, value, error);
}

static gboolean set_guaranteed(BerthJobOptions *options, const char *value, GError **error)
{
    return set_flag(&options->guaranteed, value, error);
}

static const JobOption job_options[] = {
    {"vcpus", 'c', "N", set_vcpus, "Virtual CPUs of the guest"},
    {"memory", 'm', "SIZE", set_memory, "Memory of the guest: 512M, 8G"},
    {"vcpus-max", 0, "N", set_vcpus_max,
     "Virtual CPUs up to which it is grown, and may be resized"},
    {"memory-max", 0, "SIZE", set_memory_max,
     "Memory up to which it is grown, and may be resized; above --memory it is kept when it needs "
     "more"},
    {"on-limit", 0, "grow|freeze|kill", set_on_limit,
     "What to do when it stalls for memory and gets no more (default: freeze); one that has its "
     "--memory-max may run out of it first"},
    {"disk", 'd', "SIZE", set_disk, "Free space on the guest's disk, beside the image"},
    {"time", 't', "TIME", set_time, "Time limit: 90 (seconds), 90s, 30m, 2h, 1d12h, HH:MM:SS"},
    {"on-timeout", 0, "checkpoint|kill", set_on_timeout,
     "What to do at its time limit (default: checkpoint, with Ceph)"},
    {"image", 'i', "NAME", set_image, "Image that the guest boots with"},
    {"name", 'n', "NAME", set_name, "Name of the job (default: of the script or command)"},
    {"env", 'e', "NAME[=VALUE]", set_environment, "Variable for the job; may be repeated", TRUE},
    {"env-all", 'E', NULL, set_environment_all, "Pass on all variables that are exported here"},
    {"input", 'I', "[NAME=]PATH", set_input,
     "File for the job's working directory; may be repeated", TRUE},
    {"output", 'o', "FILE", set_output, "Write the job's standard output to FILE here, too"},
    {"error", 0, "FILE", set_error, "Write the job's standard error to FILE here, too"},
    {"chdir", 'D', "DIR", set_chdir, "Working directory in the guest (default: /work)"},
    {"array", 'a', "INDICES", set_array,
     "So many tasks, one for each index: 0-99, 1-9:2,20; 0-99%10: ten at a time"},
    {"each", 0, "FILE", set_each,
     "An array with a task for each line of FILE, which is in its $BERTH_TASK_LINE"},
    {"dependency", 0, "WORD:JOB,...", set_dependency,
     "Start after these jobs: afterok:12:13,afterany:14; singleton"},
    {"node", 'w', "NODES", set_nodes, "Run on one of these nodes only: n1,n[3-7]"},
    {"priority", 'p', "N", set_priority, "Higher starts earlier; above 0 for operators only"},
    {"grace", 0, "TIME", set_grace, "From SIGTERM to SIGKILL when the job must end"},
    {"checkpoint-every", 0, "TIME", set_checkpoint_every,
     "Save the job so often while it runs: 30m, 2h"},
    {"checkpoint-keep", 0, "N", set_checkpoint_keep,
     "Keep so many checkpoints, the newest (default: 2)"},
    {"checkpoint-signal", 0, "SIGNAL[@TIME]", set_checkpoint_signal,
     "Signal the command before each checkpoint, and wait TIME (10s)"},
    {"restore-signal", 0, "SIGNAL", set_restore_signal,
     "Signal the command when it goes on from a checkpoint"},
    {"hold", 'H', NULL, set_hold, "Do not start before `berth release`"},
    {"no-requeue", 0, NULL, set_no_requeue, "Do not start again when the node is lost"},
    {"guaranteed", 0, NULL, set_guaranteed, "Never start in what other jobs leave unused"},
    {"key", 0, "TEXT", set_key, "Submit once: the same key again gives the same job"},
};

BerthJobOptions *berth_job_options_new(void)
{
    BerthJobOptions *options = g_new0(BerthJobOptions, 1);
    options->environment = g_ptr_array_new_with_free_func(g_free);
    options->inputs = g_ptr_array_new_with_free_func(g_free);
    return options;
}

void berth_job_options_free(BerthJobOptions *options)
{
    g_free(options->image);
    g_free(options->name);
    g_free(options->chdir);
    g_free(options->output);
    g_free(options->error);
    g_free(options->each);
    g_strfreev(options->nodes);
    g_ptr_array_unref(options->environment);
    g_ptr_array_unref(options->inputs);
    g_free(options->idempotency_key);
    g_clear_pointer(&options->array, berth_index_set_free);
    g_clear_pointer(&options->dependencies, g_ptr_array_unref);
    g_free(options);
}

static const JobOption *find_option(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(job_options); i++) {
        const JobOption *option = &job_options[i];
        if (g_str_has_prefix(name, "--") ? g_str_equal(option->name, name + 2)
                                         : name[0] == '-' && name[1] == option->letter)
            return option;
    }
    return NULL;
}

/* The option that WORD names, with the value that hangs on it: "--name=x", "-nx". */
static const JobOption *split_word(const char *word, char **out_name, const char **out_value)
{
    const char *equals = strchr(word, '=');
    gboolean is_long = g_str_has_prefix(word, "--");
    *out_value = NULL;
    if (is_long && equals != NULL)
        *out_value = equals + 1;
    else if (!is_long && word[2] != '\0')
        *out_value = word + 2;
    *out_name = is_long && equals ? g_strndup(word, (gsize)(equals - word))
                : is_long         ? g_strdup(word)
                                  : g_strndup(word, 2);
    return find_option(*out_name);
}

/* Appends WORD as GOption wants it: "-Hc2" as "-H" "-c" "2". TRUE: its value is the next argument. */
static gboolean append_word(GPtrArray *words, const char *word)
{
    g_autofree char *name = NULL;
    const char *value;
    const JobOption *option = split_word(word, &name, &value);
    if (option != NULL && option->argument != NULL) {
        g_ptr_array_add(words, g_steal_pointer(&name));
        if (value != NULL)
            g_ptr_array_add(words, g_strdup(value));
        return value == NULL;
    }
    if (option != NULL && word[1] != '-' && value != NULL) {
        g_autofree char *others = g_strconcat("-", value, NULL);
        g_ptr_array_add(words, g_steal_pointer(&name));
        return append_word(words, others);
    }
    g_ptr_array_add(words, g_strdup(word)); /* a flag, --help, or GOption's to refuse */
    return FALSE;
}

GPtrArray *berth_job_option_words(int argc, char **argv, int *out_rest, gboolean *out_dashes)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    int i = 1;
    g_ptr_array_add(words, g_strdup(argv[0]));
    for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0' && !g_str_equal(argv[i], "--");
         i++) {
        if (append_word(words, argv[i]) && i + 1 < argc)
            g_ptr_array_add(words, g_strdup(argv[++i]));
    }
    *out_dashes = i < argc && g_str_equal(argv[i], "--");
    *out_rest = *out_dashes ? i + 1 : i;
    g_ptr_array_add(words, NULL);
    return words;
}

gboolean berth_job_options_want_terminal(char **argv, int rest)
{
    for (int i = 1; i < rest; i++) {
        if (g_str_equal(argv[i], "-it") || g_str_equal(argv[i], "-ti"))
            return TRUE;
    }
    return FALSE;
}

/* VALUE NULL: a flag that stands alone. */
static gboolean take_value(BerthJobOptions *options, const JobOption *option, const char *value,
                           GError **error)
{
    if (value == NULL || option->takes_bytes || g_utf8_validate(value, -1, NULL))
        return option->set(options, value, error);
    g_autofree char *shown = berth_printable(value);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "\"%s\" is not valid UTF-8",
                shown);
    return FALSE;
}

static gboolean option_callback(const char *name, const char *value, gpointer data, GError **error)
{
    const JobOption *option = find_option(name);
    g_autoptr(GError) local = NULL;
    g_assert(option != NULL);
    if (take_value(data, option, option->argument ? value : NULL, &local))
        return TRUE;
    g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s: %s", name, local->message);
    return FALSE;
}

gboolean berth_job_options_set(BerthJobOptions *options, const char *name, const char *value,
                               GError **error)
{
    g_autofree char *dashed = g_strconcat("--", name, NULL);
    const JobOption *option = find_option(dashed);
    if (option != NULL)
        return take_value(options, option, value, error);
    g_autofree char *shown = berth_printable(name);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "there is no option \"%s\"; berth submit --help shows those that there are", shown);
    return FALSE;
}

const GOptionEntry *berth_job_option_entries(void)
{
    static GOptionEntry entries[G_N_ELEMENTS(job_options) + 1];
    for (gsize i = 0; i < G_N_ELEMENTS(job_options); i++) {
        entries[i].long_name = job_options[i].name;
        entries[i].short_name = job_options[i].letter;
        /* Values as they are: GOption would convert others from the locale's character set. */
        entries[i].flags = job_options[i].argument ? G_OPTION_FLAG_FILENAME : G_OPTION_FLAG_NO_ARG;
        entries[i].arg = G_OPTION_ARG_CALLBACK;
        entries[i].arg_data = (gpointer)option_callback;
        entries[i].description = job_options[i].help;
        entries[i].arg_description = job_options[i].argument;
    }
    return entries;
}

/* One "#BERTH ..." line: the options on it, as on a command line. */
static gboolean take_directive(BerthJobOptions *options, const char *line, GError **error)
{
    g_auto(GStrv) words = NULL;
    int argc, rest;
    gboolean dashes;
    g_autofree char *command = g_strconcat("#BERTH", line, NULL);
    if (!g_shell_parse_argv(command + 1, &argc, &words, NULL)) {
        g_autofree char *shown = berth_printable(command);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "a quote is not closed, or the line ends in a backslash: %s", shown);
        return FALSE;
    }
    g_autoptr(GPtrArray) split = berth_job_option_words(argc, words, &rest, &dashes);
    g_auto(GStrv) options_only = g_strdupv((char **)split->pdata);
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_help_enabled(context, FALSE);
    GOptionGroup *group = g_option_group_new("", "", "", options, NULL);
    g_option_group_add_entries(group, berth_job_option_entries());
    g_option_context_set_main_group(context, group);
    g_autoptr(GError) local = NULL;
    if (!g_option_context_parse_strv(context, &options_only, &local)) {
        g_autofree char *message = berth_cli_option_error(local, berth_job_option_entries());
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, message);
        return FALSE;
    }
    if (rest == argc)
        return TRUE;
    /* Not before: it may be the value of an option that there is not. */
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "\"%s\" is not an option",
                words[rest]);
    return FALSE;
}

/* What begins lines like ours in scripts for other batch systems; NULL: LINE is none of them. */
static const char *foreign_directive(const char *line)
{
    static const char *const words[] = {"#SBATCH", "#PBS", "#BSUB"};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        if (g_str_has_prefix(line, words[i]) && g_ascii_isspace(line[strlen(words[i])]))
            return words[i];
    }
    return NULL;
}

static gboolean is_directive(const char *line)
{
    return g_str_has_prefix(line, "#BERTH") && g_ascii_isspace(line[strlen("#BERTH")]);
}

gboolean berth_job_options_from_script(BerthJobOptions *options, const char *script, gsize length,
                                       const char *name, GError **error)
{
    const char *end = script + length;
    guint number = 0;
    for (const char *line = script; line < end;) {
        const char *stop = memchr(line, '\n', (gsize)(end - line));
        if (stop == NULL)
            stop = end;
        g_autofree char *text = g_strndup(line, (gsize)(stop - line));
        g_strstrip(text);
        number++;
        line = stop + 1;
        if (text[0] != '#' && text[0] != '\0')
            return TRUE;
        if (!is_directive(text)) {
            if (options->foreign == NULL)
                options->foreign = foreign_directive(text);
            continue;
        }
        g_autoptr(GError) local = NULL;
        if (!take_directive(options, text + strlen("#BERTH"), &local)) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s:%u: %s", name, number,
                        local->message);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean berth_job_options_from_environment(BerthJobOptions *options, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(job_options); i++) {
        g_autofree char *upper = g_ascii_strup(job_options[i].name, -1);
        g_strdelimit(upper, "-", '_');
        g_autofree char *variable = g_strconcat("BERTH_", upper, NULL);
        const char *value = g_getenv(variable);
        if (value == NULL || *value == '\0')
            continue;
        g_autoptr(GError) local = NULL;
        if (!take_value(options, &job_options[i], value, &local)) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "environment variable %s: %s", variable, local->message);
            return FALSE;
        }
    }
    return TRUE;
}
