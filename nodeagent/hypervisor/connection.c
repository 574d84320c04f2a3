/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the connection to libvirt: it is made, watched and made again. Does not own what is done
 * over it (domains.c).
 *
 * It is two connections, which are made and lost together. The client of libvirt (9.0; CVE-2024-4418) may use the
 * stack of a thread that is gone when a ping, which asks whether the other end is alive, is interrupted by a call of
 * another thread over the same connection. So the one that is watched is used by nobody else; the workers call over
 * one that is not. While a libvirtd does not answer, but lives, they wait, and those who wait for them have deadlines.
 *
 * `link` is touched in the loop only; a worker gets a reference to the connection of its own.
 * libvirt's event loop is the default main context. That a connection was closed may be noticed
 * on any thread, and is handed over to the loop. libvirt holds references to the hypervisor for as
 * long as it may call back. */
#include "nodeagent/hypervisor/private.h"

#include <libvirt-glib/libvirt-glib.h>

#include "common/error.h"

/* libvirtd serves max_client_requests (5 by default) of one client at once: more would only wait. */
#define WORKERS 5u
/* A move keeps a connection, and one of libvirtd's max_workers (20 by default), until it is over. */
#define MOVERS       16u
#define QUEUE_MAX    4096u
#define OPEN_MSEC    30000u
#define RETRY_MSEC   500u
#define RETRY_MAX    15000u
#define ALIVE_SEC    5
#define ALIVE_MISSED 3u

/* What is told of domains: their lives, and what they have of their memory. */
#define N_EVENTS 3

/* The connections with the callbacks that are registered on them. */
typedef struct {
    gatomicrefcount refs; /* the owner's, and the close callbacks' */
    BerthHypervisor *hypervisor;
    virConnectPtr watched;               /* kept alive, and told of domains */
    virConnectPtr calls;                 /* of workers; NULL: not made yet */
    int events[N_EVENTS];                /* ids; -1: none */
    gboolean watched_tells, calls_tells; /* that it is closed */
    GError *broken; /* the loop's: why it was closed by libvirtd; NULL: it was not */
} Link;

struct BerthHypervisor {
    gatomicrefcount refs;
    char *uri;
    const BerthHypervisorFuncs *funcs;
    gpointer user_data;
    BerthWorkPool *pool;
    BerthWorkPool *movers;
    GCancellable *stopping;
    Link *link;              /* NULL while there is none */
    GHashTable *told_to_end; /* names of domains whose QEMU was told to end, and has not yet */
    gboolean hangs;          /* libvirtd did not answer: workers may wait for it */
    guint retry_msec;
    guint retry_source;
};

static void start_open(BerthHypervisor *hypervisor);
static void on_closed(virConnectPtr connection, int reason, void *data);

static BerthHypervisor *hypervisor_ref(BerthHypervisor *hypervisor)
{
    g_atomic_ref_count_inc(&hypervisor->refs);
    return hypervisor;
}

static void hypervisor_unref(gpointer data)
{
    BerthHypervisor *hypervisor = data;
    if (!g_atomic_ref_count_dec(&hypervisor->refs))
        return;
    g_object_unref(hypervisor->stopping);
    g_hash_table_unref(hypervisor->told_to_end);
    g_free(hypervisor->uri);
    g_free(hypervisor);
}

static gboolean is_stopping(const BerthHypervisor *hypervisor)
{
    return g_cancellable_is_cancelled(hypervisor->stopping);
}

/* --- losing it ------------------------------------------------------------------------------ */

typedef struct {
    Link *link;
    int reason;
} Closed;

static Link *link_ref(Link *link)
{
    g_atomic_ref_count_inc(&link->refs);
    return link;
}

static void link_unref(gpointer data)
{
    Link *link = data;
    if (!g_atomic_ref_count_dec(&link->refs))
        return;
    hypervisor_unref(link->hypervisor);
    g_clear_error(&link->broken);
    g_free(link);
}

static void closed_free(gpointer data)
{
    Closed *closed = data;
    link_unref(closed->link);
    g_free(closed);
}

/* By its owner. On a worker: libvirt may wait for its answers. No ping is to come between them. */
static void link_free(gpointer data)
{
    Link *link = data;
    virConnectSetKeepAlive(link->watched, 0, 0);
    for (guint i = 0; i < N_EVENTS; i++)
        if (link->events[i] >= 0)
            virConnectDomainEventDeregisterAny(link->watched, link->events[i]);
    if (link->watched_tells)
        virConnectUnregisterCloseCallback(link->watched, on_closed);
    if (link->calls_tells)
        virConnectUnregisterCloseCallback(link->calls, on_closed);
    virConnectClose(link->watched);
    if (link->calls != NULL)
        virConnectClose(link->calls);
    link_unref(link);
}

