/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that is given more, and less, by one that goes along and one that does not, and across agents. */
#include <config.h>

#include "common/error.h"
#include "common/id.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

guint __real_g_timeout_add_once(guint msec, GSourceOnceFunc func, gpointer data);
guint __wrap_g_timeout_add_once(guint msec, GSourceOnceFunc func, gpointer data);

guint __wrap_g_timeout_add_once(guint msec, GSourceOnceFunc func, gpointer data)
{
    return __real_g_timeout_add_once(msec == 3000 ? 1 : msec, func, data);
}

void __wrap_berth_rpc_call_fail(BerthRpcCall *call, const GError *error);

/* CALL is the test's. */
void __wrap_berth_rpc_call_fail(BerthRpcCall *call, const GError *error)
{
    *(int *)(void *)call = error->code;
}

typedef struct {
    gboolean is_given;
    int code; /* 0 = yes */
} Answer;

static void on_answer(BerthFault fault, const GError *error, gpointer user_data)
{
    Answer *answer = user_data;
    assert_false(answer->is_given);
    answer->is_given = TRUE;
    answer->code = error == NULL ? 0 : error->code;
}

/* The fixture's guest has 1 vCPU and 64 MiB. */
static AgentFixture *running(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fixture->hypervisor->memory_mib = 64;
    return fixture;
}

static int ask(AgentFixture *fixture, guint32 vcpus, guint64 memory_mib, guint64 balloon_mib,
               gboolean settles)
{
    Answer answer = {0};
    BerthDomainSize size = {vcpus, memory_mib, balloon_mib, FALSE};
    berth_guest_resize(agent_fixture_guest(fixture), &size, settles, on_answer, &answer);
    run_until(answer.is_given);
    return answer.code;
}

static int resize(AgentFixture *fixture, guint32 vcpus, guint64 memory_mib, guint64 balloon_mib)
{
    return ask(fixture, vcpus, memory_mib, balloon_mib, FALSE);
}

static void assert_limits(AgentFixture *fixture, guint32 vcpus, guint64 memory_mib,
                          guint64 balloon_mib)
{
    const BerthGuest *guest = agent_fixture_guest(fixture);
    assert_int_equal(guest->limits.vcpus, vcpus);
    assert_int_equal(guest->limits.memory_mib, memory_mib);
    assert_int_equal(guest->balloon_mib, balloon_mib);
}

static void growth_and_shrink_are_done_when_the_guest_has_gone_along(void **state)
{
    AgentFixture *fixture = running(state);
    assert_int_equal(resize(fixture, 2, 128, 0), 0);
    assert_limits(fixture, 2, 128, 0);
    assert_int_equal(fixture->hypervisor->memory_mib, 128);
    assert_int_equal(resize(fixture, 1, 128, 64), 0);
    assert_limits(fixture, 1, 128, 64);
    assert_int_equal(fixture->hypervisor->memory_mib, 64);
    assert_int_equal(fixture->hypervisor->resizes, 2);
}

static void guest_that_takes_its_time_is_waited_for(void **state)
{
    AgentFixture *fixture = running(state);
    Answer answer = {0};
    BerthDomainSize size = {1, 128, 0, FALSE};
    fixture->hypervisor->most_mib = 96;
    berth_guest_resize(agent_fixture_guest(fixture), &size, FALSE, on_answer, &answer);
    run_until(fixture->hypervisor->memory_mib == 96);
    fixture->hypervisor->most_mib = 0;
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_RESIZED);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_limits(fixture, 1, 128, 0);
}

/* What it did give is given back to it. */
static void guest_that_keeps_its_memory_has_what_it_had(void **state)
{
    AgentFixture *fixture = running(state);
    fixture->hypervisor->least_mib = 48;
    assert_int_equal(resize(fixture, 1, 32, 0), BERTH_ERROR_FAILED_PRECONDITION);
    assert_limits(fixture, 1, 64, 0);
    assert_int_equal(fixture->hypervisor->resize_wanted.memory_mib, 64);
    assert_int_equal(fixture->hypervisor->memory_mib, 64);
}

/* First in blocks, then by the balloon. */
static void guest_that_keeps_its_memory_is_pressed(void **state)
{
    AgentFixture *fixture = running(state);
    Answer answer = {0};
    BerthDomainSize size = {1, 32, 0, FALSE};
    fixture->hypervisor->least_mib = 48;
    berth_guest_resize(agent_fixture_guest(fixture), &size, FALSE, on_answer, &answer);
    run_until(fixture->hypervisor->resizes == 1);
    assert_false(fixture->hypervisor->resize_presses);
    run_until(fixture->hypervisor->resize_presses);
    fixture->hypervisor->least_mib = 0;
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
}

