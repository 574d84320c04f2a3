/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how lists of nodes are written. How many names a list stands for is reckoned before any of them is
 * made: what somebody mistyped costs nothing. */
#include "common/node_list.h"

#include "common/error.h"

#include <string.h>

#define NAME_MAX_BYTES 253u
#define DIGITS_MAX     9u
#define NOT_CLOSED     "a bracket is not closed after its numbers"

typedef struct {
    guint64 first, last;
    guint width; /* digits at least */
} Range;

/* A literal text, and what stands in brackets after it. */
typedef struct {
    const char *literal;
    gsize length;
    GArray *ranges; /* Range; NULL = no brackets follow */
} Part;

typedef struct {
    const char *text; /* all of it, for messages */
    GHashTable *seen; /* names in NAMES */
    GPtrArray *names;
} Listing;

static gboolean refuse(const Listing *listing, const char *why, GError **error)
{
    g_autofree char *valid = g_utf8_make_valid(listing->text, MIN(strlen(listing->text), 80));
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" is not a list of nodes: %s; write n1,n2 or n[1-3,7]", valid, why);
    return FALSE;
}

static void part_clear(gpointer data)
{
    Part *part = data;
    g_clear_pointer(&part->ranges, g_array_unref);
}

/* --- reading ---------------------------------------------------------------------------------- */

static gboolean read_number(const char **at, guint64 *out_number, guint *out_digits)
{
    gsize digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > DIGITS_MAX)
        return FALSE;
    *out_number = g_ascii_strtoull(*at, NULL, 10);
    *out_digits = (guint)digits;
    *at += digits;
    return TRUE;
}

/* What is at AT is no number. */
static gboolean refuse_number(const Listing *listing, const char *at, GError **error)
{
    return refuse(listing,
                  *at == '\0' ? NOT_CLOSED : "in brackets there are numbers of 9 digits at most",
                  error);
}

static gboolean read_range(const Listing *listing, const char **at, Range *out_range,
                           GError **error)
{
    Range range = {0};
    guint digits;
    if (!read_number(at, &range.first, &range.width))
        return refuse_number(listing, *at, error);
    if ((*at)[-(gssize)range.width] != '0')
        range.width = 1;
    range.last = range.first;
    if (**at == '-') {
        ++*at;
        if (!read_number(at, &range.last, &digits))
            return refuse_number(listing, *at, error);
    }
    if (range.last < range.first)
        return refuse(listing, "a range ends before it begins", error);
    *out_range = range;
    return TRUE;
}

/* *AT is after "[", and then after "]". */
static gboolean read_ranges(const Listing *listing, const char **at, Part *part, GError **error)
{
    part->ranges = g_array_new(FALSE, FALSE, sizeof(Range));
    for (;;) {
        Range range;
        if (!read_range(listing, at, &range, error))
            return FALSE;
        g_array_append_val(part->ranges, range);
        if (*(*at)++ == ']')
            return TRUE;
        if ((*at)[-1] != ',')
            return refuse(listing, NOT_CLOSED, error);
    }
}

static gboolean is_bad(char c)
{
    return g_ascii_isspace(c) || g_ascii_iscntrl(c);
}

/* Up to "," or the end: *AT is there. */
static gboolean read_item(const Listing *listing, const char **at, GArray *parts, GError **error)
{
    for (;;) {
        Part part = {.literal = *at, .length = strcspn(*at, ",[]")};
        *at += part.length;
        for (gsize i = 0; i < part.length; i++)
            if (is_bad(part.literal[i]))
                return refuse(listing, "a name has a space or a control character", error);
        if (**at == ']')
            return refuse(listing, "a bracket is closed that is not open", error);
        gboolean has_ranges = **at == '[';
        *at += has_ranges;
        gboolean ok = !has_ranges || read_ranges(listing, at, &part, error);
        g_array_append_val(parts, part);
        if (!ok || !has_ranges)
            return ok;
    }
}

/* --- writing out ------------------------------------------------------------------------------ */

