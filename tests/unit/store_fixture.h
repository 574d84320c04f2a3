/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the store's tests share: a directory of their own, commits that are waited for, and small
 * records. Include after cmocka.h. */

#include "common/error.h"
#include "scheduler/store/store.h"

typedef struct {
    char *directory;
    char *path; /* directory/berth.db */
} StoreFixture;

StoreFixture *store_fixture_new(void);
void store_fixture_free(StoreFixture *fixture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreFixture, store_fixture_free)

/* Opens PATH; fails the test if that fails. */
BerthStore *store_open_ok(const char *path);
/* Opens PATH, which must fail with CODE and a message that has each of the words. */
void store_open_fails(const char *path, int code, const char *word, const char *other);

/* Takes BATCH, and waits (60 s at most) for the answer. */
gboolean store_commit(BerthStore *store, BerthStoreBatch *batch, GError **error);
void store_commit_ok(BerthStore *store, BerthStoreBatch *batch);

/* Adds a pending job with one task and an event to BATCH; its spec has the script digest
 * DIGEST_BYTE * 32 unless that is 0. */
void store_batch_add_sample(BerthStoreBatch *batch, guint64 job, guint32 uid, guint8 digest_byte);
/* Writes the state of a sample's task (and of its job). */
void store_batch_set_state(BerthStoreBatch *batch, guint64 job, guint32 uid, Berth__JobState state,
                           gboolean done);
/* Adds a job alone, submitted with the idempotency key KEY. */
void store_batch_add_keyed_job(BerthStoreBatch *batch, guint64 job, guint32 uid, const char *key);
