/* SPDX-License-Identifier: Apache-2.0 */
/* What is done on a node that is short of memory: when, to whom, and for how long. The kernel's files are the test's. */
#include <config.h>

#include <unistd.h>

#include "common/message.h"
#include "nodeagent/backstop.h"
#include "nodeagent/guest_private.h"
#include "nodeagent/guests_group.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"
#include "tests/lib/files.h"

#define MIB         (G_GUINT64_CONSTANT(1) << 20)
#define OFFERED_MIB 4096u
#define MARGIN_MIB  128u
#define LIMIT_BYTES "4563402752" /* 4096 MiB and a quarter of 1 GiB */

static BerthBackstopLimits limits(void)
{
    const BerthNodeConfig config = {.reserve_mib = 1024};
    return berth_backstop_limits(&config, OFFERED_MIB);
}

/* --- policy --------------------------------------------------------------------------------- */

static void limits_are_by_what_is_offered(void **state)
{
    const BerthNodeConfig set = {
        .reserve_mib = 1024, .limit_mib = 5000, .margin_mib = 10, .memory_patience_sec = 7};
    const BerthNodeConfig none = {.reserve_mib = 1024};
    assert_int_equal(limits().margin_mib, MARGIN_MIB);
    assert_int_equal(limits().limit_mib, OFFERED_MIB + 256);
    assert_int_equal(berth_backstop_limits(&none, 512).margin_mib, 64);
    assert_int_equal(berth_backstop_limits(&set, OFFERED_MIB).limit_mib, 5000);
    assert_int_equal(berth_backstop_limits(&set, OFFERED_MIB).margin_mib, 10);
    assert_int_equal(berth_backstop_limits(&set, OFFERED_MIB).patience_usec, 7 * G_USEC_PER_SEC);
}

static void steps_follow_what_is_free(void **state)
{
    BerthBackstopLimits all = limits();
    gint64 long_usec = 60 * (gint64)G_USEC_PER_SEC;
    assert_int_equal(berth_backstop_step(&all, MARGIN_MIB - 1, 0), BERTH_BACKSTOP_HOLD_ALL);
    assert_int_equal(berth_backstop_step(&all, MARGIN_MIB, long_usec), BERTH_BACKSTOP_NOTHING);
    assert_int_equal(berth_backstop_step(&all, 2 * MARGIN_MIB - 1, long_usec),
                     BERTH_BACKSTOP_NOTHING);
    assert_int_equal(berth_backstop_step(&all, 2 * MARGIN_MIB, long_usec),
                     BERTH_BACKSTOP_LET_ONE_GO);
    /* The last one has not had the time to show what it takes. */
    assert_int_equal(berth_backstop_step(&all, OFFERED_MIB, 1000), BERTH_BACKSTOP_NOTHING);
}

static void it_is_crowded_with_half_of_the_margin(void **state)
{
    BerthBackstopLimits all = limits();
    assert_false(berth_backstop_is_crowded(&all, MARGIN_MIB / 2));
    assert_true(berth_backstop_is_crowded(&all, MARGIN_MIB / 2 - 1));
}

static void looks_are_as_often_as_growth_may_be_fast(void **state)
{
    BerthBackstopLimits all = limits();
    BerthBackstopLimits large = {.offered_mib = 1u << 20, .margin_mib = 1u << 15};
    assert_int_equal(berth_backstop_next_msec(&all, 0), 100);
    assert_int_equal(berth_backstop_next_msec(&all, MARGIN_MIB), 100);
    assert_int_equal(berth_backstop_next_msec(&large, (1u << 15) + 2 * 8192), 2000);
    assert_int_equal(berth_backstop_next_msec(&large, 1u << 20), 5000);
}

static void it_is_full_below_the_limit(void **state)
{
    BerthBackstopLimits all = limits();
    guint64 full_mib = OFFERED_MIB + 256 - MARGIN_MIB / 4;
    assert_false(berth_backstop_is_full(&all, full_mib - 1));
    assert_true(berth_backstop_is_full(&all, full_mib));
    assert_true(berth_backstop_is_full(&all, OFFERED_MIB + 1000));
}

