/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/backoff.h"
#include "common/error.h"
#include "common/message.h"
#include "common/types.h"
#include "proto/berth.pb-c.h"

#include <errno.h>

static Berth__Job make_job(void)
{
    static Berth__Exit end = BERTH__EXIT__INIT;
    static Berth__Task task = BERTH__TASK__INIT;
    static Berth__Task *tasks[] = {&task};
    Berth__Job job = BERTH__JOB__INIT;
    end.error = (char *)"why";
    task.exit = &end;
    job.id = 3;
    job.user = (char *)"ann";
    job.tasks = tasks;
    job.n_tasks = 1;
    return job;
}

static void pack_and_unpack_round_trip(void **state)
{
    Berth__Job job = make_job();
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) packed = berth_message_pack(&job.base);
    g_autoptr(ProtobufCMessage) back = berth_message_unpack(
        &berth__job__descriptor, g_bytes_get_data(packed, NULL), g_bytes_get_size(packed), &error);
    assert_no_error(error);
    assert_true(berth_message_equal(back, &job.base));
    assert_string_equal(((Berth__Job *)back)->tasks[0]->exit->error, "why");
}

static void empty_messages_pack_and_unpack(void **state)
{
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    g_autoptr(GBytes) packed = berth_message_pack(&request.base);
    assert_int_equal(g_bytes_get_size(packed), 0);
    g_autoptr(ProtobufCMessage) back =
        berth_message_unpack(&berth__info_request__descriptor, NULL, 0, NULL);
    assert_non_null(back);
    g_autoptr(ProtobufCMessage) copy = berth_message_copy(back);
    assert_true(berth_message_equal(copy, back));
    berth_message_free(NULL);
}

static void copy_is_deep(void **state)
{
    Berth__Job job = make_job();
    g_autoptr(ProtobufCMessage) copy = berth_message_copy(&job.base);
    Berth__Job *copied = (Berth__Job *)copy;
    assert_ptr_not_equal(copied->user, job.user);
    berth_message_set_string(&copied->user, "bob");
    assert_false(berth_message_equal(copy, &job.base));
    assert_string_equal(job.user, "ann");
}

static void equal_of_different_types_is_false(void **state)
{
    Berth__CancelRequest cancel = BERTH__CANCEL_REQUEST__INIT;
    Berth__HoldRequest hold = BERTH__HOLD_REQUEST__INIT;
    assert_false(berth_message_equal(&cancel.base, &hold.base));
}

static void unpack_truncated_anywhere_never_crashes(void **state)
{
    Berth__Job job = make_job();
    g_autoptr(GBytes) packed = berth_message_pack(&job.base);
    guint failures = 0;
    for (gsize length = 0; length < g_bytes_get_size(packed); length++) {
        g_autoptr(GError) error = NULL;
        g_autofree guint8 *bytes = g_memdup2(g_bytes_get_data(packed, NULL), length);
        g_autoptr(ProtobufCMessage) back =
            berth_message_unpack(&berth__job__descriptor, bytes, length, &error);
        if (back == NULL) {
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "cannot read a Job");
            failures++;
        }
    }
    assert_true(failures > 0);
}

