/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections a real berthd has room for, and who gets them. */
#include "tests/lib/berthd_test.h"

#include <stdio.h>
#include <sys/resource.h>

/* As a shell starts it. */
static void berthd_raises_its_limit_of_descriptors(void **state)
{
    struct rlimit limit;
    g_autofree char *text = NULL;
    unsigned long soft = 0, hard = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit low = {.rlim_cur = limit.rlim_max / 2, .rlim_max = limit.rlim_max};
    BerthdFixture *berthd = berthd_fixture_new(NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    berthd_fixture_start(berthd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    g_autofree char *path = g_strdup_printf(
        "/proc/%d/limits", (int)berth_rpc_peer_identity(berthd_fixture_client(berthd))->pid);
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *line = strstr(text, "Max open files");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "Max open files %lu %lu", &soft, &hard), 2);
    assert_int_equal(soft, hard);
    berthd_fixture_free(berthd);
}

static void count_connected(BerthRpcPeer *peer, gpointer n_connected)
{
    ++*(guint *)n_connected;
}

static gboolean has_logged(BerthdTest *test, const char *text)
{
    g_autofree char *log = berthd_fixture_log(test->berthd);
    return strstr(log, text) != NULL;
}

/* Whoever has a certificate cannot take all connections with it, nor keep its node out. */
static void connections_that_do_not_join_are_few(void **state)
{
    enum { N = 9 };
    BerthdTest *test = *state;
    g_autoptr(GError) error = NULL;
    g_autofree char *certificate = NULL;
    g_autofree char *key = NULL;
    BerthRpcDialer *dialers[N];
    guint n_connected = 0;
    berthd_fixture_certificate(test->berthd, "n2", FALSE, &certificate, &key);
    g_autoptr(BerthTlsConfig) tls =
        berth_tls_config_new(certificate, key, berthd_fixture_ca(test->berthd), &error);
    assert_no_error(error);
    for (guint i = 0; i < N; i++)
        dialers[i] = berth_rpc_dialer_new("127.0.0.1", berthd_fixture_port(test->berthd), tls, NULL,
                                          NULL, count_connected, NULL, &n_connected);
    run_until(n_connected >= N);
    run_until(has_logged(test, "did not join on 8 connections before"));
    berthd_fixture_add_agent(test->berthd, "n2", NULL, NULL);
    for (guint i = 0; i < N; i++)
        berth_rpc_dialer_free(dialers[i]);
    assert_true(fake_agent_is_joined(test->agent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(berthd_raises_its_limit_of_descriptors),
        BERTHD_TEST(connections_that_do_not_join_are_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
