/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that goes on from a checkpoint: whose fault it is when it cannot, and an agent that ends meanwhile. */
#include <config.h>

#include "common/message.h"
#include "nodeagent/checkpoint_record.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"
#include "tests/lib/fake_checkpoints.h"

#define NAME   "berth-1-0-0-1"
#define LOG_ID "log-1-0-0-1"

static const BerthGuestId restored_id = {.job = 1, .epoch = 2};

static const char saved_xml[] =
    "<domain type='qemu'><name>" NAME "</name><metadata><berth:guest xmlns:berth='" //
    BERTH_DOMAIN_XMLNS
    "' job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='64' disk-mib='16' "
    "disk='disk-1-0-0-1' log='" LOG_ID
    "'/></metadata><cputune><shares>1024</shares><quota>1000</quota></cputune>"
    "<os><kernel>/k</kernel><initrd>/i</initrd></os><devices>"
    "<disk type='network'><source protocol='rbd' name='p/d'/></disk>"
    "<channel type='unix'><source path='/c'/><target name='" BERTH_CHANNEL_PORT "'/></channel>"
    "<serial type='file'><source path='/s'/></serial></devices></domain>";

typedef struct {
    gboolean is_given;
    BerthFault fault;
    int code; /* 0 = yes */
} Answer;

static void on_answer(BerthFault fault, const GError *error, gpointer user_data)
{
    Answer *answer = user_data;
    assert_false(answer->is_given);
    answer->is_given = TRUE;
    answer->fault = fault;
    answer->code = error == NULL ? 0 : error->code;
}

static int setup(void **state)
{
    Berth__CheckpointGuestReply taken = BERTH__CHECKPOINT_GUEST_REPLY__INIT;
    Berth__CheckpointRecord record = BERTH__CHECKPOINT_RECORD__INIT;
    record.version = BERTH_CHECKPOINT_VERSION;
    record.log_id = (char *)LOG_ID;
    record.taken = &taken;
    record.domain = (char *)NAME;
    record.domain_xml = (char *)saved_xml;
    record.is_emulated = TRUE;
    fake_checkpoints_reset();
    fake_checkpoints.record = berth_message_pack(&record.base);
    return agent_fixture_setup(state);
}

static BerthGuest *restored(AgentFixture *fixture)
{
    return berth_guest_table_find(fixture->agent->table, &restored_id);
}

static void ask(BerthGuest *guest, const BerthGuestId *which, guint signal, guint boot_deadline_sec,
                Answer *answer)
{
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__RestoreFrom from = BERTH__RESTORE_FROM__INIT;
    Berth__StartGuestRequest request = BERTH__START_GUEST_REQUEST__INIT;
    id.job = which->job;
    id.epoch = which->epoch;
    from.checkpoint_id = (char *)"1-0-1";
    from.signal = signal;
    request.id = &id;
    request.image_id = (char *)"tiny";
    request.disk_id = (char *)"disk-1-0-0-2";
    request.log_id = (char *)LOG_ID;
    request.disk_bytes = 1 << 20;
    request.vcpus = 1;
    request.memory_mib = 64;
    request.boot_deadline_sec = boot_deadline_sec;
    request.restore = &from;
    berth_guest_start(guest, &request, on_answer, answer);
}

static void start(AgentFixture *fixture, Answer *answer)
{
    agent_fixture_start(fixture);
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL);
    BerthGuest *guest = berth_guest_new(&fixture->agent->context, &restored_id);
    berth_guest_table_add(fixture->agent->table, guest);
    ask(guest, &restored_id, 0, 0, answer);
}

static void guest_goes_on_from_a_checkpoint(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    start(fixture, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->restores, 1);
    assert_true(restored(fixture)->is_adopted);
    run_until(fixture->hypervisor->resumes == 1);
}

