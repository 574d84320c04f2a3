/* SPDX-License-Identifier: Apache-2.0 */
/* Owns accepted connections until their TLS handshake has ended.
 *
 * One is silent until its first byte is there, costs a descriptor until then, and makes way for others of its address.
 * Then it is ready, and waits for its turn: a handshake is work, and holds a thread of GLib's pool, which the whole process
 * shares. Addresses take turns; each has a few handshakes under way at most. One that takes long while others wait, which no
 * honest one does, is broken off.
 *
 * Invariants: who is ready begins as soon as there is room for it, in the order of its address; freed memory is never seen by
 * a handshake that is under way, as each holds the whole, and `closed` says that nobody wants its outcome. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "common/rpc_handshakes.h"
#include "common/rpc_internal.h"
#include "common/rpc_poll.h"

#include "common/error.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

/* Under way, in all and of one address, which may be that of many nodes behind a router. */
#define SHAKING_MAX         32u
#define SHAKING_ADDRESS_MAX 4u
/* That are silent or ready. Beyond these of one address its longest silent one is dropped, or the newest, which dials again;
 * beyond these in all they wait in the kernel's queue. */
#define WAITING_MAX         2048u
#define WAITING_ADDRESS_MAX 256u
/* One of those that others wait for: an honest one takes milliseconds. */
#define PATIENCE_USEC (2 * G_USEC_PER_SEC)
/* How often it is looked for such. */
#define SWEEP_MSEC 500u

typedef struct {
    char *text;                    /* without its port */
    GQueue silent, ready, shaking; /* Entrant, oldest first */
    guint n_entrants;
    GList link; /* in RUNNABLE */
    gboolean is_runnable;
} Address;

typedef struct {
    BerthRpcHandshakes *handshakes;
    Address *address;
    GSocketConnection *connection;
    char *who;
    gint64 since_usec; /* it was accepted, or has been shaking hands */
    gint64 due_usec;
    BerthRpcWatch watch;
    BerthRpcTimer timer;
    GCancellable *cancellable; /* NULL until it shakes hands */
    gboolean is_dropped;
    GQueue *queue; /* of its address; NULL = none any more */
    GList link;
    GQueue *all; /* of all addresses */
    GList all_link;
} Entrant;

struct BerthRpcHandshakes {
    guint refs;
    gboolean closed;
    BerthRpcPoll *poll;
    const BerthTlsConfig *tls;
    guint timeout_msec;
    const BerthRpcHandshakesFuncs *funcs;
    gpointer data;
    GHashTable *addresses;         /* by text */
    GQueue runnable;               /* Address: one of its ready ones may begin */
    GQueue silent, ready, shaking; /* Entrant, oldest first */
    BerthRpcTimer sweep;
};

/* --- life --------------------------------------------------------------------------------------- */

static void drop_ref(BerthRpcHandshakes *handshakes)
{
    if (--handshakes->refs > 0)
        return;
    g_hash_table_unref(handshakes->addresses);
    berth_rpc_poll_unref(handshakes->poll);
    g_free(handshakes);
}

static void address_free(gpointer data)
{
    Address *address = data;
    g_free(address->text);
    g_free(address);
}

static Address *find_address(BerthRpcHandshakes *handshakes, GSocketAddress *remote)
{
    g_autofree char *text = NULL;
    if (remote != NULL && G_IS_INET_SOCKET_ADDRESS(remote))
        text = g_inet_address_to_string(
            g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(remote)));
    else
        text = g_strdup("an unknown address");
    Address *address = g_hash_table_lookup(handshakes->addresses, text);
    if (address == NULL) {
        address = g_new0(Address, 1);
        address->text = g_steal_pointer(&text);
        address->link.data = address;
        g_hash_table_insert(handshakes->addresses, address->text, address);
    }
    return address;
}

static Entrant *oldest(const GQueue *queue)
{
    return queue->head != NULL ? queue->head->data : NULL;
}

static void forget_if_unused(BerthRpcHandshakes *handshakes, Address *address)
{
    if (address->n_entrants > 0)
        return;
    if (address->is_runnable)
        g_queue_unlink(&handshakes->runnable, &address->link);
    g_hash_table_remove(handshakes->addresses, address->text);
}

static void leave_queues(Entrant *entrant)
{
    if (entrant->queue == NULL)
        return;
    g_queue_unlink(entrant->queue, &entrant->link);
    g_queue_unlink(entrant->all, &entrant->all_link);
    entrant->queue = entrant->all = NULL;
}

static void enter_queues(Entrant *entrant, GQueue *queue, GQueue *all)
{
    leave_queues(entrant);
    g_queue_push_tail_link(entrant->queue = queue, &entrant->link);
    g_queue_push_tail_link(entrant->all = all, &entrant->all_link);
}

static void stop_waiting(Entrant *entrant)
{
    berth_rpc_watch_end(&entrant->watch);
    berth_rpc_poll_timer_stop(&entrant->timer);
}

