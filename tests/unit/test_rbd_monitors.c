/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "storage/rbd_monitors.h"

static void parse_of_all_notations_gives_hosts_and_ports(void **state)
{
    static const struct {
        const char *mon_host;
        const char *expected; /* joined by spaces */
    } cases[] = {
        {"", ""},
        {" , ", ""},
        {"10.0.0.1", "10.0.0.1"},
        {"10.0.0.1:6789", "10.0.0.1:6789"},
        {"10.0.0.1:6789/0", "10.0.0.1:6789"},
        {"a.example.org,b.example.org", "a.example.org b.example.org"},
        {"10.0.0.1 10.0.0.2; 10.0.0.3", "10.0.0.1 10.0.0.2 10.0.0.3"},
        {"10.0.0.1,10.0.0.1", "10.0.0.1"},
        {"v2:10.0.0.1:3300/0", "10.0.0.1:3300"},
        {"[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]", "10.0.0.1:3300 10.0.0.1:6789"},
        {"[v2:10.0.0.1:3300,v1:10.0.0.1:6789]", "10.0.0.1:3300 10.0.0.1:6789"},
        {"[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0],[v2:10.0.0.2:3300/0,v1:10.0.0.2:6789/0]",
         "10.0.0.1:3300 10.0.0.1:6789 10.0.0.2:3300 10.0.0.2:6789"},
        {"[::1]", "[::1]"},
        {"[fd00::1]:6789", "[fd00::1]:6789"},
        {"[v2:[fd00::1]:3300/0,v1:[fd00::1]:6789/0]", "[fd00::1]:3300 [fd00::1]:6789"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(GStrv) monitors = berth_rbd_monitors_parse(cases[i].mon_host);
        g_autofree char *joined = g_strjoinv(" ", monitors);
        assert_string_equal(joined, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_of_all_notations_gives_hosts_and_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
