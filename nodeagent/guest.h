/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One guest on this node, from its start (or its adoption) until nothing of it is left. All in the
 * loop; whatever blocks is done by the hypervisor and the storage lane. */

#include "nodeagent/exec.h"
#include "nodeagent/guest_phase.h"
#include "nodeagent/hypervisor/hypervisor.h"
#include "nodeagent/node_config.h"
#include "nodeagent/pace.h"
#include "nodeagent/storage_lane.h"
#include "proto/berth.pb-c.h"

typedef struct BerthGuest BerthGuest;

/* What the guests of an agent share. Outlives them. */
typedef struct {
    const BerthNodeConfig *config;
    BerthHypervisor *hypervisor;
    BerthStorageLane *lane;
    const char *machine;
    const char *cpu_model;
    const char *cmdline;
    gboolean use_kvm;
    BerthPaceIntervals usage_intervals; /* between a guest's own measurements */
    guint stall_msec; /* it measures at once when it stalls for memory for so long in a second */
    /* Its status is news for the scheduler. */
    void (*changed)(BerthGuest *guest, gpointer user_data);
    /* It has answered in a new session: see berth_guest_is_awaited(). */
    void (*answered)(BerthGuest *guest, gpointer user_data);
    /* More of its output is durable, or it is known how far its move is. */
    void (*output)(BerthGuest *guest, gpointer user_data);
    /* It was measured: its vCPUs have used CPU_USEC more. */
    void (*measured)(BerthGuest *guest, guint64 cpu_usec, gpointer user_data);
    /* It has come near a limit. */
    void (*pressed)(BerthGuest *guest, gpointer user_data);
    /* It is to be looked at sooner than it was (berth_guest_pace()). */
    void (*look_soon)(BerthGuest *guest, gpointer user_data);
    /* A QEMU has failed: why it was this host's kernel that ended it (transfer none); NULL: it was not, as far as is known. */
    const char *(*why_killed)(gpointer user_data);
    /* Nothing of it is left: free it. */
    void (*forgotten)(BerthGuest *guest, gpointer user_data);
    gpointer user_data;
} BerthGuestContext;

typedef Berth__StartGuestReply__Fault BerthFault;
#define BERTH_FAULT_NONE    BERTH__START_GUEST_REPLY__FAULT__FAULT_NONE
#define BERTH_FAULT_JOB     BERTH__START_GUEST_REPLY__FAULT__JOB
#define BERTH_FAULT_NODE    BERTH__START_GUEST_REPLY__FAULT__NODE
#define BERTH_FAULT_STORAGE BERTH__START_GUEST_REPLY__FAULT__STORAGE
#define BERTH_FAULT_IN_USE  BERTH__START_GUEST_REPLY__FAULT__IN_USE

/* Ends a question; ERROR is NULL if it is answered with yes. FAULT: of a start, whose it is. */
typedef void (*BerthGuestAnswerFunc)(BerthFault fault, const GError *error, gpointer user_data);

BerthGuest *berth_guest_new(const BerthGuestContext *context, const BerthGuestId *id);
/* Its domain runs on; what is under way may still take effect. Open questions are answered with
 * UNAVAILABLE. */
void berth_guest_free(BerthGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuest, berth_guest_free)

/* (transfer none) */
const BerthGuestId *berth_guest_id(const BerthGuest *guest);
/* Of its domain: that of the epoch in which it booted, as libvirt restores a domain under no other name. */
const char *berth_guest_name(const BerthGuest *guest);
BerthGuestPhaseOnNode berth_guest_phase(const BerthGuest *guest);
/* Adopted, and has not answered yet, which one that is frozen cannot. */
gboolean berth_guest_is_awaited(const BerthGuest *guest);
/* Has answered since it was adopted, or needs no answer. */
gboolean berth_guest_is_known(const BerthGuest *guest);
/* Its domain was destroyed for good, or is another node's: one of its name that runs here is nobody's. */
gboolean berth_guest_is_over(const BerthGuest *guest);
/* Should a list of domains have it? */
gboolean berth_guest_has_domain(const BerthGuest *guest);

/* The whole start, for a new guest, or what is missing of it, for one that was adopted before its
 * command began. ANSWER once its domain runs, or with why it does not: nothing is left of it then.
 * Idempotent. ANSWER may come from inside. */
void berth_guest_start(BerthGuest *guest, const Berth__StartGuestRequest *request,
                       BerthGuestAnswerFunc answer, gpointer user_data);
