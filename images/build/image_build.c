/* SPDX-License-Identifier: Apache-2.0 */

/* From a source to an image file.
 *
 * Owns: what kind of source it is, and the order of the work. A directory or an archive is read
 * twice: first its entries alone, which make the tree and so the size of the file system, then its
 * data, which go straight to their place.
 * Invariants: nothing is written before the whole source was found to be acceptable; the output
 * exists afterwards if and only if it is whole. */

#include "images/build/image_build.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.h"
#include "images/build/cancel.h"
#include "images/build/ext4_check.h"
#include "images/build/ext4_layout.h"
#include "images/build/ext4_writer.h"
#include "images/build/source.h"
#include "images/build/tree.h"

#define MAX_BYTES_DEFAULT (G_GUINT64_CONSTANT(1) << 44)
#define PROGRESS_BYTES    (4u << 20)
#define PROGRESS_ENTRIES  4096u
#define ENTRIES_MAX       (4u * BERTH_TREE_INODES_MAX)
#define PROBE_BYTES       (BERTH_EXT4_SUPER_OFFSET + BERTH_EXT4_SUPER_BYTES)

typedef struct {
    const char *output_path;
    guint64 max_bytes;
    BerthImageProgressFunc progress;
    gpointer user_data;
    GCancellable *cancellable;
    BerthImageProgress now;
    guint64 told_bytes; /* when progress was last called */
    guint64 told_entries;
    gboolean has_layers; /* a container's image, as it is saved */
    gboolean has_root;   /* what the root of a system has */
    BerthImageInfo info;
} Build;

static void tell_progress(Build *build, gboolean always)
{
    if (!build->progress ||
        (!always && build->now.done_bytes - build->told_bytes < PROGRESS_BYTES &&
         build->now.entries - build->told_entries < PROGRESS_ENTRIES))
        return;
    build->told_bytes = build->now.done_bytes;
    build->told_entries = build->now.entries;
    build->progress(&build->now, build->user_data);
}

/* --- first reading: entries ---------------------------------------------------------------------- */

static gboolean plan_entry(BerthSource *source, const BerthSourceEntry *entry, BerthTree *tree,
                           GError **error)
{
    if (entry->hard_link)
        return berth_tree_link(tree, entry->path, entry->hard_link, error);
    BerthTreeInode *inode = berth_source_inode(source, error);
    return inode && berth_tree_add(tree, entry->path, inode, entry->number, error);
}

/* Looks for what tells an archive of a container's layers from a container's files. */
static void note_path(Build *build, const char *path)
{
    static const char *const of_layers[] = {"manifest.json", "oci-layout"};
    static const char *const of_root[] = {"bin", "etc", "lib", "sbin", "usr"};
    while (path[0] == '/' || (path[0] == '.' && path[1] == '/'))
        path++;
    for (gsize i = 0; i < G_N_ELEMENTS(of_layers); i++)
        build->has_layers |= g_str_equal(path, of_layers[i]);
    for (gsize i = 0; i < G_N_ELEMENTS(of_root); i++) {
        gsize length = strlen(of_root[i]);
        build->has_root |=
            strncmp(path, of_root[i], length) == 0 && (path[length] == '/' || path[length] == '\0');
    }
}

static gboolean check_is_root(const Build *build, GError **error)
{
    if (!build->has_layers || build->has_root)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "it holds the layers of a container's image, as `docker save` writes them, and not "
                "its files; these come from a container of it: docker create IMAGE, then docker "
                "export CONTAINER -o FILE.tar");
    return FALSE;
}

static gboolean check_claim(Build *build, const BerthSourceEntry *entry, GError **error)
{
    if (entry->number >= ENTRIES_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "it has more than the %u entries that are read", ENTRIES_MAX);
        return FALSE;
    }
    return !berth_image_cancelled(build->cancellable, error);
}

static gboolean plan(Build *build, BerthSource *source, BerthTree *tree, GError **error)
{
    BerthSourceEntry entry;
    g_autoptr(GError) failure = NULL;
    while (berth_source_next(source, &entry, &failure)) {
        build->now.entries++;
        tell_progress(build, FALSE);
        if (!check_claim(build, &entry, error))
            return FALSE;
        note_path(build, entry.path);
        if (entry.is_socket)
            build->info.skipped++;
        else if (!plan_entry(source, &entry, tree, error))
            return FALSE;
        if (!berth_source_skip(source, build->cancellable, error))
            return FALSE;
    }
    if (failure) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    build->info.entries = build->now.entries;
    if (build->now.entries > 0)
        return check_is_root(build, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "it holds no files");
    return FALSE;
}

