/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how dependencies are written. The words are those that users of Slurm know. */
#include "cli/dependency.h"

#include "cli/format.h"
#include "common/error.h"
#include "common/id.h"

#include <string.h>

#define KIND(name) BERTH__DEPENDENCY__KIND__##name

static const struct {
    const char *word;
    Berth__Dependency__Kind kind;
} words[] = {
    {"after", KIND(AFTER_START)},   {"afterany", KIND(AFTER_ANY)},
    {"afterok", KIND(AFTER_OK)},    {"afternotok", KIND(AFTER_NOT_OK)},
    {"singleton", KIND(SINGLETON)}, {"aftercorr", KIND(AFTER_CORR)},
};

static void dependency_free(gpointer dependency)
{
    berth__dependency__free_unpacked(dependency, NULL);
}

static void add(GPtrArray *dependencies, Berth__Dependency__Kind kind, guint64 job)
{
    Berth__Dependency *dependency = g_new(Berth__Dependency, 1);
    berth__dependency__init(dependency);
    dependency->kind = kind;
    dependency->job = job;
    g_ptr_array_add(dependencies, dependency);
}

static gboolean refuse(const char *part, const char *why, GError **error)
{
    g_autofree char *shown = g_utf8_make_valid(part, -1);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%.80s\" is not what a job can come after: %s; write after:12, afterany:12, "
                "afterok:12:13, afternotok:12, singleton or, of an array, aftercorr:12, several "
                "with commas "
                "between them",
                shown, why);
    return FALSE;
}

static Berth__Dependency__Kind kind_of(const char *word)
{
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (g_str_equal(words[i].word, word))
            return words[i].kind;
    return KIND(NONE);
}

/* "afterok:12:13" */
static gboolean parse_part(const char *part, GPtrArray *out, GError **error)
{
    g_auto(GStrv) pieces = g_strsplit(part, ":", -1);
    Berth__Dependency__Kind kind = pieces[0] != NULL ? kind_of(pieces[0]) : KIND(NONE);
    if (strchr(part, '?') != NULL)
        return refuse(part, "there are no alternatives (?), all must be met", error);
    if (kind == KIND(NONE))
        return refuse(part, "there is no such word", error);
    if (kind == KIND(SINGLETON)) {
        if (pieces[1] != NULL)
            return refuse(part, "singleton names no job", error);
        add(out, kind, 0);
        return TRUE;
    }
    if (pieces[1] == NULL)
        return refuse(part, "it names no job", error);
    for (char **piece = pieces + 1; *piece != NULL; piece++) {
        guint64 job = 0;
        g_autoptr(BerthIndexSet) tasks = NULL;
        if (!berth_job_tasks_parse(*piece, &job, &tasks, error))
            return FALSE;
        if (tasks != NULL)
            return refuse(
                part,
                "it names tasks; what is waited for are whole jobs or, task by task, those of "
                "an array (aftercorr)",
                error);
        add(out, kind, job);
    }
    return TRUE;
}

GPtrArray *berth_dependencies_parse(const char *text, GError **error)
{
    g_autoptr(GPtrArray) dependencies = g_ptr_array_new_with_free_func(dependency_free);
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    if (*text == '\0') {
        refuse(text, "it is empty", error);
        return NULL;
    }
    for (char **part = parts; *part != NULL; part++)
        if (!parse_part(*part, dependencies, error))
            return NULL;
    return g_steal_pointer(&dependencies);
}

char *berth_dependency_format(const Berth__Dependency *dependency)
{
    const char *word = "?";
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (words[i].kind == dependency->kind)
            word = words[i].word;
    return dependency->job != 0 ? g_strdup_printf("%s:%" G_GUINT64_FORMAT, word, dependency->job)
                                : g_strdup(word);
}

char *berth_dependency_describe(const Berth__Dependency *dependency)
{
    g_autofree char *text = berth_dependency_format(dependency);
    if (dependency->job == 0)
        return g_steal_pointer(&text);
    gboolean is_known = dependency->state != BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED;
    return g_strdup_printf("%s (%s)", text,
                           is_known ? berth_job_state_name(dependency->state) : "ended long ago");
}
