/* SPDX-License-Identifier: Apache-2.0 */
/* The hypervisor over libvirt's own test driver: a host in memory that every connection of the
 * process shares. What that driver never does (fail half-way, take long) is done at libvirt's edge. */
#include <config.h>

#include "nodeagent/hypervisor/private.h"
#include "tests/lib/assert.h"

#define URI   "test:///default"
#define OURS  "berth-1-0-0-1"
#define OTHER "berth-2-0-0-1"

typedef struct {
    BerthHypervisor *hypervisor;
    virConnectPtr side; /* of the test itself */
    guint connected, lost;
    GString *events; /* "name event\n" */
} Fixture;

/* --- libvirt's edge ------------------------------------------------------------------------- */

int __real_virConnectSetKeepAlive(virConnectPtr connection, int interval, unsigned int count);
int __wrap_virConnectSetKeepAlive(virConnectPtr connection, int interval, unsigned int count);
char *__real_virDomainGetXMLDesc(virDomainPtr domain, unsigned int flags);
char *__wrap_virDomainGetXMLDesc(virDomainPtr domain, unsigned int flags);

virDomainPtr __real_virDomainCreateXML(virConnectPtr connection, const char *xml,
                                       unsigned int flags);
virDomainPtr __wrap_virDomainCreateXML(virConnectPtr connection, const char *xml,
                                       unsigned int flags);

int __wrap_virConnectRegisterCloseCallback(virConnectPtr connection, virConnectCloseFunc callback,
                                           void *opaque, virFreeCallback free_opaque);
int __wrap_virConnectUnregisterCloseCallback(virConnectPtr connection,
                                             virConnectCloseFunc callback);
int __real_virConnectIsAlive(virConnectPtr connection);
int __wrap_virConnectIsAlive(virConnectPtr connection);
virErrorPtr __real_virGetLastError(void);
virErrorPtr __wrap_virGetLastError(void);

static virErrorPtr failure; /* that libvirt says it had; NULL: what it had */

static gint closes;  /* atomic: so many connections more are closed as soon as they are watched */
static gint dead;    /* atomic: so many connections more are dead without anybody being told */
static gint creates; /* atomic: begun */
static gint watched_calls; /* atomic: made over a connection that is kept alive */
static const char *broken; /* name of the domain that libvirt cannot be asked about */
static const char *ending; /* ... that ends when it is asked about */

/* A worker waits here for the test, or for the loop. */
typedef struct {
    GMutex lock;
    GCond opened;
    gboolean is_shut;
} Gate;

static Gate creating; /* creating takes until this is opened */

static void gate_shut(Gate *gate)
{
    g_mutex_lock(&gate->lock);
    gate->is_shut = TRUE;
    g_mutex_unlock(&gate->lock);
}

static void gate_open(Gate *gate)
{
    g_mutex_lock(&gate->lock);
    gate->is_shut = FALSE;
    g_cond_broadcast(&gate->opened);
    g_mutex_unlock(&gate->lock);
}

/* The deadline is for a test that hangs. */
static void gate_wait(Gate *gate)
{
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    g_mutex_lock(&gate->lock);
    while (gate->is_shut && g_cond_wait_until(&gate->opened, &gate->lock, deadline))
        ;
    g_mutex_unlock(&gate->lock);
}

static gboolean on_loop(gpointer gate)
{
    gate_open(gate);
    return G_SOURCE_REMOVE;
}

/* On a worker: until the loop has dispatched what was given to it before. */
static void wait_for_loop(void)
{
    static Gate loop;
    gate_shut(&loop);
    g_idle_add_full(G_PRIORITY_DEFAULT, on_loop, &loop, NULL);
    gate_wait(&loop);
}

virErrorPtr __wrap_virGetLastError(void)
{
    return failure != NULL ? failure : __real_virGetLastError();
}

static GMutex kept_lock;
static GHashTable *kept; /* connections that are kept alive */

static gboolean is_kept(virConnectPtr connection)
{
    g_mutex_lock(&kept_lock);
    gboolean is = kept != NULL && g_hash_table_contains(kept, connection);
    g_mutex_unlock(&kept_lock);
    return is;
}