/* --- the kernel ----------------------------------------------------------------------------- */

#define SLOW_MSEC 5000u

static gint is_slow;  /* atomic: it takes back what is beyond a limit, ... */
static gint n_limits; /* ... of which it has been given so many */

gboolean __real_berth_guests_group_limit(const BerthGuestsGroup *group, guint64 limit_mib,
                                         GError **error);
gboolean __wrap_berth_guests_group_limit(const BerthGuestsGroup *group, guint64 limit_mib,
                                         GError **error);

gboolean __wrap_berth_guests_group_limit(const BerthGuestsGroup *group, guint64 limit_mib,
                                         GError **error)
{
    g_atomic_int_inc(&n_limits);
    for (guint i = 0; i < SLOW_MSEC && g_atomic_int_get(&is_slow); i++)
        g_usleep(1000);
    g_atomic_int_set(&is_slow, FALSE);
    return __real_berth_guests_group_limit(group, limit_mib, error);
}

/* --- on a node ------------------------------------------------------------------------------ */

typedef struct {
    AgentFixture *agent;
    guint told; /* that it is short, or no more */
} Node;

static char *process_file(const char *name)
{
    return g_strdup_printf("proc/%u/%s", FAKE_HYPERVISOR_PID, name);
}

static void put_used(const Node *node, guint64 used_mib)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT "\n", used_mib * MIB);
    put_file(node->agent->dir, "cgroup/machine/memory.usage_in_bytes", text);
}

static void on_changed(gpointer user_data)
{
    ((Node *)user_data)->told++;
}

static void put_kernel_files(const char *dir)
{
    g_autofree char *process = process_file("cgroup");
    g_autofree char *score = process_file("oom_score_adj");
    g_autofree char *mounts =
        g_strdup_printf("31 22 0:27 / %s/cgroup rw - cgroup cgroup rw,memory\n", dir);
    put_file(dir, "proc/self/mountinfo", mounts);
    put_file(dir, process, "4:memory:/machine/qemu-1-b.libvirt-qemu\n");
    put_file(dir, score, "0\n");
    put_file(dir, "cgroup/machine/memory.limit_in_bytes", "9223372036854771712\n");
    put_file(dir, "cgroup/machine/memory.stat", "total_cache 0\ntotal_shmem 0\n");
}

/* What a QEMU has resident: all guests of a test have the same. */
static void put_resident(const Node *node, guint64 mib)
{
    g_autofree char *name = process_file("statm");
    g_autofree char *text = g_strdup_printf("1000000 %" G_GUINT64_FORMAT " 0 0 0 0 0\n",
                                            mib * MIB / (guint64)sysconf(_SC_PAGESIZE));
    put_file(node->agent->dir, name, text);
}

/* With one guest, in slack; the agent's own backstop makes way for one with the test's files, which are there. */
static void begin_here(Node *node, AgentFixture *agent, gint64 patience_usec)
{
    BerthBackstopLimits all = limits();
    all.patience_usec = patience_usec;
    *node = (Node){agent, 0};
    put_used(node, 100);
    put_resident(node, 50);
    agent_fixture_start_running(agent);
    agent_fixture_guest(agent)->is_opportunistic = TRUE;
    g_autofree char *proc = g_build_filename(agent->dir, "proc", NULL);
    g_clear_pointer(&agent->agent->meter, berth_meter_free); /* it looks at the other one */
    g_clear_pointer(&agent->agent->backstop, berth_backstop_free);
    agent->agent->backstop = berth_backstop_new(&all, agent->agent->table, proc, on_changed, node);
}

static void begin_with_patience(Node *node, AgentFixture *agent, gint64 patience_usec)
{
    put_kernel_files(agent->dir);
    begin_here(node, agent, patience_usec);
}