/* A new guest whose domain was found. */
void berth_guest_adopt(BerthGuest *guest, const BerthDomain *domain);
/* SIGTERM, after GRACE_MSEC SIGKILL, then the end of the domain. FALSE: it is being removed, and
 * nothing will be told of its end. */
gboolean berth_guest_stop(BerthGuest *guest, guint grace_msec);
/* Its vCPUs stop, or go on. ANSWER when they have; who asks for the opposite meanwhile has the first
 * answered with CANCELLED. NOT_FOUND: it has no domain, or is being ended. */
void berth_guest_freeze(BerthGuest *guest, gboolean freezes, BerthGuestAnswerFunc answer,
                        gpointer user_data);
/* Runs what REQUEST says beside the job's. Errors: FAILED_PRECONDITION (it does not run, or stands
 * still), UNAVAILABLE (it has just come to this node) and those of berth_guest_execs_open(). */
BerthExec *berth_guest_exec(BerthGuest *guest, const Berth__ExecRequest *request,
                            const BerthExecFuncs *funcs, gpointer user_data, GError **error);
/* It is to go on at TARGET, where it stands still until it is taken there. ANSWER when it has left, or with why
 * it runs on here (see Agent.MigrateGuest); FROZEN: it is to stand still here then; HURRIES: its node needs what it has.
 * Idempotent. */
void berth_guest_leave(BerthGuest *guest, const BerthMigrationTarget *target, gboolean frozen,
                       gboolean hurries, BerthGuestAnswerFunc answer, gpointer user_data);
/* Takes a checkpoint of it: see Agent.CheckpointGuest. FUNC with the reply, or with why there is none. */
typedef void (*BerthGuestCheckpointFunc)(const Berth__CheckpointGuestReply *reply,
                                         const GError *error, gpointer user_data);
void berth_guest_checkpoint(BerthGuest *guest, const Berth__CheckpointGuestRequest *request,
                            BerthGuestCheckpointFunc func, gpointer user_data);
/* It is to stay: who waits for its departure gets CANCELLED, unless it is too late. */
void berth_guest_stay(BerthGuest *guest);
/* The same, also for what an agent before us has begun. ANSWER as to who wants it to leave. */
void berth_guest_leave_not(BerthGuest *guest, gboolean frozen, BerthGuestAnswerFunc answer,
                           gpointer user_data);
gboolean berth_guest_has_left(const BerthGuest *guest);
/* A new guest, which runs on another node and may come here. */
void berth_guest_expect(BerthGuest *guest);
/* DOMAIN, which was found, is on its way here: the same for an agent that was started meanwhile. */
gboolean berth_guest_is_coming(const BerthGuest *guest, const BerthDomain *domain);
void berth_guest_expect_again(BerthGuest *guest, const BerthDomain *domain);
/* What that node's host must know of this one, for the domain of GUEST (transfer full). */
BerthMigrationTarget *berth_guest_target(const BerthGuest *guest);
/* It has come, and goes on here; or not, with FROZEN; or not yet, until it is taken without WAITS, but who has its disk open is
 * known. ANSWER when that is so; NOT_FOUND: it is not here; UNAVAILABLE: it may come yet. Idempotent. */
void berth_guest_take(BerthGuest *guest, gboolean frozen, gboolean waits,
                      BerthGuestAnswerFunc answer, gpointer user_data);
/* FALSE: another node speaks for it. */
gboolean berth_guest_is_ours(const BerthGuest *guest);
/* Is the scheduler to hear of its changes? Also of its departure. */
gboolean berth_guest_is_to_tell(const BerthGuest *guest);
/* Addresses of its disk's clients, as far as they are known (transfer none); NULL: they are not. */
char **berth_guest_storage_clients(const BerthGuest *guest);

/* It is to have SIZE. ANSWER when it has; who asks for another size meanwhile has the first answered with
 * CANCELLED. FAILED_PRECONDITION: its guest does not go along; it has no more than before, or, if SETTLES and
 * has_settled(), that. NOT_FOUND: it has no domain, or is being ended. */
void berth_guest_resize(BerthGuest *guest, const BerthDomainSize *size, gboolean settles,
                        BerthGuestAnswerFunc answer, gpointer user_data);
/* GUEST stands still, and is to go on as soon as libvirt was asked for what its next resize is about: it can take that
 * only then, and has not long to live with what it has. */
void berth_guest_thaw_with_resize(BerthGuest *guest);
/* The answer is that it neither went along nor back: what it has now. */
gboolean berth_guest_has_settled(const BerthGuest *guest, guint32 *out_vcpus,
                                 guint64 *out_memory_mib);
