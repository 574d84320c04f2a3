/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a hypervisor in memory (tests/lib/fake_hypervisor.h). */
#include <config.h>

#include "tests/lib/fake_hypervisor.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/id.h"

static const char postmigrate[] = "the guest is in state postmigrate";

static BerthHypervisor *newest;

BerthHypervisor *fake_hypervisor(void)
{
    return newest;
}

/* --- answers -------------------------------------------------------------------------------- */

typedef struct {
    GTask *task;
    gpointer value; /* NULL: just yes */
    GDestroyNotify value_free;
    GError *error;
} Answer;

static void answer_give(Answer *answer)
{
    if (answer->error != NULL)
        g_task_return_error(answer->task, answer->error);
    else
        g_task_return_pointer(answer->task, answer->value, answer->value_free);
    g_object_unref(answer->task);
    g_free(answer);
}

static gboolean on_answers_due(gpointer data)
{
    BerthHypervisor *fake = data;
    Answer *answer = fake->is_slow ? NULL : g_queue_pop_head(&fake->answers);
    if (answer != NULL) {
        answer_give(answer);
        return G_SOURCE_CONTINUE;
    }
    fake->source = 0;
    return G_SOURCE_REMOVE;
}

void fake_hypervisor_answer(BerthHypervisor *fake)
{
    Answer *answer = g_queue_pop_head(&fake->answers);
    if (answer != NULL)
        answer_give(answer);
}

void fake_hypervisor_be_quick(BerthHypervisor *fake)
{
    fake->is_slow = FALSE;
    if (fake->source == 0)
        fake->source = g_idle_add(on_answers_due, fake);
}

/* ERROR and VALUE (transfer full). */
static void answer_later(BerthHypervisor *fake, GAsyncReadyCallback callback, gpointer user_data,
                         GError *error, gpointer value, GDestroyNotify value_free)
{
    Answer *answer = g_new0(Answer, 1);
    *answer = (Answer){g_task_new(NULL, NULL, callback, user_data), value, value_free, error};
    if (answer->error == NULL && !fake->is_connected)
        answer->error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "no libvirt");
    if (answer->error != NULL && value != NULL && value_free != NULL)
        value_free(value);
    g_queue_push_tail(&fake->answers, answer);
    if (fake->source == 0)
        fake->source = g_idle_add(on_answers_due, fake);
}

static gboolean finish_empty(GAsyncResult *result, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_task_propagate_pointer(G_TASK(result), &reason);
    if (reason == NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&reason));
    return FALSE;
}

static void on_created_at_last(gpointer data)
{
    BerthHypervisor *fake = data;
    g_autoptr(GTask) task = g_steal_pointer(&fake->slow_create);
    fake->slow_source = 0;
    g_task_return_pointer(task, NULL, NULL);
}

static void end_slow_create(BerthHypervisor *fake)
{
    g_autoptr(GTask) task = g_steal_pointer(&fake->slow_create);
    g_clear_handle_id(&fake->slow_source, g_source_remove);
    if (task != NULL)
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                                "the domain was destroyed");
}

static void fail_restore(BerthHypervisor *fake)
{
    g_autoptr(GTask) task = g_steal_pointer(&fake->held_restore);
    if (task != NULL)
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_INTERNAL, "QEMU has ended");
}

/* --- life ----------------------------------------------------------------------------------- */

static void free_domain(gpointer domain)
{
    berth_domain_free(domain);
}

static gboolean on_connect_due(gpointer data)
{
    fake_hypervisor_connect(data);
    return G_SOURCE_REMOVE;
}

BerthHypervisor *berth_hypervisor_new(const char *uri, const BerthHypervisorFuncs *funcs,
                                      gpointer user_data)
{
    BerthHypervisor *fake = g_new0(BerthHypervisor, 1);
    fake->funcs = funcs;
    fake->user_data = user_data;
    fake->domains = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_domain);
    g_queue_init(&fake->answers);
    g_idle_add(on_connect_due, fake);
    fake->pid = FAKE_HYPERVISOR_PID;
    newest = fake;
    return fake;
}