static gpointer close_link(gconstpointer input, GCancellable *cancellable, GError **error)
{
    return NULL; /* the work is done when the input is freed */
}

static void on_retry_due(gpointer data)
{
    BerthHypervisor *hypervisor = data;
    hypervisor->retry_source = 0;
    start_open(hypervisor);
}

static void lose(BerthHypervisor *hypervisor, const GError *reason)
{
    if (is_stopping(hypervisor))
        return;
    Link *link = g_steal_pointer(&hypervisor->link);
    g_hash_table_remove_all(hypervisor->told_to_end);
    if (link != NULL)
        berth_work_pool_run(hypervisor->pool, "close the connection to libvirt", close_link, link,
                            link_free, NULL, 0, NULL, NULL, NULL);
    hypervisor->retry_source = g_timeout_add_once(hypervisor->retry_msec, on_retry_due, hypervisor);
    hypervisor->retry_msec = MIN(hypervisor->retry_msec * 2, RETRY_MAX);
    hypervisor->funcs->lost(reason, hypervisor->user_data);
}

static gboolean on_closed_in_loop(gpointer data)
{
    static const char *const reasons[] = {
        [VIR_CONNECT_CLOSE_REASON_ERROR] = "the connection broke",
        [VIR_CONNECT_CLOSE_REASON_EOF] = "libvirtd closed the connection",
        [VIR_CONNECT_CLOSE_REASON_KEEPALIVE] = "libvirtd does not answer",
        [VIR_CONNECT_CLOSE_REASON_CLIENT] = "closed",
    };
    Closed *closed = data;
    Link *link = closed->link;
    BerthHypervisor *hypervisor = link->hypervisor;
    gboolean known = closed->reason >= 0 && closed->reason < (int)G_N_ELEMENTS(reasons);
    if (link->broken == NULL)
        link->broken =
            g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "lost libvirt at %s: %s",
                        hypervisor->uri, known ? reasons[closed->reason] : "for an unknown reason");
    if (hypervisor->link == link) { /* else on_open_done() finds it so, or it is lost already */
        hypervisor->hangs = closed->reason == VIR_CONNECT_CLOSE_REASON_KEEPALIVE;
        lose(hypervisor, link->broken);
    }
    return G_SOURCE_REMOVE;
}

/* On any thread. */
static void on_closed(virConnectPtr connection, int reason, void *data)
{
    Closed *closed = g_new0(Closed, 1);
    closed->link = link_ref(data);
    closed->reason = reason;
    g_idle_add_full(G_PRIORITY_DEFAULT, on_closed_in_loop, closed, closed_free);
}

/* --- having it ------------------------------------------------------------------------------ */

/* How the domain NAME came to its end, of which libvirt gives DETAIL. */
static BerthDomainEvent end_of(BerthHypervisor *hypervisor, const char *name, int detail)
{
    gboolean was_told = g_hash_table_remove(hypervisor->told_to_end, name);
    switch (detail) {
    case VIR_DOMAIN_EVENT_STOPPED_MIGRATED:
        return BERTH_DOMAIN_LEFT;
    case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN:
        return was_told ? BERTH_DOMAIN_STOPPED : BERTH_DOMAIN_ENDED;
    case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
        return BERTH_DOMAIN_ENDED;
    case VIR_DOMAIN_EVENT_STOPPED_FAILED:
        return BERTH_DOMAIN_FAILED;
    default:
        return BERTH_DOMAIN_STOPPED;
    }
}

static void tell_domain(BerthHypervisor *hypervisor, const char *name, const char *uuid,
                        BerthDomainEvent event)
{
    hypervisor->funcs->domain(name, uuid, event, hypervisor->user_data);
}

/* In the loop. */
static int on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail,
                        void *data)
{
    BerthHypervisor *hypervisor = data;
    const char *name = virDomainGetName(domain);
    char uuid[VIR_UUID_STRING_BUFLEN];
    if (is_stopping(hypervisor) || name == NULL || virDomainGetUUIDString(domain, uuid) < 0)
        return 0;
    switch (event) {
    case VIR_DOMAIN_EVENT_STARTED:
        tell_domain(hypervisor, name, uuid, BERTH_DOMAIN_STARTED);
        break;
    case VIR_DOMAIN_EVENT_SUSPENDED:
        tell_domain(hypervisor, name, uuid, BERTH_DOMAIN_SUSPENDED);
        break;
    case VIR_DOMAIN_EVENT_RESUMED:
        tell_domain(hypervisor, name, uuid, BERTH_DOMAIN_RESUMED);
        break;
    case VIR_DOMAIN_EVENT_SHUTDOWN: /* STOPPED follows, and does not say whose wish it was */
        if (detail == VIR_DOMAIN_EVENT_SHUTDOWN_HOST)
            g_hash_table_add(hypervisor->told_to_end, g_strdup(name));
        break;
    case VIR_DOMAIN_EVENT_STOPPED:
        tell_domain(hypervisor, name, uuid, end_of(hypervisor, name, detail));
        break;
    default:
        break;
    }
    return 0;
}

