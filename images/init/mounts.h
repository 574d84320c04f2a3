/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "images/init/fault.h"

#include <stdbool.h>

/* Mounts /dev, /proc and /sys in the initramfs. */
bool mounts_early(Fault *fault);

/* Whether the kernel's command line has WORD. */
bool mounts_command_line_has(const char *word);

/* Waits for the block device DEVICE, mounts its ext4, grows it to the device's size, makes it the root,
 * frees the initramfs and mounts what programs expect to find. FAULT says what the image lacks. */
bool mounts_switch_root(const char *device, int timeout_msec, Fault *fault);

/* Writes everything back and makes the root read-only. */
void mounts_sync(void);
