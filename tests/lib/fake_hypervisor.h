/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* nodeagent/hypervisor/hypervisor.h without libvirt: domains in memory, and a connection that is as bad
 * as the test wants. A program that links it gets it instead of the real one. What is asked is
 * answered from the loop, in order. */

#include "nodeagent/hypervisor/hypervisor.h"

struct BerthHypervisor {
    const BerthHypervisorFuncs *funcs;
    gpointer user_data;
    gboolean is_connected;
    GHashTable *domains; /* name -> BerthDomain */
    GQueue answers;      /* answers due */
    guint source;
    /* How often it was asked. */
    guint creates, destroys, suspends, resumes, lists, stats;
    guint failing_suspends; /* this many more fail with UNAVAILABLE */
    char *destroyed;        /* name of the domain that was to be destroyed last */
    char *created_uuid;     /* of the domain that was to be made last; NULL: none was given */
    /* What goes wrong: this many lists more fail with UNAVAILABLE. */
    guint failing_lists;
    /* A domain that it makes is answered for after so long, or when it is destroyed before. */
    guint slow_create_msec;
    GTask *slow_create;
    guint slow_source;
    /* What is measured of every domain. */
    guint64 cpu_usec;
    guint64 starved_usec;
    gboolean paused_by_io_error; /* until it is resumed */
};

/* Of all domains that it tells of. */
#define FAKE_UUID "5f0f7d6c-3c55-4c0d-8a15-4cf5a3a0a000"

/* The one that berth_hypervisor_new() has made last. */
BerthHypervisor *fake_hypervisor(void);

/* A domain runs from now on; nobody is told. */
void fake_hypervisor_add(BerthHypervisor *fake, const BerthGuestId *id, const char *channel_path,
                         const char *console_path);
/* Its vCPUs stand still; nobody is told. */
void fake_hypervisor_set_frozen(BerthHypervisor *fake, const BerthGuestId *id);
/* A domain that is no guest, the same. */
void fake_hypervisor_add_named(BerthHypervisor *fake, const char *name);
/* It runs no more. */
void fake_hypervisor_remove(BerthHypervisor *fake, const BerthGuestId *id);
/* Tells of it, at once. */
void fake_hypervisor_emit(BerthHypervisor *fake, const BerthGuestId *id, BerthDomainEvent event);
/* The connection is lost, or is there again. */
void fake_hypervisor_lose(BerthHypervisor *fake);
void fake_hypervisor_connect(BerthHypervisor *fake);
