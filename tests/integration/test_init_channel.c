/* SPDX-License-Identifier: Apache-2.0 */
/* The channel of a real guest whose host comes and goes: not a byte is lost or doubled either way. */
#include "tests/lib/guest_fixture.h"

/* The host is cut off in mid-frame, and the next one goes on where the guest says it stands. */
static void transfer_cut_in_mid_frame_is_continued(void **state)
{
    GuestFixture *fixture = *state;
    GuestPeer *peer = fixture->peer;
    const char *const command[] = {"sha256sum", "a", NULL};
    g_autoptr(GBytes) content = guest_bytes_random(2 * MIB, 3);
    g_autofree char *sum = guest_bytes_sha256(content);
    g_autofree char *expected = g_strdup_printf("%s  a\n", sum);
    const gsize cuts[] = {7, 100, 200 * 1024, 256 * 1024 + 15};
    GuestTask test;

    guest_task_init(&test, command);
    guest_task_add_input(&test, "a", 0644, content);
    assert_ok(guest_peer_send_task(peer, &test.task, &error));
    for (gsize i = 0; i < G_N_ELEMENTS(cuts); i++) {
        Berth__ToGuest message = BERTH__TO_GUEST__INIT;
        Berth__ToGuest__FileData data = BERTH__TO_GUEST__FILE_DATA__INIT;
        gsize from;

        from = peer->state->file_bytes;
        data.offset = from;
        data.data.data = (guint8 *)g_bytes_get_data(content, NULL) + from;
        data.data.len = 256 * 1024;
        message.body_case = BERTH__TO_GUEST__BODY_FILE;
        message.file = &data;
        assert_ok(guest_peer_send(peer, &message, 0, &error));
        data.offset += data.data.len;
        data.data.data += data.data.len;
        assert_ok(guest_peer_send(peer, &message, cuts[i], &error));
        assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
        assert_true(peer->state->has_task);
        assert_true(peer->state->file_bytes >= from);
    }
    assert_ok(guest_peer_send_file(peer, 0, peer->state->file_bytes, content, &error));
    assert_ok(guest_peer_send_run(peer, &error));
    assert_ok(guest_peer_wait_ended(peer, RUN_MSEC, &error));
    guest_fixture_assert_output(fixture, 0, expected);
}

/* ---- the channel */

static GByteArray *lines(guint count)
{
    GByteArray *text = g_byte_array_new();

    for (guint i = 1; i <= count; i++) {
        char line[16];

        g_byte_array_append(text, (const guint8 *)line,
                            (guint)g_snprintf(line, sizeof line, "%u\n", i));
    }
    return text;
}

static void assert_same_bytes(const GByteArray *a, const GByteArray *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* 20 MB, with the host gone in mid-stream again and again. */
static void output_survives_cut_connections(void **state)
{
    GuestFixture *fixture = *state;
    GuestPeer *peer = fixture->peer;
    g_autoptr(GByteArray) out = lines(2800000);
    g_autoptr(GByteArray) err = lines(300000);

    guest_fixture_submit_shell(fixture, "seq 300000 >&2 & seq 2800000; wait");
    for (guint cut = 1; cut <= 12; cut++) {
        peer->hold_acks = cut % 3 == 0; /* some hosts die before they acknowledge */
        assert_ok(guest_peer_wait(peer, guest_fixture_has_output,
                                  GSIZE_TO_POINTER(peer->output[0]->len + 100000), RUN_MSEC,
                                  &error));
        assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
    }
    peer->hold_acks = FALSE;
    assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
    assert_ok(guest_peer_wait_ended(peer, RUN_MSEC, &error));
    assert_int_equal(peer->ended->exit->status, 0);
    assert_same_bytes(peer->output[0], out);
    assert_same_bytes(peer->output[1], err);
}

/* A command that writes more than the buffers hold waits for the host, and loses nothing. */
static void output_waits_for_an_absent_host(void **state)
{
    GuestFixture *fixture = *state;
    g_autoptr(GByteArray) out = lines(700000);

    guest_fixture_submit_shell(fixture, "seq 700000");
    guest_peer_cut(fixture->peer);
    g_usleep(G_USEC_PER_SEC); /* time without a host, which nothing announces */
    assert_ok(guest_peer_connect(fixture->peer, BOOT_MSEC, &error));
    assert_false(fixture->peer->state->ended);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_same_bytes(fixture->peer->output[0], out);
}

static gboolean has_ended_again(const GuestPeer *peer, gpointer data)
{
    return peer->ended_count >= GPOINTER_TO_UINT(data);
}

static void end_is_told_to_each_new_host(void **state)
{
    GuestFixture *fixture = *state;
    GuestPeer *peer = fixture->peer;

    guest_fixture_run_shell(fixture, "echo x; exit 5");
    for (guint i = 2; i < 5; i++) {
        assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
        assert_true(peer->state->ended);
        assert_int_equal(peer->state->start_usec, peer->start_usec);
        assert_ok(guest_peer_wait(peer, has_ended_again, GUINT_TO_POINTER(i), RUN_MSEC, &error));
        assert_int_equal(peer->ended->exit->status, 5);
    }
    guest_fixture_assert_output(fixture, 0, "x\n");
}

static GuestVmOptions usual = {0};
static GuestVmOptions small = {.memory_mib = 64};

int main(void)
{
    const char *missing = guest_vm_missing();
    const struct CMUnitTest tests[] = {
        guest_test(transfer_cut_in_mid_frame_is_continued, usual),
        guest_test(output_survives_cut_connections, small),
        guest_test(output_waits_for_an_absent_host, usual),
        guest_test(end_is_told_to_each_new_host, usual),
    };

    if (missing != NULL) {
        print_message("skipped: this machine lacks %s\n", missing);
        return 77;
    }
    if (g_getenv("BERTH_TEST_FILTER") != NULL)
        cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
