/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "common/types.h"
#include "proto/berth.pb-c.h"
#include <gio/gio.h>

/* The scheduler's durable state in one SQLite database: jobs, tasks, nodes, images, small blobs,
 * the event log, what the policy learnt, and the counters of job numbers and events.
 *
 * Writing: the loop fills a batch (an immutable list of changes once handed over) and commits it;
 * the store's own thread puts all batches that wait into one transaction (group commit), syncs,
 * and calls back in the order of the commits. Reading: on worker threads of the caller, each call
 * sees all that was committed before it. Nobody shares a connection across threads.
 *
 * A store that cannot write (disk full, I/O error) fails the commit and every later one with the
 * same error: the daemon must end, and nothing that was acknowledged is lost. */

typedef struct BerthStore BerthStore;

#define BERTH_STORE_SCHEMA_VERSION 7

/* PATH: a file (created with mode 0600 if absent, in a directory that exists; PATH.lock beside it
 * keeps others out), or a "file:" URI for another VFS (?vfs=ceph). One that an older release wrote is
 * brought to the present schema, as a whole or not at all; that release cannot open it any more. Errors: NOT_FOUND (no such
 * directory), FAILED_PRECONDITION (another berthd has it open: says which
 * pid where it can; the schema is newer than this build: names both versions), DATA_LOSS (not a
 * database, or fails its check: says how to recover from a backup), RESOURCE_EXHAUSTED,
 * PERMISSION_DENIED. */
BerthStore *berth_store_open(const char *path, GError **error);
/* Waits for the commits under way. */
void berth_store_close(BerthStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStore, berth_store_close)

/* --- loading, before the first commit ------------------------------------------------------ */

#define BERTH_STORE_ID_CHARS 32

typedef struct {
    guint64 next_job;      /* smallest number never given out */
    guint64 last_seq;      /* of the newest event */
    gint64 last_usec;      /* its time; 0 = there is none */
    guint64 jobs_reserved; /* as berth_store_batch_reserve_jobs() left it; 0: never called */
    char id[BERTH_STORE_ID_CHARS + 1]; /* hex, made with the database; a copy of it has the same */
} BerthStoreCounters;

/* Why an object in storage is to be removed. The numbers are stored. */
typedef enum {
    BERTH_UNWANTED_IMPORT = 1,  /* an import writes it, or did so when this was noted */
    BERTH_UNWANTED_REMOVAL = 2, /* it was the object of an image that was removed */
} BerthUnwanted;

/* JOB is without its spec but with id, uid, user, name, resources, limits, priority, holds; TASKS are those that are not done with.
 * Who is called may take JOB, and any of TASKS, and leaves NULL in their place. */
typedef struct {
    Berth__Job *job;
    const Berth__JobSpec *spec;
    Berth__StoredTask **tasks;
    gsize n_tasks;
} BerthStoreLoadedJob;

/* Everything else is (transfer none). FALSE stops and fails with ERROR. Called while berth_store_load() waits, maybe in another
 * thread; must not call the store. */
typedef struct {
    gboolean (*node)(const Berth__StoredNode *node, gpointer user_data, GError **error);
    gboolean (*image)(const Berth__Image *image, gpointer user_data, GError **error);
    gboolean (*job)(BerthStoreLoadedJob *loaded, gpointer user_data, GError **error);
    gboolean (*use)(const Berth__StoredUse *use, gpointer user_data, GError **error);
    gboolean (*prior)(const Berth__StoredPrior *prior, gpointer user_data, GError **error);
    gboolean (*unwanted)(const char *image_id, BerthUnwanted why, gpointer user_data,
                         GError **error);
} BerthStoreLoader;
/* Nodes, images, what is unwanted, uses, priors (the one written longest ago first), then the unfinished
 * jobs (not final, or with a guest that is not released yet) in order of their numbers. */
gboolean berth_store_load(BerthStore *store, const BerthStoreLoader *loader, gpointer user_data,
                          BerthStoreCounters *out_counters, GError **error);

/* --- writing ------------------------------------------------------------------------------- */

/* A job that has ended long ago, or a part of what there is of it (see berth_store_find_old()). */
typedef struct {
    guint64 job;
    guint32 n_tasks;   /* records of tasks: */
    guint32 tasks_to;  /* those up to this one */
    guint64 events_to; /* its events: those up to this one */
    gboolean is_whole; /* there is nothing else of it */
} BerthStoreOldJob;

