/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/rpc.h"
#include "common/types.h"
#include "proto/berth.pb-c.h"
#include "storage/storage.h"

/* A node without a hypervisor: it speaks the real protocol of agents over real TLS, and its guests
 * are entries of a table that do what a plan says. The table outlives connections, as libvirt's
 * domains do. Everything happens in the main context in which it was made; nothing blocks but log
 * writes, which go to a directory. */

typedef struct FakeAgent FakeAgent;

/* What a guest does once the node was told to start it. */
typedef struct {
    Berth__StartGuestReply__Fault refuse; /* StartGuest fails through it; FAULT_NONE = does not */
    gboolean refuse_on_stop;              /* only then: right after the stop was answered */
    guint boot_msec;                      /* until its command runs */
    gboolean runs_on;      /* until it is stopped (ends with SIGTERM) or told to end */
    gboolean ignores_stop; /* SIGTERM does not end it */
    guint run_msec;        /* else its command ends after this */
    Berth__Reason gone;    /* instead of running it is gone for this reason; 0 = no */
    gboolean not_begun;    /* with that: before its command began */
    guint32 status;        /* its exit */
    guint32 signal;
    guint32 oom_kills;
    gboolean disk_full;
    const char *error; /* the command could not be executed; NULL = it could */
    const char *out;   /* what it writes; NULL = nothing */
    const char *err;
    const char *console_tail;   /* with gone */
    const Berth__Usage *usage;  /* what it measures, whenever it is asked; NULL = next to nothing */
    const char *storage_client; /* address that it reports for fencing; NULL = none */
    const char *resize_error;   /* it does not go along, and this is why; NULL = it does */
    guint64 resize_has_mib;     /* with that: neither does it go back, and it keeps so much */
    const char *freeze_error;   /* it cannot be frozen, because of that; NULL = it can */
} FakePlan;

/* Fills OUT_PLAN (zeroed: ends at once with status 0) for a guest. */
typedef void (*FakePlanFunc)(const Berth__StartGuestRequest *request, FakePlan *out_plan,
                             gpointer user_data);

typedef struct {
    const char *name;   /* of the node */
    const char *claims; /* name that it gives when it joins; NULL = NAME */
    guint16 port;       /* of berthd, on 127.0.0.1 */
    const char *certificate;
    const char *key;
    const char *ca;
    const char *host_id; /* NULL = does not say */
    const char *boot_id;
    guint32 vcpus;
    guint64 memory_mib;
    BerthStorage *storage; /* where output goes; NULL = nowhere */
    FakePlanFunc plan;     /* NULL = all zeroes */
    gpointer user_data;
} FakeAgentConfig;

/* CONFIG's strings and storage outlive the agent. It dials at once. */
FakeAgent *fake_agent_new(const FakeAgentConfig *config);
void fake_agent_free(FakeAgent *agent);

/* Has it joined on the connection that it has now? */
gboolean fake_agent_is_joined(FakeAgent *agent);
/* How many of the guests that it named in its newest Join are nobody's there. */
guint fake_agent_n_strays(FakeAgent *agent);
/* Why the newest connection, dial or Join failed; NULL = it did not. */
const GError *fake_agent_error(FakeAgent *agent);

/* --- faults ---------------------------------------------------------------------------------- */

/* Ends the connection; the agent dials again by itself. */
void fake_agent_drop(FakeAgent *agent);
/* Likewise, as another instance. */
void fake_agent_restart(FakeAgent *agent);
/* As if the network were cut: no connection until healed. Guests run on. */
void fake_agent_cut(FakeAgent *agent);
/* Dials at once, without the pause that follows a lost connection; there is no error until it fails. */
void fake_agent_heal(FakeAgent *agent);
/* The host dies: all guests are gone, without a word. */
void fake_agent_crash(FakeAgent *agent);
/* Can start no guests because of WHY, "" = it can: says so now, and when it joins. */
void fake_agent_set_cannot_start(FakeAgent *agent, const char *why);
/* From its next Join on it is of VERSION, which outlives it. */
void fake_agent_set_version(FakeAgent *agent, const char *version);
/* Its own clients of storage, separated by spaces, "" = none: says so now, and when it joins. */
void fake_agent_set_storage_client(FakeAgent *agent, const char *addresses);
/* From its next Join on it is another host, or in another boot, which begins now; NULL: does not say. */
void fake_agent_set_host(FakeAgent *agent, const char *host_id, const char *boot_id);
/* Like an agent of an older release it does not say how long its host is up. */
void fake_agent_hide_uptime(FakeAgent *agent);
/* From now on each GuestChanged is sent this often (1 is normal), each answer to an action comes
 * after DELAY_MSEC. */
void fake_agent_set_repeats(FakeAgent *agent, guint repeats);
void fake_agent_set_delay(FakeAgent *agent, guint delay_msec);

/* --- commands for people --------------------------------------------------------------------- */

