/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of what berth-node.conf may say. The loader is common's; [storage] is storage's.
 * doc/berth-node.conf.5 describes each key: a test compares them. */
#include <config.h>

#include "nodeagent/node_config.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/config_warnings.h"
#include "common/error.h"
#include "nodeagent/host_cpus.h"
#include "storage/storage_config.h"

#define MEMBER(name) BERTH_CONFIG_MEMBER(BerthNodeConfig, name)

static const char *const cache_names[] = {"writeback", "none", NULL};

/* The name is in certificates, file names and tables. */
static gboolean check_name(const char *value, GError **error)
{
    gsize length = strlen(value);
    if (length >= 1 && length <= 253 && g_ascii_isalnum(value[0]) &&
        strspn(value, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-") == length)
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "1 to 253 of A-Z a-z 0-9 . _ -, beginning with a letter or digit");
    return FALSE;
}

static gboolean check_partition(const char *value, GError **error)
{
    if (value[0] == '/' && value[1] != '\0')
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "a cgroup that begins with /, as /berth");
    return FALSE;
}

static const BerthConfigOption options[] = {
    {MEMBER(name), .group = "node", .key = "name", .type = BERTH_CONFIG_STRING, .check = check_name,
     .doc = "name of this node; its certificate must have it too (default: the host's name)"},
    {MEMBER(labels), .group = "node", .key = "labels", .type = BERTH_CONFIG_STRING_LIST,
     .check = check_name, .doc = "labels of this node"},
    {MEMBER(run_dir), .group = "node", .key = "run_dir", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_RUNDIR "-node", .doc = "sockets of guests; at most 60 bytes"},
    {MEMBER(console_dir), .group = "node", .key = "console_dir", .type = BERTH_CONFIG_PATH,
     .doc = "consoles of guests (default: \"console\" in run_dir)"},
    {MEMBER(log_level), .group = "node", .key = "log_level", .type = BERTH_CONFIG_ENUM,
     .values = berth_log_level_names, .default_value = "info", .doc = "least important message"},

    {MEMBER(allow_exec), .group = "node", .key = "allow_exec", .type = BERTH_CONFIG_BOOL,
     .default_value = "false",
     .doc = "run commands of operators on this host, as root (berth node exec)"},

    {MEMBER(scheduler_address), .group = "scheduler", .key = "address", .type = BERTH_CONFIG_STRING,
     .required = TRUE, .doc = "host name or address of berthd, as its certificate has it"},
    {MEMBER(scheduler_port), .group = "scheduler", .key = "port", .type = BERTH_CONFIG_UINT,
     .min = 1, .max = 65535, .default_value = "7440", .doc = "its TCP port for agents"},
    {MEMBER(certificate), .group = "scheduler", .key = "certificate", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_SYSCONFDIR "/tls/node.crt", .doc = "this node's certificate (PEM)"},
    {MEMBER(key), .group = "scheduler", .key = "key", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_SYSCONFDIR "/tls/node.key", .doc = "its private key (PEM)"},
    {MEMBER(ca), .group = "scheduler", .key = "ca", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_SYSCONFDIR "/tls/ca.crt", .doc = "the CA that signed berthd's"},

    {MEMBER(libvirt_uri), .group = "libvirt", .key = "uri", .type = BERTH_CONFIG_STRING,
     .default_value = "qemu:///system", .doc = "libvirt of this host"},
    {MEMBER(partition), .group = "libvirt", .key = "partition", .type = BERTH_CONFIG_STRING,
     .check = check_partition, .doc = "cgroup of all guests (default: libvirt's own, /machine)"},
    {MEMBER(reached_at), .group = "libvirt", .key = "reached_at", .type = BERTH_CONFIG_STRING,
     .doc = "libvirt of this host, as those of other nodes call it (default: "
            "qemu+tls://NAME/system, NAME being that of the node)"},
    {MEMBER(stream_at), .group = "libvirt", .key = "stream_at", .type = BERTH_CONFIG_STRING,
     .doc = "where other nodes send the memory of guests that come here (default: tcp://NAME)"},
    {MEMBER(pki_dir), .group = "libvirt", .key = "pki_dir", .type = BERTH_CONFIG_PATH,
     .doc = "cacert.pem, clientcert.pem and clientkey.pem with which libvirt calls other nodes "
            "(default: libvirt's own)"},

    {MEMBER(vcpus), .group = "guests", .key = "vcpus", .type = BERTH_CONFIG_UINT, .min = 0,
     .max = 65536, .default_value = "0",
     .doc = "vCPUs offered; 0: as many as the host has CPUs but for host_cpus"},
    {MEMBER(host_cpus), .group = "guests", .key = "host_cpus", .type = BERTH_CONFIG_STRING,
     .doc =
         "CPUs kept for the host, as 0-1: no vCPU runs on them, and all else of guests' QEMUs, and "
         "the agent, on them alone (default: none)"},
    {MEMBER(memory_mib), .group = "guests", .key = "memory", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 1u << 30, .default_value = "0",
     .doc = "memory offered; 0: the host's less memory_reserve"},
    {MEMBER(reserve_mib), .group = "guests", .key = "memory_reserve", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 1u << 30, .default_value = "1G",
     .doc = "memory that the host keeps for itself"},
    {MEMBER(limit_mib), .group = "guests", .key = "memory_limit", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 1u << 30, .default_value = "0",
     .doc = "memory that all guests and what runs them never exceed together: the kernel ends one "
            "first, in slack if there is one; 0: what is offered and a quarter of memory_reserve"},
    {MEMBER(margin_mib), .group = "guests", .key = "memory_margin", .type = BERTH_CONFIG_SIZE_MIB,
     .min = 0, .max = 1u << 30, .default_value = "0",
     .doc = "with less of the memory that is offered left, guests in slack are held back until the "
            "scheduler has made room; 0: a 32nd of what is offered, 64M at least"},
    {MEMBER(memory_patience_sec), .group = "guests", .key = "memory_patience",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 0, .max = 3600, .default_value = "1m",
     .doc = "with less than half of memory_margin left, a guest that takes more of what it has "
            "reserved waits so long for those in slack to leave, before one of them is ended; 0: "
            "not at all"},
    {MEMBER(output_rate_mib), .group = "guests", .key = "output_rate",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 0, .max = 1u << 18, .default_value = "4M",
     .doc = "output of a job that is taken per second; one that writes more waits; 0: all"},
    {MEMBER(kernel), .group = "guests", .key = "kernel", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_GUESTDIR "/vmlinux", .doc = "kernel that guests boot"},
    {MEMBER(initramfs), .group = "guests", .key = "initramfs", .type = BERTH_CONFIG_PATH,
     .default_value = BERTH_GUESTDIR "/initramfs.cpio", .doc = "initramfs with berth-init"},
    {MEMBER(extra_cmdline), .group = "guests", .key = "extra_cmdline", .type = BERTH_CONFIG_STRING,
     .doc = "added to the kernel's command line"},
    {MEMBER(cpu_model), .group = "guests", .key = "cpu_model", .type = BERTH_CONFIG_STRING,
     .check = check_name,
     .doc = "CPU that guests see (default: host-model with KVM, maximum without)"},
    {MEMBER(disk_cache), .group = "guests", .key = "disk_cache", .type = BERTH_CONFIG_ENUM,
     .values = cache_names, .default_value = "writeback", .doc = "cache mode of guests' disks"},
    {MEMBER(allow_emulation), .group = "guests", .key = "allow_emulation",
     .type = BERTH_CONFIG_BOOL, .default_value = "false",
     .doc = "run guests in software where KVM does not work"},
    {MEMBER(probe_deadline_sec), .group = "guests", .key = "probe_deadline",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 600, .default_value = "10s",
     .doc = "how long the first guest may take to boot before KVM counts as broken"},

    {MEMBER(pace.near_memory_percent), .group = "measure", .key = "near_memory",
     .type = BERTH_CONFIG_UINT, .min = 0, .max = 100, .default_value = "15",
     .doc = "percent: a guest of whose memory less is available is near its limit"},
    {MEMBER(pace.near_pressure_percent), .group = "measure", .key = "near_pressure",
     .type = BERTH_CONFIG_UINT, .min = 1, .max = 100, .default_value = "5",
     .doc =
         "percent of the time that tasks of a guest, or of the host, stall for memory: the same"},
    {MEMBER(pace.near_wait_percent), .group = "measure", .key = "near_wait",
     .type = BERTH_CONFIG_UINT, .min = 1, .max = 100, .default_value = "20",
     .doc = "percent of the time that a guest had no CPU though it could have run: the same"},
    {MEMBER(pace.near_node_memory_percent), .group = "measure", .key = "near_node_memory",
     .type = BERTH_CONFIG_UINT, .min = 0, .max = 100, .default_value = "10",
     .doc = "percent: a host that has less left of the memory it offers, or available, is short of "
            "it"},
    {MEMBER(traffic_interval_sec), .group = "measure", .key = "traffic_interval",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 5, .max = 3600, .default_value = "1m",
     .doc = "between questions to each guest's QEMU for its disk and network traffic"},
    {MEMBER(guest_stall_msec), .group = "measure", .key = "guest_stall", .type = BERTH_CONFIG_UINT,
     .min = 0, .max = 1000, .default_value = "100",
     .doc = "ms in a second that a guest stalls for memory before it says so at once; 0: never"},
};

