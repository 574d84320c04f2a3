/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the loading of configuration files by tables. Does not own any option: the tables are the
 * daemons'. GKeyFile reads the values; it knows no line numbers and takes the last of repeated
 * keys, so that a scan before it finds where each key stands and refuses what is not well formed.
 *
 * Invariant: a target is complete and valid after TRUE, and all zero after FALSE. */
#include "common/config.h"

#include "common/error.h"
#include "common/units.h"

#include <string.h>

#define FILE_BYTES_MAX (1u << 20)

typedef struct {
    const char *name;   /* of the file, for messages */
    const char *manual; /* "berthd.conf(5)" */
    const BerthConfigTable *tables;
    GKeyFile *keys;
    GHashTable *lines; /* "group\nkey" -> line number */
} Loader;

/* --- which options there are --------------------------------------------------------------- */

static const BerthConfigOption *find_option(const BerthConfigTable *tables, const char *group,
                                            const char *key)
{
    for (; tables->options != NULL; tables++) {
        for (gsize i = 0; i < tables->n_options; i++) {
            const BerthConfigOption *option = &tables->options[i];
            if (g_str_equal(option->group, group) && (!key || g_str_equal(option->key, key)))
                return option;
        }
    }
    return NULL;
}

static void append_once(GString *list, GHashTable *seen, const char *word)
{
    if (g_hash_table_add(seen, (gpointer)word))
        g_string_append_printf(list, "%s%s", list->len > 0 ? ", " : "", word);
}

/* "a, b, c": the keys of GROUP, or all groups if GROUP is NULL. */
static char *allowed_names(const BerthConfigTable *tables, const char *group)
{
    g_autoptr(GString) list = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (; tables->options != NULL; tables++) {
        for (gsize i = 0; i < tables->n_options; i++) {
            const BerthConfigOption *option = &tables->options[i];
            if (group == NULL)
                append_once(list, seen, option->group);
            else if (g_str_equal(option->group, group))
                append_once(list, seen, option->key);
        }
    }
    return g_string_free(g_steal_pointer(&list), FALSE);
}

/* --- the scan: lines, well-formedness, unknown and repeated names ----------------------------- */

static gboolean refuse_line(const Loader *loader, guint line, GError **error, const char *format,
                            ...) G_GNUC_PRINTF(4, 5);

static gboolean refuse_line(const Loader *loader, guint line, GError **error, const char *format,
                            ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *why = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s:%u: %s; see %s", loader->name,
                line, why, loader->manual);
    return FALSE;
}

static gboolean scan_group(const Loader *loader, guint line, char *text, char **group,
                           GError **error)
{
    gsize length = strlen(text);
    if (text[length - 1] != ']')
        return refuse_line(loader, line, error, "the line \"%s\" begins a group but has no \"]\"",
                           text);
    g_free(*group);
    *group = g_strndup(text + 1, length - 2);
    if (find_option(loader->tables, *group, NULL) != NULL)
        return TRUE;
    g_autofree char *allowed = allowed_names(loader->tables, NULL);
    return refuse_line(loader, line, error, "[%s]: unknown group; allowed: %s", *group, allowed);
}

static gboolean scan_key(const Loader *loader, guint line, char *text, const char *group,
                         GError **error)
{
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return refuse_line(loader, line, error,
                           "\"%s\" is neither a [group], nor key=value, nor a # comment", text);
    if (group == NULL)
        return refuse_line(loader, line, error, "\"%s\" stands before the first [group]", text);

    g_autofree char *key = g_strchomp(g_strndup(text, (gsize)(equals - text)));
    if (find_option(loader->tables, group, key) == NULL) {
        g_autofree char *allowed = allowed_names(loader->tables, group);
        return refuse_line(loader, line, error, "[%s] %s: unknown key; allowed: %s", group, key,
                           allowed);
    }
    char *id = g_strdup_printf("%s\n%s", group, key);
    guint before = GPOINTER_TO_UINT(g_hash_table_lookup(loader->lines, id));
    g_hash_table_insert(loader->lines, id, GUINT_TO_POINTER(line));
    if (before != 0)
        return refuse_line(loader, line, error, "[%s] %s: already set in line %u; allowed: once",
                           group, key, before);
    return TRUE;
}

