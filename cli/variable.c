/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a user names a variable of a job's environment. */
#include "cli/variable.h"

#include "cli/table.h"
#include "common/error.h"

#include <string.h>

/* One that begins with a digit no shell can name. */
static gboolean check_name(const char *name, GError **error)
{
    const char *why = g_ascii_isdigit(*name) ? "it begins with a digit" : NULL;
    for (const char *c = name; *c != '\0' && why == NULL; c++)
        why = g_ascii_isspace(*c) ? "it has a space in it" : NULL;
    if (why == NULL)
        return TRUE;
    g_autofree char *shown = berth_printable(name);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" cannot be the name of a variable: %s", shown, why);
    return FALSE;
}

char *berth_variable_parse(const char *text, GError **error)
{
    const char *equals = strchr(text, '=');
    if (equals == text || *text == '\0') {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not NAME=VALUE, and not the NAME of a variable that is set", text);
        return NULL;
    }
    g_autofree char *name =
        equals != NULL ? g_strndup(text, (gsize)(equals - text)) : g_strdup(text);
    if (!check_name(name, error))
        return NULL;
    if (equals != NULL)
        return g_strdup(text);
    const char *value = g_getenv(name);
    if (value != NULL)
        return g_strconcat(name, "=", value, NULL);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the variable \"%s\" is not set here; give it as %s=VALUE", name, name);
    return NULL;
}
