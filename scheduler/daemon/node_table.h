/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/pb.h"

/* What is known of each node beside the core's accounts. */

typedef struct {
    guint32 handle;                  /* the core's */
    char *name;                      /* owned, never changes */
    Berth__NodeInfo *info;           /* as it last joined; never NULL */
    Berth__NodeUsage *usage;         /* newest report, or NULL */
    gint64 measured_usec;            /* of USAGE */
    gint64 heard_usec;               /* when it said something last; 0 = never */
    gint64 kept_heard_usec;          /* as it is in the state, or on its way there */
    char *address;                   /* of its session, or of the last one, or NULL */
    Berth__NodeState told_state;     /* that the event log has */
    gboolean is_told_short;          /* likewise, since berthd began ... */
    gint64 short_told_usec;          /* ... when it was last; 0 = never */
    Berth__NodeAdmission *admission; /* NULL: it is open */
    char *start_error; /* of the newest start that failed on it through its fault, or NULL */
    char *unfenced;    /* while it is lost: name of a guest that cannot be cut off, or NULL ... */
    char *fence_error; /* ... and why */
} BerthNodeEntry;

typedef struct BerthNodeTable BerthNodeTable;
BerthNodeTable *berth_node_table_new(void);
void berth_node_table_free(BerthNodeTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthNodeTable, berth_node_table_free)

/* The entry of HANDLE, made if needed. Entries never move and are never removed. */
BerthNodeEntry *berth_node_table_add(BerthNodeTable *table, guint32 handle, const char *name);
BerthNodeEntry *berth_node_table_find(BerthNodeTable *table, guint32 handle); /* NULL: unknown */
/* "" for an unknown handle and for 0. */
const char *berth_node_table_name(BerthNodeTable *table, guint32 handle);
void berth_node_entry_set_info(BerthNodeEntry *entry, const Berth__NodeInfo *info);
/* Nothing of it waits to be cut off. */
void berth_node_entry_clear_fence_error(BerthNodeEntry *entry);

/* A copy of ADMISSION, NULL: it is open. */
void berth_node_entry_set_admission(BerthNodeEntry *entry, const Berth__NodeAdmission *admission);
gboolean berth_node_entry_is_draining(const BerthNodeEntry *entry);
gboolean berth_node_entry_is_given_up(const BerthNodeEntry *entry);

/* Entries sorted by name (transfer container). */
GPtrArray *berth_node_table_list(BerthNodeTable *table);
