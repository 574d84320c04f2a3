/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look at what a configuration names, and how --check-config tells. It changes nothing;
 * that the daemons check the same again when they start is theirs. */
#include <config.h>

#include "common/config_warnings.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rpc.h"

GPtrArray *berth_config_warnings_new(void)
{
    return g_ptr_array_new_with_free_func(g_free);
}

/* Warns unless PATH is of TYPE (S_IFREG, S_IFDIR), which WHAT names, and allows MODE. */
static void warn_unless(GPtrArray *warnings, const char *option, const char *path, mode_t type,
                        const char *what, int mode)
{
    struct stat status;
    char *text = NULL;
    if (stat(path, &status) != 0 && errno == ENOENT)
        text = g_strdup_printf("%s: there is no %s %s", option, what, path);
    else if (stat(path, &status) != 0 || access(path, mode) != 0)
        text = g_strdup_printf("%s: cannot use %s: %s", option, path, g_strerror(errno));
    else if ((status.st_mode & S_IFMT) != type)
        text = g_strdup_printf("%s: %s is not a %s", option, path, what);
    if (text != NULL)
        g_ptr_array_add(warnings, text);
}

void berth_config_warn_file(GPtrArray *warnings, const char *option, const char *path)
{
    warn_unless(warnings, option, path, S_IFREG, "file", R_OK);
}

void berth_config_warn_directory(GPtrArray *warnings, const char *option, const char *path)
{
    warn_unless(warnings, option, path, S_IFDIR, "directory", R_OK | W_OK | X_OK);
}

void berth_config_warn_tls(GPtrArray *warnings, const char *group, const char *certificate,
                           const char *key, const char *ca, const char *name)
{
    const struct {
        const char *key;
        const char *path;
    } files[] = {{"certificate", certificate}, {"key", key}, {"ca", ca}};
    guint n_before = warnings->len;
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *option = g_strdup_printf("[%s] %s", group, files[i].key);
        berth_config_warn_file(warnings, option, files[i].path);
    }
    if (warnings->len > n_before)
        return;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthTlsConfig) tls = berth_tls_config_new(certificate, key, ca, &error);
    if (tls == NULL) {
        g_ptr_array_add(warnings, g_strdup_printf("[%s] %s", group, error->message));
        return;
    }
    g_autofree char *owner = berth_tls_config_name(tls);
    if (name != NULL && !g_str_equal(owner, name))
        g_ptr_array_add(warnings, g_strdup_printf("[%s] certificate: %s is for \"%s\", not for "
                                                  "\"%s\": the scheduler will refuse it",
                                                  group, certificate, owner, name));
}

void berth_config_warnings_print(GPtrArray *warnings, const char *program, const char *path)
{
    for (guint i = 0; i < warnings->len; i++)
        g_printerr("%s: warning: %s\n", program, (const char *)g_ptr_array_index(warnings, i));
    if (warnings->len == 0)
        g_print("%s: good\n", path);
    else
        g_print("%s: well formed, but this host cannot use it as it is (%u warning%s); see "
                "berth-setup(7)\n",
                path, warnings->len, warnings->len == 1 ? "" : "s");
}
