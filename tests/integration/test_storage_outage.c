/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of kind "rbd" whose Ceph cluster hangs, dies or is full. */
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#define MIB ((gsize)1024 * 1024)

static gboolean is_outage(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED);
}

/* One call of each kind; TRUE if it succeeded. */
static gboolean try_check(BerthStorage *storage, GError **error)
{
    return berth_storage_check(storage, error);
}

static gboolean try_log_write(BerthStorage *storage, GError **error)
{
    g_autofree guint8 *data = conformance_pattern(80, MIB);
    return berth_storage_log_write(storage, "o", 0, data, MIB, error);
}

static gboolean try_log_size(BerthStorage *storage, GError **error)
{
    guint64 bytes = 0;
    return berth_storage_log_size(storage, "o", &bytes, error);
}

static gboolean try_log_read(BerthStorage *storage, GError **error)
{
    g_autoptr(GBytes) bytes = berth_storage_log_read(storage, "o", 0, 1, error);
    return bytes != NULL;
}

static gboolean try_log_list(BerthStorage *storage, GError **error)
{
    g_auto(GStrv) names = berth_storage_log_list(storage, error);
    return names != NULL;
}

static gboolean try_blob_read(BerthStorage *storage, GError **error)
{
    const guint8 digest[BERTH_SHA256_BYTES] = {1};
    g_autoptr(GBytes) bytes = berth_storage_blob_read(storage, digest, 0, 1, error);
    return bytes != NULL;
}

static gboolean try_image_create(BerthStorage *storage, GError **error)
{
    g_autoptr(BerthImageWriter) writer = berth_storage_image_create(storage, "o", MIB, error);
    return writer != NULL;
}

static gboolean try_image_list(BerthStorage *storage, GError **error)
{
    g_auto(GStrv) names = berth_storage_image_list(storage, error);
    return names != NULL;
}

static gboolean try_disk_create(BerthStorage *storage, GError **error)
{
    g_autoptr(BerthDiskSource) disk = berth_storage_disk_create(storage, "o", "outage", MIB, error);
    return disk != NULL;
}

static gboolean try_disk_source(BerthStorage *storage, GError **error)
{
    g_autoptr(BerthDiskSource) disk = berth_storage_disk_source(storage, "outage", error);
    return disk != NULL;
}

static gboolean try_disk_remove(BerthStorage *storage, GError **error)
{
    return berth_storage_disk_remove(storage, "outage", error);
}

static gboolean try_fence(BerthStorage *storage, GError **error)
{
    const char *const addresses[] = {"10.255.255.255:0/1", NULL};
    return berth_storage_fence(storage, addresses, error);
}

static gboolean try_open(BerthStorage *storage, GError **error)
{
    g_autoptr(BerthStorage) another = cluster_open(1, error);
    return another != NULL;
}

/* Each kind of call fails, and says that storage is the cause. */
static void assert_all_calls_fail(BerthStorage *storage)
{
    static const struct {
        const char *name;
        gboolean (*call)(BerthStorage *storage, GError **error);
    } calls[] = {
        {"check", try_check},
        {"log_write", try_log_write},
        {"log_size", try_log_size},
        {"log_read", try_log_read},
        {"log_list", try_log_list},
        {"blob_read", try_blob_read},
        {"image_create", try_image_create},
        {"image_list", try_image_list},
        {"disk_create", try_disk_create},
        {"disk_source", try_disk_source},
        {"disk_remove", try_disk_remove},
        {"fence", try_fence},
        {"open", try_open},
    };
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autoptr(GError) error = NULL;
        if (calls[i].call(storage, &error))
            fail_msg("%s succeeded", calls[i].name);
        if (!is_outage(error) || strstr(error->message, "ceph -s") == NULL)
            fail_msg("%s: %s", calls[i].name, error->message);
    }
}

static void storage_in_an_outage_fails_in_time_and_recovers(void **state)
{
    static const struct {
        const char *begin;
        const char *end;
    } outages[] = {{"pause", "resume"}, {"halt", "revive"}};
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = cluster_open(1, &error);
    assert_no_error(error);
    conformance_image(conformance_storage, "outage", MIB, (const guint8 *)"o", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "outage", "outage", MIB, NULL);
    assert_non_null(disk);
    for (guint i = 0; i < G_N_ELEMENTS(outages); i++) {
        cluster_do(outages[i].begin);
        assert_all_calls_fail(storage);
        cluster_do(outages[i].end);
        /* It connects again by itself; the other connection, with its longer deadline, waits. */
        while (!berth_storage_check(storage, &error)) {
            assert_true(is_outage(error));
            g_clear_error(&error);
        }
        berth_storage_check(conformance_storage, &error);
        assert_no_error(error);
    }
    /* The disk may have been removed by a call whose answer did not come. */
    cluster_remove_disk("outage");
    g_strfreev(berth_storage_image_list(conformance_storage, NULL));
    assert_true(berth_storage_log_remove(conformance_storage, "o", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "outage", NULL));
    berth_storage_image_remove(conformance_storage, "o", NULL);
}