/* It gets next to no CPU from now on, as its node is short of memory, or what it may have again. In time: libvirt is
 * asked when nothing else is under way; ask again until it is so. */
void berth_guest_hold_back(BerthGuest *guest, gboolean holds);
/* FALSE: it is not held back; or libvirt cannot be asked now, as it is on its way, say. */
gboolean berth_guest_can_be_let_go(const BerthGuest *guest);
/* FALSE: an agent before this one, or a question that failed, may have held it back; libvirt has taken nothing since. */
gboolean berth_guest_hold_is_known(const BerthGuest *guest);
/* libvirt is asked again for what is wanted, if it may have taken something else. */
void berth_guest_renew_hold(BerthGuest *guest);
/* Since when it is held back, by the host's clock; 0: it is not. */
gint64 berth_guest_held_usec(const BerthGuest *guest);
/* It runs in what others have reserved and do not use. */
gboolean berth_guest_is_in_slack(const BerthGuest *guest);
/* Its domain, in slack, is ended at once for those who have reserved its memory, because of WHY: its job has lost its guest, and goes on from
 * its checkpoint, or begins again. */
void berth_guest_give_up(BerthGuest *guest, const char *why);
/* That was done, and its domain may still be there. */
gboolean berth_guest_is_given_up(const BerthGuest *guest);
/* Of this host, that its QEMU has, as it was measured last. */
guint64 berth_guest_host_mib(const BerthGuest *guest);
/* The end of it all, also for a new guest of which only a name is known. DISK_ID may be NULL where it
 * is known. ANSWER once no QEMU of it runs. */
void berth_guest_release(BerthGuest *guest, const char *disk_id, BerthGuestAnswerFunc answer,
                         gpointer user_data);
/* It is nobody's any more, and will be released: what it still puts out is not written to its log, which may be that
 * of one that goes on from its checkpoint elsewhere. */
void berth_guest_disown(BerthGuest *guest);
/* The same for what this node has of a guest that runs on another one. */
void berth_guest_release_here(BerthGuest *guest, BerthGuestAnswerFunc answer, gpointer user_data);

/* libvirt says so of its domain. */
void berth_guest_domain_started(BerthGuest *guest);
void berth_guest_domain_suspended(BerthGuest *guest);
void berth_guest_domain_resumed(BerthGuest *guest);
void berth_guest_domain_resized(BerthGuest *guest);
/* EVENT: one of the ends. */
void berth_guest_domain_stopped(BerthGuest *guest, BerthDomainEvent event);
/* It is not there, and nobody has seen its end. */
void berth_guest_domain_missing(BerthGuest *guest);

/* Measures what the host's kernel counts of it. Its rates are over WINDOW_USEC at least, as far as it is known for so
 * long. */
void berth_guest_look(BerthGuest *guest, gint64 now_usec, gint64 window_usec);
/* What libvirt measured; also the time for small duties that recur. */
void berth_guest_measured(BerthGuest *guest, const BerthDomainStats *stats);
/* (transfer none) How often it is to be looked at. */
const BerthPace *berth_guest_pace(const BerthGuest *guest);
/* A limit, or it was a moment ago, whether or not anything of it changes. */
gboolean berth_guest_is_near(const BerthGuest *guest);
/* (transfer none) */
const Berth__Usage *berth_guest_usage(const BerthGuest *guest);

/* --- reporting --- */

/* Rises with each change that the scheduler must hear of. */
guint64 berth_guest_serial(const BerthGuest *guest);
/* The scheduler has answered what was true at SERIAL. */
void berth_guest_set_reported(BerthGuest *guest, guint64 serial);
/* ... and has stored it, as that of a guest which is where it is to be: one that stands still as it was restored goes on, if it
 * said then who has its disk open. */
void berth_guest_set_kept(BerthGuest *guest, guint64 serial);
/* The answer to a Join does not say that: it is told once more by itself. */
void berth_guest_tell_if_it_stands(BerthGuest *guest);
gboolean berth_guest_is_reported(const BerthGuest *guest);

/* Berth__GuestStatus (transfer full), to be freed with berth_message_free(). */
Berth__GuestStatus *berth_guest_status(const BerthGuest *guest);
/* Of its output, what is durable in the log. */
guint64 berth_guest_durable(const BerthGuest *guest, guint stream);
/* How far its move is. FALSE: its memory is not being copied. */
gboolean berth_guest_migration(const BerthGuest *guest, Berth__MigrationProgress *out_progress);
