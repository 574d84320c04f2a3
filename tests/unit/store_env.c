/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_env.h"

static int set_up(void **state, const char *prefix)
{
    StoreEnv *env = g_new0(StoreEnv, 1);
    env->fixture = store_fixture_new();
    env->path = g_strconcat(prefix, env->fixture->path, NULL);
    env->store = store_open_ok(env->path);
    *state = env;
    return 0;
}

int store_env_set_up_local(void **state)
{
    return set_up(state, "");
}

int store_env_set_up_elsewhere(void **state)
{
    return set_up(state, "file:");
}

int store_env_tear_down(void **state)
{
    StoreEnv *env = *state;
    berth_store_close(env->store);
    store_fixture_free(env->fixture);
    g_free(env->path);
    g_free(env);
    return 0;
}

void store_env_add_samples(StoreEnv *env, guint64 first, guint64 last, guint32 uid)
{
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 job = first; job <= last; job++)
        store_batch_add_sample(batch, job, uid, 0);
    store_commit_ok(env->store, batch);
}
