/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of storage of kind "rbd" against a real Ceph cluster. */
#include "storage/rbd_internal.h"
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#define MIB         ((gsize)1024 * 1024)
#define DISK_BYTES  (16 * MIB)
#define SPACE_BYTES (64 * MIB)
#define LEAKS       8u

/* --- disks and what is on them --------------------------------------------------------------- */

static rados_ioctx_t images_of(BerthStorage *storage)
{
    return ((BerthRbdStorage *)storage)->images;
}

static rbd_image_t open_disk(BerthStorage *storage, const char *disk_id)
{
    g_autofree char *name = g_strconcat("disk-", disk_id, NULL);
    rbd_image_t disk = NULL;
    assert_int_equal(rbd_open(images_of(storage), name, &disk, NULL), 0);
    return disk;
}

/* A disk of that name, on an image with which it begins; the first byte of each says which it is. */
static void make_disk(const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    conformance_image(conformance_storage, "golden", DISK_BYTES, (const guint8 *)"g", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, disk_id, "golden", DISK_BYTES, &error);
    assert_no_error(error);
}

static void drop_image(void)
{
    assert_true(berth_storage_image_remove(conformance_storage, "golden", NULL));
}

static int write_on(rbd_image_t disk, char byte, guint64 offset)
{
    return (int)MIN(rbd_write(disk, offset, 1, &byte), 0);
}

static void write_disk(const char *disk_id, char byte, guint64 offset)
{
    rbd_image_t disk = open_disk(conformance_storage, disk_id);
    assert_int_equal(write_on(disk, byte, offset), 0);
    assert_int_equal(rbd_close(disk), 0);
}

static char read_disk(const char *disk_id, guint64 offset)
{
    char byte = '?';
    rbd_image_t disk = open_disk(conformance_storage, disk_id);
    assert_int_equal(rbd_read(disk, offset, 1, &byte), 1);
    assert_int_equal(rbd_close(disk), 0);
    return byte;
}

static gboolean has_disk(const char *disk_id)
{
    g_auto(GStrv) disks = berth_storage_disk_list(conformance_storage, NULL);
    return g_strv_contains((const char *const *)disks, disk_id);
}

static int compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All that is in the pool, but for the records that RBD keeps of the pool itself. */
static char *list_pool(void)
{
    g_autofree char *text = cluster_admin("rados -p berth ls");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    for (guint i = 0; lines[i] != NULL; i++) {
        if (g_regex_match_simple("^rbd_(data|header|id|object_map)", lines[i], 0, 0))
            g_ptr_array_add(kept, lines[i]);
    }
    g_ptr_array_sort(kept, compare_lines);
    g_ptr_array_add(kept, NULL);
    return g_strjoinv("\n", (char **)kept->pdata);
}

/* Waits for that: Ceph removes what only snapshots had when it finds the time. */
static void assert_pool(const char *expected)
{
    gint64 deadline = g_get_monotonic_time() + 120 * G_USEC_PER_SEC;
    g_autofree char *has = list_pool();
    while (!g_str_equal(has, expected) && g_get_monotonic_time() < deadline) {
        g_usleep(G_USEC_PER_SEC / 2);
        g_free(has);
        has = list_pool();
    }
    assert_string_equal(has, expected);
}

/* --- checkpoints ----------------------------------------------------------------------------- */

static BerthCheckpointWriter *begin(const char *checkpoint_id, const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    BerthCheckpointWriter *writer = berth_storage_checkpoint_create(
        conformance_storage, checkpoint_id, disk_id, NULL, SPACE_BYTES, &error);
    assert_no_error(error);
    return writer;
}

static void append(BerthCheckpointWriter *writer, const guint8 *data, gsize length)
{
    g_autoptr(GError) error = NULL;
    for (gsize done = 0, part; done < length; done += part) {
        part = MIN(length - done, 999999); /* pieces that fit nothing */
        assert_true(berth_checkpoint_writer_append(writer, data + done, part, &error));
        assert_no_error(error);
    }
}

static void commit(BerthCheckpointWriter *writer, const char *record)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new_static(record, strlen(record));
    assert_true(berth_checkpoint_writer_finish(writer, "HEAD", 4, &error));
    assert_true(berth_checkpoint_writer_snapshot(writer, &error));
    assert_true(berth_checkpoint_writer_commit(writer, bytes, &error));
    assert_no_error(error);
}

static void take(const char *checkpoint_id, const char *disk_id, gsize bytes)
{
    g_autofree guint8 *data = conformance_pattern(7, bytes);
    g_autoptr(BerthCheckpointWriter) writer = begin(checkpoint_id, disk_id);
    append(writer, data, bytes);
    commit(writer, checkpoint_id);
}

