/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of what berthd.conf may say. The loader is common's; [storage]'s own keys are
 * storage's, [policy] is the core's (policy_config.h). doc/berthd.conf.5 describes each key: a test compares them. */
#include "config.h"

#include "scheduler/daemon/daemon_config.h"

#include "common/config_warnings.h"
#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/permission.h"
#include "scheduler/daemon/policy_config.h"
#include "scheduler/daemon/spec_check.h"
#include "storage/storage_config.h"

#include <gio/gio.h>

#define MEMBER(name) BERTH_CONFIG_MEMBER(BerthDaemonConfig, name)

static gboolean check_mode(const char *value, GError **error)
{
    char *end = NULL;
    guint64 mode = g_ascii_strtoull(value, &end, 8);
    if (!g_ascii_isdigit(value[0]) || *end || mode > 0777 || (mode & 0600) != 0600) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "permission bits in octal, 0600 to 0777, with read and write for the "
                            "owner");
        return FALSE;
    }
    return TRUE;
}

static gboolean check_address(const char *value, GError **error)
{
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(value);
    if (address || g_str_equal(value, "*"))
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "an IP address of this host, or * for all");
    return FALSE;
}

static gboolean check_image(const char *value, GError **error)
{
    if (berth_image_name_check(value, NULL))
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "the name of an image: 1 to 64 letters, digits, '.', '_' and '-', the "
                        "first a letter or digit");
    return FALSE;
}

/* In the order of OnLimit and OnTimeout, of which the first of each is what these are the default of. */
static const char *const on_limit_names[] = {"grow", "freeze", "kill", NULL};
static const char *const on_timeout_names[] = {"checkpoint", "kill", NULL};