/* Until its clients are known, which the scheduler was not told yet. */
static void stand(AgentFixture *fixture)
{
    Answer answer = {0};
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    start(fixture, &answer);
    run_until(answer.is_given);
    run_until(restored(fixture)->clients.known != NULL);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    assert_true(restored(fixture)->stands_restored);
    assert_true(fake_hypervisor_stands(fixture->hypervisor, restored(fixture)->name));
}

/* An agent before has restored it, and it has not gone on. */
static BerthGuest *adopt_standing(AgentFixture *fixture)
{
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_restored(fixture->hypervisor, &agent_fixture_id, TRUE);
    agent_fixture_start(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    run_until(guest->clients.known != NULL);
    assert_true(guest->stands_restored);
    return guest;
}

static void assert_starting(const BerthGuest *guest)
{
    Berth__GuestStatus *status = berth_guest_status(guest);
    assert_int_equal(status->phase, BERTH__GUEST_STATUS__PHASE__STARTING);
    assert_int_equal(status->n_storage_clients, 1);
    berth_message_free(&status->base);
}

static void keep(AgentFixture *fixture, BerthGuest *guest)
{
    berth_guest_set_kept(guest, guest->clients_serial);
    run_until(!guest->stands_restored);
    agent_fixture_set_disk_client(NULL);
}

/* That the scheduler has heard of it is not enough: it may be nobody's there. */
static void assert_goes_on_when_kept(AgentFixture *fixture, BerthGuest *guest)
{
    berth_guest_set_reported(guest, guest->serial);
    berth_guest_set_kept(guest, guest->clients_serial - 1);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    assert_starting(guest);
    berth_guest_set_kept(guest, guest->clients_serial);
    keep(fixture, guest);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_false(fake_hypervisor_stands(fixture->hypervisor, guest->name));
}

/* A fence finds it in what the scheduler has stored; not before. */
static void guest_stands_still_until_it_is_stored_who_has_its_disk(void **state)
{
    AgentFixture *fixture = *state;
    stand(fixture);
    assert_goes_on_when_kept(fixture, restored(fixture));
}

/* Whatever was found of it while it stood still, when it could hear nothing. */
static void guest_that_goes_on_is_asked_at_once_what_it_uses(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    start(fixture, &answer);
    BerthGuest *guest = restored(fixture);
    fixture->peer = fake_guest_new(guest->channel_path);
    fixture->peer->has_task = fixture->peer->is_running = TRUE;
    run_until(answer.is_given && guest->clients.known != NULL);
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    run_until(fixture->peer->hellos > 0);
    guint measures = fixture->peer->measures;
    keep(fixture, guest);
    run_until(fixture->peer->measures > measures);
    assert_int_equal(fixture->peer->measure_msec, 2000);
}

/* ... also when another agent has come meanwhile: it was not frozen by anybody. */
static void next_agent_knows_why_a_guest_stands_still(void **state)
{
    AgentFixture *fixture = *state;
    BerthGuest *guest = adopt_standing(fixture);
    assert_goes_on_when_kept(fixture, guest);
}

/* ... and that it has gone on, although the agent ended before its domain said so, which it does then. */
static void next_agent_knows_that_a_guest_has_gone_on(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_restored(fixture->hypervisor, &agent_fixture_id, FALSE);
    agent_fixture_start(fixture);
    assert_false(agent_fixture_guest(fixture)->stands_restored);
    run_until(fixture->hypervisor->resumes == 1);
}

/* What was heard of it in a Join is told once more by itself, as the answer to that does not say that it is kept. */
static void guest_that_stands_still_is_told_again(void **state)
{
    AgentFixture *fixture = *state;
    stand(fixture);
    BerthGuest *guest = restored(fixture);
    berth_guest_set_reported(guest, guest->serial);
    assert_true(berth_guest_is_reported(guest));
    berth_guest_tell_if_it_stands(guest);
    assert_false(berth_guest_is_reported(guest));
    keep(fixture, guest);
    berth_guest_set_reported(guest, guest->serial);
    berth_guest_tell_if_it_stands(guest);
    assert_true(berth_guest_is_reported(guest));
}

/* Its task may go on elsewhere, with the same disk. */
static void stray_does_not_go_on(void **state)
{
    AgentFixture *fixture = *state;
    stand(fixture);
    BerthGuest *guest = restored(fixture);
    berth_guest_disown(guest);
    berth_guest_set_kept(guest, guest->serial);
    agent_fixture_pass(100);
    agent_fixture_set_disk_client(NULL);
    assert_int_equal(fixture->hypervisor->resumes, 0);
}

/* One that was ended before it went on is not let go. */
static void guest_that_is_released_does_not_go_on(void **state)
{
    AgentFixture *fixture = *state;
    Answer released = {0};
    stand(fixture);
    BerthGuest *guest = restored(fixture);
    berth_guest_release(guest, "disk-1-0-0-2", on_answer, &released);
    berth_guest_set_kept(guest, guest->clients_serial);
    run_until(released.is_given);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    agent_fixture_set_disk_client(NULL);
}

/* As berthd has, while it removes a checkpoint. */
static void who_has_its_disk_open_for_a_moment_is_not_its_client_for_long(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_set_disk_client_and_passer("10.0.0.1:0/7", "10.0.0.2:0/8");
    agent_fixture_add_guest(fixture);
    agent_fixture_start(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    run_until(guest->clients.known != NULL);
    assert_int_equal(g_strv_length(guest->clients.known), 2);
    guint64 serial = guest->clients_serial;
    run_until(g_strv_length(guest->clients.seen) == 1);
    assert_int_equal(g_strv_length(guest->clients.known), 2); /* it may be out of sight */
    run_until(g_strv_length(guest->clients.known) == 1);
    assert_string_equal(guest->clients.known[0], "10.0.0.1:0/7");
    assert_true(guest->clients_serial > serial); /* it is told */
    agent_fixture_set_disk_client(NULL);
}

/* libvirtd that is away for a moment costs no guest. */
static void guest_that_cannot_go_on_at_once_is_tried_again(void **state)
{
    AgentFixture *fixture = *state;
    stand(fixture);
    fixture->hypervisor->resume_fails = 2;
    keep(fixture, restored(fixture));
    assert_int_equal(fixture->hypervisor->resumes, 3);
    assert_int_equal(berth_guest_phase(restored(fixture)), BERTH_PHASE_BOOTING);
}

static void on_checkpointed(const Berth__CheckpointGuestReply *reply, const GError *error,
                            gpointer user_data)
{
    assert_null(reply);
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "has not gone on yet");
    *(gboolean *)user_data = TRUE;
}

static void guest_that_stands_still_is_not_saved_or_moved(void **state)
{
    AgentFixture *fixture = *state;
    Berth__CheckpointGuestRequest request = BERTH__CHECKPOINT_GUEST_REQUEST__INIT;
    BerthMigrationTarget target = {.domain = NULL};
    Answer left = {0};
    gboolean is_refused = FALSE;
    stand(fixture);
    berth_guest_checkpoint(restored(fixture), &request, on_checkpointed, &is_refused);
    assert_true(is_refused);
    berth_guest_leave(restored(fixture), &target, FALSE, FALSE, on_answer, &left);
    assert_true(left.is_given);
    assert_int_equal(left.code, BERTH_ERROR_UNAVAILABLE);
    keep(fixture, restored(fixture));
}

static void ask_again(BerthGuest *guest)
{
    Answer answer = {0};
    ask(guest, &agent_fixture_id, 10, 1, &answer);
    assert_true(answer.is_given);
    assert_int_equal(answer.code, 0);
}

/* The next agent is asked for it again: its time begins when it goes on, and it gets its signal then. */
static void guest_that_stands_still_has_no_deadline(void **state)
{
    AgentFixture *fixture = *state;
    BerthGuest *guest = adopt_standing(fixture);
    ask_again(guest);
    assert_int_equal(guest->restore_signal, 10);
    assert_int_equal(guest->boot_deadline_usec, 0);
    keep(fixture, guest);
    assert_int_not_equal(guest->boot_deadline_usec, 0);
}

/* What stands still gives nothing back: that is asked for when it has gone on, also by the next agent. */
static void balloon_of_a_checkpoint_goes_when_the_guest_goes_on(void **state)
{
    AgentFixture *fixture = *state;
    BerthGuest *guest = adopt_standing(fixture);
    guest->balloon_mib = 16; /* as its domain says, which has it from the checkpoint */
    agent_fixture_pass(100);
    assert_int_equal(fixture->hypervisor->resizes, 0);
    keep(fixture, guest);
    run_until(fixture->hypervisor->resizes > 0);
    assert_int_equal(fixture->hypervisor->resize_wanted.balloon_mib, 0);
}

/* What is still asked of the guest before it, whose domain had the same name, is not asked of this one. */
static void release_of_an_earlier_epoch_leaves_it_alone(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0}, released = {0};
    start(fixture, &answer);
    run_until(answer.is_given);
    BerthGuest *before = berth_guest_new(&fixture->agent->context, &agent_fixture_id);
    berth_guest_table_add(fixture->agent->table, before);
    berth_guest_release_here(before, on_answer, &released);
    run_until(released.is_given);
    assert_int_equal(released.code, 0);
    assert_int_equal(fixture->hypervisor->destroys, 1);
    assert_true(g_hash_table_contains(fixture->hypervisor->domains, NAME));
}