static void restore(const char *checkpoint_id, const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *image = g_strconcat("disk-", disk_id, NULL);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_checkpoint_restore_disk(conformance_storage, checkpoint_id, disk_id, &error);
    assert_no_error(error);
    assert_string_equal(disk->rbd_image, image);
}

static void assert_no_restore(const char *checkpoint_id, BerthErrorCode code, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDiskSource) disk =
        berth_storage_checkpoint_restore_disk(conformance_storage, checkpoint_id, "other", &error);
    assert_null(disk);
    assert_berth_error(error, code, text);
    g_clear_error(&error);
    assert_null(berth_storage_checkpoint_read(conformance_storage, checkpoint_id, &error));
    assert_berth_error(error, code, text);
    g_clear_error(&error);
    assert_null(berth_storage_checkpoint_open(conformance_storage, checkpoint_id, &error));
    assert_berth_error(error, code, text);
}

/* Whether the list has just the NULL-terminated names of WANTED. */
static gboolean has_just(const char *const *wanted)
{
    g_auto(GStrv) has = berth_storage_checkpoint_list(conformance_storage, NULL);
    return g_strv_equal((const char *const *)has, wanted);
}

static const char *const none[] = {NULL};

static void remove_checkpoint(const char *checkpoint_id)
{
    g_autoptr(GError) error = NULL;
    assert_true(
        berth_storage_checkpoint_remove(conformance_storage, checkpoint_id, NULL, FALSE, &error));
    assert_no_error(error);
}

static void memory_is_read_as_it_was_written(void **state)
{
    static const gsize sizes[] = {4, 3 * MIB, 4 * MIB, 47 * MIB + 1};
    make_disk("m");
    for (guint i = 0; i < G_N_ELEMENTS(sizes); i++) {
        take("c", "m", sizes[i]);
        g_autofree guint8 *expected = conformance_pattern(7, sizes[i]);
        memcpy(expected, "HEAD", 4);
        g_autoptr(BerthCheckpointReader) reader =
            berth_storage_checkpoint_open(conformance_storage, "c", NULL);
        g_autoptr(GByteArray) all = g_byte_array_new();
        for (gsize length = 1; length > 0;) {
            g_autoptr(GBytes) piece = berth_checkpoint_reader_next(reader, NULL);
            assert_non_null(piece);
            const guint8 *data = g_bytes_get_data(piece, &length);
            g_byte_array_append(all, data, (guint)length);
        }
        assert_true(all->len >= sizes[i]);
        assert_memory_equal(all->data, expected, sizes[i]);
        guint64 memory = 0, disk = 1;
        assert_true(berth_storage_checkpoint_used(conformance_storage, "c", &memory, &disk, NULL));
        assert_int_equal(memory, (sizes[i] + 4 * MIB - 1) / (4 * MIB) * 4 * MIB);
        assert_int_equal(disk, 0);
        g_autoptr(GBytes) record = berth_storage_checkpoint_read(conformance_storage, "c", NULL);
        assert_int_equal(g_bytes_get_size(record), 1);
        g_clear_pointer(&reader, berth_checkpoint_reader_free);
        remove_checkpoint("c");
    }
    assert_true(berth_storage_disk_remove(conformance_storage, "m", NULL));
    drop_image();
}

/* To and fro between instants, under a new name each time; nothing becomes deeper. */
static void disk_is_put_back_to_any_of_its_checkpoints(void **state)
{
    make_disk("d-1");
    write_disk("d-1", 'a', 0);
    take("a", "d-1", MIB);
    write_disk("d-1", 'b', 0);
    write_disk("d-1", 'b', 9 * MIB);
    take("b", "d-1", MIB);
    write_disk("d-1", 'x', 0);
    static const struct {
        const char *checkpoint, *disk, *before;
        char first, other;
    } cases[] = {
        {"a", "d-2", "d-1", 'a', '\0'},
        {"b", "d-3", "d-2", 'b', 'b'},
        {"a", "d-4", "d-3", 'a', '\0'},
        {"a", "d-4", "d-3", 'a', '\0'}, /* asked for again */
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        restore(cases[i].checkpoint, cases[i].disk);
        assert_false(has_disk(cases[i].before));
        assert_int_equal(read_disk(cases[i].disk, 0), cases[i].first);
        assert_int_equal(read_disk(cases[i].disk, 9 * MIB), cases[i].other);
        write_disk(cases[i].disk, 'y', 0);
    }
    g_autofree char *info = cluster_admin("rbd info berth/disk-d-4");
    assert_non_null(strstr(info, "parent: berth/img-golden@berth"));
    guint64 memory = 0, disk = 0;
    assert_true(berth_storage_checkpoint_used(conformance_storage, "b", &memory, &disk, NULL));
    assert_int_equal(disk, 8 * MIB); /* two objects since "a" */
    remove_checkpoint("a");
    remove_checkpoint("b");
    assert_true(berth_storage_disk_remove(conformance_storage, "d-4", NULL));
    drop_image();
}

