/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order in which an agent comes up, and the wiring of its parts:
 *     checks -> libvirt -> what the host is -> probe -> adoption -> session with the scheduler.
 * Storage is opened beside it. Once it is ready, neither libvirt nor storage nor the scheduler can
 * end it: it waits for each of them to come back. */
#include <config.h>

#include "nodeagent/agent_private.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "common/id.h"

/* quiet: no boot messages, but what is wrong; panic=-1, reboot=t: whatever is wrong ends the guest at
 * once; the rest saves time that a boot would spend on hardware that is not there. */
#define CMDLINE                                                                                    \
    "console=ttyS0 quiet loglevel=4 panic=-1 reboot=t no_timer_check random.trust_cpu=on "         \
    "pci=nocrs cryptomgr.notests"
/* Between measurements of a guest by itself. The scheduler says how often it wants to hear of what is near a limit, and
 * of what is calm; a guest that neither is measures itself twice or so in the interval of reports. */
#define USAGE_CALM_MSEC     20000u
#define USAGE_INTERVAL_MSEC 2000u
#define USAGE_NEAR_MSEC     1000u
/* Adopted guests have so long to answer before the scheduler is told of them. */
#define KNOWN_WAIT_MSEC 3000u

/* --- checks --------------------------------------------------------------------------------- */

static gboolean make_dir(const char *path, GError **error)
{
    if (g_mkdir_with_parents(path, 0755) == 0)
        return TRUE;
    berth_set_error_errno(error, errno, "cannot make directory %s", path);
    return FALSE;
}

/* A byte can be written there now. */
static gboolean check_space(const char *dir, GError **error)
{
    g_autofree char *path = g_build_filename(dir, ".space", NULL);
    int fd = g_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int reason = fd < 0 ? errno : 0;
    if (fd >= 0 && write(fd, "", 1) != 1)
        reason = errno;
    if (fd >= 0)
        close(fd);
    g_unlink(path);
    if (reason == 0)
        return TRUE;
    berth_set_error_errno(error, reason,
                          "cannot write into %s, which guests' sockets and consoles "
                          "need; free some space there",
                          dir);
    return FALSE;
}

