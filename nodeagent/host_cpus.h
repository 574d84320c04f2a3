/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* CPUs of a host that are kept for what is not its guests'. Lists are the kernel's: "0-1,8". */

#include <glib.h>

/* INVALID_ARGUMENT: LIST is none of CPUs that Linux can have. Whether this host has them is not asked. */
gboolean berth_host_cpus_check(const char *list, GError **error);

/* Those of this host that run now; of the kernel. (transfer full) NULL with ERROR: it does not say. */
char *berth_host_cpus_online(GError **error);

/* What a host has of the CPUs that it is to keep, and what that leaves. */
typedef struct {
    char *host;
    char *guests;
    char *offline; /* that it is to keep, and has not now; NULL: none */
} BerthHostCpus;
/* Of those ONLINE where KEPT are to be the host's. INVALID_ARGUMENT: not lists. FAILED_PRECONDITION: none is left for
 * the host, or none for guests. */
gboolean berth_host_cpus_split(const char *kept, const char *online, BerthHostCpus *out_cpus,
                               GError **error);
void berth_host_cpus_clear(BerthHostCpus *cpus);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthHostCpus, berth_host_cpus_clear)

/* Of a list that the functions above have taken or given. */
guint32 berth_host_cpus_count(const char *list);
/* Of the N at CPUS, how many are in it. */
guint32 berth_host_cpus_count_of(const char *list, const guint32 *cpus, gsize n);

/* This thread, and those that it begins from now on, run on these alone. *OUT_BARRED: those of them that its cpuset does not
 * have, and on which it does not run (transfer full); NULL: none. FAILED_PRECONDITION: it has none of them. */
gboolean berth_host_cpus_bind(const char *list, char **out_barred, GError **error);
/* A program that this process starts runs where it would have without that: a GSpawnChildSetupFunc. */
void berth_host_cpus_restore(gpointer unused);