static void restore_under_a_name_that_is_taken_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("n-1");
    g_autoptr(BerthDiskSource) other =
        berth_storage_disk_create(conformance_storage, "n-2", "golden", DISK_BYTES, NULL);
    take("n", "n-1", MIB);
    assert_null(berth_storage_checkpoint_restore_disk(conformance_storage, "n", "n-2", &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "n-2");
    assert_true(has_disk("n-1"));
    assert_true(berth_storage_disk_remove_with_checkpoints(conformance_storage, "n-1", NULL));
    assert_true(berth_storage_disk_remove(conformance_storage, "n-2", NULL));
    drop_image();
}

/* What each step of a writer that died has left. */
static void torn_checkpoint_is_never_read_and_goes(void **state)
{
    static const char *const only[] = {"t", NULL};
    make_disk("t");
    assert_no_restore("t", BERTH_ERROR_NOT_FOUND, "no checkpoint");
    for (guint step = 0; step < 4; step++) {
        g_autofree char *empty = list_pool();
        if (step < 2)
            g_free(cluster_admin("rbd create berth/ckpt-t --size 8"));
        if (step == 1) {
            char id[64];
            rbd_image_t disk = open_disk(conformance_storage, "t");
            assert_int_equal(rbd_get_id(disk, id, sizeof id), 0);
            rbd_close(disk);
            g_free(cluster_admin("rbd image-meta set berth/ckpt-t berth.disk %s", id));
            g_free(cluster_admin("rbd snap create berth/disk-t@ckpt-t"));
        }
        if (step >= 2) {
            take("t", "t", 5 * MIB);
            g_free(cluster_admin("rbd image-meta remove berth/ckpt-t berth.committed"));
        }
        if (step == 3)
            g_free(cluster_admin("rbd snap rm berth/disk-t@ckpt-t"));
        assert_true(has_just(only));
        assert_no_restore("t", BERTH_ERROR_FAILED_PRECONDITION, "torn");
        guint64 memory = 0, disk = 0;
        assert_true(berth_storage_checkpoint_used(conformance_storage, "t", &memory, &disk, NULL));
        assert_int_equal(memory, step >= 2 ? 8 * MIB : 0);
        if (step % 2 == 0)
            take("t", "t", MIB); /* made anew */
        remove_checkpoint("t");
        assert_pool(empty);
    }
    assert_true(berth_storage_disk_remove(conformance_storage, "t", NULL));
    drop_image();
}

static void checkpoint_that_is_given_up_leaves_nothing(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("g");
    g_autofree char *empty = list_pool();
    for (guint step = 0; step < 3; step++) {
        g_autofree guint8 *data = conformance_pattern(1, 6 * MIB);
        BerthCheckpointWriter *writer = begin("g", "g");
        append(writer, data, 6 * MIB);
        if (step >= 1)
            assert_true(berth_checkpoint_writer_finish(writer, "H", 1, &error));
        if (step >= 2)
            assert_true(berth_checkpoint_writer_snapshot(writer, &error));
        assert_no_error(error);
        assert_false(
            berth_storage_checkpoint_remove(conformance_storage, "g", NULL, FALSE, &error));
        assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "being written");
        g_clear_error(&error);
        berth_checkpoint_writer_free(writer);
        assert_pool(empty);
    }
    assert_true(berth_storage_disk_remove(conformance_storage, "g", NULL));
    drop_image();
}

