/* SPDX-License-Identifier: Apache-2.0 */
/* What of a guest's own words is believed and passed on. */
#include <config.h>

#include <signal.h>

#include "common/message.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/assert.h"

static void take_exit_keeps_what_is_known(void **state)
{
    BerthGuest guest = {
        .phase = BERTH_PHASE_ENDED, .is_end_measured = TRUE, .usage = BERTH__USAGE__INIT};
    Berth__Exit exit = BERTH__EXIT__INIT;
    exit.status = 3;
    exit.signal = SIGTERM;
    exit.oom_kills = 2;
    exit.disk_full = TRUE;
    exit.stdout_bytes = 10;
    exit.stderr_bytes = 20;
    exit.error = (char *)"why";
    berth_guest_take_exit(&guest, &exit);
    g_autoptr(ProtobufCMessage) status = &berth_guest_status(&guest)->base;
    assert_true(
        berth_message_equal(&((const Berth__GuestStatus *)(void *)status)->exit->base, &exit.base));
    berth_message_free(&guest.exit->base);
}

static void take_exit_of_what_cannot_be_is_put_right(void **state)
{
    BerthGuest guest = {
        .phase = BERTH_PHASE_ENDED, .is_end_measured = TRUE, .usage = BERTH__USAGE__INIT};
    g_autofree char *text = g_strnfill(100000, 'x');
    text[3] = '\xe9';
    Berth__Exit exit = BERTH__EXIT__INIT;
    exit.status = 0x1ff;
    exit.signal = 12345;
    exit.error = text;
    berth_guest_take_exit(&guest, &exit);
    assert_int_equal(guest.exit->status, 0xff);
    assert_int_equal(guest.exit->signal, SIGKILL);
    assert_true(g_utf8_validate(guest.exit->error, -1, NULL));
    assert_int_equal(strlen(guest.exit->error), BERTH_GUEST_TEXT_MAX_BYTES + 2);
    berth_guest_take_exit(&guest, &exit); /* again: the first is freed */
    berth_message_free(&guest.exit->base);
}

static void take_exit_drops_fields_that_nobody_knows(void **state)
{
    BerthGuest guest = {
        .phase = BERTH_PHASE_ENDED, .is_end_measured = TRUE, .usage = BERTH__USAGE__INIT};
    guint8 content[100000] = {0};
    ProtobufCMessageUnknownField unknown = {
        .tag = 1000, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .data = content};
    content[0] = 0x9d; /* the length of the rest, as a varint */
    content[1] = 0x8d;
    content[2] = 0x06;
    unknown.len = sizeof content;
    Berth__Exit exit = BERTH__EXIT__INIT;
    exit.status = 1;
    exit.base.n_unknown_fields = 1;
    exit.base.unknown_fields = &unknown;
    berth_guest_take_exit(&guest, &exit);
    g_autoptr(ProtobufCMessage) status = &berth_guest_status(&guest)->base;
    const Berth__Exit *told = ((const Berth__GuestStatus *)(void *)status)->exit;
    assert_int_equal(told->status, 1);
    assert_int_equal(told->base.n_unknown_fields, 0);
    assert_in_range(berth__exit__get_packed_size(told), 1, 100);
    berth_message_free(&guest.exit->base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_exit_keeps_what_is_known),
        cmocka_unit_test(take_exit_of_what_cannot_be_is_put_right),
        cmocka_unit_test(take_exit_drops_fields_that_nobody_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