static void report_available(AgentFixture *fixture, guint64 available_mib)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.memory_total_mib = 50;
    usage.memory_available_mib = available_mib;
    berth_guest_take_usage(agent_fixture_guest(fixture), &usage);
}

/* All that it had when it reported, but for what it said that it has available, and 8 MiB more. */
static void memory_that_a_guest_uses_is_kept_from_its_balloon(void **state)
{
    AgentFixture *fixture = running(state);
    assert_int_equal(resize(fixture, 1, 64, 16), 0);
    assert_true(fixture->hypervisor->resize_needed_mib == G_MAXUINT64);
    report_available(fixture, 10);
    assert_int_equal(resize(fixture, 1, 64, 8), 0);
    assert_int_equal(fixture->hypervisor->resize_needed_mib, 48 - 10 + 8);
    report_available(fixture, 20);
    assert_int_equal(resize(fixture, 1, 64, 0), 0);
    assert_int_equal(fixture->hypervisor->resize_needed_mib, 56 - 20 + 8);
    fixture->hypervisor->least_mib = 48;
    Answer answer = {0};
    BerthDomainSize size = {1, 32, 0, FALSE};
    berth_guest_resize(agent_fixture_guest(fixture), &size, FALSE, on_answer, &answer);
    run_until(agent_fixture_guest(fixture)->resized_mib == 48);
    report_available(fixture, 5);
    run_until(fixture->hypervisor->resize_needed_mib == 48 - 5 + 8);
    run_until(answer.is_given);
}

/* It may have taken what it had available since it said so. */
static void memory_is_asked_for_after_a_new_report_only(void **state)
{
    AgentFixture *fixture = running(state);
    Answer answer = {0};
    BerthDomainSize size = {1, 32, 0, FALSE};
    report_available(fixture, 40);
    fixture->hypervisor->least_mib = 48;
    berth_guest_resize(agent_fixture_guest(fixture), &size, FALSE, on_answer, &answer);
    run_until(fixture->hypervisor->resizes == 1);
    assert_true(fixture->hypervisor->resize_needed_mib == G_MAXUINT64);
    run_until(agent_fixture_guest(fixture)->resized_mib == 48);
    report_available(fixture, 5);
    run_until(fixture->hypervisor->resize_needed_mib == 48 - 5 + 8);
    run_until(answer.is_given);
}

static void report(AgentFixture *fixture, guint64 total_mib, guint64 used_mib)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.memory_total_mib = total_mib;
    usage.memory_available_mib = total_mib - used_mib;
    berth_guest_take_usage(agent_fixture_guest(fixture), &usage);
}

/* Its guest could be given more meanwhile, and is not pressed. That it gives what it has free is no growth, whatever it
 * had when it was looked at. */
static void memory_that_a_guest_takes_meanwhile_is_left_to_it(void **state)
{
    static const struct {
        guint64 memory_mib, wanted_mib, keeps_mib;
        guint64 total_mib[2], used_mib[2];
        gboolean is_given_up; /* with the second report */
    } cases[] = {
        {64, 32, 48, {60, 48}, {20, 30}, TRUE},
        {64, 32, 48, {60, 48}, {30, 36}, FALSE}, /* by little */
        {64, 32, 48, {60, 48}, {12, 23}, FALSE}, /* and would still do */
        {64, 32, 48, {60, 48}, {40, 30}, FALSE},
        {64, 32, 48, {60, 30}, {20, 20}, FALSE},
        /* A 32nd of what it has, where that is more than 8 MiB. */
        {1024, 512, 768, {1000, 768}, {460, 493}, TRUE},
        {1024, 512, 768, {1000, 768}, {460, 492}, FALSE},
        {1024, 512, 768, {1000, 768}, {400, 481}, TRUE},
        {1024, 512, 768, {1000, 768}, {400, 480}, FALSE},
    };
    AgentFixture *fixture = running(state);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Answer answer = {0};
        BerthDomainSize size = {1, cases[i].wanted_mib, 0, FALSE};
        fixture->hypervisor->least_mib = 0;
        assert_int_equal(resize(fixture, 1, cases[i].memory_mib, 0), 0);
        fixture->hypervisor->least_mib = cases[i].keeps_mib;
        berth_guest_resize(agent_fixture_guest(fixture), &size, FALSE, on_answer, &answer);
        run_until(agent_fixture_guest(fixture)->resized_mib == cases[i].keeps_mib);
        report(fixture, cases[i].total_mib[0], cases[i].used_mib[0]);
        assert_null(agent_fixture_guest(fixture)->resize_error);
        report(fixture, cases[i].total_mib[1], cases[i].used_mib[1]);
        assert_int_equal(agent_fixture_guest(fixture)->resize_error != NULL, cases[i].is_given_up);
        run_until(answer.is_given);
        assert_int_equal(answer.code, BERTH_ERROR_FAILED_PRECONDITION);
        assert_limits(fixture, 1, cases[i].memory_mib, 0);
        assert_int_equal(fixture->hypervisor->memory_mib, cases[i].memory_mib);
    }
}

