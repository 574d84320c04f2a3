/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One guest on this node, from its start (or its adoption) until nothing of it is left. All in the
 * loop; whatever blocks is done by the hypervisor and the storage lane. */

#include "nodeagent/guest_phase.h"
#include "nodeagent/hypervisor/hypervisor.h"
#include "nodeagent/node_config.h"
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
    guint usage_interval_msec;
    /* Its status is news for the scheduler. */
    void (*changed)(BerthGuest *guest, gpointer user_data);
    /* It has answered in a new session: see berth_guest_is_awaited(). */
    void (*answered)(BerthGuest *guest, gpointer user_data);
    /* More of its output is durable. */
    void (*output)(BerthGuest *guest, gpointer user_data);
    /* It was measured: its vCPUs have used CPU_USEC more. */
    void (*measured)(BerthGuest *guest, guint64 cpu_usec, gpointer user_data);
    /* Nothing of it is left: free it. */
    void (*forgotten)(BerthGuest *guest, gpointer user_data);
    gpointer user_data;
} BerthGuestContext;

typedef Berth__StartGuestReply__Fault BerthFault;
#define BERTH_FAULT_NONE    BERTH__START_GUEST_REPLY__FAULT__FAULT_NONE
#define BERTH_FAULT_JOB     BERTH__START_GUEST_REPLY__FAULT__JOB
#define BERTH_FAULT_NODE    BERTH__START_GUEST_REPLY__FAULT__NODE
#define BERTH_FAULT_STORAGE BERTH__START_GUEST_REPLY__FAULT__STORAGE

/* Ends a question; ERROR is NULL if it is answered with yes. FAULT: of a start, whose it is. */
typedef void (*BerthGuestAnswerFunc)(BerthFault fault, const GError *error, gpointer user_data);

BerthGuest *berth_guest_new(const BerthGuestContext *context, const BerthGuestId *id);
/* Its domain runs on; what is under way may still take effect. Open questions are answered with
 * UNAVAILABLE. */
void berth_guest_free(BerthGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuest, berth_guest_free)

/* (transfer none) */
const BerthGuestId *berth_guest_id(const BerthGuest *guest);
const char *berth_guest_name(const BerthGuest *guest); /* of its domain */
BerthGuestPhaseOnNode berth_guest_phase(const BerthGuest *guest);
/* Adopted, and has not answered yet, which one that is frozen cannot. */
gboolean berth_guest_is_awaited(const BerthGuest *guest);
/* Has answered since it was adopted, or needs no answer. */
gboolean berth_guest_is_known(const BerthGuest *guest);
/* Its domain was destroyed for good: one of its name that runs is nobody's. */
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
/* The end of it all, also for a new guest of which only a name is known. DISK_ID may be NULL where it
 * is known. ANSWER once no QEMU of it runs. */
void berth_guest_release(BerthGuest *guest, const char *disk_id, BerthGuestAnswerFunc answer,
                         gpointer user_data);

/* libvirt says so of its domain. */
void berth_guest_domain_started(BerthGuest *guest);
void berth_guest_domain_resumed(BerthGuest *guest);
/* EVENT: one of the ends. */
void berth_guest_domain_stopped(BerthGuest *guest, BerthDomainEvent event);
/* It is not there, and nobody has seen its end. */
void berth_guest_domain_missing(BerthGuest *guest);

/* A measurement from the host; also the time for small duties that recur. */
void berth_guest_measured(BerthGuest *guest, const BerthDomainStats *stats);

/* --- reporting --- */

/* Rises with each change that the scheduler must hear of. */
guint64 berth_guest_serial(const BerthGuest *guest);
/* The scheduler has answered what was true at SERIAL. */
void berth_guest_set_reported(BerthGuest *guest, guint64 serial);
gboolean berth_guest_is_reported(const BerthGuest *guest);

/* Berth__GuestStatus (transfer full), to be freed with berth_message_free(). */
Berth__GuestStatus *berth_guest_status(const BerthGuest *guest);
