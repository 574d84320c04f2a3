/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One job after the other by the calls of a scheduler's library: what its clients have to define. bench/submit is Berth's;
 * bench/vs-slurm compiles the one of Slurm. */

#include <stdbool.h>
#include <stdint.h>

/* SCRIPT: of each job, with its #! line. Both say on stderr what went wrong. */
bool submitter_open(const char *script);
/* The number of a job that is acknowledged; 0: it is not. */
uint64_t submitter_submit(void);
