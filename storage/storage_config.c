/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the option table of group [storage] and what its keys demand of each other. Opens nothing:
 * whether a pool is there shows when storage is opened. */
#include "storage/storage_config.h"

#include <string.h>

#include "common/config_warnings.h"
#include "common/error.h"

static const char *const kinds[] = {"rbd", "dir", NULL};

static gboolean check_user(const char *value, GError **error)
{
    if (value[0] != '\0' && !g_str_has_prefix(value, "client.") && strpbrk(value, " \t/@") == NULL)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "a Ceph user without \"client.\": berth");
    return FALSE;
}

static gboolean check_pool(const char *value, GError **error)
{
    if (value[0] != '\0' && strpbrk(value, " \t/@") == NULL)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the name of a pool, without spaces, '/' and '@': berth");
    return FALSE;
}

static gboolean check_uuid(const char *value, GError **error)
{
    if (g_uuid_string_is_valid(value))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "a UUID, as `virsh secret-list` shows it");
    return FALSE;
}

const BerthConfigOption berth_storage_config_options[] = {
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, kind), .group = "storage", .key = "kind",
     .type = BERTH_CONFIG_STRING, .values = kinds, .required = TRUE,
     .doc = "where images, disks, files and output live: rbd (Ceph) or dir (a directory)"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, ceph_conf), .group = "storage", .key = "ceph_conf",
     .type = BERTH_CONFIG_PATH, .default_value = "/etc/ceph/ceph.conf",
     .doc = "rbd: the cluster's ceph.conf"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, ceph_user), .group = "storage", .key = "ceph_user",
     .type = BERTH_CONFIG_STRING, .default_value = "berth", .check = check_user,
     .doc = "rbd: Ceph user, without \"client.\""},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, ceph_live_user), .group = "storage",
     .key = "ceph_live_user", .type = BERTH_CONFIG_STRING, .default_value = "berth-live",
     .check = check_user,
     .doc = "rbd: Ceph user for the disks of guests that live, which must not cut off clients"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, keyring), .group = "storage", .key = "keyring",
     .type = BERTH_CONFIG_PATH,
     .doc = "rbd: file with the keys of both users, if not where ceph.conf says"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, pool), .group = "storage", .key = "pool",
     .type = BERTH_CONFIG_STRING, .default_value = "berth", .check = check_pool,
     .doc = "rbd: pool for everything that Berth stores"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, secret_uuid), .group = "storage", .key = "secret_uuid",
     .type = BERTH_CONFIG_STRING, .check = check_uuid,
     .doc = "rbd: UUID of the libvirt secret with the key of ceph_user, on nodes"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, path), .group = "storage", .key = "path",
     .type = BERTH_CONFIG_PATH, .doc = "dir: the directory, the same on all nodes"},
    {BERTH_CONFIG_MEMBER(BerthStorageConfig, op_timeout_sec), .group = "storage",
     .key = "op_timeout_sec", .type = BERTH_CONFIG_UINT, .min = 1, .max = 600,
     .default_value = "30", .doc = "seconds after which storage counts as unreachable"},
};
const gsize berth_storage_config_n_options = G_N_ELEMENTS(berth_storage_config_options);

BerthConfigTable berth_storage_config_table(BerthStorageConfig *config)
{
    return (BerthConfigTable){.options = berth_storage_config_options,
                              .n_options = berth_storage_config_n_options,
                              .target = config};
}

gboolean berth_storage_config_check(const BerthStorageConfig *config, const char *name,
                                    GError **error)
{
    gboolean is_dir = g_strcmp0(config->kind, "dir") == 0;
    if (!is_dir && g_strcmp0(config->ceph_user, config->ceph_live_user) == 0)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s: [storage] ceph_live_user=%s is ceph_user, too, and must be another, which "
                    "may not cut off clients of Ceph: berth-setup(7) says how to make it",
                    name, config->ceph_live_user);
    else if (is_dir && config->path == NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s: [storage] kind=dir needs a path: add path=/DIRECTORY", name);
    else if (!is_dir && config->path != NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s: [storage] path=%s is of no use with kind=rbd: remove it, or say kind=dir",
                    name, config->path);
    else if (is_dir && (config->keyring != NULL || config->secret_uuid != NULL))
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s: [storage] %s is of no use with kind=dir: remove it, or say kind=rbd", name,
                    config->keyring != NULL ? "keyring" : "secret_uuid");
    else
        return TRUE;
    return FALSE;
}

void berth_storage_config_warn(const BerthStorageConfig *config, GPtrArray *warnings)
{
    if (config->path != NULL) {
        berth_config_warn_directory(warnings, "[storage] path", config->path);
        return;
    }
    berth_config_warn_file(warnings, "[storage] ceph_conf", config->ceph_conf);
    if (config->keyring != NULL)
        berth_config_warn_file(warnings, "[storage] keyring", config->keyring);
}