void berth_hypervisor_free(BerthHypervisor *fake)
{
    if (fake == NULL)
        return;
    end_slow_create(fake);
    fake->stays = "it ends";
    fake_hypervisor_let_move(fake);
    fake_hypervisor_fail_save(fake);
    fail_restore(fake);
    fake_hypervisor_let_look(fake);
    g_clear_handle_id(&fake->source, g_source_remove);
    for (Answer *answer; (answer = g_queue_pop_head(&fake->answers)) != NULL;) {
        if (answer->value != NULL && answer->error == NULL)
            answer->value_free(answer->value);
        g_clear_error(&answer->error);
        answer->error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED, "it ends");
        answer_give(answer);
    }
    g_hash_table_unref(fake->domains);
    g_free(fake->created_uuid);
    g_free(fake->destroyed);
    g_free(fake);
}

gboolean berth_hypervisor_is_connected(const BerthHypervisor *fake)
{
    return fake->is_connected;
}

void fake_hypervisor_connect(BerthHypervisor *fake)
{
    fake->is_connected = TRUE;
    fake->funcs->connected(fake->user_data);
}

void fake_hypervisor_lose(BerthHypervisor *fake)
{
    g_autoptr(GError) reason =
        g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "lost libvirt");
    fake->is_connected = FALSE;
    fake->funcs->lost(reason, fake->user_data);
}

/* --- domains -------------------------------------------------------------------------------- */

static BerthDomain *domain_new(const char *name, const BerthGuestId *id, const char *channel_path,
                               const char *console_path)
{
    BerthDomain *domain = g_new0(BerthDomain, 1);
    domain->name = g_strdup(name);
    domain->metadata.id = *id;
    domain->metadata.limits = (BerthResources){.vcpus = 1, .memory_mib = 64, .disk_mib = 16};
    domain->metadata.disk_id = berth_disk_id_format(id);
    domain->metadata.log_id = berth_log_id_format(id);
    domain->channel_path = g_strdup(channel_path);
    domain->console_path = g_strdup(console_path);
    return domain;
}

void fake_hypervisor_add(BerthHypervisor *fake, const BerthGuestId *id, const char *channel_path,
                         const char *console_path)
{
    g_autofree char *name = berth_guest_name_format(id);
    BerthDomain *domain = domain_new(name, id, channel_path, console_path);
    g_hash_table_replace(fake->domains, domain->name, domain);
}

void fake_hypervisor_set_frozen(BerthHypervisor *fake, const BerthGuestId *id)
{
    g_autofree char *name = berth_guest_name_format(id);
    ((BerthDomain *)g_hash_table_lookup(fake->domains, name))->is_frozen = TRUE;
}

void fake_hypervisor_set_saved(BerthHypervisor *fake, const BerthGuestId *id)
{
    fake_hypervisor_set_frozen(fake, id);
    fake->was_saved = TRUE;
}

gboolean fake_hypervisor_is_frozen(BerthHypervisor *fake, const BerthGuestId *id)
{
    g_autofree char *name = berth_guest_name_format(id);
    return ((BerthDomain *)g_hash_table_lookup(fake->domains, name))->is_frozen;
}

void fake_hypervisor_set_restored(BerthHypervisor *fake, const BerthGuestId *id,
                                  gboolean stands_still)
{
    g_autofree char *name = berth_guest_name_format(id);
    BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    domain->metadata.stands = TRUE;
    domain->stands_still = stands_still;
}

gboolean fake_hypervisor_stands(BerthHypervisor *fake, const char *name)
{
    return ((BerthDomain *)g_hash_table_lookup(fake->domains, name))->metadata.stands;
}

void fake_hypervisor_add_named(BerthHypervisor *fake, const char *name)
{
    const BerthGuestId none = {0};
    BerthDomain *domain = domain_new(name, &none, NULL, NULL);
    g_hash_table_replace(fake->domains, domain->name, domain);
}

void fake_hypervisor_remove(BerthHypervisor *fake, const BerthGuestId *id)
{
    g_autofree char *name = berth_guest_name_format(id);
    g_hash_table_remove(fake->domains, name);
}

void fake_hypervisor_emit(BerthHypervisor *fake, const BerthGuestId *id, BerthDomainEvent event)
{
    g_autofree char *name = berth_guest_name_format(id);
    fake->funcs->domain(name, FAKE_UUID, event, fake->user_data);
}

void berth_hypervisor_create_async(BerthHypervisor *fake, const BerthDomainConfig *config,
                                   guint timeout_msec, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
    fake->creates++;
    g_free(fake->created_uuid);
    fake->created_uuid = g_strdup(config->uuid);
    if (fake->is_connected && config->metadata == NULL) {
        fake_hypervisor_add_named(fake, config->name);
    } else if (fake->is_connected) {
        fake_hypervisor_add(fake, &config->metadata->id, config->channel_path,
                            config->console_path);
    }
    if (fake->slow_create_msec == 0) {
        answer_later(fake, callback, user_data, NULL, NULL, NULL);
        return;
    }
    fake->slow_create = g_task_new(NULL, NULL, callback, user_data);
    fake->slow_source = g_timeout_add_once(fake->slow_create_msec, on_created_at_last, fake);
}

