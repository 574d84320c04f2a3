/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one guest on its node, as a table. Pure: what is done on entering a phase is
 * guest.c's. At most one operation (disk, domain) of a guest is under way at a time; events that ask for
 * something (STOP, RELEASE) wait until it is done. */

typedef enum {
    BERTH_PHASE_PREPARING, /* its disk is being made */
    BERTH_PHASE_DEFINING,  /* its domain is being made */
    BERTH_PHASE_ARRIVING,  /* it runs on another node, whose libvirt may bring its domain here */
    BERTH_PHASE_BOOTING,   /* the domain runs; the command has not begun */
    BERTH_PHASE_RUNNING,   /* the command runs */
    BERTH_PHASE_ENDED,     /* the command has ended, all is durable; it waits for its release */
    BERTH_PHASE_FAILING,   /* the domain is being destroyed: no good end is to be expected */
    BERTH_PHASE_DRAINING,  /* no domain, no end seen; what it had put out is being made durable */
    BERTH_PHASE_GONE,      /* no domain, no end seen, all is durable; it waits for its release */
    BERTH_PHASE_LEFT,      /* its domain is another node's; it waits for its release */
    BERTH_PHASE_UNDOING,   /* the start failed: what was made of it is being removed */
    BERTH_PHASE_RELEASING, /* the domain is being destroyed because it is not needed any more */
    BERTH_PHASE_CLEANING,  /* no QEMU any more; disk and files are being removed */
    BERTH_PHASE_FORGOTTEN, /* nothing of it is left */
    BERTH_N_PHASES,
} BerthGuestPhaseOnNode;

typedef enum {
    BERTH_STEP_DISK_MADE,
    BERTH_STEP_DOMAIN_MADE,
    BERTH_STEP_START_FAILED, /* disk or domain could not be made */
    BERTH_STEP_STARTED,      /* the guest says that the command runs */
    BERTH_STEP_ENDED,        /* the guest says that it has ended */
    BERTH_STEP_BROKEN,    /* deadline, failure or stop without a command: no good end to expect */
    BERTH_STEP_VANISHED,  /* the domain is gone, and not because we destroyed it */
    BERTH_STEP_LEFT,      /* its domain is another node's now */
    BERTH_STEP_DESTROYED, /* our destruction of the domain is done */
    BERTH_STEP_DRAINED,   /* what it had put out is durable */
    BERTH_STEP_RELEASED,  /* its release was asked for */
    BERTH_STEP_CLEANED, /* disk and files are removed, or left to the collector; its output is durable */
    BERTH_N_STEPS,
} BerthGuestStep;

/* The phase after STEP in PHASE; PHASE itself where the step means nothing (any more). */
BerthGuestPhaseOnNode berth_guest_phase_next(BerthGuestPhaseOnNode phase, BerthGuestStep step);

const char *berth_guest_phase_name(BerthGuestPhaseOnNode phase);