static gboolean scan(const Loader *loader, const char *data, GError **error)
{
    g_auto(GStrv) texts = g_strsplit(data, "\n", -1);
    g_autofree char *group = NULL;
    for (guint i = 0; texts[i] != NULL; i++) {
        char *text = g_strstrip(texts[i]);
        gboolean ok = TRUE;
        if (text[0] == '[')
            ok = scan_group(loader, i + 1, text, &group, error);
        else if (text[0] != '\0' && text[0] != '#')
            ok = scan_key(loader, i + 1, text, group, error);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

/* --- values ------------------------------------------------------------------------------- */

/* Sets "FILE:LINE: [group] key: WHY; allowed: ..." for a value that the file has, and
 * "FILE: [group] key: ..." for a key that it lacks. */
static gboolean refuse_value(const Loader *loader, const BerthConfigOption *option, GError **error,
                             const char *why, const char *allowed)
{
    g_autofree char *id = g_strdup_printf("%s\n%s", option->group, option->key);
    guint line = GPOINTER_TO_UINT(g_hash_table_lookup(loader->lines, id));
    g_autofree char *where =
        line > 0 ? g_strdup_printf("%s:%u", loader->name, line) : g_strdup(loader->name);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s: [%s] %s: %s; allowed: %s; see %s", where, option->group, option->key, why,
                allowed, loader->manual);
    return FALSE;
}

/* The largest value that OPTION may have and its member can hold. */
static guint64 option_max(const BerthConfigOption *option)
{
    guint64 holds = option->width == sizeof(guint32) ? G_MAXUINT32 : G_MAXUINT64;
    return option->max == 0 ? holds : MIN(option->max, holds);
}

static char *describe_range(const BerthConfigOption *option)
{
    guint64 max = option_max(option);
    if (option->type == BERTH_CONFIG_SIZE_MIB) {
        g_autofree char *low = berth_format_size_mib(option->min);
        g_autofree char *high = berth_format_size_mib(MIN(max, BERTH_SIZE_MAX_MIB));
        return g_strdup_printf("a size from %s to %s, as 512M or 1.5G", low, high);
    }
    if (option->type == BERTH_CONFIG_DURATION_SEC)
        return g_strdup_printf("a duration from %" G_GUINT64_FORMAT "s to %" G_GUINT64_FORMAT
                               "s, as 90s, 30m or 1d12h",
                               option->min, MIN(max, (guint64)BERTH_DURATION_MAX_SEC));
    return g_strdup_printf("a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, option->min,
                           max);
}

static gboolean store_number(const Loader *loader, const BerthConfigOption *option,
                             const char *text, gpointer member, GError **error)
{
    guint64 value = 0, max = option_max(option);
    gboolean ok;
    if (option->type == BERTH_CONFIG_SIZE_MIB)
        ok = berth_parse_size_mib(text, &value, NULL);
    else if (option->type == BERTH_CONFIG_DURATION_SEC)
        ok = berth_parse_duration_sec(text, &value, NULL);
    else
        ok = berth_parse_uint64(text, 0, G_MAXUINT64, &value, NULL);
    if (!ok || value < option->min || value > max) {
        g_autofree char *why = g_strdup_printf("\"%s\" is not allowed", text);
        g_autofree char *allowed = describe_range(option);
        return refuse_value(loader, option, error, why, allowed);
    }
    if (option->width == sizeof(guint32))
        *(guint32 *)member = (guint32)value;
    else
        *(guint64 *)member = value;
    return TRUE;
}

static gboolean store_bool(const Loader *loader, const BerthConfigOption *option, const char *text,
                           gpointer member, GError **error)
{
    gboolean is_true = g_str_equal(text, "true") || g_str_equal(text, "yes");
    if (!is_true && !g_str_equal(text, "false") && !g_str_equal(text, "no")) {
        g_autofree char *why = g_strdup_printf("\"%s\" is not allowed", text);
        return refuse_value(loader, option, error, why, "true, false, yes, no");
    }
    *(gboolean *)member = is_true;
    return TRUE;
}

/* Is TEXT one of OPTION's values (any, if it has none), and does its own check pass? */
static gboolean check_text(const Loader *loader, const BerthConfigOption *option, const char *text,
                           GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *why = g_strdup_printf("\"%s\" is not allowed", text);
    if (option->values != NULL && !g_strv_contains(option->values, text)) {
        g_autofree char *allowed = g_strjoinv(", ", (char **)option->values);
        return refuse_value(loader, option, error, why, allowed);
    }
    if (option->type == BERTH_CONFIG_PATH && !g_path_is_absolute(text))
        return refuse_value(loader, option, error, why, "an absolute path");
    if (option->check != NULL && !option->check(text, &reason))
        return refuse_value(loader, option, error, why, reason->message);
    return TRUE;
}

static gboolean store_enum(const Loader *loader, const BerthConfigOption *option, const char *text,
                           gpointer member, GError **error)
{
    if (!check_text(loader, option, text, error))
        return FALSE;
    int index = 0;
    while (!g_str_equal(option->values[index], text))
        index++;
    *(int *)member = index;
    return TRUE;
}

static gboolean store_list(const Loader *loader, const BerthConfigOption *option, const char *text,
                           gpointer member, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, ";", -1);
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    for (char **word = words; *word != NULL; word++) {
        if (*g_strstrip(*word) == '\0')
            continue;
        if (!check_text(loader, option, *word, error))
            return FALSE;
        g_ptr_array_add(list, g_strdup(*word));
    }
    g_ptr_array_add(list, NULL);
    *(char ***)member = (char **)g_ptr_array_free(g_steal_pointer(&list), FALSE);
    return TRUE;
}

