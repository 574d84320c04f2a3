/* SPDX-License-Identifier: Apache-2.0 */
/* When an agent measures its guest, from its host and by the guest itself. */
#include <config.h>

#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

static const BerthPaceIntervals quick = {{400, 200, 100}};

typedef struct {
    guint told;            /* times */
    guint nodes;           /* times with the node */
    Berth__NodeUsage node; /* the latest */
} Heard;

static void on_measured(const Berth__NodeUsage *node, gpointer data)
{
    Heard *heard = data;
    heard->told++;
    heard->nodes += node != NULL;
    if (node != NULL)
        heard->node = *node;
}

/* A guest that says so of itself, as it is without pressure. */
static void say_available(AgentFixture *fixture, guint64 available_mib)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.memory_total_mib = 64;
    usage.memory_available_mib = available_mib;
    fake_guest_say_usage(fixture->peer, &usage);
    run_until(agent_fixture_guest(fixture)->usage.memory_available_mib == available_mib);
}

static void node_is_told_of_with_the_sum_of_its_guests(void **state)
{
    AgentFixture *fixture = *state;
    Heard heard = {0};
    agent_fixture_start_running(fixture);
    say_available(fixture, 40);
    fixture->hypervisor->counts.host_memory_mib = 77;
    g_autoptr(BerthMeter) meter =
        berth_meter_new(fixture->agent->table, fixture->hypervisor, &fixture->config,
                        fixture->agent->backstop, on_measured, &heard);
    assert_int_equal(heard.told, 0); /* nobody has asked */
    berth_meter_set_intervals(meter, &quick);
    assert_int_equal(heard.nodes, 1);
    assert_true(heard.node.memory_total_mib > 0);
    run_until(heard.nodes >= 2);
    assert_int_equal(heard.node.guests_host_mib, 77);
    assert_int_equal(heard.node.guests_used_mib, 24);
}

static void guest_is_looked_at_often_when_it_is_near_its_limit(void **state)
{
    AgentFixture *fixture = *state;
    Heard heard = {0};
    agent_fixture_start_running(fixture);
    say_available(fixture, 40);
    const BerthGuest *guest = agent_fixture_guest(fixture);
    assert_true(guest->pace.kind != BERTH_PACE_NEAR);
    g_autoptr(BerthMeter) meter =
        berth_meter_new(fixture->agent->table, fixture->hypervisor, &fixture->config,
                        fixture->agent->backstop, on_measured, &heard);
    guint measures = fixture->peer->measures;
    say_available(fixture, 5);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
    run_until(fixture->peer->measures > measures);
    assert_int_equal(fixture->peer->measure_msec, 1000);
}

/* Its host has come to hold more of it: what it uses of that it alone can say. */
static void guest_that_grows_on_its_host_is_asked(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    say_available(fixture, 40);
    BerthGuest *guest = agent_fixture_guest(fixture);
    fixture->hypervisor->counts.host_memory_mib = 100;
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    say_available(fixture, 39);
    guint measures = fixture->peer->measures;
    fixture->hypervisor->counts.host_memory_mib = 115; /* less than is worth it */
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    agent_fixture_pass(100);
    assert_int_equal(fixture->peer->measures, measures);
    guest->pace = guest->memory_pace = (BerthPace){0};
    fixture->hypervisor->counts.host_memory_mib = 116;
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    run_until(fixture->peer->measures == measures + 1);
    assert_int_equal(fixture->peer->measure_msec, 1000); /* it may be full soon */
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
}

/* Whatever the session is new for: its memory may have been copied. */
static void guest_is_told_in_each_session_what_its_host_holds(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    BerthGuestChannel *channel = agent_fixture_guest(fixture)->channel;
    assert_int_equal(fixture->peer->gives_back, 0); /* it was not known */
    fixture->hypervisor->counts.host_memory_mib = 850;
    berth_guest_channel_renew(channel);
    run_until(fixture->peer->gives_back == 1);
    assert_int_equal(fixture->peer->resident_mib, 850);
    fixture->hypervisor->counts.host_memory_mib = 40;
    berth_guest_channel_renew(channel);
    run_until(fixture->peer->gives_back == 2);
    assert_int_equal(fixture->peer->resident_mib, 40);
}