static const BerthConfigOption options[] = {
    {MEMBER(cluster), .group = "berthd", .key = "cluster", .type = BERTH_CONFIG_STRING,
     .default_value = "berth", .doc = "name of the cluster, for people"},
    {MEMBER(socket), .group = "berthd", .key = "socket", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_RUNDIR "/berthd.sock", .doc = "unix socket for users"},
    {MEMBER(socket_mode_text), .group = "berthd", .key = "socket_mode", .type = BERTH_CONFIG_STRING,
     .default_value = "0666", .check = check_mode, .doc = "permission bits of the socket"},
    {MEMBER(operators_group), .group = "berthd", .key = "operators_group",
     .type = BERTH_CONFIG_STRING, .doc = "unix group whose members are operators, beside root"},
    {MEMBER(state), .group = "berthd", .key = "state", .type = BERTH_CONFIG_STRING,
     .default_value = BERTH_STATEDIR "/berth.db",
     .doc = "database: a file, or a file: URI for another VFS"},
    {MEMBER(log_level), .group = "berthd", .key = "log_level", .type = BERTH_CONFIG_ENUM,
     .values = berth_log_level_names, .default_value = "info", .doc = "least important message"},
    {MEMBER(journal), .group = "berthd", .key = "journal", .type = BERTH_CONFIG_BOOL,
     .default_value = "no", .doc = "keep a log of all that the policy is told, to be run again"},
    {MEMBER(journal_max_mib), .group = "berthd", .key = "journal_max",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 1, .max = 1u << 20, .default_value = "1G",
     .doc = "of the journals of this run and the last one together"},

    {MEMBER(history_keep_sec), .group = "berthd", .key = "history_keep",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 0, .max = 100u * 366 * 86400,
     .default_value = "366d",
     .doc = "jobs that have ended, their output and their events; 0: for ever"},

    {MEMBER(agents_address), .group = "agents", .key = "address", .type = BERTH_CONFIG_STRING,
     .default_value = "*", .check = check_address,
     .doc = "IP address on which agents are awaited, or *"},
    {MEMBER(agents_port), .group = "agents", .key = "port", .type = BERTH_CONFIG_UINT, .min = 0,
     .max = 65535, .default_value = "7440", .doc = "TCP port for agents; 0 picks a free one"},
    {MEMBER(certificate), .group = "agents", .key = "certificate", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_SYSCONFDIR "/tls/berthd.crt", .doc = "this daemon's certificate (PEM)"},
    {MEMBER(key), .group = "agents", .key = "key", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_SYSCONFDIR "/tls/berthd.key", .doc = "its private key (PEM)"},
    {MEMBER(ca), .group = "agents", .key = "ca", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_SYSCONFDIR "/tls/ca.crt", .doc = "the CA that signed the agents'"},
    {MEMBER(node_timeout_sec), .group = "agents", .key = "node_timeout",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 86400, .default_value = "2m",
     .doc = "without a session for this long, a node's guests are given up"},
    {MEMBER(report_interval_sec), .group = "agents", .key = "report_interval",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "5s",
     .doc = "between measurements"},
    {MEMBER(report_near_sec), .group = "agents", .key = "report_near",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 60, .default_value = "1s",
     .doc = "the same, of guests and nodes near a limit, if it is less"},
    {MEMBER(report_calm_sec), .group = "agents", .key = "report_calm",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "20s",
     .doc = "the same, of those that have nothing to do, if it is more"},

    {MEMBER(default_image), .group = "defaults", .key = "image", .type = BERTH_CONFIG_STRING,
     .default_value = "debian", .check = check_image, .doc = "image of a job that names none"},
    {MEMBER(default_vcpus), .group = "defaults", .key = "vcpus", .type = BERTH_CONFIG_UINT,
     .min = 1, .max = 1024, .default_value = "1", .doc = "vCPUs"},
    {MEMBER(default_memory_mib), .group = "defaults", .key = "memory",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 64, .max = 16u << 20, .default_value = "512M",
     .doc = "memory"},
    {MEMBER(default_disk_mib), .group = "defaults", .key = "disk", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 64u << 20, .default_value = "1G", .doc = "space beside what the image holds"},
    {MEMBER(default_time_limit_sec), .group = "defaults", .key = "time_limit",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 10u * 366 * 86400, .default_value = "1h",
     .doc = "time limit"},
    {MEMBER(default_on_limit), .group = "defaults", .key = "on_limit", .type = BERTH_CONFIG_ENUM,
     .values = on_limit_names, .default_value = "freeze",
     .doc = "of a job that needs more memory than it may have"},
    {MEMBER(default_on_timeout), .group = "defaults", .key = "on_timeout",
     .type = BERTH_CONFIG_ENUM, .values = on_timeout_names, .default_value = "checkpoint",
     .doc = "of a job at its time limit; where storage cannot checkpoint: kill"},

    {MEMBER(stop_grace_sec), .group = "guests", .key = "stop_grace",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 0, .max = 3600, .default_value = "3s",
     .doc = "from SIGTERM to SIGKILL where a job names none"},
    {MEMBER(boot_deadline_sec), .group = "guests", .key = "boot_deadline",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "2m",
     .doc = "for a guest to boot, and again to take its task"},
    {MEMBER(checkpoint_patience_sec), .group = "guests", .key = "checkpoint_patience",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 86400, .default_value = "3m",
     .doc =
         "for what keeps a guest from being checkpointed to pass; at a time limit 20 times that"},
    {MEMBER(requeues_max), .group = "guests", .key = "requeues_max", .type = BERTH_CONFIG_UINT,
     .min = 0, .max = 1000, .default_value = "5",
     .doc = "a task that lost its guest this often ends as NODE_FAIL"},
    {MEMBER(start_retries_max), .group = "guests", .key = "start_retries_max",
     .type = BERTH_CONFIG_UINT, .min = 0, .max = 1000, .default_value = "5",
     .doc = "passing start failures in a row that are tried again"},
    {MEMBER(start_backoff_sec), .group = "guests", .key = "start_backoff",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "5s",
     .doc = "pause after the first of them; doubles each time"},
    {MEMBER(guest_overhead_mib), .group = "guests", .key = "overhead",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 0, .max = 1u << 20, .default_value = "96M",
     .doc = "memory of the host that each guest takes beside its own"},
    {MEMBER(slack), .group = "guests", .key = "slack", .type = BERTH_CONFIG_BOOL,
     .default_value = "yes", .doc = "jobs start in what others reserved and do not use"},
    {MEMBER(balloons), .group = "guests", .key = "balloons", .type = BERTH_CONFIG_BOOL,
     .default_value = "no", .doc = "such jobs give memory back that they do not need"},

    {MEMBER(input_file_max_mib), .group = "limits", .key = "input_file_max",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 1, .max = 1u << 24, .default_value = "1G",
     .doc = "largest input file or script"},
    {MEMBER(inputs_max_mib), .group = "limits", .key = "inputs_total_max",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 1, .max = 1u << 24, .default_value = "4G",
     .doc = "all input files of a job together"},
    {MEMBER(inputs_max), .group = "limits", .key = "inputs_max", .type = BERTH_CONFIG_UINT,
     .min = 0, .max = 10000, .default_value = "1000", .doc = "input files of a job"},
    {MEMBER(image_max_mib), .group = "limits", .key = "image_max", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 1, .max = 64u << 20, .default_value = "64G", .doc = "largest image"},
    {MEMBER(command_max_bytes), .group = "limits", .key = "command_max_bytes",
     .type = BERTH_CONFIG_UINT, .min = 1024, .max = 1u << 20, .default_value = "131072",
     .doc = "a job's command and its arguments together"},
    {MEMBER(environment_max_bytes), .group = "limits", .key = "environment_max_bytes",
     .type = BERTH_CONFIG_UINT, .min = 0, .max = 1u << 20, .default_value = "1048576",
     .doc = "a job's environment"},
    {MEMBER(memory_max_mib), .group = "limits", .key = "memory_max", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 16u << 20, .default_value = "0",
     .doc = "berthd's own memory, beyond which no new jobs are taken; 0: half of what there is"},
    {MEMBER(state_kept_mib), .group = "limits", .key = "state_kept", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 16u << 20, .default_value = "256M",
     .doc = "free in the file system of the state, with which no new jobs are taken; 0: none"},
    {MEMBER(user_jobs_max), .group = "limits", .key = "user_jobs_max", .type = BERTH_CONFIG_UINT,
     .min = 1, .max = 10000000, .default_value = "100000",
     .doc = "jobs of one user that have not ended"},
    {MEMBER(user_connections_max), .group = "limits", .key = "user_connections_max",
     .type = BERTH_CONFIG_UINT, .min = 1, .max = 100000, .default_value = "256",
     .doc = "connections of one user at once"},
    {MEMBER(user_requests_per_sec), .group = "limits", .key = "user_requests_per_sec",
     .type = BERTH_CONFIG_UINT, .max = 1000000, .default_value = "0",
     .doc = "requests that are begun for one user, a second's worth at once; 0: as many as his "
            "turn comes"},
    {MEMBER(array_tasks_max), .group = "limits", .key = "array_tasks_max",
     .type = BERTH_CONFIG_UINT, .min = 1, .max = 10000000, .default_value = "1000000",
     .doc = "tasks of one array"},
    {MEMBER(stop_grace_max_sec), .group = "limits", .key = "stop_grace_max",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "1h",
     .doc = "from SIGTERM to SIGKILL, of what a job may ask for"},
    {MEMBER(checkpoint_signal_max_sec), .group = "limits", .key = "checkpoint_signal_max",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 0, .max = 3600, .default_value = "1m",
     .doc = "from its signal to the checkpoint, of what a job may ask for"},
    {MEMBER(page_size), .group = "limits", .key = "page_size", .type = BERTH_CONFIG_UINT, .min = 1,
     .max = 10000, .default_value = "1000", .doc = "jobs in one answer"},

    {MEMBER(storage_check_interval_sec), .group = "storage", .key = "check_interval",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "10s",
     .doc = "between checks whether storage answers"},
    {MEMBER(gc_interval_sec), .group = "storage", .key = "gc_interval",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 30u * 86400, .default_value = "1h",
     .doc = "between collections of garbage in storage"},
    {MEMBER(stale_client_after_sec), .group = "storage", .key = "stale_client_after",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 86400, .default_value = "60s",
     .doc = "from when a client that nobody uses keeps a dead guest's disk until it is cut off"},
};