static void memory_beyond_its_space_is_refused(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *data = conformance_pattern(1, SPACE_BYTES);
    make_disk("s");
    BerthCheckpointWriter *writer = begin("s", "s");
    append(writer, data, SPACE_BYTES);
    assert_false(berth_checkpoint_writer_append(writer, data, 1, &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "reserved");
    berth_checkpoint_writer_free(writer);
    assert_true(has_just(none));
    assert_true(berth_storage_disk_remove(conformance_storage, "s", NULL));
    drop_image();
}

static void create_says_what_is_wrong(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("w");
    take("w", "w", MIB);
    assert_null(
        berth_storage_checkpoint_create(conformance_storage, "w", "w", NULL, SPACE_BYTES, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "committed");
    g_clear_error(&error);
    assert_null(berth_storage_checkpoint_create(conformance_storage, "v", "nobody", NULL,
                                                SPACE_BYTES, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "nobody");
    g_clear_error(&error);
    assert_null(berth_storage_checkpoint_create(conformance_storage, "../w", "w", NULL, SPACE_BYTES,
                                                &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "../w");
    g_clear_error(&error);
    assert_true(berth_storage_disk_remove_with_checkpoints(conformance_storage, "w", &error));
    assert_no_error(error);
    drop_image();
}

static void disk_with_checkpoints_is_removed_only_with_them(void **state)
{
    static const char *const both[] = {"k-1", "k-2", NULL};
    g_autoptr(GError) error = NULL;
    make_disk("k");
    g_autofree char *empty = list_pool();
    take("k-1", "k", MIB);
    take("k-2", "k", MIB);
    assert_false(berth_storage_disk_remove(conformance_storage, "k", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "k-");
    g_clear_error(&error);
    assert_true(has_just(both));
    cluster_leave_dead_watch("k");
    assert_false(berth_storage_disk_remove_with_checkpoints(conformance_storage, "k", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    g_clear_error(&error);
    assert_true(has_just(both));
    assert_no_restore("nothing", BERTH_ERROR_NOT_FOUND, "no checkpoint");
    assert_null(berth_storage_checkpoint_restore_disk(conformance_storage, "k-1", "k", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    g_clear_error(&error);
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "k", NULL);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, NULL));
    restore("k-1", "k");
    assert_true(berth_storage_disk_remove_with_checkpoints(conformance_storage, "k", &error));
    assert_no_error(error);
    assert_true(has_just(none));
    assert_false(has_disk("k"));
    drop_image();
}

/* A client that had the disk open, and was fenced, writes nothing to what is restored. */
static void fenced_client_does_not_write_what_is_restored(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("f-1");
    BerthStorage *victim = cluster_open(30, &error);
    assert_no_error(error);
    rbd_image_t disk = open_disk(victim, "f-1");
    assert_int_equal(write_on(disk, '1', 0), 0);
    take("f", "f-1", MIB); /* under its eyes, as a guest's disk is */
    assert_int_equal(write_on(disk, '2', 0), 0);
    g_auto(GStrv) clients = cluster_clients_of(victim);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
    assert_no_error(error);
    restore("f", "f-2");
    assert_true(write_on(disk, '3', 0) < 0);
    assert_int_equal(read_disk("f-2", 0), '1');
    rbd_close(disk);
    berth_storage_free(victim);
    assert_true(berth_storage_disk_remove_with_checkpoints(conformance_storage, "f-2", &error));
    assert_no_error(error);
    drop_image();
}

static void many_checkpoints_that_are_removed_leave_nothing(void **state)
{
    make_disk("l-0");
    g_autofree char *empty = list_pool();
    for (guint i = 0; i < LEAKS; i++) {
        g_autofree char *checkpoint = g_strdup_printf("l-%u", i);
        g_autofree char *before = g_strdup_printf("l-%u", i == 0 ? 0 : i - 1);
        take(checkpoint, "l-0", 5 * MIB);
        if (i > 0)
            remove_checkpoint(before);
        restore(checkpoint, "l-0");
    }
    g_autofree char *last = g_strdup_printf("l-%u", LEAKS - 1);
    remove_checkpoint(last);
    remove_checkpoint(last); /* again */
    assert_pool(empty);
    assert_true(berth_storage_disk_remove(conformance_storage, "l-0", NULL));
    drop_image();
    assert_pool("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_read_as_it_was_written),
        cmocka_unit_test(disk_is_put_back_to_any_of_its_checkpoints),
        cmocka_unit_test(restore_under_a_name_that_is_taken_is_refused),
        cmocka_unit_test(torn_checkpoint_is_never_read_and_goes),
        cmocka_unit_test(checkpoint_that_is_given_up_leaves_nothing),
        cmocka_unit_test(memory_beyond_its_space_is_refused),
        cmocka_unit_test(create_says_what_is_wrong),
        cmocka_unit_test(disk_with_checkpoints_is_removed_only_with_them),
        cmocka_unit_test(fenced_client_does_not_write_what_is_restored),
        cmocka_unit_test(many_checkpoints_that_are_removed_leave_nothing),
    };
    return cluster_run("storage_checkpoint", tests, G_N_ELEMENTS(tests));
}
