/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is said to systemd of commands on the host. systemd-run passes its own standard streams on, so that
 * the command's are pipes of the agent's all the same. */
#include <config.h>

#include "nodeagent/node_unit.h"

#include <string.h>

#define STOP_SEC "1"

gboolean berth_node_unit_is_possible(void)
{
    g_autofree char *run = g_find_program_in_path("systemd-run");
    return run != NULL && g_file_test("/run/systemd/system", G_FILE_TEST_IS_DIR); /* sd_booted(3) */
}

/* The last of PATH that is a service or a scope: "/system.slice/berth-node.service". */
static char *unit_of_path(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (guint i = g_strv_length(parts); i-- > 0;) {
        if (g_str_has_suffix(parts[i], ".service") || g_str_has_suffix(parts[i], ".scope"))
            return g_strdup(parts[i]);
    }
    return NULL;
}

/* systemd's own hierarchy is named, or the only one: "1:name=systemd:/PATH", "0::/PATH". */
char *berth_node_unit_of(const char *cgroups)
{
    g_auto(GStrv) lines = g_strsplit(cgroups, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ":", 3);
        if (g_strv_length(fields) != 3 ||
            (*fields[1] != '\0' && !g_str_equal(fields[1], "name=systemd")))
            continue;
        char *unit = unit_of_path(fields[2]);
        if (unit != NULL)
            return unit;
    }
    return NULL;
}

char *berth_node_unit_name(void)
{
    return g_strdup_printf("berth-exec-%08x%08x.service", g_random_int(), g_random_int());
}

/* systemd takes $NAME in a command's words for a variable of its own, and $$ for a dollar. */
static char *escape(const char *word)
{
    g_autoptr(GString) escaped = g_string_new(word);
    g_string_replace(escaped, "$", "$$", 0);
    return g_strdup(escaped->str);
}

char **berth_node_unit_argv(const char *unit, const char *bound_to, char *const *command, gsize n)
{
    static const char *const fixed[] = {"systemd-run",
                                        "--quiet",
                                        "--collect",
                                        "--pipe",
                                        "--wait",
                                        "--service-type=exec",
                                        "--property=WorkingDirectory=/",
                                        "--property=KillSignal=SIGHUP",
                                        "--property=SendSIGKILL=yes",
                                        "--property=TimeoutStopSec=" STOP_SEC};
    GPtrArray *argv = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(argv, g_strdup(fixed[i]));
    g_ptr_array_add(argv, g_strdup_printf("--unit=%s", unit));
    if (bound_to != NULL) {
        g_ptr_array_add(argv, g_strdup_printf("--property=BindsTo=%s", bound_to));
        g_ptr_array_add(argv, g_strdup_printf("--property=After=%s", bound_to));
    }
    g_ptr_array_add(argv, g_strdup("--"));
    for (gsize i = 0; i < n; i++)
        g_ptr_array_add(argv, escape(command[i]));
    g_ptr_array_add(argv, NULL);
    return (char **)g_ptr_array_free(argv, FALSE);
}

static void tell_systemd(const char *verb, const char *option, const char *unit)
{
    const char *const argv[] = {"systemctl", verb, option, "--", unit, NULL};
    g_autoptr(GError) error = NULL;
    if (!g_spawn_async("/", (char **)argv, NULL,
                       G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL |
                           G_SPAWN_STDERR_TO_DEV_NULL,
                       NULL, NULL, NULL, &error))
        g_warning("cannot run systemctl %s for %s: %s", verb, unit, error->message);
}

void berth_node_unit_signal(const char *unit, int signal)
{
    g_autofree char *option = g_strdup_printf("--signal=%d", signal);
    tell_systemd("kill", option, unit);
}

void berth_node_unit_stop(const char *unit)
{
    tell_systemd("stop", "--no-block", unit);
}
