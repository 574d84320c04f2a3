/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how bench/submit submits to Slurm: slurm_submit_batch_job(), which makes a connection for each call. bench/vs-slurm compiles it
 * with bench/submit.c, against the libslurm that it runs. */
#include "bench/submit.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <unistd.h>

static const char *job_script;

bool submitter_open(const char *script)
{
    job_script = script;
    slurm_init(NULL);
    return true;
}

uint64_t submitter_submit(void)
{
    char *environment[] = {(char *)"PATH=/usr/bin:/bin", (char *)"HOME=/", NULL};
    job_desc_msg_t job;
    submit_response_msg_t *reply = NULL;
    slurm_init_job_desc_msg(&job);
    job.name = (char *)"job.sh";
    job.user_id = getuid();
    job.group_id = getgid();
    job.script = (char *)job_script;
    job.environment = environment;
    job.env_size = 2;
    job.work_dir = (char *)"/";
    job.std_out = job.std_err = job.std_in = (char *)"/dev/null";
    job.min_nodes = job.num_tasks = job.min_cpus = 1;
    if (slurm_submit_batch_job(&job, &reply) != SLURM_SUCCESS) {
        fprintf(stderr, "submit: %s\n", slurm_strerror(slurm_get_errno()));
        return 0;
    }
    uint64_t number = reply->job_id;
    slurm_free_submit_response_response_msg(reply);
    return number;
}