typedef struct BerthStoreBatch BerthStoreBatch;
BerthStoreBatch *berth_store_batch_new(void);
void berth_store_batch_free(BerthStoreBatch *batch); /* one that was not committed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStoreBatch, berth_store_batch_free)
gboolean berth_store_batch_is_empty(const BerthStoreBatch *batch);

/* Each copies (packs) its arguments. A job's spec is written once and never changed, and what it
 * names as script, environment and inputs is noted as its blobs. The record of a job is kept
 * without its spec and tasks, as they have records of their own. IDEMPOTENCY_KEY: NULL or "" =
 * none; the caller has made sure that the user has no such key yet, in the store or on its way. */
void berth_store_batch_add_job(BerthStoreBatch *batch, const Berth__Job *job,
                               const Berth__JobSpec *spec, const char *idempotency_key);
/* Lists select by the state written here: to be called whenever the job's state changes. */
void berth_store_batch_update_job(BerthStoreBatch *batch, const Berth__Job *job);
/* IS_DONE: final and its guest released, so that it need not be loaded again. */
void berth_store_batch_put_task(BerthStoreBatch *batch, const Berth__StoredTask *task,
                                gboolean is_done);
void berth_store_batch_put_node(BerthStoreBatch *batch, const Berth__StoredNode *node);
/* In the place of what was written before of the same user or account. */
void berth_store_batch_put_use(BerthStoreBatch *batch, const Berth__StoredUse *use);
/* Likewise of the same user, family and reservation; one without siblings is removed. */
void berth_store_batch_put_prior(BerthStoreBatch *batch, const Berth__StoredPrior *prior);
void berth_store_batch_put_image(BerthStoreBatch *batch, const Berth__Image *image);
void berth_store_batch_remove_image(BerthStoreBatch *batch, const char *name);
/* The object in storage with this ID is, or is not any more, one that is to be removed: no image has it. */
void berth_store_batch_put_unwanted(BerthStoreBatch *batch, const char *id, BerthUnwanted why);
void berth_store_batch_remove_unwanted(BerthStoreBatch *batch, const char *id);
/* Kept while a job refers to it. */
void berth_store_batch_put_blob(BerthStoreBatch *batch, const guint8 sha256[32], GBytes *content);
/* Notes what is reserved (see daemon/job_numbers.h), and that no number below NEXT_JOB is to be
 * given out any more, be there a job of it or not. */
void berth_store_batch_reserve_jobs(BerthStoreBatch *batch, guint64 jobs_reserved,
                                    guint64 next_job);
void berth_store_batch_add_event(BerthStoreBatch *batch, const Berth__Event *event);
/* What was found, and with the last of it the job itself. */
void berth_store_batch_remove_old(BerthStoreBatch *batch, const BerthStoreOldJob *old);
/* Those up to UP_TO_SEQ that are of no job (see berth_store_find_old()); the newest of all events stays. */
void berth_store_batch_remove_events(BerthStoreBatch *batch, guint64 up_to_seq);
/* Unless a job names it. */
void berth_store_batch_remove_blob(BerthStoreBatch *batch, GBytes *sha256);

/* Takes BATCH (transfer full). CALLBACK in the caller's thread-default main context once it is
 * durable; callbacks come in the order of the commits. Every failure is final for the store, also
 * that of a batch which contradicts what is stored (a number or key used twice, a change of an
 * unknown job): what the caller has in memory is no longer what is on disk. */
void berth_store_commit_async(BerthStore *store, BerthStoreBatch *batch,
                              GAsyncReadyCallback callback, gpointer user_data);
gboolean berth_store_commit_finish(BerthStore *store, GAsyncResult *result, GError **error);

/* --- reading, from any thread --------------------------------------------------------------- */

/* Which tasks of an array are wanted, by rising index. A plain job always comes with its one. */
typedef struct {
    const BerthIndexSet *
        only; /* only these; NULL = any. One that ended with others before they started has a record of its own here */
    gboolean done;    /* also those that are done with */
    gboolean follows; /* only those behind AFTER */
    guint32 after;
    guint32 limit; /* so many at most, 1..10000 */
} BerthStoreTasks;

/* (transfer full) by the berth__..._free_unpacked() functions. NOT_FOUND. With its spec and tasks, of an array the first 1000 that
 * have started and are not done with. */
Berth__Job *berth_store_get_job(BerthStore *store, guint64 job, GError **error);
Berth__Job *berth_store_get_job_with(BerthStore *store, guint64 job, const BerthStoreTasks *tasks,
                                     GError **error);
Berth__JobSpec *berth_store_get_spec(BerthStore *store, guint64 job, GError **error);

/* With log_id, disk_id and the like. NOT_FOUND: also one that has not started. */
Berth__StoredTask *berth_store_get_task(BerthStore *store, guint64 job, guint32 index,
                                        GError **error);

