/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/plan.h"
#include "scheduler/core/state.h"

/* Accounts and users: what each uses, may use and is entitled to. A tree; its root is above all. */
void core_owners_init(BerthCore *core);
void core_owners_clear(BerthCore *core);
gsize core_owners_bytes(BerthCore *core);
/* The user UID within ACCOUNT; made if it is new. */
CoreOwner *core_owner_of_user(BerthCore *core, guint32 account, guint32 uid);
/* PARENT: an account; one that was not told yet is below the root. */
gboolean core_owner_set_account(BerthCore *core, guint32 account, guint32 parent, guint32 shares,
                                const BerthCoreLimits *limits);
void core_owner_set_user(BerthCore *core, guint32 account, guint32 uid, guint32 shares,
                         const BerthCoreLimits *limits);

/* After what the store had was put back: of whom it had nothing begins to use now. */
void core_owners_resume(BerthCore *core);

/* Whether it, and all above, may have one more job. */
gboolean core_owner_may_add_job(const CoreOwner *owner);
void core_owner_add_job(CoreOwner *owner);
void core_owner_remove_job(CoreOwner *owner);
/* TASK has guests now, has others than before (recount), or has none any more. Those that are grown, or are being
 * moved to where they will be, count with all that is held for them. The worth of a vCPU may change meanwhile: what TASK
 * uses per second is reckoned when its guests change. */
void core_owner_start(BerthCore *core, CoreTask *task);
void core_owner_recount(BerthCore *core, CoreTask *task);
void core_owner_end(BerthCore *core, CoreTask *task);
/* So much more the limits of OWNER and of those above let its guests have; G_MAXUINT32 = as much as may be. */
CoreSize core_owner_left(const CoreOwner *owner);
/* TRUE: TASK counts with what it has. */
gboolean core_owner_counts(const CoreTask *task);
/* Of the root. */
BerthCoreLimits core_owner_all_running(BerthCore *core);
/* Who of OWNER and those above does not let one more run now; NULL = all do. */
CoreOwner *core_owner_hinders(CoreOwner *owner, CoreSize size, guint32 guests);
/* A task of CLASS has a planned start in PART of the plan that this pass makes. */
void core_owner_plan(const BerthCore *core, const CoreClass *class, CorePlanPart part);
/* One of CLASS could not run beside all of its owners' that run and all that were planned so. */
gboolean core_owner_hinders_plan(const BerthCore *core, const CoreClass *class, CorePlanPart part);

/* CLASS is to be tried again when OWNER may run more. */
void core_owner_park(CoreOwner *owner, CoreClass *class);
void core_owner_forget_class(CoreOwner *owner, CoreClass *class);
guint32 core_owner_uid(const CoreOwner *owner);
guint32 core_owner_account(const CoreOwner *owner);

/* How far below its share OWNER is, 65536 = has used nothing, 32768 = just its share: 2^(-U/S), U
 * the effective usage and S the share of the whole, as Slurm's classic fair share has it. As of the
 * last time that the order was ranked. */
guint32 core_owner_factor(BerthCore *core, CoreOwner *owner);

/* 2^(-X / 65536), in 1/65536. */
guint32 core_exp2_neg(guint64 x);
