/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the one source of a main context for all of its connections.
 *
 * Invariants: what is ready is taken one by one, so that whoever is called may run the loop himself, and may end any watch or timer;
 * a direction is told of once for each time that it is waited for. */
#include "common/rpc_poll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

typedef struct {
    GSource base;
    BerthRpcPoll *poll; /* NULL = it is gone */
} PollSource;

struct BerthRpcPoll {
    guint refs;
    GMainContext *context;
    GSource *source;
    int epoll;
    guint watches;
    GQueue queue;      /* BerthRpcDirection.link: to be called at the next turn */
    GSequence *timers; /* BerthRpcTimer, by when they are due */
};

/* --- one for each context --------------------------------------------------------------------- */

static GMutex lock;
static GHashTable *polls; /* GMainContext -> BerthRpcPoll */

static gboolean prepare(GSource *source, gint *out_timeout)
{
    const BerthRpcPoll *poll = ((PollSource *)source)->poll;
    *out_timeout = -1;
    return poll != NULL && poll->queue.length > 0;
}

static gboolean dispatch(GSource *source, GSourceFunc func, gpointer data);

static GSourceFuncs source_funcs = {.prepare = prepare, .dispatch = dispatch};

static BerthRpcPoll *poll_new(GMainContext *context)
{
    BerthRpcPoll *poll = g_new0(BerthRpcPoll, 1);
    poll->context = context;
    poll->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (poll->epoll < 0)
        g_error("cannot make an epoll instance: %s", g_strerror(errno));
    poll->timers = g_sequence_new(NULL);
    poll->source = g_source_new(&source_funcs, sizeof(PollSource));
    ((PollSource *)poll->source)->poll = poll;
    g_source_set_can_recurse(poll->source, TRUE);
    g_source_add_unix_fd(poll->source, poll->epoll, G_IO_IN);
    g_source_attach(poll->source, context);
    return poll;
}

BerthRpcPoll *berth_rpc_poll_ref(GMainContext *context)
{
    g_mutex_lock(&lock);
    if (polls == NULL)
        polls = g_hash_table_new(NULL, NULL);
    BerthRpcPoll *poll = g_hash_table_lookup(polls, context);
    if (poll == NULL) {
        poll = poll_new(context);
        g_hash_table_insert(polls, context, poll);
    }
    poll->refs++;
    g_mutex_unlock(&lock);
    return poll;
}

void berth_rpc_poll_unref(BerthRpcPoll *poll)
{
    g_mutex_lock(&lock);
    gboolean is_last = --poll->refs == 0;
    if (is_last)
        g_hash_table_remove(polls, poll->context);
    g_mutex_unlock(&lock);
    if (!is_last)
        return;
    ((PollSource *)poll->source)->poll = NULL;
    g_source_destroy(poll->source);
    g_source_unref(poll->source);
    g_sequence_free(poll->timers);
    close(poll->epoll);
    g_free(poll);
}

/* --- sockets ---------------------------------------------------------------------------------- */

