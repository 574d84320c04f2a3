/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tests/lib/fake_agent.h"

struct FakeAgent {
    Berth__Agent_Service service; /* first: handlers get its address */
    FakeAgentConfig config;
    ProtobufCService *services[3];
    BerthTlsConfig *tls;
    BerthRpcDialer *dialer; /* NULL while cut off */
    BerthRpcPeer *peer;     /* NULL without a connection */
    GCancellable *connection;
    gboolean is_joined;
    GError *error;
    GHashTable *guests;  /* const BerthGuestId * -> Guest */
    GHashTable *runs;    /* job -> count */
    GHashTable *starts;  /* job -> Berth__StartGuestRequest */
    GHashTable *delayed; /* set of Delayed */
    guint repeats;
    guint delay_msec;
    guint n_stops;
    guint n_freezes;
    guint n_moves;
    FakeMoves moves;
    guint n_saves;
    FakeSaves saves;
    guint64 saved_bytes[2];              /* of output, that the latest had */
    BerthRpcCall *held_save;             /* under way; NULL: none */
    Berth__CheckpointGuestRequest *save; /* latest; NULL: none */
    Berth__ReleaseGuestRequest *release; /* likewise */
    BerthRpcCall *held_move;             /* MigrateGuest, while its copy takes for ever */
    guint n_answers;
    guint n_kept;
    guint n_reports;
    Berth__ReportReply *report_reply; /* NULL: none was answered */
    const char *version;
    char *cannot_start;
    char *storage_client;
    char *host_id;
    guint instance;
    guint n_strays;
    char *boot_id;
    gint64 booted_usec; /* when it was told what host it is */
    gboolean hides_uptime;
    FakeExecs execs;
};

/* fake_agent_execs.c */
void fake_agent_execs_init(FakeAgent *agent);
void fake_agent_execs_clear(FakeAgent *agent);

/* A guest as it is reported. */
typedef struct {
    Berth__GuestId id;
    Berth__Exit exit;
    Berth__Usage usage;
    char *storage_clients[1];
    Berth__GuestStatus status;
} FakeWords;

/* fake_agent_guests.c: what comes over the connection, and what the guests make of it. */
void fake_agent_guests_init(FakeAgent *agent);
/* Before answers that are held back can no longer be given. */
void fake_agent_guests_end_delays(FakeAgent *agent);
void fake_agent_guests_clear(FakeAgent *agent);
/* All guests as reports (transfer full), for Join and Report; POINTERS gets their statuses. */
FakeWords *fake_agent_describe_all(FakeAgent *agent, GPtrArray *pointers, gboolean for_join);
/* Says of each guest how it is. */
void fake_agent_tell_all(FakeAgent *agent);
/* A call was answered: USER_DATA, the agent, counts it. */
void fake_agent_on_said(GObject *source, GAsyncResult *result, gpointer user_data);
