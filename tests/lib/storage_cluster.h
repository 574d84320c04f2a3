/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A Ceph cluster for one test program: lab/lib/ceph-cluster brings it up and ends it, however
 * that ends. */

#include "storage/storage.h"

/* Runs TESTS with a cluster, which conformance_storage is open on. For main() to return: 77 where
 * there is no Ceph. */
struct CMUnitTest;
int cluster_run(const char *name, const struct CMUnitTest *tests, size_t n_tests);

const char *cluster_directory(void);
/* Members are the cluster's; the caller may change its copy. */
BerthStorageConfig cluster_config(void);
BerthStorage *cluster_open(guint op_timeout_sec, GError **error);
/* The addresses of its own clients (transfer full): the first is that of all but the disks of guests that live. */
char **cluster_clients_of(BerthStorage *storage);
/* lab/lib/ceph-cluster VERB: "pause", "resume", "halt", "revive". */
void cluster_do(const char *verb);
/* Leaves in STORAGE's client what an operation on a disk leaves that ran out of time: its watch of the
 * disk's header. */
void cluster_leave_watch(BerthStorage *storage, const char *disk_id);
/* Leaves a dead client's watch of the disk's header, which Ceph keeps for a day. */
void cluster_leave_dead_watch(const char *disk_id);
/* As of a client that was killed as it began to watch: Ceph may never forget it, and not when it is cut off either. It may as
 * well not have come to that. */
void cluster_leave_unseen_watch(const char *disk_id);
/* Removes a disk that a client has open that is gone: Ceph forgets it after 30 s. */
void cluster_remove_disk(const char *disk_id);
/* Output of a command of Ceph as its administrator, words separated by spaces; must succeed.
 * (transfer full) */
char *cluster_admin(const char *format, ...) G_GNUC_PRINTF(1, 2);
