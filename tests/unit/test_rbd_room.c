/* SPDX-License-Identifier: Apache-2.0 */
/* What `ceph df` says, and what it does not. */
#include "common/error.h"
#include "storage/rbd_room.h"
#include "tests/lib/assert.h"

/* Of Ceph 16 (pacific), without what is not looked at. */
#define ANSWER                                                                                     \
    "{\"stats\":{\"total_bytes\":10737418240,\"total_used_raw_ratio\":0.00066666667461395264},"    \
    "\"pools\":["                                                                                  \
    "{\"name\":\"device_health_metrics\",\"id\":1,\"stats\":{\"stored\":0,\"max_avail\":7}},"      \
    "{\"name\":\"berth\",\"id\":2,\"stats\":{\"stored\":5,\"max_avail\":9876543210}}]}"

static gboolean parse(const char *text, const char *pool, guint64 *out_bytes, GError **error)
{
    return berth_rbd_room_parse(text, strlen(text), pool, out_bytes, error);
}

static void room_is_that_of_the_pool(void **state)
{
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    assert_true(parse(ANSWER, "berth", &bytes, &error));
    assert_int_equal(bytes, 9876543210);
    assert_true(parse(ANSWER, "device_health_metrics", &bytes, &error));
    assert_int_equal(bytes, 7);
}

static void room_of_a_pool_that_is_not_there_is_not_found(void **state)
{
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    assert_false(parse(ANSWER, "bert", &bytes, &error));
    assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND));
}

static void answer_that_does_not_say_is_refused(void **state)
{
    static const char *const answers[] = {
        "",
        "[]",
        "7",
        "{}",
        "{\"pools\":{}}",
        "{\"pools\":[{\"name\":\"berth\"}]}",
        "{\"pools\":[{\"name\":\"berth\",\"stats\":7}]}",
        "{\"pools\":[{\"name\":\"berth\",\"stats\":{\"max_avail\":-1}}]}",
        "{\"pools\":[{\"name\":\"berth\",\"stats\":{\"max_avail\":\"7\"}}]}",
        "{\"pools\":[{\"name\":\"berth\",\"stats\":{\"max_avail\":1.5}}]}",
        "{\"pools\":[{\"name\":\"berth\",\"stats\":{\"max_avail\":null}}]}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autoptr(GError) error = NULL;
        guint64 bytes = 0;
        assert_false(parse(answers[i], "berth", &bytes, &error));
        if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT))
            fail_msg("%s: %s", answers[i], error->message);
    }
}

static void pools_that_are_none_are_passed_over(void **state)
{
    g_autoptr(GError) error = NULL;
    guint64 bytes = 0;
    assert_true(parse("{\"pools\":[7,{\"name\":7},{},{\"name\":\"berth\",\"stats\":{\"max_avail\":"
                      "3}}]}",
                      "berth", &bytes, &error));
    assert_int_equal(bytes, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_that_of_the_pool),
        cmocka_unit_test(room_of_a_pool_that_is_not_there_is_not_found),
        cmocka_unit_test(answer_that_does_not_say_is_refused),
        cmocka_unit_test(pools_that_are_none_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