static guint64 count_of(const Part *part)
{
    guint64 count = 0;
    for (guint i = 0; part->ranges != NULL && i < part->ranges->len; i++) {
        const Range *range = &g_array_index(part->ranges, Range, i);
        count += range->last - range->first + 1;
    }
    return part->ranges != NULL ? count : 1;
}

/* Of the longest number. */
static guint digits_of(const Part *part)
{
    guint digits = 0;
    for (guint i = 0; part->ranges != NULL && i < part->ranges->len; i++) {
        const Range *range = &g_array_index(part->ranges, Range, i);
        guint needed = 1;
        for (guint64 rest = range->last / 10; rest > 0; rest /= 10)
            needed++;
        digits = MAX(digits, MAX(needed, range->width));
    }
    return digits;
}

static void append_number(GString *name, const Part *part, guint64 index)
{
    const Range *range = &g_array_index(part->ranges, Range, 0);
    for (; index > range->last - range->first; range++)
        index -= range->last - range->first + 1;
    g_string_append_printf(name, "%0*" G_GUINT64_FORMAT, (int)range->width, range->first + index);
}

/* Number INDEX of COUNT names; the last part counts fastest. (transfer full) */
static char *name_of(const GArray *parts, guint64 index, guint64 count)
{
    g_autoptr(GString) name = g_string_new(NULL);
    for (guint i = 0; i < parts->len; i++) {
        const Part *part = &g_array_index(parts, Part, i);
        g_string_append_len(name, part->literal, (gssize)part->length);
        if (part->ranges == NULL)
            continue;
        count /= count_of(part);
        append_number(name, part, index / count);
        index %= count;
    }
    return g_strdup(name->str);
}

static gboolean count_names(const Listing *listing, const GArray *parts, guint64 *out_count,
                            GError **error)
{
    guint64 count = 1;
    gsize length = 0;
    for (guint i = 0; i < parts->len; i++) {
        const Part *part = &g_array_index(parts, Part, i);
        length += part->length + digits_of(part);
        count *= MIN(count_of(part), BERTH_NODE_LIST_MAX + 1);
        if (count + listing->names->len > BERTH_NODE_LIST_MAX)
            return refuse(listing, "it stands for more than 100000 nodes", error);
    }
    if (length == 0)
        return refuse(listing, "a name is empty", error);
    if (length > NAME_MAX_BYTES)
        return refuse(listing, "a name is longer than 253 bytes", error);
    *out_count = count;
    return TRUE;
}

static gboolean add_names(Listing *listing, const GArray *parts, GError **error)
{
    guint64 count = 0;
    if (!count_names(listing, parts, &count, error))
        return FALSE;
    for (guint64 i = 0; i < count; i++) {
        char *name = name_of(parts, i, count);
        if (g_hash_table_contains(listing->seen, name)) {
            g_free(name);
            continue;
        }
        g_ptr_array_add(listing->names, name);
        g_hash_table_add(listing->seen, name);
    }
    return TRUE;
}

/* --- lists ------------------------------------------------------------------------------------ */

static gboolean read_list(Listing *listing, const char *text, GError **error)
{
    const char *at = text;
    listing->text = text;
    if (!g_utf8_validate(text, -1, NULL))
        return refuse(listing, "it is not UTF-8", error);
    for (;;) {
        g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Part));
        g_array_set_clear_func(parts, part_clear);
        if (!read_item(listing, &at, parts, error) || !add_names(listing, parts, error))
            return FALSE;
        if (*at == '\0')
            return TRUE;
        at++;
    }
}

char **berth_node_list_parse_all(const char *const *texts, guint count, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    Listing listing = {.seen = seen, .names = names};
    for (guint i = 0; i < count; i++)
        if (!read_list(&listing, texts[i], error))
            return NULL;
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_steal(names, NULL);
}

char **berth_node_list_parse(const char *text, GError **error)
{
    const char *const texts[] = {text};
    return berth_node_list_parse_all(texts, 1, error);
}