/* The test driver has nobody to keep alive. */
int __wrap_virConnectSetKeepAlive(virConnectPtr connection, int interval, unsigned int count)
{
    g_mutex_lock(&kept_lock);
    if (kept == NULL)
        kept = g_hash_table_new(NULL, NULL);
    if (interval > 0)
        g_hash_table_add(kept, connection);
    else
        g_hash_table_remove(kept, connection);
    g_mutex_unlock(&kept_lock);
    return 0;
}

char *__wrap_virDomainGetXMLDesc(virDomainPtr domain, unsigned int flags)
{
    const char *name = virDomainGetName(domain);
    if (is_kept(virDomainGetConnect(domain)))
        g_atomic_int_inc(&watched_calls);
    if (g_strcmp0(name, broken) == 0)
        return __real_virDomainGetXMLDesc(domain, ~0u); /* which it refuses */
    if (g_strcmp0(name, ending) == 0)
        virDomainDestroy(domain);
    return __real_virDomainGetXMLDesc(domain, flags);
}

#define XML                                                                                        \
    "<domain type='test'><name>%s</name><metadata><berth:guest xmlns:berth='" BERTH_DOMAIN_XMLNS   \
    "' job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='64' disk-mib='16' disk='d' "     \
    "log='l'/></metadata><memory unit='MiB'>64</memory><os><type>hvm</type></os></domain>"

/* The test driver takes such callbacks and forgets them, so who watches which connection is kept
 * here. */
typedef struct {
    virConnectCloseFunc callback;
    void *opaque;
    virFreeCallback free_opaque;
} Watcher;

static GMutex watchers_lock;
static GHashTable *watchers; /* connection => Watcher */

int __wrap_virConnectRegisterCloseCallback(virConnectPtr connection, virConnectCloseFunc callback,
                                           void *opaque, virFreeCallback free_opaque)
{
    Watcher *watcher = g_new(Watcher, 1);
    *watcher = (Watcher){callback, opaque, free_opaque};
    g_mutex_lock(&watchers_lock);
    if (watchers == NULL)
        watchers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_hash_table_insert(watchers, connection, watcher);
    g_mutex_unlock(&watchers_lock);
    if (g_atomic_int_get(&closes) > 0) {
        g_atomic_int_add(&closes, -1);
        callback(connection, VIR_CONNECT_CLOSE_REASON_EOF, opaque);
        wait_for_loop(); /* which hears of it before it has the connection */
    }
    return 0;
}

int __wrap_virConnectUnregisterCloseCallback(virConnectPtr connection, virConnectCloseFunc callback)
{
    g_mutex_lock(&watchers_lock);
    g_autofree Watcher *watcher = NULL;
    g_hash_table_steal_extended(watchers, connection, NULL, (gpointer *)&watcher);
    g_mutex_unlock(&watchers_lock);
    assert_non_null(watcher);
    watcher->free_opaque(watcher->opaque);
    return 0;
}

int __wrap_virConnectIsAlive(virConnectPtr connection)
{
    if (g_atomic_int_get(&dead) == 0)
        return __real_virConnectIsAlive(connection);
    g_atomic_int_add(&dead, -1);
    return 0;
}

/* That over which workers call. */
static void close_calls(void)
{
    GHashTableIter iter;
    gpointer connection, watcher;
    Watcher found = {0};
    virConnectPtr calls = NULL;
    g_mutex_lock(&watchers_lock);
    g_hash_table_iter_init(&iter, watchers);
    while (g_hash_table_iter_next(&iter, &connection, &watcher)) {
        if (!is_kept(connection)) {
            calls = connection;
            found = *(Watcher *)watcher;
        }
    }
    g_mutex_unlock(&watchers_lock);
    assert_non_null(calls);
    found.callback(calls, VIR_CONNECT_CLOSE_REASON_EOF, found.opaque);
}

/* What the test driver can take instead of a domain for QEMU. */
virDomainPtr __wrap_virDomainCreateXML(virConnectPtr connection, const char *xml,
                                       unsigned int flags)
{
    g_autofree char *simple = g_strdup_printf(XML, OURS);
    g_atomic_int_inc(&creates);
    gate_wait(&creating);
    return __real_virDomainCreateXML(connection, simple, flags);
}

