/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that leave a terminal elsewhere, in pieces of every size. */
#include "tests/lib/assert.h"

#include "cli/terminal.h"

static const struct {
    const char *typed;
    const char *passed;
    gboolean leaves;
} cases[] = {
    {"ls\r", "ls\r", FALSE},
    {"~.", "", TRUE},
    {"ls\r~.more", "ls\r", TRUE},
    {"ls\n~.", "ls\n", TRUE},
    {"a~.", "a~.", FALSE},
    {"\r~~.", "\r~.", FALSE},
    {"\r~x~.\r", "\r~x~.\r", FALSE},
    {"\r~\r~.", "\r~\r", TRUE},
    {"\r~", "\r", FALSE}, /* what follows decides */
    {"", "", FALSE},
};

static void escape_in_pieces_is_as_in_one(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *typed = cases[i].typed;
        for (gsize piece = 1; piece <= 12; piece++) {
            BerthEscape escape = {.at_start = TRUE};
            g_autoptr(GString) passed = g_string_new(NULL);
            gboolean leaves = FALSE;
            for (gsize at = 0; at < strlen(typed) && !leaves; at += piece) {
                guint8 out[16];
                gsize length = 0;
                leaves = berth_escape_take(&escape, (const guint8 *)typed + at,
                                           MIN(piece, strlen(typed) - at), out, &length);
                g_string_append_len(passed, (const char *)out, (gssize)length);
            }
            assert_string_equal(passed->str, cases[i].passed);
            assert_int_equal(leaves, cases[i].leaves);
        }
    }
}

static void keys_that_come_together_are_taken_one_by_one(void **state)
{
    static const struct {
        const char *typed;
        gsize lengths[6]; /* 0: more is to come */
    } keys[] = {
        {"q", {1, 0}},
        {"cmp", {1, 1, 1, 0}},
        {"\033[A\033[B\033OAq", {3, 3, 3, 1, 0}},
        {"\033[5~\033[6~", {4, 4, 0}},
        {"\033[1;5A\033[", {6, 0}},
        {"c\033[5", {1, 0}},
        {"\033O", {0}},
        {"\033", {1, 0}},
        {"\033\033[A", {1, 3, 0}},
        {"\033qc", {1, 1, 1, 0}},
        {"\033[00000000000000000000A", {16, 1, 1, 1, 1, 1}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        const char *at = keys[i].typed;
        for (guint key = 0; key < G_N_ELEMENTS(keys[i].lengths); key++) {
            gsize length = berth_key_length(at, strlen(at));
            if (length != keys[i].lengths[key])
                fail_msg("keys %u: key %u has %zu bytes", i, key, length);
            if (length == 0)
                break;
            at += length;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escape_in_pieces_is_as_in_one),
        cmocka_unit_test(keys_that_come_together_are_taken_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
