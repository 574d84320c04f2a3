/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/config.h"
#include "common/log.h"

#include <glib/gstdio.h>

typedef struct {
    char *name;
    char *socket;
    guint port;
    guint64 memory_mib;
    guint timeout_sec;
    gboolean tcg;
    BerthLogLevel level;
    char **labels;
    guint64 plain;
} Settings;

typedef struct {
    char *kind;
} Shared;

static gboolean check_name(const char *value, GError **error)
{
    if (strchr(value, ' ') == NULL)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "a name without spaces");
    return FALSE;
}

static const char *const kinds[] = {"rbd", "dir", NULL};
static const char *const labels[] = {"fast", "big", NULL};

static const BerthConfigOption settings_options[] = {
    {BERTH_CONFIG_MEMBER(Settings, name), .group = "daemon", .key = "name",
     .type = BERTH_CONFIG_STRING, .default_value = "cluster", .check = check_name,
     .doc = "name of the cluster"},
    {BERTH_CONFIG_MEMBER(Settings, socket), .group = "daemon", .key = "socket",
     .type = BERTH_CONFIG_PATH, .default_value = "/run/x.sock", .doc = "socket"},
    {BERTH_CONFIG_MEMBER(Settings, port), .group = "daemon", .key = "port",
     .type = BERTH_CONFIG_UINT, .min = 1, .max = 65535, .default_value = "7440", .doc = "port"},
    {BERTH_CONFIG_MEMBER(Settings, memory_mib), .group = "daemon", .key = "memory",
     .type = BERTH_CONFIG_SIZE_MIB, .min = 64, .max = 1048576, .default_value = "1G",
     .doc = "memory"},
    {BERTH_CONFIG_MEMBER(Settings, timeout_sec), .group = "daemon", .key = "timeout",
     .type = BERTH_CONFIG_DURATION_SEC, .min = 1, .max = 3600, .default_value = "30",
     .doc = "timeout"},
    {BERTH_CONFIG_MEMBER(Settings, tcg), .group = "daemon", .key = "allow_tcg",
     .type = BERTH_CONFIG_BOOL, .default_value = "false", .doc = "tcg"},
    {BERTH_CONFIG_MEMBER(Settings, level), .group = "log", .key = "level",
     .type = BERTH_CONFIG_ENUM, .values = berth_log_level_names, .default_value = "info",
     .doc = "level"},
    {BERTH_CONFIG_MEMBER(Settings, labels), .group = "daemon", .key = "labels",
     .type = BERTH_CONFIG_STRING_LIST, .values = labels, .doc = "labels"},
    {BERTH_CONFIG_MEMBER(Settings, plain), .group = "daemon", .key = "plain",
     .type = BERTH_CONFIG_UINT, .doc = "any number"},
};
static const BerthConfigOption shared_options[] = {
    {BERTH_CONFIG_MEMBER(Shared, kind), .group = "storage", .key = "kind",
     .type = BERTH_CONFIG_STRING, .values = kinds, .required = TRUE, .doc = "rbd or dir"},
};

typedef struct {
    Settings settings;
    Shared shared;
    BerthConfigTable tables[3];
} Fixture;

static int setup(void **state)
{
    Fixture *fixture = g_new0(Fixture, 1);
    fixture->tables[0] =
        (BerthConfigTable){settings_options, G_N_ELEMENTS(settings_options), &fixture->settings};
    fixture->tables[1] =
        (BerthConfigTable){shared_options, G_N_ELEMENTS(shared_options), &fixture->shared};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    berth_config_clear(fixture->tables);
    g_free(fixture);
    return 0;
}

static gboolean load(Fixture *fixture, const char *text, GError **error)
{
    return berth_config_load_data(text, strlen(text), "test.conf", "test.conf(5)", fixture->tables,
                                  error);
}

static void load_only_required_gives_defaults(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    load(fixture, "[storage]\nkind=dir\n", &error);
    assert_no_error(error);
    assert_string_equal(fixture->settings.name, "cluster");
    assert_string_equal(fixture->settings.socket, "/run/x.sock");
    assert_int_equal(fixture->settings.port, 7440);
    assert_int_equal(fixture->settings.memory_mib, 1024);
    assert_int_equal(fixture->settings.timeout_sec, 30);
    assert_false(fixture->settings.tcg);
    assert_int_equal(fixture->settings.level, BERTH_LOG_INFO);
    assert_null(fixture->settings.labels);
    assert_int_equal(fixture->settings.plain, 0);
    assert_string_equal(fixture->shared.kind, "dir");
}

static void load_full_file_fills_both_targets(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    load(fixture,
         "# a comment\n"
         "\n"
         "[daemon]\n"
         "name = vega\n"
         "socket=/tmp/a b.sock\r\n"
         "  port=1  \n"
         "memory=1.5G\n"
         "timeout=5m\n"
         "allow_tcg=yes\n"
         "labels= fast ; big;\n"
         "plain=18446744073709551615\n"
         "[storage]\n"
         "kind=rbd\n"
         "[log]\n"
         "level=debug\n",
         &error);
    assert_no_error(error);
    assert_string_equal(fixture->settings.name, "vega");
    assert_string_equal(fixture->settings.socket, "/tmp/a b.sock");
    assert_int_equal(fixture->settings.port, 1);
    assert_int_equal(fixture->settings.memory_mib, 1536);
    assert_int_equal(fixture->settings.timeout_sec, 300);
    assert_true(fixture->settings.tcg);
    assert_int_equal(fixture->settings.level, BERTH_LOG_DEBUG);
    assert_int_equal(g_strv_length(fixture->settings.labels), 2);
    assert_string_equal(fixture->settings.labels[1], "big");
    assert_true(fixture->settings.plain == G_MAXUINT64);
    assert_string_equal(fixture->shared.kind, "rbd");
}