/* --- fixture -------------------------------------------------------------------------------- */

static void on_connected(gpointer data)
{
    ((Fixture *)data)->connected++;
}

static void on_lost(const GError *reason, gpointer data)
{
    ((Fixture *)data)->lost++;
}

static void on_domain(const char *name, const char *uuid, BerthDomainEvent event, gpointer data)
{
    Fixture *fixture = data;
    g_string_append_printf(fixture->events, "%s %d\n", name, (int)event);
}

static const BerthHypervisorFuncs funcs = {on_connected, on_lost, on_domain};

static virDomainPtr define(Fixture *fixture, const char *name)
{
    g_autofree char *xml = g_strdup_printf(XML, name);
    virDomainPtr domain = __real_virDomainCreateXML(fixture->side, xml, 0);
    assert_non_null(domain);
    return domain;
}

static void destroy_ours(Fixture *fixture)
{
    static const char *const names[] = {OURS, OTHER};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_auto(BerthVirDomain) domain = virDomainLookupByName(fixture->side, names[i]);
        if (domain != NULL)
            virDomainDestroy(domain);
    }
}

static Fixture *fixture_new(void)
{
    Fixture *fixture = g_new0(Fixture, 1);
    broken = ending = NULL;
    gate_open(&creating);
    g_atomic_int_set(&creates, 0);
    fixture->events = g_string_new(NULL);
    fixture->hypervisor = berth_hypervisor_new(URI, &funcs, fixture);
    fixture->side = virConnectOpen(URI);
    assert_non_null(fixture->side);
    return fixture;
}

static int setup(void **state)
{
    Fixture *fixture = fixture_new();
    *state = fixture;
    run_until(fixture->connected == 1);
    return 0;
}

static int setup_closing(void **state)
{
    g_atomic_int_set(&closes, 1);
    *state = fixture_new();
    return 0;
}

static int setup_dead(void **state)
{
    g_atomic_int_set(&dead, 1);
    *state = fixture_new();
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    destroy_ours(fixture);
    berth_hypervisor_free(fixture->hypervisor);
    while (g_main_context_iteration(NULL, FALSE)) /* what its workers had just done */
        ;
    virConnectClose(fixture->side);
    g_string_free(fixture->events, TRUE);
    g_free(fixture);
    return 0;
}

static void keep_result(GObject *source, GAsyncResult *result, gpointer data)
{
    *(GAsyncResult **)data = g_object_ref(result);
}

/* --- connections ---------------------------------------------------------------------------- */

/* One that was lost before it was there is made again. */
static void connection_that_is_dead_at_once_is_made_again(void **state)
{
    Fixture *fixture = *state;
    run_until(fixture->connected == 1);
    assert_int_equal(fixture->lost, 1);
    assert_true(berth_hypervisor_is_connected(fixture->hypervisor));
}

/* --- lists ---------------------------------------------------------------------------------- */

static GPtrArray *list(Fixture *fixture, GError **error)
{
    g_autoptr(GAsyncResult) result = NULL;
    berth_hypervisor_list_async(fixture->hypervisor, keep_result, &result);
    run_until(result != NULL);
    return berth_hypervisor_list_finish(result, error);
}

static void list_has_our_domains_and_no_others(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    broken = "test"; /* the driver's own: whatever is wrong with it is none of our business */
    g_autoptr(GPtrArray) found = list(fixture, &error);
    assert_no_error(error);
    assert_int_equal(found->len, 1);
    const BerthDomain *domain = g_ptr_array_index(found, 0);
    assert_string_equal(domain->name, OURS);
    assert_int_equal(domain->metadata.limits.memory_mib, 64);
}

/* libvirt's client does not outlive that for long. */
static void connection_that_is_kept_alive_is_not_called_over(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    g_atomic_int_set(&watched_calls, 0);
    g_autoptr(GPtrArray) found = list(fixture, &error);
    assert_no_error(error);
    assert_int_equal(found->len, 1);
    assert_int_equal(g_hash_table_size(kept), 1);
    assert_int_equal(g_atomic_int_get(&watched_calls), 0);
}