static void begin(Node *node, AgentFixture *agent)
{
    begin_with_patience(node, agent, 0);
}

static gboolean is_limited(const Node *node)
{
    return file_says(node->agent->dir, "cgroup/machine/memory.limit_in_bytes", LIMIT_BYTES);
}

static gboolean has_score(const Node *node, const char *text)
{
    g_autofree char *name = process_file("oom_score_adj");
    return file_says(node->agent->dir, name, text);
}

static void all_guests_are_limited(void **state)
{
    Node node;
    guint64 offered_mib, free_mib;
    begin(&node, *state);
    run_until(is_limited(&node));
    assert_true(berth_backstop_free_mib(node.agent->agent->backstop, &offered_mib, &free_mib));
    assert_int_equal(free_mib, OFFERED_MIB - 100);
    /* Somebody else has changed it. */
    put_file(node.agent->dir, "cgroup/machine/memory.limit_in_bytes", "1\n");
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(is_limited(&node));
}

static void no_guest_is_swapped_out(void **state)
{
    Node node;
    begin(&node, *state);
    put_file(node.agent->dir, "cgroup/machine/memory.swappiness", "60\n");
    run_until(file_says(node.agent->dir, "cgroup/machine/memory.swappiness", "0"));
    put_file(node.agent->dir, "cgroup/machine/memory.swappiness", "60\n"); /* by somebody else */
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(file_says(node.agent->dir, "cgroup/machine/memory.swappiness", "0"));
}

static guint swap_warnings; /* that were logged */

static GLogWriterOutput note_warning(GLogLevelFlags level, const GLogField *fields, gsize n_fields,
                                     gpointer data)
{
    for (gsize i = 0; i < n_fields; i++)
        if (g_str_equal(fields[i].key, "MESSAGE") &&
            g_pattern_match_simple("*swapped out by this host*memory.swappiness*swapoff*",
                                   fields[i].value))
            swap_warnings++;
    return g_log_writer_default(level, fields, n_fields, data);
}

static void kernel_that_swaps_guests_out_is_warned_of_once(void **state)
{
    Node node;
    begin(&node, *state);
    run_until(is_limited(&node));
    assert_int_equal(swap_warnings, 0); /* there is no swap */
    put_file(node.agent->dir, "proc/meminfo", "MemTotal: 1 kB\nSwapTotal:      4096 kB\n");
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(swap_warnings > 0);
    put_file(node.agent->dir, "cgroup/machine/memory.limit_in_bytes", "1\n");
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(is_limited(&node));
    assert_int_equal(swap_warnings, 1);
}

static void limit_that_takes_its_time_keeps_nobody_from_looking(void **state)
{
    Node node;
    g_atomic_int_set(&n_limits, 0);
    g_atomic_int_set(&is_slow, TRUE);
    begin(&node, *state);
    put_used(&node, OFFERED_MIB);
    run_until(node.agent->hypervisor->holds == 1);
    agent_fixture_pass(300); /* three looks */
    assert_true(g_atomic_int_get(&is_slow));
    assert_int_equal(g_atomic_int_get(&n_limits), 1);
    g_atomic_int_set(&is_slow, FALSE);
    run_until(is_limited(&node));
}

static void kernel_ends_one_in_slack_first(void **state)
{
    Node node;
    begin(&node, *state);
    run_until(is_limited(&node));
    run_until(has_score(&node, "800"));
    agent_fixture_guest(node.agent)->is_opportunistic = FALSE;
    put_file(node.agent->dir, "cgroup/machine/memory.limit_in_bytes", "1\n");
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(is_limited(&node));
    run_until(has_score(&node, "300"));
}

/* It has left this node, and has come back. */
static void other_qemu_of_the_same_guest_is_marked(void **state)
{
    Node node;
    begin(&node, *state);
    run_until(is_limited(&node));
    run_until(has_score(&node, "800"));
    node.agent->hypervisor->pid = FAKE_HYPERVISOR_PID + 1;
    g_autofree char *name = g_strdup_printf("proc/%u/oom_score_adj", FAKE_HYPERVISOR_PID + 1);
    put_file(node.agent->dir, name, "0\n");
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(file_says(node.agent->dir, name, "800"));
}