static void entrant_free(Entrant *entrant)
{
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    stop_waiting(entrant);
    leave_queues(entrant);
    entrant->address->n_entrants--;
    forget_if_unused(handshakes, entrant->address);
    g_clear_object(&entrant->cancellable);
    g_object_unref(entrant->connection);
    g_free(entrant->who);
    g_free(entrant);
    drop_ref(handshakes);
}

static void make_runnable(BerthRpcHandshakes *handshakes, Address *address)
{
    if (address->is_runnable || address->ready.length == 0 ||
        address->shaking.length >= SHAKING_ADDRESS_MAX)
        return;
    address->is_runnable = TRUE;
    g_queue_push_tail_link(&handshakes->runnable, &address->link);
}

/* It has not begun. */
static void refuse(Entrant *entrant, const GError *reason)
{
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    handshakes->refs++;
    entrant_free(entrant);
    if (!handshakes->closed)
        handshakes->funcs->failed(reason, handshakes->data);
    drop_ref(handshakes);
}

static GError *error_of_many(const Entrant *entrant)
{
    return g_error_new(
        BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
        "dropped a connection from %s that had not shown its certificate: too many such wait",
        entrant->address->text);
}

/* For others that wait. */
static void drop(Entrant *entrant)
{
    if (entrant->cancellable == NULL) {
        g_autoptr(GError) reason = error_of_many(entrant);
        refuse(entrant, reason);
        return;
    }
    /* on_handshake() hears of it; or that it had ended, if the loop has not come to that yet. */
    entrant->is_dropped = TRUE;
    leave_queues(entrant);
    make_runnable(entrant->handshakes, entrant->address);
    g_cancellable_cancel(entrant->cancellable);
}

/* --- turns -------------------------------------------------------------------------------------- */

static void run(BerthRpcHandshakes *handshakes);

static void on_handshake(GObject *source, GAsyncResult *result, gpointer data)
{
    Entrant *entrant = data;
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    g_autoptr(GError) error = NULL;
    g_autoptr(GIOStream) stream = berth_tls_handshake_finish(result, &error);
    if (stream == NULL && entrant->is_dropped) {
        g_clear_error(&error);
        error = error_of_many(entrant);
    }
    handshakes->refs++;
    leave_queues(entrant);
    make_runnable(handshakes, entrant->address);
    entrant_free(entrant);
    if (!handshakes->closed && stream != NULL)
        handshakes->funcs->completed(stream, handshakes->data);
    else if (!handshakes->closed)
        handshakes->funcs->failed(error, handshakes->data);
    run(handshakes);
    drop_ref(handshakes);
}

/* Whoever has given up meanwhile is not worth the work. */
static gboolean has_hung_up(const Entrant *entrant)
{
    struct pollfd look = {.fd =
                              g_socket_get_fd(g_socket_connection_get_socket(entrant->connection)),
                          .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0;
}

static void begin(Entrant *entrant)
{
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    gint64 left_msec = (entrant->due_usec - g_get_monotonic_time()) / 1000;
    if (has_hung_up(entrant)) {
        g_autoptr(GError) reason =
            g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                        "the TLS handshake with %s broke off: it has hung up", entrant->who);
        refuse(entrant, reason);
        return;
    }
    stop_waiting(entrant);
    enter_queues(entrant, &entrant->address->shaking, &handshakes->shaking);
    entrant->since_usec = g_get_monotonic_time();
    entrant->cancellable = g_cancellable_new();
    berth_tls_handshake_async(handshakes->tls, G_IO_STREAM(entrant->connection), NULL, entrant->who,
                              (guint)MAX(left_msec, 1), entrant->cancellable, on_handshake,
                              entrant);
}

static gboolean is_late(const Entrant *entrant, gint64 now_usec)
{
    return entrant != NULL && entrant->since_usec < now_usec - PATIENCE_USEC;
}

/* (transfer container) of those for which their addresses' others have waited long enough. */
static GPtrArray *find_late(BerthRpcHandshakes *handshakes, gint64 now_usec)
{
    GPtrArray *late = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, handshakes->addresses);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Address *address = value;
        if (address->ready.length > 0 && address->shaking.length >= SHAKING_ADDRESS_MAX &&
            is_late(oldest(&address->shaking), now_usec))
            g_ptr_array_add(late, oldest(&address->shaking));
    }
    return late;
}

static void on_sweep(gpointer data)
{
    BerthRpcHandshakes *handshakes = data;
    gint64 now_usec = g_get_monotonic_time();
    g_autoptr(GPtrArray) late = find_late(handshakes, now_usec);
    handshakes->refs++;
    for (guint i = 0; i < late->len && !handshakes->closed; i++)
        drop(g_ptr_array_index(late, i));
    while (!handshakes->closed && handshakes->shaking.length >= SHAKING_MAX &&
           is_late(oldest(&handshakes->shaking), now_usec))
        drop(oldest(&handshakes->shaking));
    while (!handshakes->closed && berth_rpc_handshakes_is_full(handshakes) &&
           is_late(oldest(&handshakes->silent), now_usec))
        drop(oldest(&handshakes->silent));
    run(handshakes);
    drop_ref(handshakes);
}