static void connections_are_made_again_together(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    close_calls();
    run_until(fixture->connected == 2);
    assert_int_equal(fixture->lost, 1);
    run_until(g_hash_table_size(watchers) == 2);
    assert_int_equal(g_hash_table_size(kept), 1);
    g_autoptr(GPtrArray) found = list(fixture, &error);
    assert_no_error(error);
    assert_int_equal(found->len, 1);
}

static void list_domain_that_ends_meanwhile_is_left_out(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    g_auto(BerthVirDomain) other = define(fixture, OTHER);
    ending = OURS;
    g_autoptr(GPtrArray) found = list(fixture, &error);
    assert_no_error(error);
    assert_int_equal(found->len, 1);
    assert_string_equal(((const BerthDomain *)g_ptr_array_index(found, 0))->name, OTHER);
}

/* A list without it would say that it does not run. */
static void list_domain_that_cannot_be_asked_about_fails_it_all(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    g_auto(BerthVirDomain) other = define(fixture, OTHER);
    broken = OURS;
    g_autoptr(GPtrArray) found = list(fixture, &error);
    assert_null(found);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, OURS);
}

/* --- events --------------------------------------------------------------------------------- */

/* What was told of OURS since the domain was defined, with its start left out. */
static void assert_told(Fixture *fixture, BerthDomainEvent event)
{
    g_autofree char *line = g_strdup_printf(OURS " %d\n", (int)event);
    run_until(strstr(fixture->events->str, line) != NULL);
}

static void event_of_a_resumed_domain_is_told(void **state)
{
    Fixture *fixture = *state;
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    assert_told(fixture, BERTH_DOMAIN_STARTED);
    g_string_truncate(fixture->events, 0);
    virDomainSuspend(ours);
    virDomainResume(ours);
    assert_told(fixture, BERTH_DOMAIN_RESUMED);
}

/* The test driver's shutdown is a guest's, its destroy an operator's. */
static void event_of_an_end_says_whose_it_was(void **state)
{
    Fixture *fixture = *state;
    g_auto(BerthVirDomain) first = define(fixture, OURS);
    virDomainShutdown(first);
    assert_told(fixture, BERTH_DOMAIN_ENDED);
    g_autofree char *stopped = g_strdup_printf(OURS " %d\n", (int)BERTH_DOMAIN_STOPPED);
    assert_null(strstr(fixture->events->str, stopped));
    g_auto(BerthVirDomain) second = define(fixture, OURS);
    g_string_truncate(fixture->events, 0);
    virDomainDestroy(second);
    assert_told(fixture, BERTH_DOMAIN_STOPPED);
}

/* --- measuring ------------------------------------------------------------------------------ */

static BerthDomainStats *measure(Fixture *fixture, GError **error)
{
    g_autoptr(GAsyncResult) result = NULL;
    berth_hypervisor_domain_stats_async(fixture->hypervisor, OURS, 60000, keep_result, &result);
    run_until(result != NULL);
    return berth_hypervisor_domain_stats_finish(result, error);
}

/* A daemon that is told so asks again; it gives up where a host refuses. */
static void error_of_a_closed_connection_may_pass(void **state)
{
    static const struct {
        int domain, code;
        BerthErrorCode wanted;
    } cases[] = {
        {VIR_FROM_RPC, VIR_ERR_INTERNAL_ERROR, BERTH_ERROR_UNAVAILABLE},
        {VIR_FROM_RPC, VIR_ERR_SYSTEM_ERROR, BERTH_ERROR_UNAVAILABLE},
        {VIR_FROM_NONE, VIR_ERR_INVALID_CONN, BERTH_ERROR_UNAVAILABLE},
        {VIR_FROM_QEMU, VIR_ERR_INTERNAL_ERROR, BERTH_ERROR_INTERNAL},
        {VIR_FROM_RPC, VIR_ERR_AUTH_FAILED, BERTH_ERROR_PERMISSION_DENIED},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        char text[] = "closed";
        virError said = {.domain = cases[i].domain, .code = cases[i].code, .message = text};
        failure = &said;
        berth_set_error_libvirt(&error, "cannot suspend it");
        failure = NULL;
        assert_int_equal(error->code, cases[i].wanted);
        assert_string_equal(error->message, "cannot suspend it: closed");
    }
}

