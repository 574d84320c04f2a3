/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the decision between KVM and emulation: an earlier outcome, a guest that is booted, and what
 * the configuration allows. The guest has no disk and no channel: berth-init says that it came up and
 * switches off. */
#include <config.h>

#include "nodeagent/probe.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

#include "common/error.h"
#include "nodeagent/console.h"

#define PROBE_MEMORY_MIB 128u
/* Libvirt may take so many times the guest's own deadline to start it: a busy host is no broken KVM. */
#define CREATE_DEADLINES 6u
#define GROUP            "probe"

struct BerthProbe {
    grefcount refs;
    gboolean is_closed;
    BerthHypervisor *hypervisor;
    const BerthNodeConfig *config;
    const BerthHost *host;
    char *cmdline;
    BerthProbeFunc func;
    gpointer user_data;
    char *cache_path;
    char *console_path;
    char *key;
    char *uuid; /* of its guest, by which the end of another's is none of its own */
    guint deadline_source;
    gboolean is_made;     /* create has answered */
    gboolean is_stopped;  /* its end was seen, perhaps before that */
    gboolean is_given_up; /* its deadline has passed */
    gboolean is_over;
    gint64 start_usec;
};

void berth_probe_result_free(BerthProbeResult *result)
{
    if (result == NULL)
        return;
    g_free(result->reason);
    g_free(result);
}

/* --- the decision --------------------------------------------------------------------------- */

/* Changes whenever the file was replaced or written. */
static void append_file(GString *key, const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        g_string_append_printf(key, " %s:none", path);
    else
        g_string_append_printf(key, " %s:%llu:%llu:%lld:%lld.%09ld", path,
                               (unsigned long long)status.st_dev, (unsigned long long)status.st_ino,
                               (long long)status.st_size, (long long)status.st_mtim.tv_sec,
                               status.st_mtim.tv_nsec);
}

/* No value of the configuration is empty. */
static const char *or_none(const char *value)
{
    return value == NULL ? "" : value;
}

char *berth_probe_key(const char *boot_id, const BerthHost *host, const BerthNodeConfig *config)
{
    GString *key = g_string_new(boot_id);
    g_string_append_printf(key, " qemu-%s %s cpu:%s partition:%s", host->qemu_version,
                           host->machine, or_none(config->cpu_model), or_none(config->partition));
    append_file(key, config->kernel);
    append_file(key, config->initramfs);
    return g_string_free(key, FALSE);
}

gboolean berth_probe_cache_load(const char *path, const char *key, gboolean *out_works,
                                char **out_reason)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) error = NULL;
    if (!g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL))
        return FALSE;
    g_autofree char *found = g_key_file_get_string(file, GROUP, "key", NULL);
    g_autofree char *reason = g_key_file_get_string(file, GROUP, "reason", NULL);
    gboolean works = g_key_file_get_boolean(file, GROUP, "works", &error);
    if (g_strcmp0(found, key) != 0 || reason == NULL || error != NULL)
        return FALSE;
    *out_works = works;
    *out_reason = g_steal_pointer(&reason);
    return TRUE;
}

void berth_probe_cache_save(const char *path, const char *key, gboolean works, const char *reason)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) error = NULL;
    g_key_file_set_string(file, GROUP, "key", key);
    g_key_file_set_boolean(file, GROUP, "works", works);
    g_key_file_set_string(file, GROUP, "reason", reason);
    if (!g_key_file_save_to_file(file, path, &error))
        g_warning("the probe's outcome cannot be kept, the next start will probe again: %s",
                  error->message);
}

gboolean berth_probe_blames_kvm(const GError *error)
{
    g_autofree char *message = g_ascii_strdown(error->message, -1);
    return strstr(message, "kvm") != NULL;
}

BerthProbeResult *berth_probe_decide(gboolean works, const char *reason,
                                     const BerthNodeConfig *config, GError **error)
{
    if (!works && !config->allow_emulation) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                    "KVM does not work on this host: %s. Enable virtualisation in its firmware or, "
                    "in a virtual machine, nested virtualisation in its host; then restart "
                    "berth-node after removing %s/probe. To run guests in software all the same, "
                    "many times slower, set allow_emulation=true in [guests]",
                    reason, config->run_dir);
        return NULL;
    }
    BerthProbeResult *result = g_new0(BerthProbeResult, 1);
    result->use_kvm = works;
    result->reason = g_strdup(reason);
    return result;
}

