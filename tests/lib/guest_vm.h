/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A guest under bare QEMU, for tests: the real kernel and the real initramfs, a root disk made of
 * busybox, and the channel on a unix socket. No libvirt, no agent. */

#include <gio/gio.h>

typedef struct {
    guint memory_mib;   /* 0 = 96 */
    guint vcpus;        /* 0 = 1 */
    guint64 disk_bytes; /* size of the disk; the file system on it is made smaller; 0 = 48 MiB */
    gboolean disk_is_broken;  /* a disk without a file system */
    const char *command_line; /* added to the kernel's, or NULL */
} GuestVmOptions;

typedef struct GuestVm GuestVm;

/* The guests' kernel (NULL: none) and initramfs of this build (transfer full). */
char *guest_vm_kernel(void);
char *guest_vm_initramfs(void);
/* Makes an ext4 file system of 24 MiB with busybox at PATH, by way of a tree below DIRECTORY, which is
 * removed by the caller. */
gboolean guest_vm_make_root(const char *directory, const char *path, GError **error);

/* NULL when this machine has all that is needed; else what is missing, for a test to exit with 77. */
const char *guest_vm_missing(void);

/* Starts a guest in a directory of its own. It dies with the caller. */
GuestVm *guest_vm_start(const GuestVmOptions *options, GError **error);
/* Ends the guest if it runs and removes its directory. */
void guest_vm_free(GuestVm *vm);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuestVm, guest_vm_free)

const char *guest_vm_socket_path(const GuestVm *vm);

/* What is on the console so far (transfer full). */
char *guest_vm_console(const GuestVm *vm);

/* Waits until QEMU has ended by itself. FALSE when it has not in time, or with a bad status. */
gboolean guest_vm_wait_end(GuestVm *vm, guint timeout_msec, GError **error);
