/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is done on the node itself when guests take too much of its memory. It looks at their control group, often
 * enough for the fastest growth to be seen before the margin is used up, and only while somebody is in slack: what is
 * reserved is within what is offered. Their limit is set by a worker, as the kernel may first take back what is beyond it;
 * all else is read and written in the loop, and does not block. */
#include <config.h>

#include "nodeagent/backstop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/units.h"
#include "common/work.h"
#include "common/write.h"
#include "nodeagent/guests_group.h"
#include "nodeagent/host_usage.h"

/* Faster than a guest's processes can take memory that its host must clear first: some GiB/s. */
#define GROWTH_MIB_PER_SEC 8192u
#define LOOK_MIN_MSEC      100u
/* The limit is set anew where somebody else has changed it: systemd does so when it is reloaded. */
#define LOOK_MAX_MSEC 5000u
/* Until what one who was let go takes is seen. */
#define EASE_USEC (2 * G_USEC_PER_SEC)

#define MARGIN_PART    32u
#define MARGIN_MIN_MIB 64u
#define LIMIT_PART     4u
/* Of the margin: what is left below the limit when one is ended, which takes a moment. */
#define FULL_PART 4u
/* Of the margin: with less left who takes more waits, though he has reserved it. */
#define CROWDED_PART 2u
/* Who is told of the end of a QEMU is so sooner. */
#define KILLED_USEC (10 * G_USEC_PER_SEC)
/* That is more than what a guest at rest comes to have by and by. */
#define GROWN_MIB 4u

/* For the kernel's choice when the limit is reached: one in slack before any other, and neither before what else runs on the
 * host (proc(5), oom_score_adj). */
#define OOM_IN_SLACK "800"
#define OOM_RESERVED "300"

/* Of a guest. */
typedef struct {
    guint64 pid;          /* of its QEMU: another one begins without */
    const char *score;    /* NULL: none was written */
    guint64 resident_mib; /* of its QEMU, before who takes more had to wait */
} Mark;

struct BerthBackstop {
    grefcount refs;         /* the owner's, and that of a limit that is being set */
    GCancellable *stopping; /* triggered by its owner: what ends then changes nothing */
    BerthWorkPool *pool;    /* one thread, which sets the limit */
    gboolean is_limiting;   /* ... and does so now */
    BerthBackstopLimits limits;
    BerthGuestTable *table;
    char *proc;
    BerthBackstopFunc changed;
    gpointer user_data;
    BerthGuestsGroup *group; /* NULL: not found yet */
    gboolean is_unsupported; /* it was said */
    gboolean is_swap_told;   /* likewise: that guests may be swapped out */
    BerthGuestsKills kills;  /* as they were counted last, ... */
    gboolean knows_kills;    /* ... if they were */
    guint64 unexplained;     /* of these: whose ends nobody has asked for yet ... */
    gboolean were_at_limit;  /* ... and why that was ... */
    gint64 killed_usec;      /* ... and when it was seen, monotonic */
    gboolean is_known;       /* USED_MIB is */
    gboolean is_short;
    guint64 used_mib;
    gint64 changed_usec; /* monotonic: when one was last held back or let go */
    gint64 waits_usec;   /* monotonic: since when who takes more waits for others to leave; 0: no */
    guint source;
    gint64 due_usec;    /* monotonic: when SOURCE is */
    GHashTable *marked; /* name of a guest's domain -> Mark */
};

static void backstop_unref(BerthBackstop *backstop)
{
    if (!g_ref_count_dec(&backstop->refs))
        return;
    g_clear_pointer(&backstop->group, berth_guests_group_free);
    g_hash_table_unref(backstop->marked);
    g_object_unref(backstop->stopping);
    g_free(backstop->proc);
    g_free(backstop);
}

/* --- policy --------------------------------------------------------------------------------- */