/* The newest that runs. Each piece of input is taken at once. */
typedef struct {
    Berth__Execs_Service service; /* first: handlers get its address */
    FakeAgent *agent;
    BerthRpcCall *run;         /* NULL: none */
    ProtobufCMessage *request; /* of it */
    GString *input;            /* of all that there were */
    gboolean input_has_ended;
    guint signal;  /* newest */
    guint64 acked; /* of stdout, newest */
    guint n_cancelled;
} FakeExecs;

const FakeExecs *fake_agent_execs(FakeAgent *agent);
/* What was asked for (transfer none); NULL: nothing runs. */
const Berth__ExecRequest *fake_agent_exec(FakeAgent *agent);
void fake_agent_exec_say(FakeAgent *agent, gboolean is_stderr, guint64 offset, const void *data,
                         gsize length);
void fake_agent_exec_end(FakeAgent *agent, guint32 status, const char *error);

/* --- guests ---------------------------------------------------------------------------------- */

guint fake_agent_n_guests(FakeAgent *agent);
/* Guests that it was asked to stop, in order. */
guint fake_agent_n_stops(FakeAgent *agent);
/* The size that JOB's guest was given last; NULL: none but at its start. */
const Berth__ResizeGuestRequest *fake_agent_size(FakeAgent *agent, guint64 job);
/* How often it was asked to freeze or thaw one; whether JOB's guest is frozen now. */
guint fake_agent_n_freezes(FakeAgent *agent);
gboolean fake_agent_is_frozen(FakeAgent *agent, guint64 job);
/* How guests leave for other nodes, and come from there. */
typedef struct {
    FakeAgent *to; /* where they go, whoever was named; NULL = they cannot go anywhere */
    const char *receive_error; /* none can come, because of that; NULL = any can */
    const char *leave_error;   /* they stay when they are to leave, likewise */
    gboolean holds;            /* their memory is copied for ever */
    gboolean loses_answer;     /* the connection breaks when one has left */
    gboolean loses_guest;      /* one that came is gone when it is to go on */
    gboolean is_cut_off;       /* as one that came goes on here, before that is told */
    const Berth__Usage *used;  /* what it says that who has left had used; NULL = does not say */
    const char *client;        /* address that one that is taken here has; NULL = none */
} FakeMoves;
void fake_agent_set_moves(FakeAgent *agent, const FakeMoves *moves);
/* The copy that it holds comes to its end: it has left. */
void fake_agent_end_copy(FakeAgent *agent, guint64 job);
/* How often it was asked to move one, or not to. */
guint fake_agent_n_moves(FakeAgent *agent);
/* How guests are checkpointed. */
typedef struct {
    const char *error; /* none can be, because of that; NULL = any can */
    guint n_errors;    /* but so many times alone; 0 = always */
    gboolean passes;   /* it is one that may pass */
    gboolean holds;    /* it takes for ever */
    guint64 memory_bytes, disk_bytes;
} FakeSaves;
void fake_agent_set_saves(FakeAgent *agent, const FakeSaves *saves);
/* How often it was asked to checkpoint one, and the latest that it was (transfer none, NULL: none). */
guint fake_agent_n_saves(FakeAgent *agent);
const Berth__CheckpointGuestRequest *fake_agent_save(FakeAgent *agent);
/* The latest that it was asked to release (transfer none, NULL: none). */
const Berth__ReleaseGuestRequest *fake_agent_release(FakeAgent *agent);
/* JOB's guest is here, and not one that has not been taken yet. */
gboolean fake_agent_has(FakeAgent *agent, guint64 job);
/* Ends the command of each guest of JOB that runs. FALSE: there is none. */
gboolean fake_agent_end(FakeAgent *agent, guint64 job, guint32 status);
/* That of task INDEX alone. */
gboolean fake_agent_end_task(FakeAgent *agent, guint64 job, guint32 index, guint32 status);
/* The guest of JOB writes more, and the node reports it. */
void fake_agent_write(FakeAgent *agent, guint64 job, gboolean is_stderr, const char *text);
/* Sends what its guests measure now. */
void fake_agent_report(FakeAgent *agent);
/* The same, and NODE of itself. */
void fake_agent_report_node(FakeAgent *agent, const Berth__NodeUsage *node);
/* Sends REQUEST as it is. */
void fake_agent_report_as(FakeAgent *agent, const Berth__ReportRequest *request);
/* Reports that were answered, and the latest answer (transfer none). */
guint fake_agent_n_reports(FakeAgent *agent);
const Berth__ReportReply *fake_agent_report_reply(FakeAgent *agent);
/* Commands of JOB that began to run on this node, whatever became of them. */
guint fake_agent_runs(FakeAgent *agent, guint64 job);
/* The newest StartGuest of JOB as it came (transfer none), or NULL. */
const Berth__StartGuestRequest *fake_agent_start(FakeAgent *agent, guint64 job);
/* Sends GuestChanged with any STATUS, whether it has such a guest or not. */
void fake_agent_say(FakeAgent *agent, const Berth__GuestStatus *status);
/* GuestChanged calls that were answered. */
guint fake_agent_n_answers(FakeAgent *agent);
/* Of these, such as say that something of it is kept. */
guint fake_agent_n_kept(FakeAgent *agent);