static void tell_resized(BerthHypervisor *hypervisor, virDomainPtr domain)
{
    const char *name = virDomainGetName(domain);
    char uuid[VIR_UUID_STRING_BUFLEN];
    if (!is_stopping(hypervisor) && name != NULL && virDomainGetUUIDString(domain, uuid) == 0)
        tell_domain(hypervisor, name, uuid, BERTH_DOMAIN_RESIZED);
}

/* In the loop, as the next. */
static void on_plugged(virConnectPtr connection, virDomainPtr domain, const char *alias,
                       unsigned long long kib, void *data)
{
    tell_resized(data, domain);
}

static void on_balloon(virConnectPtr connection, virDomainPtr domain, unsigned long long kib,
                       void *data)
{
    tell_resized(data, domain);
}

static gboolean register_events(Link *link, BerthHypervisor *hypervisor)
{
    static const struct {
        int id;
        virConnectDomainEventGenericCallback func;
    } events[N_EVENTS] = {
        {VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle)},
        {VIR_DOMAIN_EVENT_ID_MEMORY_DEVICE_SIZE_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_plugged)},
        {VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE, VIR_DOMAIN_EVENT_CALLBACK(on_balloon)},
    };
    for (guint i = 0; i < N_EVENTS; i++) {
        link->events[i] =
            virConnectDomainEventRegisterAny(link->watched, NULL, events[i].id, events[i].func,
                                             hypervisor_ref(hypervisor), hypervisor_unref);
        if (link->events[i] < 0) {
            hypervisor_unref(hypervisor);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean register_close_callback(Link *link, virConnectPtr connection, gboolean *out_tells)
{
    *out_tells =
        virConnectRegisterCloseCallback(connection, on_closed, link_ref(link), link_unref) == 0;
    if (!*out_tells)
        link_unref(link);
    return *out_tells;
}

static gboolean register_callbacks(Link *link, BerthHypervisor *hypervisor, GError **error)
{
    if (virConnectSetKeepAlive(link->watched, ALIVE_SEC, ALIVE_MISSED) < 0 ||
        !register_close_callback(link, link->watched, &link->watched_tells) ||
        !register_close_callback(link, link->calls, &link->calls_tells)) {
        berth_set_error_libvirt(error, "cannot watch the connection to libvirt");
        return FALSE;
    }
    if (!register_events(link, hypervisor)) {
        berth_set_error_libvirt(error, "cannot watch libvirt's domains");
        return FALSE;
    }
    /* Last: what is closed from now on is told of. */
    if (virConnectIsAlive(link->watched) != 1 || virConnectIsAlive(link->calls) != 1) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "lost libvirt at %s while it was being watched", hypervisor->uri);
        return FALSE;
    }
    return TRUE;
}

/* NULL with ERROR. */
static virConnectPtr connect_to(const char *uri, GError **error)
{
    virConnectPtr connection = virConnectOpen(uri);
    if (connection == NULL) {
        berth_set_error_libvirt(error, "cannot connect to libvirt at %s", uri);
        g_prefix_error(error, "is libvirtd running (systemctl start libvirtd)? ");
    }
    return connection;
}

/* On a worker. */
static gpointer open_link(gconstpointer input, GCancellable *cancellable, GError **error)
{
    BerthHypervisor *hypervisor = (BerthHypervisor *)input;
    virConnectPtr watched = connect_to(hypervisor->uri, error);
    if (watched == NULL)
        return NULL;
    Link *link = g_new0(Link, 1);
    g_atomic_ref_count_init(&link->refs);
    link->hypervisor = hypervisor_ref(hypervisor);
    link->watched = watched;
    for (guint i = 0; i < N_EVENTS; i++)
        link->events[i] = -1;
    link->calls = connect_to(hypervisor->uri, error);
    if (link->calls != NULL && register_callbacks(link, hypervisor, error))
        return link;
    link_free(link);
    return NULL;
}

static void on_open_done(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthHypervisor *hypervisor = data;
    g_autoptr(GError) error = NULL;
    Link *link = berth_work_finish(result, &error);
    if (is_stopping(hypervisor)) {
        g_clear_pointer(&link, link_free);
    } else if (link == NULL) {
        lose(hypervisor, error);
    } else if (link->broken != NULL) {
        hypervisor->link = link; /* for as long as it takes to lose it */
        lose(hypervisor, link->broken);
    } else {
        hypervisor->link = link;
        hypervisor->hangs = FALSE;
        hypervisor->retry_msec = RETRY_MSEC;
        hypervisor->funcs->connected(hypervisor->user_data);
    }
    hypervisor_unref(hypervisor);
}