static void one_in_slack_is_held_back_until_there_is_enough(void **state)
{
    Node node;
    begin(&node, *state);
    put_used(&node, OFFERED_MIB - MARGIN_MIB + 1);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) != 0);
    assert_int_equal(node.agent->hypervisor->holds, 1);
    assert_int_equal(node.told, 1);
    Berth__GuestStatus *status = agent_fixture_status(node.agent);
    assert_int_equal(status->held_back_usec,
                     berth_guest_held_usec(agent_fixture_guest(node.agent)));
    berth_message_free(&status->base);
    put_used(&node, OFFERED_MIB - 2 * MARGIN_MIB);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) == 0);
    assert_int_equal(node.told, 2);
}

static void guests_that_change_all_the_time_put_off_no_look(void **state)
{
    Node node;
    begin(&node, *state);
    put_used(&node, OFFERED_MIB);
    for (guint i = 0; i < 9000 && node.told == 0; i++) {
        berth_backstop_guest_changed(node.agent->agent->backstop);
        agent_fixture_pass(20);
    }
    assert_int_equal(node.told, 1);
}

static void one_that_boots_is_not(void **state)
{
    Node node;
    begin(&node, *state);
    BerthGuest *guest = agent_fixture_guest(node.agent);
    guest->phase = BERTH_PHASE_BOOTING;
    put_used(&node, OFFERED_MIB);
    run_until(node.told == 1);
    agent_fixture_pass(300); /* three looks */
    assert_int_equal(node.agent->hypervisor->holds, 0);
    guest->phase = BERTH_PHASE_RUNNING;
    run_until(berth_guest_held_usec(guest) != 0);
}

/* A second one in slack. */
static BerthGuest *add_other(const Node *node)
{
    static const BerthGuestId id = {.job = 2, .epoch = 1};
    BerthGuest *guest = berth_guest_new(&node->agent->agent->context, &id);
    guest->phase = BERTH_PHASE_RUNNING;
    guest->domain_is_up = guest->is_opportunistic = TRUE;
    berth_guest_table_add(node->agent->agent->table, guest);
    return guest;
}

static void one_that_cannot_be_let_go_keeps_no_other_back(void **state)
{
    Node node;
    begin(&node, *state);
    BerthGuest *first = agent_fixture_guest(node.agent);
    BerthGuest *other = add_other(&node);
    first->hold_is_unknown = other->hold_is_unknown = FALSE;
    first->held_usec = 1;
    other->held_usec = 2;
    first->is_leaving = TRUE;
    run_until(other->held_usec == 0);
    assert_int_equal(first->held_usec, 1);
    first->is_leaving = FALSE; /* it has stayed */
    run_until(first->held_usec == 0);
}

#define FULL_MIB (OFFERED_MIB + 256)

static void one_in_slack_is_ended_before_the_kernel_ends_any(void **state)
{
    Node node;
    begin(&node, *state);
    BerthGuest *first = agent_fixture_guest(node.agent);
    BerthGuest *other = add_other(&node);
    other->usage.host_memory_mib = 500;
    first->usage.host_memory_mib = 501;
    put_used(&node, FULL_MIB);
    run_until(node.agent->hypervisor->destroys == 1);
    assert_string_equal(node.agent->hypervisor->destroyed, first->name);
    assert_false(berth_guest_is_given_up(other));
    run_until(first->phase > BERTH_PHASE_RUNNING);
    Berth__GuestStatus *status = agent_fixture_status(node.agent);
    assert_int_equal(status->reason, BERTH__REASON__REASON_CROWDED_OUT);
    assert_non_null(strstr(status->reason_text, "it ran in slack"));
    berth_message_free(&status->base);
    run_until(berth_guest_is_given_up(other)); /* it was not enough */
}

