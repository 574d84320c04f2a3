/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of things: an event is decided by the core, its effects are committed, and only
 * then do replies and actions leave. Does not know what an action, a record or a reply is made of.
 *
 * Invariants:
 *  - a turn's followers run after its commit and after those of every earlier turn;
 *  - event numbers have no gaps, and are given out in the order of the commits;
 *  - after a failed commit nothing is committed, acted on or acknowledged any more. */
#include "config.h"

#include "scheduler/daemon/engine.h"

#include "common/error.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/turn_internal.h"

/* A timer is never further away than this: the loop's clock stands still while the host sleeps, and
 * ours may pass a little faster. */
#define TIMER_MAX_USEC (30 * G_USEC_PER_SEC)

typedef struct {
    BerthTurnFunc func;
    gpointer user_data;
} Follower;

/* --- life ---------------------------------------------------------------------------------- */

BerthEngine *berth_engine_new(BerthCore *core, BerthStore *store, BerthJobTable *jobs,
                              BerthNodeTable *nodes, guint64 last_seq, gint64 last_usec)
{
    BerthEngine *engine = g_new0(BerthEngine, 1);
    engine->core = core;
    engine->store = store;
    engine->jobs = jobs;
    engine->nodes = nodes;
    engine->elements = berth_elements_new();
    engine->effects = berth_core_effects_new();
    engine->last_seq = last_seq;
    engine->committed_seq = last_seq;
    berth_clock_start(&engine->clock, berth_clock_boot_usec(), g_get_real_time(), last_usec);
    g_queue_init(&engine->in_flight);
    return engine;
}

BerthElements *berth_engine_elements(BerthEngine *engine)
{
    return engine->elements;
}

static void disarm_timer(BerthEngine *engine)
{
    if (engine->timer) {
        g_source_destroy(engine->timer);
        g_clear_pointer(&engine->timer, g_source_unref);
    }
}

void berth_engine_free(BerthEngine *engine)
{
    g_return_if_fail(g_queue_is_empty(&engine->in_flight));
    disarm_timer(engine);
    berth_core_effects_free(engine->effects);
    berth_elements_free(engine->elements);
    g_clear_error(&engine->failure);
    g_free(engine);
}

void berth_engine_set_hooks(BerthEngine *engine, const BerthEngineHooks *hooks, gpointer user_data)
{
    engine->hooks = *hooks;
    engine->hooks_data = user_data;
}

/* --- the core, and its log ------------------------------------------------------------------- */

void berth_engine_set_journal(BerthEngine *engine, BerthJournalFile *journal)
{
    engine->journal = journal;
}

guint32 berth_engine_add_node(BerthEngine *engine, const char *name)
{
    guint32 n_before = berth_core_n_nodes(engine->core);
    guint32 node = berth_core_add_node(engine->core, name);
    GString *text = node > n_before ? berth_journal_file_begin(engine->journal) : NULL;
    if (text) {
        berth_journal_node(text, node, name);
        berth_journal_file_commit(engine->journal, text);
    }
    return node;
}

/* EVENT, or NULL: the resume; with the actions that came of it. */
static void note(BerthEngine *engine, gint64 now_usec, const BerthCoreEvent *event)
{
    GString *text = berth_journal_file_begin(engine->journal);
    if (!text)
        return;
    if (event)
        berth_journal_event(text, now_usec, event);
    else
        berth_journal_resume(text, now_usec);
    const GArray *actions = engine->effects->actions;
    for (guint i = 0; i < actions->len; i++)
        berth_journal_action(text, &g_array_index(actions, BerthCoreAction, i));
    berth_journal_file_commit(engine->journal, text);
}

gint64 berth_engine_now_usec(BerthEngine *engine)
{
    engine->now_usec = berth_clock_step(&engine->clock, berth_clock_boot_usec(), g_get_real_time());
    return engine->now_usec;
}

guint64 berth_engine_committed_seq(BerthEngine *engine)
{
    return engine->committed_seq;
}

guint64 berth_engine_last_seq(BerthEngine *engine)
{
    return engine->last_seq;
}

gboolean berth_engine_is_stopped(BerthEngine *engine)
{
    return engine->is_stopping || engine->failure;
}

gboolean berth_engine_check(BerthEngine *engine, GError **error)
{
    if (!berth_engine_is_stopped(engine))
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                        "the daemon is ending; try again when it runs");
    return FALSE;
}

/* --- a turn -------------------------------------------------------------------------------- */

BerthTurn *berth_engine_begin(BerthEngine *engine)
{
    BerthTurn *turn = g_new0(BerthTurn, 1);
    turn->engine = engine;
    turn->batch = berth_store_batch_new();
    turn->actions = g_array_new(FALSE, FALSE, sizeof(BerthCoreAction));
    turn->changed = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    turn->events = g_ptr_array_new_with_free_func((GDestroyNotify)berth__event_drop);
    turn->followers = g_array_new(FALSE, FALSE, sizeof(Follower));
    turn->arrays = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    return turn;
}

