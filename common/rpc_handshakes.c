/* SPDX-License-Identifier: Apache-2.0 */
/* Owns accepted connections until their TLS handshake has ended. Whose turn it is is rpc_addresses.c's.
 *
 * One is silent until its first record is there, costs a descriptor until then, and makes way for others. Then it is ready, and waits
 * for its turn: a handshake is work, and holds a thread of GLib's pool, which the whole process shares. One that takes long while
 * others wait, which no honest one does, is broken off; the more often that happens, the sooner.
 *
 * Invariants: who is ready begins as soon as there is room for it, in the order of its address; freed memory is never seen by
 * a handshake that is under way, as each holds the whole, and `closed` says that nobody wants its outcome. */
#include "common/rpc_handshakes.h"
#include "common/rpc_addresses.h"
#include "common/rpc_first_record.h"
#include "common/rpc_internal.h"
#include "common/rpc_poll.h"

#include "common/descriptors.h"
#include "common/error.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

/* That are silent or ready, and of one address half as many. Beyond these the longest silent one is dropped; who finds all
 * ready is dropped if they are of its address, and dials again, else it waits in the kernel's queue. Of the descriptors that
 * there may be they get a quarter. */
#define WAITING_MAX        2048u
#define SILENT_ADDRESS_MAX 256u
/* Of one that others wait for, from when a thread has taken it: an honest one takes milliseconds. */
#define PATIENCE_USEC     (2 * G_USEC_PER_SEC)
#define PATIENCE_MIN_USEC (G_USEC_PER_SEC / 5)
/* How much of it is won back with each that completes. */
#define PATIENCE_STEP_USEC (PATIENCE_USEC / 64)
/* How often it is looked for such. */
#define SWEEP_MSEC 100u
/* What GLib may take for one that is under way: for waking its thread. And for whatever else goes on meanwhile. */
#define DESCRIPTORS_EACH  3u
#define DESCRIPTORS_SPARE 32u
/* How often bytes may be told of until the first record is there: for its header, and for the rest. */
#define LOOKS_MAX 2u

typedef struct {
    BerthRpcHandshakes *handshakes;
    BerthRpcPlace place;
    GSocketConnection *connection;
    GSocket *socket; /* of it */
    char *who;
    gint64 since_usec; /* it was begun, or was last seen not to be taken by a thread */
    gint64 due_usec;
    BerthRpcWatch watch;
    BerthRpcTimer timer;
    guint looks;
    GCancellable *cancellable; /* NULL until it shakes hands */
    gboolean is_taken;
    gboolean is_dropped;
} Entrant;

struct BerthRpcHandshakes {
    guint refs;
    gboolean closed;
    BerthRpcPoll *poll;
    const BerthTlsConfig *tls;
    guint timeout_msec;
    const BerthRpcHandshakesFuncs *funcs;
    gpointer data;
    BerthRpcAddresses *addresses;
    guint waiting_max;
    gint64 patience_usec;
    BerthRpcTimer sweep;
};

/* --- errors ------------------------------------------------------------------------------------- */

static GError *error_of_many(const Entrant *entrant)
{
    return g_error_new(
        BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
        "dropped a connection from %s that had not shown its certificate: too many such wait",
        berth_rpc_place_text(&entrant->place));
}

static GError *error_of_hang_up(const Entrant *entrant)
{
    return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                       "the TLS handshake with %s broke off: it has hung up", entrant->who);
}

static GError *error_of_time(const Entrant *entrant)
{
    guint msec = entrant->handshakes->timeout_msec;
    if (entrant->place.stage == BERTH_RPC_READY)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                           "%s got no turn within %u ms: too many TLS handshakes are under way, or "
                           "too few descriptors are left",
                           entrant->who, msec);
    return g_error_new(BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED,
                       "%s did not complete the TLS handshake within %u ms", entrant->who, msec);
}

/* --- life --------------------------------------------------------------------------------------- */

