/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the guest's mounts: from the initramfs to the image as root, and to its orderly end.
 * Invariant: the initramfs' files are removed only after its root was left for good. */
#include "images/init/mounts.h"

#include "images/init/paths.h"
#include "images/init/say.h"
#include "images/init/uevent.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Of fs/ext4/ext4.h: grows a mounted file system to so many blocks. */
#define EXT4_IOC_RESIZE_FS _IOW('f', 16, uint64_t)

#define NEW_ROOT "/root"

typedef struct {
    const char *source;
    const char *target;
    const char *type;
    unsigned long flags;
    const char *options;
} Mount;

/* /run stays executable: the job's script is there. */
static const Mount early_mounts[] = {
    {"dev", "/dev", "devtmpfs", MS_NOSUID, "mode=0755"},
    {"proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
    {"sys", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
};
static const Mount late_mounts[] = {
    {"devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666"},
    {"shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777"},
    {"run", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"},
    {"cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL},
};

static bool mount_one(const Mount *entry, Fault *fault)
{
    /* sysfs makes its own mount points. */
    if (mkdir(entry->target, 0755) != 0 && errno != EEXIST && access(entry->target, F_OK) != 0) {
        fault_set_errno(fault, errno, "cannot make the mount point %s", entry->target);
        return false;
    }
    if (mount(entry->source, entry->target, entry->type, entry->flags, entry->options) == 0 ||
        errno == EBUSY)
        return true;
    fault_set_errno(fault, errno, "cannot mount %s (%s)", entry->target, entry->type);
    return false;
}

bool mounts_early(Fault *fault)
{
    for (size_t i = 0; i < sizeof early_mounts / sizeof *early_mounts; i++)
        if (!mount_one(&early_mounts[i], fault))
            return false;
    return true;
}

bool mounts_command_line_has(const char *word)
{
    char line[4096];
    size_t length = strlen(word);

    if (!path_read_small("/proc/cmdline", line, sizeof line))
        return false;
    for (const char *at = line; *at != '\0'; at += strspn(at, " \n")) {
        size_t size = strcspn(at, " \n");

        if (size == length && memcmp(at, word, length) == 0)
            return true;
        at += size;
    }
    return false;
}

static bool device_is_there(void *data)
{
    struct stat status;

    return stat(data, &status) == 0 && S_ISBLK(status.st_mode);
}

/* Grows the file system at PATH to the size of DEVICE; what already has that size is left alone. */
static bool grow(const char *device, const char *path, Fault *fault)
{
    int disk = open(device, O_RDONLY | O_CLOEXEC);
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t bytes = 0;
    uint64_t blocks;
    struct statfs status;
    bool ok = false;

    if (disk >= 0 && root >= 0 && ioctl(disk, BLKGETSIZE64, &bytes) == 0 &&
        fstatfs(root, &status) == 0) {
        blocks = bytes / (uint64_t)status.f_bsize;
        ok = ioctl(root, EXT4_IOC_RESIZE_FS, &blocks) == 0;
    }
    if (!ok)
        fault_set_errno(fault, errno,
                        "cannot grow the image's file system to the %llu bytes of its disk",
                        (unsigned long long)bytes);
    if (disk >= 0)
        close(disk);
    if (root >= 0)
        close(root);
    return ok;
}

static bool mount_root(const char *device, int timeout_msec, Fault *fault)
{
    if (!uevent_wait(device_is_there, (void *)device, timeout_msec)) {
        fault_set(fault, "the guest has no disk %s", device);
        return false;
    }
    if (mkdir(NEW_ROOT, 0755) != 0 && errno != EEXIST) {
        fault_set_errno(fault, errno, "cannot make %s in the initramfs", NEW_ROOT);
        return false;
    }
    /* The disk is a clone that is thrown away: no access times. */
    if (mount(device, NEW_ROOT, "ext4", MS_NOATIME, NULL) != 0) {
        fault_set_errno(
            fault, errno,
            "cannot mount the image: %s has no ext4 file system that the guest's kernel "
            "can use",
            device);
        return false;
    }
    if (!grow(device, NEW_ROOT, fault))
        return false;
    /* New inode tables are left to be zeroed later by a kernel thread, which is stopped here before it
     * begins. With this option from the start, growing would zero them all at once. */
    if (mount(NULL, NEW_ROOT, NULL, MS_REMOUNT | MS_NOATIME, "noinit_itable") != 0)
        say("cannot keep the kernel from zeroing inode tables: %m");
    return true;
}

static bool move_early_mounts(Fault *fault)
{
    for (size_t i = 0; i < sizeof early_mounts / sizeof *early_mounts; i++) {
        char target[64] = NEW_ROOT;

        memcpy(target + strlen(NEW_ROOT), early_mounts[i].target,
               strlen(early_mounts[i].target) + 1);
        if (mkdir(target, 0755) != 0 && errno != EEXIST) {
            fault_set_errno(fault, errno, "cannot make %s in the image", early_mounts[i].target);
            return false;
        }
        if (mount(early_mounts[i].target, target, NULL, MS_MOVE, NULL) != 0) {
            fault_set_errno(fault, errno, "cannot move %s into the image", early_mounts[i].target);
            return false;
        }
    }
    return true;
}

/* Nothing in the initramfs is needed any more; its memory is the job's. */
static void free_initramfs(void)
{
    static const char *const directories[] = {"/dev", "/proc", "/sys"};

    (void)unlink("/init");
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        (void)rmdir(directories[i]);
}

static bool enter_root(Fault *fault)
{
    if (!move_early_mounts(fault))
        return false;
    free_initramfs();
    if (chdir(NEW_ROOT) == 0 && mount(".", "/", NULL, MS_MOVE, NULL) == 0 && chroot(".") == 0 &&
        chdir("/") == 0)
        return true;
    fault_set_errno(fault, errno, "cannot make the image the root");
    return false;
}

static void make_conveniences(void)
{
    static const char *const links[][2] = {
        {"/proc/self/fd", "/dev/fd"},
        {"/proc/self/fd/0", "/dev/stdin"},
        {"/proc/self/fd/1", "/dev/stdout"},
        {"/proc/self/fd/2", "/dev/stderr"},
    };

    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlink(links[i][0], links[i][1]) != 0 && errno != EEXIST)
            say("cannot make %s: %m", links[i][1]);
    if (mkdir("/tmp", 01777) == 0 && chmod("/tmp", 01777) != 0)
        say("cannot make /tmp writable: %m");
}

bool mounts_switch_root(const char *device, int timeout_msec, Fault *fault)
{
    if (!mount_root(device, timeout_msec, fault) || !enter_root(fault))
        return false;
    for (size_t i = 0; i < sizeof late_mounts / sizeof *late_mounts; i++)
        if (!mount_one(&late_mounts[i], fault))
            return false;
    make_conveniences();
    return true;
}

void mounts_sync(void)
{
    sync();
    if (mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0 && errno != EINVAL)
        say("cannot make the root read-only: %m");
}