/* --- second reading: data ------------------------------------------------------------------------ */

static gboolean write_file(Build *build, BerthSource *source, BerthTreeInode *file,
                           BerthExt4Writer *writer, GError **error)
{
    const void *data;
    gsize length;
    guint64 offset;
    g_autoptr(GError) failure = NULL;
    if (!berth_ext4_writer_begin(writer, file, error))
        return FALSE;
    while (berth_source_read(source, &data, &length, &offset, &failure)) {
        if (berth_image_cancelled(build->cancellable, error) ||
            !berth_ext4_writer_append(writer, offset, data, length, error))
            return FALSE;
        build->now.done_bytes = MIN(build->now.done_bytes + length, build->now.total_bytes);
        build->info.content_bytes += length;
        tell_progress(build, FALSE);
    }
    if (failure) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    return berth_ext4_writer_end(writer, error);
}

static gboolean write_files(Build *build, BerthSource *source, BerthTree *tree,
                            BerthExt4Writer *writer, GError **error)
{
    BerthSourceEntry entry;
    g_autoptr(GError) failure = NULL;
    while (berth_source_next(source, &entry, &failure)) {
        BerthTreeInode *file = berth_tree_find_entry(tree, entry.number);
        if (!file) {
            if (!berth_source_skip(source, build->cancellable, error))
                return FALSE;
            continue;
        }
        if (file->size_bytes != entry.size_bytes) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                        "'%s' changed while it was read; try again", entry.description);
            return FALSE;
        }
        if (!write_file(build, source, file, writer, error)) {
            g_prefix_error(error, "'%s': ", entry.description);
            return FALSE;
        }
    }
    if (failure) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    if (berth_ext4_writer_missing(writer) == 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "files vanished while it was read; try again");
    return FALSE;
}

static gboolean build_from_source(Build *build, BerthSource *source, GError **error)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    BerthTreeTotals totals;
    BerthExt4Layout layout;
    if (!plan(build, source, tree, error))
        return FALSE;
    berth_tree_totals(tree, &totals);
    if (!berth_ext4_layout_compute(&totals, build->max_bytes, &layout, error) ||
        !berth_source_rewind(source, error))
        return FALSE;
    build->now.total_bytes = totals.data_blocks * BERTH_EXT4_BLOCK_BYTES;
    g_autoptr(BerthExt4Writer) writer = berth_ext4_writer_new(build->output_path, &layout, error);
    if (!writer || !berth_ext4_writer_add_tree(writer, tree, error) ||
        !write_files(build, source, tree, writer, error) ||
        !berth_ext4_writer_commit(writer, error))
        return FALSE;
    build->info.size_bytes = berth_ext4_writer_size_bytes(writer);
    build->now.total_bytes = build->now.done_bytes;
    return TRUE;
}

/* --- kinds of sources ------------------------------------------------------------------------------ */

static void copy_progress(guint64 done_bytes, guint64 total_bytes, gpointer user_data)
{
    Build *build = user_data;
    build->now.done_bytes = done_bytes;
    build->now.total_bytes = total_bytes;
    tell_progress(build, FALSE);
}

static gboolean build_from_ext4(Build *build, int fd, guint64 file_bytes, const guint8 *super,
                                GError **error)
{
    guint64 bytes;
    build->info.kind = BERTH_IMAGE_SOURCE_EXT4;
    if (!berth_ext4_super_check(super, file_bytes, &bytes, error))
        return FALSE;
    if (bytes > build->max_bytes) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "the file system's %" G_GUINT64_FORMAT
                    " MiB are more than the %" G_GUINT64_FORMAT " MiB that an image may have",
                    bytes >> 20, build->max_bytes >> 20);
        return FALSE;
    }
    build->info.content_bytes = build->info.size_bytes = bytes;
    build->now.total_bytes = bytes;
    if (!berth_ext4_copy(fd, bytes, build->output_path, copy_progress, build, build->cancellable,
                         error))
        return FALSE;
    build->now.done_bytes = bytes;
    return TRUE;
}