static gboolean lock(BerthAgent *agent, GError **error)
{
    g_autofree char *path = g_build_filename(agent->config->run_dir, "lock", NULL);
    agent->lock_fd = g_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (agent->lock_fd >= 0 && flock(agent->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return TRUE;
    if (agent->lock_fd >= 0 && errno == EWOULDBLOCK)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "another berth-node runs with run_dir %s; one per host is enough",
                    agent->config->run_dir);
    else
        berth_set_error_errno(error, errno, "cannot lock %s", path);
    return FALSE;
}

static gboolean check_guest_file(const char *what, const char *key, const char *path,
                                 GError **error)
{
    struct stat status;
    if (access(path, R_OK) != 0 || stat(path, &status) != 0) {
        berth_set_error_errno(error, errno,
                              "cannot read the guests' %s %s; install it (make "
                              "install-guest-kernel) or set %s in [guests] of berth-node.conf",
                              what, path, key);
        return FALSE;
    }
    if (S_ISREG(status.st_mode) && status.st_size > 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "the guests' %s %s is no file",
                what, path);
    return FALSE;
}

static gboolean check_all(BerthAgent *agent, GError **error)
{
    const BerthNodeConfig *config = agent->config;
    if (!make_dir(config->run_dir, error) || !make_dir(config->console_dir, error) ||
        !check_space(config->run_dir, error) || !check_space(config->console_dir, error) ||
        !lock(agent, error) || !check_guest_file("kernel", "kernel", config->kernel, error) ||
        !check_guest_file("initramfs", "initramfs", config->initramfs, error))
        return FALSE;
    agent->tls = berth_tls_config_new(config->certificate, config->key, config->ca, error);
    return agent->tls != NULL;
}

void berth_agent_fail(BerthAgent *agent, const GError *error)
{
    if (agent->has_failed)
        return;
    agent->has_failed = TRUE;
    agent->funcs.failed(error, agent->funcs.user_data);
}

BerthGuest *berth_agent_find_guest(const BerthAgent *agent, const BerthGuestId *id)
{
    return agent->table == NULL ? NULL : berth_guest_table_find(agent->table, id);
}

/* --- the session ---------------------------------------------------------------------------- */

static void set_usage_intervals(BerthAgent *agent, const BerthPaceIntervals *intervals)
{
    BerthPaceIntervals *own = &agent->context.usage_intervals;
    own->msec[BERTH_PACE_NEAR] = MIN(intervals->msec[BERTH_PACE_NEAR], USAGE_INTERVAL_MSEC);
    own->msec[BERTH_PACE_CALM] = MAX(intervals->msec[BERTH_PACE_CALM], USAGE_INTERVAL_MSEC);
}

char *berth_agent_cannot_start(const BerthAgent *agent)
{
    const char *storage_error = berth_storage_lane_error(agent->lane);
    if (agent->lost_reason != NULL)
        return g_strdup_printf("it does not reach libvirt: %s", agent->lost_reason);
    if (storage_error != NULL)
        return g_strdup_printf("it does not reach storage: %s", storage_error);
    return g_strdup(agent->secret_error);
}

static Berth__NodeInfo *on_node_info(gpointer data)
{
    const BerthAgent *agent = data;
    g_autofree char *cannot_start = berth_agent_cannot_start(agent);
    return berth_node_info_new(agent->config, agent->host, agent->acceleration,
                               agent->context.cpu_model,
                               berth_storage_lane_client_address(agent->lane), cannot_start);
}

void berth_agent_tell_changed(BerthAgent *agent)
{
    if (agent->session != NULL)
        berth_session_node_changed(agent->session);
}

static void on_joined(const BerthPaceIntervals *intervals, gpointer data)
{
    BerthAgent *agent = data;
    set_usage_intervals(agent, intervals);
    berth_meter_set_intervals(agent->meter, intervals);
    berth_storage_lane_reopen(agent->lane);
}

static void on_known(gpointer data)
{
    BerthAgent *agent = data;
    berth_storage_lane_set_known(agent->lane);
}

static void on_measured(const Berth__NodeUsage *node, gpointer data)
{
    BerthAgent *agent = data;
    if (agent->session != NULL)
        berth_session_report(agent->session, node);
}

static void on_memory_short(gpointer data)
{
    BerthAgent *agent = data;
    if (agent->meter != NULL)
        berth_meter_report(agent->meter);
}

static void start_session(BerthAgent *agent)
{
    BerthSessionConfig config = {
        .config = agent->config,
        .tls = agent->tls,
        .services = agent->services,
        .table = agent->table,
        .node_info = on_node_info,
        .joined = on_joined,
        .known = on_known,
        .user_data = agent,
    };
    agent->session = berth_session_new(&config);
}

static gboolean are_all_known(BerthAgent *agent)
{
    g_autoptr(GPtrArray) guests = berth_guest_table_list(agent->table);
    for (guint i = 0; i < guests->len; i++) {
        if (berth_guest_is_awaited(g_ptr_array_index(guests, i)))
            return FALSE;
    }
    return TRUE;
}

static void on_known_wait_over(gpointer data)
{
    BerthAgent *agent = data;
    agent->known_source = 0;
    if (agent->session == NULL)
        start_session(agent);
}

/* A guest that was adopted has answered: was it the last one? */
static void check_known(BerthAgent *agent)
{
    if (agent->session != NULL || !agent->is_ready || !are_all_known(agent))
        return;
    g_clear_handle_id(&agent->known_source, g_source_remove);
    start_session(agent);
}

static void on_guest_changed(BerthGuest *guest, gpointer data)
{
    BerthAgent *agent = data;
    if (agent->backstop != NULL)
        berth_backstop_guest_changed(agent->backstop);
    if (agent->session != NULL)
        berth_session_guest_changed(agent->session, guest);
}

static void on_guest_answered(BerthGuest *guest, gpointer data)
{
    check_known(data);
}

static void on_guest_output(BerthGuest *guest, gpointer data)
{
    BerthAgent *agent = data;
    if (agent->session != NULL)
        berth_session_guest_output(agent->session, guest);
}

static void on_guest_measured(BerthGuest *guest, guint64 cpu_usec, gpointer data)
{
    BerthAgent *agent = data;
    if (agent->meter != NULL)
        berth_meter_count(agent->meter, cpu_usec);
}

static void on_guest_pressed(BerthGuest *guest, gpointer data)
{
    BerthAgent *agent = data;
    if (agent->meter != NULL)
        berth_meter_press(agent->meter, guest);
}

static void on_guest_look_soon(BerthGuest *guest, gpointer data)
{
    BerthAgent *agent = data;
    if (agent->meter != NULL)
        berth_meter_look_soon(agent->meter);
}

static const char *on_qemu_failed(gpointer data)
{
    BerthAgent *agent = data;
    return agent->backstop != NULL ? berth_backstop_why_killed(agent->backstop) : NULL;
}

static void on_guest_forgotten(BerthGuest *guest, gpointer data)
{
    BerthAgent *agent = data;
    berth_guest_table_remove(agent->table, guest);
}

/* Its own address is for fencing: the scheduler must have it. */
static void on_storage_changed(gpointer data)
{
    BerthAgent *agent = data;
    if (agent->session != NULL && berth_storage_lane_is_fenced(agent->lane))
        berth_session_join_again(agent->session);
    else
        berth_agent_tell_changed(agent);
}

/* --- coming up ------------------------------------------------------------------------------ */

static void start_backstop(BerthAgent *agent)
{
    BerthBackstopLimits limits =
        berth_backstop_limits(agent->config, berth_node_offered_mib(agent->config, agent->host));
    if (agent->config->partition == NULL)
        g_message("other virtual machines of this host count as guests, and are under their memory "
                  "limit, unless partition in [libvirt] of berth-node.conf gives guests a cgroup "
                  "of their own");
    agent->backstop = berth_backstop_new(&limits, agent->table, "/proc", on_memory_short, agent);
}

void berth_agent_become_ready(BerthAgent *agent)
{
    g_autoptr(GPtrArray) guests = berth_guest_table_list(agent->table);
    agent->is_ready = TRUE;
    berth_agent_sweep(agent);
    g_message("%u guests run on here", guests->len);
    start_backstop(agent);
    agent->meter = berth_meter_new(agent->table, agent->hypervisor, agent->config, agent->backstop,
                                   on_measured, agent);
    agent->known_source = g_timeout_add_once(KNOWN_WAIT_MSEC, on_known_wait_over, agent);
    check_known(agent);
    agent->funcs.ready(agent->funcs.user_data);
}

static void set_context(BerthAgent *agent)
{
    gboolean use_kvm = agent->acceleration->use_kvm;
    const char *best = use_kvm ? "host-model" : "maximum";
    agent->context = (BerthGuestContext){
        .config = agent->config,
        .hypervisor = agent->hypervisor,
        .lane = agent->lane,
        .machine = agent->host->machine,
        .cpu_model = agent->config->cpu_model != NULL ? agent->config->cpu_model : best,
        .cmdline = agent->cmdline,
        .use_kvm = use_kvm,
        .usage_intervals = {{USAGE_CALM_MSEC, USAGE_INTERVAL_MSEC, USAGE_NEAR_MSEC}},
        .stall_msec = agent->config->guest_stall_msec,
        .changed = on_guest_changed,
        .answered = on_guest_answered,
        .output = on_guest_output,
        .measured = on_guest_measured,
        .pressed = on_guest_pressed,
        .look_soon = on_guest_look_soon,
        .why_killed = on_qemu_failed,
        .forgotten = on_guest_forgotten,
        .user_data = agent,
    };
}

static void on_probed(const BerthProbeResult *result, const GError *error, gpointer data)
{
    BerthAgent *agent = data;
    if (result == NULL) {
        berth_agent_fail(agent, error);
        return;
    }
    agent->acceleration = g_new0(BerthProbeResult, 1);
    agent->acceleration->use_kvm = result->use_kvm;
    agent->acceleration->reason = g_strdup(result->reason);
    if (result->use_kvm)
        g_message("guests run with KVM: %s", result->reason);
    else
        g_warning("guests run in software (TCG), many times slower than with KVM, as "
                  "allow_emulation says they may: %s",
                  result->reason);
    set_context(agent);
    berth_agent_list_domains(agent);
}

static void on_host_known(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthAgent *agent = data;
    g_autoptr(GError) error = NULL;
    BerthHost *host = berth_hypervisor_host_finish(result, &error);
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED))
        return; /* the agent ends */
    if (host == NULL) {
        berth_agent_fail(agent, error);
        return;
    }
    agent->host = host;
    g_message("%u CPUs, %" G_GUINT64_FORMAT " MiB, %u NUMA cells, QEMU %s, libvirt %s, %s",
              host->cpus, host->memory_mib, host->cells->len, host->qemu_version,
              host->libvirt_version, host->machine);
    agent->probe =
        berth_probe_new(agent->hypervisor, agent->config, host, agent->cmdline, on_probed, agent);
}