static void turn_free(BerthTurn *turn)
{
    if (turn->batch)
        berth_store_batch_free(turn->batch);
    g_array_unref(turn->actions);
    g_array_unref(turn->changed);
    g_ptr_array_unref(turn->events);
    g_array_unref(turn->followers);
    g_hash_table_unref(turn->arrays);
    g_free(turn);
}

BerthStoreBatch *berth_turn_batch(BerthTurn *turn)
{
    return turn->batch;
}

void berth_turn_then(BerthTurn *turn, BerthTurnFunc func, gpointer user_data)
{
    Follower follower = {func, user_data};
    g_array_append_val(turn->followers, follower);
}

void berth_turn_log(BerthTurn *turn, Berth__Event *event)
{
    event->seq = ++turn->engine->last_seq;
    event->time_usec = (guint64)berth_engine_now_usec(turn->engine);
    const BerthJobEntry *job = berth_job_table_find(turn->engine->jobs, event->job);
    event->owner_uid = job ? job->job->uid : 0;
    event->of_array = job && job->unstarted && berth_event_is_of_task(event->kind);
    berth_store_batch_add_event(turn->batch, event);
    g_ptr_array_add(turn->events, berth_pb_dup(&event->base));
    turn_note_requests(turn, event);
}

void berth_turn_log_task(BerthTurn *turn, const Berth__Task *task, Berth__Event__Kind kind,
                         Berth__Reason reason, const char *text)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = kind;
    event.job = task->job;
    event.task = task->index;
    event.epoch = task->epoch;
    event.node = task->node;
    event.reason = reason;
    if (text)
        event.text = (char *)text;
    berth_turn_log(turn, &event);
}

/* --- decide ---------------------------------------------------------------------------------- */

static gboolean decide(BerthTurn *turn, const BerthCoreEvent *event, GError **error)
{
    BerthEngine *engine = turn->engine;
    gint64 now_usec = berth_engine_now_usec(engine);
    berth_core_effects_clear(engine->effects);
    gboolean ok = berth_core_handle(engine->core, now_usec, event, engine->effects, error);
    note(engine, now_usec, event);
    return ok;
}

gboolean berth_turn_event(BerthTurn *turn, const BerthCoreEvent *event, const BerthAsker *asker,
                          GError **error)
{
    if (!decide(turn, event, error))
        return FALSE;
    turn_log_cause(turn, event, asker);
    if (event->kind == BERTH_EVENT_JOB_HELD || event->kind == BERTH_EVENT_JOB_RELEASED ||
        event->kind == BERTH_EVENT_JOB_TIME_LIMIT_SET ||
        event->kind == BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET)
        turn_write_job(turn, event);
    turn_take_effects(turn);
    if (berth_event_is_request(event->kind)) /* it may have changed nothing */
        turn_settle_requests(turn, &event->guest);
    return TRUE;
}

gboolean berth_turn_event_untold(BerthTurn *turn, const BerthCoreEvent *event, GError **error)
{
    if (!decide(turn, event, error))
        return FALSE;
    turn_take_effects(turn);
    return TRUE;
}

gboolean berth_turn_submit(BerthTurn *turn, const BerthCoreEvent *event, const Berth__Job *job,
                           const Berth__JobSpec *spec, const char *idempotency_key, GError **error)
{
    if (!decide(turn, event, error))
        return FALSE;
    BerthJobEntry *entry = berth_job_table_add(turn->engine->jobs, berth_pb_dup(&job->base));
    entry->wants_output = *spec->stdout_path || *spec->stderr_path;
    berth_store_batch_add_job(turn->batch, job, spec, idempotency_key);
    if (!entry->unstarted)
        berth_store_batch_put_task(turn->batch, berth_job_table_add_task(entry, 0, NULL)->stored,
                                   FALSE);
    turn_log_cause(turn, event, &(BerthAsker){job->user, ""});
    turn_take_effects(turn);
    return TRUE;
}

/* --- commit, then act ------------------------------------------------------------------------ */

static void arm_timer(BerthEngine *engine);

static void run_followers(BerthTurn *turn, const GError *error)
{
    for (guint i = 0; i < turn->followers->len; i++) {
        Follower follower = g_array_index(turn->followers, Follower, i);
        follower.func(error, follower.user_data);
    }
}

static void publish(BerthTurn *turn)
{
    BerthEngine *engine = turn->engine;
    for (guint i = 0; i < turn->events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(turn->events, i);
        engine->committed_seq = event->seq;
        if (engine->hooks.event)
            engine->hooks.event(event, engine->hooks_data);
    }
    for (guint i = 0; i < turn->changed->len && engine->hooks.task_changed; i++) {
        const BerthGuestId *id = &g_array_index(turn->changed, BerthGuestId, i);
        engine->hooks.task_changed(id->job, id->task, engine->hooks_data);
    }
    for (guint i = 0; i < turn->actions->len && engine->hooks.act; i++)
        engine->hooks.act(&g_array_index(turn->actions, BerthCoreAction, i), engine->hooks_data);
}

