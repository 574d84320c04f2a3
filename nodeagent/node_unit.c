/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is said to systemd of commands on the host. systemd-run passes its own standard streams on, so that
 * the command's are pipes of the agent's all the same.
 *
 * A unit is tied to nothing: the command that restarts the agent goes on when the agent ends, and systemd-run
 * with it. What it writes then fails, and does not end it (IgnoreSIGPIPE=, systemd.exec(5)). */
#include <config.h>

#include "nodeagent/node_unit.h"

#include <string.h>

#define STOP_SEC "1"

gboolean berth_node_unit_is_possible(void)
{
    g_autofree char *run = g_find_program_in_path("systemd-run");
    return run != NULL && g_file_test("/run/systemd/system", G_FILE_TEST_IS_DIR); /* sd_booted(3) */
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

char **berth_node_unit_argv(const char *unit, char *const *command, gsize n)
{
    static const char *const fixed[] = {"systemd-run",
                                        "--quiet",
                                        "--collect",
                                        "--pipe",
                                        "--wait",
                                        "--service-type=exec",
                                        "--property=WorkingDirectory=/",
                                        "--property=IgnoreSIGPIPE=yes",
                                        "--property=KillSignal=SIGHUP",
                                        "--property=SendSIGKILL=yes",
                                        "--property=TimeoutStopSec=" STOP_SEC};
    GPtrArray *argv = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(argv, g_strdup(fixed[i]));
    g_ptr_array_add(argv, g_strdup_printf("--unit=%s", unit));
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
