/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the streams of output: what is read next, when a stream waits and when it ends. The log of
 * a task is written by its node; its name changes with every new life of the guest.
 *
 * A job that is put back to a checkpoint goes on in the same log, which was cut for that: its reader is told where, and
 * goes on from there.
 *
 * Invariants: one read at a time for each stream; nothing is read while the reader's connection is
 * full; the end of a task is looked at before the end of its log, so that nothing that was written
 * before the task ended is missed. */
#include "config.h"

#include "scheduler/daemon/logs.h"

#include "common/error.h"
#include "common/id.h"
#include "common/ranges.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/task_name.h"

#include <string.h>

#define PIECE_BYTES (256u * 1024u)

struct BerthLogFollowers {
    BerthDaemon *daemon;
    GHashTable *by_job; /* guint64 -> GPtrArray of Stream */
};

/* What is known of a task's log. */
typedef struct {
    gboolean is_array; /* its job */
    gboolean is_final;
    guint32 uid;
    guint32 epoch;
    guint32 run; /* of the log */
    guint64 cut[BERTH_N_STREAMS];
    char *log_id; /* "" before it has run */
    guint64 end[BERTH_N_STREAMS];
} Facts;

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    guint64 job;
    guint32 task;
    BerthTaskName name; /* of these two, as they were asked for */
    gboolean follow;
    gboolean is_wanted[BERTH_N_STREAMS];
    guint32 epoch; /* of the log being read; before it is known, the reader's */
    guint32 run;   /* of that log, as EPOCH; the offsets are in it */
    guint64 offset[BERTH_N_STREAMS];
    gboolean is_at_end[BERTH_N_STREAMS];
    gboolean has_grown[BERTH_N_STREAMS]; /* since the newest read of it began */
    char *log_id;                        /* being read; "" before the task has run */
    char *next_log_id;                   /* to be read after it: the task runs again; or NULL */
    guint32 next_epoch, next_run;
    gboolean is_final;            /* the task has ended: no more will be written */
    guint64 end[BERTH_N_STREAMS]; /* of its newest log, as its exit says; or G_MAXUINT64 */
    gboolean is_asking;
    gboolean is_stale; /* the task's record has changed since it was asked for */
    gboolean is_cut;   /* ... and what is read goes on elsewhere */
    gboolean is_reading;
    gboolean is_blocked;
    gboolean is_cancelled;
    guint turn; /* which stream is read next */
} Stream;

BerthLogFollowers *berth_log_followers_new(BerthDaemon *daemon)
{
    BerthLogFollowers *followers = g_new0(BerthLogFollowers, 1);
    followers->daemon = daemon;
    followers->by_job = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                              (GDestroyNotify)g_ptr_array_unref);
    return followers;
}

void berth_log_followers_free(BerthLogFollowers *followers)
{
    g_hash_table_unref(followers->by_job);
    g_free(followers);
}

static void add_follower(Stream *stream)
{
    GHashTable *by_job = stream->daemon->log_followers->by_job;
    GPtrArray *list = g_hash_table_lookup(by_job, &stream->job);
    if (!list) {
        guint64 *key = g_new(guint64, 1);
        *key = stream->job;
        list = g_ptr_array_new();
        g_hash_table_insert(by_job, key, list);
    }
    g_ptr_array_add(list, stream);
}

static void remove_follower(Stream *stream)
{
    GHashTable *by_job = stream->daemon->log_followers->by_job;
    GPtrArray *list = g_hash_table_lookup(by_job, &stream->job);
    g_ptr_array_remove_fast(list, stream);
    if (list->len == 0)
        g_hash_table_remove(by_job, &stream->job);
}

static void finish(Stream *stream, const GError *error)
{
    remove_follower(stream);
    if (error)
        berth_rpc_call_fail(stream->call, error);
    else
        berth_rpc_call_end(stream->call);
    g_free(stream->log_id);
    g_free(stream->next_log_id);
    g_free(stream);
}

static void go_on(Stream *stream);

/* --- the task ------------------------------------------------------------------------------------ */

static void facts_free(gpointer data)
{
    Facts *facts = data;
    g_free(facts->log_id);
    g_free(facts);
}

/* A task that was restored goes on with the log of an earlier epoch. */
static guint32 log_epoch(const Berth__StoredTask *stored)
{
    BerthGuestId id;
    return berth_log_id_parse(stored->log_id, &id, NULL) ? id.epoch : stored->task->epoch;
}

