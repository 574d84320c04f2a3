/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Setup of most tests of berthd: it runs, has the image "tiny" and the node "n1", whose guests do
 * what `plan` says when they start. */

#include "tests/lib/assert.h"
#include "tests/lib/berthd_fixture.h"

#include "common/message.h"

typedef struct {
    BerthdFixture *berthd;
    FakeAgent *agent;
    FakePlan plan;
} BerthdTest;

static inline void berthd_test_plan(const Berth__StartGuestRequest *request, FakePlan *out_plan,
                                    gpointer user_data)
{
    *out_plan = *(const FakePlan *)user_data;
}

static inline int berthd_test_setup_with(void **state, const char *extra)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    test->berthd = berthd_fixture_new(extra);
    berthd_fixture_start(test->berthd);
    test->agent = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
    berthd_fixture_import(test->berthd, "tiny");
    *state = test;
    return 0;
}

static inline int berthd_test_setup(void **state)
{
    return berthd_test_setup_with(state, NULL);
}

static inline int berthd_test_teardown(void **state)
{
    BerthdTest *test = *state;
    berthd_fixture_free(test->berthd);
    g_free(test);
    return 0;
}

/* For a call that is waited for later: into the GAsyncResult * at RESULT_AT (transfer full). */
static inline void berthd_test_keep_result(GObject *source, GAsyncResult *result,
                                           gpointer result_at)
{
    *(GAsyncResult **)result_at = g_object_ref(result);
}

/* Record of JOB, to be freed with berth_message_free(&job->base). */
static inline Berth__Task *berthd_test_task(Berth__Job *job)
{
    assert_int_equal(job->n_tasks, 1);
    return job->tasks[0];
}

/* The largest job number that an event has named which was sent by now; 0 before the first. */
static inline guint64 berthd_test_newest_job(BerthdTest *test)
{
    guint64 newest = 0;
    while (g_main_context_iteration(NULL, FALSE)) {
        /* events that have come already */
    }
    GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        newest = MAX(newest, event->job);
    }
    return newest;
}

#define BERTHD_TEST(function)                                                                      \
    cmocka_unit_test_setup_teardown(function, berthd_test_setup, berthd_test_teardown)