BerthBackstopLimits berth_backstop_limits(const BerthNodeConfig *config, guint64 offered_mib)
{
    guint64 margin = MAX(offered_mib / MARGIN_PART, MARGIN_MIN_MIB);
    guint64 limit = offered_mib + config->reserve_mib / LIMIT_PART;
    return (BerthBackstopLimits){
        .offered_mib = offered_mib,
        .limit_mib = config->limit_mib != 0 ? config->limit_mib : limit,
        .margin_mib = config->margin_mib != 0 ? config->margin_mib : margin,
        .patience_usec = (gint64)config->memory_patience_sec * G_USEC_PER_SEC,
    };
}

BerthBackstopStep berth_backstop_step(const BerthBackstopLimits *limits, guint64 free_mib,
                                      gint64 eased_usec)
{
    if (free_mib < limits->margin_mib)
        return BERTH_BACKSTOP_HOLD_ALL;
    if (free_mib >= 2 * limits->margin_mib && eased_usec >= EASE_USEC)
        return BERTH_BACKSTOP_LET_ONE_GO;
    return BERTH_BACKSTOP_NOTHING;
}

gboolean berth_backstop_is_full(const BerthBackstopLimits *limits, guint64 used_mib)
{
    return used_mib + limits->margin_mib / FULL_PART >= limits->limit_mib;
}

gboolean berth_backstop_is_crowded(const BerthBackstopLimits *limits, guint64 free_mib)
{
    return free_mib < limits->margin_mib / CROWDED_PART;
}

guint berth_backstop_next_msec(const BerthBackstopLimits *limits, guint64 free_mib)
{
    guint64 beyond_mib = free_mib - MIN(free_mib, limits->margin_mib);
    return (guint)CLAMP(beyond_mib * 1000 / GROWTH_MIB_PER_SEC, LOOK_MIN_MSEC, LOOK_MAX_MSEC);
}

/* --- the kernel's choice -------------------------------------------------------------------- */

static gboolean write_score(const BerthBackstop *backstop, guint64 pid, const char *score)
{
    g_autofree char *path =
        g_strdup_printf("%s/%" G_GUINT64_FORMAT "/oom_score_adj", backstop->proc, pid);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    gboolean ok = fd >= 0 && berth_write_all(fd, score, strlen(score));
    if (!ok)
        g_debug("%s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* FALSE: it has ended. proc(5): the second number of statm, in pages. */
static gboolean read_resident(const BerthBackstop *backstop, guint64 pid, guint64 *out_mib)
{
    g_autofree char *path = g_strdup_printf("%s/%" G_GUINT64_FORMAT "/statm", backstop->proc, pid);
    g_autofree char *text = NULL;
    const char *second = g_file_get_contents(path, &text, NULL, NULL) ? strchr(text, ' ') : NULL;
    if (second == NULL)
        return FALSE;
    *out_mib = g_ascii_strtoull(second + 1, NULL, 10) * (guint64)sysconf(_SC_PAGESIZE) >> 20;
    return TRUE;
}

static Mark *find_mark(const BerthBackstop *backstop, const BerthGuest *guest)
{
    return g_hash_table_lookup(backstop->marked, berth_guest_name(guest));
}

static void mark(BerthBackstop *backstop, const BerthGuest *guest)
{
    const char *score = berth_guest_is_in_slack(guest) ? OOM_IN_SLACK : OOM_RESERVED;
    Mark *has = find_mark(backstop, guest);
    guint64 pid = berth_hypervisor_pid(berth_guest_name(guest));
    if (pid == 0)
        return;
    if (has == NULL || has->pid != pid) {
        has = g_new0(Mark, 1);
        has->pid = pid;
        read_resident(backstop, pid, &has->resident_mib);
        g_hash_table_insert(backstop->marked, g_strdup(berth_guest_name(guest)), has);
    }
    if (has->score != score && write_score(backstop, pid, score))
        has->score = score;
}

static void note_resident(const BerthBackstop *backstop, const BerthGuest *guest)
{
    Mark *has = find_mark(backstop, guest);
    if (has != NULL)
        read_resident(backstop, has->pid, &has->resident_mib);
}

/* Since who does has to wait. */
static gboolean takes_more(const BerthBackstop *backstop, const BerthGuest *guest)
{
    const Mark *has = find_mark(backstop, guest);
    guint64 now_mib;
    return has != NULL && read_resident(backstop, has->pid, &now_mib) &&
           now_mib > has->resident_mib + GROWN_MIB;
}

static gboolean is_gone(gpointer name, gpointer of_it, gpointer data)
{
    return berth_guest_table_find_name(((const BerthBackstop *)data)->table, name) == NULL;
}

/* --- the group ------------------------------------------------------------------------------ */

static void say_unsupported(BerthBackstop *backstop, const GError *error)
{
    if (!backstop->is_unsupported)
        g_warning("nothing but berthd's reckoning keeps guests from taking all of this host's "
                  "memory: %s",
                  error->message);
    backstop->is_unsupported = TRUE;
}

static void find_group(BerthBackstop *backstop, const GPtrArray *guests)
{
    for (guint i = 0; i < guests->len && backstop->group == NULL; i++) {
        g_autoptr(GError) error = NULL;
        guint64 pid = berth_hypervisor_pid(berth_guest_name(g_ptr_array_index(guests, i)));
        if (pid == 0)
            continue;
        backstop->group = berth_guests_group_find(backstop->proc, pid, &error);
        if (backstop->group != NULL)
            g_message("guests take at most %" G_GUINT64_FORMAT " MiB together, in %s",
                      backstop->limits.limit_mib, berth_guests_group_path(backstop->group));
        else if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED))
            say_unsupported(backstop, error);
    }
}

