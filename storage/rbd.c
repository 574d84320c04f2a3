/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what an "rbd" storage has open of its Ceph cluster, the errors that Ceph gives, and
 * fencing. Each operation on an object waits for Ceph for op_timeout_sec at most; a call that takes several steps may take it
 * several times when storage goes away between them, and librbd waits for some things without a deadline (rbd_removal.c). */
#include <errno.h>
#include <unistd.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

/* How long a fenced client stays on Ceph's blocklist. The agent of a node that comes back ends
 * what was fenced; this must only be longer than a process can sleep before that. */
#define FENCE_SEC (24u * 60 * 60)

/* --- errors ------------------------------------------------------------------------------- */

static BerthErrorCode code_of(int result)
{
    switch (-result) {
    case ESHUTDOWN: /* blocklisted */
    case ENOTCONN:
        return BERTH_ERROR_UNAVAILABLE;
    case ENXIO: /* berth_rbd_set_options() */
        return BERTH_ERROR_FAILED_PRECONDITION;
    default:
        return berth_error_code_from_errno(-result);
    }
}

static char *advice_of(const BerthRbdStorage *self, int result)
{
    switch (-result) {
    case ETIMEDOUT:
        return g_strdup_printf("no answer within %u s: see `ceph -s -c %s -n client.%s`",
                               self->op_timeout_sec, self->ceph_conf, self->user);
    case ESHUTDOWN:
        return g_strdup("this client was cut off (see `ceph osd blocklist ls`); berth-node and "
                        "berthd connect anew by themselves");
    case EPERM:
    case EACCES:
        return g_strdup_printf("client.%s lacks the right: it needs mon 'profile rbd' and osd "
                               "'profile rbd pool=%s' (see `ceph auth get client.%s`); client.%s "
                               "needs the same for osd",
                               self->user, self->pool, self->user, self->live_user);
    case ENOSPC:
    case EDQUOT:
        return g_strdup_printf("pool %s is full (see `ceph df`): remove images that no job needs, "
                               "or add OSDs",
                               self->pool);
    case ENXIO:
        return g_strdup_printf("rbd_default_data_pool names a pool that does not exist (see `rbd "
                               "config pool get %s rbd_default_data_pool`)",
                               self->pool);
    case EIO:
        return g_strdup("stored data is damaged (see `ceph health detail`)");
    default:
        return g_strdup(g_strerror(-result));
    }
}

void berth_rbd_set_error(const BerthRbdStorage *self, int result, GError **error,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (result == -ESHUTDOWN)
        g_atomic_int_set(self->is_fenced, TRUE);
    g_autofree char *advice = advice_of(self, result);
    g_set_error(error, BERTH_ERROR, (gint)code_of(result), "%s: %s", what, advice);
}

/* --- check and fence ------------------------------------------------------------------------ */

static int write_probe(BerthRbdStorage *self)
{
    /* A full pool takes what does not make it fuller: the write must follow on less. */
    rados_write_op_t empty = rados_create_write_op();
    rados_write_op_truncate(empty, 0);
    int result = rados_write_op_operate(empty, self->probe, self->user, NULL, 0);
    rados_release_write_op(empty);
    if (result < 0 && result != -ENOENT)
        return result;
    return rados_write_full(self->probe, self->user, "berth", 5);
}

static gboolean rbd_check(BerthStorage *storage, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    int result = write_probe(self);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot write to Ceph pool %s", self->pool);
        return FALSE;
    }
    char read[8];
    result = rados_read(self->probe, self->user, read, sizeof read, 0);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot read from Ceph pool %s", self->pool);
    return FALSE;
}

static char *rbd_client_address(BerthStorage *storage)
{
    return g_strjoinv(" ", ((BerthRbdStorage *)storage)->addresses);
}

static gboolean rbd_is_fenced(BerthStorage *storage)
{
    return g_atomic_int_get(((BerthRbdStorage *)storage)->is_fenced);
}

static gboolean rbd_is_worn(BerthStorage *storage)
{
    return g_atomic_int_get(((BerthRbdStorage *)storage)->is_worn);
}

int berth_rbd_watched(const BerthRbdStorage *self, int result)
{
    if (result == -ETIMEDOUT)
        g_atomic_int_set(self->is_worn, TRUE);
    return result;
}

