/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a QEMU process for a test and the directory with its disk, socket and console. It knows nothing
 * of the protocol on the channel. */
#include "tests/lib/guest_vm.h"

#include "common/channel.h"
#include "tests/lib/child.h"

#include <glib/gstdio.h>

#define QEMU           "qemu-system-x86_64"
#define BUSYBOX        "/bin/busybox"
#define DISK_BYTES     (48u * 1024u * 1024u)
#define FILESYSTEM_MIB 24u /* what the image has before it is grown to the disk */

struct GuestVm {
    char *directory;
    char *socket_path;
    char *console_path;
    GSubprocess *qemu;
};

/* ---- what is needed */

static char *built_path(const char *name)
{
    const char *top = g_getenv("top_builddir");

    return g_build_filename(top != NULL ? top : ".", "images", name, NULL);
}

/* The kernel of this build, or else the newest of the cache that images/kernel/build fills. */
char *guest_vm_kernel(void)
{
    g_autofree char *built = built_path("guest/vmlinux");
    const char *cache = g_getenv("BERTH_CACHE_DIR");
    g_autoptr(GDir) directory = NULL;
    g_autofree char *newest = NULL;
    gint64 newest_time = 0;
    const char *name;

    if (g_file_test(built, G_FILE_TEST_IS_REGULAR))
        return g_steal_pointer(&built);
    if (cache == NULL)
        cache = "/var/cache/berth";
    directory = g_dir_open(cache, 0, NULL);
    while (directory != NULL && (name = g_dir_read_name(directory)) != NULL) {
        g_autofree char *path = g_build_filename(cache, name, "vmlinux", NULL);
        GStatBuf status;

        if (!g_str_has_prefix(name, "kernel-") || g_stat(path, &status) != 0 ||
            status.st_mtime < newest_time)
            continue;
        newest_time = status.st_mtime;
        g_free(newest);
        newest = g_steal_pointer(&path);
    }
    return g_steal_pointer(&newest);
}

char *guest_vm_initramfs(void)
{
    return built_path("initramfs.cpio");
}

const char *guest_vm_missing(void)
{
    static const char *const programs[] = {QEMU, "mke2fs"};
    g_autofree char *kernel = guest_vm_kernel();
    g_autofree char *initramfs = built_path("initramfs.cpio");

    for (gsize i = 0; i < G_N_ELEMENTS(programs); i++) {
        g_autofree char *path = g_find_program_in_path(programs[i]);

        if (path == NULL)
            return programs[i];
    }
    if (!g_file_test(BUSYBOX, G_FILE_TEST_IS_EXECUTABLE))
        return "busybox-static";
    if (kernel == NULL)
        return "a guest kernel (images/kernel/build)";
    return g_file_test(initramfs, G_FILE_TEST_IS_REGULAR) ? NULL : "images/initramfs.cpio";
}

/* ---- the disk */

static gboolean run(GError **error, const char *const *argv)
{
    g_autoptr(GSubprocess) process =
        g_subprocess_newv(argv, G_SUBPROCESS_FLAGS_STDOUT_SILENCE, error);

    return process != NULL && g_subprocess_wait_check(process, NULL, error);
}

static gboolean make_tree(const char *tree, GError **error)
{
    g_autofree char *bin = g_build_filename(tree, "usr", "bin", NULL);
    g_autofree char *link = g_build_filename(tree, "bin", NULL);
    g_autofree char *busybox = g_build_filename(bin, "busybox", NULL);
    g_autofree char *etc = g_build_filename(tree, "etc", NULL);
    g_autofree char *passwd = g_build_filename(etc, "passwd", NULL);
    g_autofree char *group = g_build_filename(etc, "group", NULL);
    const char *copy[] = {"cp", BUSYBOX, busybox, NULL};
    /* Its links lead to where this busybox runs from. */
    const char *install[] = {BUSYBOX, "--install", "-s", bin, NULL};

    if (g_mkdir_with_parents(bin, 0755) != 0 || g_mkdir_with_parents(etc, 0755) != 0 ||
        symlink("usr/bin", link) != 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot make %s", tree);
        return FALSE;
    }
    return run(error, copy) && run(error, install) &&
           g_file_set_contents(passwd, "root:x:0:0:root:/root:/bin/sh\n", -1, error) &&
           g_file_set_contents(group, "root:x:0:\n", -1, error);
}

gboolean guest_vm_make_root(const char *directory, const char *path, GError **error)
{
    g_autofree char *tree = g_build_filename(directory, "tree", NULL);
    g_autofree char *filesystem = g_strdup_printf("%uM", FILESYSTEM_MIB);
    const char *make[] = {"mke2fs", "-q", "-t", "ext4",     "-E", "root_owner=0:0",
                          "-d",     tree, path, filesystem, NULL};

    return make_tree(tree, error) && run(error, make);
}

static gboolean make_disk(const GuestVm *vm, const GuestVmOptions *options, const char *disk,
                          GError **error)
{
    guint64 bytes = options->disk_bytes != 0 ? options->disk_bytes : DISK_BYTES;

    if (options->disk_is_broken) {
        if (!g_file_set_contents(disk, "", 0, error))
            return FALSE;
    } else if (!guest_vm_make_root(vm->directory, disk, error)) {
        return FALSE;
    }
    if (truncate(disk, (off_t)bytes) == 0)
        return TRUE;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot make %s larger", disk);
    return FALSE;
}

