/* SPDX-License-Identifier: Apache-2.0 */
/* Owns an agent for one test (tests/lib/agent_fixture.h). */
#include <config.h>

#include "tests/lib/agent_fixture.h"

#include <glib/gstdio.h>

#include "common/id.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/assert.h"
#include "tests/lib/certificates.h"
#include "tests/lib/tool.h"

const BerthGuestId agent_fixture_id = {.job = 1, .epoch = 1};

static char *path_of(const AgentFixture *fixture, const char *name)
{
    return g_build_filename(fixture->dir, name, NULL);
}

static void configure(AgentFixture *fixture)
{
    BerthNodeConfig *config = &fixture->config;
    config->name = g_strdup("n1");
    config->labels = g_new0(char *, 1);
    config->run_dir = path_of(fixture, "run");
    config->console_dir = path_of(fixture, "run/console");
    config->scheduler_address = g_strdup("127.0.0.1");
    config->scheduler_port = 1; /* where nobody listens */
    config->certificate = path_of(fixture, "n1.pem");
    config->key = path_of(fixture, "n1.key");
    config->ca = path_of(fixture, "n1.pem");
    config->libvirt_uri = g_strdup("fake:///");
    config->vcpus = 4;
    config->memory_mib = 2048;
    config->kernel = path_of(fixture, "n1.pem"); /* any file */
    config->initramfs = path_of(fixture, "n1.pem");
    config->allow_emulation = TRUE;
    config->probe_deadline_sec = 1;
    config->pace = (BerthPaceLimits){15, 5, 20, 10};
    config->traffic_interval_sec = 5;
    config->guest_stall_msec = 100;
    config->storage.kind = g_strdup("dir");
    config->storage.path = path_of(fixture, "storage");
    config->storage.op_timeout_sec = 30;
    assert_int_equal(g_mkdir(config->storage.path, 0755), 0);
    certificate_make_root("n1", config->key, config->certificate);
}

int agent_fixture_setup(void **state)
{
    AgentFixture *fixture = g_new0(AgentFixture, 1);
    agent_fixture_set_storage_down(FALSE);
    fixture->dir = g_dir_make_tmp("berth-agent-XXXXXX", NULL);
    assert_non_null(fixture->dir);
    configure(fixture);
    *state = fixture;
    return 0;
}

int agent_fixture_teardown(void **state)
{
    AgentFixture *fixture = *state;
    const char *const remove[] = {"rm", "-rf", fixture->dir, NULL};
    BerthNodeConfig *config = &fixture->config;
    berth_agent_free(fixture->agent);
    fake_guest_free(fixture->peer);
    tool_run(remove);
    char *const strings[] = {config->name,        config->run_dir,      config->console_dir,
                             config->certificate, config->key,          config->ca,
                             config->kernel,      config->initramfs,    config->storage.kind,
                             config->libvirt_uri, config->storage.path, config->scheduler_address,
                             fixture->dir};
    for (gsize i = 0; i < G_N_ELEMENTS(strings); i++)
        g_free(strings[i]);
    g_free(config->labels);
    g_free(config->storage.secret_uuid);
    g_free(fixture);
    return 0;
}

/* --- storage -------------------------------------------------------------------------------- */

gboolean __real_berth_storage_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                                        const void *data, gsize length, GError **error);
gboolean __wrap_berth_storage_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                                        const void *data, gsize length, GError **error);

gboolean __real_berth_storage_check(BerthStorage *storage, GError **error);
gboolean __wrap_berth_storage_check(BerthStorage *storage, GError **error);

char **__wrap_berth_storage_disk_clients(BerthStorage *storage, const char *disk_id,
                                         GError **error);
char *__real_berth_storage_client_address(BerthStorage *storage);
char *__wrap_berth_storage_client_address(BerthStorage *storage);

static gint storage_is_down;    /* atomic: workers look at it */
static const char *disk_client; /* set while no worker runs */
static const char *passer;      /* likewise */
static gint n_asked;            /* atomic */

void agent_fixture_set_storage_down(gboolean is_down)
{
    g_atomic_int_set(&storage_is_down, is_down);
}

static gboolean check_is_up(GError **error)
{
    if (!g_atomic_int_get(&storage_is_down))
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "storage is down");
    return FALSE;
}

gboolean __wrap_berth_storage_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                                        const void *data, gsize length, GError **error)
{
    return check_is_up(error) &&
           __real_berth_storage_log_write(storage, log_id, offset, data, length, error);
}

void agent_fixture_set_disk_client(const char *address)
{
    disk_client = address;
    passer = NULL;
    g_atomic_int_set(&n_asked, 0);
}

void agent_fixture_set_disk_client_and_passer(const char *address, const char *passer_address)
{
    agent_fixture_set_disk_client(address);
    passer = passer_address;
}

