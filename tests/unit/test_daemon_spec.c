/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for what users submit. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/spec_check.h"

static BerthDaemonConfig config = {
    .default_image = (char *)"debian",
    .default_vcpus = 2,
    .default_memory_mib = 512,
    .default_disk_mib = 1024,
    .default_time_limit_sec = 3600,
    .default_on_limit = 1,
    .input_file_max_mib = 10,
    .inputs_max_mib = 15,
    .inputs_max = 3,
    .command_max_bytes = 1000,
    .environment_max_bytes = 100,
    .stop_grace_max_sec = 600,
    .checkpoint_signal_max_sec = 60,
};

static Berth__JobSpec *good_spec(void)
{
    static char *command[] = {(char *)"echo", (char *)"hello"};
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    spec.name = (char *)"a job";
    spec.image = (char *)"busybox";
    spec.vcpus = 1;
    spec.memory_mib = 64;
    spec.time_limit_sec = 1;
    spec.command = command;
    spec.n_command = 2;
    return berth_pb_dup(&spec.base);
}

/* --- single fields ------------------------------------------------------------------------------ */

typedef struct {
    const char *field;
    guint64 value;
    const char *text;
    int code; /* 0 = good */
    const char *says;
} FieldCase;

static void set_field(Berth__JobSpec *spec, const FieldCase *c)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(spec->base.descriptor, c->field);
    gpointer member = (guint8 *)spec + field->offset;
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
        *(guint32 *)member = (guint32)c->value;
        break;
    case PROTOBUF_C_TYPE_SINT32:
        *(gint32 *)member = (gint32)c->value;
        break;
    case PROTOBUF_C_TYPE_UINT64:
        *(guint64 *)member = c->value;
        break;
    default:
        berth_message_set_string(member, c->text);
    }
}

#define LONG_NAME                                                                                  \
    "0123456789012345678901234567890123456789012345678901234567890123456789"                       \
    "0123456789012345678901234567890123456789012345678901234567890123456789"

