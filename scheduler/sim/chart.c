/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from data to a picture: files, gnuplot, units of time. */
#include "config.h"

#include "scheduler/sim/chart.h"

#include "common/error.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>

/* At least two of the next unit are shown in it. */
const ChartUnit *chart_unit(double most_usec)
{
    static const ChartUnit units[] = {
        {"seconds", 1e6}, {"minutes", 60e6}, {"hours", 3600e6}, {"days", 86400e6}};
    guint i = 0;
    while (i + 1 < G_N_ELEMENTS(units) && most_usec >= 2 * units[i + 1].usec)
        i++;
    return &units[i];
}

GString *chart_script(const char *name, const char *title, const char *x, const char *y,
                      guint height)
{
    GString *script = g_string_new(NULL);
    g_string_append_printf(script,
                           "set terminal svg size 1000,%u dynamic noenhanced font 'sans-serif,12' "
                           "background '#ffffff'\nset output '%s.svg'\nset title '%s'\n"
                           "set xlabel '%s'\nset ylabel '%s'\nset grid\nset key outside right\n",
                           height, name, title, x, y);
    return script;
}

static gboolean write_file(const char *dir, const char *name, const char *suffix, const char *text,
                           GError **error)
{
    g_autofree char *path = g_strdup_printf("%s/%s.%s", dir, name, suffix);
    return g_file_set_contents(path, text, -1, error);
}

static gboolean run_gnuplot(const char *gnuplot, const char *dir, const char *name, GError **error)
{
    g_autofree char *script = g_strdup_printf("%s.gp", name);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, dir);
    g_subprocess_launcher_setenv(launcher, "LC_ALL", "C", TRUE);
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawn(launcher, error, gnuplot, script, NULL);
    g_autofree char *said = NULL;
    if (process == NULL || !g_subprocess_communicate_utf8(process, NULL, NULL, NULL, &said, error))
        return FALSE;
    if (g_subprocess_get_successful(process))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "gnuplot failed on %s/%s: %s", dir,
                script, said != NULL ? g_strstrip(said) : "it did not say why");
    return FALSE;
}

gboolean chart_draw(const char *gnuplot, const char *dir, const char *name, const GString *data,
                    const GString *script, GError **error)
{
    return write_file(dir, name, "dat", data->str, error) &&
           write_file(dir, name, "gp", script->str, error) &&
           run_gnuplot(gnuplot, dir, name, error);
}

gboolean chart_remove(const char *dir, const char *name, GError **error)
{
    static const char *const suffixes[] = {"svg", "gp", "dat"};
    for (guint i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        g_autofree char *path = g_strdup_printf("%s/%s.%s", dir, name, suffixes[i]);
        if (g_unlink(path) != 0 && errno != ENOENT) {
            berth_set_error_errno(error, errno, "--plot: cannot remove the old %s", path);
            return FALSE;
        }
    }
    return TRUE;
}