typedef struct {
    BerthGuestsGroup *group;
    guint64 limit_mib;
} LimitInput;

static void limit_input_free(gpointer data)
{
    LimitInput *input = data;
    berth_guests_group_free(input->group);
    g_free(input);
}

/* On a worker: what is used already may be beyond it. */
static gpointer set_limit(gconstpointer data, GCancellable *cancellable, GError **error)
{
    const LimitInput *input = data;
    berth_guests_group_limit(input->group, input->limit_mib, error);
    return NULL;
}

/* Where they use more already, version 1 may refuse it. It is tried again. */
static void take_limit_error(BerthBackstop *backstop, const GError *error)
{
    static BerthLogLimit limit;
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        g_clear_pointer(&backstop->group, berth_guests_group_free);
    else
        berth_log_warning_limited(&limit, "%s", error->message);
}

static void on_limited(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthBackstop *backstop = data;
    g_autoptr(GError) error = NULL;
    backstop->is_limiting = FALSE;
    if (!berth_work_finish_empty(result, &error) && !g_cancellable_is_cancelled(backstop->stopping))
        take_limit_error(backstop, error);
    backstop_unref(backstop);
}

static void keep_limit(BerthBackstop *backstop)
{
    gboolean has_limit;
    g_autoptr(GError) error = NULL;
    guint64 limit_mib = backstop->limits.limit_mib;
    if (!berth_guests_group_has_limit(backstop->group, limit_mib, &has_limit, &error)) {
        take_limit_error(backstop, error);
        return;
    }
    if (has_limit || backstop->is_limiting)
        return;
    LimitInput *input = g_new(LimitInput, 1);
    *input = (LimitInput){berth_guests_group_copy(backstop->group), limit_mib};
    backstop->is_limiting = TRUE;
    g_ref_count_inc(&backstop->refs);
    berth_work_pool_run(backstop->pool, "limit the guests' memory", set_limit, input,
                        limit_input_free, NULL, 0, backstop->stopping, on_limited, backstop);
}

/* A host without swap needs nothing for that; one that gets some is warned of then. */
static void keep_from_swap(BerthBackstop *backstop)
{
    g_autoptr(GError) error = NULL;
    if (berth_guests_group_keep_from_swap(backstop->group, &error))
        return;
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        g_clear_pointer(&backstop->group, berth_guests_group_free);
    } else if (!backstop->is_swap_told && berth_host_usage_swap_mib(backstop->proc) > 0) {
        backstop->is_swap_told = TRUE;
        g_warning("guests may be swapped out by this host, and look smaller then than they are, so "
                  "that too many come here: %s; take its swap away (swapoff -a, and its lines in "
                  "/etc/fstab), or boot it with swapaccount=1",
                  error->message);
    }
}