static void fail(BerthEngine *engine, const GError *error)
{
    if (engine->failure)
        return;
    engine->failure = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                                  "the daemon cannot write its state and ends: %s; whether this "
                                  "took effect shows when it runs again",
                                  error->message);
    disarm_timer(engine);
    if (engine->hooks.failed)
        engine->hooks.failed(error, engine->hooks_data);
}

/* TURN has left the queue. No other turn ends meanwhile, whatever those who are told do. */
static void end_turn(BerthTurn *turn)
{
    BerthEngine *engine = turn->engine;
    engine->is_ending = TRUE;
    if (!engine->failure)
        publish(turn);
    run_followers(turn, engine->failure);
    engine->is_ending = FALSE;
    turn_free(turn);
}

/* Ends every turn at the head of the queue that has nothing left to wait for. Its actions (a fence
 * that is tried again changes no record) leave like those of any other turn. */
static void end_empty_turns(BerthEngine *engine)
{
    BerthTurn *turn;
    while (!engine->is_ending && (turn = g_queue_peek_head(&engine->in_flight)) && turn->batch) {
        g_queue_pop_head(&engine->in_flight);
        end_turn(turn);
    }
}

static void on_committed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthTurn *turn = user_data;
    BerthEngine *engine = turn->engine;
    g_autoptr(GError) error = NULL;
    g_queue_pop_head(&engine->in_flight);
    if (!berth_store_commit_finish(engine->store, result, &error))
        fail(engine, error);
    end_turn(turn);
    end_empty_turns(engine);
}

void berth_turn_commit(BerthTurn *turn)
{
    BerthEngine *engine = turn->engine;
    turn_write_arrays(turn);
    g_queue_push_tail(&engine->in_flight, turn);
    /* A turn without a commit of its own keeps its (empty) batch: see end_empty_turns(). */
    if (!berth_store_batch_is_empty(turn->batch) && !engine->failure) {
        BerthStoreBatch *batch = g_steal_pointer(&turn->batch);
        berth_store_commit_async(engine->store, batch, on_committed, turn);
    }
    end_empty_turns(engine);
    if (!berth_engine_is_stopped(engine))
        arm_timer(engine);
}

void berth_engine_tell(BerthEngine *engine, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    if (berth_engine_is_stopped(engine))
        return;
    BerthTurn *turn = berth_engine_begin(engine);
    if (!berth_turn_event(turn, event, NULL, &error))
        g_critical("the core refused what is no request: %s", error->message);
    berth_turn_commit(turn);
}

/* --- time ------------------------------------------------------------------------------------ */

static gboolean on_timer(gpointer user_data)
{
    BerthEngine *engine = user_data;
    disarm_timer(engine);
    BerthTurn *turn = berth_engine_begin(engine);
    if (berth_core_next_timer_usec(engine->core) <= berth_engine_now_usec(engine)) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_TIMER};
        g_autoptr(GError) error = NULL;
        if (!berth_turn_event(turn, &event, NULL, &error))
            g_critical("the core refused a timer: %s", error->message);
    }
    berth_turn_commit(turn);
    return G_SOURCE_REMOVE;
}

static void arm_timer(BerthEngine *engine)
{
    if (!engine->is_started)
        return;
    disarm_timer(engine);
    gint64 due_usec = berth_core_next_timer_usec(engine->core);
    if (due_usec == G_MAXINT64)
        return;
    gint64 wait_usec = CLAMP(due_usec - berth_engine_now_usec(engine), 0, TIMER_MAX_USEC);
    engine->timer = g_timeout_source_new((guint)((wait_usec + 999) / 1000));
    g_source_set_callback(engine->timer, on_timer, engine, NULL);
    g_source_attach(engine->timer, g_main_context_get_thread_default());
}

void berth_engine_start(BerthEngine *engine)
{
    engine->is_started = TRUE;
    BerthTurn *turn = berth_engine_begin(engine);
    gint64 now_usec = berth_engine_now_usec(engine);
    berth_core_effects_clear(engine->effects);
    berth_core_resume(engine->core, now_usec, engine->effects);
    note(engine, now_usec, NULL);
    turn_take_effects(turn);
    berth_turn_commit(turn);
}

void berth_engine_stop(BerthEngine *engine)
{
    engine->is_stopping = TRUE;
    disarm_timer(engine);
    while (!g_queue_is_empty(&engine->in_flight))
        g_main_context_iteration(g_main_context_get_thread_default(), TRUE);
}
