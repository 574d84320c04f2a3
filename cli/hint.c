/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is said to who names an option or a command that there is not: the words of other batch
 * systems and of other tools by a table, slips of the finger by their distance. */
#include "cli/hint.h"

#include "cli/commands.h"

#include <string.h>

#define WORD_MAX 32u /* longer words are no slips */

typedef struct {
    const char *word;
    const char *ours; /* an option of the verb; NULL: TEXT in any case */
    const char *text;
} Synonym;

#define NOT_INTERACTIVE                                                                            \
    "jobs are not interactive: they have no terminal, and their standard input is /dev/null"
#define NO_ARRAYS       "there are no array jobs yet; submit one job for each element"
#define NO_DEPENDENCIES "jobs cannot depend on each other yet; wait for the first with `berth wait`"

/* Options of sbatch(1), srun(1), qsub(1) and docker-run(1). */
static const Synonym options[] = {
    {"mem", "memory", NULL},
    {"cpus", "vcpus", NULL},
    {"cpus-per-task", "vcpus", NULL},
    {"ntasks", "vcpus", NULL},
    {"tmp", "disk", NULL},
    {"walltime", "time", NULL},
    {"time-limit", "time", NULL},
    {"job-name", "name", NULL},
    {"export", "env", NULL},
    {"nodelist", "node", NULL},
    {"nodes", NULL, "a job has one guest, on one node; --node names the nodes that it may use"},
    {"stdout", "output", NULL},
    {"stderr", "error", NULL},
    {"workdir", "chdir", NULL},
    {"nice", NULL, "see --priority, whose sign is the opposite: more is sooner"},
    {"users", "user", NULL},
    {"states", "state", NULL},
    {"array", NULL, NO_ARRAYS},
    {"dependency", NULL, NO_DEPENDENCIES},
    {"depend", NULL, NO_DEPENDENCIES},
    {"partition", NULL, "there are no partitions or queues; --node names nodes"},
    {"queue", NULL, "there are no partitions or queues; --node names nodes"},
    {"wrap", NULL, "give the command after \"--\""},
    {"interactive", NULL, NOT_INTERACTIVE},
    {"tty", NULL, NOT_INTERACTIVE},
    {"pty", NULL, NOT_INTERACTIVE},
};

/* Commands of Slurm, PBS, and what others call ours. */
static const Synonym commands[] = {
    {"sbatch", "submit", NULL},
    {"qsub", "submit", NULL},
    {"salloc", NULL, NOT_INTERACTIVE},
    {"srun", "run", NULL},
    {"exec", "run", NULL},
    {"squeue", "ls", NULL},
    {"qstat", "ls", NULL},
    {"list", "ls", NULL},
    {"ps", "ls", NULL},
    {"jobs", "ls", NULL},
    {"queue", "ls", NULL},
    {"status", "ls", NULL},
    {"sacct", "ls --all", NULL},
    {"info", "show", NULL},
    {"inspect", "show", NULL},
    {"describe", "show", NULL},
    {"scontrol", "show", NULL},
    {"scancel", "cancel", NULL},
    {"qdel", "cancel", NULL},
    {"kill", "cancel", NULL},
    {"stop", "cancel", NULL},
    {"delete", "cancel", NULL},
    {"rm", "cancel", NULL},
    {"qhold", "hold", NULL},
    {"qrls", "release", NULL},
    {"output", "logs", NULL},
    {"cat", "logs", NULL},
    {"tail", "logs --follow", NULL},
    {"sinfo", "node ls", NULL},
    {"pbsnodes", "node ls", NULL},
    {"nodes", "node ls", NULL},
    {"hosts", "node ls", NULL},
    {"images", "image ls", NULL},
    {"import", "image import", NULL},
};