static Facts *facts_new(const Berth__StoredTask *stored, const Berth__Job *job)
{
    Facts *facts = g_new0(Facts, 1);
    facts->is_array = job->array != NULL;
    facts->is_final = berth_job_state_is_final((BerthJobState)stored->task->state);
    facts->uid = job->uid;
    facts->epoch = log_epoch(stored);
    facts->log_id = g_strdup(stored->log_id);
    facts->run = stored->log_run;
    facts->cut[BERTH_STDOUT] = stored->log_cut ? stored->log_cut->stdout_bytes : 0;
    facts->cut[BERTH_STDERR] = stored->log_cut ? stored->log_cut->stderr_bytes : 0;
    const Berth__Exit *ended = facts->is_final ? stored->task->exit : NULL;
    facts->end[BERTH_STDOUT] = ended ? ended->stdout_bytes : G_MAXUINT64;
    facts->end[BERTH_STDERR] = ended ? ended->stderr_bytes : G_MAXUINT64;
    return facts;
}

/* Of a job of which no one task is named: enough to refuse it. */
static Facts *facts_of_none(const Berth__Job *job)
{
    Facts *facts = g_new0(Facts, 1);
    facts->is_array = job->array != NULL;
    facts->uid = job->uid;
    facts->log_id = g_strdup("");
    return facts;
}

/* A task of an array that has never started waits to, or has ended with others. */
static Facts *facts_of_unstarted(const Berth__Job *job, guint32 index)
{
    Facts *facts = facts_of_none(job);
    facts->is_final = TRUE;
    for (gsize i = 0; i < job->n_unstarted; i++) {
        const BerthIndexRange unstarted = berth_range_of(job->unstarted[i]);
        if (berth_index_range_contains(&unstarted, index))
            facts->is_final = FALSE;
    }
    facts->end[BERTH_STDOUT] = facts->end[BERTH_STDERR] = G_MAXUINT64;
    return facts;
}

