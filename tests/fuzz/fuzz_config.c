/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file with an option of each type. Targets are complete after TRUE and empty
 * after FALSE, and messages are text. */
#include "common/config.h"
#include "common/log.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    char *text;
    char *path;
    char *kind;
    guint small;
    guint64 large;
    guint64 size_mib;
    guint duration_sec;
    gboolean flag;
    BerthLogLevel level;
    char **list;
} Settings;

static const char *const kinds[] = {"rbd", "dir", NULL};

static const BerthConfigOption options[] = {
    {BERTH_CONFIG_MEMBER(Settings, text), "a", "text", BERTH_CONFIG_STRING, .default_value = "x"},
    {BERTH_CONFIG_MEMBER(Settings, path), "a", "path", BERTH_CONFIG_PATH},
    {BERTH_CONFIG_MEMBER(Settings, kind), "storage", "kind", BERTH_CONFIG_STRING, .values = kinds},
    {BERTH_CONFIG_MEMBER(Settings, small), "a", "small", BERTH_CONFIG_UINT, 1, 9,
     .default_value = "5"},
    {BERTH_CONFIG_MEMBER(Settings, large), "a", "large", BERTH_CONFIG_UINT},
    {BERTH_CONFIG_MEMBER(Settings, size_mib), "a", "size", BERTH_CONFIG_SIZE_MIB, 1, 1048576},
    {BERTH_CONFIG_MEMBER(Settings, duration_sec), "a", "duration", BERTH_CONFIG_DURATION_SEC, 1,
     86400},
    {BERTH_CONFIG_MEMBER(Settings, flag), "a", "flag", BERTH_CONFIG_BOOL},
    {BERTH_CONFIG_MEMBER(Settings, level), "log", "level", BERTH_CONFIG_ENUM,
     .values = berth_log_level_names, .default_value = "info"},
    {BERTH_CONFIG_MEMBER(Settings, list), "a", "list", BERTH_CONFIG_STRING_LIST},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const Settings empty;
    Settings settings = empty;
    const BerthConfigTable tables[] = {{options, G_N_ELEMENTS(options), &settings}, {NULL}};
    g_autoptr(GError) error = NULL;
    if (berth_config_load_data((const char *)data, size, "f.conf", "f.conf(5)", tables, &error)) {
        g_assert(error == NULL && settings.text != NULL && settings.small >= 1 &&
                 settings.small <= 9);
        g_assert(settings.path == NULL || settings.path[0] == '/');
        berth_config_clear(tables);
    } else {
        g_assert(error != NULL && g_utf8_validate(error->message, -1, NULL));
    }
    g_assert(memcmp(&settings, &empty, sizeof(settings)) == 0);
    return 0;
}
