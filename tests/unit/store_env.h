/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A store for each test, on a local file (a writer and readers) and on a URI (one exclusive connection, as
 * on Ceph): every test runs on both. Include after cmocka.h. */

#include "tests/unit/store_fixture.h"

typedef struct {
    StoreFixture *fixture;
    char *path;
    BerthStore *store;
} StoreEnv;

int store_env_set_up_local(void **state);
int store_env_set_up_elsewhere(void **state);
int store_env_tear_down(void **state);

#define STORE_ENV_BOTH(test)                                                                       \
    {#test "/file", test, store_env_set_up_local, store_env_tear_down, NULL},                      \
    {                                                                                              \
#test "/uri", test, store_env_set_up_elsewhere, store_env_tear_down, NULL                  \
    }

/* Commits the samples FIRST to LAST, of UID. */
void store_env_add_samples(StoreEnv *env, guint64 first, guint64 last, guint32 uid);
