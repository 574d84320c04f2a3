/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/* Errors without allocation: PID 1 must be able to say what is wrong when memory is short. */

typedef struct {
    char text[512]; /* "" = no fault; always terminated, UTF-8, cut when too long */
    bool disk_full; /* the disk that the job asked for is too small */
} Fault;

/* Says what was tried, on what, why it failed. Overwrites FAULT; NULL is allowed and ignored. */
void fault_set(Fault *fault, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, with ": " and the text of errno value ERR at the end. */
void fault_set_errno(Fault *fault, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
