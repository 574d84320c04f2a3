/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reservation of job numbers: a bound that is kept in the database and in storage's mark.
 *
 * Invariants: a number is given out only below the bound that the mark has. The database has a bound
 * before the mark has it, and a number before the mark counts it as given out. So a mark that is
 * ahead of the database in either has seen a later database: this one is older, and numbers go on at
 * the mark's bound, which no number given out has reached.
 *
 * Killed between the two writes, the database is ahead of the mark, which means nothing: nobody has
 * had a number from between the bounds, the mark follows, and no number is skipped. Where numbers
 * jumped, the database takes the new bound and the first number together; killed after that, it is
 * not older than the mark any more and goes on from that number. Killed before, it jumps again, to
 * the same number.
 *
 * A write of the mark that took too long is done again, and may take effect late, after a later one: it
 * makes nothing in the mark smaller (storage_owner.h).
 *
 * Who waits for a number waits for storage to be opened or for a write of the mark, each of which has its
 * deadline. */
#include "config.h"

#include "scheduler/daemon/job_numbers.h"

#include "common/error.h"
#include "scheduler/daemon/storage_owner.h"

#define BLOCK 10000u
/* From a submission until the mark counts its number, if storage answers: what an older database may
 * give out again is what was given out in this time. One write for all submissions in it. */
#define NOTE_MSEC 500u
/* Storage answers, but the mark could not be written. */
#define RETRY_MSEC 5000u
/* To write it: it is read before. */
#define WRITE_OPS 2u
/* Submissions of all users that may wait. While they do, nobody gets a number. */
#define WAITING_MAX 1024u

typedef struct {
    BerthJobNumbersFunc func;
    gpointer user_data;
} Waiter;

struct BerthJobNumbers {
    BerthDaemon *daemon;
    BerthStorageOwner *owner;
    BerthOwnerMark start; /* as the database had it */
    guint64 limit;        /* the mark's bound; 0 before it is known */
    guint64 reserved;     /* the database's */
    guint64 committed;    /* all numbers below it are in the database */
    guint64 noted;        /* ... and in the mark */
    gboolean has_mark;    /* storage has answered once */
    gboolean is_known;    /* the first attempt to open storage has ended */
    gboolean is_writing;
    guint timer;
    GQueue waiting; /* of Waiter */
};

static void update(BerthJobNumbers *numbers);

BerthJobNumbers *berth_job_numbers_new(BerthDaemon *daemon, const BerthStoreCounters *counters)
{
    BerthJobNumbers *numbers = g_new0(BerthJobNumbers, 1);
    numbers->daemon = daemon;
    numbers->start = (BerthOwnerMark){counters->jobs_reserved, counters->next_job};
    numbers->owner = berth_storage_owner_new(counters->id, daemon->config->cluster, &numbers->start,
                                             daemon->config->take_over_storage);
    numbers->reserved = counters->jobs_reserved;
    numbers->committed = counters->next_job;
    g_queue_init(&numbers->waiting);
    return numbers;
}

void berth_job_numbers_free(BerthJobNumbers *numbers)
{
    g_clear_handle_id(&numbers->timer, g_source_remove);
    berth_storage_owner_free(numbers->owner);
    g_free(numbers);
}

gboolean berth_job_numbers_guard(BerthStorage *storage, gboolean is_new, gpointer user_data,
                                 GError **error)
{
    BerthJobNumbers *numbers = user_data;
    return is_new ? berth_storage_owner_claim(numbers->owner, storage, error)
                  : berth_storage_owner_check(numbers->owner, storage, error);
}

/* --- waiting ------------------------------------------------------------------------------------ */

static void answer(BerthJobNumbers *numbers, const GError *error)
{
    GQueue waiting = numbers->waiting;
    g_queue_init(&numbers->waiting);
    Waiter *waiter;
    while ((waiter = g_queue_pop_head(&waiting))) {
        waiter->func(error, waiter->user_data);
        g_free(waiter);
    }
}

static void answer_unavailable(BerthJobNumbers *numbers, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_set_error(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                "no job number can be given out, as storage does not answer: %s; submit again when "
                "it does (see berth version)",
                why);
    answer(numbers, error);
}

void berth_job_numbers_stop(BerthJobNumbers *numbers)
{
    g_clear_handle_id(&numbers->timer, g_source_remove);
    answer_unavailable(numbers, "the daemon is ending");
}

gboolean berth_job_numbers_check(BerthJobNumbers *numbers, GError **error)
{
    if (numbers->daemon->next_job < numbers->limit)
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                        "the reserved job numbers are used up, and storage has not answered yet "
                        "that there are more; submit again");
    return FALSE;
}

static void refuse(BerthJobNumbersFunc func, gpointer user_data)
{
    g_autoptr(GError) error =
        g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%u submissions wait for storage to answer already; submit again when it does "
                    "(see berth version)",
                    WAITING_MAX);
    func(error, user_data);
}

void berth_job_numbers_wait(BerthJobNumbers *numbers, BerthJobNumbersFunc func, gpointer user_data)
{
    BerthDaemon *daemon = numbers->daemon;
    if (daemon->next_job < numbers->limit) {
        func(NULL, user_data);
        return;
    }
    if (g_queue_get_length(&numbers->waiting) >= WAITING_MAX) {
        refuse(func, user_data);
        return;
    }
    Waiter *waiter = g_new(Waiter, 1);
    *waiter = (Waiter){func, user_data};
    g_queue_push_tail(&numbers->waiting, waiter);
    const char *why = numbers->is_known ? berth_storage_link_error(daemon->storage) : NULL;
    if (berth_engine_is_stopped(daemon->engine))
        answer_unavailable(numbers, "the daemon is ending");
    else if (why)
        answer_unavailable(numbers, why);
    else
        update(numbers);
}