gboolean berth_hypervisor_create_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

void berth_hypervisor_destroy_async(BerthHypervisor *fake, const char *name, const BerthGuestId *id,
                                    guint timeout_msec, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
    const BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    gboolean is_it = domain == NULL || id == NULL || berth_guest_id_equal(&domain->metadata.id, id);
    fake->destroys++;
    g_free(fake->destroyed);
    fake->destroyed = g_strdup(name);
    end_slow_create(fake);
    fail_restore(fake);
    if (fake->is_connected && is_it)
        g_hash_table_remove(fake->domains, name);
    answer_later(fake, callback, user_data, NULL, NULL, NULL);
}

gboolean berth_hypervisor_destroy_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

void berth_hypervisor_check_secret_async(BerthHypervisor *fake, const char *uuid,
                                         GAsyncReadyCallback callback, gpointer user_data)
{
    GError *error = NULL;
    if (fake->secret_fails != NULL)
        error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, fake->secret_fails);
    answer_later(fake, callback, user_data, error, NULL, NULL);
}

gboolean berth_hypervisor_check_secret_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

void berth_hypervisor_suspend_async(BerthHypervisor *fake, const char *name,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
    BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    GError *error = NULL;
    fake->suspends++;
    if (fake->failing_suspends > 0) {
        fake->failing_suspends--;
        g_set_error(&error, BERTH_ERROR,
                    fake->knows_no_suspended ? BERTH_ERROR_NOT_FOUND : BERTH_ERROR_UNAVAILABLE,
                    "the domain is busy, or there is none");
    } else if (domain != NULL) {
        domain->is_frozen = TRUE;
    }
    answer_later(fake, callback, user_data, error, NULL, NULL);
}

void berth_hypervisor_hold_back_async(BerthHypervisor *fake, const char *name,
                                      const BerthDomainShare *share, GAsyncReadyCallback callback,
                                      gpointer user_data)
{
    GError *error = NULL;
    if (fake->failing_holds > 0) {
        fake->failing_holds--;
        error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "the domain is busy");
    } else {
        fake->holds += share->is_held_back;
        fake->lets_go += !share->is_held_back;
        fake->share = *share;
    }
    answer_later(fake, callback, user_data, error, NULL, NULL);
}

gboolean berth_hypervisor_hold_back_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

guint64 berth_hypervisor_pid(const char *name)
{
    return newest->pid;
}

gboolean berth_hypervisor_suspend_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

void berth_hypervisor_resume_async(BerthHypervisor *fake, const char *name,
                                   GAsyncReadyCallback callback, gpointer user_data)
{
    BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    fake->resumes++;
    if (fake->resume_fails > 0) {
        fake->resume_fails--;
        answer_later(fake, callback, user_data,
                     g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "libvirt is away"),
                     NULL, NULL);
        return;
    }
    if (domain != NULL)
        domain->is_frozen = domain->stands_still = domain->metadata.stands = FALSE;
    fake->paused_by_io_error = fake->was_saved = FALSE;
    fake->funcs->domain(name, FAKE_UUID, BERTH_DOMAIN_RESUMED, fake->user_data);
    answer_later(fake, callback, user_data, NULL, NULL, NULL);
}

gboolean berth_hypervisor_resume_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

/* --- moves ---------------------------------------------------------------------------------- */

void fake_hypervisor_set_coming(BerthHypervisor *fake, const BerthGuestId *id, gboolean is_coming)
{
    g_autofree char *name = berth_guest_name_format(id);
    BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    domain->is_starting = is_coming;
    domain->is_frozen = !is_coming;
}

/* TASK (transfer full). */
static void end_move(BerthHypervisor *fake, GTask *task, const char *name)
{
    const char *why = fake->was_saved ? postmigrate : fake->stays;
    if (why != NULL) {
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_INTERNAL, "%s", why);
    } else {
        g_hash_table_remove(fake->domains, name);
        fake->funcs->domain(name, FAKE_UUID, BERTH_DOMAIN_LEFT, fake->user_data);
        g_task_return_pointer(task, NULL, NULL);
    }
    g_object_unref(task);
}

