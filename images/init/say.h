/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes one line, "berth-init: ...", to the guest's console (standard error). The agent keeps the
 * end of the console for the user, so it is for what a user or operator must know, not for chatter. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