int berth_rbd_cut_off(rados_t cluster, const char *address)
{
    g_autofree char *copy = g_strdup(address);
    return rados_blocklist_add(cluster, copy, FENCE_SEC);
}

static gboolean rbd_fence(BerthStorage *storage, const char *const *addresses, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    for (; *addresses != NULL; addresses++) {
        const char *address = *addresses;
        if (g_strv_contains((const char *const *)self->addresses, address))
            continue;
        int result = berth_rbd_cut_off(self->cluster, address);
        if (result == -EINVAL) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "cannot fence '%s': it is no address of a Ceph client (IP:PORT/NONCE)",
                        address);
            return FALSE;
        }
        if (result < 0) {
            berth_rbd_set_error(self, result, error, "cannot fence client %s", address);
            return FALSE;
        }
    }
    /* We have the cluster map that fences now; an OSD that hears from us takes it, too. */
    guint64 bytes = 0;
    time_t modified = 0;
    int result = rados_stat(self->probe, self->user, &bytes, &modified);
    if (result >= 0 || result == -ENOENT)
        return TRUE;
    berth_rbd_set_error(self, result, error, "fenced, but Ceph does not answer");
    return FALSE;
}

static gboolean rbd_may_fence(BerthStorage *storage, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    int result = berth_rbd_try_cut_off(self->cluster);
    if (result >= 0)
        return TRUE;
    if (result == -EACCES || result == -EPERM)
        berth_rbd_set_error(self, result, error,
                            "ceph_user: client.%s is to be able to cut off clients of Ceph, or no "
                            "job of a node that is lost could be started again",
                            self->user);
    else
        berth_rbd_set_error(self, result, error, "cannot ask Ceph what client.%s may", self->user);
    return FALSE;
}

/* --- open and free -------------------------------------------------------------------------- */

static void rbd_free(BerthStorage *storage)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    rados_ioctx_t contexts[] = {self->images, self->blobs, self->logs, self->marks, self->probe};
    for (gsize i = 0; i < G_N_ELEMENTS(contexts); i++) {
        if (contexts[i] != NULL)
            rados_ioctx_destroy(contexts[i]);
    }
    berth_rbd_live_close(self);
    if (self->cluster != NULL)
        rados_shutdown(self->cluster);
    g_strfreev(self->addresses);
    g_free(self->ceph_conf);
    g_free(self->user);
    g_free(self->live_user);
    g_free(self->pool);
    g_free(self->keyring);
    g_free(self->secret_uuid);
    g_free(self->is_fenced);
    g_free(self->is_worn);
    berth_rbd_removals_free(self->removals);
    g_free(self);
}

static const BerthStorageBackend rbd_backend = {
    .kind = "rbd",
    .free = rbd_free,
    .prepare = rbd_check,
    .check = rbd_check,
    .room = berth_rbd_room,
    .client_address = rbd_client_address,
    .is_fenced = rbd_is_fenced,
    .is_worn = rbd_is_worn,
    .fence = rbd_fence,
    .may_fence = rbd_may_fence,
    .mark_read = berth_rbd_mark_read,
    .mark_write = berth_rbd_mark_write,
    .image_create = berth_rbd_image_create,
    .image_write = berth_rbd_image_write,
    .image_zero = berth_rbd_image_zero,
    .image_commit = berth_rbd_image_commit,
    .image_writer_free = berth_rbd_image_writer_free,
    .image_is_committed = berth_rbd_image_is_committed,
    .image_remove = berth_rbd_image_remove,
    .image_list = berth_rbd_image_list,
    .disk_create = berth_rbd_disk_create,
    .disk_source = berth_rbd_disk_source,
    .disk_remove = berth_rbd_disk_remove,
    .disk_list = berth_rbd_disk_list,
    .disk_clients = berth_rbd_disk_clients,
    .checkpoint_create = berth_rbd_checkpoint_create,
    .checkpoint_append = berth_rbd_checkpoint_append,
    .checkpoint_finish = berth_rbd_checkpoint_finish,
    .checkpoint_snapshot = berth_rbd_checkpoint_snapshot,
    .checkpoint_commit = berth_rbd_checkpoint_commit,
    .checkpoint_writer_free = berth_rbd_checkpoint_writer_free,
    .checkpoint_read = berth_rbd_checkpoint_read,
    .checkpoint_open = berth_rbd_checkpoint_open,
    .checkpoint_next = berth_rbd_checkpoint_next,
    .checkpoint_reader_free = berth_rbd_checkpoint_reader_free,
    .checkpoint_used = berth_rbd_checkpoint_used,
    .checkpoint_remove = berth_rbd_checkpoint_remove,
    .checkpoint_list = berth_rbd_checkpoint_list,
    .checkpoint_restore_disk = berth_rbd_checkpoint_restore_disk,
    .blob_create = berth_rbd_blob_create,
    .blob_append = berth_rbd_blob_append,
    .blob_commit = berth_rbd_blob_commit,
    .blob_writer_free = berth_rbd_blob_writer_free,
    .blob_read_index = berth_rbd_blob_read_index,
    .blob_read_data = berth_rbd_blob_read_data,
    .blob_remove = berth_rbd_blob_remove,
    .blob_list = berth_rbd_blob_list,
    .log_write = berth_rbd_log_write,
    .log_read = berth_rbd_log_read,
    .log_size = berth_rbd_log_size,
    .log_cut = berth_rbd_log_cut,
    .logs_remove = berth_rbd_logs_remove,
    .log_list = berth_rbd_log_list,
};