const BerthConfigOption *berth_node_config_options(gsize *out_n)
{
    *out_n = G_N_ELEMENTS(options);
    return options;
}

static BerthConfigTable own_table(BerthNodeConfig *config)
{
    return (BerthConfigTable){options, G_N_ELEMENTS(options), config};
}

/* A socket's path has room for 107 bytes, a guest's name may take 46 of them. */
static gboolean check_run_dir(const BerthNodeConfig *config, const char *path, GError **error)
{
    if (strlen(config->run_dir) <= 60)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s: [node] run_dir: \"%s\" is too long for the sockets in it; allowed: 60 bytes",
                path, config->run_dir);
    return FALSE;
}

/* QEMU opens disks by itself, as libvirt's secret lets it. */
static gboolean check_secret(const BerthNodeConfig *config, const char *path, GError **error)
{
    if (!g_str_equal(config->storage.kind, "rbd") || config->storage.secret_uuid != NULL)
        return TRUE;
    g_set_error(
        error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
        "%s: [storage] secret_uuid is missing: kind=rbd needs the libvirt secret with which "
        "QEMU opens disks; berth-setup(7) says how to make it",
        path);
    return FALSE;
}

/* Other nodes would refuse to send guests there. */
static gboolean check_reached(const BerthNodeConfig *config, const char *path, GError **error)
{
    if (berth_migration_uris_check(config->reached_at, config->stream_at, error))
        return TRUE;
    g_prefix_error(error, "%s: [libvirt] reached_at and stream_at: ", path);
    return FALSE;
}