typedef struct {
    guint64 after_job;
    guint32 limit;     /* 1..10000 */
    const int *states; /* JobState values; NULL = all */
    gsize n_states;
    gboolean any_uid;
    guint32 uid;         /* unless any_uid */
    const guint64 *jobs; /* only these; NULL = all */
    gsize n_jobs;
    gsize bytes_max;    /* no further job once they take so much, packed; 0 = any */
    GCancellable *stop; /* triggered: give up, with CANCELLED; may be NULL */
} BerthStoreQuery;
/* Jobs with their tasks, without specs, by rising number; arrays with the first 100 that have started and are not done
 * with. *out_more: there are further ones. */
GPtrArray *berth_store_list_jobs(BerthStore *store, const BerthStoreQuery *query,
                                 gboolean *out_more, GError **error);

/* The number of the last event before TIME_USEC; 0 = there is none. Times rise with numbers. */
gboolean berth_store_find_event(BerthStore *store, guint64 time_usec, guint64 *out_before_seq,
                                GError **error);
/* Events with seq > AFTER_SEQ, at most LIMIT (GPtrArray of Berth__Event, owning). JOB 0 = all. */
GPtrArray *berth_store_list_events(BerthStore *store, guint64 after_seq, guint64 job, guint32 limit,
                                   GError **error);

/* The value of each key of STATES, the number of a job (guint64 *), becomes its state (GINT_TO_POINTER); JOB_STATE_UNSPECIFIED: there is
 * none. All are of one instant. */
gboolean berth_store_get_job_states(BerthStore *store, GHashTable *states, GError **error);
/* Those of JOB's tasks from FIRST to LAST that have COMPLETED are added to COMPLETED (BerthTaskRange). */
gboolean berth_store_get_completed(BerthStore *store, guint64 job, guint32 first, guint32 last,
                                   GArray *completed, GError **error);

/* 0 with no error set: no such key of that user. */
guint64 berth_store_find_idempotency_key(BerthStore *store, guint32 uid, const char *key,
                                         GError **error);

/* NULL without ERROR: not here (it is in storage, or nowhere). (transfer full) */
GBytes *berth_store_get_blob(BerthStore *store, const guint8 sha256[32], GError **error);
/* TRUE in *out_used if any job (ended ones too) refers to it: for collecting garbage in storage. */
gboolean berth_store_blob_is_used(BerthStore *store, const guint8 sha256[32], gboolean *out_used,
                                  GError **error);

/* --- what is over for long ---------------------------------------------------------------------- */

typedef struct {
    GArray *jobs;      /* BerthStoreOldJob */
    GArray *guests;    /* BerthGuestId: the last guest of each of their tasks that had one */
    guint64 after_job; /* where it goes on */
    guint64 events_to; /* events of no job go up to this one; 0: none go yet */
    gboolean is_last;  /* there is no more */
} BerthStoreOld;
void berth_store_old_free(BerthStoreOld *old);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStoreOld, berth_store_old_free)

/* Jobs behind AFTER_JOB that are done with and have no event after BEFORE_SEQ: so many as are removed in one commit without
 * holding others up, of a large one a part, which is the last then. Where there are no more of them, events of no job up to
 * BEFORE_SEQ, as many at a time. (transfer full) */
BerthStoreOld *berth_store_find_old(BerthStore *store, guint64 before_seq, guint64 after_job,
                                    GError **error);
/* Digests of some thousands of blobs in the database that no job names; one that is being submitted may be about to. (GPtrArray of GBytes, owning) */
GPtrArray *berth_store_list_unused_blobs(BerthStore *store, GError **error);

/* --- a copy of all of it --------------------------------------------------------------------------- */

/* A copy of the database, which berth_store_open() takes as a file, with all that was committed before its last piece. It
 * is made in pieces, each while commits wait for some milliseconds. From one worker thread at a time; all are freed before
 * the store is closed. */
typedef struct BerthStoreBackup BerthStoreBackup;

typedef struct {
    guint64 copied_pages;
    guint64 total_pages; /* as it is now */
    guint64 page_bytes;
    gboolean is_done;
} BerthStoreBackupState;

/* Writes CONTENT, which is valid until it returns, at OFFSET of the copy, whatever is there by now. */
typedef gboolean (*BerthStoreBackupFunc)(GBytes *content, guint64 offset, gpointer user_data,
                                         GError **error);

BerthStoreBackup *berth_store_backup_begin(BerthStore *store, GError **error);
/* Copies the next piece, and has it written: nobody waits while FUNC does. After a failure, and once it is done, it is
 * only to be freed. RESOURCE_EXHAUSTED: FUNC is slower than commits come, for too long. */
gboolean berth_store_backup_step(BerthStoreBackup *backup, BerthStoreBackupFunc func,
                                 gpointer user_data, BerthStoreBackupState *out_state,
                                 GError **error);
void berth_store_backup_free(BerthStoreBackup *backup);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStoreBackup, berth_store_backup_free)