void berth_rpc_watch_start(BerthRpcWatch *watch, BerthRpcPoll *poll, int fd)
{
    struct epoll_event event = {.events = EPOLLONESHOT, .data.ptr = watch};
    *watch = (BerthRpcWatch){.poll = poll, .fd = fd};
    if (epoll_ctl(poll->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        g_error("cannot watch a socket: %s", g_strerror(errno));
    poll->watches++;
}

/* Where nothing is waited for nothing is told, but errors and an end of both directions: each once. */
static void set_events(BerthRpcWatch *watch, guint32 events)
{
    struct epoll_event event = {.events = events | EPOLLONESHOT, .data.ptr = watch};
    watch->events = events;
    if (epoll_ctl(watch->poll->epoll, EPOLL_CTL_MOD, watch->fd, &event) != 0)
        g_error("cannot watch a socket: %s", g_strerror(errno));
}

static void unqueue(BerthRpcWatch *watch, BerthRpcDirection *direction)
{
    if (direction->is_queued)
        g_queue_unlink(&watch->poll->queue, &direction->link);
    direction->is_queued = FALSE;
}

void berth_rpc_watch_wait(BerthRpcWatch *watch, BerthRpcDirection *direction, gboolean now,
                          BerthRpcPollFunc func, gpointer data)
{
    unqueue(watch, direction);
    direction->func = func;
    direction->data = data;
    if (now) {
        direction->is_queued = TRUE;
        direction->link = (GList){.data = direction};
        g_queue_push_tail_link(&watch->poll->queue, &direction->link);
    } else {
        set_events(watch, watch->events | (direction == &watch->in ? EPOLLIN : EPOLLOUT));
    }
}

void berth_rpc_watch_wait_over(BerthRpcWatch *watch, BerthRpcPollFunc func, gpointer data)
{
    watch->over = func;
    watch->over_data = data;
    set_events(watch, watch->events);
}

void berth_rpc_watch_end(BerthRpcWatch *watch)
{
    if (watch->poll == NULL || watch->fd < 0)
        return;
    unqueue(watch, &watch->in);
    unqueue(watch, &watch->out);
    epoll_ctl(watch->poll->epoll, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->poll->watches--;
    watch->fd = -1;
    watch->in.func = watch->out.func = watch->over = NULL;
}

static void call(BerthRpcDirection *direction)
{
    BerthRpcPollFunc func = direction->func;
    direction->func = NULL;
    if (func != NULL)
        func(direction->data);
}

static void call_over(BerthRpcWatch *watch)
{
    BerthRpcPollFunc func = watch->over;
    watch->over = NULL;
    if (func != NULL)
        func(watch->over_data);
}

/* The other direction is waited for on, and told of next time. */
static void tell(BerthRpcWatch *watch, guint32 events)
{
    gboolean is_over = (events & (EPOLLERR | EPOLLHUP)) != 0;
    gboolean is_in = (watch->events & EPOLLIN) != 0 && (is_over || (events & EPOLLIN) != 0);
    gboolean is_out = (watch->events & EPOLLOUT) != 0 && (is_over || (events & EPOLLOUT) != 0);
    guint32 left = watch->events & ~(is_in ? EPOLLIN : is_out ? EPOLLOUT : 0u);
    watch->events = left;
    if (left != 0)
        set_events(watch, left);
    if (is_in)
        call(&watch->in);
    else if (is_out)
        call(&watch->out);
    else if (is_over)
        call_over(watch);
}

static gboolean take_ready(BerthRpcPoll *poll)
{
    struct epoll_event event;
    int n;
    do
        n = epoll_wait(poll->epoll, &event, 1, 0);
    while (n < 0 && errno == EINTR);
    if (n == 1)
        tell(event.data.ptr, event.events);
    return n == 1;
}

static gboolean take_queued(BerthRpcPoll *poll)
{
    GList *link = g_queue_pop_head_link(&poll->queue);
    if (link == NULL)
        return FALSE;
    BerthRpcDirection *direction = link->data;
    direction->is_queued = FALSE;
    call(direction);
    return TRUE;
}

/* --- time limits ------------------------------------------------------------------------------ */

static gint compare_timers(gconstpointer a, gconstpointer b, gpointer unused)
{
    const BerthRpcTimer *left = a;
    const BerthRpcTimer *right = b;
    return left->due_usec < right->due_usec ? -1 : left->due_usec > right->due_usec;
}

static void arm(BerthRpcPoll *poll)
{
    GSequenceIter *first = g_sequence_get_begin_iter(poll->timers);
    const BerthRpcTimer *timer = g_sequence_iter_is_end(first) ? NULL : g_sequence_get(first);
    g_source_set_ready_time(poll->source, timer != NULL ? timer->due_usec : -1);
}

void berth_rpc_poll_timer_stop(BerthRpcTimer *timer)
{
    if (timer->place == NULL)
        return;
    g_sequence_remove(timer->place);
    timer->place = NULL;
    arm(timer->poll);
}

static void put(BerthRpcTimer *timer, gint64 now_usec)
{
    timer->due_usec = now_usec + (gint64)timer->interval_msec * 1000;
    timer->place = g_sequence_insert_sorted(timer->poll->timers, timer, compare_timers, NULL);
    arm(timer->poll);
}

void berth_rpc_poll_timer_start(BerthRpcPoll *poll, BerthRpcTimer *timer, guint msec,
                                BerthRpcPollFunc func, gpointer data)
{
    berth_rpc_poll_timer_stop(timer);
    *timer = (BerthRpcTimer){.poll = poll, .interval_msec = msec, .func = func, .data = data};
    put(timer, g_get_monotonic_time());
}

/* It is put again first: who is called may stop it, and be gone with it. */
static gboolean take_due(BerthRpcPoll *poll, gint64 now_usec)
{
    GSequenceIter *first = g_sequence_get_begin_iter(poll->timers);
    BerthRpcTimer *timer = g_sequence_iter_is_end(first) ? NULL : g_sequence_get(first);
    if (timer == NULL || timer->due_usec > now_usec)
        return FALSE;
    berth_rpc_poll_timer_stop(timer);
    put(timer, now_usec);
    timer->func(timer->data);
    return TRUE;
}

/* --- a turn ----------------------------------------------------------------------------------- */

static gboolean dispatch(GSource *source, GSourceFunc func, gpointer data)
{
    PollSource *own = (PollSource *)source;
    gint64 now_usec = g_source_get_time(source);
    while (own->poll != NULL && take_due(own->poll, now_usec)) {
        /* in their order */
    }
    for (guint left = own->poll != NULL ? own->poll->queue.length : 0;
         left > 0 && own->poll != NULL && take_queued(own->poll); left--) {
        /* those that were there: what they queue has the next turn */
    }
    /* One by one, and all that were ready, whose order is that in which they became so: were some of them left, time
     * limits would pass over sockets that have long had something to read. */
    for (guint left = own->poll != NULL ? own->poll->watches : 0;
         left > 0 && own->poll != NULL && take_ready(own->poll); left--) {
        /* who is ready again has the next turn */
    }
    return G_SOURCE_CONTINUE;
}