/* Which of them this host has is not asked: the file may be another's, and CPUs come and go. */
static gboolean check_host_cpus(const BerthNodeConfig *config, const char *path, GError **error)
{
    if (config->host_cpus == NULL || berth_host_cpus_check(config->host_cpus, error))
        return TRUE;
    g_prefix_error(error, "%s: [guests] host_cpus: ", path);
    return FALSE;
}

BerthNodeConfig *berth_node_config_load(const char *path, GError **error)
{
    g_autoptr(BerthNodeConfig) config = g_new0(BerthNodeConfig, 1);
    const BerthConfigTable tables[] = {
        own_table(config), berth_storage_config_table(&config->storage), {NULL}};
    if (!berth_config_load(path, "berth-node.conf(5)", tables, error) ||
        !berth_storage_config_check(&config->storage, path, error) ||
        !check_secret(config, path, error) || !check_run_dir(config, path, error) ||
        !check_host_cpus(config, path, error))
        return NULL;
    if (config->name == NULL)
        config->name = g_strdup(g_get_host_name());
    if (config->reached_at == NULL)
        config->reached_at = g_strdup_printf("qemu+tls://%s/system", config->name);
    if (config->stream_at == NULL)
        config->stream_at = g_strdup_printf("tcp://%s", config->name);
    if (!check_reached(config, path, error))
        return NULL;
    if (config->console_dir == NULL)
        config->console_dir = g_build_filename(config->run_dir, "console", NULL);
    return g_steal_pointer(&config);
}

