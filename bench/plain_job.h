/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job that programs of bench/ submit: 1 vCPU, 64 MiB, and a script, which goes with each request together with its
 * environment, as they do from `berth submit`. */

#include "proto/berth.pb-c.h"

/* SCRIPT must stay valid, as what the other two give does until this is called again. */
void plain_job_set_script(const char *script);
const Berth__SubmitRequest *plain_job_request(void);
/* With an idempotency key that no other has, as `berth submit` sends one with each: berthd looks it up before it takes the job.
 * Valid until it is called again. */
const Berth__SubmitRequest *plain_job_request_with_key(void);