/* --- libvirt -------------------------------------------------------------------------------- */

static void on_hypervisor_connected(gpointer data)
{
    BerthAgent *agent = data;
    if (agent->lost_reason != NULL) {
        g_message("libvirt is there again");
        g_clear_pointer(&agent->lost_reason, g_free);
        berth_agent_tell_changed(agent);
    }
    if (agent->meter != NULL)
        berth_meter_check_states(agent->meter); /* what has stopped meanwhile was not told */
    berth_agent_look_for_secret(agent);
    if (agent->is_ready)
        berth_agent_list_domains(agent);
    else if (agent->host == NULL)
        berth_hypervisor_host_async(agent->hypervisor, on_host_known, agent);
}

static void on_hypervisor_lost(const GError *reason, gpointer data)
{
    BerthAgent *agent = data;
    if (!agent->is_ready) {
        berth_agent_fail(agent, reason);
        return;
    }
    if (agent->lost_reason != NULL)
        return; /* it was said */
    g_warning("no guest can be started or ended until libvirt is back (guests run on): %s",
              reason->message);
    agent->lost_reason = g_strdup(reason->message);
    berth_agent_tell_changed(agent);
}

static void on_domain(const char *name, const char *uuid, BerthDomainEvent event, gpointer data)
{
    BerthAgent *agent = data;
    BerthGuestId id;
    if (g_str_equal(name, BERTH_PROBE_DOMAIN)) {
        if (agent->probe != NULL)
            berth_probe_domain_event(agent->probe, uuid, event);
        return;
    }
    if (agent->table == NULL || !berth_guest_name_parse(name, &id, NULL))
        return;
    BerthGuest *guest = berth_guest_table_find_name(agent->table, name);
    if (guest == NULL || berth_guest_is_over(guest)) {
        if (event == BERTH_DOMAIN_STARTED && agent->is_ready)
            berth_agent_destroy_stray(agent, name, NULL);
    } else if (event == BERTH_DOMAIN_STARTED) {
        berth_guest_domain_started(guest);
    } else if (event == BERTH_DOMAIN_SUSPENDED) {
        berth_guest_domain_suspended(guest);
        if (agent->meter != NULL)
            berth_meter_check_states(agent->meter);
    } else if (event == BERTH_DOMAIN_RESUMED) {
        berth_guest_domain_resumed(guest);
    } else if (event == BERTH_DOMAIN_RESIZED) {
        berth_guest_domain_resized(guest);
    } else {
        berth_guest_domain_stopped(guest, event);
    }
}