/* Of a CONFIG that keeps some. */
static gboolean split_cpus(const BerthNodeConfig *config, BerthHostCpus *out_cpus, GError **error)
{
    g_autofree char *online = berth_host_cpus_online(error);
    if (online != NULL && berth_host_cpus_split(config->host_cpus, online, out_cpus, error))
        return TRUE;
    g_prefix_error(error, "[guests] host_cpus: ");
    return FALSE;
}

gboolean berth_node_config_take_cpus(BerthNodeConfig *config, char **out_offline, GError **error)
{
    g_auto(BerthHostCpus) cpus = {0};
    if (config->host_cpus != NULL && !split_cpus(config, &cpus, error))
        return FALSE;
    g_free(config->host_cpus);
    g_free(config->guest_cpus);
    config->host_cpus = g_steal_pointer(&cpus.host);
    config->guest_cpus = g_steal_pointer(&cpus.guests);
    *out_offline = g_steal_pointer(&cpus.offline);
    return TRUE;
}

/* QEMU boots an ELF file, or one that has the header of a bzImage. */
static void warn_kernel(const BerthNodeConfig *config, GPtrArray *warnings)
{
    char start[0x206] = {0};
    guint n_before = warnings->len;
    berth_config_warn_file(warnings, "[guests] kernel", config->kernel);
    if (warnings->len > n_before)
        return;
    int fd = open(config->kernel, O_RDONLY | O_CLOEXEC);
    gboolean is_read = fd >= 0 && pread(fd, start, sizeof start, 0) >= 0;
    if (fd >= 0)
        close(fd);
    if (is_read && memcmp(start, "\177ELF", 4) != 0 && memcmp(start + 0x202, "HdrS", 4) != 0)
        g_ptr_array_add(warnings, g_strdup_printf("[guests] kernel: %s is no kernel for x86-64",
                                                  config->kernel));
}

/* Jobs that have reserved a CPU each would share some. */
static void warn_vcpus(const BerthNodeConfig *config, const char *guest_cpus, GPtrArray *warnings)
{
    guint32 cpus = berth_host_cpus_count(guest_cpus);
    if (config->vcpus > cpus)
        g_ptr_array_add(warnings,
                        g_strdup_printf("[guests] vcpus: %u are offered, and host_cpus leaves %u "
                                        "CPUs for them",
                                        config->vcpus, cpus));
}

static void warn_cpus(const BerthNodeConfig *config, GPtrArray *warnings)
{
    g_autoptr(GError) error = NULL;
    g_auto(BerthHostCpus) cpus = {0};
    if (config->host_cpus == NULL)
        return;
    if (!split_cpus(config, &cpus, &error)) {
        g_ptr_array_add(warnings, g_strdup(error->message));
        return;
    }
    if (cpus.offline != NULL)
        g_ptr_array_add(warnings, g_strdup_printf("[guests] host_cpus: not online on this host: %s",
                                                  cpus.offline));
    warn_vcpus(config, cpus.guests, warnings);
}

GPtrArray *berth_node_config_warnings(const BerthNodeConfig *config)
{
    GPtrArray *warnings = berth_config_warnings_new();
    berth_config_warn_tls(warnings, "scheduler", config->certificate, config->key, config->ca,
                          config->name);
    warn_kernel(config, warnings);
    warn_cpus(config, warnings);
    berth_config_warn_file(warnings, "[guests] initramfs", config->initramfs);
    berth_storage_config_warn(&config->storage, warnings);
    return warnings;
}

void berth_node_config_free(BerthNodeConfig *config)
{
    if (config == NULL)
        return;
    const BerthConfigTable tables[] = {
        own_table(config), berth_storage_config_table(&config->storage), {NULL}};
    berth_config_clear(tables);
    g_free(config->guest_cpus);
    g_free(config);
}
