/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* A socket that is readable when the kernel has announced something. -1 with errno set. */
int uevent_open(void);
/* Reads all that was announced. */
void uevent_drain(int fd);

/* Waits until CONDITION(DATA) holds, looking again whenever the kernel announces a device (kobject
 * uevents), for TIMEOUT_MSEC at most. false: it does not hold. */
bool uevent_wait(bool (*condition)(void *data), void *data, int timeout_msec);