static void assert_fault(AgentFixture *fixture, BerthFault fault, int code)
{
    Answer answer = {0};
    start(fixture, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, code);
    assert_int_equal(answer.fault, fault);
}

static void storage_that_is_away_is_storage_s_fault(void **state)
{
    fake_checkpoints.read_fails = "away";
    fake_checkpoints.read_code = BERTH_ERROR_UNAVAILABLE;
    assert_fault(*state, BERTH_FAULT_STORAGE, BERTH_ERROR_UNAVAILABLE);
}

static void storage_that_goes_away_in_the_midst_is_storage_s_fault(void **state)
{
    fake_checkpoints.next_fails = "away";
    fake_checkpoints.next_code = BERTH_ERROR_DEADLINE_EXCEEDED;
    assert_fault(*state, BERTH_FAULT_STORAGE, BERTH_ERROR_DEADLINE_EXCEEDED);
}

static void memory_that_is_damaged_is_so_everywhere(void **state)
{
    fake_checkpoints.next_fails = "damaged";
    fake_checkpoints.next_code = BERTH_ERROR_DATA_LOSS;
    assert_fault(*state, BERTH_FAULT_JOB, BERTH_ERROR_DATA_LOSS);
}

/* It was removed, or made torn, since its record was read. What its guest put out after it is some later one's still. */
static void memory_that_is_not_there_any_more_is_so_everywhere(void **state)
{
    AgentFixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) storage = berth_storage_open(&fixture->config.storage, &error);
    assert_no_error(error);
    assert_true(berth_storage_log_write(storage, LOG_ID ".out", 0, "later", 5, &error));
    fake_checkpoints.read_fails = "torn";
    fake_checkpoints.read_code = BERTH_ERROR_FAILED_PRECONDITION;
    assert_fault(fixture, BERTH_FAULT_JOB, BERTH_ERROR_DATA_LOSS);
    guint64 size = 0;
    assert_true(berth_storage_log_size(storage, LOG_ID ".out", &size, &error));
    assert_int_equal(size, 5);
}

