/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For the files that a guest is made of (guest*.c, and reports and checks of it), and tests. */

#include "common/backoff.h"
#include "nodeagent/convergence.h"
#include "nodeagent/guest.h"
#include "nodeagent/guest_channel.h"
#include "nodeagent/rates.h"
#include "nodeagent/seen_clients.h"

typedef void (*BerthGuestThen)(BerthGuest *guest);
typedef struct BerthGuestCheckpoint BerthGuestCheckpoint;
typedef struct BerthGuestRestore BerthGuestRestore;

struct BerthGuest {
    const BerthGuestContext *context;
    BerthGuestId id;
    char *name;
    char *channel_path;
    char *console_path;
    BerthGuestPhaseOnNode phase;
    BerthGuestPhaseOnNode last_phase; /* before it began to fail or to be released */

    /* What was asked for. */
    Berth__StartGuestRequest *request; /* NULL: adopted, and not asked for again */
    BerthResources limits;
    char *disk_id; /* NULL: not known */
    char *log_id;  /* NULL: not known */
    gboolean is_adopted;
    gboolean stands_restored; /* and has not gone on yet: guest_restore.c */
    gboolean is_let_go;       /* which libvirt was asked for */
    guint go_on_source;       /* ... and is to be asked again */
    gboolean is_stray;        /* nobody's: what it puts out is dropped */
    gboolean had_run; /* an agent before us, or a channel that is closed, may have told it to run */

    grefcount refs;     /* the owner's, and one for each operation under way */
    gboolean is_closed; /* by its owner: operations that end change nothing any more */

    /* The operation under way. */
    GCancellable *cancellable; /* triggered when it is closed */
    gboolean is_busy;
    gboolean break_wanted;
    gboolean release_wanted;
    gboolean may_have_domain; /* its creation was tried */
    gboolean domain_is_up;    /* as far as libvirt has told */
    gboolean domain_was_up;
    gboolean
        is_given_up; /* its domain is being ended for want of memory, which the scheduler has not asked for */
    gboolean is_clean; /* disk and files are removed; it is forgotten when its output is durable */
    BerthDiskSource *disk;
    guint retry_source;
    BerthBackoff retry;
    guint clients_source;       /* its disk's clients are to be asked for again */
    BerthBackoff clients_retry; /* nobody is known */
    BerthBackoff clients_pace;  /* what is known does not change */
    GArray *start_answers;      /* Answer */
    GArray *release_answers;    /* Answer */
    GError *start_error;
    BerthFault start_fault;

    /* guest_freeze.c */
    gboolean thaws_with_resize; /* guest_resize.c */
    gboolean is_frozen;         /* its vCPUs stand still, because ... */
    gboolean freeze_wanted;     /* ... they are to; or not any more */
    gboolean is_freezing;       /* libvirt was asked for either, and has not answered */
    GArray *freeze_answers;     /* Answer */

    /* guest_leave.c */
    gboolean is_leaving;          /* or may be, until libvirt has been seen to have let go of it */
    gboolean is_followed;         /* ... for an agent before us */
    gboolean may_be_moving;       /* likewise, as libvirt has not said otherwise yet */
    guint migration_looks;        /* that have failed, as to whether it is */
    BerthMigrationTarget *target; /* where it is being moved to; NULL: not known */
    gboolean is_held;             /* it is emulated, and its vCPUs stand still for that */
    gboolean stays;               /* somebody does not want it moved any more */
    gboolean is_pressed_to_leave; /* its node needs what it has */
    gboolean may_have_left;       /* libvirt moves it, or may have done so */
    gboolean has_left;            /* its domain is another node's ... */
    gboolean was_sent;            /* ... and an agent has sent it there */
    GError *stay_error;           /* why it stays, if it does; NULL: that is not asked */
    gint64 stay_usec;             /* monotonic: since when it is */
    BerthMigrationState migration;
    gint64 migration_usec; /* since when; 0 = its memory is not being copied */
    BerthConvergence convergence;
    guint migration_source;    /* the next look at it */
    guint migration_serial;    /* of the move that is looked at */
    gboolean migration_stalls; /* given up */
    GArray *leave_answers;     /* Answer */

    /* It stands still, and may have done so since it was saved: QEMU lets nobody save or move it before it has run. */
    gboolean may_be_saved;
    /* guest_checkpoint.c */
    BerthGuestCheckpoint *checkpoint; /* that is being taken */
    guint checkpoint_serial;          /* of the latest */