guint berth_hint_distance(const char *a, const char *b)
{
    gsize rows = strlen(a), columns = strlen(b);
    g_autofree guint *cells = g_new(guint, (rows + 1) * (columns + 1));
#define CELL(i, j) cells[(i) * (columns + 1) + (j)]
    for (gsize i = 0; i <= rows; i++)
        CELL(i, 0) = (guint)i;
    for (gsize j = 0; j <= columns; j++)
        CELL(0, j) = (guint)j;
    for (gsize i = 1; i <= rows; i++) {
        for (gsize j = 1; j <= columns; j++) {
            guint replaced = CELL(i - 1, j - 1) + (a[i - 1] != b[j - 1]);
            guint best = MIN(replaced, MIN(CELL(i - 1, j), CELL(i, j - 1)) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, CELL(i - 2, j - 2) + 1);
            CELL(i, j) = best;
        }
    }
#undef CELL
    return cells[(rows + 1) * (columns + 1) - 1];
}

/* The nearest name so far. */
typedef struct {
    const char *word;
    const char *name; /* NULL: none is near */
    guint distance;
} Nearest;

/* A slip is one letter in three at most, and two in all; the beginning of a name is as near as one. */
static void consider(Nearest *nearest, const char *name)
{
    gsize length = strlen(nearest->word);
    guint distance = berth_hint_distance(nearest->word, name);
    if (length >= 2 && g_str_has_prefix(name, nearest->word))
        distance = MIN(distance, 1);
    if (distance > MIN(length / 3, 2) && !(distance == 1 && length >= 2))
        return;
    if (nearest->name == NULL || distance < nearest->distance) {
        nearest->name = name;
        nearest->distance = distance;
    }
}

static const Synonym *find_synonym(const Synonym *synonyms, gsize n, const char *word)
{
    for (gsize i = 0; i < n; i++) {
        if (g_str_equal(synonyms[i].word, word))
            return &synonyms[i];
    }
    return NULL;
}

static gboolean has_entry(const GOptionEntry *entries, const char *name)
{
    for (; entries != NULL && entries->long_name != NULL; entries++) {
        if (g_str_equal(entries->long_name, name))
            return TRUE;
    }
    return FALSE;
}

char *berth_hint_option(const GOptionEntry *entries, const char *word)
{
    if (!g_str_has_prefix(word, "--"))
        return g_strdup("");
    g_autofree char *name = g_strndup(word + 2, strcspn(word + 2, "="));
    if (strlen(name) > WORD_MAX)
        return g_strdup("");
    const Synonym *synonym = find_synonym(options, G_N_ELEMENTS(options), name);
    if (synonym != NULL && synonym->ours != NULL && has_entry(entries, synonym->ours))
        return g_strdup_printf("; did you mean --%s?", synonym->ours);
    if (synonym != NULL && synonym->ours == NULL && has_entry(entries, "vcpus"))
        return g_strdup_printf("; %s", synonym->text);
    Nearest nearest = {.word = name};
    for (; entries != NULL && entries->long_name != NULL; entries++)
        consider(&nearest, entries->long_name);
    consider(&nearest, "help");
    return nearest.name ? g_strdup_printf("; did you mean --%s?", nearest.name) : g_strdup("");
}

char *berth_hint_command(const char *word)
{
    if (strlen(word) > WORD_MAX)
        return g_strdup("");
    const Synonym *synonym = find_synonym(commands, G_N_ELEMENTS(commands), word);
    if (synonym != NULL && synonym->ours == NULL)
        return g_strdup_printf("; %s", synonym->text);
    if (synonym != NULL)
        return g_strdup_printf("; did you mean \"berth %s\"?", synonym->ours);
    gsize n = 0;
    const BerthCommand *table = berth_commands(&n);
    Nearest nearest = {.word = word};
    for (gsize i = 0; i < n; i++) {
        g_autofree char *first = g_strndup(table[i].name, strcspn(table[i].name, " "));
        consider(&nearest, g_intern_string(first));
    }
    consider(&nearest, "help");
    return nearest.name ? g_strdup_printf("; did you mean \"berth %s\"?", nearest.name)
                        : g_strdup("");
}