static void none_with_a_reservation_is_ended(void **state)
{
    Node node;
    begin(&node, *state);
    BerthGuest *other = add_other(&node);
    other->is_opportunistic = FALSE;
    other->usage.host_memory_mib = 3000;
    put_used(&node, FULL_MIB);
    run_until(node.agent->hypervisor->destroys == 1);
    run_until(agent_fixture_guest(node.agent)->phase > BERTH_PHASE_RUNNING);
    agent_fixture_pass(300); /* three looks */
    assert_false(berth_guest_is_given_up(other));
    assert_int_equal(node.agent->hypervisor->destroys, 1);
}

static void one_with_a_reservation_is_not(void **state)
{
    Node node;
    begin(&node, *state);
    put_used(&node, OFFERED_MIB);
    run_until(node.agent->hypervisor->holds == 1);
    /* He has become one. */
    agent_fixture_guest(node.agent)->is_opportunistic = FALSE;
    berth_backstop_guest_changed(node.agent->agent->backstop);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) == 0);
    assert_int_equal(node.agent->hypervisor->holds, 1);
}

/* --- who has reserved what he takes ---------------------------------------------------------- */

#define CROWDED_MIB (OFFERED_MIB - MARGIN_MIB / 2 + 1)
#define LONG_USEC   (600 * (gint64)G_USEC_PER_SEC)

static BerthGuest *add_backed(const Node *node)
{
    BerthGuest *backed = add_other(node);
    backed->is_opportunistic = backed->hold_is_unknown = FALSE;
    return backed;
}

static guint n_gone_on;

static void note_gone_on(BerthGuest *guest)
{
    n_gone_on++;
}

/* It has been looked at before the node is short. */
static BerthGuest *begin_with_backed(Node *node, AgentFixture *agent, gint64 patience_usec)
{
    begin_with_patience(node, agent, patience_usec);
    BerthGuest *backed = add_backed(node);
    run_until(is_limited(node));
    berth_backstop_guest_changed(agent->agent->backstop);
    agent_fixture_pass(300);
    return backed;
}

static BerthGuest *begin_with_one_that_waits(Node *node, AgentFixture *agent, gint64 patience_usec)
{
    BerthGuest *backed = begin_with_backed(node, agent, patience_usec);
    put_resident(node, 60);
    put_used(node, CROWDED_MIB);
    run_until(berth_guest_held_usec(backed) != 0);
    return backed;
}

static void who_takes_more_waits_for_those_in_slack(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_backed(&node, *state, LONG_USEC);
    put_used(&node, OFFERED_MIB - MARGIN_MIB + 1); /* short, but not crowded */
    put_resident(&node, 60);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) != 0);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    put_used(&node, CROWDED_MIB);
    put_resident(&node, 70);
    run_until(berth_guest_held_usec(backed) != 0);
    put_used(&node, OFFERED_MIB - MARGIN_MIB);
    run_until(berth_guest_held_usec(backed) == 0);
}

static void who_takes_no_more_does_not(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_backed(&node, *state, LONG_USEC);
    put_used(&node, CROWDED_MIB);
    put_resident(&node, 54);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) != 0);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    put_resident(&node, 55); /* by and by, but since it is crowded */
    run_until(berth_guest_held_usec(backed) != 0);
}

static void one_of_whom_nothing_is_known_does_not(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_backed(&node, *state, LONG_USEC);
    g_autofree char *name = process_file("statm");
    put_file(node.agent->dir, name, "");
    put_used(&node, CROWDED_MIB);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) != 0);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
}

static void one_that_boots_does_not(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_backed(&node, *state, LONG_USEC);
    backed->phase = BERTH_PHASE_BOOTING;
    put_used(&node, CROWDED_MIB);
    put_resident(&node, 60);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) != 0);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    backed->phase = BERTH_PHASE_RUNNING; /* what it took to boot is its own */
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    put_resident(&node, 70);
    run_until(berth_guest_held_usec(backed) != 0);
}