char **__wrap_berth_storage_disk_clients(BerthStorage *storage, const char *disk_id, GError **error)
{
    const char *const addresses[] = {disk_client, NULL};
    const char *const with_passer[] = {disk_client, passer, NULL};
    const char *const nobody[] = {NULL};
    if (!check_is_up(error))
        return NULL;
    if (disk_client == NULL)
        return g_strdupv((char **)nobody);
    gint before = g_atomic_int_add(&n_asked, 1);
    if (before == 0)
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "storage is slow");
    return before == 0 ? NULL
                       : g_strdupv((char **)(before == 1   ? nobody
                                             : before == 2 ? with_passer
                                                           : addresses));
}

char *__wrap_berth_storage_client_address(BerthStorage *storage)
{
    return disk_client != NULL ? g_strdup("10.0.0.9:0/9")
                               : __real_berth_storage_client_address(storage);
}

gboolean __wrap_berth_storage_check(BerthStorage *storage, GError **error)
{
    return check_is_up(error) && __real_berth_storage_check(storage, error);
}

/* --- the agent ------------------------------------------------------------------------------ */

static void on_ready(gpointer data)
{
    ((AgentFixture *)data)->is_ready = TRUE;
}

static void on_failed(const GError *error, gpointer data)
{
    fail_msg("the agent failed: %s", error->message);
}

/* The agent, once, before it has begun to look at anything. */
static void make_agent(AgentFixture *fixture)
{
    g_autoptr(GError) error = NULL;
    if (fixture->agent != NULL)
        return;
    BerthAgentFuncs funcs = {on_ready, on_failed, fixture};
    fixture->agent = berth_agent_new(&fixture->config, &funcs, &error);
    assert_no_error(error);
    fixture->hypervisor = fake_hypervisor();
}

void agent_fixture_add_guest(AgentFixture *fixture)
{
    make_agent(fixture);
    g_autofree char *name = berth_guest_name_format(&agent_fixture_id);
    g_autofree char *file = g_strconcat(name, ".sock", NULL);
    g_autofree char *path = g_build_filename(fixture->config.run_dir, file, NULL);
    g_autofree char *console = g_build_filename(fixture->config.console_dir, name, NULL);
    fixture->peer = fake_guest_new(path);
    fake_hypervisor_add(fixture->hypervisor, &agent_fixture_id, path, console);
}

void agent_fixture_start(AgentFixture *fixture)
{
    make_agent(fixture);
    run_until(fixture->is_ready);
}

static gboolean is_in(AgentFixture *fixture, BerthGuestPhaseOnNode phase)
{
    BerthGuest *guest = agent_fixture_guest(fixture);
    return guest != NULL && berth_guest_phase(guest) == phase;
}

void agent_fixture_start_running(AgentFixture *fixture)
{
    agent_fixture_add_guest(fixture);
    fixture->peer->has_task = fixture->peer->is_running = TRUE;
    agent_fixture_start(fixture);
    run_until(berth_guest_is_known(agent_fixture_guest(fixture)));
    fake_guest_say_started(fixture->peer);
    run_until(is_in(fixture, BERTH_PHASE_RUNNING));
}

void agent_fixture_start_in_slack(AgentFixture *fixture)
{
    agent_fixture_start_running(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    guest->is_opportunistic = TRUE;
    run_until(berth_guest_hold_is_known(guest) && !guest->asks_hold);
    fixture->hypervisor->holds = fixture->hypervisor->lets_go = 0;
}

BerthGuest *agent_fixture_guest(AgentFixture *fixture)
{
    return berth_guest_table_find(fixture->agent->table, &agent_fixture_id);
}

BerthGuestPhaseOnNode agent_fixture_phase(AgentFixture *fixture)
{
    return berth_guest_phase(agent_fixture_guest(fixture));
}

Berth__GuestStatus *agent_fixture_status(AgentFixture *fixture)
{
    return berth_guest_status(agent_fixture_guest(fixture));
}

GBytes *agent_fixture_log(AgentFixture *fixture, gboolean is_stderr)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = berth_log_id_format(&agent_fixture_id);
    g_autofree char *log_id = g_strconcat(name, is_stderr ? ".err" : ".out", NULL);
    g_autoptr(BerthStorage) storage = berth_storage_open(&fixture->config.storage, &error);
    assert_no_error(error);
    GBytes *content = berth_storage_log_read(storage, log_id, 0, 16u << 20, &error);
    assert_no_error(error);
    return content;
}

void agent_fixture_pass(guint msec)
{
    gint64 end = g_get_monotonic_time() + msec * 1000;
    guint tick = g_timeout_add(10, G_SOURCE_FUNC(run_until_tick), NULL);
    while (g_get_monotonic_time() < end)
        g_main_context_iteration(NULL, TRUE);
    g_source_remove(tick);
}
