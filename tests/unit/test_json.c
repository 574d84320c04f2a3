/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/json.h"
#include "common/message.h"
#include "proto/berth.pb-c.h"

#include <json-glib/json-glib.h>

static ProtobufCMessage *parse(const ProtobufCMessageDescriptor *descriptor, const char *text)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = berth_json_parse_message(descriptor, text, strlen(text), &error);
    assert_no_error(error);
    return message;
}

static void field_name_is_lower_camel_case(void **state)
{
    static const char *const cases[][2] = {{"id", "id"},
                                           {"memory_mib", "memoryMib"},
                                           {"a_b_c", "aBC"},
                                           {"x_1", "x1"},
                                           {"end_", "end_"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = berth_json_field_name(cases[i][0]);
        assert_string_equal(name, cases[i][1]);
    }
}

static void print_job_is_canonical(void **state)
{
    Berth__Exit end = BERTH__EXIT__INIT;
    Berth__Task task = BERTH__TASK__INIT, *tasks[] = {&task};
    Berth__Job job = BERTH__JOB__INIT;
    end.status = 3;
    end.stdout_bytes = G_MAXUINT64;
    task.exit = &end;
    task.booting = TRUE;
    job.id = 12;
    job.state = BERTH__JOB_STATE__RUNNING;
    job.user = (char *)"ann \"\xc3\xa4\" \n";
    job.priority = -5;
    job.tasks = tasks;
    job.n_tasks = 1;
    g_autofree char *text = berth_json_print_message(&job.base, BERTH_JSON_OMIT_DEFAULTS);
    assert_string_equal(
        text,
        "{\"id\":\"12\",\"user\":\"ann \\\"\xc3\xa4\\\" \\n\",\"state\":\"RUNNING\",\"tasks\":[{"
        "\"booting\":true,\"exit\":{\"status\":3,\"stdoutBytes\":\"18446744073709551615\"}}],"
        "\"priority\":-5}");
}

static void print_with_defaults_has_all_but_messages(void **state)
{
    Berth__BlobRef blob = BERTH__BLOB_REF__INIT;
    Berth__InputFile file = BERTH__INPUT_FILE__INIT;
    g_autofree char *empty = berth_json_print_message(&file.base, BERTH_JSON_WITH_DEFAULTS);
    assert_string_equal(empty, "{\"name\":\"\",\"mode\":0}");
    file.blob = &blob;
    g_autofree char *full = berth_json_print_message(&file.base, BERTH_JSON_WITH_DEFAULTS);
    assert_string_equal(full, "{\"name\":\"\",\"mode\":0,\"blob\":{\"sha256\":\"\",\"sizeBytes\":"
                              "\"0\",\"inState\":false}}");
    Berth__ListNodesReply list = BERTH__LIST_NODES_REPLY__INIT;
    g_autofree char *array = berth_json_print_message(&list.base, BERTH_JSON_WITH_DEFAULTS);
    assert_string_equal(array, "{\"nodes\":[],\"nextAfter\":\"\"}");
    g_autofree char *none = berth_json_print_message(&list.base, BERTH_JSON_OMIT_DEFAULTS);
    assert_string_equal(none, "{}");
}

static void print_oneof_and_unknown_enum_values(void **state)
{
    Berth__ToGuest__Signal signal = BERTH__TO_GUEST__SIGNAL__INIT;
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    signal.signal = 15;
    message.body_case = BERTH__TO_GUEST__BODY_SIGNAL;
    message.signal = &signal;
    g_autofree char *text = berth_json_print_message(&message.base, BERTH_JSON_WITH_DEFAULTS);
    assert_string_equal(text,
                        "{\"session\":\"0\",\"signal\":{\"signal\":15,\"commandOnly\":false}}");
    Berth__Error error = BERTH__ERROR__INIT;
    error.code = (Berth__ErrorCode)99;
    g_autofree char *future = berth_json_print_message(&error.base, BERTH_JSON_OMIT_DEFAULTS);
    assert_string_equal(future, "{\"code\":99}");
}

static void print_pretty_has_lines(void **state)
{
    Berth__Error error = BERTH__ERROR__INIT;
    error.message = (char *)"m";
    g_autofree char *text = berth_json_print_message(&error.base, BERTH_JSON_PRETTY);
    assert_string_equal(text, "{\n  \"message\" : \"m\"\n}");
}

static void parse_all_spellings_are_read(void **state)
{
    g_autoptr(ProtobufCMessage) message = parse(
        &berth__job_spec__descriptor,
        " { \"name\" : \"a\\u00e4\", \"memoryMib\": \"18446744073709551615\", \"disk_mib\": 7,\n"
        "\"priority\": -3, \"hold\": true, \"command\": [\"x\", \"\"], \"image\": null,\n"
        "\"script\": {\"sha256\": \"AP-_\", \"sizeBytes\": 5},\n"
        "\"inputs\": [{\"name\": \"f\", \"mode\": \"420\"}, {}], \"stopGraceSec\": 4294967295 }");
    const Berth__JobSpec *spec = (const Berth__JobSpec *)message;
    assert_string_equal(spec->name, "a\xc3\xa4");
    assert_true(spec->memory_mib == G_MAXUINT64);
    assert_int_equal(spec->disk_mib, 7);
    assert_int_equal(spec->priority, -3);
    assert_true(spec->hold);
    assert_int_equal(spec->n_command, 2);
    assert_string_equal(spec->command[0], "x");
    assert_string_equal(spec->command[1], "");
    assert_string_equal(spec->image, "");
    assert_int_equal(spec->script->sha256.len, 3);
    assert_memory_equal(spec->script->sha256.data, "\x00\xff\xbf", 3);
    assert_int_equal(spec->script->size_bytes, 5);
    assert_int_equal(spec->n_inputs, 2);
    assert_int_equal(spec->inputs[0]->mode, 420);
    assert_true(spec->stop_grace_sec == G_MAXUINT32);
}

static void parse_enums_by_name_and_number(void **state)
{
    g_autoptr(ProtobufCMessage) message =
        parse(&berth__list_jobs_request__descriptor, "{\"states\": [\"FAILED\", 2]}");
    const Berth__ListJobsRequest *request = (const Berth__ListJobsRequest *)message;
    assert_int_equal(request->n_states, 2);
    assert_int_equal(request->states[0], BERTH__JOB_STATE__FAILED);
    assert_int_equal(request->states[1], BERTH__JOB_STATE__RUNNING);
}

static void parse_bytes_paddings(void **state)
{
    static const struct {
        const char *text;
        gsize length;
    } cases[] = {{"", 0}, {"AA", 1}, {"AA==", 1}, {"AAA", 2}, {"AAA=", 2}, {"AAAA", 3}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("{\"sha256\": \"%s\"}", cases[i].text);
        g_autoptr(ProtobufCMessage) message = parse(&berth__blob_ref__descriptor, text);
        assert_int_equal(((Berth__BlobRef *)message)->sha256.len, cases[i].length);
    }
}

static void parse_bad_names_the_field(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "cannot read JSON"},
        {"{", "cannot read JSON"},
        {"[]", "the message: expected an object, got an array"},
        {"{\"nme\": 1}", "nme: no such field in a JobSpec"},
        {"{\"name\": 1}", "name: expected a string, got a number"},
        {"{\"vcpus\": -1}", "vcpus: expected an integer from 0 to 4294967295"},
        {"{\"vcpus\": 4294967296}", "vcpus: expected an integer"},
        {"{\"vcpus\": 1.5}", "vcpus: expected an integer"},
        {"{\"vcpus\": \"1x\"}", "vcpus: expected an integer"},
        {"{\"vcpus\": true}", "got a boolean"},
        {"{\"priority\": 2147483648}", "priority: expected an integer from -2147483648"},
        {"{\"priority\": \"x\"}", "priority: expected an integer"},
        {"{\"memoryMib\": \"18446744073709551616\"}", "memoryMib: expected an integer"},
        {"{\"memoryMib\": 18446744073709551615}", "write it as a string"},
        {"{\"hold\": 1}", "hold: expected true or false, got a number"},
        {"{\"command\": \"x\"}", "command: expected an array, got a string"},
        {"{\"command\": [\"a\", {}]}", "command[1]: expected a string, got an object"},
        {"{\"command\": [null]}", "command[0]: expected a string, got null"},
        {"{\"inputs\": [{}, {\"blob\": {\"sha256\": 5}}]}",
         "inputs[1].blob.sha256: expected bytes"},
        {"{\"inputs\": [{\"blob\": 5}]}", "inputs[0].blob: expected an object, got a number"},
        {"{\"script\": {\"sha256\": \"A\"}}", "script.sha256: expected bytes in base64"},
        {"{\"script\": {\"sha256\": \"A===\"}}", "script.sha256: expected bytes in base64"},
        {"{\"script\": {\"sha256\": \"AA=\"}}", "script.sha256: expected bytes in base64"},
        {"{\"script\": {\"sha256\": \"A!AA\"}}", "script.sha256: expected bytes in base64"},
        {"{\"memoryMib\": 1, \"memory_mib\": 2}", "memory_mib: set twice"},
        {"{\"name\": \"x\" /* c */}", "at byte 13: not JSON"},
        {"{'name': 1}", "not JSON"},
        {"\"\xff\"", "not UTF-8"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_json_parse_message(&berth__job_spec__descriptor, cases[i].text,
                                             strlen(cases[i].text), &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].message);
    }
}

