/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes what an image is made of. The first byte of the input chooses:
 *
 *   's'        the rest is an ext4 superblock, whose checksum is put right
 *   otherwise  the rest is a file that is built into an image: an archive, an ext4 file system
 *
 * Checksums of tar headers are put right first, as random changes would get no further than them.
 * tests/fuzz/seeds_image makes inputs to start from. With BERTH_FUZZ_FSCK=1 each image that was
 * built is given to e2fsck, which must find nothing. */

#include <config.h>

#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/error.h"
#include "images/build/ext4_check.h"
#include "images/build/image_build.h"

#define MAX_BYTES (24u << 20)
#define TAR_BLOCK 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_superblock(const uint8_t *data, size_t size)
{
    guint8 super[BERTH_EXT4_SUPER_BYTES] = {0};
    guint64 bytes = 0;
    g_autoptr(GError) error = NULL;
    memcpy(super, data, MIN(size, sizeof super));
    /* ext4 leaves out the last inversion of the CRC. */
    guint32 sum = ~berth_crc32c(0, super, sizeof super - 4);
    memcpy(super + sizeof super - 4, &sum, 4);
    if (berth_ext4_super_check(super, G_GUINT64_CONSTANT(1) << 40, &bytes, &error)) {
        if (bytes == 0 || bytes > G_GUINT64_CONSTANT(1) << 40)
            abort();
    } else if (!error || error->domain != BERTH_ERROR) {
        abort();
    }
}

static void repair_checksums(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        uint8_t *header = data + at;
        char text[8];
        unsigned sum = 0;
        if (memcmp(header + 257, "ustar", 5) != 0)
            continue;
        memset(header + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += header[i];
        g_snprintf(text, sizeof text, "%06o", sum);
        memcpy(header + 148, text, 7);
    }
}

static void check_image(const char *path)
{
    g_autoptr(GError) error = NULL;
    if (!g_getenv("BERTH_FUZZ_FSCK"))
        return;
    g_autoptr(GSubprocess) check = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_SILENCE, &error,
                                                    "/sbin/e2fsck", "-fn", path, NULL);
    if (!check || !g_subprocess_wait_check(check, NULL, &error))
        g_error("e2fsck of %s: %s", path, error->message);
}

static void fuzz_file(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *file = g_memdup2(data, size);
    g_autofree char *source = NULL;
    g_autofree char *output = g_strdup_printf("/dev/shm/berth-fuzz-image-%d", (int)getpid());
    g_autoptr(GError) error = NULL;
    BerthImageInfo info;
    repair_checksums(file, size);
    int fd = memfd_create("image", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file, size) != (ssize_t)size)
        abort();
    source = g_strdup_printf("/proc/self/fd/%d", fd);
    gboolean built = berth_image_build(source, output, MAX_BYTES, NULL, NULL, NULL, &info, &error);
    /* An error if and only if it failed, of our domain, and never one that says we are wrong. */
    if (built ? error != NULL : !error || error->domain != BERTH_ERROR)
        abort();
    if (!built && error->code == BERTH_ERROR_INTERNAL)
        g_error("internal error: %s", error->message);
    if (built != g_file_test(output, G_FILE_TEST_EXISTS))
        abort();
    /* A copied file system is whatever it was. */
    if (built && info.kind != BERTH_IMAGE_SOURCE_EXT4)
        check_image(output);
    g_unlink(output);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > (1u << 20))
        return 0;
    if (data[0] == 's')
        fuzz_superblock(data + 1, size - 1);
    else
        fuzz_file(data + 1, size - 1);
    return 0;
}
