/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the file of the core's log, and the thread that writes it.
 *
 * Invariants: the file has whole entries, in the order in which they were handed over, and none
 * after one that it lacks; the loop never waits. */
#include "config.h"

#include "scheduler/daemon/journal_file.h"

#include "common/error.h"
#include "common/write.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Handed over and not yet written: beyond this the disk cannot keep up. */
#define WAITING_MAX_BYTES (64 << 20)

/* Stays free on the file system: this, or a tenth of it if that is less. */
#define KEEP_FREE_BYTES (G_GUINT64_CONSTANT(512) << 20)
/* And so much more than what is kept for others. */
#define KEEP_MORE_BYTES (G_GUINT64_CONSTANT(64) << 20)

/* Free space is looked at after each so many bytes. */
#define LOOK_BYTES (1u << 20)

struct BerthJournalFile {
    char *path;
    guint64 max_bytes;
    guint64 kept_bytes; /* for others, on the file system */
    GThread *thread;
    GAsyncQueue *texts; /* GString; an empty one is the end */
    gint waiting_bytes; /* atomic */
    gint has_ended;     /* atomic: nothing more is to be handed over */
    /* Of the thread alone. */
    int fd; /* -1 = ended */
    guint64 written_bytes;
    guint64 looked_at_bytes;
};

/* --- the thread --------------------------------------------------------------------------------- */

static void end(BerthJournalFile *journal, const char *why)
{
    g_atomic_int_set(&journal->has_ended, TRUE);
    if (journal->fd < 0)
        return;
    g_warning(
        "the journal %s ends here: %s. Nothing else is affected; it begins anew when berthd is "
        "started again",
        journal->path, why);
    /* Half an entry would not be one. */
    if (ftruncate(journal->fd, (off_t)journal->written_bytes) != 0)
        g_debug("cannot cut %s: %s", journal->path, g_strerror(errno));
    close(journal->fd);
    journal->fd = -1;
}

static gboolean has_room(BerthJournalFile *journal)
{
    struct statvfs status;
    if (journal->looked_at_bytes > journal->written_bytes)
        return TRUE;
    journal->looked_at_bytes = journal->written_bytes + LOOK_BYTES;
    if (fstatvfs(journal->fd, &status) != 0)
        return TRUE;
    guint64 all = (guint64)status.f_blocks * status.f_frsize;
    guint64 stays = MAX(MIN(KEEP_FREE_BYTES, all / 10), journal->kept_bytes + KEEP_MORE_BYTES);
    return (guint64)status.f_bavail * status.f_frsize >= stays + LOOK_BYTES;
}

static void write_text(BerthJournalFile *journal, const GString *text)
{
    if (journal->fd < 0)
        return;
    if (journal->written_bytes + text->len > journal->max_bytes) {
        end(journal, "it is as large as [berthd] journal_max allows");
    } else if (!has_room(journal)) {
        end(journal, "its file system has hardly any room left");
    } else if (!berth_write_all(journal->fd, text->str, text->len)) {
        g_autofree char *why = g_strdup_printf("it cannot be written: %s", g_strerror(errno));
        end(journal, why);
    } else {
        journal->written_bytes += text->len;
    }
}

static gpointer run(gpointer data)
{
    BerthJournalFile *journal = data;
    for (;;) {
        GString *text = g_async_queue_pop(journal->texts);
        gsize length = text->len;
        if (g_atomic_int_get(&journal->has_ended))
            end(journal, "its disk does not keep up with what berthd decides");
        write_text(journal, text);
        g_string_free(text, TRUE);
        if (length == 0)
            return NULL;
        g_atomic_int_add(&journal->waiting_bytes, -(gint)length);
    }
}

/* --- the loop ----------------------------------------------------------------------------------- */

static int make_file(const char *path, GError **error)
{
    g_autofree char *old = g_strconcat(path, ".1", NULL);
    if (g_rename(path, old) != 0 && errno != ENOENT) {
        berth_set_error_errno(error, errno, "cannot rename %s to %s", path, old);
        return -1;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        berth_set_error_errno(error, errno, "cannot create %s", path);
    return fd;
}

BerthJournalFile *berth_journal_file_open(const char *path, guint64 max_bytes, guint64 kept_bytes,
                                          GError **error)
{
    int fd = make_file(path, error);
    if (fd < 0)
        return NULL;
    BerthJournalFile *journal = g_new0(BerthJournalFile, 1);
    journal->path = g_strdup(path);
    journal->max_bytes = max_bytes / 2;
    journal->kept_bytes = kept_bytes;
    journal->fd = fd;
    journal->texts = g_async_queue_new();
    journal->thread = g_thread_new("journal", run, journal);
    return journal;
}

void berth_journal_file_close(BerthJournalFile *journal)
{
    if (!journal)
        return;
    g_async_queue_push(journal->texts, g_string_new(NULL));
    g_thread_join(journal->thread);
    g_async_queue_unref(journal->texts);
    if (journal->fd >= 0)
        close(journal->fd);
    g_free(journal->path);
    g_free(journal);
}

GString *berth_journal_file_begin(BerthJournalFile *journal)
{
    if (!journal || g_atomic_int_get(&journal->has_ended))
        return NULL;
    return g_string_sized_new(256);
}

void berth_journal_file_commit(BerthJournalFile *journal, GString *text)
{
    gsize length = text->len;
    g_return_if_fail(length > 0);
    if (length > WAITING_MAX_BYTES ||
        g_atomic_int_add(&journal->waiting_bytes, (gint)length) > WAITING_MAX_BYTES) {
        /* One that is left out is the end: the thread says so when it comes to the next. */
        g_atomic_int_set(&journal->has_ended, TRUE);
        g_string_free(text, TRUE);
        return;
    }
    g_async_queue_push(journal->texts, text);
}