static void drop_ref(BerthRpcHandshakes *handshakes)
{
    if (--handshakes->refs > 0)
        return;
    berth_rpc_addresses_free(handshakes->addresses);
    berth_rpc_poll_unref(handshakes->poll);
    g_free(handshakes);
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
    berth_rpc_place_end(&entrant->place);
    g_clear_object(&entrant->cancellable);
    g_object_unref(entrant->connection);
    g_free(entrant->who);
    g_free(entrant);
    drop_ref(handshakes);
}

/* It has not begun. REASON: (transfer full) */
static void refuse(Entrant *entrant, GError *reason)
{
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    g_autoptr(GError) owned = reason;
    handshakes->refs++;
    entrant_free(entrant);
    if (!handshakes->closed)
        handshakes->funcs->failed(owned, handshakes->data);
    drop_ref(handshakes);
}

/* For others that wait. */
static void drop(Entrant *entrant)
{
    if (entrant->cancellable == NULL) {
        refuse(entrant, error_of_many(entrant));
        return;
    }
    /* on_handshake() hears of it; or that it had ended, if the loop has not come to that yet. */
    entrant->is_dropped = TRUE;
    berth_rpc_place_move(&entrant->place, BERTH_RPC_GONE);
    g_cancellable_cancel(entrant->cancellable);
}

/* --- turns -------------------------------------------------------------------------------------- */

static void run(BerthRpcHandshakes *handshakes);

/* (transfer full) what is said of it. */
static GError *explain(const Entrant *entrant, const GError *error)
{
    if (entrant->is_dropped)
        return error_of_many(entrant);
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED))
        return error_of_time(entrant);
    return g_error_copy(error);
}

static void note_completed(Entrant *entrant)
{
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    berth_rpc_place_completed(&entrant->place, g_get_monotonic_time());
    handshakes->patience_usec = MIN(handshakes->patience_usec + PATIENCE_STEP_USEC, PATIENCE_USEC);
}

static void on_handshake(GObject *source, GAsyncResult *result, gpointer data)
{
    Entrant *entrant = data;
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) reason = NULL;
    g_autoptr(GIOStream) stream = berth_tls_handshake_finish(result, &error);
    if (stream != NULL)
        note_completed(entrant);
    else
        reason = explain(entrant, error);
    handshakes->refs++;
    entrant_free(entrant);
    if (!handshakes->closed && stream != NULL)
        handshakes->funcs->completed(stream, handshakes->data);
    else if (!handshakes->closed)
        handshakes->funcs->failed(reason, handshakes->data);
    run(handshakes);
    drop_ref(handshakes);
}

static void begin(Entrant *entrant)
{
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    gint64 left_msec = (entrant->due_usec - g_get_monotonic_time()) / 1000;
    if (berth_rpc_has_hung_up(entrant->socket)) {
        refuse(entrant, error_of_hang_up(entrant));
        return;
    }
    stop_waiting(entrant);
    berth_rpc_want_bytes(entrant->socket, 1);
    berth_rpc_place_move(&entrant->place, BERTH_RPC_SHAKING);
    entrant->since_usec = g_get_monotonic_time();
    entrant->cancellable = g_cancellable_new();
    berth_tls_handshake_async(handshakes->tls, G_IO_STREAM(entrant->connection), NULL, entrant->who,
                              (guint)MAX(left_msec, 1), entrant->cancellable, on_handshake,
                              entrant);
}

/* GLib aborts the process when it gets no descriptor for one that is under way. */
static gboolean can_begin(const BerthRpcHandshakes *handshakes)
{
    guint n = berth_rpc_addresses_count(handshakes->addresses, BERTH_RPC_SHAKING) + 1;
    return !handshakes->closed &&
           berth_rpc_addresses_count(handshakes->addresses, BERTH_RPC_READY) > 0 &&
           berth_descriptors_left() >= DESCRIPTORS_SPARE + n * DESCRIPTORS_EACH;
}

static void begin_those_who_may(BerthRpcHandshakes *handshakes)
{
    Entrant *entrant = NULL;
    while (can_begin(handshakes) &&
           (entrant = berth_rpc_addresses_next(handshakes->addresses)) != NULL)
        begin(entrant);
}

