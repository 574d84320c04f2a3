/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A checkpoint of a running guest on its way: between guest_checkpoint.c, whose it is, and guest_save.c, which asks libvirt. */

#include "nodeagent/checkpoint_worker.h"
#include "nodeagent/guest_private.h"

typedef struct {
    BerthGuestCheckpointFunc func;
    gpointer user_data;
} Answer;

struct BerthGuestCheckpoint {
    BerthGuest *guest;
    char *checkpoint_id;
    char *disk_id;
    guint64 space_bytes;
    gboolean stops;   /* it is to stand still after it */
    gboolean frozen;  /* it stood still before, and is to */
    gboolean hurries; /* its node needs what it has */
    guint32 signal;   /* to its command first; 0 = none, or it has got it */
    guint32 signal_sec;
    gboolean is_unsignalled; /* its guest did not listen for long enough */
    GArray *answers;         /* Answer */
    BerthMemoryPipe *pipe;
    gboolean is_waiting; /* for its command, which gets ready */
    gboolean
        is_preparing; /* that, or libvirt measures it, or stops it, before it is asked to save it */
    gboolean is_saving;   /* libvirt was asked to */
    gboolean is_aborting; /* libvirt was asked to let go of it */
    gboolean is_given_up; /* somebody does not want it any more */
    gboolean is_holding;  /* libvirt was asked to stop it for the rest, and has not answered */
    gboolean is_to_go;    /* ... upon which it is let go */
    gboolean is_letting_go;
    gboolean is_let_go;  /* its vCPUs are as they are to be afterwards, if it comes about */
    gboolean is_filled;  /* the worker has come to its end */
    gboolean has_run;    /* though it stood still before, and is to: so that it can be saved */
    guint serial;        /* of the guest's checkpoints */
    guint source;        /* the end of its waiting, or the next try to let it go */
    guint look_source;   /* the next look at how far libvirt is */
    guint abort_source;  /* libvirt is told once more to let go of it */
    gint64 stopped_usec; /* monotonic: since when it stands still; 0 = it does not */
    guint64 taken_usec;  /* the instant */
    guint64 pause_usec;  /* for which it stood still */
    char *domain_xml;    /* as libvirt has saved it */
    Berth__Usage usage;  /* up to it */
    guint64 log_bytes[BERTH_N_STREAMS];
    BerthCheckpointWriter *writer; /* filled, and to be committed */
    GBytes *record;                /* instead: it was committed before */
    GError *error;                 /* what went wrong */
};
typedef struct BerthGuestCheckpoint Checkpoint;

/* --- guest_checkpoint.c --- */

/* Something has come to its end: it goes on if nothing is left of that. CHECKPOINT may be no more. */
void berth_checkpoint_proceed(Checkpoint *checkpoint);
/* ERROR (transfer full): the first counts, but that of storage, for which libvirt fails, more. */
void berth_checkpoint_fail(Checkpoint *checkpoint, GError *error, gboolean is_cause);
/* Of libvirt's end. */
void berth_checkpoint_tell_worker(Checkpoint *checkpoint, gboolean ok);

/* --- guest_save.c --- */

gboolean berth_checkpoint_can_go_on(const Checkpoint *checkpoint);
/* (transfer full) */
GError *berth_checkpoint_not_wanted(const Checkpoint *checkpoint);
/* libvirt is asked, one thing after the other, until the guest is saved. */
void berth_checkpoint_begin_save(Checkpoint *checkpoint);
/* It has not come to a snapshot, and will not. ERROR (transfer full). */
void berth_checkpoint_give_up(Checkpoint *checkpoint, GError *error);
/* libvirt, which saves it, is to let go of it. */
void berth_checkpoint_abort_save(Checkpoint *checkpoint);
/* News of the worker. */
void berth_checkpoint_stalled(gpointer checkpoint);
/* It is as it is to be from now on: it goes on, or stands still on. */
void berth_checkpoint_let_go(Checkpoint *checkpoint);
