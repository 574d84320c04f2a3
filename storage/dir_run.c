/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the running of a program (qemu-img) from a worker thread, with a deadline. The program is
 * gone when berth_dir_run() returns. */
#include <signal.h>
#include <string.h>

#include "common/descriptors.h"
#include "common/error.h"
#include "storage/dir_internal.h"

typedef struct {
    GSubprocess *process;
    gboolean is_late;
    gboolean is_done;
    GBytes *output;
    GError *error;
} Run;

static gboolean on_deadline(gpointer data)
{
    Run *run = data;
    run->is_late = TRUE;
    g_subprocess_force_exit(run->process);
    return G_SOURCE_REMOVE;
}

static void on_done(GObject *source, GAsyncResult *result, gpointer data)
{
    Run *run = data;
    g_subprocess_communicate_finish(run->process, result, &run->output, NULL, &run->error);
    run->is_done = TRUE;
}

/* Waits in a context of its own: a worker has no main loop. */
static void wait_until_done(Run *run, guint timeout_sec)
{
    g_autoptr(GMainContext) context = g_main_context_new();
    g_main_context_push_thread_default(context);
    g_autoptr(GSource) deadline = g_timeout_source_new_seconds(timeout_sec);
    g_source_set_callback(deadline, on_deadline, run, NULL);
    g_source_attach(deadline, context);
    g_subprocess_communicate_async(run->process, NULL, NULL, on_done, run);
    while (!run->is_done)
        g_main_context_iteration(context, TRUE);
    g_source_destroy(deadline);
    g_main_context_pop_thread_default(context);
}

gboolean berth_dir_run(const BerthDirStorage *self, const char *const *argv, GError **error)
{
    g_autoptr(GError) local_error = NULL;
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_set_child_setup(launcher, berth_descriptors_restore_limit, NULL, NULL);
    g_autoptr(GSubprocess) process = g_subprocess_launcher_spawnv(launcher, argv, &local_error);
    if (process == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL,
                    "cannot run %s: %s (Debian has qemu-img in the package qemu-utils)", argv[0],
                    local_error->message);
        return FALSE;
    }
    Run run = {.process = process};
    wait_until_done(&run, self->op_timeout_sec);
    g_autoptr(GBytes) output = run.output;
    g_autoptr(GError) run_error = run.error;
    if (run.is_late) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                    "%s did not end within %u s: check the file system of %s", argv[0],
                    self->op_timeout_sec, self->path);
        return FALSE;
    }
    if (run_error == NULL && g_subprocess_get_successful(process))
        return TRUE;
    gsize length = 0;
    const char *data = output != NULL ? g_bytes_get_data(output, &length) : "";
    g_autofree char *text = g_utf8_make_valid(data, (gssize)MIN(length, 2000));
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "%s failed: %s", argv[0],
                run_error != NULL ? run_error->message : g_strstrip(text));
    return FALSE;
}
