/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the spelling of job, guest, disk and log names. Invariant: format(parse(x)) is x. */
#include "common/id.h"

#include "common/error.h"

#include <string.h>

/* Reads a number up to MAX in its one spelling and moves *TEXT past it. */
static gboolean read_number(const char **text, guint64 max, guint64 *out_value)
{
    const char *at = *text;
    guint64 value = 0;
    if (!g_ascii_isdigit(at[0]) || (at[0] == '0' && g_ascii_isdigit(at[1])))
        return FALSE;
    for (; g_ascii_isdigit(*at); at++) {
        guint64 digit = (guint64)(*at - '0');
        if (value > (max - digit) / 10)
            return FALSE;
        value = value * 10 + digit;
    }
    *text = at;
    *out_value = value;
    return TRUE;
}

static gboolean refuse(const char *text, const char *what, const char *form, GError **error)
{
    g_autofree char *escaped = g_strescape(text, NULL);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%.80s\" is not %s: it must be %s", escaped, what, form);
    return FALSE;
}

char *berth_job_id_format(guint64 job)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, job);
}

char *berth_task_id_format(guint64 job, guint32 task)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT "[%" G_GUINT32_FORMAT "]", job, task);
}

char *berth_task_name_format(guint64 job, gboolean of_array, guint32 task)
{
    return of_array ? berth_task_id_format(job, task) : berth_job_id_format(job);
}

gboolean berth_job_tasks_parse(const char *text, guint64 *out_job, BerthIndexSet **out_tasks,
                               GError **error)
{
    static const char form[] =
        "a number such as 123, or 123[4] or 123[0-9,20] for tasks of an array";
    const char *at = text;
    guint64 job = 0;
    BerthIndexSet *tasks = NULL;
    if (!read_number(&at, G_MAXUINT64, &job) || job == 0)
        return refuse(text, "a job", form, error);
    if (*at == '[') {
        gsize length = strlen(++at);
        if (length < 2 || at[length - 1] != ']')
            return refuse(text, "a job", form, error);
        g_autofree char *inside = g_strndup(at, length - 1);
        tasks = berth_index_set_parse(inside, G_MAXINT32, error);
        if (tasks == NULL)
            return FALSE;
    } else if (*at != '\0') {
        return refuse(text, "a job", form, error);
    }
    *out_job = job;
    *out_tasks = tasks;
    return TRUE;
}

/* --- PREFIX-JOB-TASK-GUEST-EPOCH ------------------------------------------------------------- */

static char *format_id(const char *prefix, const BerthGuestId *id)
{
    return g_strdup_printf("%s-%" G_GUINT64_FORMAT "-%" G_GUINT32_FORMAT "-%" G_GUINT32_FORMAT
                           "-%" G_GUINT32_FORMAT,
                           prefix, id->job, id->task, id->guest, id->epoch);
}

static gboolean parse_id(const char *prefix, const char *text, BerthGuestId *out_id, GError **error)
{
    guint64 job = 0, parts[3] = {0}; /* task, guest, epoch */
    gsize length = strlen(prefix);
    const char *at = text + length + 1;
    gboolean ok = strncmp(text, prefix, length) == 0 && text[length] == '-' &&
                  read_number(&at, G_MAXUINT64, &job) && job > 0;
    for (gsize i = 0; ok && i < G_N_ELEMENTS(parts); i++)
        ok = *at++ == '-' && read_number(&at, G_MAXUINT32, &parts[i]);
    if (!ok || *at != '\0') {
        g_autofree char *form = g_strdup_printf("%s-JOB-TASK-GUEST-EPOCH", prefix);
        return refuse(text, "a name of Berth's", form, error);
    }
    *out_id = (BerthGuestId){.job = job,
                             .task = (guint32)parts[0],
                             .guest = (guint32)parts[1],
                             .epoch = (guint32)parts[2]};
    return TRUE;
}

char *berth_guest_name_format(const BerthGuestId *id)
{
    return format_id("berth", id);
}

gboolean berth_guest_name_parse(const char *text, BerthGuestId *out_id, GError **error)
{
    return parse_id("berth", text, out_id, error);
}

char *berth_disk_id_format(const BerthGuestId *id)
{
    return format_id("disk", id);
}

gboolean berth_disk_id_parse(const char *text, BerthGuestId *out_id, GError **error)
{
    return parse_id("disk", text, out_id, error);
}

char *berth_log_id_format(const BerthGuestId *id)
{
    return format_id("log", id);
}

char *berth_log_name_format(const char *log_id, guint stream)
{
    return g_strconcat(log_id, stream == BERTH_STDERR ? ".err" : ".out", NULL);
}

gboolean berth_log_id_parse(const char *text, BerthGuestId *out_id, GError **error)
{
    return parse_id("log", text, out_id, error);
}

/* --- JOB-TASK-SERIAL ------------------------------------------------------------------------- */

char *berth_checkpoint_id_format(guint64 job, guint32 task, guint32 serial)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT "-%" G_GUINT32_FORMAT "-%" G_GUINT32_FORMAT, job,
                           task, serial);
}

gboolean berth_checkpoint_id_parse(const char *text, guint64 *out_job, guint32 *out_task,
                                   guint32 *out_serial, GError **error)
{
    guint64 job = 0, task = 0, serial = 0;
    const char *at = text;
    if (!read_number(&at, G_MAXUINT64, &job) || job == 0 || *at++ != '-' ||
        !read_number(&at, G_MAXUINT32, &task) || *at++ != '-' ||
        !read_number(&at, G_MAXUINT32, &serial) || *at != '\0')
        return refuse(text, "a checkpoint", "JOB-TASK-SERIAL", error);
    *out_job = job;
    *out_task = (guint32)task;
    *out_serial = (guint32)serial;
    return TRUE;
}

/* --- keys ------------------------------------------------------------------------------------ */

char *berth_job_path_format(const char *pattern, guint64 job, guint32 task)
{
    GString *path = g_string_new(NULL);
    for (const char *c = pattern; *c; c++) {
        if (c[0] == '%' && c[1] == 'j') {
            g_string_append_printf(path, "%" G_GUINT64_FORMAT, job);
            c++;
        } else if (c[0] == '%' && c[1] == 'a') {
            g_string_append_printf(path, "%" G_GUINT32_FORMAT, task);
            c++;
        } else if (c[0] == '%' && c[1] == '%') {
            g_string_append_c(path, '%');
            c++;
        } else {
            g_string_append_c(path, *c);
        }
    }
    return g_string_free(path, FALSE);
}

gboolean berth_job_path_is_of_task(const char *pattern)
{
    g_autofree char *one = berth_job_path_format(pattern, 1, 1);
    g_autofree char *other = berth_job_path_format(pattern, 1, 2);
    return strcmp(one, other) != 0;
}

gboolean berth_guest_id_equal(const BerthGuestId *a, const BerthGuestId *b)
{
    return a->job == b->job && a->task == b->task && a->guest == b->guest && a->epoch == b->epoch;
}

guint berth_guest_id_hash(gconstpointer id)
{
    const BerthGuestId *guest = id;
    guint64 hash = guest->job * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    hash ^= ((guint64)guest->task << 32 | guest->epoch) * G_GUINT64_CONSTANT(0xc2b2ae3d27d4eb4f);
    hash ^= guest->guest;
    return (guint)(hash ^ hash >> 32);
}

gboolean berth_guest_id_equal_func(gconstpointer a, gconstpointer b)
{
    return berth_guest_id_equal(a, b);
}