static void who_waits_does_so_for_a_bounded_time(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_one_that_waits(&node, *state, G_USEC_PER_SEC);
    run_until(berth_guest_held_usec(backed) == 0);
    /* Not again because there was a little for a moment. */
    put_used(&node, OFFERED_MIB - MARGIN_MIB);
    run_until(node.told == 2);
    put_used(&node, CROWDED_MIB);
    put_resident(&node, 80);
    run_until(node.told == 3);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    assert_int_not_equal(berth_guest_held_usec(agent_fixture_guest(node.agent)), 0);
    /* But when there was enough. */
    put_used(&node, OFFERED_MIB - 2 * MARGIN_MIB);
    run_until(node.told == 4);
    put_used(&node, CROWDED_MIB);
    put_resident(&node, 90);
    run_until(berth_guest_held_usec(backed) != 0);
}

static void where_nobody_is_to_wait_one_in_slack_is_ended(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_backed(&node, *state, 0);
    put_resident(&node, 60);
    put_used(&node, CROWDED_MIB);
    run_until(berth_guest_held_usec(agent_fixture_guest(node.agent)) != 0);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    put_used(&node, FULL_MIB);
    run_until(node.agent->hypervisor->destroys == 1);
}

static void who_waits_does_not_keep_one_in_slack_from_being_ended(void **state)
{
    Node node;
    begin_with_one_that_waits(&node, *state, LONG_USEC);
    put_used(&node, FULL_MIB);
    run_until(node.agent->hypervisor->destroys == 1);
    assert_string_equal(node.agent->hypervisor->destroyed, agent_fixture_guest(node.agent)->name);
}

/* Who waited for it to leave does not wait for others that are not there. */
static void who_waits_goes_on_when_the_last_in_slack_has_left(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_one_that_waits(&node, *state, LONG_USEC);
    agent_fixture_guest(node.agent)->is_opportunistic = FALSE;
    run_until(berth_guest_held_usec(backed) == 0);
}

/* libvirt does not take it from a guest that leaves. */
static void who_waits_is_let_go_before_it_leaves_itself(void **state)
{
    Node node;
    BerthGuest *backed = begin_with_one_that_waits(&node, *state, LONG_USEC);
    n_gone_on = 0;
    backed->is_leaving = TRUE;
    berth_guest_hurry(backed, FALSE, note_gone_on);
    assert_int_equal(n_gone_on, 0);
    run_until(n_gone_on == 1);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    agent_fixture_pass(300);
    assert_int_equal(berth_guest_held_usec(backed), 0);
    backed->is_leaving = FALSE; /* it has stayed */
    run_until(berth_guest_held_usec(backed) != 0);
}

/* Its tasks may be in the midst of looking for memory, and get no CPU for that. */
static void stalls_of_one_that_is_held_back_are_not_told(void **state)
{
    Node node;
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.psi_memory_some = usage.psi_memory_full = 9000;
    BerthGuest *backed = begin_with_backed(&node, *state, LONG_USEC);
    berth_guest_take_usage(backed, &usage);
    assert_int_equal(backed->usage.psi_memory_some, 9000);
    put_resident(&node, 60);
    put_used(&node, CROWDED_MIB);
    run_until(berth_guest_held_usec(backed) != 0);
    berth_guest_take_usage(backed, &usage);
    assert_int_equal(backed->usage.psi_memory_some, 0);
    put_used(&node, 100);
    run_until(berth_guest_held_usec(backed) == 0);
    berth_guest_take_usage(backed, &usage);
    assert_int_equal(backed->usage.psi_memory_full, 0); /* it tells of the last seconds */
    backed->let_go_usec -= 10 * (gint64)G_USEC_PER_SEC;
    berth_guest_take_usage(backed, &usage);
    assert_int_equal(backed->usage.psi_memory_full, 9000);
}

