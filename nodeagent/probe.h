/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Does KVM really boot a guest here? /dev/kvm and libvirt may say so where no guest gets past its
 * first instructions: only a guest that was booted tells. */

#include "nodeagent/hypervisor/hypervisor.h"
#include "nodeagent/node_config.h"

#define BERTH_PROBE_DOMAIN "berth-probe"
#define BERTH_PROBE_ANSWER "berth-probe-ok"

typedef struct {
    gboolean use_kvm;
    char *reason; /* in words, for people: why this acceleration */
} BerthProbeResult;
void berth_probe_result_free(BerthProbeResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthProbeResult, berth_probe_result_free)

/* --- the decision, without a hypervisor --- */

/* What a probe's outcome depends on: it is kept as long as this is the same (transfer full). */
char *berth_probe_key(const char *boot_id, const BerthHost *host, const BerthNodeConfig *config);
/* Reads what an earlier probe with KEY found; FALSE: none, or another key. */
gboolean berth_probe_cache_load(const char *path, const char *key, gboolean *out_works,
                                char **out_reason);
void berth_probe_cache_save(const char *path, const char *key, gboolean works, const char *reason);
/* Whether libvirt's ERROR, which kept a guest with KVM from starting, is about KVM: QEMU could not
 * open /dev/kvm or make a virtual machine, or the CPU model needs what it lacks. */
gboolean berth_probe_blames_kvm(const GError *error);
/* KVM if it WORKS, else emulation if it is allowed, else UNSUPPORTED with what to do. */
BerthProbeResult *berth_probe_decide(gboolean works, const char *reason,
                                     const BerthNodeConfig *config, GError **error);

/* --- the probe --- */

typedef struct BerthProbe BerthProbe;
/* RESULT is (transfer none), NULL if ERROR is set. May come from inside. */
typedef void (*BerthProbeFunc)(const BerthProbeResult *result, const GError *error,
                               gpointer user_data);
/* Boots a guest unless an earlier outcome holds. One that an earlier probe has left is destroyed in any
 * case, and its own is gone when RESULT comes. */
BerthProbe *berth_probe_new(BerthHypervisor *hypervisor, const BerthNodeConfig *config,
                            const BerthHost *host, const char *cmdline, BerthProbeFunc func,
                            gpointer user_data);
/* To be told what becomes of BERTH_PROBE_DOMAIN, also of one that an earlier probe has left. */
void berth_probe_domain_event(BerthProbe *probe, const char *uuid, BerthDomainEvent event);
void berth_probe_free(BerthProbe *probe);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthProbe, berth_probe_free)
