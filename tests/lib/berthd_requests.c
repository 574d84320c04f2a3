/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a client asks the berthd of a test (tests/lib/berthd_fixture.h). */
#include "config.h"

#include "tests/lib/berthd_fixture.h"

#include "common/message.h"
#include "tests/lib/assert.h"

#include <grp.h>
#include <unistd.h>

gpointer berthd_fixture_call(BerthdFixture *fixture, const ProtobufCServiceDescriptor *service,
                             const char *method, const ProtobufCMessage *request)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call(berthd_fixture_client(fixture), service, method,
                                                  request, 60000, &error);
    assert_no_error(error);
    return reply;
}

GError *berthd_fixture_call_error(BerthdFixture *fixture, const ProtobufCServiceDescriptor *service,
                                  const char *method, const ProtobufCMessage *request)
{
    GError *error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call(berthd_fixture_client(fixture), service, method,
                                                  request, 60000, &error);
    assert_null(reply);
    assert_non_null(error);
    return error;
}

BerthRpcPeer *berthd_fixture_connect_as(BerthdFixture *fixture, uid_t uid, gid_t gid)
{
    if (geteuid() != 0) {
        skip();
    }
    /* The kernel notes who connects: the effective ids at that moment. */
    g_autoptr(GError) error = NULL;
    gid_t groups[64];
    int n_groups = getgroups(G_N_ELEMENTS(groups), groups);
    assert_true(n_groups >= 0);
    assert_int_equal(setgroups(0, NULL), 0);
    assert_int_equal(setegid(gid), 0);
    assert_int_equal(seteuid(uid), 0);
    BerthRpcPeer *peer = berth_rpc_connect_unix(berthd_fixture_socket(fixture), NULL, &error);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(setegid(0), 0);
    assert_int_equal(setgroups((gsize)n_groups, groups), 0);
    assert_no_error(error);
    return peer;
}

void berthd_fixture_import(BerthdFixture *fixture, const char *name)
{
    Berth__ImportBeginRequest begin = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    begin.name = (char *)name;
    begin.size_bytes = 1u << 20;
    begin.source = (char *)"a test";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(fixture, &berth__images__descriptor, "ImportBegin", &begin.base);
    Berth__ImportCommitRequest commit = BERTH__IMPORT_COMMIT_REQUEST__INIT;
    commit.import_id = ((Berth__ImportBeginReply *)reply)->import_id;
    g_autoptr(ProtobufCMessage) image =
        berthd_fixture_call(fixture, &berth__images__descriptor, "ImportCommit", &commit.base);
    assert_string_equal(((Berth__Image *)image)->name, name);
}

Berth__JobSpec berthd_fixture_spec(void)
{
    static char *command[] = {(char *)"true"};
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    spec.name = (char *)"test";
    spec.image = (char *)"tiny";
    spec.vcpus = 1;
    spec.memory_mib = 64;
    spec.disk_mib = 1;
    spec.time_limit_sec = 3600;
    spec.command = command;
    spec.n_command = 1;
    return spec;
}

guint64 berthd_fixture_submit(BerthdFixture *fixture, const Berth__JobSpec *spec)
{
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = (Berth__JobSpec *)spec;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(fixture, &berth__jobs__descriptor, "Submit", &request.base);
    return ((Berth__SubmitReply *)reply)->job;
}

GError *berthd_fixture_submit_error(BerthdFixture *fixture, const Berth__JobSpec *spec)
{
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = (Berth__JobSpec *)spec;
    return berthd_fixture_call_error(fixture, &berth__jobs__descriptor, "Submit", &request.base);
}

guint64 berthd_fixture_submit_plain(BerthdFixture *fixture)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    return berthd_fixture_submit(fixture, &spec);
}

Berth__Job *berthd_fixture_get(BerthdFixture *fixture, guint64 job)
{
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = job;
    return berthd_fixture_call(fixture, &berth__jobs__descriptor, "Get", &request.base);
}

static gboolean on_chunk(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__LogChunk *chunk = (const Berth__LogChunk *)item;
    g_string_append_len(user_data, (const char *)chunk->data.data, (gssize)chunk->data.len);
    return TRUE;
}

char *berthd_fixture_task_logs(BerthdFixture *fixture, guint64 job, guint32 task,
                               gboolean is_stderr, gboolean follow)
{
    g_autoptr(GError) error = NULL;
    GString *text = g_string_new(NULL);
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = job;
    request.task = task;
    request.want_stdout = !is_stderr;
    request.want_stderr = is_stderr;
    request.follow = follow;
    berth_rpc_peer_stream(berthd_fixture_client(fixture), &berth__jobs__descriptor, "Logs",
                          &request.base, 60000, on_chunk, text, &error);
    assert_no_error(error);
    return g_string_free(text, FALSE);
}

char *berthd_fixture_logs(BerthdFixture *fixture, guint64 job, gboolean is_stderr, gboolean follow)
{
    return berthd_fixture_task_logs(fixture, job, 0, is_stderr, follow);
}