static void what_libvirt_does_not_take_is_asked_again(void **state)
{
    Node node;
    AgentFixture *agent = *state;
    begin(&node, agent);
    run_until(is_limited(&node));
    agent->hypervisor->failing_holds = 2;
    put_used(&node, OFFERED_MIB);
    run_until(agent->hypervisor->holds == 1);
    assert_int_equal(agent->hypervisor->failing_holds, 0);
}

/* libvirt does it in the end, when nobody waits for it, or is short, any more. */
static void one_that_may_be_held_back_after_all_is_let_go(void **state)
{
    Node node;
    AgentFixture *agent = *state;
    begin(&node, agent);
    run_until(agent->hypervisor->lets_go == 1); /* it was adopted */
    agent->hypervisor->failing_holds = 1;
    put_used(&node, OFFERED_MIB);
    run_until(agent->hypervisor->failing_holds == 0);
    put_used(&node, 100);
    run_until(agent->hypervisor->lets_go == 2);
    assert_int_equal(agent->hypervisor->holds, 0);
}

static void one_that_is_to_end_is_let_go(void **state)
{
    Node node;
    AgentFixture *agent = *state;
    begin(&node, agent);
    put_used(&node, OFFERED_MIB);
    run_until(berth_guest_held_usec(agent_fixture_guest(agent)) != 0);
    berth_guest_stop(agent_fixture_guest(agent), 60000);
    run_until(berth_guest_held_usec(agent_fixture_guest(agent)) == 0);
    agent_fixture_pass(300); /* three looks */
    assert_int_equal(agent->hypervisor->holds, 1);
}

/* Whether an agent before it has held it back is in no metadata. */
static void adopted_one_is_let_go(void **state)
{
    Node node;
    begin(&node, *state);
    run_until(node.agent->hypervisor->lets_go > 0);
    agent_fixture_pass(300); /* three looks */
    assert_int_equal(node.agent->hypervisor->lets_go, 1);
}

/* --- whom the kernel ends ------------------------------------------------------------------- */

static void put_kills(const Node *node, guint at_limit, guint killed)
{
    g_autofree char *text = g_strdup_printf("max 9\noom %u\noom_kill %u\n", at_limit, killed);
    put_file(node->agent->dir, "unified/machine.slice/memory.events", text);
}

/* On a host with version 2, whose kernel has ended some before. */
static void begin_in_version_2(Node *node, AgentFixture *agent)
{
    const char *dir = agent->dir;
    g_autofree char *process = process_file("cgroup");
    g_autofree char *mounts =
        g_strdup_printf("31 22 0:27 / %s/unified rw - cgroup2 cgroup2 rw\n", dir);
    put_file(dir, "proc/self/mountinfo", mounts);
    put_file(dir, process, "0::/machine.slice/machine-qemu\\x2d1\\x2db.scope/libvirt\n");
    put_file(dir, "unified/machine.slice/memory.max", "max\n");
    put_file(dir, "unified/machine.slice/memory.swap.max", "0\n");
    put_file(dir, "unified/machine.slice/memory.current", "1048576\n");
    put_file(dir, "unified/machine.slice/memory.stat", "file 0\nshmem 0\n");
    *node = (Node){agent, 0};
    put_kills(node, 4, 5);
    begin_here(node, agent, 0);
    run_until(file_says(dir, "unified/machine.slice/memory.max", LIMIT_BYTES));
}

static void guest_that_the_kernel_ended_at_the_limit_is_told_so(void **state)
{
    Node node;
    begin_in_version_2(&node, *state);
    BerthGuest *guest = agent_fixture_guest(node.agent);
    put_kills(&node, 5, 6);
    fake_hypervisor_emit(node.agent->hypervisor, &agent_fixture_id, BERTH_DOMAIN_FAILED);
    run_until(guest->phase > BERTH_PHASE_RUNNING);
    Berth__GuestStatus *status = agent_fixture_status(node.agent);
    assert_int_equal(status->reason, BERTH__REASON__REASON_GUEST_VANISHED);
    assert_non_null(strstr(status->reason_text, "memory_limit in berth-node.conf(5)"));
    berth_message_free(&status->base);
}