/* What else it may be that users take for an image; NULL if we cannot tell. */
static const char *guess_kind(const guint8 probe[PROBE_BYTES])
{
    static const guint8 zeros[PROBE_BYTES];
    if (memcmp(probe, zeros, sizeof zeros) == 0)
        return "a file that begins with zeros: an empty archive, or a disk that nothing was "
               "written to";
    if (memcmp(probe, "QFI\xfb", 4) == 0)
        return "a qcow2 disk; convert it (qemu-img convert -O raw) and take its file system's "
               "partition";
    if (memcmp(probe, "hsqs", 4) == 0)
        return "a squashfs file system; unpack it (unsquashfs) and import the directory";
    if (memcmp(probe, "PK\x03\x04", 4) == 0)
        return "a zip archive; unpack it and import the directory";
    if (probe[510] == 0x55 && probe[511] == 0xaa)
        return "a whole disk with partitions; take the partition with the file system out of it";
    return NULL;
}

static gboolean build_from_file(Build *build, const char *path, int fd, guint64 file_bytes,
                                GError **error)
{
    guint8 probe[PROBE_BYTES] = {0};
    if (pread(fd, probe, sizeof probe, 0) < 0) {
        berth_set_error_errno(error, errno, "cannot read it");
        return FALSE;
    }
    const guint8 *super = probe + BERTH_EXT4_SUPER_OFFSET;
    if (memcmp(probe + 257, "ustar", 5) != 0 && berth_ext4_super_is_one(super))
        return build_from_ext4(build, fd, file_bytes, super, error);
    build->info.kind = BERTH_IMAGE_SOURCE_TAR;
    const char *kind = file_bytes > 0 ? guess_kind(probe) : NULL;
    if (kind) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "it is %s", kind);
        return FALSE;
    }
    g_autoptr(BerthSource) source = berth_source_open_tar(fd, path, error);
    if (source && build_from_source(build, source, error))
        return TRUE;
    if (build->now.entries == 0 && error && *error &&
        g_error_matches(*error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT))
        g_prefix_error(error, "it is neither a directory, nor a tar archive (plain, gzip, xz or "
                              "zstd), nor an ext4 file system: ");
    return FALSE;
}

static gboolean build_from_directory(Build *build, const char *path, GError **error)
{
    g_autofree char *real = realpath(path, NULL);
    if (!real) {
        berth_set_error_errno(error, errno, "cannot find it");
        return FALSE;
    }
    build->info.kind = BERTH_IMAGE_SOURCE_DIRECTORY;
    g_autoptr(BerthSource) source = berth_source_open_directory(real, error);
    return source && build_from_source(build, source, error);
}

static gboolean build_from_path(Build *build, const char *path, GError **error)
{
    struct stat status;
    int fd = g_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0 || fstat(fd, &status) < 0) {
        berth_set_error_errno(error, errno, "cannot open it");
        if (fd >= 0)
            close(fd);
        return FALSE;
    }
    gboolean done = FALSE;
    if (S_ISDIR(status.st_mode))
        done = build_from_directory(build, path, error);
    else if (S_ISREG(status.st_mode))
        done = build_from_file(build, path, fd, (guint64)status.st_size, error);
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "it is no directory and no regular file; a stream has to be saved to a file "
                    "first, as it is read twice");
    close(fd);
    return done;
}

gboolean berth_image_build(const char *source_path, const char *output_path, guint64 max_bytes,
                           BerthImageProgressFunc progress, gpointer user_data,
                           GCancellable *cancellable, BerthImageInfo *out_info, GError **error)
{
    g_return_val_if_fail(source_path && output_path, FALSE);
    /* Reading a directory changes the working directory now and then. */
    g_autofree char *output = g_canonicalize_filename(output_path, NULL);
    Build build = {.output_path = output,
                   .max_bytes = max_bytes ? max_bytes : MAX_BYTES_DEFAULT,
                   .progress = progress,
                   .user_data = user_data,
                   .cancellable = cancellable};
    /* Names in archives are UTF-8, whatever the user's locale: libarchive converts to ours. */
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    g_autoptr(GError) failure = NULL;
    gboolean done = build_from_path(&build, source_path, &failure);
    if (utf8) {
        uselocale(before);
        freelocale(utf8);
    }
    if (!done) {
        g_propagate_prefixed_error(error, g_steal_pointer(&failure),
                                   "cannot make an image of %s: ", source_path);
        return FALSE;
    }
    tell_progress(&build, TRUE);
    if (out_info)
        *out_info = build.info;
    return TRUE;
}