    /* guest_restore.c */
    gboolean is_to_restore;          /* it was asked to be */
    guint restore_signal;            /* its command is to get it when it listens; 0 = none */
    BerthGuestRestore *restore;      /* its memory is on its way to libvirt */
    Berth__CheckpointRecord *record; /* that it goes on from; until its command runs */

    /* guest_arrive.c */
    gboolean is_being_taken;
    gboolean is_to_stand;
    gboolean is_to_wait;  /* it is not to go on yet */
    GArray *take_answers; /* Answer */
    gboolean keep_disk;   /* it is not this node's to remove */

    /* guest_resize.c */
    guint64 balloon_mib; /* with LIMITS: what it had when the last resize was done */
    gboolean is_opportunistic;
    gboolean is_resizing;        /* it is not known to have ... */
    BerthDomainSize size_wanted; /* ... this */
    gboolean is_size_asked;      /* libvirt was asked for it, and has not answered */
    gboolean asks_size_again;    /* something has changed since it was */
    guint64 resized_mib;         /* what it had of its memory at the last answer */
    guint64 needed_mib;          /* what it used of it at its last report, or G_MAXUINT64 */
    guint64
        used_then_mib; /* what its processes used at its first report since that is wanted, or G_MAXUINT64 */
    guint silences; /* answers in a row, each after a pause, of which nothing had come */
    guint resize_source;
    GError *resize_error;   /* why it is to have again what it had; NULL: it is not */
    gboolean may_settle;    /* who asks can be told that it has something else */
    gboolean settles;       /* that is wanted now ... */
    gboolean has_settled;   /* ... and came of it */
    GArray *resize_answers; /* Answer */

    /* guest_hold.c */
    gint64 held_usec;         /* since when it is held back, by the host's clock; 0 = it is not */
    gint64 let_go_usec;       /* when it was let go last, monotonic; 0 = it was not held back */
    gboolean hold_is_unknown; /* an agent before us, or what has failed, may have held it back */
    gboolean
        share_is_unknown; /* likewise; or it has hurried, and libvirt was not told yet that it does so no more */
    gboolean hold_wanted;
    gboolean hurries;             /* its memory is to be copied at the weight of others */
    BerthGuestThen hurry_then;    /* what waits for libvirt's answer to that; NULL: nothing */
    gboolean hold_asked;          /* of libvirt, the last time: whether it is held back, ... */
    BerthDomainShare share_asked; /* ... and what for that, ... */
    gboolean asks_hold;           /* ... which has not answered */

    /* The conversation. */
    BerthLogWriter *writer;
    BerthGuestChannel *channel;
    BerthGuestFiles *files; /* until the channel takes them */
    guint boot_source;
    gint64 boot_deadline_usec; /* monotonic */
    gint64 boot_look_usec;     /* monotonic: since when storage is asked; 0 = it is not */
    gboolean has_booted;       /* it has answered ... */
    gboolean goes_on;          /* ... and its command ran by then */
    guint stop_source;
    guint stop_signal;   /* 0 = it is not being stopped */
    guint64 kill_bytes;  /* output taken up to its SIGKILL, guest_talk.c's */
    guint64 kill_looked; /* ... when its end was looked for last */

    /* guest_measure.c */
    BerthQemuCounters *counters; /* NULL: it was not looked at yet */
    BerthRates rates;
    BerthPace pace;        /* of looking at it from its host */
    BerthPace memory_pace; /* of its own measurements */
    BerthPaceMark mark;
    gboolean is_near;        /* a limit, whether or not that is news */
    gboolean is_memory_near; /* ... of its memory */
    gboolean is_usage_due;   /* it has gone on, and has not said since what it uses */
    guint64 asked_mib;       /* of its memory, that its host held when it measured itself last */

    /* What there is to report. */
    guint64 serial;
    guint64 reported_serial;
    guint64 start_usec;
    guint64 end_usec;
    Berth__Exit *exit; /* owned; NULL until it has ended */
    gboolean is_end_measured;
    Berth__Reason reason;
    char *reason_text;
    char *console_tail;
    BerthSeenClients clients;
    guint64 clients_serial; /* the change that told of them */
    Berth__Usage usage;
};

/* --- guest.c --- */

/* For an operation's callback: its guest, to be unreffed at the end. */
BerthGuest *berth_guest_ref(BerthGuest *guest);
void berth_guest_unref(BerthGuest *guest);
typedef BerthGuest BerthGuestRef;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestRef, berth_guest_unref)

