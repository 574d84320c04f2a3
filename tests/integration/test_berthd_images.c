/* SPDX-License-Identifier: Apache-2.0 */
/* Images and garbage, through a real berthd. */
#include "tests/lib/berthd_test.h"

#include "common/id.h"
#include "scheduler/daemon/pb.h"

static const ProtobufCServiceDescriptor *const images = &berth__images__descriptor;

static char *begin(BerthRpcPeer *peer, const char *name, guint64 size_bytes)
{
    g_autoptr(GError) error = NULL;
    Berth__ImportBeginRequest request = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    request.name = (char *)name;
    request.size_bytes = size_bytes;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, images, "ImportBegin", &request.base, 30000, &error);
    assert_no_error(error);
    return g_strdup(((Berth__ImportBeginReply *)reply)->import_id);
}

static GError *begin_error(BerthdTest *test, const char *name, guint64 size_bytes)
{
    Berth__ImportBeginRequest request = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    request.name = (char *)name;
    request.size_bytes = size_bytes;
    return berthd_fixture_call_error(test->berthd, images, "ImportBegin", &request.base);
}

static GError *remove_error(BerthdTest *test, const char *name)
{
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)name;
    return berthd_fixture_call_error(test->berthd, images, "Remove", &request.base);
}

static guint n_stored_images(BerthdTest *test)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_storage_image_list(berthd_fixture_storage(test->berthd), &error);
    assert_no_error(error);
    return g_strv_length(names);
}

static void import_streams_and_survives_restart(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *id = begin(berthd_fixture_client(test->berthd), "mine", 4u << 20);
    guint8 piece[4096] = {1, 2, 3};
    for (guint i = 0; i < 8; i++) {
        Berth__ImportWriteRequest request = BERTH__IMPORT_WRITE_REQUEST__INIT;
        request.import_id = id;
        request.offset = (guint64)(7 - i) * sizeof piece;
        request.data = (ProtobufCBinaryData){sizeof piece, piece};
        g_autoptr(ProtobufCMessage) reply =
            berthd_fixture_call(test->berthd, images, "ImportWrite", &request.base);
    }
    Berth__ImportCommitRequest commit = BERTH__IMPORT_COMMIT_REQUEST__INIT;
    commit.import_id = id;
    g_autoptr(ProtobufCMessage) image =
        berthd_fixture_call(test->berthd, images, "ImportCommit", &commit.base);
    assert_int_equal(((Berth__Image *)image)->size_bytes, 4u << 20);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    Berth__GetImageRequest get = BERTH__GET_IMAGE_REQUEST__INIT;
    get.name = (char *)"mine";
    g_autoptr(ProtobufCMessage) again = berthd_fixture_call(test->berthd, images, "Get", &get.base);
    assert_string_equal(((Berth__Image *)again)->id, ((Berth__Image *)image)->id);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.image = (char *)"mine";
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_string_equal(fake_agent_start(test->agent, job)->image_id, ((Berth__Image *)image)->id);
}

static void import_wrong_is_refused(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) name = begin_error(test, "../etc", 1u << 20);
    assert_berth_error(name, BERTH_ERROR_INVALID_ARGUMENT, "../etc");
    g_autoptr(GError) taken = begin_error(test, "tiny", 1u << 20);
    assert_berth_error(taken, BERTH_ERROR_ALREADY_EXISTS, "tiny");
    g_autoptr(GError) large = begin_error(test, "large", G_GUINT64_CONSTANT(1) << 60);
    assert_berth_error(large, BERTH_ERROR_INVALID_ARGUMENT, "image_max");
    g_autofree char *id = begin(berthd_fixture_client(test->berthd), "mine", 1u << 20);
    g_autoptr(GError) twice = begin_error(test, "mine", 1u << 20);
    assert_berth_error(twice, BERTH_ERROR_ALREADY_EXISTS, "being imported");
    guint8 byte = 1;
    Berth__ImportWriteRequest outside = BERTH__IMPORT_WRITE_REQUEST__INIT;
    outside.import_id = id;
    outside.offset = 1u << 20;
    outside.data = (ProtobufCBinaryData){1, &byte};
    g_autoptr(GError) beyond =
        berthd_fixture_call_error(test->berthd, images, "ImportWrite", &outside.base);
    assert_berth_error(beyond, BERTH_ERROR_INVALID_ARGUMENT, "does not belong");
}

