/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Configuration files (GKeyFile syntax) described by tables. A table names every option of some
 * groups; loading fills the members of a plain struct, and refuses what the table does not know.
 * Several tables can describe one file, each with a struct of its own: [storage] is the same
 * table in both daemons.
 *
 *     static const BerthConfigOption options[] = {
 *         {BERTH_CONFIG_MEMBER(Settings, port), .group = "agents", .key = "port",
 *          .type = BERTH_CONFIG_UINT, .min = 1, .max = 65535, .default_value = "7440",
 *          .doc = "TCP port for agents"},
 *     };
 *
 * (This is not autoconf's config.h: inside common/ include that as <config.h>.) */

#include <glib.h>
#include <stddef.h>

typedef enum {
    BERTH_CONFIG_STRING,       /* char *; one of VALUES if those are given */
    BERTH_CONFIG_PATH,         /* char *; absolute */
    BERTH_CONFIG_UINT,         /* guint or guint64; MIN..MAX */
    BERTH_CONFIG_SIZE_MIB,     /* guint or guint64; "512M"; MIN..MAX in MiB */
    BERTH_CONFIG_DURATION_SEC, /* guint or guint64; "1h30m"; MIN..MAX in seconds */
    BERTH_CONFIG_BOOL,         /* gboolean; true, false, yes, no */
    BERTH_CONFIG_ENUM,         /* int or an enum: index into VALUES */
    BERTH_CONFIG_STRING_LIST,  /* char **, NULL-terminated; "a;b"; each one of VALUES if given */
} BerthConfigType;

typedef struct {
    gsize offset; /* of the member in the struct, and its size: BERTH_CONFIG_MEMBER() */
    gsize width;
    const char *group;
    const char *key;
    BerthConfigType type;
    guint64 min;               /* of numbers, sizes and durations */
    guint64 max;               /* 0 = what the member can hold */
    const char *const *values; /* NULL-terminated */
    const char *default_value; /* as it would be written; NULL: NULL, 0 or FALSE */
    gboolean required;         /* refuse a file without it */
    const char *doc;           /* one line, for messages and --help */
    /* Further check of a STRING, PATH or list element; the error says what is allowed. */
    gboolean (*check)(const char *value, GError **error);
} BerthConfigOption;

#define BERTH_CONFIG_MEMBER(type, member)                                                          \
    .offset = offsetof(type, member), .width = sizeof(((type *)NULL)->member)

/* A table with the struct that it fills. Arrays of tables end with {NULL}. */
typedef struct {
    const BerthConfigOption *options;
    gsize n_options;
    gpointer target; /* zeroed by the caller */
} BerthConfigTable;

/* Reads PATH into the targets of TABLES. MANUAL is named in messages: "berthd.conf(5)".
 * Errors: NOT_FOUND and other errno codes (the file), INVALID_ARGUMENT
 * ("FILE:LINE: [group] key: why; allowed: ..."): syntax, unknown or repeated groups and keys, bad
 * values, missing required keys. The targets are then cleared. */
gboolean berth_config_load(const char *path, const char *manual, const BerthConfigTable *tables,
                           GError **error);
/* The same from memory; NAME stands for the path in messages. */
gboolean berth_config_load_data(const char *data, gsize length, const char *name,
                                const char *manual, const BerthConfigTable *tables, GError **error);
/* Frees the members that the tables own and zeroes all members. */
void berth_config_clear(const BerthConfigTable *tables);

/* For tests: does the man page at PATH (roff) document each option? A group is documented by a
 * line that has "[group]", a key by a line after it that starts with the key, fonts and macros
 * aside. The error (NOT_FOUND) lists what is missing. */
gboolean berth_config_check_manual(const char *path, const BerthConfigOption *options,
                                   gsize n_options, GError **error);