const BerthConfigOption *berth_daemon_config_options(gsize *out_n)
{
    *out_n = G_N_ELEMENTS(options);
    return options;
}

static BerthConfigTable own_table(BerthDaemonConfig *config)
{
    return (BerthConfigTable){options, G_N_ELEMENTS(options), config};
}

BerthDaemonConfig *berth_daemon_config_load(const char *path, GError **error)
{
    g_autoptr(BerthDaemonConfig) config = g_new0(BerthDaemonConfig, 1);
    const BerthConfigTable tables[] = {own_table(config),
                                       berth_policy_config_table(config->tunings),
                                       berth_storage_config_table(&config->storage),
                                       {NULL}};
    if (!berth_config_load(path, "berthd.conf(5)", tables, error) ||
        !berth_storage_config_check(&config->storage, path, error))
        return NULL;
    config->socket_mode = (guint)g_ascii_strtoull(config->socket_mode_text, NULL, 8);
    return g_steal_pointer(&config);
}

/* A job that names none gets it, and may not ask for it. */
static void warn_grace(const BerthDaemonConfig *config, GPtrArray *warnings)
{
    if (config->stop_grace_sec > config->stop_grace_max_sec) {
        g_ptr_array_add(
            warnings,
            g_strdup_printf("[guests] stop_grace: %u s are more than a job may ask for, %u s "
                            "([limits] stop_grace_max)",
                            config->stop_grace_sec, config->stop_grace_max_sec));
    }
}

/* systemd makes the default directory when it starts berthd; a URI is another VFS's business. */
static void warn_state(const BerthDaemonConfig *config, GPtrArray *warnings)
{
    g_autofree char *directory = g_path_get_dirname(config->state);
    if (!g_str_has_prefix(config->state, "file:") && !g_str_equal(directory, BERTH_STATEDIR))
        berth_config_warn_directory(warnings, "[berthd] state", directory);
}

GPtrArray *berth_daemon_config_warnings(const BerthDaemonConfig *config)
{
    g_autoptr(GPtrArray) warnings = berth_config_warnings_new();
    g_autoptr(GError) error = NULL;
    BerthOperators operators;
    if (!berth_operators_init(&operators, config->operators_group, &error))
        g_ptr_array_add(warnings, g_strdup_printf("[berthd] %s", error->message));
    warn_state(config, warnings);
    warn_grace(config, warnings);
    berth_config_warn_tls(warnings, "agents", config->certificate, config->key, config->ca, NULL);
    berth_storage_config_warn(&config->storage, warnings);
    return g_steal_pointer(&warnings);
}

void berth_daemon_config_free(BerthDaemonConfig *config)
{
    const BerthConfigTable tables[] = {own_table(config),
                                       berth_policy_config_table(config->tunings),
                                       berth_storage_config_table(&config->storage),
                                       {NULL}};
    berth_config_clear(tables);
    g_free(config);
}