/* In virtual time: a look is what tells the time. */
static void guest_without_work_is_left_alone_and_asked_when_it_wakes(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    say_available(fixture, 40);
    BerthGuest *guest = agent_fixture_guest(fixture);
    gint64 now_usec = g_get_monotonic_time();
    guint measures = fixture->peer->measures;
    for (guint i = 0; i <= 7; i++)
        berth_guest_look(guest, now_usec += 5 * G_USEC_PER_SEC, 5 * G_USEC_PER_SEC);
    run_until(fixture->peer->measures == measures + 1);
    assert_int_equal(fixture->peer->measure_msec, 20000);
    fixture->hypervisor->counts.cpu_usec += 4 * G_USEC_PER_SEC;
    berth_guest_look(guest, now_usec += 5 * G_USEC_PER_SEC, 5 * G_USEC_PER_SEC);
    run_until(fixture->peer->measures == measures + 2);
    assert_int_equal(fixture->peer->measure_msec, 2000);
    assert_int_equal(guest->usage.cpu_milli, 800);
}

/* Looks at it every 5 s for SECONDS of virtual time; when that is. */
static gint64 look_for(BerthGuest *guest, gint64 now_usec, guint seconds)
{
    for (guint i = 0; i < seconds; i += 5)
        berth_guest_look(guest, now_usec += 5 * G_USEC_PER_SEC, 5 * G_USEC_PER_SEC);
    return now_usec;
}

/* Jobs whose users know what they need are near their memory's end for hours. */
static void guest_near_its_limit_that_does_not_change_is_left_to_the_pace_of_others(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    say_available(fixture, 40);
    BerthGuest *guest = agent_fixture_guest(fixture);
    gint64 now_usec = g_get_monotonic_time();
    say_available(fixture, 5);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
    now_usec = look_for(guest, now_usec, 5);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
    now_usec = look_for(guest, now_usec, 20);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NORMAL);
    assert_int_equal(guest->memory_pace.kind, BERTH_PACE_NORMAL);
    look_for(guest, now_usec, 20);
    assert_int_equal(guest->pace.kind, BERTH_PACE_CALM);
    run_until(fixture->peer->measure_msec == 10000); /* and not 20000 */
    assert_true(berth_guest_is_near(guest));         /* and told of as that */
}

/* It is calm, and near its memory's end, and has been so for a minute. */
static void settle(AgentFixture *fixture, guint64 available_mib)
{
    agent_fixture_start_running(fixture);
    say_available(fixture, available_mib);
    BerthGuest *guest = agent_fixture_guest(fixture);
    look_for(guest, g_get_monotonic_time(), 45);
    run_until(fixture->peer->measure_msec == 10000);
    BerthPace *const paces[] = {&guest->pace, &guest->memory_pace};
    for (guint i = 0; i < G_N_ELEMENTS(paces); i++) {
        paces[i]->near_usec -= 60 * (gint64)G_USEC_PER_SEC;
        paces[i]->awake_usec -= 60 * (gint64)G_USEC_PER_SEC;
    }
}

static void guest_that_goes_on_filling_its_memory_is_fast_at_once(void **state)
{
    AgentFixture *fixture = *state;
    settle(fixture, 8);
    BerthGuest *guest = agent_fixture_guest(fixture);
    say_available(fixture, 7);
    assert_int_equal(guest->pace.kind, BERTH_PACE_CALM);
    say_available(fixture, 6);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
    run_until(fixture->peer->measure_msec == 1000);
}

static void guest_near_its_limit_is_fast_at_once_when_its_host_holds_more(void **state)
{
    AgentFixture *fixture = *state;
    settle(fixture, 8);
    BerthGuest *guest = agent_fixture_guest(fixture);
    fixture->hypervisor->counts.host_memory_mib += 16;
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
    run_until(fixture->peer->measure_msec == 1000);
}

/* What its kernel wakes it for is as it was, or worse. */
static void guest_that_stalls_stays_fast(void **state)
{
    AgentFixture *fixture = *state;
    settle(fixture, 8);
    BerthGuest *guest = agent_fixture_guest(fixture);
    Berth__Usage usage = guest->usage;
    usage.psi_memory_some = 700;
    fake_guest_say_usage(fixture->peer, &usage);
    run_until(fixture->peer->measure_msec == 1000);
    look_for(guest, g_get_monotonic_time(), 60);
    assert_int_equal(guest->pace.kind, BERTH_PACE_NEAR);
    assert_int_equal(guest->memory_pace.kind, BERTH_PACE_NEAR);
    assert_int_equal(fixture->peer->measure_msec, 1000);
}