/* While somebody waits for others. */
static void arm_sweep(BerthRpcHandshakes *handshakes)
{
    if (handshakes->ready.length == 0 && !berth_rpc_handshakes_is_full(handshakes))
        berth_rpc_poll_timer_stop(&handshakes->sweep);
    else if (handshakes->sweep.place == NULL)
        berth_rpc_poll_timer_start(handshakes->poll, &handshakes->sweep, SWEEP_MSEC, on_sweep,
                                   handshakes);
}

static void run(BerthRpcHandshakes *handshakes)
{
    while (!handshakes->closed && handshakes->shaking.length < SHAKING_MAX &&
           handshakes->runnable.length > 0) {
        Address *address = g_queue_pop_head_link(&handshakes->runnable)->data;
        Entrant *entrant = oldest(&address->ready);
        address->is_runnable = FALSE;
        if (entrant == NULL)
            continue;
        /* It is behind the others again, if it has more. */
        handshakes->refs++;
        GList *next = entrant->link.next;
        begin(entrant);
        if (next != NULL && !handshakes->closed)
            make_runnable(handshakes, address);
        drop_ref(handshakes);
    }
    if (handshakes->closed)
        return;
    arm_sweep(handshakes);
    if (!berth_rpc_handshakes_is_full(handshakes))
        handshakes->funcs->has_room(handshakes->data);
}

/* --- coming in ---------------------------------------------------------------------------------- */

static void on_first_byte(gpointer data)
{
    Entrant *entrant = data;
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    Address *address = entrant->address;
    berth_rpc_watch_end(&entrant->watch);
    enter_queues(entrant, &address->ready, &handshakes->ready);
    make_runnable(handshakes, address);
    handshakes->refs++;
    run(handshakes);
    drop_ref(handshakes);
}

static void on_late(gpointer data)
{
    Entrant *entrant = data;
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    g_autoptr(GError) reason = g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                                           "%s did not complete the TLS handshake within %u ms",
                                           entrant->who, handshakes->timeout_msec);
    handshakes->refs++;
    refuse(entrant, reason);
    run(handshakes);
    drop_ref(handshakes);
}

gboolean berth_rpc_handshakes_is_full(const BerthRpcHandshakes *handshakes)
{
    return handshakes->silent.length + handshakes->ready.length >= WAITING_MAX;
}

void berth_rpc_handshakes_add(BerthRpcHandshakes *handshakes, GSocketConnection *connection)
{
    GSocket *socket = g_socket_connection_get_socket(connection);
    g_autoptr(GSocketAddress) remote = g_socket_get_remote_address(socket, NULL);
    g_socket_set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    Entrant *entrant = g_new0(Entrant, 1);
    entrant->handshakes = handshakes;
    entrant->address = find_address(handshakes, remote);
    entrant->connection = g_object_ref(connection);
    entrant->who = berth_rpc_address_text(remote);
    entrant->since_usec = g_get_monotonic_time();
    entrant->due_usec = entrant->since_usec + handshakes->timeout_msec * (gint64)1000;
    entrant->link.data = entrant->all_link.data = entrant;
    Address *address = entrant->address;
    address->n_entrants++;
    handshakes->refs += 2; /* of ENTRANT, and here */
    enter_queues(entrant, &address->silent, &handshakes->silent);
    berth_rpc_watch_start(&entrant->watch, handshakes->poll, g_socket_get_fd(socket));
    berth_rpc_watch_wait(&entrant->watch, &entrant->watch.in, FALSE, on_first_byte, entrant);
    berth_rpc_poll_timer_start(handshakes->poll, &entrant->timer, handshakes->timeout_msec, on_late,
                               entrant);
    if (address->silent.length + address->ready.length > WAITING_ADDRESS_MAX)
        drop(oldest(&address->silent)); /* this one, if no other is silent */
    if (!handshakes->closed)
        arm_sweep(handshakes);
    drop_ref(handshakes);
}

/* --- public ------------------------------------------------------------------------------------- */

BerthRpcHandshakes *berth_rpc_handshakes_new(const BerthTlsConfig *tls, guint timeout_msec,
                                             const BerthRpcHandshakesFuncs *funcs, gpointer data)
{
    BerthRpcHandshakes *handshakes = g_new0(BerthRpcHandshakes, 1);
    g_autoptr(GMainContext) context = g_main_context_ref_thread_default();
    handshakes->refs = 1;
    handshakes->poll = berth_rpc_poll_ref(context);
    handshakes->tls = tls;
    handshakes->timeout_msec = timeout_msec;
    handshakes->funcs = funcs;
    handshakes->data = data;
    handshakes->addresses = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, address_free);
    return handshakes;
}

void berth_rpc_handshakes_free(BerthRpcHandshakes *handshakes)
{
    if (handshakes == NULL)
        return;
    handshakes->closed = TRUE;
    berth_rpc_poll_timer_stop(&handshakes->sweep);
    while (handshakes->silent.length > 0)
        entrant_free(oldest(&handshakes->silent));
    while (handshakes->ready.length > 0)
        entrant_free(oldest(&handshakes->ready));
    for (GList *link = handshakes->shaking.head; link != NULL; link = link->next)
        g_cancellable_cancel(((Entrant *)link->data)->cancellable);
    drop_ref(handshakes);
}