/* --- the probe ------------------------------------------------------------------------------ */

static BerthProbe *probe_ref(BerthProbe *probe)
{
    g_ref_count_inc(&probe->refs);
    return probe;
}

static void probe_unref(BerthProbe *probe)
{
    if (!g_ref_count_dec(&probe->refs))
        return;
    g_free(probe->cmdline);
    g_free(probe->cache_path);
    g_free(probe->console_path);
    g_free(probe->key);
    g_free(probe->uuid);
    g_free(probe);
}

void berth_probe_free(BerthProbe *probe)
{
    if (probe == NULL)
        return;
    probe->is_closed = TRUE;
    g_clear_handle_id(&probe->deadline_source, g_source_remove);
    probe_unref(probe);
}

static void give_result(BerthProbe *probe, gboolean works, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthProbeResult) result = berth_probe_decide(works, reason, probe->config, &error);
    probe->is_over = TRUE;
    probe->func(result, error, probe->user_data);
}

static void clean_up(BerthProbe *probe)
{
    g_clear_handle_id(&probe->deadline_source, g_source_remove);
    berth_console_remove(probe->console_path);
}

/* A guest was started, and this is what became of it. */
static void finish(BerthProbe *probe, gboolean works, const char *format, ...) G_GNUC_PRINTF(3, 4);
static void finish(BerthProbe *probe, gboolean works, const char *format, ...)
{
    if (probe->is_over)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *reason = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    clean_up(probe);
    berth_probe_cache_save(probe->cache_path, probe->key, works, reason);
    give_result(probe, works, reason);
}

/* No guest was started, and KVM is not to blame: the next start is to probe again. */
static void fail(BerthProbe *probe, int code, const char *reason)
{
    g_autoptr(GError) error =
        g_error_new(BERTH_ERROR, code, "cannot find out whether KVM works here: %s", reason);
    probe->is_over = TRUE;
    clean_up(probe);
    probe->func(NULL, error, probe->user_data);
}

/* Libvirt could not start a guest. That is not kept: what was wrong may be put right. */
static void not_started(BerthProbe *probe, const GError *error)
{
    if (!berth_probe_blames_kvm(error)) {
        fail(probe, error->code, error->message);
        return;
    }
    clean_up(probe);
    give_result(probe, FALSE, error->message);
}

/* Its guest has ended. */
static void look_at_console(BerthProbe *probe)
{
    gint64 msec = (g_get_monotonic_time() - probe->start_usec) / 1000;
    if (berth_console_contains(probe->console_path, BERTH_PROBE_ANSWER)) {
        finish(probe, TRUE, "a guest booted with KVM in %" G_GINT64_FORMAT " ms", msec);
        return;
    }
    g_autofree char *tail = berth_console_tail(probe->console_path);
    g_strstrip(tail);
    finish(probe, FALSE, "a guest with KVM ended without having come up%s%s",
           *tail == '\0' ? "" : "; its console ends with: ", tail);
}

/* Nothing of the probe is left to spin, also when the agent ends for its outcome. */
static void on_given_up(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthProbe *probe = data;
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_destroy_finish(result, &error))
        g_debug("%s", error->message);
    if (!probe->is_closed && !probe->is_made)
        fail(probe, BERTH_ERROR_DEADLINE_EXCEEDED, "libvirt has not started a guest in time");
    else if (!probe->is_closed)
        finish(probe, FALSE,
               "a guest with KVM did not boot within %u s, although /dev/kvm is there",
               probe->config->probe_deadline_sec);
    probe_unref(probe);
}

static void on_deadline(gpointer data)
{
    BerthProbe *probe = data;
    probe->deadline_source = 0;
    probe->is_given_up = TRUE;
    berth_hypervisor_destroy_async(probe->hypervisor, BERTH_PROBE_DOMAIN, NULL, 0, on_given_up,
                                   probe_ref(probe));
}

