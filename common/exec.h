/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Commands beside a job's own: bounds on which both ends of a channel rely. Plain C, also for the guest. */

/* Of each of a command's two output streams, sent and not acknowledged: what the guest keeps, and the most that
 * anybody between it and the user is ever sent. */
#define BERTH_EXEC_WINDOW_BYTES (64u * 1024u)
/* Input in one piece. */
#define BERTH_EXEC_INPUT_MAX_BYTES (32u * 1024u)
/* Of one guest at once: with their windows they take 1.25 MiB of its memory at most. */
#define BERTH_EXECS_MAX 8u
/* Its arguments with their ends. */
#define BERTH_EXEC_COMMAND_MAX_BYTES (64u * 1024u)