static void each_end_by_the_kernel_explains_one(void **state)
{
    Node node;
    begin_in_version_2(&node, *state);
    BerthBackstop *backstop = node.agent->agent->backstop;
    assert_null(berth_backstop_why_killed(backstop)); /* what was before is nobody's */
    put_kills(&node, 5, 7);
    assert_non_null(strstr(berth_backstop_why_killed(backstop), "memory_limit"));
    assert_non_null(strstr(berth_backstop_why_killed(backstop), "memory_limit"));
    assert_null(berth_backstop_why_killed(backstop));
    put_kills(&node, 5, 8); /* and no guest had come to a limit */
    assert_non_null(strstr(berth_backstop_why_killed(backstop), "memory_reserve"));
    put_kills(&node, 6, 8); /* and nobody was ended for that */
    assert_null(berth_backstop_why_killed(backstop));
}

/* Before libvirt has told. */
static void end_by_the_kernel_that_a_look_has_seen_is_told(void **state)
{
    Node node;
    begin_in_version_2(&node, *state);
    BerthBackstop *backstop = node.agent->agent->backstop;
    put_kills(&node, 5, 6);
    put_file(node.agent->dir, "unified/machine.slice/memory.max", "1\n");
    berth_backstop_guest_changed(backstop);
    run_until(file_says(node.agent->dir, "unified/machine.slice/memory.max", LIMIT_BYTES));
    assert_non_null(strstr(berth_backstop_why_killed(backstop), "memory_limit"));
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_by_what_is_offered),
        cmocka_unit_test(steps_follow_what_is_free),
        cmocka_unit_test(it_is_full_below_the_limit),
        cmocka_unit_test(it_is_crowded_with_half_of_the_margin),
        cmocka_unit_test(looks_are_as_often_as_growth_may_be_fast),
        TEST(all_guests_are_limited),
        TEST(no_guest_is_swapped_out),
        TEST(kernel_that_swaps_guests_out_is_warned_of_once),
        TEST(limit_that_takes_its_time_keeps_nobody_from_looking),
        TEST(kernel_ends_one_in_slack_first),
        TEST(other_qemu_of_the_same_guest_is_marked),
        TEST(one_in_slack_is_held_back_until_there_is_enough),
        TEST(guests_that_change_all_the_time_put_off_no_look),
        TEST(one_that_boots_is_not),
        TEST(one_that_cannot_be_let_go_keeps_no_other_back),
        TEST(one_in_slack_is_ended_before_the_kernel_ends_any),
        TEST(none_with_a_reservation_is_ended),
        TEST(who_takes_more_waits_for_those_in_slack),
        TEST(who_takes_no_more_does_not),
        TEST(who_waits_does_so_for_a_bounded_time),
        TEST(where_nobody_is_to_wait_one_in_slack_is_ended),
        TEST(one_of_whom_nothing_is_known_does_not),
        TEST(one_that_boots_does_not),
        TEST(who_waits_does_not_keep_one_in_slack_from_being_ended),
        TEST(who_waits_goes_on_when_the_last_in_slack_has_left),
        TEST(who_waits_is_let_go_before_it_leaves_itself),
        TEST(stalls_of_one_that_is_held_back_are_not_told),
        TEST(one_with_a_reservation_is_not),
        TEST(what_libvirt_does_not_take_is_asked_again),
        TEST(one_that_may_be_held_back_after_all_is_let_go),
        TEST(one_that_is_to_end_is_let_go),
        TEST(adopted_one_is_let_go),
        TEST(guest_that_the_kernel_ended_at_the_limit_is_told_so),
        TEST(each_end_by_the_kernel_explains_one),
        TEST(end_by_the_kernel_that_a_look_has_seen_is_told),
    };
    g_log_set_writer_func(note_warning, NULL, NULL);
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