static const FieldCase fields[] = {
    {"name", 0, "", 0, NULL},
    {"name", 0, "späte Jobs", 0, NULL},
    {"name", 0, "two\nlines", BERTH_ERROR_INVALID_ARGUMENT, "control character"},
    {"name", 0, LONG_NAME, BERTH_ERROR_INVALID_ARGUMENT, "at most 128"},
    {"name", 0, "\xff\xfe", BERTH_ERROR_INVALID_ARGUMENT, "UTF-8"},
    {"image", 0, "a-1.b_2", 0, NULL},
    {"image", 0, "", BERTH_ERROR_INVALID_ARGUMENT, "name of an image"},
    {"image", 0, ".hidden", BERTH_ERROR_INVALID_ARGUMENT, "name of an image"},
    {"image", 0, "a/b", BERTH_ERROR_INVALID_ARGUMENT, "name of an image"},
    {"vcpus", 0, NULL, BERTH_ERROR_INVALID_ARGUMENT, "1 to 1024"},
    {"vcpus", 1024, NULL, 0, NULL},
    {"vcpus", 1025, NULL, BERTH_ERROR_INVALID_ARGUMENT, "1 to 1024"},
    {"memory_mib", 63, NULL, BERTH_ERROR_INVALID_ARGUMENT, "64 to"},
    {"memory_mib", G_MAXUINT64, NULL, BERTH_ERROR_INVALID_ARGUMENT, "64 to"},
    {"disk_mib", G_MAXUINT64, NULL, BERTH_ERROR_INVALID_ARGUMENT, "of disk"},
    {"disk_mib", 64u << 20, NULL, 0, NULL},
    {"disk_mib", 1000u << 20, NULL, BERTH_ERROR_INVALID_ARGUMENT, "a disk has 64T at most"},
    {"time_limit_sec", G_MAXUINT64, NULL, BERTH_ERROR_INVALID_ARGUMENT, "time limit"},
    {"time_limit_sec", G_GUINT64_CONSTANT(99999) * 86400, NULL, BERTH_ERROR_INVALID_ARGUMENT,
     "a time limit of 99999-00:00:00 (days-hours:minutes:seconds) cannot be had: at most 3660 "
     "days"},
    {"stop_grace_sec", 600, NULL, 0, NULL},
    {"stop_grace_sec", 601, NULL, BERTH_ERROR_INVALID_ARGUMENT,
     "601 s from SIGTERM to SIGKILL cannot be had: at most 600 s are allowed here "
     "(stop_grace_max)"},
    {"checkpoint_signal", 31, NULL, 0, NULL},
    {"checkpoint_signal", 9, NULL, BERTH_ERROR_INVALID_ARGUMENT, "cannot be caught"},
    {"checkpoint_signal", 32, NULL, BERTH_ERROR_INVALID_ARGUMENT, "cannot be caught"},
    {"checkpoint_signal_sec", 60, NULL, 0, NULL},
    {"checkpoint_signal_sec", 61, NULL, BERTH_ERROR_INVALID_ARGUMENT,
     "at most 60 s are allowed here (checkpoint_signal_max)"},
    {"restore_signal", 19, NULL, BERTH_ERROR_INVALID_ARGUMENT, "cannot be caught"},
    {"vcpus_max", 1024, NULL, 0, NULL},
    {"vcpus_max", 1025, NULL, BERTH_ERROR_INVALID_ARGUMENT, "1 to 1024"},
    {"memory_max_mib", 16777217, NULL, BERTH_ERROR_INVALID_ARGUMENT, "16777216 MiB"},
    {"memory_max_mib", 1, NULL, BERTH_ERROR_INVALID_ARGUMENT, "--memory-max"},
    {"priority", 0, NULL, 0, NULL},
    {"priority", (guint64)-1000, NULL, 0, NULL},
    {"priority", 1, NULL, BERTH_ERROR_PERMISSION_DENIED, "only operators"},
    {"priority", (guint64)-2000000, NULL, BERTH_ERROR_INVALID_ARGUMENT, "out of range"},
    {"working_directory", 0, "/data", 0, NULL},
    {"working_directory", 0, "data", BERTH_ERROR_INVALID_ARGUMENT, "absolute"},
    {"stdout_path", 0, "/home/a/%j.out", 0, NULL},
    {"stdout_path", 0, "out", BERTH_ERROR_INVALID_ARGUMENT, "standard output"},
    {"stderr_path", 0, "err", BERTH_ERROR_INVALID_ARGUMENT, "standard error"},
};

static void spec_check_each_field_as_said(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        g_autoptr(Berth__JobSpec) spec = good_spec();
        g_autoptr(GError) error = NULL;
        set_field(spec, &fields[i]);
        gboolean is_good = berth_spec_check(spec, &config, FALSE, &error);
        if (fields[i].code == 0) {
            assert_no_error(error);
            assert_true(is_good);
        } else {
            assert_false(is_good);
            assert_berth_error(error, fields[i].code, fields[i].says);
        }
    }
}

static void spec_check_disk_counts_the_image(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__JobSpec) spec = good_spec();
    spec->disk_mib = (64u << 20) - 2;
    assert_true(berth_spec_check_disk(spec, 2u << 20, NULL));
    assert_false(berth_spec_check_disk(spec, (2u << 20) + 1, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "beside 3M of the image");
}

static void spec_check_disk_holds_the_input(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__JobSpec) spec = good_spec();
    Berth__BlobRef blob = BERTH__BLOB_REF__INIT;
    Berth__InputFile input = BERTH__INPUT_FILE__INIT;
    Berth__InputFile *inputs[] = {&input, &input};
    input.blob = &blob;
    blob.size_bytes = 33u << 20;
    spec->disk_mib = 64;
    spec->inputs = inputs;
    spec->n_inputs = 2;
    gboolean fits = berth_spec_check_disk(spec, 2u << 20, NULL);
    gboolean is_refused = !berth_spec_check_disk(spec, 1u << 20, &error);
    spec->inputs = NULL;
    spec->n_inputs = 0;
    assert_true(fits);
    assert_true(is_refused);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "66M together");
    assert_non_null(strstr(error->message, "--disk"));
}