/* ---- the machine */

static GSubprocess *start_qemu(const GuestVm *vm, const GuestVmOptions *options, const char *disk,
                               GError **error)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    const char *accel = g_getenv("BERTH_TEST_ACCEL");
    const struct {
        const char *option;
        char *value; /* moved into argv */
    } pairs[] = {
        {"-accel", g_strdup(accel != NULL ? accel : "tcg")},
        {"-machine", g_strdup("q35")},
        {"-cpu", g_strdup("max")},
        {"-m", g_strdup_printf("%u", options->memory_mib != 0 ? options->memory_mib : 96)},
        {"-smp", g_strdup_printf("%u", options->vcpus != 0 ? options->vcpus : 1)},
        {"-display", g_strdup("none")},
        {"-kernel", guest_vm_kernel()},
        {"-initrd", built_path("initramfs.cpio")},
        {"-append", g_strdup_printf("console=ttyS0 panic=-1 quiet%s %s",
                                    accel == NULL ? " clocksource=hpet" : "", /* as the agent */
                                    options->command_line != NULL ? options->command_line : "")},
        {"-serial", g_strdup_printf("file:%s", vm->console_path)},
        {"-drive", g_strdup_printf("file=%s,if=none,format=raw,id=disk,cache=unsafe", disk)},
        {"-device", g_strdup("virtio-blk-pci,drive=disk")},
        {"-device", g_strdup("virtio-serial-pci")},
        {"-chardev",
         g_strdup_printf("socket,id=channel,path=%s,server=on,wait=off", vm->socket_path)},
        {"-device", g_strdup("virtserialport,chardev=channel,name=" BERTH_CHANNEL_PORT)},
        {"-device", g_strdup("virtio-rng-pci")},
    };

    g_ptr_array_add(argv, g_strdup(QEMU));
    g_ptr_array_add(argv, g_strdup("-nodefaults"));
    g_ptr_array_add(argv, g_strdup("-no-user-config"));
    g_ptr_array_add(argv, g_strdup("-no-reboot"));
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_ptr_array_add(argv, g_strdup(pairs[i].option));
        g_ptr_array_add(argv, pairs[i].value);
    }
    g_ptr_array_add(argv, NULL);
    child_bind(launcher);
    return g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, error);
}

GuestVm *guest_vm_start(const GuestVmOptions *options, GError **error)
{
    g_autoptr(GuestVm) vm = g_new0(GuestVm, 1);
    g_autofree char *disk = NULL;

    vm->directory = g_dir_make_tmp("berth-guest-XXXXXX", error);
    if (vm->directory == NULL)
        return NULL;
    vm->socket_path = g_build_filename(vm->directory, "channel", NULL);
    vm->console_path = g_build_filename(vm->directory, "console", NULL);
    disk = g_build_filename(vm->directory, "disk", NULL);
    if (!make_disk(vm, options, disk, error))
        return NULL;
    vm->qemu = start_qemu(vm, options, disk, error);
    return vm->qemu != NULL ? g_steal_pointer(&vm) : NULL;
}

void guest_vm_free(GuestVm *vm)
{
    const char *const remove[] = {"rm", "-rf", vm->directory, NULL};

    if (vm->qemu != NULL) {
        g_subprocess_force_exit(vm->qemu);
        g_subprocess_wait(vm->qemu, NULL, NULL);
        g_object_unref(vm->qemu);
    }
    if (vm->directory != NULL)
        run(NULL, remove);
    g_free(vm->directory);
    g_free(vm->socket_path);
    g_free(vm->console_path);
    g_free(vm);
}

const char *guest_vm_socket_path(const GuestVm *vm)
{
    return vm->socket_path;
}

char *guest_vm_console(const GuestVm *vm)
{
    char *text = NULL;

    return g_file_get_contents(vm->console_path, &text, NULL, NULL) ? text : g_strdup("");
}

typedef struct {
    GMainLoop *loop;
    gboolean ok;
    GError *error;
} Wait;

static void on_end(GObject *qemu, GAsyncResult *result, gpointer data)
{
    Wait *wait = data;

    wait->ok = g_subprocess_wait_check_finish(G_SUBPROCESS(qemu), result, &wait->error);
    g_main_loop_quit(wait->loop);
}

static gboolean on_timeout(gpointer cancellable)
{
    g_cancellable_cancel(cancellable);
    return G_SOURCE_REMOVE;
}

gboolean guest_vm_wait_end(GuestVm *vm, guint timeout_msec, GError **error)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Wait wait = {.loop = loop};
    guint timeout = g_timeout_add(timeout_msec, on_timeout, cancellable);

    g_subprocess_wait_check_async(vm->qemu, cancellable, on_end, &wait);
    g_main_loop_run(loop);
    if (!g_cancellable_is_cancelled(cancellable))
        g_source_remove(timeout);
    if (!wait.ok)
        g_propagate_error(error, wait.error);
    return wait.ok;
}