/* Of what is offered, or may be used at most where somebody has configured that to be less. */
static guint64 left_mib(const BerthBackstop *backstop)
{
    guint64 most_mib = MIN(backstop->limits.offered_mib, backstop->limits.limit_mib);
    return most_mib - MIN(most_mib, backstop->used_mib);
}

static void measure(BerthBackstop *backstop)
{
    g_autoptr(GError) error = NULL;
    backstop->is_known = backstop->group != NULL &&
                         berth_guests_group_used(backstop->group, &backstop->used_mib, &error);
    if (error != NULL)
        g_debug("the guests' memory: %s", error->message);
}

/* --- whom the kernel has ended --------------------------------------------------------------- */

static void note_kills(BerthBackstop *backstop)
{
    BerthGuestsKills now = {0}, before = backstop->kills;
    gboolean knew = backstop->knows_kills;
    backstop->knows_kills =
        backstop->group != NULL && berth_guests_group_kills(backstop->group, &now, NULL);
    if (!backstop->knows_kills)
        return;
    backstop->kills = now;
    if (!knew || now.killed <= before.killed)
        return;
    if (g_get_monotonic_time() - backstop->killed_usec >= KILLED_USEC)
        backstop->unexplained = 0;
    backstop->unexplained += now.killed - before.killed;
    backstop->were_at_limit = now.at_limit > before.at_limit;
    backstop->killed_usec = g_get_monotonic_time();
}

const char *berth_backstop_why_killed(BerthBackstop *backstop)
{
    note_kills(backstop);
    if (g_get_monotonic_time() - backstop->killed_usec >= KILLED_USEC)
        backstop->unexplained = 0;
    if (backstop->unexplained == 0)
        return NULL;
    backstop->unexplained--;
    return backstop->were_at_limit
               ? "its node's kernel ended it, as all guests there together had come to their limit "
                 "(memory_limit in berth-node.conf(5)); an operator can have more counted for what "
                 "each takes beside its own memory (overhead in berthd.conf(5))"
               : "its node's kernel ended it, as the host had no memory left; an operator can keep "
                 "more for the host itself (memory_reserve in berth-node.conf(5))";
}

/* --- holding back --------------------------------------------------------------------------- */

/* One that boots has a deadline for that, and would fail because others have grown. */
static void hold_all(BerthBackstop *backstop, const GPtrArray *guests)
{
    for (guint i = 0; i < guests->len; i++) {
        BerthGuest *guest = g_ptr_array_index(guests, i);
        if (!berth_guest_is_in_slack(guest) || berth_guest_phase(guest) == BERTH_PHASE_BOOTING)
            continue;
        berth_guest_hold_back(guest, TRUE);
        backstop->changed_usec = g_get_monotonic_time();
    }
}

/* The largest, as that is enough soonest. No other before its memory is back. */
static void end_one(BerthBackstop *backstop, const GPtrArray *guests)
{
    BerthGuest *largest = NULL;
    for (guint i = 0; i < guests->len; i++) {
        BerthGuest *guest = g_ptr_array_index(guests, i);
        if (berth_guest_is_given_up(guest))
            return;
        if (berth_guest_is_in_slack(guest) &&
            (largest == NULL || berth_guest_host_mib(guest) > berth_guest_host_mib(largest)))
            largest = guest;
    }
    if (largest == NULL)
        return;
    g_warning("%s, in slack, is ended: all guests use %" G_GUINT64_FORMAT
              " MiB, and at %" G_GUINT64_FORMAT " MiB the kernel would end any of them",
              berth_guest_name(largest), backstop->used_mib, backstop->limits.limit_mib);
    berth_guest_give_up(largest, "it ran in slack, and was ended by its node, which had no memory "
                                 "left for those who have reserved it");
}

