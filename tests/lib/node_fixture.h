/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A real berth-node with a directory of its own, beside a real berthd (berthd_fixture.h) and the libvirtd
 * of tests/lib/with-libvirtd, and what tests do to the three. */

#include "tests/lib/berthd_fixture.h"

typedef struct {
    BerthdFixture *berthd;
    char *dir;            /* of the node; removed at the end */
    char *config;         /* path of its berth-node.conf */
    char *log;            /* path of what it logs */
    GSubprocess *process; /* NULL: does not run */
} NodeFixture;

/* What is missing for guests on this machine; NULL: nothing. */
const char *node_fixture_missing(void);

/* A node called "n1" with 4 vCPUs and 2 GiB, configured but not started, and an image "tiny" with
 * busybox. EXTRA: further lines of [guests], or NULL. */
NodeFixture *node_fixture_new(const char *extra);
/* Ends everything that runs, domains too. */
void node_fixture_free(NodeFixture *node);
/* Writes the configuration with LINES (of any groups) instead of the usual. */
void node_fixture_configure(NodeFixture *node, const char *lines);
/* The usual lines of [node] and [scheduler], and those of [storage] (transfer full). */
char *node_fixture_lines(NodeFixture *node, const char *certificate, const char *key,
                         const char *guests);

void node_fixture_start(NodeFixture *node);
void node_fixture_kill(NodeFixture *node); /* SIGKILL, and waits */
/* Runs it until it ends by itself: its exit status. */
int node_fixture_run(NodeFixture *node);
/* What it has logged so far (transfer full). */
char *node_fixture_log(NodeFixture *node);
guint64 node_fixture_rss(NodeFixture *node);

/* Submits "/bin/sh -c SCRIPT" with MEMORY_MIB; a job's node etc. are the defaults. */
guint64 node_fixture_submit(NodeFixture *node, const char *script, guint64 memory_mib);
/* Waits until JOB ends. (transfer full), to be freed with berth_message_free(). */
Berth__Job *node_fixture_wait(NodeFixture *node, guint64 job);
/* Waits until the output of JOB contains TEXT. */
void node_fixture_wait_output(NodeFixture *node, guint64 job, const char *text);

/* Runs virsh; its output (transfer full). */
char *node_fixture_virsh(const char *command, const char *argument);
/* Waits until no domain runs. */
void node_fixture_wait_no_domains(void);
void node_fixture_signal_libvirtd(int signal);
/* Kills libvirtd, and starts it again. */
void node_fixture_kill_libvirtd(void);
void node_fixture_start_libvirtd(void);
