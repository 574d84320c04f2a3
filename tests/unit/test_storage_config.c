/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "storage/storage_config.h"

static gboolean load(const char *text, BerthStorageConfig *config, GError **error)
{
    BerthConfigTable tables[] = {berth_storage_config_table(config), {NULL}};
    return berth_config_load_data(text, strlen(text), "test.conf", "berthd.conf(5)", tables,
                                  error) &&
           berth_storage_config_check(config, "test.conf", error);
}

static void clear(BerthStorageConfig *config)
{
    BerthConfigTable tables[] = {berth_storage_config_table(config), {NULL}};
    berth_config_clear(tables);
}

static void load_of_rbd_fills_defaults(void **state)
{
    BerthStorageConfig config = {0};
    g_autoptr(GError) error = NULL;
    assert_true(load("[storage]\nkind=rbd\n", &config, &error));
    assert_no_error(error);
    assert_string_equal(config.kind, "rbd");
    assert_string_equal(config.ceph_conf, "/etc/ceph/ceph.conf");
    assert_string_equal(config.ceph_user, "berth");
    assert_string_equal(config.ceph_live_user, "berth-live");
    assert_string_equal(config.pool, "berth");
    assert_null(config.keyring);
    assert_null(config.secret_uuid);
    assert_int_equal(config.op_timeout_sec, 30);
    clear(&config);
}

static void load_of_all_keys_fills_all_members(void **state)
{
    BerthStorageConfig config = {0};
    g_autoptr(GError) error = NULL;
    assert_true(load(
        "[storage]\nkind=rbd\nceph_conf=/c\nceph_user=u\nceph_live_user=l\nkeyring=/k\npool=p\n"
        "secret_uuid=9bdfd2fa-6f4a-4a52-bb29-1de27c25a4d9\nop_timeout_sec=600\n",
        &config, &error));
    assert_string_equal(config.ceph_conf, "/c");
    assert_string_equal(config.ceph_user, "u");
    assert_string_equal(config.ceph_live_user, "l");
    assert_string_equal(config.keyring, "/k");
    assert_string_equal(config.pool, "p");
    assert_string_equal(config.secret_uuid, "9bdfd2fa-6f4a-4a52-bb29-1de27c25a4d9");
    assert_int_equal(config.op_timeout_sec, 600);
    clear(&config);
    assert_true(load("[storage]\nkind=dir\npath=/srv/berth\n", &config, &error));
    assert_string_equal(config.path, "/srv/berth");
    clear(&config);
}

static void load_of_bad_values_is_invalid_argument(void **state)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"[storage]\npool=p\n", "kind"},
        {"[storage]\nkind=tape\n", "rbd"},
        {"[storage]\nkind=dir\n", "needs a path"},
        {"[storage]\nkind=dir\npath=relative\n", "path"},
        {"[storage]\nkind=rbd\npath=/srv\n", "of no use with kind=rbd"},
        {"[storage]\nkind=dir\npath=/s\nkeyring=/k\n", "keyring is of no use with kind=dir"},
        {"[storage]\nkind=rbd\nceph_user=client.berth\n", "without \"client.\""},
        {"[storage]\nkind=rbd\nceph_user=a b\n", "ceph_user"},
        {"[storage]\nkind=rbd\nceph_live_user=client.l\n", "ceph_live_user"},
        {"[storage]\nkind=rbd\nceph_live_user=berth\n", "must be another"},
        {"[storage]\nkind=rbd\npool=a/b\n", "pool"},
        {"[storage]\nkind=rbd\nsecret_uuid=123\n", "virsh secret-list"},
        {"[storage]\nkind=rbd\nop_timeout_sec=0\n", "op_timeout_sec"},
        {"[storage]\nkind=rbd\nop_timeout_sec=601\n", "600"},
        {"[storage]\nkind=rbd\npools=a\n", "pools"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthStorageConfig config = {0};
        g_autoptr(GError) error = NULL;
        assert_false(load(cases[i].text, &config, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].expected);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "test.conf");
        clear(&config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_of_rbd_fills_defaults),
        cmocka_unit_test(load_of_all_keys_fills_all_members),
        cmocka_unit_test(load_of_bad_values_is_invalid_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