static gboolean store(const Loader *loader, const BerthConfigOption *option, const char *text,
                      gpointer target, GError **error)
{
    gpointer member = (guint8 *)target + option->offset;
    switch (option->type) {
    case BERTH_CONFIG_UINT:
    case BERTH_CONFIG_SIZE_MIB:
    case BERTH_CONFIG_DURATION_SEC:
        return store_number(loader, option, text, member, error);
    case BERTH_CONFIG_BOOL:
        return store_bool(loader, option, text, member, error);
    case BERTH_CONFIG_ENUM:
        return store_enum(loader, option, text, member, error);
    case BERTH_CONFIG_STRING_LIST:
        return store_list(loader, option, text, member, error);
    case BERTH_CONFIG_STRING:
    case BERTH_CONFIG_PATH:
        if (!check_text(loader, option, text, error))
            return FALSE;
        *(char **)member = g_strdup(text);
        return TRUE;
    }
    g_return_val_if_reached(FALSE);
}

/* Takes the file's text, or the default; with neither, the member stays zero. */
static gboolean load_option(const Loader *loader, const BerthConfigOption *option, gpointer target,
                            GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *text = NULL;
    if (g_key_file_has_key(loader->keys, option->group, option->key, NULL)) {
        text = g_key_file_get_string(loader->keys, option->group, option->key, &reason);
        if (reason != NULL) /* with or without a text */
            return refuse_value(loader, option, error, reason->message,
                                "UTF-8 text with the escapes \\s \\n \\t \\r \\\\");
        g_strstrip(text);
    } else if (option->required) {
        return refuse_value(loader, option, error, "the key is missing", option->doc);
    } else {
        text = g_strdup(option->default_value);
    }
    return text == NULL || store(loader, option, text, target, error);
}

static gboolean load_options(const Loader *loader, GError **error)
{
    for (const BerthConfigTable *table = loader->tables; table->options != NULL; table++) {
        for (gsize i = 0; i < table->n_options; i++) {
            if (!load_option(loader, &table->options[i], table->target, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* --- public ------------------------------------------------------------------------------- */

gboolean berth_config_load_data(const char *data, gsize length, const char *name,
                                const char *manual, const BerthConfigTable *tables, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autoptr(GKeyFile) keys = g_key_file_new();
    g_autoptr(GHashTable) lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const Loader loader = {name, manual, tables, keys, lines};

    if (length > FILE_BYTES_MAX || !g_utf8_validate_len(data, length, NULL)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s is not a configuration file: it %s; see %s", name,
                    length > FILE_BYTES_MAX ? "is larger than 1 MiB" : "is not UTF-8 text", manual);
        return FALSE;
    }
    g_autofree char *text = g_strndup(data, length);
    if (!scan(&loader, text, error))
        return FALSE;
    if (!g_key_file_load_from_data(keys, text, length, G_KEY_FILE_NONE, &reason) &&
        !g_error_matches(reason, G_KEY_FILE_ERROR, G_KEY_FILE_ERROR_NOT_FOUND)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: %s; see %s", name,
                    reason->message, manual);
        return FALSE;
    }
    if (!load_options(&loader, error)) {
        berth_config_clear(tables);
        return FALSE;
    }
    return TRUE;
}

gboolean berth_config_load(const char *path, const char *manual, const BerthConfigTable *tables,
                           GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *data = NULL;
    gsize length = 0;
    if (!g_file_get_contents(path, &data, &length, &reason)) {
        gboolean missing = g_error_matches(reason, G_FILE_ERROR, G_FILE_ERROR_NOENT);
        gboolean denied = g_error_matches(reason, G_FILE_ERROR, G_FILE_ERROR_ACCES);
        g_set_error(error, BERTH_ERROR,
                    missing  ? BERTH_ERROR_NOT_FOUND
                    : denied ? BERTH_ERROR_PERMISSION_DENIED
                             : BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot read the configuration: %s; %s (see %s)", reason->message,
                    missing ? "write it, or name another with --config" : "mend the file", manual);
        return FALSE;
    }
    return berth_config_load_data(data, length, path, manual, tables, error);
}

void berth_config_clear(const BerthConfigTable *tables)
{
    for (; tables->options != NULL; tables++) {
        for (gsize i = 0; i < tables->n_options; i++) {
            const BerthConfigOption *option = &tables->options[i];
            guint8 *member = (guint8 *)tables->target + option->offset;
            if (option->type == BERTH_CONFIG_STRING || option->type == BERTH_CONFIG_PATH)
                g_free(*(char **)(gpointer)member);
            else if (option->type == BERTH_CONFIG_STRING_LIST)
                g_strfreev(*(char ***)(gpointer)member);
            memset(member, 0, option->width);
        }
    }
}