static void parse_bad_enum_lists_the_names(void **state)
{
    static const char *const bad[] = {"{\"code\": \"NOPE\"}", "{\"code\": 99}", "{\"code\": true}",
                                      "{\"code\": 99999999999}"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(
            berth_json_parse_message(&berth__error__descriptor, bad[i], strlen(bad[i]), &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT,
                           "code: expected one of ERROR_UNSPECIFIED, ERROR_INVALID_ARGUMENT");
    }
}

static void parse_two_of_a_oneof_is_refused(void **state)
{
    static const char text[] = "{\"run\": {}, \"signal\": {\"signal\": 9}}";
    g_autoptr(GError) error = NULL;
    assert_null(berth_json_parse_message(&berth__to_guest__descriptor, text, strlen(text), &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "signal: only one of this group");
}

static void parse_deep_nesting_is_refused(void **state)
{
    g_autofree char *text = g_strnfill(1000000, '[');
    g_autoptr(GError) error = NULL;
    assert_null(berth_json_parse(text, 1000000, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "at byte 32: nested too deeply");
    /* Brackets inside strings do not count, escaped quotes do not end them. */
    g_autofree char *brackets = g_strnfill(100, '[');
    g_autofree char *name = g_strdup_printf("{\"name\": \"\\\"%s\"}", brackets);
    g_autoptr(ProtobufCMessage) message = parse(&berth__job_spec__descriptor, name);
    assert_int_equal(strlen(((Berth__JobSpec *)message)->name), 101);
}

static void print_and_parse_round_trip(void **state)
{
    Berth__GuestTask task = BERTH__GUEST_TASK__INIT;
    char *command[] = {(char *)"sh", (char *)"-c", (char *)""};
    guint32 groups[] = {0, 5, G_MAXUINT32};
    task.command = command;
    task.n_command = 3;
    task.groups = groups;
    task.n_groups = 3;
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.session = G_MAXUINT64 - 1;
    message.body_case = BERTH__TO_GUEST__BODY_TASK;
    message.task = &task;
    for (guint flags = 0; flags < 4; flags++) {
        g_autofree char *text = berth_json_print_message(&message.base, (BerthJsonFlags)flags);
        g_autoptr(ProtobufCMessage) back = parse(&berth__to_guest__descriptor, text);
        assert_true(berth_message_equal(back, &message.base));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_name_is_lower_camel_case),
        cmocka_unit_test(print_job_is_canonical),
        cmocka_unit_test(print_with_defaults_has_all_but_messages),
        cmocka_unit_test(print_oneof_and_unknown_enum_values),
        cmocka_unit_test(print_pretty_has_lines),
        cmocka_unit_test(parse_all_spellings_are_read),
        cmocka_unit_test(parse_enums_by_name_and_number),
        cmocka_unit_test(parse_bytes_paddings),
        cmocka_unit_test(parse_bad_names_the_field),
        cmocka_unit_test(parse_bad_enum_lists_the_names),
        cmocka_unit_test(parse_two_of_a_oneof_is_refused),
        cmocka_unit_test(parse_deep_nesting_is_refused),
        cmocka_unit_test(print_and_parse_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
