/* SPDX-License-Identifier: Apache-2.0 */
/* berth image import: builds the file system here, with the caller's rights, and sends only its ranges that hold data. */
#include "config.h"

#include "cli/image.h"

#include "common/error.h"
#include "images/build/image_build.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES (1024u * 1024u)

typedef struct {
    BerthCli *cli;
    const char *import_id;
    int fd;
    guint64 size_bytes;
    guint64 sent_bytes;
    gboolean show_progress;
} Sending;

static gboolean send_chunk(Sending *sending, guint64 offset, const guint8 *data, gsize length,
                           GError **error)
{
    Berth__ImportWriteRequest request = BERTH__IMPORT_WRITE_REQUEST__INIT;
    request.import_id = (char *)sending->import_id;
    request.offset = offset;
    request.data.data = (guint8 *)data;
    request.data.len = length;
    ProtobufCMessage *reply = berth_cli_call(sending->cli, &berth__images__descriptor,
                                             "ImportWrite", &request.base, error);
    if (reply == NULL)
        return FALSE;
    protobuf_c_message_free_unpacked(reply, NULL);
    sending->sent_bytes += length;
    if (sending->show_progress)
        fprintf(stderr, "\rsending: %" G_GUINT64_FORMAT " MiB", sending->sent_bytes >> 20);
    return TRUE;
}

static gboolean send_range(Sending *sending, guint64 offset, guint64 end, guint8 *buffer,
                           GError **error)
{
    while (offset < end) {
        gssize got = pread(sending->fd, buffer, MIN(end - offset, CHUNK_BYTES), (goffset)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            berth_set_error_errno(error, got < 0 ? errno : EIO, "cannot read the built image");
            return FALSE;
        }
        if (!send_chunk(sending, offset, buffer, (gsize)got, error))
            return FALSE;
        offset += (guint64)got;
    }
    return TRUE;
}

static gboolean send_data(Sending *sending, GError **error)
{
    g_autofree guint8 *buffer = g_malloc(CHUNK_BYTES);
    for (goffset offset = 0; (guint64)offset < sending->size_bytes;) {
        goffset data = lseek(sending->fd, offset, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        goffset hole = data < 0 ? -1 : lseek(sending->fd, data, SEEK_HOLE);
        if (hole < 0) {
            berth_set_error_errno(error, errno, "cannot read the built image");
            return FALSE;
        }
        if (!send_range(sending, (guint64)data, MIN((guint64)hole, sending->size_bytes), buffer,
                        error))
            return FALSE;
        offset = hole;
    }
    if (sending->show_progress)
        fputc('\n', stderr);
    return TRUE;
}

static Berth__Image *send_image(BerthCli *cli, const char *name, const char *source, int fd,
                                guint64 size_bytes, GError **error)
{
    Berth__ImportBeginRequest begin = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    begin.name = (char *)name;
    begin.source = (char *)source;
    begin.size_bytes = size_bytes;
    Berth__ImportBeginReply *begun = (Berth__ImportBeginReply *)berth_cli_call(
        cli, &berth__images__descriptor, "ImportBegin", &begin.base, error);
    if (begun == NULL)
        return NULL;
    Berth__ImportCommitRequest commit = BERTH__IMPORT_COMMIT_REQUEST__INIT;
    commit.import_id = begun->import_id;
    Sending sending = {.cli = cli,
                       .import_id = begun->import_id,
                       .fd = fd,
                       .size_bytes = size_bytes,
                       .show_progress = isatty(STDERR_FILENO)};
    /* The import belongs to this connection: a failure ends it with the process. */
    Berth__Image *image = NULL;
    if (send_data(&sending, error))
        image = (Berth__Image *)berth_cli_call(cli, &berth__images__descriptor, "ImportCommit",
                                               &commit.base, error);
    berth__import_begin_reply__free_unpacked(begun, NULL);
    return image;
}

/* Where the file system is built before it is sent. */
typedef struct {
    char *directory;
    char *path;
} Scratch;

static void scratch_clear(Scratch *scratch)
{
    if (scratch->path != NULL)
        g_unlink(scratch->path);
    if (scratch->directory != NULL)
        g_rmdir(scratch->directory);
    g_free(scratch->path);
    g_free(scratch->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Scratch, scratch_clear)

typedef struct {
    GCancellable *cancellable;
    gboolean show_progress;
} Building;

/* The build blocks: this is where signals are looked for. */
static void on_building(const BerthImageProgress *progress, gpointer user_data)
{
    const Building *building = user_data;
    g_main_context_iteration(NULL, FALSE);
    if (building->show_progress)
        fprintf(stderr, "\rbuilding: %" G_GUINT64_FORMAT " entries, %" G_GUINT64_FORMAT " MiB",
                progress->entries, progress->done_bytes >> 20);
}

static gboolean on_signal(gpointer user_data)
{
    const Building *building = user_data;
    g_cancellable_cancel(building->cancellable);
    return G_SOURCE_CONTINUE;
}

/* Builds at PATH; SIGINT and SIGTERM end it, so that what was built can be removed. */
static gboolean build_at(const char *source, const char *path, BerthImageInfo *out_info,
                         GError **error)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Building building = {cancellable, isatty(STDERR_FILENO)};
    guint signals[] = {g_unix_signal_add(SIGINT, on_signal, &building),
                       g_unix_signal_add(SIGTERM, on_signal, &building)};
    gboolean ok =
        berth_image_build(source, path, 0, on_building, &building, cancellable, out_info, error);
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        g_source_remove(signals[i]);
    if (building.show_progress)
        fputc('\n', stderr);
    return ok;
}

/* A full disk is this one's, which is not where the user looks: neither source nor image are there. */
static void say_where(const char *directory, GError **error)
{
    if (error != NULL && (strstr((*error)->message, g_strerror(ENOSPC)) != NULL ||
                          strstr((*error)->message, g_strerror(EDQUOT)) != NULL)) {
        g_autofree char *message = g_steal_pointer(&(*error)->message);
        (*error)->message = g_strdup_printf(
            "%s (built in %s; set TMPDIR to a directory with more room)", message, directory);
    }
}

/* Builds the file system of SOURCE in a scratch file and opens it; the file has no name any more
 * when this returns, so that nothing is left behind however the import ends. -1 with ERROR. */
static int build_image(const char *source, BerthImageInfo *out_info, GError **error)
{
    g_auto(Scratch) scratch = {NULL, NULL};
    g_autoptr(GError) local = NULL;
    scratch.directory = g_dir_make_tmp("berth-image-XXXXXX", &local);
    if (scratch.directory == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "cannot make a scratch directory (TMPDIR says where): %s", local->message);
        return -1;
    }
    scratch.path = g_build_filename(scratch.directory, "image", NULL);
    if (!build_at(source, scratch.path, out_info, error)) {
        say_where(scratch.directory, error);
        return -1;
    }
    int fd = open(scratch.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        berth_set_error_errno(error, errno, "cannot read the built image \"%s\"", scratch.path);
    return fd;
}

/* Asked before the source is read, which may take long and fail for reasons that do not matter then. */
static gboolean may_import(BerthCli *cli, GError **error)
{
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    gboolean may = !info->caller_is_user;
    berth__server_info__free_unpacked(info, NULL);
    if (!may)
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                            "only operators (root and the members of operators_group) may import "
                            "images");
    return may;
}