static gboolean is_late(const Entrant *entrant)
{
    return entrant->since_usec < g_get_monotonic_time() - entrant->handshakes->patience_usec;
}

/* What a thread has not taken lies there unread: it waits for others, and others not for it. */
static void note_taken(Entrant *entrant)
{
    if (!entrant->is_taken && berth_rpc_bytes_there(entrant->socket) > 0)
        entrant->since_usec = g_get_monotonic_time();
    else
        entrant->is_taken = TRUE;
}

/* Each for one that can begin then. */
static void drop_late(BerthRpcHandshakes *handshakes)
{
    gboolean has_dropped = FALSE;
    g_autoptr(GPtrArray) all = berth_rpc_addresses_list(handshakes->addresses, BERTH_RPC_SHAKING);
    for (guint i = 0; i < all->len; i++)
        note_taken(g_ptr_array_index(all, i));
    for (guint i = 0; i < all->len && !handshakes->closed; i++) {
        Entrant *entrant = g_ptr_array_index(all, i);
        if (!is_late(entrant) || !berth_rpc_place_is_in_the_way(&entrant->place))
            continue;
        drop(entrant);
        begin_those_who_may(handshakes);
        has_dropped = TRUE;
    }
    if (has_dropped)
        handshakes->patience_usec = MAX(handshakes->patience_usec / 2, PATIENCE_MIN_USEC);
}

static void on_sweep(gpointer data)
{
    BerthRpcHandshakes *handshakes = data;
    handshakes->refs++;
    drop_late(handshakes);
    run(handshakes);
    drop_ref(handshakes);
}

/* While somebody waits for others. */
static void arm_sweep(BerthRpcHandshakes *handshakes)
{
    if (berth_rpc_addresses_count(handshakes->addresses, BERTH_RPC_READY) == 0)
        berth_rpc_poll_timer_stop(&handshakes->sweep);
    else if (handshakes->sweep.place == NULL)
        berth_rpc_poll_timer_start(handshakes->poll, &handshakes->sweep, SWEEP_MSEC, on_sweep,
                                   handshakes);
}

static void run(BerthRpcHandshakes *handshakes)
{
    begin_those_who_may(handshakes);
    if (handshakes->closed)
        return;
    arm_sweep(handshakes);
    if (!berth_rpc_handshakes_is_full(handshakes))
        handshakes->funcs->has_room(handshakes->data);
}

/* --- coming in ---------------------------------------------------------------------------------- */

static void on_bytes(gpointer data)
{
    Entrant *entrant = data;
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    guint wanted = berth_rpc_first_record_bytes(entrant->socket);
    handshakes->refs++;
    if (wanted == 0) {
        berth_rpc_watch_end(&entrant->watch);
        berth_rpc_place_move(&entrant->place, BERTH_RPC_READY);
    } else if (berth_rpc_has_hung_up(entrant->socket)) {
        refuse(entrant, error_of_hang_up(entrant));
    } else if (++entrant->looks < LOOKS_MAX) {
        berth_rpc_want_bytes(entrant->socket, wanted);
        berth_rpc_watch_wait(&entrant->watch, &entrant->watch.in, FALSE, on_bytes, entrant);
    } /* else the kernel has no room for so many bytes: nobody looks at it any more */
    run(handshakes);
    drop_ref(handshakes);
}

static void on_late(gpointer data)
{
    Entrant *entrant = data;
    BerthRpcHandshakes *handshakes = entrant->handshakes;
    handshakes->refs++;
    refuse(entrant, error_of_time(entrant));
    run(handshakes);
    drop_ref(handshakes);
}

static guint count_waiting(const BerthRpcHandshakes *handshakes)
{
    return berth_rpc_addresses_count(handshakes->addresses, BERTH_RPC_SILENT) +
           berth_rpc_addresses_count(handshakes->addresses, BERTH_RPC_READY);
}