/* Of libvirt nothing is asked in between, but when a domain stops. */
static void traffic_is_asked_for_rarely_and_states_when_one_stops(void **state)
{
    AgentFixture *fixture = *state;
    Heard heard = {0};
    agent_fixture_start_running(fixture);
    g_clear_pointer(&fixture->agent->meter, berth_meter_free);
    fixture->config.traffic_interval_sec = 3600;
    guint stats = fixture->hypervisor->stats;
    guint traffic = fixture->hypervisor->traffic_stats;
    fixture->agent->meter =
        berth_meter_new(fixture->agent->table, fixture->hypervisor, &fixture->config,
                        fixture->agent->backstop, on_measured, &heard);
    assert_int_equal(fixture->hypervisor->traffic_stats, traffic + 1);
    agent_fixture_pass(6000);
    assert_int_equal(fixture->hypervisor->stats, stats + 1);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_SUSPENDED);
    run_until(fixture->hypervisor->stats == stats + 2);
    assert_int_equal(fixture->hypervisor->traffic_stats, traffic + 1);
}

static void states_that_were_not_learnt_are_asked_for_again(void **state)
{
    AgentFixture *fixture = *state;
    Heard heard = {0};
    agent_fixture_start_running(fixture);
    g_clear_pointer(&fixture->agent->meter, berth_meter_free);
    fixture->config.traffic_interval_sec = 3600;
    fixture->hypervisor->is_slow = TRUE;
    fixture->agent->meter =
        berth_meter_new(fixture->agent->table, fixture->hypervisor, &fixture->config,
                        fixture->agent->backstop, on_measured, &heard);
    guint stats = fixture->hypervisor->stats;
    /* It stops while libvirt is being asked, and then libvirt does not answer. */
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_SUSPENDED);
    agent_fixture_pass(5500);
    assert_int_equal(fixture->hypervisor->stats, stats);
    fake_hypervisor_be_quick(fixture->hypervisor);
    fixture->hypervisor->is_connected = FALSE;
    run_until(fixture->hypervisor->stats == stats + 1);
    fixture->hypervisor->is_connected = TRUE;
    run_until(fixture->hypervisor->stats == stats + 2);
}

static void on_answer(BerthFault fault, const GError *error, gpointer user_data)
{
    assert_null(error);
}

static void guest_with_more_vcpus_is_looked_at_anew(void **state)
{
    AgentFixture *fixture = *state;
    const BerthDomainSize size = {.vcpus = 2, .memory_mib = 64};
    agent_fixture_start_running(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    guint finds = fixture->hypervisor->finds;
    fixture->hypervisor->memory_mib = 64;
    berth_guest_resize(guest, &size, FALSE, on_answer, NULL);
    run_until(fixture->hypervisor->finds > finds);
}

/* It stood still, and what it had to say of itself and how fast it worked are of before. */
static void guest_that_goes_on_is_told_of_soon(void **state)
{
    static const BerthPaceIntervals slow = {{60000, 60000, 1000}};
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    berth_meter_set_intervals(fixture->agent->meter, &slow);
    const BerthGuest *guest = agent_fixture_guest(fixture);
    say_available(fixture, 40);
    guint measures = fixture->peer->measures;
    gint64 begin_usec = g_get_monotonic_time();
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_RESUMED);
    run_until(fixture->peer->measures > measures);
    assert_int_equal(fixture->peer->measure_msec, 2000);
    fixture->hypervisor->counts.cpu_usec += G_USEC_PER_SEC;
    say_available(fixture, 30);
    run_until(guest->usage.rate_msec > 0); /* from when it went on */
    assert_true(guest->usage.rate_msec <= (g_get_monotonic_time() - begin_usec) / 1000 + 1);
    assert_true(guest->usage.cpu_milli > 0);
}

/* Looks at it twice, so that it has a rate. */
static void work_for_a_second(AgentFixture *fixture)
{
    BerthGuest *guest = agent_fixture_guest(fixture);
    gint64 now_usec = g_get_monotonic_time();
    berth_guest_look(guest, now_usec, G_USEC_PER_SEC);
    fixture->hypervisor->counts.cpu_usec += G_USEC_PER_SEC;
    fixture->hypervisor->counts.starved_usec += G_USEC_PER_SEC;
    fixture->hypervisor->counts.throttled_usec += G_USEC_PER_SEC;
    berth_guest_look(guest, now_usec + G_USEC_PER_SEC, G_USEC_PER_SEC);
    assert_true(guest->usage.rate_msec > 0);
    assert_true(guest->usage.cpu_milli > 0);
    assert_true(guest->usage.starved_permille > 0);
    assert_true(guest->usage.throttled_permille > 0);
}

