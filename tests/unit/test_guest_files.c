/* SPDX-License-Identifier: Apache-2.0 */
/* Inline contents of a task's files. Those in storage are in test_guest_channel. */
#include <config.h>

#include <gio/gio.h>

#include "nodeagent/guest_files.h"
#include "tests/lib/assert.h"

#define N_BLOBS    50u
#define BLOB_BYTES 1000u
#define N_FILES    500u

/* --- what was hashed ------------------------------------------------------------------------- */

static gsize hashed_bytes;

void __real_g_checksum_update(GChecksum *checksum, const guchar *data, gssize length);
void __wrap_g_checksum_update(GChecksum *checksum, const guchar *data, gssize length);
void __wrap_g_checksum_update(GChecksum *checksum, const guchar *data, gssize length)
{
    hashed_bytes += (gsize)length;
    __real_g_checksum_update(checksum, data, length);
}

/* --- a request with many files of few contents, all of one size -------------------------------- */

typedef struct {
    Berth__StartGuestRequest request;
    Berth__GuestTask task;
    Berth__BlobRef blobs[N_BLOBS];
    ProtobufCBinaryData contents[N_BLOBS];
    guint8 digests[N_BLOBS][BERTH_SHA256_BYTES];
    Berth__GuestFile files[N_FILES];
    Berth__GuestFile *inputs[N_FILES];
    char *command[1];
} Request;

static Request *request_new(void)
{
    static char command[] = "/bin/true", name[] = "input";
    Request *self = g_new0(Request, 1);
    berth__start_guest_request__init(&self->request);
    berth__guest_task__init(&self->task);
    for (guint i = 0; i < N_BLOBS; i++) {
        gsize length = BERTH_SHA256_BYTES;
        guint8 *data = g_malloc0(BLOB_BYTES);
        data[0] = (guint8)i;
        g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
        g_checksum_update(checksum, data, BLOB_BYTES);
        g_checksum_get_digest(checksum, self->digests[i], &length);
        self->contents[i] = (ProtobufCBinaryData){.len = BLOB_BYTES, .data = data};
        berth__blob_ref__init(&self->blobs[i]);
        self->blobs[i].sha256 = (ProtobufCBinaryData){.len = length, .data = self->digests[i]};
        self->blobs[i].size_bytes = BLOB_BYTES;
    }
    for (guint i = 0; i < N_FILES; i++) {
        berth__guest_file__init(&self->files[i]);
        self->files[i].path = name;
        self->files[i].blob = &self->blobs[(i * 7) % N_BLOBS];
        self->inputs[i] = &self->files[i];
    }
    self->command[0] = command;
    self->task.command = self->command;
    self->task.n_command = 1;
    self->task.inputs = self->inputs;
    self->task.n_inputs = N_FILES;
    self->request.task = &self->task;
    self->request.inline_blobs = self->contents;
    self->request.n_inline_blobs = N_BLOBS;
    hashed_bytes = 0;
    return self;
}

static void request_free(Request *self)
{
    for (guint i = 0; i < N_BLOBS; i++)
        g_free(self->contents[i].data);
    g_free(self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Request, request_free)

static void on_read(GObject *source, GAsyncResult *result, gpointer data)
{
    *(GBytes **)data = berth_guest_files_read_finish(result, NULL);
}

/* --- tests ------------------------------------------------------------------------------------- */

static void files_new_each_file_has_its_inline_content(void **state)
{
    g_autoptr(Request) request = request_new();
    g_autoptr(BerthGuestFiles) files = berth_guest_files_new(&request->request, NULL, NULL);
    assert_non_null(files);
    assert_int_equal(berth_guest_files_count(files), N_FILES);
    for (guint i = 0; i < N_FILES; i++) {
        g_autoptr(GBytes) piece = NULL;
        berth_guest_files_read_async(files, i, 0, NULL, on_read, &piece);
        run_until(piece != NULL);
        assert_int_equal(g_bytes_get_size(piece), BLOB_BYTES);
        assert_int_equal(*(const guint8 *)g_bytes_get_data(piece, NULL), (i * 7) % N_BLOBS);
    }
}

static void files_new_many_files_hashes_each_content_once(void **state)
{
    g_autoptr(Request) request = request_new();
    g_autoptr(BerthGuestFiles) files = berth_guest_files_new(&request->request, NULL, NULL);
    assert_non_null(files);
    assert_int_equal(hashed_bytes, N_BLOBS * BLOB_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_new_each_file_has_its_inline_content),
        cmocka_unit_test(files_new_many_files_hashes_each_content_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
