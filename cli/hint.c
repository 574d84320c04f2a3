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
#define NO_PARTITIONS "there are no partitions or queues; --node names nodes"
#define NO_DEVICES    "there are no GPUs and no other generic resources"
#define NO_MAIL       "no mail is sent; `berth wait` returns when a job has ended"

/* Options of sbatch(1), srun(1), qsub(1) and docker-run(1), long ones and letters. */
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
    {"every", "checkpoint-every", NULL},
    {"users", "user", NULL},
    {"states", "state", NULL},
    {"depend", "dependency", NULL},
    {"after", "dependency", NULL},
    {"partition", NULL, NO_PARTITIONS},
    {"queue", NULL, NO_PARTITIONS},
    {"gres", NULL, NO_DEVICES},
    {"gpus", NULL, NO_DEVICES},
    {"mail-type", NULL, NO_MAIL},
    {"mail-user", NULL, NO_MAIL},
    {"wrap", NULL, "give the command after \"--\""},
    {"interactive", NULL, NOT_INTERACTIVE},
    {"tty", NULL, NOT_INTERACTIVE},
    {"pty", NULL, NOT_INTERACTIVE},
    {"J", "name", NULL},
    {"N", NULL, "--name names a job (-N of PBS); it has one guest, on one node (-N of Slurm)"},
    {"q", NULL, NO_PARTITIONS},
    {"G", NULL, NO_DEVICES},
    {"l", NULL, "see --vcpus, --memory and --time"},
};

/* Commands of Slurm, PBS, and what others call ours. */
static const Synonym commands[] = {
    {"sbatch", "submit", NULL},
    {"qsub", "submit", NULL},
    {"salloc", NULL, NOT_INTERACTIVE},
    {"srun", "run", NULL},
    {"squeue", "ls", NULL},
    {"qstat", "ls", NULL},
    {"list", "ls", NULL},
    {"ps", "ls", NULL},
    {"jobs", "ls", NULL},
    {"queue", "ls", NULL},
    {"status", "ls", NULL},
    {"sacct", "ls --all", NULL},
    {"info", NULL,
     "`berth version` is about the cluster, `berth node ls` about nodes, `berth show` about a job"},
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
    {"watch", "events --follow", NULL},
    {"history", "events", NULL},
    {"qrls", "release", NULL},
    {"suspend", "freeze", NULL},
    {"pause", "freeze", NULL},
    {"resume", "thaw", NULL},
    {"continue", "thaw", NULL},
    {"unfreeze", "thaw", NULL},
    {"move", "migrate", NULL},
    {"grow", "resize", NULL},
    {"shrink", "resize", NULL},
    {"save", "checkpoint", NULL},
    {"snapshot", "checkpoint", NULL},
    {"rollback", "restore", NULL},
    {"checkpoints", "checkpoint ls", NULL},
    {"checkpoint list", "checkpoint ls", NULL},
    {"checkpoint remove", "checkpoint rm", NULL},
    {"checkpoint delete", "checkpoint rm", NULL},
    {"output", "logs", NULL},
    {"cat", "logs", NULL},
    {"tail", "logs --follow", NULL},
    {"sinfo", "node ls", NULL},
    {"pbsnodes", "node ls", NULL},
    {"nodes", "node ls", NULL},
    {"hosts", "node ls", NULL},
    {"images", "image ls", NULL},
    {"import", "image import", NULL},
    {"node list", "node ls", NULL},
    {"node info", "node show", NULL},
    {"node resume", "node undrain", NULL},
    {"node evacuate", "node drain", NULL},
    {"image list", "image ls", NULL},
    {"image info", "image show", NULL},
    {"image inspect", "image show", NULL},
    {"image add", "image import", NULL},
    {"image load", "image import", NULL},
    {"image remove", "image rm", NULL},
    {"image delete", "image rm", NULL},
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

/* Of letters in one word ("-tJ") the first that is none of ENTRIES, which was not understood. */
static char *unknown_letter(const GOptionEntry *entries, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const GOptionEntry *entry = entries;
        while (entry != NULL && entry->long_name != NULL && entry->short_name != *letters)
            entry++;
        if (entry == NULL || entry->long_name == NULL)
            return g_strndup(letters, 1);
    }
    return g_strdup("");
}

char *berth_hint_option(const GOptionEntry *entries, const char *word)
{
    gboolean is_long = g_str_has_prefix(word, "--");
    g_autofree char *name = is_long          ? g_strndup(word + 2, strcspn(word + 2, "="))
                            : word[0] == '-' ? unknown_letter(entries, word + 1)
                                             : g_strdup("");
    if (strlen(name) > WORD_MAX)
        return g_strdup("");
    const Synonym *synonym = find_synonym(options, G_N_ELEMENTS(options), name);
    if (synonym != NULL && synonym->ours != NULL && has_entry(entries, synonym->ours))
        return g_strdup_printf("; did you mean --%s?", synonym->ours);
    if (synonym != NULL && synonym->ours == NULL && has_entry(entries, "vcpus"))
        return g_strdup_printf("; %s", synonym->text);
    if (!is_long)
        return g_strdup("");
    Nearest nearest = {.word = name};
    for (; entries != NULL && entries->long_name != NULL; entries++)
        consider(&nearest, entries->long_name);
    consider(&nearest, "help");
    return nearest.name ? g_strdup_printf("; did you mean --%s?", nearest.name) : g_strdup("");
}

char *berth_hint_key(const GOptionEntry *entries, const char *const *others, const char *word)
{
    if (strlen(word) > WORD_MAX)
        return g_strdup("");
    const Synonym *synonym = find_synonym(options, G_N_ELEMENTS(options), word);
    if (synonym != NULL && synonym->ours != NULL && has_entry(entries, synonym->ours))
        return g_strdup_printf("; did you mean \"%s\"?", synonym->ours);
    Nearest nearest = {.word = word};
    for (; *others != NULL; others++)
        consider(&nearest, *others);
    for (; entries->long_name != NULL; entries++)
        consider(&nearest, entries->long_name);
    return nearest.name ? g_strdup_printf("; did you mean \"%s\"?", nearest.name) : g_strdup("");
}

/* The name of a command that is as near to WORD as a slip; of those of its group, if WORD names one
 * ("image lsi"). NULL: none. */
static const char *nearest_command(const char *word)
{
    gsize n = 0;
    const BerthCommand *table = berth_commands(&n);
    const char *space = strchr(word, ' ');
    gsize group = space ? (gsize)(space - word) + 1 : 0;
    Nearest nearest = {.word = word + group};
    for (gsize i = 0; i < n; i++) {
        if (strncmp(table[i].name, word, group) != 0)
            continue;
        const char *rest = table[i].name + group;
        g_autofree char *first = g_strndup(rest, strcspn(rest, " "));
        consider(&nearest, g_intern_string(first));
    }
    if (group == 0)
        consider(&nearest, "help");
    return nearest.name;
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
    const char *space = strchr(word, ' ');
    const char *name = nearest_command(word);
    return name ? g_strdup_printf("; did you mean \"berth %.*s%s\"?",
                                  space ? (int)(space - word) + 1 : 0, word, name)
                : g_strdup("");
}