static void import_in_an_outage_fails_in_time(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = cluster_open(2, &error);
    assert_no_error(error);
    g_autofree guint8 *data = conformance_pattern(81, 16 * MIB);
    BerthImageWriter *writer = berth_storage_image_create(storage, "cut", 16 * MIB, &error);
    assert_no_error(error);
    cluster_do("pause");
    assert_false(berth_image_writer_write(writer, 0, data, 16 * MIB, &error) &&
                 berth_image_writer_commit(writer, &error));
    assert_true(is_outage(error));
    berth_image_writer_free(writer);
    cluster_do("resume");
    while (!berth_storage_check(storage, NULL))
        continue;
    /* What it could not remove is listed, once Ceph has forgotten its client, and removable. */
    while (!berth_storage_image_remove(conformance_storage, "cut", &error)) {
        if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
            break;
        assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION));
        g_clear_error(&error);
    }
}

static void storage_is_worn_by_an_image_that_timed_out_only(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = cluster_open(1, &error);
    assert_no_error(error);
    conformance_image(conformance_storage, "worn", MIB, (const guint8 *)"o", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "worn", "worn", MIB, NULL);
    assert_non_null(disk);
    cluster_do("pause");
    assert_false(try_log_size(storage, NULL));
    assert_false(berth_storage_is_worn(storage));
    assert_null(berth_storage_image_create(storage, "torn", MIB, NULL));
    assert_true(berth_storage_is_worn(storage));
    cluster_do("resume");
    while (!berth_storage_check(storage, NULL))
        continue;
    assert_true(berth_storage_is_worn(storage)); /* nobody can tell what it left */
    berth_storage_check(conformance_storage, &error);
    assert_no_error(error);
    assert_false(berth_storage_is_worn(conformance_storage));
    cluster_remove_disk("worn");
    assert_true(berth_storage_image_remove(conformance_storage, "worn", NULL));
    while (!berth_storage_image_remove(conformance_storage, "torn", &error) &&
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
        g_clear_error(&error);
}

static void fence_of_its_own_client_is_left_out(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = cluster_open(30, &error);
    assert_no_error(error);
    g_auto(GStrv) own = cluster_clients_of(storage);
    assert_int_equal(g_strv_length(own), 2);
    assert_true(berth_storage_fence(storage, (const char *const *)own, &error));
    assert_true(berth_storage_check(storage, &error));
}

static void full_pool_is_resource_exhausted_and_named(void **state)
{
    g_autoptr(GError) error = NULL;
    conformance_image(conformance_storage, "old", MIB, (const guint8 *)"o", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "old", "old", MIB, NULL);
    assert_non_null(disk);
    g_free(cluster_admin("ceph osd pool set-quota berth max_objects 1"));
    guint8 byte = 0;
    guint64 offset = 0;
    while (berth_storage_log_write(conformance_storage, "full", offset++, &byte, 1, &error))
        continue; /* until the monitor notices, some seconds later */
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "pool berth is full");
    g_clear_error(&error);
    g_autoptr(GError) image = NULL, blob = NULL, check = NULL;
    assert_null(berth_storage_image_create(conformance_storage, "full", MIB, &image));
    assert_berth_error(image, BERTH_ERROR_RESOURCE_EXHAUSTED, "pool berth is full");
    guint8 digest[BERTH_SHA256_BYTES] = {0};
    g_autoptr(BerthBlobWriter) writer =
        berth_storage_blob_create(conformance_storage, digest, 1, NULL);
    assert_false(berth_blob_writer_append(writer, &byte, 1, &blob));
    assert_berth_error(blob, BERTH_ERROR_RESOURCE_EXHAUSTED, "pool berth is full");
    assert_false(berth_storage_check(conformance_storage, &check));
    assert_berth_error(check, BERTH_ERROR_RESOURCE_EXHAUSTED, "ceph df");
    /* What makes room works. */
    berth_storage_disk_remove(conformance_storage, "old", &error);
    assert_no_error(error);
    berth_storage_image_remove(conformance_storage, "old", &error);
    assert_no_error(error);
    berth_storage_log_remove(conformance_storage, "full", &error);
    assert_no_error(error);
    g_free(cluster_admin("ceph osd pool set-quota berth max_objects 0"));
    while (!berth_storage_check(conformance_storage, NULL))
        continue;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage_in_an_outage_fails_in_time_and_recovers),
        cmocka_unit_test(import_in_an_outage_fails_in_time),
        cmocka_unit_test(storage_is_worn_by_an_image_that_timed_out_only),
        cmocka_unit_test(fence_of_its_own_client_is_left_out),
        cmocka_unit_test(full_pool_is_resource_exhausted_and_named),
    };
    return cluster_run("storage_outage", tests, G_N_ELEMENTS(tests));
}