static void set_deadline(BerthProbe *probe, guint n_deadlines)
{
    guint msec = n_deadlines * probe->config->probe_deadline_sec * 1000;
    g_clear_handle_id(&probe->deadline_source, g_source_remove);
    probe->deadline_source = g_timeout_add_once(msec, on_deadline, probe);
}

void berth_probe_domain_event(BerthProbe *probe, const char *uuid, BerthDomainEvent event)
{
    /* STOPPED is our own doing, and comes when it likes. */
    if (probe->is_over || g_strcmp0(uuid, probe->uuid) != 0 ||
        (event != BERTH_DOMAIN_ENDED && event != BERTH_DOMAIN_FAILED))
        return;
    probe->is_stopped = TRUE;
    if (probe->is_made && !probe->is_given_up)
        look_at_console(probe);
}

static void on_made(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthProbe *probe = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_create_finish(result, &error);
    if (!probe->is_closed && !probe->is_over && !probe->is_given_up) {
        probe->is_made = TRUE;
        if (!ok)
            not_started(probe, error);
        else if (probe->is_stopped)
            look_at_console(probe);
        else
            set_deadline(probe, 1);
    }
    probe_unref(probe);
}

static void boot(BerthProbe *probe)
{
    BerthDomainConfig config = {
        .name = BERTH_PROBE_DOMAIN,
        .uuid = probe->uuid,
        .vcpus = 1,
        .memory_mib = PROBE_MEMORY_MIB,
        .use_kvm = TRUE,
        .machine = probe->host->machine,
        .cpu_model = probe->config->cpu_model != NULL ? probe->config->cpu_model : "host-model",
        .kernel = probe->config->kernel,
        .initramfs = probe->config->initramfs,
        .cmdline = probe->cmdline,
        .console_path = probe->console_path,
        .partition = probe->config->partition,
        .host_cpus = probe->config->host_cpus,
        .guest_cpus = probe->config->guest_cpus,
    };
    probe->start_usec = g_get_monotonic_time();
    set_deadline(probe, CREATE_DEADLINES);
    berth_hypervisor_create_async(probe->hypervisor, &config, 0, on_made, probe_ref(probe));
}

/* A probe that an agent's end cut off is gone now: it would spin for ever. */
static void on_swept(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthProbe *probe = data;
    g_autoptr(GError) error = NULL;
    g_autofree char *reason = NULL;
    gboolean works;
    if (!berth_hypervisor_destroy_finish(result, &error))
        g_debug("%s", error->message);
    if (!probe->is_closed) {
        berth_console_remove(probe->console_path);
        if (berth_probe_cache_load(probe->cache_path, probe->key, &works, &reason))
            give_result(probe, works, reason);
        else
            boot(probe);
    }
    probe_unref(probe);
}

BerthProbe *berth_probe_new(BerthHypervisor *hypervisor, const BerthNodeConfig *config,
                            const BerthHost *host, const char *cmdline, BerthProbeFunc func,
                            gpointer user_data)
{
    g_autofree char *boot_id = NULL;
    g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot_id, NULL, NULL);
    BerthProbe *probe = g_new0(BerthProbe, 1);
    g_ref_count_init(&probe->refs);
    probe->hypervisor = hypervisor;
    probe->config = config;
    probe->host = host;
    probe->cmdline = g_strconcat(cmdline, " berth.probe", NULL);
    probe->func = func;
    probe->user_data = user_data;
    probe->cache_path = g_build_filename(config->run_dir, "probe", NULL);
    probe->console_path = g_build_filename(config->console_dir, BERTH_PROBE_DOMAIN, NULL);
    probe->uuid = g_uuid_string_random();
    probe->key = berth_probe_key(boot_id == NULL ? "" : g_strstrip(boot_id), host, config);
    if (!host->has_kvm)
        give_result(probe, FALSE, "libvirt does not offer it: /dev/kvm is missing or not allowed");
    else
        berth_hypervisor_destroy_async(hypervisor, BERTH_PROBE_DOMAIN, NULL, 0, on_swept,
                                       probe_ref(probe));
    return probe;
}
