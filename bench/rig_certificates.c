/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how bench/rig gets its certificates (bench/rig_certificates.h): by openssl, one process each, as many at a time as there are
 * CPUs. */
#include "config.h"

#include "bench/rig_certificates.h"

#include "bench/rig_shard.h"

#include <gio/gio.h>

/* The directory may be kept, and nobody looks at its age. */
#define DAYS "3650"

/* In DIRECTORY. */
static GSubprocess *start(const char *directory, const char *const *argv, GError **error)
{
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_SILENCE);
    g_subprocess_launcher_set_cwd(launcher, directory);
    return g_subprocess_launcher_spawnv(launcher, argv, error);
}

static gboolean run(const char *directory, const char *const *argv, GError **error)
{
    g_autoptr(GSubprocess) process = start(directory, argv, error);
    return process != NULL && g_subprocess_wait_check(process, NULL, error);
}

static gboolean has(const char *directory, const char *file)
{
    g_autofree char *path = g_build_filename(directory, file, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static gboolean make_key(const char *directory, GError **error)
{
    const char *const make[] = {"openssl", "genpkey",   "-algorithm",
                                "EC",      "-pkeyopt",  "ec_paramgen_curve:P-256",
                                "-out",    "rig.key.1", NULL};
    const char *const publish[] = {"openssl", "pkey", "-in",     "rig.key.1",
                                   "-pubout", "-out", "rig.pub", NULL};
    const char *const keep[] = {"mv", "rig.key.1", "rig.key", NULL};
    return has(directory, "rig.key") ||
           (run(directory, make, error) && run(directory, publish, error) &&
            run(directory, keep, error));
}

/* NULL, and no ERROR: it is there. */
static GSubprocess *make_one(const char *directory, const char *name, GError **error)
{
    g_autofree char *file = g_strconcat(name, ".pem", NULL);
    g_autofree char *subject = g_strconcat("/CN=", name, NULL);
    /* Not the next of ca.srl, which another one may be reading. */
    g_autofree char *serial = g_strdup_printf("0x%08x%08x", g_random_int() | 1, g_random_int());
    const char *const argv[] = {"openssl", "x509",   "-new",        "-force_pubkey", "rig.pub",
                                "-subj",   subject,  "-set_serial", serial,          "-CA",
                                "ca.pem",  "-CAkey", "ca.key",      "-days",         DAYS,
                                "-out",    file,     NULL};
    return has(directory, file) ? NULL : start(directory, argv, error);
}

/* Waits for those that were started first until no more than LEFT run. */
static gboolean await(GQueue *running, guint left, GError **error)
{
    gboolean is_good = TRUE;
    while (running->length > left) {
        g_autoptr(GSubprocess) process = g_queue_pop_head(running);
        is_good = g_subprocess_wait_check(process, NULL, is_good ? error : NULL) && is_good;
    }
    return is_good;
}

static gboolean make_all(const char *directory, guint n_nodes, GQueue *running, GError **error)
{
    for (guint i = 0; i < n_nodes; i++) {
        GError *reason = NULL;
        g_autofree char *name = rig_node_name(i);
        GSubprocess *process = make_one(directory, name, &reason);
        if (reason != NULL) {
            g_propagate_error(error, reason);
            return FALSE;
        }
        if (process != NULL)
            g_queue_push_tail(running, process);
        if (!await(running, g_get_num_processors(), error))
            return FALSE;
    }
    return await(running, 0, error);
}

gboolean rig_certificates_make(const char *directory, guint n_nodes, GError **error)
{
    GQueue running = G_QUEUE_INIT;
    gboolean is_done = make_key(directory, error) && make_all(directory, n_nodes, &running, error);
    if (!is_done)
        g_prefix_error(error,
                       "cannot make the nodes' certificates in %s with openssl: ", directory);
    await(&running, 0, NULL);
    return is_done;
}