void fake_hypervisor_let_move(BerthHypervisor *fake)
{
    g_autofree char *name = g_steal_pointer(&fake->held_name);
    if (fake->held_move != NULL)
        end_move(fake, g_steal_pointer(&fake->held_move), name);
}

void berth_hypervisor_migrate_async(BerthHypervisor *fake, const char *name,
                                    const BerthMigrationTarget *target,
                                    GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);
    fake->moves++;
    if (fake->holds_moves) {
        fake->held_move = task;
        fake->held_name = g_strdup(name);
    } else {
        end_move(fake, task, name);
    }
}

gboolean berth_hypervisor_migrate_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

/* What libvirt writes: a header, the memory, and the header again, which says that it is whole. */
static void write_memory(const char *path)
{
    guint8 header[92] = "LibvirtQemudPart";
    guint8 memory[5000] = "memory";
    int fd = g_open(path, O_WRONLY | O_CLOEXEC, 0);
    ssize_t written = write(fd, header, sizeof header) + write(fd, memory, sizeof memory);
    memcpy(header, "LibvirtQemudSave", 16);
    written += write(fd, header, sizeof header);
    g_assert(written == 2 * sizeof header + sizeof memory);
    close(fd);
}

void berth_hypervisor_save_async(BerthHypervisor *fake, const char *name, const char *path,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    const char *why = fake->was_saved ? postmigrate : fake->save_fails;
    GError *error =
        why == NULL ? NULL : g_error_new_literal(BERTH_ERROR, BERTH_ERROR_INTERNAL, why);
    fake->saves++;
    if (fake->holds_saves) {
        fake->held_save = g_task_new(NULL, NULL, callback, user_data);
        g_clear_error(&error);
        return;
    }
    if (error == NULL && fake->is_connected) {
        write_memory(path);
        fake->was_saved = TRUE;
    }
    answer_later(fake, callback, user_data, error, g_strdup("<domain/>"), g_free);
}

void fake_hypervisor_fail_save(BerthHypervisor *fake)
{
    g_autoptr(GTask) task = g_steal_pointer(&fake->held_save);
    if (task != NULL)
        g_task_return_new_error(task, BERTH_ERROR, BERTH_ERROR_INTERNAL, "it cannot be saved");
}

char *berth_hypervisor_save_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

typedef struct {
    GTask *task;
    char *path;
} Loading;

/* QEMU: until there is nobody any more who writes. */
static gpointer load(gpointer data)
{
    Loading *loading = data;
    char buffer[4096];
    int fd = g_open(loading->path, O_RDONLY | O_CLOEXEC, 0);
    while (read(fd, buffer, sizeof buffer) > 0)
        ;
    close(fd);
    g_task_return_new_error(loading->task, BERTH_ERROR, BERTH_ERROR_INTERNAL,
                            "the memory has an end before its end");
    g_object_unref(loading->task);
    g_free(loading->path);
    g_free(loading);
    return NULL;
}

void berth_hypervisor_restore_async(BerthHypervisor *fake, const char *name, const char *xml,
                                    const char *path, GAsyncReadyCallback callback,
                                    gpointer user_data)
{
    GError *error =
        fake->restore_fails == NULL
            ? NULL
            : g_error_new_literal(BERTH_ERROR, BERTH_ERROR_INTERNAL, fake->restore_fails);
    fake->restores++;
    if (fake->loads) {
        Loading *loading = g_new(Loading, 1);
        *loading = (Loading){g_task_new(NULL, NULL, callback, user_data), g_strdup(path)};
        g_thread_unref(g_thread_new("qemu", load, loading));
        g_clear_error(&error);
        return;
    }
    if (fake->holds_restores) {
        fake->held_restore = g_task_new(NULL, NULL, callback, user_data);
        g_clear_error(&error);
        return;
    }
    BerthDomain *domain = error == NULL ? berth_domain_parse(xml, strlen(xml), NULL) : NULL;
    if (domain != NULL) {
        domain->is_frozen = TRUE;
        g_hash_table_replace(fake->domains, domain->name, domain);
    }
    answer_later(fake, callback, user_data, error, NULL, NULL);
}

gboolean berth_hypervisor_restore_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

