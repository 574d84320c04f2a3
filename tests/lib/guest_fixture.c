/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a machine with berth-init in it and the host's end of its channel (tests/lib/guest_fixture.h). */
#include "tests/lib/guest_fixture.h"

int guest_fixture_boot(void **state)
{
    GuestFixture *fixture = g_new0(GuestFixture, 1);
    g_autoptr(GError) error = NULL;

    fixture->vm = guest_vm_start(*state, &error);
    *state = fixture;
    if (fixture->vm == NULL) {
        print_error("%s\n", error->message);
        return -1;
    }
    fixture->peer = guest_peer_new(guest_vm_socket_path(fixture->vm), 200);
    if (guest_peer_connect(fixture->peer, BOOT_MSEC, &error))
        return 0;
    g_autofree char *console = guest_vm_console(fixture->vm);
    print_error("%s; console:\n%s\n", error->message, console);
    return -1;
}

int guest_fixture_switch_off(void **state)
{
    GuestFixture *fixture = *state;

    g_clear_pointer(&fixture->peer, guest_peer_free);
    g_clear_pointer(&fixture->vm, guest_vm_free);
    g_free(fixture);
    return 0;
}

void guest_task_init(GuestTask *test, const char *const *command)
{
    memset(test, 0, sizeof *test);
    berth__guest_task__init(&test->task);
    test->task.command = (char **)command;
    test->task.n_command = g_strv_length((char **)command);
    test->task.uid = 1234;
    test->task.gid = 2345;
    test->task.user = (char *)"alice";
    test->task.hostname = (char *)"job-7";
    test->task.inputs = test->inputs;
}

Berth__BlobRef *guest_task_add_blob(GuestTask *test, GBytes *content)
{
    Berth__BlobRef *blob = &test->blobs[test->n_contents];

    berth__blob_ref__init(blob);
    blob->size_bytes = g_bytes_get_size(content);
    test->contents[test->n_contents++] = content;
    return blob;
}

void guest_task_add_input(GuestTask *test, const char *path, guint32 mode, GBytes *content)
{
    Berth__GuestFile *file = &test->files[test->task.n_inputs];

    berth__guest_file__init(file);
    file->path = (char *)path;
    file->mode = mode;
    file->blob = guest_task_add_blob(test, content);
    test->inputs[test->task.n_inputs++] = file;
}

void guest_fixture_submit(GuestFixture *fixture, GuestTask *test)
{
    assert_ok(
        guest_peer_submit(fixture->peer, &test->task, test->contents, test->n_contents, &error));
}

void guest_fixture_submit_shell(GuestFixture *fixture, const char *script)
{
    const char *const command[] = {"sh", "-c", script, NULL};
    GuestTask test;

    guest_task_init(&test, command);
    guest_fixture_submit(fixture, &test);
}

const Berth__Exit *guest_fixture_run_shell(GuestFixture *fixture, const char *script)
{
    guest_fixture_submit_shell(fixture, script);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    return fixture->peer->ended->exit;
}

void guest_fixture_assert_output(const GuestFixture *fixture, int stream, const char *expected)
{
    const GByteArray *output = fixture->peer->output[stream];
    g_autofree char *text =
        output->len > 0 ? g_strndup((const char *)output->data, output->len) : g_strdup("");

    if (strcmp(text, expected) != 0 && fixture->peer->ended != NULL)
        print_error("status %u, error: %s\n", fixture->peer->ended->exit->status,
                    fixture->peer->ended->exit->error);
    assert_string_equal(text, expected);
}

GBytes *guest_bytes_random(gsize size, guint32 seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    guint8 *bytes = g_malloc(size);

    for (gsize i = 0; i < size; i++)
        bytes[i] = (guint8)g_rand_int(random);
    return g_bytes_new_take(bytes, size);
}

char *guest_bytes_sha256(GBytes *bytes)
{
    return g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, bytes);
}

gboolean guest_fixture_has_failure(const GuestPeer *peer, gpointer data)
{
    return peer->failure != NULL;
}

gboolean guest_fixture_has_output(const GuestPeer *peer, gpointer bytes)
{
    return peer->output[0]->len >= GPOINTER_TO_SIZE(bytes);
}