static void spec_check_operator_may_raise_priority(void **state)
{
    g_autoptr(Berth__JobSpec) spec = good_spec();
    spec->priority = 10;
    assert_true(berth_spec_check(spec, &config, TRUE, NULL));
    spec->priority = 1000001;
    assert_false(berth_spec_check(spec, &config, TRUE, NULL));
}

static void spec_check_command_bounded(void **state)
{
    g_autoptr(GError) none = NULL;
    g_autoptr(GError) large = NULL;
    g_autoptr(Berth__JobSpec) spec = good_spec();
    g_autofree char *argument = g_strnfill(1000, 'x');
    berth_message_set_string(&spec->command[1], argument);
    assert_false(berth_spec_check(spec, &config, FALSE, &large));
    assert_berth_error(large, BERTH_ERROR_INVALID_ARGUMENT, "at most 1000");
    berth_message_set_string(&spec->command[0], "");
    assert_false(berth_spec_check(spec, &config, FALSE, &none));
    assert_berth_error(none, BERTH_ERROR_INVALID_ARGUMENT, "no command");
}

static void apply_defaults_fills_what_is_left_out(void **state)
{
    Berth__JobSpec empty = BERTH__JOB_SPEC__INIT;
    g_autoptr(Berth__JobSpec) spec = berth_pb_dup(&empty.base);
    berth_spec_apply_defaults(spec, &config);
    assert_string_equal(spec->image, "debian");
    assert_int_equal(spec->vcpus, 2);
    assert_int_equal(spec->memory_mib, 512);
    assert_int_equal(spec->disk_mib, 1024);
    assert_int_equal(spec->time_limit_sec, 3600);
    assert_int_equal(spec->on_limit, BERTH__ON_LIMIT__ON_LIMIT_FREEZE);
    assert_int_equal(spec->on_timeout, BERTH__ON_TIMEOUT__ON_TIMEOUT_KILL); /* in a directory */
    g_autoptr(Berth__JobSpec) full = good_spec();
    berth_spec_apply_defaults(full, &config);
    assert_string_equal(full->image, "busybox");
    assert_int_equal(full->vcpus, 1);
}

/* --- input files -------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    gboolean is_good;
} NameCase;

static const NameCase names[] = {
    {"a", TRUE},    {"a/b/c.txt", TRUE}, {"..a", TRUE},   {"a b", TRUE}, {"", FALSE},
    {"/a", FALSE},  {"a/", FALSE},       {"a//b", FALSE}, {"..", FALSE}, {"a/../b", FALSE},
    {"./a", FALSE}, {"a\nb", FALSE},     {"\xff", FALSE},
};

static void input_name_check_keeps_below_the_directory(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        gboolean is_good = berth_input_name_check(names[i].name, &error);
        assert_int_equal(is_good, names[i].is_good);
        assert_true(is_good == !error);
    }
}

/* N inputs of SIZE bytes, named by index but the last as NAME if that is given. */
static GError *check_inputs(guint n, guint64 size_bytes, const char *name, guint32 mode,
                            gsize digest_bytes)
{
    static guint8 digest[32];
    GError *error = NULL;
    g_autofree Berth__InputFile *files = g_new0(Berth__InputFile, n);
    g_autofree Berth__BlobRef *blobs = g_new0(Berth__BlobRef, n);
    g_autofree Berth__InputFile **inputs = g_new0(Berth__InputFile *, n);
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < n; i++) {
        berth__input_file__init(&files[i]);
        berth__blob_ref__init(&blobs[i]);
        g_ptr_array_add(texts, i == n - 1 && name ? g_strdup(name) : g_strdup_printf("%u", i));
        blobs[i].size_bytes = size_bytes;
        blobs[i].sha256 = (ProtobufCBinaryData){digest_bytes, digest};
        files[i].name = g_ptr_array_index(texts, i);
        files[i].mode = mode;
        files[i].blob = &blobs[i];
        inputs[i] = &files[i];
    }
    g_autoptr(Berth__JobSpec) spec = good_spec();
    spec->inputs = inputs;
    spec->n_inputs = n;
    berth_spec_check(spec, &config, FALSE, &error);
    spec->inputs = NULL;
    spec->n_inputs = 0;
    return error;
}