static gpointer read_facts(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Stream *stream = input;
    BerthStore *store = stream->daemon->store;
    g_autoptr(GError) missing = NULL;
    g_autoptr(BerthIndexSet) only = berth_index_set_new();
    const BerthStoreTasks wanted = {.only = only, .limit = 1};
    berth_index_set_add_one(only, stream->task);
    g_autoptr(Berth__Job) job = berth_store_get_job_with(store, stream->job, &wanted, error);
    if (!job)
        return NULL;
    if (!berth_task_name_check(&stream->name, job->array != NULL, NULL))
        return facts_of_none(job);
    g_autoptr(Berth__StoredTask) stored =
        berth_store_get_task(store, stream->job, stream->task, &missing);
    if (stored)
        return facts_new(stored, job);
    if (job->array && g_error_matches(missing, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        Facts *facts = facts_of_unstarted(job, stream->task);
        if (!facts->is_final || job->n_tasks > 0)
            return facts;
        facts_free(facts);
    }
    g_propagate_error(error, g_steal_pointer(&missing));
    return NULL;
}

static void begin_log(Stream *stream, char *log_id, guint32 epoch, guint32 run)
{
    g_free(stream->log_id);
    stream->log_id = log_id;
    if (stream->epoch != epoch) {
        if (stream->epoch != 0) {
            stream->offset[BERTH_STDOUT] = 0; /* where the reader stood in another log */
            stream->offset[BERTH_STDERR] = 0;
        }
        stream->run = run;
    }
    stream->epoch = epoch;
}

/* A reader who has missed more than one cut goes back to the beginning: only the latest is known. */
static void take_cut(Stream *stream, const Facts *facts)
{
    gboolean is_next = facts->run == stream->run + 1;
    Berth__LogChunk chunk = BERTH__LOG_CHUNK__INIT;
    Berth__LogCut cut = BERTH__LOG_CUT__INIT;
    if (facts->run == stream->run || strcmp(stream->log_id, facts->log_id) != 0)
        return;
    cut.stdout_bytes = is_next ? facts->cut[BERTH_STDOUT] : 0;
    cut.stderr_bytes = is_next ? facts->cut[BERTH_STDERR] : 0;
    stream->offset[BERTH_STDOUT] = MIN(stream->offset[BERTH_STDOUT], cut.stdout_bytes);
    stream->offset[BERTH_STDERR] = MIN(stream->offset[BERTH_STDERR], cut.stderr_bytes);
    stream->run = facts->run;
    chunk.epoch = stream->epoch;
    chunk.run = stream->run;
    chunk.cut = &cut;
    chunk.offset = stream->offset[BERTH_STDOUT];
    if (!berth_rpc_call_send_item(stream->call, &chunk.base))
        stream->is_blocked = TRUE;
}

/* What has been read is still good if the log is the same; another log follows it. */
static void take_log_id(Stream *stream, const Facts *facts)
{
    if (!*facts->log_id)
        return;
    if (!*stream->log_id) {
        begin_log(stream, g_strdup(facts->log_id), facts->epoch, facts->run);
    } else if (strcmp(stream->log_id, facts->log_id) != 0) {
        g_free(stream->next_log_id);
        stream->next_log_id = g_strdup(facts->log_id);
        stream->next_epoch = facts->epoch;
        stream->next_run = facts->run;
    }
}

static void take_facts(Stream *stream, const Facts *facts)
{
    take_log_id(stream, facts);
    take_cut(stream, facts);
    stream->is_final = facts->is_final;
    memcpy(stream->end, facts->end, sizeof stream->end);
    stream->is_at_end[BERTH_STDOUT] = FALSE;
    stream->is_at_end[BERTH_STDERR] = FALSE;
}

static gboolean check_permission(Stream *stream, const Facts *facts, GError **error)
{
    return berth_permission_check_job(&stream->daemon->operators,
                                      berth_rpc_call_identity(stream->call), stream->job,
                                      facts->uid, error);
}

static void on_facts(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Stream *stream = user_data;
    g_autoptr(GError) error = NULL;
    Facts *facts = berth_work_finish(result, &error);
    stream->is_asking = FALSE;
    if (!facts || !check_permission(stream, facts, &error) ||
        !berth_task_name_check(&stream->name, facts->is_array, &error)) {
        finish(stream, error);
        g_clear_pointer(&facts, facts_free);
        return;
    }
    take_facts(stream, facts);
    facts_free(facts);
    go_on(stream);
}

static void ask(Stream *stream)
{
    stream->is_asking = TRUE;
    stream->is_stale = stream->is_cut = FALSE;
    berth_workers_run_for(stream->daemon->workers, BERTH_LANE_READ,
                          berth_rpc_call_identity(stream->call)->uid, "look for a log", read_facts,
                          stream, NULL, facts_free, 0, on_facts, stream);
}

/* --- the log ------------------------------------------------------------------------------------- */

typedef struct {
    char *name;
    guint64 offset;
    gsize length;
} Piece;

static void piece_free(gpointer data)
{
    Piece *piece = data;
    g_free(piece->name);
    g_free(piece);
}

static gpointer read_piece(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Piece *piece = input;
    return berth_storage_log_read(storage, piece->name, piece->offset, piece->length, error);
}

static void send_piece(Stream *stream, guint which, GBytes *content)
{
    gsize length = 0;
    const void *data = g_bytes_get_data(content, &length);
    Berth__LogChunk chunk = BERTH__LOG_CHUNK__INIT;
    chunk.is_stderr = which == BERTH_STDERR;
    chunk.epoch = stream->epoch;
    chunk.run = stream->run;
    chunk.offset = stream->offset[which];
    chunk.data.data = (uint8_t *)data;
    chunk.data.len = length;
    stream->offset[which] += length;
    if (!berth_rpc_call_send_item(stream->call, &chunk.base))
        stream->is_blocked = TRUE;
}

static void on_piece(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Stream *stream = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) content = berth_work_finish(result, &error);
    if (!content) {
        finish(stream, error);
        return;
    }
    guint which = stream->turn;
    if (g_bytes_get_size(content) == 0)
        stream->is_at_end[which] = !stream->has_grown[which];
    else if (!berth_rpc_call_has_room(stream->call))
        stream->is_blocked = TRUE; /* others were faster: it is read again */
    else if (!stream->is_cancelled)
        send_piece(stream, which, content);
    stream->is_reading = FALSE;
    go_on(stream);
}

/* How much of the stream may be read now. What is beyond the end of a task's output is not its own. */
static gsize piece_length(const Stream *stream, guint which)
{
    guint64 end = stream->next_log_id ? G_MAXUINT64 : stream->end[which];
    guint64 left = end - MIN(end, stream->offset[which]);
    return (gsize)MIN(left, PIECE_BYTES);
}

static void read_next(Stream *stream, guint which)
{
    Piece *piece = g_new0(Piece, 1);
    piece->name = berth_log_name_format(stream->log_id, which);
    piece->offset = stream->offset[which];
    piece->length = piece_length(stream, which);
    stream->turn = which;
    stream->is_reading = TRUE;
    stream->has_grown[which] = FALSE;
    berth_storage_link_run_for(stream->daemon->storage, BERTH_LANE_STORAGE_DATA,
                               berth_rpc_call_identity(stream->call)->uid, "read a log", read_piece,
                               piece, piece_free, (GDestroyNotify)g_bytes_unref, on_piece, stream);
}

