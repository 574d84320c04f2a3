/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* nodeagent/hypervisor/hypervisor.h without libvirt: domains in memory, and a connection that is as bad
 * as the test wants. A program that links it gets it instead of the real one. What is asked is
 * answered from the loop, in order. */

#include "nodeagent/hypervisor/hypervisor.h"

/* Of every domain, as long as the test says nothing else; larger than the kernel gives to a process. */
#define FAKE_HYPERVISOR_PID 2000000000u

struct BerthHypervisor {
    const BerthHypervisorFuncs *funcs;
    gpointer user_data;
    gboolean is_connected;
    GHashTable *domains; /* name -> BerthDomain */
    GQueue answers;      /* answers due */
    gboolean is_slow;    /* they are given by fake_hypervisor_answer() only */
    guint source;
    /* How often it was asked. */
    guint creates, destroys, suspends, resumes, lists, stats, domain_stats, moves, steers;
    guint resume_fails;  /* so many times from now on */
    guint traffic_stats; /* of STATS */
    guint looks, finds;  /* of what the kernel counts */
    guint saves, restores;
    const char *
        save_fails; /* why the next save does; NULL: it writes what libvirt does of an empty guest */
    const char *restore_fails; /* why the next does; NULL: it comes about */
    gboolean holds_saves;      /* until the save is called off, or made to fail */
    GTask *held_save;
    gboolean was_saved; /* what runs here has stood still since: QEMU neither saves nor moves it */
    gboolean holds_looks; /* at how far a move or a save is: the next is answered when it is let */
    GTask *held_look;
    BerthMigrationState look; /* with which it is answered */
    gboolean holds_restores;  /* until the domain is destroyed ... */
    gboolean loads;           /* ... or, as it is read, its memory ends */
    GTask *held_restore;
    guint holds, lets_go;        /* how often a domain was held back, and let go */
    BerthDomainShare share;      /* the last that one was given */
    guint failing_holds;         /* this many more fail with UNAVAILABLE */
    guint failing_suspends;      /* this many more fail with UNAVAILABLE ... */
    gboolean knows_no_suspended; /* ... or with NOT_FOUND */
    char *destroyed;             /* name of the domain that was to be destroyed last */
    char *created_uuid;          /* of the domain that was to be made last; NULL: none was given */
    guint resizes;
    BerthDomainSize resize_wanted; /* the last time */
    guint64 resize_needed_mib;
    gboolean resize_presses;
    guint failing_resizes; /* this many more fail with FAILED_PRECONDITION */
    /* Memory that the guest has, and the least and the most that it goes along with; 0: all. */
    guint64 memory_mib, least_mib, most_mib;
    /* What goes wrong: this many lists more fail with UNAVAILABLE. */
    guint failing_lists;
    /* A domain that it makes is answered for after so long, or when it is destroyed before. */
    guint slow_create_msec;
    GTask *slow_create;
    guint slow_source;
    /* A domain that is to be moved stays, because of that; NULL: it goes. */
    const char *stays;
    gboolean holds_moves; /* until it is to stay, or the move is let go */
    GTask *held_move;
    char *held_name;
    guint deaf_steers;             /* it is told so often in vain that a domain is to stay */
    guint downtime_msec;           /* that the last move was allowed; 0: it was to stay */
    BerthMigrationState migration; /* is_under_way: of a move that another process has begun */
    guint failing_looks;           /* so many more looks at a move fail with UNAVAILABLE */
    const char *secret_fails; /* why it has no secret; NULL: it has that which it is asked for */
    guint stay_looks;         /* how often it was asked whether a domain stays ... */
    guint busy_looks;         /* ... and so many times more libvirt still moves it */
    /* What is measured of every domain. */
    BerthQemuUsage counts;       /* of each domain's QEMU */
    guint64 pid;                 /* of each as well */
    gboolean paused_by_io_error; /* until it is resumed */
};

/* Of all domains that it tells of. */
#define FAKE_UUID "5f0f7d6c-3c55-4c0d-8a15-4cf5a3a0a000"

/* The one that berth_hypervisor_new() has made last. */
BerthHypervisor *fake_hypervisor(void);

/* A domain runs from now on; nobody is told. */
void fake_hypervisor_add(BerthHypervisor *fake, const BerthGuestId *id, const char *channel_path,
                         const char *console_path);
/* It was restored, and stands still or, not knowing that, goes on; nobody is told. */
void fake_hypervisor_set_restored(BerthHypervisor *fake, const BerthGuestId *id,
                                  gboolean stands_still);
/* The domain NAME says that it was restored and has not gone on. */
gboolean fake_hypervisor_stands(BerthHypervisor *fake, const char *name);
/* Its vCPUs stand still; nobody is told. */
void fake_hypervisor_set_frozen(BerthHypervisor *fake, const BerthGuestId *id);
gboolean fake_hypervisor_is_frozen(BerthHypervisor *fake, const BerthGuestId *id);
/* Likewise, since it was saved. */
void fake_hypervisor_set_saved(BerthHypervisor *fake, const BerthGuestId *id);
/* A domain that is no guest, the same. */
void fake_hypervisor_add_named(BerthHypervisor *fake, const char *name);
/* It runs no more. */
void fake_hypervisor_remove(BerthHypervisor *fake, const BerthGuestId *id);
/* Tells of it, at once. */
void fake_hypervisor_emit(BerthHypervisor *fake, const BerthGuestId *id, BerthDomainEvent event);
/* The domain is on its way here, and its memory not here yet; or has come, and stands still. Nobody is told. */
void fake_hypervisor_set_coming(BerthHypervisor *fake, const BerthGuestId *id, gboolean is_coming);
void fake_hypervisor_let_look(BerthHypervisor *fake);
/* The save that is held fails, which is answered before anything else. */
void fake_hypervisor_fail_save(BerthHypervisor *fake);
/* The move that is held goes on to its end. */
void fake_hypervisor_let_move(BerthHypervisor *fake);
/* Gives the answer that has been due for longest, if there is one; or all, and each at once from then on. */
void fake_hypervisor_answer(BerthHypervisor *fake);
void fake_hypervisor_be_quick(BerthHypervisor *fake);
/* The connection is lost, or is there again. */
void fake_hypervisor_lose(BerthHypervisor *fake);
void fake_hypervisor_connect(BerthHypervisor *fake);