static void unpack_of_text_that_is_not_utf8_names_the_field(void **state)
{
    g_autoptr(GError) error = NULL;
    Berth__Job job = make_job();
    job.tasks[0]->exit->error = (char *)"\xff";
    g_autoptr(GBytes) packed = berth_message_pack(&job.base);
    assert_null(berth_message_unpack(&berth__job__descriptor, g_bytes_get_data(packed, NULL),
                                     g_bytes_get_size(packed), &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT,
                       "cannot read a Exit: its field error is not UTF-8");
}

static void unpack_any_text_takes_text_that_is_not_utf8(void **state)
{
    Berth__Job job = make_job();
    job.user = (char *)"\xff";
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) packed = berth_message_pack(&job.base);
    gsize length = g_bytes_get_size(packed);
    g_autoptr(ProtobufCMessage) back = berth_message_unpack_any_text(
        &berth__job__descriptor, g_bytes_get_data(packed, NULL), length, &error);
    assert_no_error(error);
    assert_string_equal(((Berth__Job *)back)->user, "\xff");
    assert_null(berth_message_unpack_any_text(&berth__job__descriptor,
                                              g_bytes_get_data(packed, NULL), length - 1, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "malformed");
}

static void unpack_past_its_memory_is_refused(void **state)
{
    Berth__Job job = make_job();
    g_autoptr(GError) error = NULL;
    gsize used = 0;
    g_autoptr(GBytes) packed = berth_message_pack(&job.base);
    gconstpointer data = g_bytes_get_data(packed, NULL);
    gsize size = g_bytes_get_size(packed);
    g_autoptr(ProtobufCMessage) back =
        berth_message_unpack_limited(&berth__job__descriptor, data, size, 100000, &used, &error);
    assert_no_error(error);
    assert_in_range(used, sizeof(Berth__Job) + sizeof(Berth__Task), 2000);
    /* Each smaller limit fails at another allocation, and none leaks. */
    for (gsize limit = 0; limit < used; limit += 8) {
        g_autoptr(GError) refusal = NULL;
        assert_null(berth_message_unpack_limited(&berth__job__descriptor, data, size, limit, NULL,
                                                 &refusal));
        assert_berth_error(refusal, BERTH_ERROR_RESOURCE_EXHAUSTED, "of memory");
    }
}

static void set_string_and_bytes_own_their_copies(void **state)
{
    Berth__LogChunk init = BERTH__LOG_CHUNK__INIT;
    g_autoptr(ProtobufCMessage) chunk = berth_message_copy(&init.base);
    ProtobufCBinaryData *data = &((Berth__LogChunk *)chunk)->data;
    berth_message_set_bytes(data, "abc", 3);
    berth_message_set_bytes(data, "de", 2);
    assert_int_equal(data->len, 2);
    assert_memory_equal(data->data, "de", 2);
    berth_message_set_bytes(data, NULL, 0);
    assert_null(data->data);
    Berth__Error error_init = BERTH__ERROR__INIT;
    g_autoptr(ProtobufCMessage) error = berth_message_copy(&error_init.base);
    char **text = &((Berth__Error *)error)->message;
    berth_message_set_string(text, "one");
    berth_message_set_string(text, "two");
    assert_string_equal(*text, "two");
    berth_message_set_string(text, NULL);
    assert_string_equal(*text, "");
}

/* --- the small ones ----------------------------------------------------------------------- */

static void error_codes_are_those_of_the_schema(void **state)
{
    for (unsigned i = 0; i < berth__error_code__descriptor.n_values; i++) {
        const ProtobufCEnumValue *value = &berth__error_code__descriptor.values[i];
        if (value->value == 0)
            continue;
        /* ERROR_NOT_FOUND is "not-found". */
        g_autofree char *name = g_ascii_strdown(value->name + strlen("ERROR_"), -1);
        g_strdelimit(name, "_", '-');
        assert_string_equal(berth_error_code_name(value->value), name);
    }
    assert_string_equal(berth_error_code_name(0), "internal");
    assert_string_equal(berth_error_code_name(-1), "internal");
    assert_string_equal(berth_error_code_name(BERTH_ERROR_INTERNAL + 1), "internal");
}

static void error_codes_of_errno_values(void **state)
{
    static const struct {
        int err;
        BerthErrorCode code;
    } cases[] = {{EINVAL, BERTH_ERROR_INVALID_ARGUMENT},
                 {ENOENT, BERTH_ERROR_NOT_FOUND},
                 {EEXIST, BERTH_ERROR_ALREADY_EXISTS},
                 {EACCES, BERTH_ERROR_PERMISSION_DENIED},
                 {EBUSY, BERTH_ERROR_FAILED_PRECONDITION},
                 {ENOSPC, BERTH_ERROR_RESOURCE_EXHAUSTED},
                 {ETIMEDOUT, BERTH_ERROR_DEADLINE_EXCEEDED},
                 {ENOSYS, BERTH_ERROR_UNSUPPORTED},
                 {ECANCELED, BERTH_ERROR_CANCELLED},
                 {ESHUTDOWN, BERTH_ERROR_UNAVAILABLE},
                 {EIO, BERTH_ERROR_DATA_LOSS},
                 {EPROTO, BERTH_ERROR_PROTOCOL},
                 {EXDEV, BERTH_ERROR_INTERNAL}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_int_equal(berth_error_code_from_errno(cases[i].err), cases[i].code);
    g_autoptr(GError) error = NULL;
    berth_set_error_errno(&error, ENOENT, "cannot open %s", "x");
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "cannot open x: No such file");
    berth_set_error_errno(NULL, ENOENT, "nobody listens");
}

static void job_states_and_reasons_are_those_of_the_schema(void **state)
{
    assert_int_equal(BERTH_JOB_PENDING, BERTH__JOB_STATE__PENDING);
    assert_int_equal(BERTH_JOB_SUSPENDED, BERTH__JOB_STATE__SUSPENDED);
    assert_int_equal(BERTH_JOB_OUT_OF_MEMORY, BERTH__JOB_STATE__OUT_OF_MEMORY);
    assert_int_equal(BERTH_REASON_REQUEUED, BERTH__REASON__REASON_REQUEUED);
    assert_int_equal(BERTH_REASON_DISK_FULL, BERTH__REASON__REASON_DISK_FULL);
    assert_false(berth_job_state_is_final(BERTH_JOB_SUSPENDED));
    assert_true(berth_job_state_is_final(BERTH_JOB_COMPLETED));
}

static void backoff_doubles_with_jitter_up_to_its_maximum(void **state)
{
    BerthBackoff backoff = {.min_msec = 1000, .max_msec = 30000};
    static const guint expected[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++)
        assert_int_equal(berth_backoff_next_msec(&backoff, 0), expected[i]);
    berth_backoff_reset(&backoff);
    assert_int_equal(berth_backoff_next_msec(&backoff, 0.5), 1250);
    assert_int_equal(berth_backoff_next_msec(&backoff, 0.999), 2999);
    BerthBackoff large = {.min_msec = 1, .max_msec = G_MAXUINT};
    for (int i = 0; i < 40; i++)
        assert_true(berth_backoff_next_msec(&large, 0.999) > 0);
    assert_true(berth_backoff_next_msec(&large, 0) == G_MAXUINT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_and_unpack_round_trip),
        cmocka_unit_test(empty_messages_pack_and_unpack),
        cmocka_unit_test(copy_is_deep),
        cmocka_unit_test(equal_of_different_types_is_false),
        cmocka_unit_test(unpack_truncated_anywhere_never_crashes),
        cmocka_unit_test(unpack_of_text_that_is_not_utf8_names_the_field),
        cmocka_unit_test(unpack_any_text_takes_text_that_is_not_utf8),
        cmocka_unit_test(unpack_past_its_memory_is_refused),
        cmocka_unit_test(set_string_and_bytes_own_their_copies),
        cmocka_unit_test(error_codes_are_those_of_the_schema),
        cmocka_unit_test(error_codes_of_errno_values),
        cmocka_unit_test(job_states_and_reasons_are_those_of_the_schema),
        cmocka_unit_test(backoff_doubles_with_jitter_up_to_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
