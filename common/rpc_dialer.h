/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests: a dialler that does not wait a second. */

#include "common/rpc.h"

void berth_rpc_dialer_set_backoff(BerthRpcDialer *dialer, guint min_msec, guint max_msec);