/* A file that Ceph would only say "error calling conf_read_file" about. */
static gboolean check_readable(const char *what, const char *path, GError **error)
{
    if (access(path, R_OK) == 0)
        return TRUE;
    berth_set_error_errno(error, errno,
                          "cannot read %s %s (make it, or mend group [storage] of the "
                          "configuration)",
                          what, path);
    return FALSE;
}

static gboolean open_contexts(BerthRbdStorage *self, GError **error)
{
    const struct {
        rados_ioctx_t *context;
        const char *namespace;
    } contexts[] = {
        {&self->images, NULL},   {&self->blobs, "blobs"}, {&self->logs, "logs"},
        {&self->marks, "berth"}, {&self->probe, "check"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(contexts); i++) {
        int result = rados_ioctx_create(self->cluster, self->pool, contexts[i].context);
        if (result == -ENOENT) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                        "Ceph (%s) has no pool %s: `ceph osd pool create %s` and `rbd pool init "
                        "%s` make it",
                        self->ceph_conf, self->pool, self->pool, self->pool);
            return FALSE;
        }
        if (result < 0) {
            berth_rbd_set_error(self, result, error, "cannot open Ceph pool %s", self->pool);
            return FALSE;
        }
        rados_ioctx_set_namespace(*contexts[i].context, contexts[i].namespace);
        /* Otherwise writes to a full pool wait until it is not; this goes for RBD, too. */
        rados_set_pool_full_try(*contexts[i].context);
    }
    return TRUE;
}

BerthStorage *berth_rbd_storage_connect(const BerthStorageConfig *config, GError **error)
{
    if (config->ceph_conf == NULL || config->ceph_user == NULL || config->ceph_live_user == NULL ||
        config->pool == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "storage of kind 'rbd' needs ceph_conf, ceph_user, ceph_live_user and pool");
        return NULL;
    }
    g_autoptr(BerthStorage) storage = (BerthStorage *)g_new0(BerthRbdStorage, 1);
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    storage->backend = &rbd_backend;
    g_atomic_ref_count_init(&storage->refs);
    self->ceph_conf = g_strdup(config->ceph_conf);
    self->user = g_strdup(config->ceph_user);
    self->live_user = g_strdup(config->ceph_live_user);
    self->pool = g_strdup(config->pool);
    self->keyring = g_strdup(config->keyring);
    self->secret_uuid = g_strdup(config->secret_uuid);
    self->op_timeout_sec = config->op_timeout_sec;
    self->is_fenced = g_new0(gint, 1);
    self->is_worn = g_new0(gint, 1);
    self->removals = berth_rbd_removals_new();
    if (!check_readable("Ceph's configuration", self->ceph_conf, error) ||
        (config->keyring != NULL && !check_readable("keyring", config->keyring, error)))
        return NULL;
    if (berth_rbd_connect(self, self->user, BERTH_RBD_THREADS, &self->cluster, error) < 0 ||
        !open_contexts(self, error) || !berth_rbd_live_open(self, error))
        return NULL;
    self->addresses = g_new0(char *, 3);
    self->addresses[0] = berth_rbd_address(self->cluster);
    self->addresses[1] = berth_rbd_address(self->live_cluster);
    return g_steal_pointer(&storage);
}