/* --- the two writes ----------------------------------------------------------------------------- */

/* The worker has one of its own: it may run on when nobody waits for it any more. */
typedef struct {
    BerthJobNumbers *numbers;
    BerthOwnerMark mark;
} Writing;

static gpointer write_mark(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Writing *writing = input;
    berth_storage_owner_write(writing->numbers->owner, storage, &writing->mark, error);
    return NULL;
}

static gboolean on_due(gpointer user_data)
{
    BerthJobNumbers *numbers = user_data;
    numbers->timer = 0;
    update(numbers);
    return G_SOURCE_REMOVE;
}

static void update_later(BerthJobNumbers *numbers, guint wait_msec)
{
    if (numbers->timer == 0)
        numbers->timer = g_timeout_add(wait_msec, on_due, numbers);
}

static void on_mark_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Writing *writing = user_data;
    BerthJobNumbers *numbers = writing->numbers;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    numbers->is_writing = FALSE;
    if (berth_engine_is_stopped(numbers->daemon->engine))
        return;
    if (error) {
        g_info("the mark in storage could not be written: %s", error->message);
        answer_unavailable(numbers, error->message);
        berth_storage_link_doubt(numbers->daemon->storage);
        update_later(numbers, RETRY_MSEC);
        return;
    }
    numbers->limit = writing->mark.jobs_reserved;
    numbers->noted = writing->mark.next_job;
    answer(numbers, NULL);
    if (numbers->noted < numbers->committed)
        update_later(numbers, NOTE_MSEC);
}

static void begin_mark(BerthJobNumbers *numbers)
{
    Writing *writing = g_new(Writing, 1);
    *writing = (Writing){numbers, {numbers->reserved, numbers->committed}};
    berth_storage_link_run_within(
        numbers->daemon->storage, BERTH_LANE_STORAGE_CONTROL, "reserve job numbers", WRITE_OPS,
        write_mark, g_memdup2(writing, sizeof *writing), g_free, on_mark_written, writing);
}

static void on_reserved(const GError *error, gpointer user_data)
{
    Writing *writing = user_data;
    BerthJobNumbers *numbers = writing->numbers;
    numbers->reserved = writing->mark.jobs_reserved;
    numbers->committed = MAX(numbers->committed, writing->mark.next_job);
    g_free(writing);
    if (error) /* the daemon ends */
        answer(numbers, error);
    else
        begin_mark(numbers);
}

static gboolean is_short(const BerthJobNumbers *numbers, guint64 bound)
{
    return bound < numbers->daemon->next_job + BLOCK / 2;
}

static void begin_reservation(BerthJobNumbers *numbers)
{
    guint64 next_job = numbers->daemon->next_job;
    Writing *writing = g_new(Writing, 1);
    *writing = (Writing){numbers, {next_job + BLOCK, next_job}};
    BerthTurn *turn = berth_engine_begin(numbers->daemon->engine);
    berth_store_batch_reserve_jobs(berth_turn_batch(turn), next_job + BLOCK, next_job);
    berth_turn_then(turn, on_reserved, writing);
    berth_turn_commit(turn);
}

/* The database first, then the mark: see above. */
static void update(BerthJobNumbers *numbers)
{
    BerthDaemon *daemon = numbers->daemon;
    gboolean is_due = is_short(numbers, numbers->limit) || numbers->noted < numbers->committed;
    if (!is_due || numbers->is_writing || !numbers->has_mark ||
        berth_storage_link_error(daemon->storage) || berth_engine_is_stopped(daemon->engine))
        return;
    g_clear_handle_id(&numbers->timer, g_source_remove);
    numbers->is_writing = TRUE;
    if (is_short(numbers, numbers->reserved))
        begin_reservation(numbers);
    else
        begin_mark(numbers);
}

void berth_job_numbers_given(BerthJobNumbers *numbers, guint64 job)
{
    numbers->committed = MAX(numbers->committed, job + 1);
    if (is_short(numbers, numbers->limit))
        update(numbers);
    else
        update_later(numbers, NOTE_MSEC);
}

/* --- storage ------------------------------------------------------------------------------------ */

static void take_mark(BerthJobNumbers *numbers)
{
    BerthDaemon *daemon = numbers->daemon;
    const BerthOwnerMark *mark = berth_storage_owner_found(numbers->owner);
    numbers->has_mark = TRUE;
    numbers->limit = mark->jobs_reserved;
    numbers->noted = mark->next_job;
    if (mark->jobs_reserved <= numbers->start.jobs_reserved &&
        mark->next_job <= numbers->start.next_job)
        return;
    daemon->next_job = MAX(daemon->next_job, MAX(mark->jobs_reserved, mark->next_job));
    g_warning(
        "storage knows of later jobs than the state database, whose next job is %" G_GUINT64_FORMAT
        ": a backup of the state was put back, or the storage was taken over; the next job is "
        "%" G_GUINT64_FORMAT " now, so that none gets the output of another",
        numbers->start.next_job, daemon->next_job);
}

void berth_job_numbers_storage_changed(BerthJobNumbers *numbers, const GError *error)
{
    numbers->is_known = TRUE;
    if (error) {
        answer_unavailable(numbers, error->message);
        return;
    }
    if (!numbers->has_mark)
        take_mark(numbers);
    update(numbers);
    if (numbers->daemon->next_job < numbers->limit)
        answer(numbers, NULL);
}