static void spec_check_inputs_bounded(void **state)
{
    assert_null(check_inputs(3, 1000, NULL, 0644, 32));
    g_autoptr(GError) many = check_inputs(4, 1000, NULL, 0644, 32);
    assert_berth_error(many, BERTH_ERROR_INVALID_ARGUMENT, "at most 3");
    g_autoptr(GError) large = check_inputs(1, 11 << 20, NULL, 0644, 32);
    assert_berth_error(large, BERTH_ERROR_INVALID_ARGUMENT, "input file \"0\"");
    g_autoptr(GError) together = check_inputs(2, 9 << 20, NULL, 0644, 32);
    assert_berth_error(together, BERTH_ERROR_INVALID_ARGUMENT, "together");
    g_autoptr(GError) twice = check_inputs(2, 1, "0", 0644, 32);
    assert_berth_error(twice, BERTH_ERROR_INVALID_ARGUMENT, "two input files");
    g_autoptr(GError) mode = check_inputs(1, 1, NULL, 04755, 32);
    assert_berth_error(mode, BERTH_ERROR_INVALID_ARGUMENT, "permission bits");
    g_autoptr(GError) digest = check_inputs(1, 1, NULL, 0644, 31);
    assert_berth_error(digest, BERTH_ERROR_INVALID_ARGUMENT, "31 bytes");
}

/* An array of tasks 0 to LAST, or a plain job, with lines for COUNT tasks in a blob of so many bytes (0: in none). */
static GError *check_lines(gboolean is_array, guint32 last, guint32 count, guint64 size_bytes)
{
    static guint8 digest[32];
    GError *error = NULL;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT;
    Berth__IndexRange *ranges[] = {&range};
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__BlobRef blob = BERTH__BLOB_REF__INIT;
    Berth__TaskLines each = BERTH__TASK_LINES__INIT;
    BerthDaemonConfig with_arrays = config;
    with_arrays.array_tasks_max = 100;
    range.last = last;
    array.tasks = ranges;
    array.n_tasks = 1;
    blob.size_bytes = size_bytes;
    blob.sha256 = (ProtobufCBinaryData){sizeof digest, digest};
    each.blob = size_bytes > 0 ? &blob : NULL;
    each.count = count;
    g_autoptr(Berth__JobSpec) spec = good_spec();
    spec->array = is_array ? &array : NULL;
    spec->each = &each;
    g_autoptr(BerthIndexSet) set = NULL;
    if (berth_spec_check(spec, &with_arrays, FALSE, &error) && is_array)
        set = berth_spec_array(spec, &with_arrays, &error);
    spec->array = NULL;
    spec->each = NULL;
    return error;
}

static void spec_check_lines_are_of_the_tasks(void **state)
{
    assert_null(check_lines(TRUE, 9, 10, 88));
    assert_null(check_lines(TRUE, 4, 10, 1000));
    g_autoptr(GError) plain = check_lines(FALSE, 0, 1, 100);
    assert_berth_error(plain, BERTH_ERROR_INVALID_ARGUMENT, "the job is none");
    g_autoptr(GError) beyond = check_lines(TRUE, 10, 10, 1000);
    assert_berth_error(beyond, BERTH_ERROR_INVALID_ARGUMENT,
                       "lines for tasks 0 to 9, and none for task 10");
    g_autoptr(GError) nothing = check_lines(TRUE, 0, 0, 100);
    assert_berth_error(nothing, BERTH_ERROR_INVALID_ARGUMENT, "no content");
    g_autoptr(GError) nowhere = check_lines(TRUE, 0, 1, 0);
    assert_berth_error(nowhere, BERTH_ERROR_INVALID_ARGUMENT, "no content");
    g_autoptr(GError) small = check_lines(TRUE, 9, 10, 87);
    assert_berth_error(small, BERTH_ERROR_INVALID_ARGUMENT, "too little");
    g_autoptr(GError) large = check_lines(TRUE, 9, 10, 11 << 20);
    assert_berth_error(large, BERTH_ERROR_INVALID_ARGUMENT, "the file of lines");
}