void berth_hypervisor_migration_async(BerthHypervisor *fake, const char *name,
                                      GAsyncReadyCallback callback, gpointer user_data)
{
    GError *error =
        g_hash_table_lookup(fake->domains, name) != NULL
            ? NULL
            : g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no such domain");
    if (fake->holds_looks && fake->held_look == NULL) {
        fake->held_look = g_task_new(NULL, NULL, callback, user_data);
        fake->look = fake->migration;
        g_clear_error(&error);
        return;
    }
    if (error == NULL && fake->failing_looks > 0) {
        fake->failing_looks--;
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "libvirt does not answer");
    }
    answer_later(fake, callback, user_data, error,
                 g_memdup2(&fake->migration, sizeof fake->migration), g_free);
}

void fake_hypervisor_let_look(BerthHypervisor *fake)
{
    g_autoptr(GTask) task = g_steal_pointer(&fake->held_look);
    if (task != NULL)
        g_task_return_pointer(task, g_memdup2(&fake->look, sizeof fake->look), g_free);
}

BerthMigrationState *berth_hypervisor_migration_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

void berth_hypervisor_migration_allow(BerthHypervisor *fake, const char *name, guint downtime_msec)
{
    fake->steers++;
    fake->downtime_msec = downtime_msec;
}

static void let_go(BerthHypervisor *fake)
{
    fake->steers++;
    fake->downtime_msec = 0;
    if (fake->deaf_steers > 0) {
        fake->deaf_steers--;
    } else if (fake->held_save != NULL) {
        fake_hypervisor_fail_save(fake);
    } else if (fake->held_move != NULL) {
        const char *before = fake->stays;
        fake->stays = "canceled by client";
        fake_hypervisor_let_move(fake);
        fake->stays = before;
    }
}

void berth_hypervisor_abort_job_async(BerthHypervisor *fake, const char *name,
                                      GAsyncReadyCallback callback, gpointer user_data)
{
    let_go(fake);
    answer_later(fake, callback, user_data, NULL, NULL, NULL);
}

gboolean berth_hypervisor_abort_job_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

void berth_hypervisor_stay_async(BerthHypervisor *fake, const char *name,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    GError *error = NULL;
    fake->stay_looks++;
    if (g_hash_table_lookup(fake->domains, name) == NULL) {
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no such domain");
    } else if (fake->busy_looks > 0) {
        fake->busy_looks--;
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "libvirt still moves it");
    } else {
        fake->migration.is_under_way = FALSE;
    }
    answer_later(fake, callback, user_data, error, NULL, NULL);
}

gboolean berth_hypervisor_stay_finish(GAsyncResult *result, GError **error)
{
    return finish_empty(result, error);
}

static BerthDomain *copy_domain(const BerthDomain *domain)
{
    BerthDomain *copy =
        domain_new(domain->name, &domain->metadata.id, domain->channel_path, domain->console_path);
    copy->is_frozen = domain->is_frozen;
    copy->stands_still = domain->stands_still || domain->is_frozen;
    copy->metadata.stands = domain->metadata.stands;
    copy->is_starting = domain->is_starting;
    copy->metadata.limits = domain->metadata.limits;
    copy->metadata.balloon_mib = domain->metadata.balloon_mib;
    copy->metadata.is_opportunistic = domain->metadata.is_opportunistic;
    return copy;
}

void berth_hypervisor_find_async(BerthHypervisor *fake, const char *name,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    const BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    GError *error = domain != NULL ? NULL
                                   : g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                                                         "there is no such domain");
    answer_later(fake, callback, user_data, error, domain != NULL ? copy_domain(domain) : NULL,
                 free_domain);
}

BerthDomain *berth_hypervisor_find_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- all domains ---------------------------------------------------------------------------- */

/* The guest goes along at once, as far as it does, and nobody is told of it. */
void berth_hypervisor_resize_async(BerthHypervisor *fake, const char *name,
                                   const BerthDomainSize *wanted, guint64 needed_mib,
                                   gboolean presses, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
    BerthDomain *domain = g_hash_table_lookup(fake->domains, name);
    guint64 usable = wanted->memory_mib - wanted->balloon_mib;
    GError *error = NULL;
    fake->resizes++;
    fake->resize_wanted = *wanted;
    fake->resize_needed_mib = needed_mib;
    fake->resize_presses = presses;
    if (domain == NULL)
        error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "no such domain");
    else if (fake->failing_resizes > 0) {
        fake->failing_resizes--;
        error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "it is refused");
    } else {
        fake->memory_mib = MAX(usable, fake->least_mib);
        if (fake->most_mib != 0)
            fake->memory_mib = MIN(fake->memory_mib, fake->most_mib);
    }
    BerthResizeProgress *progress = g_new(BerthResizeProgress, 1);
    *progress = (BerthResizeProgress){fake->memory_mib == usable, fake->memory_mib};
    if (error == NULL && progress->is_done) {
        domain->metadata.limits.vcpus = wanted->vcpus;
        domain->metadata.limits.memory_mib = wanted->memory_mib;
        domain->metadata.balloon_mib = wanted->balloon_mib;
        domain->metadata.is_opportunistic = wanted->is_opportunistic;
    }
    answer_later(fake, callback, user_data, error, progress, g_free);
}