/* The one that was held back first, of those that can go on now. Who was to be, and could not, is not to be any more. */
static void let_one_go(BerthBackstop *backstop, const GPtrArray *guests)
{
    BerthGuest *first = NULL;
    for (guint i = 0; i < guests->len; i++) {
        BerthGuest *guest = g_ptr_array_index(guests, i);
        if (berth_guest_held_usec(guest) == 0)
            berth_guest_hold_back(guest, FALSE);
        if (berth_guest_is_in_slack(guest) && berth_guest_can_be_let_go(guest) &&
            (first == NULL || berth_guest_held_usec(guest) < berth_guest_held_usec(first)))
            first = guest;
    }
    if (first == NULL)
        return;
    g_message("%s goes on: %" G_GUINT64_FORMAT " MiB are free", berth_guest_name(first),
              left_mib(backstop));
    berth_guest_hold_back(first, FALSE);
    backstop->changed_usec = g_get_monotonic_time();
}

/* Who has reserved memory may have it; but it is in others' hands until they have left, and the kernel would end one of them,
 * with all its work, for what is a matter of seconds. So who takes more waits as they do, for a bounded time. */
static void make_backed_wait(BerthBackstop *backstop)
{
    const BerthBackstopLimits *limits = &backstop->limits;
    g_autofree char *most = NULL;
    /* Not sooner, or who waits near the margin would be made to wait again and again. */
    if (left_mib(backstop) >= 2 * limits->margin_mib)
        backstop->waits_usec = 0;
    if (backstop->waits_usec != 0 || limits->patience_usec == 0 ||
        !berth_backstop_is_crowded(limits, left_mib(backstop)))
        return;
    backstop->waits_usec = g_get_monotonic_time();
    most = berth_format_duration_sec((guint64)(limits->patience_usec / G_USEC_PER_SEC));
    g_message("only %" G_GUINT64_FORMAT " MiB of the guests' memory are free: whoever takes more "
              "waits until those in slack have left, for %s at most",
              left_mib(backstop), most);
}

static gboolean backed_wait(const BerthBackstop *backstop)
{
    return backstop->is_short && backstop->waits_usec != 0 &&
           g_get_monotonic_time() - backstop->waits_usec < backstop->limits.patience_usec;
}

static void settle_backed(const BerthBackstop *backstop, BerthGuest *guest, gboolean any_in_slack)
{
    gboolean runs = berth_guest_phase(guest) == BERTH_PHASE_RUNNING;
    if (any_in_slack && (backstop->waits_usec == 0 || !runs))
        note_resident(backstop, guest);
    berth_guest_hold_back(guest, runs && backed_wait(backstop) && takes_more(backstop, guest));
}

/* Who is in slack no more is owed what he has reserved; of whom it is not known, an agent before this one, or a question
 * that nobody waits for any more, has held him back for a need that was another. */
static void settle_others(const BerthBackstop *backstop, const GPtrArray *guests,
                          gboolean any_in_slack)
{
    for (guint i = 0; i < guests->len; i++) {
        BerthGuest *guest = g_ptr_array_index(guests, i);
        if (!berth_guest_is_in_slack(guest))
            settle_backed(backstop, guest, any_in_slack);
        else if (!backstop->is_short && !berth_guest_hold_is_known(guest))
            berth_guest_hold_back(guest, FALSE);
        berth_guest_renew_hold(guest);
    }
}

static void take_step(BerthBackstop *backstop, const GPtrArray *guests)
{
    gint64 eased_usec = g_get_monotonic_time() - backstop->changed_usec;
    BerthBackstopStep step =
        backstop->is_known ? berth_backstop_step(&backstop->limits, left_mib(backstop), eased_usec)
                           : BERTH_BACKSTOP_LET_ONE_GO; /* nobody is held for what nobody knows */
    gboolean is_short = step == BERTH_BACKSTOP_HOLD_ALL;
    if (is_short && !backstop->is_short)
        g_message("only %" G_GUINT64_FORMAT
                  " MiB of the guests' memory are free: those in slack are "
                  "held back",
                  left_mib(backstop));
    if (is_short)
        hold_all(backstop, guests);
    if (backstop->is_known)
        make_backed_wait(backstop);
    if (is_short && berth_backstop_is_full(&backstop->limits, backstop->used_mib))
        end_one(backstop, guests);
    else if (step == BERTH_BACKSTOP_LET_ONE_GO)
        let_one_go(backstop, guests);
    if (is_short != backstop->is_short) {
        backstop->is_short = is_short;
        backstop->changed(backstop->user_data);
    }
}