/* Takes STEP: the next phase, and what is to be done on entering it. */
void berth_guest_take_step(BerthGuest *guest, BerthGuestStep step);
/* Takes the step that waited for its output to be durable, if it is. */
void berth_guest_check_drained(BerthGuest *guest);
/* No good end is to be expected, because of REASON. */
void berth_guest_break(BerthGuest *guest, Berth__Reason reason, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* What is to be reported has changed. */
void berth_guest_touch(BerthGuest *guest);

/* --- guest_domain.c: making and destroying, and the answers to who asked for it --- */

void berth_guest_enter_preparing(BerthGuest *guest);
/* Its start has failed. ERROR (transfer full). */
void berth_guest_fail_start(BerthGuest *guest, BerthFault fault, GError *error);
BerthFault berth_guest_fault_of_storage(const GError *error);
void berth_guest_enter_defining(BerthGuest *guest);
/* Destroys the domain, however often that takes: FAILING, UNDOING, RELEASING. */
void berth_guest_destroy_domain(BerthGuest *guest);
void berth_guest_enter_cleaning(BerthGuest *guest);
void berth_guest_add_answer(GArray *answers, BerthGuestAnswerFunc func, gpointer user_data);
void berth_guest_give_answers(GArray *answers, BerthFault fault, const GError *error);
GArray *berth_guest_answers_new(void);

/* --- guest_freeze.c --- */

/* It is to be ended, for which it has to run. */
void berth_guest_thaw_to_end(BerthGuest *guest);
/* It leaves no more, or has left, or a checkpoint has come to its end: what was asked for meanwhile is done, or
 * answered. */
void berth_guest_freeze_go_on(BerthGuest *guest);

/* What is asked of libvirt about one move or checkpoint, of that number; its answer may come when there is another. */
typedef struct {
    BerthGuest *guest; /* a reference, which who has the answer takes */
    guint serial;
} BerthGuestLook;
BerthGuestLook *berth_guest_look_new(BerthGuest *guest, guint serial);
/* Its vCPUs stand still, or run: then it has run since it was saved. */
void berth_guest_set_stands(BerthGuest *guest, gboolean stands);

/* --- guest_checkpoint.c --- */

/* TRUE: for a checkpoint or a migration, its vCPUs are not to be touched. */
gboolean berth_guest_vcpus_are_taken(const BerthGuest *guest);
/* There is to be no checkpoint: it is being ended, or the agent is. */
void berth_guest_checkpoint_not(BerthGuest *guest);
/* Its guest listens. */
void berth_guest_checkpoint_answered(BerthGuest *guest);

/* --- guest_restore.c --- */

/* Its disk and logs as they were; then its domain. Steps follow. */
void berth_guest_restore_disk(BerthGuest *guest);
void berth_guest_restore_domain(BerthGuest *guest);
/* It is released or stopped, or the agent ends: its memory is not waited for. */
void berth_guest_restore_not(BerthGuest *guest);
/* It is stored who has its disk open, or nobody has an address: it goes on, if it was restored and has not yet. */
void berth_guest_let_restored_go(BerthGuest *guest);
/* It was adopted, and an agent before us has restored it: it STANDS_STILL yet, or has gone on. */
void berth_guest_adopt_restored(BerthGuest *guest, gboolean stands_still);

/* --- guest_leave.c --- */

/* Its domain is another node's now, or may be: nobody has seen its end. */
void berth_guest_domain_left(BerthGuest *guest);
/* An end of its domain that nobody has seen, or that libvirt tells of itself, may be a departure. */
gboolean berth_guest_may_have_left(const BerthGuest *guest);
/* It was adopted: is libvirt moving it for an agent before us? */
void berth_guest_follow_move(BerthGuest *guest);
gboolean berth_guest_is_leaving(const BerthGuest *guest);

/* --- guest_hold.c --- */

/* Its memory is to be copied, for a move or a checkpoint: with the CPU weight of a guest that is not in slack, and its vCPUs
 * held back, if it is ASKED to hurry or stands still meanwhile, as one does that is emulated. THEN when that is so, or could
 * not be done: from inside for a guest that needs it not, else also of one that is closed by then. One that is not in slack is let go
 * before THEN, as nothing could do so meanwhile. */
void berth_guest_hurry(BerthGuest *guest, gboolean asked, BerthGuestThen then);
/* That is over, here or on the host that it comes from: it has its own weight again. Does nothing if it is known not to have
 * hurried. */
void berth_guest_hurry_no_more(BerthGuest *guest);

/* --- guest_resize.c --- */

/* Its memory is not being copied any more: what was put off for that is asked for. */
void berth_guest_resize_go_on(BerthGuest *guest);
/* Of a report of the guest. */
void berth_guest_note_memory(BerthGuest *guest, guint64 total_mib, guint64 available_mib);
/* It has a domain no more: nothing of it can be changed. */
void berth_guest_end_resize(BerthGuest *guest);

/* --- guest_talk.c: the channel, and the timers of the command's life --- */

/* CLIENTS have its disk open. */
void berth_guest_note_clients(BerthGuest *guest, char **clients);
/* The domain runs: connects, at once or when the logs were looked at. */
void berth_guest_start_talking(BerthGuest *guest);
/* It was restored, and runs: it is to answer within its deadline. */
void berth_guest_expect_answer(BerthGuest *guest);
/* Deadlines do not matter any more. */
void berth_guest_stop_timers(BerthGuest *guest);
/* FALSE: nobody has told it to run its command. Not known of an adopted one: TRUE. */
gboolean berth_guest_may_have_begun(const BerthGuest *guest);
/* The channel is closed too. Not from inside its callbacks. */
void berth_guest_stop_talking(BerthGuest *guest);
/* Gives the channel the task of guest->request, and the guest its deadline. */
void berth_guest_give_task(BerthGuest *guest);
void berth_guest_begin_stop(BerthGuest *guest, guint grace_msec);

/* --- guest_disk.c --- */

/* Makes the disk of guest->request; one that a crashed start has left is made anew. */
void berth_guest_make_disk(BerthGuest *guest, GAsyncReadyCallback callback);
BerthDiskSource *berth_guest_make_disk_finish(GAsyncResult *result, GError **error);
void berth_guest_remove_disk(BerthGuest *guest, GAsyncReadyCallback callback);
gboolean berth_guest_remove_disk_finish(GAsyncResult *result, GError **error);
/* Who has the disk open; to be reported while the guest is well. */
void berth_guest_find_clients(BerthGuest *guest, GAsyncReadyCallback callback);
/* But for the agent's own. */
char **berth_guest_find_clients_finish(BerthGuest *guest, GAsyncResult *result, GError **error);
/* Does storage, and the disk in it, answer now? */
void berth_guest_check_storage(BerthGuest *guest, GAsyncReadyCallback callback);
gboolean berth_guest_check_storage_finish(GAsyncResult *result, GError **error);
/* For a worker: of LOG_ID's streams, in their order. */
gboolean berth_guest_log_sizes(BerthStorage *storage, const char *log_id,
                               guint64 out_sizes[BERTH_N_STREAMS], GError **error);
/* How much of its output the logs have: guint64[BERTH_N_STREAMS] (transfer full). */
void berth_guest_size_logs(BerthGuest *guest, GAsyncReadyCallback callback);
guint64 *berth_guest_size_logs_finish(GAsyncResult *result, GError **error);

/* --- guest_measure.c --- */

/* It has said what it uses. */
void berth_guest_note_usage(BerthGuest *guest);
/* So often it is to say so. */
guint berth_guest_usage_msec(const BerthGuest *guest);
/* It is to say now what it uses, and often for a while. */
void berth_guest_wake(BerthGuest *guest);
/* It has answered, and may have been elsewhere, stood still, or had another agent: the same, and the scheduler is told soon of what it
 * says then. */
void berth_guest_ask_anew(BerthGuest *guest);
/* What its QEMU did before says nothing of its command, and is told no more. */
void berth_guest_begin_rates(BerthGuest *guest);
/* Its vCPUs go on: what they do is measured from now on. */
void berth_guest_begin_rates_now(BerthGuest *guest);
/* Its memory may have been copied, for which QEMU reads all of it, also what is free: the guest is told what its host holds for it
 * (berth_guest_channel_give_back()). */
void berth_guest_tell_resident(BerthGuest *guest);
/* It may have more vCPUs, or other control groups. */
void berth_guest_find_threads(BerthGuest *guest);

/* --- guest_status.c --- */

/* The guest's own measurement; what cannot be is not believed. */
void berth_guest_take_usage(BerthGuest *guest, const Berth__Usage *usage);
void berth_guest_take_exit(BerthGuest *guest, const Berth__Exit *exit);