/* The stream that is to be read now, the other one than last time if both are; BERTH_N_STREAMS: none. */
static guint choose(const Stream *stream)
{
    for (guint i = 1; i <= BERTH_N_STREAMS; i++) {
        guint which = (stream->turn + i) % BERTH_N_STREAMS;
        if (*stream->log_id && stream->is_wanted[which] && !stream->is_at_end[which] &&
            piece_length(stream, which) > 0)
            return which;
    }
    return BERTH_N_STREAMS;
}

static void begin_next_log(Stream *stream)
{
    begin_log(stream, g_steal_pointer(&stream->next_log_id), stream->next_epoch, stream->next_run);
    stream->is_at_end[BERTH_STDOUT] = FALSE;
    stream->is_at_end[BERTH_STDERR] = FALSE;
}

static void go_on(Stream *stream)
{
    if (stream->is_reading || stream->is_asking)
        return;
    if (stream->is_cancelled) {
        finish(stream, NULL);
        return;
    }
    if (stream->is_blocked)
        return;
    if (stream->is_cut) {
        ask(stream);
        return;
    }
    guint which = choose(stream);
    if (which == BERTH_N_STREAMS && stream->next_log_id) {
        begin_next_log(stream);
        which = choose(stream);
    }
    if (which != BERTH_N_STREAMS)
        read_next(stream, which);
    else if (!stream->follow || stream->is_final)
        finish(stream, NULL);
    else if (stream->is_stale)
        ask(stream);
}

/* --- waking -------------------------------------------------------------------------------------- */

static void note_growth(Stream *stream, guint which, guint64 size_bytes)
{
    if (size_bytes > stream->offset[which]) {
        stream->has_grown[which] = TRUE;
        stream->is_at_end[which] = FALSE;
    }
}

static void wake(Stream *stream, const BerthTaskEntry *entry)
{
    if (entry && strcmp(entry->stored->log_id, stream->log_id) == 0 &&
        !berth_job_state_is_final((BerthJobState)entry->stored->task->state)) {
        note_growth(stream, BERTH_STDOUT, entry->stdout_bytes);
        note_growth(stream, BERTH_STDERR, entry->stderr_bytes);
        stream->is_cut |= *stream->log_id && entry->stored->log_run != stream->run;
    } else {
        stream->is_stale = TRUE;
    }
    go_on(stream);
}

/* It ended together with that of ENTRY, before either started. */
static gboolean stands_for(const BerthTaskEntry *entry, guint32 index)
{
    BerthIndexRange range = berth_record_range(entry->stored->task);
    return berth_index_range_contains(&range, index);
}

void berth_logs_wake(BerthLogFollowers *followers, guint64 job, guint32 task)
{
    GPtrArray *list = g_hash_table_lookup(followers->by_job, &job);
    if (!list)
        return;
    const BerthTaskEntry *entry = berth_job_table_find_task(followers->daemon->jobs, job, task);
    g_autoptr(GPtrArray) streams = g_ptr_array_copy(list, NULL, NULL);
    for (guint i = 0; i < streams->len; i++) {
        Stream *stream = g_ptr_array_index(streams, i);
        if (stream->task == task && stream->follow)
            wake(stream, entry);
        else if (entry && stream->follow && stands_for(entry, stream->task))
            wake(stream, NULL);
    }
}

static void on_ready(BerthRpcCall *call, gpointer user_data)
{
    Stream *stream = user_data;
    stream->is_blocked = FALSE;
    go_on(stream);
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    Stream *stream = user_data;
    stream->is_cancelled = TRUE;
    go_on(stream);
}

void berth_logs_stream(BerthDaemon *daemon, const Berth__LogsRequest *request, BerthRpcCall *call)
{
    Stream *stream = g_new0(Stream, 1);
    stream->daemon = daemon;
    stream->call = call;
    stream->job = request->job;
    stream->task = request->task;
    stream->name = berth_task_name(request->job, request->task, request->of_array);
    stream->follow = request->follow;
    stream->epoch = request->epoch;
    stream->run = request->run;
    gboolean wants_both = !request->want_stdout && !request->want_stderr;
    stream->is_wanted[BERTH_STDOUT] = request->want_stdout || wants_both;
    stream->is_wanted[BERTH_STDERR] = request->want_stderr || wants_both;
    stream->offset[BERTH_STDOUT] = request->stdout_offset;
    stream->offset[BERTH_STDERR] = request->stderr_offset;
    stream->log_id = g_strdup("");
    add_follower(stream);
    berth_rpc_call_set_ready_func(call, on_ready, stream);
    berth_rpc_call_set_cancelled_func(call, on_cancelled, stream);
    ask(stream);
}
