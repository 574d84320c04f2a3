/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Receives the files of a task, in order: environment, script, inputs, those that are present. */

#include "images/init/fault.h"
#include "proto/berth.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Files Files;

typedef struct {
    uint32_t total;
    uint32_t complete;
    uint64_t bytes; /* received of file number COMPLETE */
} FilesProgress;

typedef enum {
    FILES_TAKEN,  /* written, or had already been */
    FILES_GAP,    /* something before it is missing; nothing was changed */
    FILES_FAILED, /* it cannot be written */
} FilesResult;

/* Prepares for TASK, which must outlive the result. Relative inputs go below WORK_DIRECTORY, which exists;
 * environment and script below RUN_DIRECTORY, which only root can write. Files of no
 * bytes at the head are complete at once. NULL with FAULT set. */
Files *files_new(const Berth__GuestTask *task, const char *run_directory,
                 const char *work_directory, Fault *fault);
void files_free(Files *files); /* NULL is allowed */

/* Writes LENGTH bytes at OFFSET of file INDEX. What was already received is skipped. */
FilesResult files_write(Files *files, uint32_t index, uint64_t offset, const uint8_t *data,
                        size_t length, Fault *fault);

FilesProgress files_progress(const Files *files);

/* Where they are; NULL when the task has none. */
const char *files_environment_path(const Files *files);
const char *files_script_path(const Files *files);