gboolean berth_rpc_handshakes_is_full(const BerthRpcHandshakes *handshakes)
{
    return count_waiting(handshakes) >= handshakes->waiting_max &&
           berth_rpc_addresses_count(handshakes->addresses, BERTH_RPC_SILENT) == 0;
}

/* Who goes so that NEWEST, which is silent, may stay; NULL = nobody needs to. */
static Entrant *find_one_too_many(BerthRpcHandshakes *handshakes, const Entrant *newest)
{
    const BerthRpcPlace *place = &newest->place;
    guint silent = berth_rpc_place_count(place, BERTH_RPC_SILENT);
    guint max = handshakes->waiting_max / 2;
    if (silent > MIN(SILENT_ADDRESS_MAX, max))
        return berth_rpc_place_oldest(place, BERTH_RPC_SILENT);
    if (silent + berth_rpc_place_count(place, BERTH_RPC_READY) > max) {
        Entrant *shaking = berth_rpc_place_oldest(place, BERTH_RPC_SHAKING);
        if (shaking != NULL && is_late(shaking))
            return shaking; /* for one that is ready */
        return berth_rpc_place_oldest(place, BERTH_RPC_SILENT);
    }
    if (count_waiting(handshakes) > handshakes->waiting_max)
        return berth_rpc_addresses_oldest(handshakes->addresses, BERTH_RPC_SILENT);
    return NULL;
}

static Entrant *entrant_new(BerthRpcHandshakes *handshakes, GSocketConnection *connection)
{
    GSocket *socket = g_socket_connection_get_socket(connection);
    g_autoptr(GSocketAddress) remote = g_socket_get_remote_address(socket, NULL);
    Entrant *entrant = g_new0(Entrant, 1);
    gint64 now_usec = g_get_monotonic_time();
    handshakes->refs++;
    entrant->handshakes = handshakes;
    entrant->connection = g_object_ref(connection);
    entrant->socket = socket;
    entrant->who = berth_rpc_address_text(remote);
    entrant->due_usec = now_usec + handshakes->timeout_msec * (gint64)1000;
    berth_rpc_place_take(&entrant->place, handshakes->addresses, remote, now_usec, entrant);
    return entrant;
}

void berth_rpc_handshakes_add(BerthRpcHandshakes *handshakes, GSocketConnection *connection)
{
    Entrant *entrant = entrant_new(handshakes, connection);
    handshakes->refs++;
    g_socket_set_option(entrant->socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
    berth_rpc_want_bytes(entrant->socket, BERTH_RPC_RECORD_HEADER);
    berth_rpc_watch_start(&entrant->watch, handshakes->poll, g_socket_get_fd(entrant->socket));
    berth_rpc_watch_wait(&entrant->watch, &entrant->watch.in, FALSE, on_bytes, entrant);
    berth_rpc_poll_timer_start(handshakes->poll, &entrant->timer, handshakes->timeout_msec, on_late,
                               entrant);
    Entrant *goes = find_one_too_many(handshakes, entrant);
    if (goes != NULL) {
        drop(goes);
        run(handshakes);
    }
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
    handshakes->addresses = berth_rpc_addresses_new();
    handshakes->waiting_max = MIN(WAITING_MAX, berth_descriptors_max() / 4);
    handshakes->patience_usec = PATIENCE_USEC;
    return handshakes;
}

static void give_up(Entrant *entrant)
{
    if (entrant->cancellable != NULL)
        g_cancellable_cancel(entrant->cancellable);
    else
        entrant_free(entrant);
}

void berth_rpc_handshakes_free(BerthRpcHandshakes *handshakes)
{
    if (handshakes == NULL)
        return;
    handshakes->closed = TRUE;
    berth_rpc_poll_timer_stop(&handshakes->sweep);
    for (BerthRpcStage stage = BERTH_RPC_SILENT; stage <= BERTH_RPC_SHAKING; stage++) {
        g_autoptr(GPtrArray) all = berth_rpc_addresses_list(handshakes->addresses, stage);
        for (guint i = 0; i < all->len; i++)
            give_up(g_ptr_array_index(all, i));
    }
    drop_ref(handshakes);
}