/* Asked before the long build: the daemon only says at its end that the name is taken. */
static gboolean name_is_free(BerthCli *cli, const char *name, GError **error)
{
    g_autoptr(GError) local = NULL;
    Berth__GetImageRequest request = BERTH__GET_IMAGE_REQUEST__INIT;
    request.name = (char *)name;
    ProtobufCMessage *image =
        berth_cli_call(cli, &berth__images__descriptor, "Get", &request.base, &local);
    if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        return TRUE;
    if (image != NULL) {
        protobuf_c_message_free_unpacked(image, NULL);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "there is an image \"%s\" already; choose another name: an image never changes",
                    name);
    } else {
        g_propagate_error(error, g_steal_pointer(&local));
    }
    return FALSE;
}

static gboolean name_is_good(const char *name, int *out_status, GError **error)
{
    gsize length = strspn(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-");
    if (length > 0 && length <= 64 && name[length] == '\0' && name[0] != '.' && name[0] != '-')
        return TRUE;
    return berth_cli_usage_error(out_status, error,
                                 "\"%s\" is no image name: letters, digits, '.', '_' and '-', 64 "
                                 "at most, not starting with '.' or '-'",
                                 name);
}

gboolean berth_cli_image_build(BerthCli *cli, int argc, char **argv, int *out_status,
                               GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print the image as JSON", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "NAME PATH",
                         "PATH is a directory, a tar (plain, gzip, xz, zstd) or a file with an "
                         "ext4 file system.",
                         NULL, out_status, error))
        return FALSE;
    if (argc != 3)
        return berth_cli_usage_error(
            out_status, error, "name the image and what to make it of (see %s --help)", argv[0]);
    if (!name_is_good(argv[1], out_status, error) || !may_import(cli, error) ||
        !name_is_free(cli, argv[1], error))
        return FALSE;
    BerthImageInfo info;
    g_autofree char *source = g_canonicalize_filename(argv[2], NULL);
    g_autofree char *shown_source = g_utf8_make_valid(source, -1);
    int fd = build_image(source, &info, error);
    if (fd < 0)
        return FALSE;
    /* The daemon may have been restarted during the long build. */
    Berth__Image *image = berth_cli_connect(cli, error)
                              ? send_image(cli, argv[1], shown_source, fd, info.size_bytes, error)
                              : NULL;
    close(fd);
    if (image == NULL)
        return FALSE;
    berth_cli_print_image(cli, image);
    return TRUE;
}