/* Its guest before this one was ended just now, or was killed: Ceph forgets a client that has not answered for half a minute. */
static void disk_that_is_in_use_is_nobody_s_fault(void **state)
{
    fake_checkpoints.disk_fails = "in use";
    fake_checkpoints.disk_code = BERTH_ERROR_FAILED_PRECONDITION;
    assert_fault(*state, BERTH_FAULT_IN_USE, BERTH_ERROR_FAILED_PRECONDITION);
}

/* Somebody has it open for a moment, as who removes an older checkpoint has. */
static void disk_that_is_closed_soon_is_waited_for(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    fake_checkpoints.disk_fails = "in use";
    fake_checkpoints.disk_code = BERTH_ERROR_FAILED_PRECONDITION;
    fake_checkpoints.disk_fails_times = 2;
    start(fixture, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_null(fake_checkpoints.disk_fails);
}

static void libvirt_that_fails_is_the_node_s_fault(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    start(fixture, &answer);
    fixture->hypervisor->restore_fails = "no such machine";
    run_until(answer.is_given);
    assert_int_equal(answer.fault, BERTH_FAULT_NODE);
}

/* Its QEMU is ended, as nothing else ends the restore. */
static void libvirt_that_does_nothing_is_the_node_s_fault(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    g_atomic_int_set(&fake_checkpoints.is_impatient, TRUE);
    g_atomic_int_set(&fake_checkpoints.mib, 3); /* more than a FIFO holds */
    start(fixture, &answer);
    fixture->hypervisor->holds_restores = TRUE;
    run_until(answer.is_given);
    assert_int_equal(answer.fault, BERTH_FAULT_NODE);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
}

/* The rest of its memory is not waited for. */
static void restore_of_a_guest_that_is_released_is_called_off(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0}, release = {0};
    start(fixture, &answer);
    fixture->hypervisor->loads = TRUE;
    run_until(fixture->hypervisor->restores == 1);
    berth_guest_release(restored(fixture), NULL, on_answer, &release);
    run_until(release.is_given);
    assert_int_equal(release.code, 0);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
}