static void domain_stats_are_of_the_one_that_is_named(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(BerthVirDomain) other = define(fixture, OTHER);
    g_auto(BerthVirDomain) ours = define(fixture, OURS);
    g_autoptr(BerthDomainStats) stats = measure(fixture, &error);
    assert_no_error(error);
    assert_string_equal(stats->name, OURS);
}

static void domain_stats_of_nobody_are_not_found(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    assert_null(measure(fixture, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, OURS);
}

/* --- creating ------------------------------------------------------------------------------- */

static gboolean runs(Fixture *fixture, const char *name)
{
    g_auto(BerthVirDomain) domain = virDomainLookupByName(fixture->side, name);
    return domain != NULL;
}

static GAsyncResult *create(Fixture *fixture, guint timeout_msec)
{
    BerthDomainMetadata metadata = {.disk_id = (char *)"d", .log_id = (char *)"l"};
    BerthDomainConfig config = {.name = OURS,
                                .metadata = &metadata,
                                .vcpus = 1,
                                .memory_mib = 64,
                                .machine = "pc-q35-7.2",
                                .cpu_model = "maximum",
                                .kernel = "/kernel",
                                .initramfs = "/initramfs",
                                .cmdline = "",
                                .console_path = "/console"};
    GAsyncResult *result = NULL;
    berth_hypervisor_create_async(fixture->hypervisor, &config, timeout_msec, keep_result, &result);
    run_until(result != NULL);
    return result;
}

static void create_in_time_makes_a_domain(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(GAsyncResult) result = create(fixture, 60000);
    assert_true(berth_hypervisor_create_finish(result, &error));
    assert_true(runs(fixture, OURS));
}

static void create_past_its_deadline_leaves_no_domain(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    gate_shut(&creating);
    g_autoptr(GAsyncResult) result = create(fixture, 100);
    assert_false(berth_hypervisor_create_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, OURS);
    assert_int_equal(g_atomic_int_get(&creates), 1);
    gate_open(&creating);
    g_string_truncate(fixture->events, 0);
    run_until(strstr(fixture->events->str, OURS) != NULL); /* it came after all */
    run_until(!runs(fixture, OURS));
}

/* --- ending --------------------------------------------------------------------------------- */

static void destroy(Fixture *fixture, const BerthGuestId *id)
{
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    berth_hypervisor_destroy_async(fixture->hypervisor, OURS, id, 0, keep_result, &result);
    run_until(result != NULL);
    berth_hypervisor_destroy_finish(result, &error);
    assert_no_error(error);
}

static void destroy_ends_the_guest_that_is_meant(void **state)
{
    Fixture *fixture = *state;
    const BerthGuestId earlier = {.job = 1, .epoch = 7}, its = {.job = 1, .epoch = 1};
    g_auto(BerthVirDomain) domain = define(fixture, OURS);
    destroy(fixture, &earlier);
    assert_true(runs(fixture, OURS));
    destroy(fixture, &its);
    assert_false(runs(fixture, OURS));
    destroy(fixture, &its); /* it is gone */
    g_auto(BerthVirDomain) another = define(fixture, OURS);
    destroy(fixture, NULL);
    assert_false(runs(fixture, OURS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(connection_that_is_dead_at_once_is_made_again,
                                        setup_closing, teardown),
        {"connection_that_is_dead_before_it_is_watched_is_made_again",
         connection_that_is_dead_at_once_is_made_again, setup_dead, teardown, NULL},
        TEST(list_has_our_domains_and_no_others),
        TEST(connection_that_is_kept_alive_is_not_called_over),
        TEST(connections_are_made_again_together),
        TEST(list_domain_that_ends_meanwhile_is_left_out),
        TEST(list_domain_that_cannot_be_asked_about_fails_it_all),
        TEST(event_of_a_resumed_domain_is_told),
        TEST(event_of_an_end_says_whose_it_was),
        TEST(error_of_a_closed_connection_may_pass),
        TEST(domain_stats_are_of_the_one_that_is_named),
        TEST(domain_stats_of_nobody_are_not_found),
        TEST(destroy_ends_the_guest_that_is_meant),
        TEST(create_in_time_makes_a_domain),
        TEST(create_past_its_deadline_leaves_no_domain),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