static void start_open(BerthHypervisor *hypervisor)
{
    berth_work_pool_run(hypervisor->pool, "connect to libvirt", open_link,
                        hypervisor_ref(hypervisor), hypervisor_unref, link_free, OPEN_MSEC,
                        hypervisor->stopping, on_open_done, hypervisor_ref(hypervisor));
}

static void ignore_libvirt_error(void *data, virErrorPtr error)
{
    /* Each caller reads its thread's last error; libvirt would print it as well. */
}

BerthHypervisor *berth_hypervisor_new(const char *uri, const BerthHypervisorFuncs *funcs,
                                      gpointer user_data)
{
    static gsize once = 0;
    if (g_once_init_enter(&once)) {
        virSetErrorFunc(NULL, ignore_libvirt_error);
        gvir_event_register();
        g_once_init_leave(&once, 1);
    }
    BerthHypervisor *hypervisor = g_new0(BerthHypervisor, 1);
    g_atomic_ref_count_init(&hypervisor->refs);
    hypervisor->uri = g_strdup(uri);
    hypervisor->funcs = funcs;
    hypervisor->user_data = user_data;
    hypervisor->pool = berth_work_pool_new("libvirt", WORKERS, QUEUE_MAX);
    hypervisor->movers = berth_work_pool_new("libvirt's moves", MOVERS, QUEUE_MAX);
    hypervisor->stopping = g_cancellable_new();
    hypervisor->told_to_end = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    hypervisor->retry_msec = RETRY_MSEC;
    start_open(hypervisor);
    return hypervisor;
}

void berth_hypervisor_free(BerthHypervisor *hypervisor)
{
    if (hypervisor == NULL)
        return;
    g_cancellable_cancel(hypervisor->stopping);
    g_clear_handle_id(&hypervisor->retry_source, g_source_remove);
    berth_work_pool_abandon(g_steal_pointer(&hypervisor->movers));
    if (hypervisor->hangs)
        berth_work_pool_abandon(g_steal_pointer(&hypervisor->pool));
    else
        berth_work_pool_free(g_steal_pointer(&hypervisor->pool));
    g_clear_pointer(&hypervisor->link, link_free);
    hypervisor_unref(hypervisor);
}

gboolean berth_hypervisor_is_connected(const BerthHypervisor *hypervisor)
{
    return hypervisor->link != NULL;
}

/* --- operations over it --------------------------------------------------------------------- */

static void operation_free(gpointer data)
{
    BerthOperation *operation = data;
    if (operation->connection != NULL)
        virConnectClose(operation->connection);
    if (operation->data_free != NULL)
        operation->data_free(operation->data);
    g_free(operation->uri);
    g_free(operation);
}

gboolean berth_operation_check(const BerthOperation *operation, const char *what, GError **error)
{
    if (operation->connection != NULL)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                "cannot %s: libvirt is not reached; is libvirtd running?", what);
    return FALSE;
}

void berth_hypervisor_run(BerthHypervisor *hypervisor, const char *what, BerthWorkFunc func,
                          gpointer data, GDestroyNotify data_free, GDestroyNotify result_free,
                          guint timeout_msec, GAsyncReadyCallback callback, gpointer user_data)
{
    BerthOperation *operation = g_new0(BerthOperation, 1);
    operation->data = data;
    operation->data_free = data_free;
    if (hypervisor->link != NULL) {
        operation->connection = hypervisor->link->calls;
        virConnectRef(operation->connection);
    }
    berth_work_pool_run(hypervisor->pool, what, func, operation, operation_free, result_free,
                        timeout_msec, hypervisor->stopping, callback, user_data);
}

virConnectPtr berth_operation_connect(const BerthOperation *operation, GError **error)
{
    virConnectPtr connection = virConnectOpen(operation->uri);
    if (connection == NULL) {
        berth_set_error_libvirt(error, "cannot connect to libvirt at %s", operation->uri);
        return NULL;
    }
    if (virConnectSetKeepAlive(connection, ALIVE_SEC, ALIVE_MISSED) >= 0)
        return connection;
    berth_set_error_libvirt(error, "cannot watch the connection to libvirt");
    virConnectClose(connection);
    return NULL;
}

void berth_hypervisor_run_move(BerthHypervisor *hypervisor, const char *what, BerthWorkFunc func,
                               gpointer data, GDestroyNotify data_free,
                               GAsyncReadyCallback callback, gpointer user_data)
{
    BerthOperation *operation = g_new0(BerthOperation, 1);
    operation->uri = g_strdup(hypervisor->uri);
    operation->data = data;
    operation->data_free = data_free;
    berth_work_pool_run(hypervisor->movers, what, func, operation, operation_free, NULL, 0,
                        hypervisor->stopping, callback, user_data);
}
