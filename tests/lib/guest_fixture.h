/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A guest that has booted, with a scripted host on its channel, and tasks for it. What fails here fails the
 * test. */

#include "tests/lib/assert.h"
#include "tests/lib/guest_peer.h"
#include "tests/lib/guest_vm.h"

/* Deadlines for a test that hangs. */
#define BOOT_MSEC 60000
#define RUN_MSEC  120000

#define MIB (1024u * 1024u)

/* Fails with the error's message unless CALL, whose last argument is &error, succeeds. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        g_autoptr(GError) error = NULL;                                                            \
        if (!(call))                                                                               \
            fail_msg("%s", error->message);                                                        \
    } while (0)

typedef struct {
    GuestVm *vm;
    GuestPeer *peer;
} GuestFixture;

typedef struct {
    Berth__GuestTask task;
    Berth__BlobRef blobs[8];
    Berth__GuestFile files[6];
    Berth__GuestFile *inputs[6];
    GBytes *contents[8]; /* borrowed, in the order of the transfer */
    gsize n_contents;
} GuestTask;

/* *STATE comes as the guest's options (GuestVmOptions) and becomes the fixture: booted, with a session. */
int guest_fixture_boot(void **state);
int guest_fixture_switch_off(void **state);

/* COMMAND, and what is added, are TASK's until it was submitted (transfer none). */
void guest_task_init(GuestTask *test, const char *const *command);
Berth__BlobRef *guest_task_add_blob(GuestTask *test, GBytes *content);
void guest_task_add_input(GuestTask *test, const char *path, guint32 mode, GBytes *content);
void guest_fixture_submit(GuestFixture *fixture, GuestTask *test);
void guest_fixture_submit_shell(GuestFixture *fixture, const char *script);
/* To its end. */
const Berth__Exit *guest_fixture_run_shell(GuestFixture *fixture, const char *script);
/* STREAM: 0 = standard output, 1 = standard error. */
void guest_fixture_assert_output(const GuestFixture *fixture, int stream, const char *expected);

/* To be waited for by guest_peer_wait(): so many bytes of standard output; a failure. */
gboolean guest_fixture_has_output(const GuestPeer *peer, gpointer bytes);
gboolean guest_fixture_has_failure(const GuestPeer *peer, gpointer data);

GBytes *guest_bytes_random(gsize size, guint32 seed);
char *guest_bytes_sha256(GBytes *bytes);

/* In a table of tests: FUNCTION with a guest of OPTIONS. */
#define guest_test(function, options)                                                              \
    {                                                                                              \
#function, function, guest_fixture_boot, guest_fixture_switch_off, &(options)              \
    }
