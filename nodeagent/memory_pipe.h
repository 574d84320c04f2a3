/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A guest's memory on its way between libvirt and storage, without a copy on the host: libvirt writes into a FIFO, or
 * reads from it, and a worker of ours is at its other end.
 *
 * libvirt begins what it saves with a header that says that it is not whole, and ends with the same header once more,
 * which says that it is: it means to replace the first one, which in a FIFO comes last. */

#include <gio/gio.h>

#include "storage/storage.h"

/* Shared by the loop and one worker. */
typedef struct BerthMemoryPipe BerthMemoryPipe;

/* Makes a FIFO in a folder of its own in RUN_DIR: where that is gone, libvirt cannot make a file in its place. */
BerthMemoryPipe *berth_memory_pipe_new(const char *run_dir, GError **error);
BerthMemoryPipe *berth_memory_pipe_ref(BerthMemoryPipe *pipe);
/* The last one removes the FIFO. */
void berth_memory_pipe_unref(BerthMemoryPipe *pipe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthMemoryPipe, berth_memory_pipe_unref)
const char *berth_memory_pipe_path(const BerthMemoryPipe *pipe);
/* Removes those that an agent before us has left in RUN_DIR; a libvirt that waits at one of them fails. */
void berth_memory_pipe_sweep(const char *run_dir);

/* From the loop: libvirt is asked now to save or to load. */
void berth_memory_pipe_asked(BerthMemoryPipe *pipe);
/* From the loop: libvirt has done all that it will, or has failed, or is not asked at all. One of the two has to be told:
 * a worker waits for it, also when it has failed. */
void berth_memory_pipe_end(BerthMemoryPipe *pipe);
void berth_memory_pipe_stop(BerthMemoryPipe *pipe);
/* It is to fail, which is to be told when it has. */
void berth_memory_pipe_give_up(BerthMemoryPipe *pipe);

/* For a worker: takes what libvirt writes until its end, and gives the first header the place of which the last one is.
 * *OUT_HEADER (transfer full) for berth_checkpoint_writer_finish(). Fails as berth_checkpoint_writer_append(), with
 * CANCELLED if it was given up, and with INTERNAL if this is not how libvirt saves. libvirt fails then, too.
 *
 * If libvirt was asked to save, and has written nothing for minutes, STALLED is called, from the worker, and it counts as given
 * up: but a QEMU that does not write does not see that either, so that libvirt has to be told to let go of it. */
typedef void (*BerthMemoryStalledFunc)(gconstpointer user_data);
#define BERTH_MEMORY_HEADER_BYTES 92
gboolean berth_memory_pipe_receive(BerthMemoryPipe *pipe, BerthCheckpointWriter *writer,
                                   BerthMemoryStalledFunc stalled, gconstpointer user_data,
                                   GBytes **out_header, GError **error);
/* For a worker: gives libvirt what it reads until its end. Fails as berth_checkpoint_reader_next(), or if it was given up;
 * libvirt fails then, too. STALLED: likewise, if libvirt was asked to load it and reads nothing. */
gboolean berth_memory_pipe_send(BerthMemoryPipe *pipe, BerthCheckpointReader *reader,
                                BerthMemoryStalledFunc stalled, gconstpointer user_data,
                                GError **error);
/* UNAVAILABLE (transfer full). */
GError *berth_memory_pipe_why_stalled(void);
