/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A real berthd with a directory of its own (state, storage, certificates, socket), a client's
 * connection to it, and a watcher that knows how every task stands. */

#include "common/rpc.h"
#include "proto/berth.pb-c.h"
#include "tests/lib/fake_agent.h"

typedef struct BerthdFixture BerthdFixture;

/* Makes directory, certificates and configuration; members of group "daemon" are operators. EXTRA:
 * further lines of berthd.conf, first of [agents], then of groups of their own, or NULL. Does not start it. Skips the test where openssl is missing. */
BerthdFixture *berthd_fixture_new(const char *extra);
/* The same with further lines of [storage]. */
BerthdFixture *berthd_fixture_new_storage(const char *extra, const char *storage_extra);
/* The same with another storage: all lines of [storage], and STORAGE (transfer full), which they
 * describe. */
BerthdFixture *berthd_fixture_new_on(const char *extra, const char *storage_lines,
                                     BerthStorage *storage);
/* Ends berthd if it runs (it must end well) and removes the directory. */
void berthd_fixture_free(BerthdFixture *fixture);

const char *berthd_fixture_dir(BerthdFixture *fixture);
const char *berthd_fixture_socket(BerthdFixture *fixture);
const char *berthd_fixture_state(BerthdFixture *fixture);
const char *berthd_fixture_config(BerthdFixture *fixture);
guint16 berthd_fixture_port(BerthdFixture *fixture);
BerthStorage *berthd_fixture_storage(BerthdFixture *fixture);
/* Makes a certificate for NAME, signed by the fixture's CA or, if IS_FOREIGN, by another one.
 * Paths are (transfer full). */
void berthd_fixture_certificate(BerthdFixture *fixture, const char *name, gboolean is_foreign,
                                char **out_certificate, char **out_key);
const char *berthd_fixture_ca(BerthdFixture *fixture);

/* --- the process ------------------------------------------------------------------------------ */

/* Starts it, waits until it is ready, and connects client and watcher. */
void berthd_fixture_start(BerthdFixture *fixture);
/* The same with one more argument, or NULL. */
void berthd_fixture_start_with(BerthdFixture *fixture, const char *argument);
/* What it has logged by now. (transfer full) */
char *berthd_fixture_log(BerthdFixture *fixture);
/* Runs it until it ends by itself: its exit status; OUT_STDERR (transfer full). */
int berthd_fixture_run(BerthdFixture *fixture, const char *const *arguments, char **out_stderr);
void berthd_fixture_kill(BerthdFixture *fixture);     /* SIGKILL, and waits */
int berthd_fixture_terminate(BerthdFixture *fixture); /* SIGTERM; its exit status */
int berthd_fixture_wait(BerthdFixture *fixture);      /* for its end; its exit status */
void berthd_fixture_signal(BerthdFixture *fixture, int signal);
gboolean berthd_fixture_is_running(BerthdFixture *fixture);
/* Resident memory, in bytes. */
guint64 berthd_fixture_rss(BerthdFixture *fixture);
/* How often it has called read() by now, of files and whatever else but sockets. */
guint64 berthd_fixture_n_reads(BerthdFixture *fixture);

/* --- clients ---------------------------------------------------------------------------------- */

BerthRpcPeer *berthd_fixture_client(BerthdFixture *fixture); /* (transfer none) */
/* A unary call; fails the test on an error. (transfer full) */
gpointer berthd_fixture_call(BerthdFixture *fixture, const ProtobufCServiceDescriptor *service,
                             const char *method, const ProtobufCMessage *request);
/* The same; must fail. */
GError *berthd_fixture_call_error(BerthdFixture *fixture, const ProtobufCServiceDescriptor *service,
                                  const char *method, const ProtobufCMessage *request);
/* A connection as another user: UID and GID, without further groups. Skips the test unless it runs
 * as root. (transfer full) */
BerthRpcPeer *berthd_fixture_connect_as(BerthdFixture *fixture, uid_t uid, gid_t gid);
/* Imports an image of 1 MiB of zeroes. */
void berthd_fixture_import(BerthdFixture *fixture, const char *name);

/* A job of 1 vCPU, 64 MiB and image "tiny" that runs "true": to be changed and submitted. Its
 * members are static. */
Berth__JobSpec berthd_fixture_spec(void);
guint64 berthd_fixture_submit(BerthdFixture *fixture, const Berth__JobSpec *spec);
guint64 berthd_fixture_submit_plain(BerthdFixture *fixture);
/* Must fail. (transfer full) */
GError *berthd_fixture_submit_error(BerthdFixture *fixture, const Berth__JobSpec *spec);
Berth__Job *berthd_fixture_get(BerthdFixture *fixture, guint64 job); /* (transfer full) */
/* Output as Jobs.Logs gives it. (transfer full) */
char *berthd_fixture_task_logs(BerthdFixture *fixture, guint64 job, guint32 task,
                               gboolean is_stderr, gboolean follow);
char *berthd_fixture_logs(BerthdFixture *fixture, guint64 job, gboolean is_stderr, gboolean follow);

/* --- the watcher ------------------------------------------------------------------------------ */

/* The state that the newest event of JOB's task 0 says; 0 = no event yet. */
Berth__JobState berthd_fixture_state_of(BerthdFixture *fixture, guint64 job);
void berthd_fixture_wait_state(BerthdFixture *fixture, guint64 job, Berth__JobState state);
/* Waits until the newest event of that KIND names the job. */
void berthd_fixture_wait_event(BerthdFixture *fixture, Berth__Event__Kind kind, guint64 job);
/* Events that were seen, in order (transfer none). Their numbers have no gaps: it was checked. */
GPtrArray *berthd_fixture_events(BerthdFixture *fixture);

/* --- nodes ------------------------------------------------------------------------------------ */

/* A fake node of 64 vCPUs and 64 GiB that has joined. The fixture frees it. */
FakeAgent *berthd_fixture_add_agent(BerthdFixture *fixture, const char *name, FakePlanFunc plan,
                                    gpointer user_data);
/* The same on a host that says what it is; it has joined, or it has an error. */
FakeAgent *berthd_fixture_add_host(BerthdFixture *fixture, const char *name, const char *host_id,
                                   const char *boot_id, FakePlanFunc plan, gpointer user_data);
/* Starts berthd again after its end: nodes dial at once. */
void berthd_fixture_restart(BerthdFixture *fixture);
/* The same with a state that is not the one it had: the watcher forgets what it has seen. */
void berthd_fixture_restart_anew(BerthdFixture *fixture);