static void spec_check_size_bounded(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__JobSpec) spec = good_spec();
    g_autofree char *name = g_strnfill(200, 'n');
    g_autofree char **nodes = g_new(char *, 9000);
    for (guint i = 0; i < 9000; i++) {
        nodes[i] = name;
    }
    spec->nodes = nodes;
    spec->n_nodes = 9000;
    gboolean is_good = berth_spec_check(spec, &config, FALSE, &error);
    spec->nodes = NULL;
    spec->n_nodes = 0;
    assert_false(is_good);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "at most 1048576");
}

/* Small enough for a frame to the node, too large for the node's message to the guest. */
static void spec_check_task_that_no_guest_takes_is_refused(void **state)
{
    BerthDaemonConfig large = config;
    g_autofree char *argument = g_strnfill(600 * 1024, 'a');
    g_autofree char *fitting = g_strnfill(500 * 1024, 'a');
    large.command_max_bytes = 1 << 20;
    for (guint fits = 0; fits < 2; fits++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Berth__JobSpec) spec = good_spec();
        char *own = spec->command[0];
        spec->command[0] = fits ? fitting : argument;
        gboolean is_good = berth_spec_check(spec, &large, FALSE, &error);
        spec->command[0] = own;
        assert_int_equal(is_good, fits);
        if (!fits) {
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "a guest takes");
        }
    }
}

/* --- environment -------------------------------------------------------------------------------- */

typedef struct {
    const char *data;
    gsize length;
    gboolean is_good;
} EnvironmentCase;

static const EnvironmentCase environments[] = {
    {"", 0, TRUE},     {"A=1", 4, TRUE},      {"A=1\0B=", 7, TRUE},
    {"A=1", 3, FALSE}, {"A=1\0B", 6, FALSE},  {"=1", 3, FALSE},
    {"", 1, FALSE},    {"A=1\0\0", 5, FALSE}, {"A=\xff\xfe", 5, TRUE},
    {"1A=3", 5, TRUE}, {"A B=3", 6, TRUE},    {"BASH_FUNC_f%%=() { :; }", 24, TRUE},
};

static void environment_check_entries(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(environments); i++) {
        g_autoptr(GError) error = NULL;
        gboolean is_good = berth_environment_check((const guint8 *)environments[i].data,
                                                   environments[i].length, &error);
        assert_int_equal(is_good, environments[i].is_good);
        assert_true(is_good == !error);
    }
}

/* --- reasons ------------------------------------------------------------------------------------ */

static void why_check_takes_a_line_of_text(void **state)
{
    g_autofree char *longest = g_strnfill(1024, 'y');
    g_autofree char *longer = g_strnfill(1025, 'y');
    const struct {
        const char *why;
        const char *refusal; /* NULL = it is good */
    } cases[] = {
        {"", NULL},
        {"its disk is worn; see ticket 4711", NULL},
        {"\303\251t\303\251", NULL},
        {longest, NULL},
        {longer, "the reason has 1025 bytes; at most 1024 are allowed"},
        {"two\nlines", "the reason has a control character"},
        {"\x1b[2J", "the reason has a control character"},
        {"\xff", "the reason is not valid UTF-8"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_int_equal(berth_why_check(cases[i].why, &error), cases[i].refusal == NULL);
        if (cases[i].refusal)
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].refusal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_check_each_field_as_said),
        cmocka_unit_test(spec_check_disk_counts_the_image),
        cmocka_unit_test(spec_check_disk_holds_the_input),
        cmocka_unit_test(spec_check_operator_may_raise_priority),
        cmocka_unit_test(spec_check_command_bounded),
        cmocka_unit_test(apply_defaults_fills_what_is_left_out),
        cmocka_unit_test(input_name_check_keeps_below_the_directory),
        cmocka_unit_test(spec_check_inputs_bounded),
        cmocka_unit_test(spec_check_lines_are_of_the_tasks),
        cmocka_unit_test(spec_check_size_bounded),
        cmocka_unit_test(spec_check_task_that_no_guest_takes_is_refused),
        cmocka_unit_test(environment_check_entries),
        cmocka_unit_test(why_check_takes_a_line_of_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