static void assert_has_no_rate(const BerthGuest *guest)
{
    assert_int_equal(guest->usage.rate_msec, 0);
    assert_int_equal(guest->usage.cpu_milli, 0);
    assert_int_equal(guest->usage.starved_permille, 0);
    assert_int_equal(guest->usage.throttled_permille, 0);
}

/* It may be told of before it is looked at next. */
static void rates_that_begin_anew_are_not_told_as_they_were(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    work_for_a_second(fixture);
    berth_guest_begin_rates(guest);
    assert_has_no_rate(guest);
    work_for_a_second(fixture);
    berth_guest_begin_rates_now(guest);
    assert_has_no_rate(guest);
    assert_int_equal(guest->rates.n, 1);
}

static void answer_anew(AgentFixture *fixture, guint64 available_mib)
{
    guint measures = fixture->peer->measures;
    berth_guest_channel_renew(agent_fixture_guest(fixture)->channel);
    run_until(fixture->peer->measures > measures);
    say_available(fixture, available_mib);
}

/* Its sessions are its own to end. */
static void
guest_that_answers_all_the_time_is_looked_at_no_more_often_than_one_near_a_limit(void **state)
{
    static const BerthPaceIntervals slow = {{60000, 60000, 60000}};
    static const BerthPaceIntervals fast_if_near = {{60000, 60000, 1000}};
    AgentFixture *fixture = *state;
    Heard heard = {0};
    agent_fixture_start_running(fixture);
    g_clear_pointer(&fixture->agent->meter, berth_meter_free);
    fixture->agent->meter =
        berth_meter_new(fixture->agent->table, fixture->hypervisor, &fixture->config,
                        fixture->agent->backstop, on_measured, &heard);
    berth_meter_set_intervals(fixture->agent->meter, &slow);
    assert_int_equal(heard.told, 1);
    for (guint i = 1; i <= 20; i++)
        answer_anew(fixture, 30 + i);
    assert_int_equal(heard.told, 1);
    berth_meter_set_intervals(fixture->agent->meter, &fast_if_near);
    assert_int_equal(heard.told, 2);
    answer_anew(fixture, 40);
    run_until(heard.told == 3);
}

/* However often somebody asks for it meanwhile. */
static void look_that_is_due_is_not_put_off(void **state)
{
    static const BerthPaceIntervals fast_if_near = {{60000, 60000, 100}};
    AgentFixture *fixture = *state;
    Heard heard = {0};
    agent_fixture_start_running(fixture);
    say_available(fixture, 40);
    g_clear_pointer(&fixture->agent->meter, berth_meter_free);
    fixture->agent->meter =
        berth_meter_new(fixture->agent->table, fixture->hypervisor, &fixture->config,
                        fixture->agent->backstop, on_measured, &heard);
    berth_meter_set_intervals(fixture->agent->meter, &fast_if_near);
    guint told = heard.told;
    berth_pace_look_soon(&agent_fixture_guest(fixture)->pace);
    for (guint i = 0; i < 100 && heard.told == told; i++) {
        berth_meter_look_soon(fixture->agent->meter);
        agent_fixture_pass(20);
    }
    assert_true(heard.told > told);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(node_is_told_of_with_the_sum_of_its_guests),
        TEST(guest_is_looked_at_often_when_it_is_near_its_limit),
        TEST(guest_that_grows_on_its_host_is_asked),
        TEST(guest_is_told_in_each_session_what_its_host_holds),
        TEST(guest_without_work_is_left_alone_and_asked_when_it_wakes),
        TEST(guest_near_its_limit_that_does_not_change_is_left_to_the_pace_of_others),
        TEST(guest_that_goes_on_filling_its_memory_is_fast_at_once),
        TEST(guest_near_its_limit_is_fast_at_once_when_its_host_holds_more),
        TEST(guest_that_stalls_stays_fast),
        TEST(traffic_is_asked_for_rarely_and_states_when_one_stops),
        TEST(states_that_were_not_learnt_are_asked_for_again),
        TEST(guest_with_more_vcpus_is_looked_at_anew),
        TEST(guest_that_goes_on_is_told_of_soon),
        TEST(rates_that_begin_anew_are_not_told_as_they_were),
        TEST(guest_that_answers_all_the_time_is_looked_at_no_more_often_than_one_near_a_limit),
        TEST(look_that_is_due_is_not_put_off),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