static void load_bad_text_names_line_and_allowed(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"[daemn]\n", "test.conf:1: [daemn]: unknown group; allowed: daemon, log, storage"},
        {"\n[log]\nlevle=info\n", "test.conf:3: [log] levle: unknown key; allowed: level"},
        {"[daemon\n", "test.conf:1: the line \"[daemon\" begins a group"},
        {"port=1\n", "test.conf:1: \"port=1\" stands before the first [group]"},
        {"[daemon]\nport\n", "test.conf:2: \"port\" is neither a [group]"},
        {"[daemon]\nport=1\n#\nport=2\n", "test.conf:4: [daemon] port: already set in line 2"},
        {"[daemon]\nport[de]=1\n", "test.conf:2: [daemon] port[de]: unknown key"},
        {"[daemon]\nport=0\n",
         "test.conf:2: [daemon] port: \"0\" is not allowed; allowed: a number from 1 to 65535"},
        {"[daemon]\nport=65536\n", "a number from 1 to 65535"},
        {"[daemon]\nport=\n", "test.conf:2: [daemon] port: \"\" is not allowed"},
        {"[daemon]\nmemory=63\n", "allowed: a size from 64M to 1T"},
        {"[daemon]\nmemory=-1\n", "allowed: a size from 64M to 1T"},
        {"[daemon]\ntimeout=2h\n", "allowed: a duration from 1s to 3600s"},
        {"[daemon]\nallow_tcg=maybe\n", "allowed: true, false, yes, no"},
        {"[daemon]\nsocket=run/x\n", "allowed: an absolute path"},
        {"[daemon]\nname=a b\n", "allowed: a name without spaces"},
        {"[daemon]\nname=a\\q\n", "test.conf:2: [daemon] name:"},
        {"[daemon]\nlabels=fast;slow\n", "\"slow\" is not allowed; allowed: fast, big"},
        {"[log]\nlevel=loud\n", "allowed: error, warning, notice, info, debug"},
        {"[storage]\nkind=nfs\n", "test.conf:2: [storage] kind: \"nfs\" is not allowed; allowed: "
                                  "rbd, dir; see test.conf(5)"},
        {"[log]\n", "test.conf: [storage] kind: the key is missing; allowed: rbd or dir"},
        {"", "test.conf: [storage] kind: the key is missing"},
        {"[storage]\n=x\n", "test.conf:2: [storage] : unknown key"},
        {"\xff\xfe", "is not UTF-8 text"},
    };
    Fixture *fixture = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(load(fixture, cases[i].text, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].message);
        assert_null(fixture->settings.name);
        assert_int_equal(fixture->settings.port, 0);
    }
}

static void load_embedded_nul_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    Fixture *fixture = *state;
    assert_false(berth_config_load_data("[log]\0", 6, "f", "f(5)", fixture->tables, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "not UTF-8");
}

static void load_huge_file_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strnfill((1 << 20) + 1, '#');
    assert_false(load(*state, text, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "larger than 1 MiB");
}

static void load_missing_file_says_what_to_do(void **state)
{
    g_autoptr(GError) error = NULL;
    Fixture *fixture = *state;
    assert_false(berth_config_load("/nonexistent/b.conf", "b.conf(5)", fixture->tables, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "/nonexistent/b.conf");
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "--config (see b.conf(5))");
}

static void load_directory_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    Fixture *fixture = *state;
    assert_false(berth_config_load("/", "b.conf(5)", fixture->tables, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "cannot read the configuration");
}

static char *write_temp(const char *text)
{
    char *path = NULL;
    int fd = g_file_open_tmp("berth-config-XXXXXX", &path, NULL);
    assert_true(fd >= 0);
    g_close(fd, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void load_file_on_disk_is_read(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_temp("[storage]\nkind=dir\n[daemon]\nport=99\n");
    berth_config_load(path, "b.conf(5)", fixture->tables, &error);
    g_unlink(path);
    assert_no_error(error);
    assert_int_equal(fixture->settings.port, 99);
}

static void check_manual_complete_page_passes(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_temp(".SH \"[log]\"\n.TP\n.B level\nHow much.\n"
                                       ".SH [storage]\n.TP\n\\fBkind\\fR=\\fIrbd\\fR\nWhere.\n");
    gboolean ok = berth_config_check_manual(path, shared_options, 1, &error) &&
                  berth_config_check_manual(path, &settings_options[6], 1, &error);
    g_unlink(path);
    assert_no_error(error);
    assert_true(ok);
}

static void check_manual_missing_keys_are_listed(void **state)
{
    g_autoptr(GError) error = NULL;
    /* "porter" is not "port", and the key is looked for in its own group only. */
    g_autofree char *path =
        write_temp(".SH [daemon]\n.B name\n.B porter\n.B socket\n.SH [log]\n.B port\n");
    gboolean ok = berth_config_check_manual(path, settings_options, 3, &error);
    g_unlink(path);
    assert_false(ok);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "does not document [daemon] port");
    assert_null(strstr(error->message, "socket"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(load_only_required_gives_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(load_full_file_fills_both_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(load_bad_text_names_line_and_allowed, setup, teardown),
        cmocka_unit_test_setup_teardown(load_embedded_nul_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(load_huge_file_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(load_missing_file_says_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(load_directory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(load_file_on_disk_is_read, setup, teardown),
        cmocka_unit_test(check_manual_complete_page_passes),
        cmocka_unit_test(check_manual_missing_keys_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
