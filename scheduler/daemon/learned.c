/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mapping of what the core has learnt to records of the store. When it is written is the
 * engine's: with the tasks of the same event, so that a daemon that is killed finds both or
 * neither. */
#include "config.h"

#include "scheduler/daemon/learned.h"

static void write_use(BerthStoreBatch *batch, const BerthCoreUse *use)
{
    Berth__StoredUse stored = BERTH__STORED_USE__INIT;
    stored.account = use->account;
    stored.uid = use->uid;
    stored.is_user = use->is_user;
    stored.used_mib_sec = use->used_mib_sec;
    stored.at_usec = (guint64)use->at_usec;
    berth_store_batch_put_use(batch, &stored);
}

static void write_prior(BerthStoreBatch *batch, const BerthCorePrior *prior)
{
    Berth__StoredPrior stored = BERTH__STORED_PRIOR__INIT;
    stored.uid = prior->uid;
    stored.family = prior->family;
    stored.vcpus = prior->vcpus;
    stored.memory_mib = prior->memory_mib;
    stored.siblings = prior->n;
    stored.peak_milli = prior->peak_milli;
    stored.peak_mib = prior->peak_mib;
    berth_store_batch_put_prior(batch, &stored);
}

void berth_learned_write(BerthStoreBatch *batch, const BerthCoreEffects *effects)
{
    for (guint i = 0; i < effects->uses->len; i++)
        write_use(batch, &g_array_index(effects->uses, BerthCoreUse, i));
    for (guint i = 0; i < effects->priors->len; i++)
        write_prior(batch, &g_array_index(effects->priors, BerthCorePrior, i));
}

void berth_learned_use_to_core(const Berth__StoredUse *stored, BerthCoreUse *out_use)
{
    *out_use = (BerthCoreUse){.account = stored->account,
                              .uid = stored->uid,
                              .is_user = stored->is_user,
                              .used_mib_sec = stored->used_mib_sec,
                              .at_usec = (gint64)stored->at_usec};
}

void berth_learned_prior_to_core(const Berth__StoredPrior *stored, BerthCorePrior *out_prior)
{
    *out_prior = (BerthCorePrior){.uid = stored->uid,
                                  .family = stored->family,
                                  .vcpus = stored->vcpus,
                                  .memory_mib = stored->memory_mib,
                                  .n = stored->siblings,
                                  .peak_milli = stored->peak_milli,
                                  .peak_mib = stored->peak_mib};
}