/* NULL: refused. */
static char *try_begin(BerthRpcPeer *peer, const char *name)
{
    Berth__ImportBeginRequest request = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    request.name = (char *)name;
    request.size_bytes = 1u << 20;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, images, "ImportBegin", &request.base, 30000, NULL);
    return reply ? g_strdup(((Berth__ImportBeginReply *)reply)->import_id) : NULL;
}

static void import_of_closed_connection_is_aborted(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) error = NULL;
    BerthRpcPeer *peer = berth_rpc_connect_unix(berthd_fixture_socket(test->berthd), NULL, &error);
    assert_no_error(error);
    g_autofree char *id = begin(peer, "mine", 1u << 20);
    Berth__ImportCommitRequest commit = BERTH__IMPORT_COMMIT_REQUEST__INIT;
    commit.import_id = id;
    g_autoptr(GError) other =
        berthd_fixture_call_error(test->berthd, images, "ImportCommit", &commit.base);
    assert_berth_error(other, BERTH_ERROR_NOT_FOUND, "begin it again");
    berth_rpc_peer_unref(peer);
    /* The name is free once nothing of the first import is written any more. */
    g_autofree char *again = NULL;
    run_until((again = try_begin(berthd_fixture_client(test->berthd), "mine")) != NULL);
    assert_string_not_equal(id, again);
}

static void remove_needed_is_refused(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    g_autoptr(GError) needed = remove_error(test, "tiny");
    assert_berth_error(needed, BERTH_ERROR_FAILED_PRECONDITION, "needed by 1 job");
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)"tiny";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, images, "Remove", &request.base);
    g_autoptr(GError) gone = remove_error(test, "tiny");
    assert_berth_error(gone, BERTH_ERROR_NOT_FOUND, "there is none at all");
    Berth__JobSpec spec = berthd_fixture_spec();
    g_autoptr(GError) unknown = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(unknown, BERTH_ERROR_NOT_FOUND, "tiny");
    run_until(n_stored_images(test) == 0);
}

/* --- garbage ------------------------------------------------------------------------------------- */

static void make_disk(BerthdTest *test, const BerthGuestId *id, const char *image_id)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk_id = berth_disk_id_format(id);
    g_autoptr(BerthDiskSource) source = berth_storage_disk_create(
        berthd_fixture_storage(test->berthd), disk_id, image_id, 1u << 20, &error);
    assert_no_error(error);
}

static gboolean has_disk(BerthdTest *test, const BerthGuestId *id)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk_id = berth_disk_id_format(id);
    g_auto(GStrv) names = berth_storage_disk_list(berthd_fixture_storage(test->berthd), &error);
    assert_no_error(error);
    return g_strv_contains((const char *const *)names, disk_id);
}

/* The object ID is whole in storage, whatever there is of it. */
static void finish_image(BerthdTest *test, const char *id)
{
    BerthStorage *storage = berthd_fixture_storage(test->berthd);
    g_autoptr(GError) error = NULL;
    berth_storage_image_remove(storage, id, NULL);
    BerthImageWriter *writer = berth_storage_image_create(storage, id, 4096, &error);
    assert_no_error(error);
    assert_true(berth_image_writer_commit(writer, &error));
    berth_image_writer_free(writer);
}

static gboolean has_image(BerthdTest *test, const char *image_id)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_storage_image_list(berthd_fixture_storage(test->berthd), &error);
    assert_no_error(error);
    return g_strv_contains((const char *const *)names, image_id);
}

/* How often berthd has told of this image as one that it does not know. The collector comes to imports
 * last, so it has tried all that was to be removed when it tells of one of them. */
static guint n_warnings(BerthdTest *test, const char *image_id)
{
    g_autofree char *log = berthd_fixture_log(test->berthd);
    g_autofree char *text = g_strdup_printf("storage has an image %s that this state", image_id);
    g_auto(GStrv) parts = g_strsplit(log, text, -1);
    return g_strv_length(parts) - 1;
}