gboolean berth_hypervisor_resize_finish(GAsyncResult *result, BerthResizeProgress *out_progress,
                                        GError **error)
{
    g_autofree BerthResizeProgress *progress = g_task_propagate_pointer(G_TASK(result), error);
    if (progress == NULL)
        return FALSE;
    *out_progress = *progress;
    return TRUE;
}

static void unref_array(gpointer array)
{
    g_ptr_array_unref(array);
}

void berth_hypervisor_list_async(BerthHypervisor *fake, GAsyncReadyCallback callback,
                                 gpointer user_data)
{
    GHashTableIter iter;
    gpointer value;
    fake->lists++;
    if (fake->failing_lists > 0) {
        fake->failing_lists--;
        answer_later(
            fake, callback, user_data,
            g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "cannot ask about a domain"),
            NULL, NULL);
        return;
    }
    GPtrArray *all = g_ptr_array_new_with_free_func(free_domain);
    g_hash_table_iter_init(&iter, fake->domains);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(all, copy_domain(value));
    answer_later(fake, callback, user_data, NULL, all, unref_array);
}

GPtrArray *berth_hypervisor_list_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- what it measures ----------------------------------------------------------------------- */

static void free_host(gpointer host)
{
    berth_host_free(host);
}

void berth_hypervisor_host_async(BerthHypervisor *fake, GAsyncReadyCallback callback,
                                 gpointer user_data)
{
    BerthHost *host = g_new0(BerthHost, 1);
    host->cpus = 4;
    host->memory_mib = 4096;
    host->cells = g_array_new(FALSE, TRUE, sizeof(BerthHostCell));
    host->machine = g_strdup("pc-q35-7.2");
    host->max_vcpus = 4;
    host->qemu_version = g_strdup("7.2.0");
    host->libvirt_version = g_strdup("9.0.0");
    answer_later(fake, callback, user_data, NULL, host, free_host);
}

BerthHost *berth_hypervisor_host_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

void berth_domain_stats_free(BerthDomainStats *stats)
{
    if (stats == NULL)
        return;
    g_free(stats->name);
    g_free(stats);
}

static void free_stats(gpointer stats)
{
    berth_domain_stats_free(stats);
}

static BerthDomainStats *stats_of(BerthHypervisor *fake, const char *name)
{
    BerthDomainStats *stats = g_new0(BerthDomainStats, 1);
    stats->name = g_strdup(name);
    stats->qemu = fake->counts;
    stats->paused_by_io_error = fake->paused_by_io_error;
    return stats;
}

void berth_hypervisor_domain_stats_async(BerthHypervisor *fake, const char *name,
                                         guint timeout_msec, GAsyncReadyCallback callback,
                                         gpointer user_data)
{
    fake->domain_stats++;
    answer_later(fake, callback, user_data, NULL, stats_of(fake, name), free_stats);
}

/* The kernel of this host counts the same for all of them. */
BerthQemuCounters *berth_qemu_counters_new(const char *domain)
{
    return (BerthQemuCounters *)(void *)g_strdup(domain);
}

void berth_qemu_counters_free(BerthQemuCounters *counters)
{
    g_free(counters);
}

gboolean berth_qemu_counters_read(BerthQemuCounters *counters, BerthQemuUsage *out_usage)
{
    newest->looks++;
    *out_usage = newest->counts;
    return g_hash_table_contains(newest->domains, counters);
}

void berth_qemu_counters_find(BerthQemuCounters *counters)
{
    newest->finds++;
}

BerthDomainStats *berth_hypervisor_domain_stats_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

void berth_hypervisor_stats_async(BerthHypervisor *fake, gboolean with_traffic,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
    GHashTableIter iter;
    gpointer name;
    GPtrArray *all = g_ptr_array_new_with_free_func(free_stats);
    fake->stats++;
    fake->traffic_stats += with_traffic;
    g_hash_table_iter_init(&iter, fake->domains);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(all, stats_of(fake, name));
    answer_later(fake, callback, user_data, NULL, all, unref_array);
}

GPtrArray *berth_hypervisor_stats_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}