/* What libvirt has begun comes to its end; nothing more is asked of it. */
static void agent_that_ends_does_not_wait_for_memory(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    start(fixture, &answer);
    fixture->hypervisor->is_slow = TRUE;
    run_until(fixture->hypervisor->restores == 1);
    g_clear_pointer(&fixture->agent, berth_agent_free);
    assert_true(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
}

static void agent_that_ends_before_memory_is_open_asks_nobody(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    start(fixture, &answer);
    run_until(restored(fixture)->restore != NULL);
    g_clear_pointer(&fixture->agent, berth_agent_free);
    assert_true(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(guest_goes_on_from_a_checkpoint),
        TEST(guest_stands_still_until_it_is_stored_who_has_its_disk),
        TEST(guest_that_goes_on_is_asked_at_once_what_it_uses),
        TEST(next_agent_knows_why_a_guest_stands_still),
        TEST(next_agent_knows_that_a_guest_has_gone_on),
        TEST(guest_that_stands_still_is_told_again),
        TEST(stray_does_not_go_on),
        TEST(guest_that_is_released_does_not_go_on),
        TEST(who_has_its_disk_open_for_a_moment_is_not_its_client_for_long),
        TEST(guest_that_cannot_go_on_at_once_is_tried_again),
        TEST(guest_that_stands_still_is_not_saved_or_moved),
        TEST(guest_that_stands_still_has_no_deadline),
        TEST(balloon_of_a_checkpoint_goes_when_the_guest_goes_on),
        TEST(release_of_an_earlier_epoch_leaves_it_alone),
        TEST(storage_that_is_away_is_storage_s_fault),
        TEST(storage_that_goes_away_in_the_midst_is_storage_s_fault),
        TEST(memory_that_is_damaged_is_so_everywhere),
        TEST(memory_that_is_not_there_any_more_is_so_everywhere),
        TEST(disk_that_is_in_use_is_nobody_s_fault),
        TEST(disk_that_is_closed_soon_is_waited_for),
        TEST(libvirt_that_fails_is_the_node_s_fault),
        TEST(libvirt_that_does_nothing_is_the_node_s_fault),
        TEST(restore_of_a_guest_that_is_released_is_called_off),
        TEST(agent_that_ends_does_not_wait_for_memory),
        TEST(agent_that_ends_before_memory_is_open_asks_nobody),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