static void garbage_is_collected_at_start(void **state)
{
    BerthdTest *test = *state;
    guint64 ended = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, ended);
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 running = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, running);
    const char *image_id = fake_agent_start(test->agent, running)->image_id;
    BerthGuestId dead = {.job = ended, .epoch = 1};
    BerthGuestId live = {.job = running, .epoch = 1};
    BerthGuestId foreign = {.job = 4711, .epoch = 1};
    make_disk(test, &dead, image_id);
    make_disk(test, &live, image_id);
    make_disk(test, &foreign, image_id);
    g_autofree char *crashed = begin(berthd_fixture_client(test->berthd), "crashed", 4096);
    berthd_fixture_kill(test->berthd);
    finish_image(test, crashed);
    berthd_fixture_restart(test->berthd);
    run_until(!has_disk(test, &dead));
    run_until(n_warnings(test, crashed) == 1);
    assert_true(has_disk(test, &live));
    assert_true(has_disk(test, &foreign)); /* no job of ours: another cluster's */
}

/* As after a backup of its state was put back, that was made before the import, or during it. */
static void image_that_is_not_known_stays_in_storage(void **state)
{
    BerthdTest *test = *state;
    finish_image(test, "unknown-1");
    g_autofree char *later = begin(berthd_fixture_client(test->berthd), "later", 4096);
    berthd_fixture_kill(test->berthd);
    finish_image(test, later);
    berthd_fixture_restart(test->berthd);
    run_until(n_warnings(test, "unknown-1") == 1);
    run_until(n_warnings(test, later) == 1);
    run_until(fake_agent_is_joined(test->agent));
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd); /* it has forgotten that it was its own import */
    run_until(n_warnings(test, later) == 2);
    assert_true(has_image(test, "unknown-1"));
    assert_true(has_image(test, later));
    assert_int_equal(n_stored_images(test), 3);
}

static void image_of_a_disk_stays_in_storage_until_the_disk_is_gone(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) error = NULL;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    g_autofree char *image_id = g_strdup(fake_agent_start(test->agent, job)->image_id);
    BerthGuestId foreign = {.job = 4711, .epoch = 1}; /* whose disk is not collected */
    g_autofree char *disk_id = berth_disk_id_format(&foreign);
    make_disk(test, &foreign, image_id);
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)"tiny";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, images, "Remove", &request.base);
    g_autofree char *last = begin(berthd_fixture_client(test->berthd), "zzz-last", 4096);
    berthd_fixture_kill(test->berthd);
    finish_image(test, last);
    berthd_fixture_restart(test->berthd);
    run_until(n_warnings(test, last) == 1);
    run_until(fake_agent_is_joined(test->agent));
    assert_true(has_image(test, image_id));
    assert_true(berth_storage_disk_remove(berthd_fixture_storage(test->berthd), disk_id, &error));
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(!has_image(test, image_id));
}

static void list_of_images_comes_in_pages(void **state)
{
    static const char *const names[] = {"a", "b", "tiny"};
    BerthdTest *test = *state; /* has "tiny" */
    berthd_fixture_import(test->berthd, "b");
    berthd_fixture_import(test->berthd, "a");
    g_autofree char *after = g_strdup("");
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        Berth__ListImagesRequest request = BERTH__LIST_IMAGES_REQUEST__INIT;
        request.after = after;
        request.limit = 1;
        Berth__ListImagesReply *reply =
            berthd_fixture_call(test->berthd, &berth__images__descriptor, "List", &request.base);
        assert_int_equal(reply->n_images, 1);
        assert_string_equal(reply->images[0]->name, names[i]);
        assert_string_equal(reply->next_after, i + 1 < G_N_ELEMENTS(names) ? names[i] : "");
        g_free(after);
        after = g_strdup(reply->next_after);
        berth_message_free(&reply->base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(import_streams_and_survives_restart),
        BERTHD_TEST(import_wrong_is_refused),
        BERTHD_TEST(import_of_closed_connection_is_aborted),
        BERTHD_TEST(remove_needed_is_refused),
        BERTHD_TEST(image_of_a_disk_stays_in_storage_until_the_disk_is_gone),
        BERTHD_TEST(garbage_is_collected_at_start),
        BERTHD_TEST(image_that_is_not_known_stays_in_storage),
        BERTHD_TEST(list_of_images_comes_in_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
