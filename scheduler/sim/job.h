/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A job as it is simulated: guests that fit the nodes, times from the start of the simulation. */

#include <glib.h>

#define SIM_UNKNOWN G_MAXUINT32

typedef struct {
    guint64 id;     /* from 1, in order of arrival: the core's number */
    guint64 number; /* the trace's */
    guint32 task;   /* of an array of that number, plus 1; 0 = of none */
    gint64 submit_usec;
    gint64 run_usec; /* with all the CPU that it wants */
    gint64 limit_usec;
    gint64
        limit_again_usec; /* what its user asks for when that has turned out to be too short; 0 = it is not */
    guint32 guests; /* > 1: a gang */
    /* Of each guest: */
    guint32 vcpus;
    guint64 memory_mib;
    guint64 memory_asked_mib; /* where that was cut to what a node can give; 0 = it was not */
    guint32 cpu_used_milli;   /* mean; SIM_UNKNOWN */
    guint64 memory_used_mib;  /* peak; 0 = unknown */
    /* It used more than it had reserved, and what is above counts as not used. */
    gboolean is_cpu_cut, is_memory_used_cut;
    guint32 user, name;
    guint32 series;        /* index + 1 into the trace's own series; 0 = has none */
    gboolean is_too_large; /* for the machine, were it empty, in guests: every policy refuses it */
} SimJob;

/* As people write it: "7", or "7[1]" where TASK, as in SimJob, is not 0 (transfer full). */
static inline char *sim_job_name(guint64 number, guint32 task)
{
    return task == 0 ? g_strdup_printf("%" G_GUINT64_FORMAT, number)
                     : g_strdup_printf("%" G_GUINT64_FORMAT "[%u]", number, task - 1);
}

/* TASK 0: whatever its task. */
static inline gboolean sim_job_is(const SimJob *job, guint64 number, guint32 task)
{
    return job->number == number && (task == 0 || job->task == task);
}

static inline guint64 sim_job_width(const SimJob *job)
{
    return (guint64)job->guests * job->vcpus;
}