/* --- looking -------------------------------------------------------------------------------- */

static gboolean is_any_in_slack(const GPtrArray *guests)
{
    for (guint i = 0; i < guests->len; i++)
        if (berth_guest_is_in_slack(g_ptr_array_index(guests, i)))
            return TRUE;
    return FALSE;
}

/* Those with a domain here (transfer container). */
static GPtrArray *list_running(BerthBackstop *backstop)
{
    GPtrArray *guests = berth_guest_table_list(backstop->table);
    for (guint i = guests->len; i > 0; i--)
        if (!berth_guest_has_domain(g_ptr_array_index(guests, i - 1)))
            g_ptr_array_remove_index_fast(guests, i - 1);
    return guests;
}

static void on_due(gpointer data);

/* Or sooner: whoever asks for a look puts off none that is due. */
static void look_in(BerthBackstop *backstop, guint msec)
{
    gint64 due_usec = g_get_monotonic_time() + (gint64)msec * 1000;
    if (backstop->source != 0 && backstop->due_usec <= due_usec)
        return;
    g_clear_handle_id(&backstop->source, g_source_remove);
    backstop->due_usec = due_usec;
    backstop->source = g_timeout_add_once(msec, on_due, backstop);
}

static void look(BerthBackstop *backstop)
{
    g_autoptr(GPtrArray) guests = list_running(backstop);
    gboolean any_in_slack = is_any_in_slack(guests);
    guint next_msec = LOOK_MAX_MSEC;
    g_hash_table_foreach_remove(backstop->marked, is_gone, backstop);
    for (guint i = 0; i < guests->len; i++)
        mark(backstop, g_ptr_array_index(guests, i));
    if (backstop->group == NULL)
        find_group(backstop, guests);
    if (backstop->group != NULL)
        keep_limit(backstop);
    if (backstop->group != NULL)
        keep_from_swap(backstop);
    note_kills(backstop);
    measure(backstop);
    if (any_in_slack) {
        take_step(backstop, guests);
        if (backstop->is_known)
            next_msec = berth_backstop_next_msec(&backstop->limits, left_mib(backstop));
    } else {
        backstop->is_short = FALSE;
        backstop->waits_usec = 0;
    }
    settle_others(backstop, guests, any_in_slack);
    look_in(backstop, next_msec);
}

static void on_due(gpointer data)
{
    BerthBackstop *backstop = data;
    backstop->source = 0;
    look(backstop);
}

void berth_backstop_guest_changed(BerthBackstop *backstop)
{
    look_in(backstop, LOOK_MIN_MSEC);
}

gboolean berth_backstop_free_mib(const BerthBackstop *backstop, guint64 *out_offered_mib,
                                 guint64 *out_free_mib)
{
    *out_offered_mib = backstop->limits.offered_mib;
    *out_free_mib = left_mib(backstop);
    return backstop->is_known;
}

BerthBackstop *berth_backstop_new(const BerthBackstopLimits *limits, BerthGuestTable *table,
                                  const char *proc, BerthBackstopFunc changed, gpointer user_data)
{
    BerthBackstop *backstop = g_new0(BerthBackstop, 1);
    g_ref_count_init(&backstop->refs);
    backstop->stopping = g_cancellable_new();
    backstop->pool = berth_work_pool_new("the guests' memory", 1, 1);
    backstop->limits = *limits;
    backstop->table = table;
    backstop->proc = g_strdup(proc);
    backstop->changed = changed;
    backstop->user_data = user_data;
    backstop->marked = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    look_in(backstop, 0);
    return backstop;
}

void berth_backstop_free(BerthBackstop *backstop)
{
    if (backstop == NULL)
        return;
    g_clear_handle_id(&backstop->source, g_source_remove);
    g_cancellable_cancel(backstop->stopping);
    berth_work_pool_abandon(g_steal_pointer(&backstop->pool));
    backstop_unref(backstop);
}
