/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/sim/options.h"

/* Runs what the command line asks for: results to standard output and files, progress to standard
 * error. */
gboolean sim_app_run(SimOptions *options, GError **error);