/* --- life ----------------------------------------------------------------------------------- */

BerthAgent *berth_agent_new(const BerthNodeConfig *config, const BerthAgentFuncs *funcs,
                            GError **error)
{
    static const BerthHypervisorFuncs hypervisor_funcs = {on_hypervisor_connected,
                                                          on_hypervisor_lost, on_domain};
    g_autoptr(BerthAgent) agent = g_new0(BerthAgent, 1);
    agent->config = config;
    agent->funcs = *funcs;
    agent->lock_fd = -1;
    if (!check_all(agent, error))
        return NULL;
    agent->cmdline = config->extra_cmdline == NULL
                         ? g_strdup(CMDLINE)
                         : g_strdup_printf("%s %s", CMDLINE, config->extra_cmdline);
    agent->table = berth_guest_table_new();
    agent->services[0] = berth_agent_service_new(agent);
    agent->execs = berth_exec_service_new(agent->table, config->allow_exec);
    agent->services[1] = berth_exec_service_base(agent->execs);
    agent->lane = berth_storage_lane_new(&config->storage);
    berth_storage_lane_set_changed_func(agent->lane, on_storage_changed, agent);
    agent->hypervisor = berth_hypervisor_new(config->libvirt_uri, &hypervisor_funcs, agent);
    return g_steal_pointer(&agent);
}

/* Operations that were under way have ended: who waits for their results hears of it. */
static void dispatch_all(void)
{
    while (g_main_context_iteration(NULL, FALSE))
        ;
}

/* A worker of storage waits to hear how libvirt has ended what it does with a guest's memory. */
void berth_agent_free(BerthAgent *agent)
{
    if (agent == NULL)
        return;
    g_clear_handle_id(&agent->known_source, g_source_remove);
    g_clear_handle_id(&agent->list_source, g_source_remove);
    g_clear_handle_id(&agent->secret_source, g_source_remove);
    if (agent->execs != NULL)
        berth_exec_service_end(agent->execs);
    g_clear_pointer(&agent->session, berth_session_free);
    g_clear_pointer(&agent->backstop, berth_backstop_free);
    g_clear_pointer(&agent->meter, berth_meter_free);
    g_clear_pointer(&agent->table, berth_guest_table_free);
    g_clear_pointer(&agent->probe, berth_probe_free);
    berth_hypervisor_free(agent->hypervisor);
    dispatch_all();
    berth_storage_lane_free(agent->lane);
    dispatch_all();
    berth_probe_result_free(agent->acceleration);
    berth_host_free(agent->host);
    berth_tls_config_free(agent->tls);
    g_free(agent->services[0]);
    berth_exec_service_free(agent->execs);
    g_free(agent->cmdline);
    g_free(agent->lost_reason);
    g_free(agent->secret_error);
    if (agent->lock_fd >= 0)
        close(agent->lock_fd);
    g_free(agent);
}