/* It has more than it had, and whoever counts it must not count less. */
static void growth_that_can_neither_end_nor_be_taken_back_is_no_refusal(void **state)
{
    AgentFixture *fixture = running(state);
    fixture->hypervisor->least_mib = fixture->hypervisor->most_mib = 96;
    assert_int_equal(resize(fixture, 1, 128, 0), BERTH_ERROR_UNAVAILABLE);
    fixture->hypervisor->least_mib = 0;
    assert_int_equal(resize(fixture, 1, 128, 0), BERTH_ERROR_FAILED_PRECONDITION);
    assert_int_equal(fixture->hypervisor->memory_mib, 64);
}

static void assert_settled(AgentFixture *fixture, guint64 memory_mib)
{
    guint32 vcpus = 0;
    guint64 has_mib = 0;
    assert_true(berth_guest_has_settled(agent_fixture_guest(fixture), &vcpus, &has_mib));
    assert_int_equal(vcpus, 1);
    assert_int_equal(has_mib, memory_mib);
}

/* Nor is there an end to that: so it has what it has, where that can be told. */
static void growth_that_can_neither_end_nor_be_taken_back_settles(void **state)
{
    AgentFixture *fixture = running(state);
    guint32 vcpus = 0;
    guint64 has_mib = 0;
    fixture->hypervisor->least_mib = fixture->hypervisor->most_mib = 96;
    assert_int_equal(ask(fixture, 2, 128, 0, TRUE), BERTH_ERROR_FAILED_PRECONDITION);
    assert_settled(fixture, 96);
    assert_limits(fixture, 1, 96, 0);
    assert_int_equal(fixture->hypervisor->resize_wanted.memory_mib, 96);
    fixture->hypervisor->least_mib = fixture->hypervisor->most_mib = 0;
    assert_int_equal(ask(fixture, 2, 128, 0, TRUE), 0);
    assert_false(berth_guest_has_settled(agent_fixture_guest(fixture), &vcpus, &has_mib));
    assert_limits(fixture, 2, 128, 0);
    fixture->hypervisor->failing_resizes = 1; /* and it is given back what it had */
    assert_int_equal(ask(fixture, 1, 256, 0, TRUE), BERTH_ERROR_FAILED_PRECONDITION);
    assert_false(berth_guest_has_settled(agent_fixture_guest(fixture), &vcpus, &has_mib));
}

static void refusal_of_libvirt_leaves_what_it_had(void **state)
{
    AgentFixture *fixture = running(state);
    fixture->hypervisor->failing_resizes = 1;
    assert_int_equal(resize(fixture, 2, 128, 0), BERTH_ERROR_FAILED_PRECONDITION);
    assert_int_equal(fixture->hypervisor->resize_wanted.vcpus, 1);
    assert_limits(fixture, 1, 64, 0);
    fixture->hypervisor->failing_resizes = 2; /* nor is it given back what it had */
    assert_int_equal(resize(fixture, 2, 128, 0), BERTH_ERROR_UNAVAILABLE);
    fixture->hypervisor->is_connected = FALSE;
    assert_int_equal(resize(fixture, 2, 128, 0), BERTH_ERROR_UNAVAILABLE);
}

