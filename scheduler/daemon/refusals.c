/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the event log has of requests that are refused, and how much one user can write there so. Whether one is
 * refused is for others to say, and what a job's record has of it is job_requests.c's.
 *
 * Invariant: a call is answered once, whether its refusal can be written or not. */
#include "config.h"

#include "scheduler/daemon/refusals.h"

#include "scheduler/daemon/pb.h"

/* What one user had refused lately. */
typedef struct {
    gint64 since_usec; /* monotonic */
    guint32 n;
    guint32 n_untold;
} Lately;

struct BerthRefusals {
    BerthDaemon *daemon;
    GHashTable *lately; /* uid -> Lately */
};

typedef struct {
    BerthRefusals *refusals;
    BerthRpcCall *call;
    Berth__Event *event;
    GError *error;
} Refusal;

static void refusal_free(gpointer data)
{
    Refusal *refusal = data;
    berth__event__free_unpacked(refusal->event, NULL);
    g_error_free(refusal->error);
    g_free(refusal);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Refusal, refusal_free)

BerthRefusals *berth_refusals_new(BerthDaemon *daemon)
{
    BerthRefusals *refusals = g_new0(BerthRefusals, 1);
    refusals->daemon = daemon;
    refusals->lately = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return refusals;
}

void berth_refusals_free(BerthRefusals *refusals)
{
    g_hash_table_unref(refusals->lately);
    g_free(refusals);
}

/* --- how many --------------------------------------------------------------------------------------- */

static gboolean is_past(const Lately *lately, gint64 now_usec)
{
    return now_usec - lately->since_usec >= BERTH_REFUSALS_WINDOW_USEC;
}

static gboolean is_forgotten(gpointer key, gpointer value, gpointer user_data)
{
    const Lately *lately = value;
    return lately->n_untold == 0 && is_past(lately, *(const gint64 *)user_data);
}

static Lately *find_lately(BerthRefusals *refusals, guint32 uid, gint64 now_usec)
{
    Lately *lately = g_hash_table_lookup(refusals->lately, GUINT_TO_POINTER(uid));
    if (!lately) {
        g_hash_table_foreach_remove(refusals->lately, is_forgotten, &now_usec);
        lately = g_new0(Lately, 1);
        lately->since_usec = now_usec;
        g_hash_table_insert(refusals->lately, GUINT_TO_POINTER(uid), lately);
    }
    if (is_past(lately, now_usec)) {
        lately->since_usec = now_usec;
        lately->n = 0;
    }
    return lately;
}

gboolean berth_refusals_count(BerthRefusals *refusals, guint32 uid, gint64 now_usec,
                              guint32 *out_untold)
{
    Lately *lately = find_lately(refusals, uid, now_usec);
    if (lately->n >= BERTH_REFUSALS_MAX) {
        lately->n_untold++;
        return FALSE;
    }
    lately->n++;
    *out_untold = lately->n_untold;
    lately->n_untold = 0;
    return TRUE;
}

/* --- one ------------------------------------------------------------------------------------------ */

static void on_committed(const GError *error, gpointer user_data)
{
    g_autoptr(Refusal) refusal = user_data;
    berth_rpc_call_fail(refusal->call, error ? error : refusal->error);
}

static void on_user(const char *name, const GError *unnamed, gpointer user_data)
{
    Refusal *refusal = user_data;
    BerthEngine *engine = refusal->refusals->daemon->engine;
    if (berth_engine_is_stopped(engine)) {
        on_committed(NULL, refusal);
        return;
    }
    BerthTurn *turn = berth_engine_begin(engine);
    berth_pb_set_string(&refusal->event->user, name);
    berth_turn_log(turn, refusal->event);
    berth_turn_then(turn, on_committed, refusal);
    berth_turn_commit(turn);
}

/* (transfer full) */
static Berth__Event *make_event(const Berth__Event *wanted, const GError *error, guint32 untold)
{
    Berth__Event event = *wanted;
    g_autofree char *why_not = g_utf8_make_valid(error->message, -1);
    event.kind = BERTH__EVENT__KIND__REQUEST_REFUSED;
    event.wanted = wanted->kind;
    event.refusal = why_not;
    event.untold = untold;
    return berth_pb_dup(&event.base);
}

void berth_refuse(BerthRefusals *refusals, BerthRpcCall *call, const Berth__Event *wanted,
                  const GError *error)
{
    BerthDaemon *daemon = refusals->daemon;
    guint32 uid = berth_rpc_call_identity(call)->uid;
    guint32 untold = 0;
    if (berth_engine_is_stopped(daemon->engine) ||
        !berth_refusals_count(refusals, uid, g_get_monotonic_time(), &untold)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Refusal *refusal = g_new0(Refusal, 1);
    *refusal = (Refusal){refusals, call, make_event(wanted, error, untold), g_error_copy(error)};
    berth_users_name(daemon->users, uid, on_user, refusal);
}
