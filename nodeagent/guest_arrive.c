/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a guest comes from another node: what that node's host must know of this one, and how its domain,
 * which libvirt has brought, is taken. Until then it belongs to the other node: nothing is told of it, and its
 * disk is not this node's to remove. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"

void berth_guest_expect(BerthGuest *guest)
{
    g_autofree char *path = g_strdup_printf("%s/%s.%04x.sock", guest->context->config->run_dir,
                                            guest->name, (guint)g_random_int_range(0, 0x10000));
    /* A path of its own each time: one that was here before unlinks its socket as its QEMU ends. */
    g_free(guest->channel_path);
    guest->channel_path = g_steal_pointer(&path);
    guest->phase = guest->last_phase = BERTH_PHASE_ARRIVING;
    guest->may_have_domain = TRUE;
}

gboolean berth_guest_is_coming(const BerthGuest *guest, const BerthDomain *domain)
{
    return domain->is_starting && domain->channel_path != NULL &&
           !g_str_equal(domain->channel_path, guest->channel_path);
}

void berth_guest_expect_again(BerthGuest *guest, const BerthDomain *domain)
{
    berth_guest_expect(guest);
    g_free(guest->channel_path);
    guest->channel_path = g_strdup(domain->channel_path);
    guest->domain_is_up = TRUE;
}

BerthMigrationTarget *berth_guest_target(const BerthGuest *guest)
{
    const BerthNodeConfig *config = guest->context->config;
    const BerthMigrationTarget target = {
        .libvirt_uri = config->reached_at,
        .stream_uri = config->stream_at,
        .channel_path = guest->channel_path,
        .console_path = guest->console_path,
        .kernel = config->kernel,
        .initramfs = config->initramfs,
        .partition = config->partition,
        .guest_cpus = config->guest_cpus,
        .host_cpus = config->host_cpus,
        .secret_uuid = config->storage.secret_uuid,
        .is_opportunistic = guest->is_opportunistic,
        .sets_weight = TRUE,
    };
    return berth_migration_target_copy(&target);
}

static void answer_all(BerthGuest *guest, const GError *error)
{
    guest->is_being_taken = FALSE;
    berth_guest_give_answers(guest->take_answers, BERTH_FAULT_NONE, error);
}

static void on_let_go(BerthFault fault, const GError *error, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    if (!guest->is_closed)
        answer_all(guest, error);
}

static void on_opened(BerthFault fault, const GError *error, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    if (guest->is_closed)
        return;
    if (error != NULL || !guest->is_to_stand)
        answer_all(guest, error);
    else
        berth_guest_freeze(guest, TRUE, on_let_go, berth_guest_ref(guest));
}

/* The QEMU that a guest has come to opens its disk when its vCPUs first run there, and aborts when it is to close a
 * disk that it has not opened, for another move or a checkpoint (before QEMU 10.0). So one that is to stand still runs
 * for an instant all the same. */
static void let_go(BerthGuest *guest)
{
    if (guest->is_frozen)
        berth_guest_freeze(guest, FALSE, on_opened, berth_guest_ref(guest));
    else if (guest->is_to_stand)
        berth_guest_freeze(guest, TRUE, on_let_go, berth_guest_ref(guest));
    else
        answer_all(guest, NULL);
}

/* Before it goes on: a fence is to find it from then on. A node that does not reach storage does not let it go: it may be cut
 * off from the scheduler as well, who gives it up then and has its task go on elsewhere, with the same disk; here it would
 * open that when the node comes back, as a client that nobody could have cut off. */
static void on_clients_found(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) clients = berth_guest_find_clients_finish(guest, result, &error);
    if (guest->is_closed)
        return;
    if (clients != NULL && clients[0] == NULL &&
        berth_storage_lane_names_clients(guest->context->lane)) {
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "nobody has it open yet");
        g_clear_pointer(&clients, g_strfreev);
    }
    if (clients == NULL && !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        g_message("%s stands still: the clients of its disk are not known: %s", guest->name,
                  error->message);
        answer_all(guest, error);
        return;
    }
    if (clients != NULL)
        berth_guest_note_clients(guest, clients);
    if (guest->is_to_wait)
        answer_all(guest, NULL);
    else
        let_go(guest);
}

static void on_found(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomain) domain = berth_hypervisor_find_finish(result, &error);
    if (guest->is_closed)
        return;
    if (domain != NULL && guest->phase != BERTH_PHASE_ARRIVING)
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "%s is being removed", guest->name);
    else if (domain != NULL && domain->is_starting)
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s is still on its way",
                    guest->name);
    if (error != NULL) {
        answer_all(guest, error);
        return;
    }
    g_message("%s has come from another node", guest->name);
    berth_guest_adopt(guest, domain);
    berth_seen_clients_clear(&guest->clients);
    guest->is_frozen = guest->freeze_wanted = TRUE; /* whatever libvirt calls how it has come */
    berth_guest_find_clients(guest, on_clients_found);
}

void berth_guest_take(BerthGuest *guest, gboolean frozen, gboolean waits,
                      BerthGuestAnswerFunc answer, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    berth_guest_add_answer(guest->take_answers, answer, user_data);
    guest->is_to_stand = frozen;
    guest->is_to_wait = waits && (guest->is_to_wait || !guest->is_being_taken);
    if (guest->is_being_taken)
        return;
    guest->is_being_taken = TRUE;
    if (guest->phase == BERTH_PHASE_ARRIVING) {
        berth_hypervisor_find_async(guest->context->hypervisor, guest->name, on_found,
                                    berth_guest_ref(guest));
    } else if (berth_guest_has_domain(guest) && guest->is_frozen && guest->clients.known == NULL) {
        /* For want of them it may not have been let go before. */
        berth_guest_find_clients(guest, on_clients_found);
    } else if (berth_guest_has_domain(guest) && guest->is_to_wait) {
        answer_all(guest, NULL);
    } else if (berth_guest_has_domain(guest)) {
        let_go(guest);
    } else {
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "%s does not run here",
                    guest->name);
        answer_all(guest, error);
    }
}