static void last_wish_counts(void **state)
{
    AgentFixture *fixture = running(state);
    Answer first = {0}, same = {0}, second = {0};
    BerthDomainSize sizes[] = {{2, 128, 0, FALSE}, {1, 96, 0, TRUE}};
    BerthGuest *guest = agent_fixture_guest(fixture);
    berth_guest_resize(guest, &sizes[0], FALSE, on_answer, &first);
    berth_guest_resize(guest, &sizes[0], FALSE, on_answer, &same);
    assert_false(first.is_given);
    berth_guest_resize(guest, &sizes[1], FALSE, on_answer, &second);
    assert_int_equal(first.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(same.code, BERTH_ERROR_CANCELLED);
    run_until(second.is_given);
    assert_int_equal(second.code, 0);
    assert_limits(fixture, 1, 96, 0);
    assert_true(guest->is_opportunistic);
}

/* A block that it gives back long after the balloon had to take its place. */
static void memory_that_changes_by_itself_is_set_right(void **state)
{
    AgentFixture *fixture = running(state);
    assert_int_equal(resize(fixture, 1, 128, 0), 0);
    fixture->hypervisor->memory_mib = 32;
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_RESIZED);
    run_until(fixture->hypervisor->memory_mib == 128);
    assert_limits(fixture, 1, 128, 0);
}

static void guest_that_ends_meanwhile_is_not_found(void **state)
{
    AgentFixture *fixture = running(state);
    Answer answer = {0};
    BerthDomainSize size = {1, 32, 0, FALSE};
    fixture->hypervisor->least_mib = 48;
    berth_guest_resize(agent_fixture_guest(fixture), &size, FALSE, on_answer, &answer);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_ENDED);
    assert_int_equal(answer.code, BERTH_ERROR_NOT_FOUND);
    assert_int_equal(resize(fixture, 1, 64, 0), BERTH_ERROR_NOT_FOUND);
}

static void no_answer(const Berth__ResizeGuestReply *reply, void *call)
{
    fail_msg("the call was answered");
}

static void agent_that_ends_says_so(void **state)
{
    AgentFixture *fixture = running(state);
    Berth__ResizeGuestRequest request = BERTH__RESIZE_GUEST_REQUEST__INIT;
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    ProtobufCService *service = fixture->agent->services[0];
    int code = 0;
    id.job = agent_fixture_id.job;
    id.epoch = agent_fixture_id.epoch;
    request.id = &id;
    request.vcpus = 1;
    request.memory_mib = 128;
    fixture->hypervisor->most_mib = 64;
    ((Berth__Agent_Service *)(void *)service)
        ->resize_guest((Berth__Agent_Service *)(void *)service, &request, no_answer, &code);
    run_until(fixture->hypervisor->resizes > 0);
    g_clear_pointer(&fixture->agent, berth_agent_free);
    assert_int_equal(code, BERTH_ERROR_UNAVAILABLE);
}

/* The agent before it was killed between two blocks: what it had counts until all of it is done. */
static void adopted_guest_has_what_was_settled(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    g_autofree char *name = berth_guest_name_format(&agent_fixture_id);
    BerthDomain *domain = g_hash_table_lookup(fixture->hypervisor->domains, name);
    domain->metadata.limits.memory_mib = 256;
    domain->metadata.balloon_mib = 128;
    domain->metadata.is_opportunistic = TRUE;
    fixture->hypervisor->memory_mib = 192;
    agent_fixture_start(fixture);
    assert_limits(fixture, 1, 256, 128);
    assert_true(agent_fixture_guest(fixture)->is_opportunistic);
    fixture->hypervisor->least_mib = 160;
    assert_int_equal(resize(fixture, 1, 256, 128), BERTH_ERROR_UNAVAILABLE);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(growth_and_shrink_are_done_when_the_guest_has_gone_along),
        TEST(guest_that_takes_its_time_is_waited_for),
        TEST(guest_that_keeps_its_memory_has_what_it_had),
        TEST(guest_that_keeps_its_memory_is_pressed),
        TEST(memory_that_a_guest_uses_is_kept_from_its_balloon),
        TEST(memory_is_asked_for_after_a_new_report_only),
        TEST(memory_that_a_guest_takes_meanwhile_is_left_to_it),
        TEST(growth_that_can_neither_end_nor_be_taken_back_is_no_refusal),
        TEST(growth_that_can_neither_end_nor_be_taken_back_settles),
        TEST(refusal_of_libvirt_leaves_what_it_had),
        TEST(last_wish_counts),
        TEST(memory_that_changes_by_itself_is_set_right),
        TEST(guest_that_ends_meanwhile_is_not_found),
        TEST(agent_that_ends_says_so),
        TEST(adopted_guest_has_what_was_settled),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
