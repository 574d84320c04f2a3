/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* Waits until CONDITION(DATA) holds, looking again whenever the kernel announces a device (kobject
 * uevents), for TIMEOUT_MSEC at most. false: it does not hold. */
bool uevent_wait(bool (*condition)(void *data), void *data, int timeout_msec);
