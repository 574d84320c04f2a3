/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* MIGRATE actions on their way: two agents have a part in each. */

BerthMigrations *berth_migrations_new(BerthDaemon *daemon);
void berth_migrations_free(BerthMigrations *migrations);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthMigrations, berth_migrations_free)

/* A MIGRATE whose commit is done; the same again after its node joined begins from the start, from wherever
 * the guest is by then. */
void berth_migrations_begin(BerthMigrations *migrations, const BerthCoreAction *action);
/* A STAY. */
void berth_migrations_call_off(BerthMigrations *migrations, const BerthCoreAction *action);
/* Nothing but a name of GUEST is left on NODE, or what is not to go on there: it is forgotten, and its disk left alone.
 * One that is away names it when it is back, and is told then. */
void berth_migrations_release(BerthMigrations *migrations, guint32 node, const BerthGuestId *guest);
/* The node NAME has joined, or is lost. */
void berth_migrations_node_changed(BerthMigrations *migrations, const char *name);
