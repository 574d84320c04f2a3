/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how bench/rig gets its certificates (bench/rig_certificates.h): by openssl, one process each. */
#include "config.h"

#include "bench/rig_certificates.h"

#include "bench/rig_shard.h"

#include <gio/gio.h>

/* In DIRECTORY. */
static gboolean run(const char *directory, const char *const *argv, GError **error)
{
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_SILENCE);
    g_subprocess_launcher_set_cwd(launcher, directory);
    g_autoptr(GSubprocess) process = g_subprocess_launcher_spawnv(launcher, argv, error);
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

static gboolean make_one(const char *directory, const char *name, GError **error)
{
    g_autofree char *file = g_strconcat(name, ".pem", NULL);
    g_autofree char *subject = g_strconcat("/CN=", name, NULL);
    const char *const argv[] = {
        "openssl", "x509",   "-new",   "-force_pubkey", "rig.pub", "-subj", subject, "-CA",
        "ca.pem",  "-CAkey", "ca.key", "-days",         "30",      "-out",  file,    NULL};
    return has(directory, file) || run(directory, argv, error);
}

gboolean rig_certificates_make(const char *directory, guint n_nodes, GError **error)
{
    if (!make_key(directory, error)) {
        g_prefix_error(error, "cannot make the nodes' key in %s with openssl: ", directory);
        return FALSE;
    }
    for (guint i = 0; i < n_nodes; i++) {
        g_autofree char *name = rig_node_name(i);
        if (!make_one(directory, name, error)) {
            g_prefix_error(error, "cannot make the certificate of %s in %s with openssl: ", name,
                           directory);
            return FALSE;
        }
    }
    return TRUE;
}
