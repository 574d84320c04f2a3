/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the check that a man page documents every option of a table. Reads roff only as far as
 * needed: drops fonts and escapes, then looks at how lines begin. */
#include "common/config.h"

#include "common/error.h"

#include <string.h>

/* The text of a roff LINE: no request at its start, no quotes, no font changes, "\-" as "-". */
static char *plain_text(const char *line)
{
    g_autoptr(GString) text = g_string_new(NULL);
    if (line[0] == '.') /* ".B key", ".IP \"key\"" */
        line += strcspn(line, " \t");
    for (const char *at = line + strspn(line, " \t"); *at != '\0'; at++) {
        if (*at == '"' || (at[0] == '\\' && at[1] == '&'))
            at += *at == '\\';
        else if (at[0] == '\\' && at[1] == 'f' && at[2] != '\0')
            at += 2;
        else if (at[0] == '\\' && at[1] == '-')
            continue;
        else
            g_string_append_c(text, *at);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static gboolean starts_with_word(const char *text, const char *word)
{
    gsize length = strlen(word);
    return strncmp(text, word, length) == 0 && !g_ascii_isalnum(text[length]) &&
           text[length] != '_' && text[length] != '-';
}

/* Is there a line that starts with KEY after one with "[GROUP]", before one with another group? */
static gboolean documents(char *const *lines, const char *group, const char *key)
{
    g_autofree char *heading = g_strdup_printf("[%s]", group);
    gboolean inside = FALSE;
    for (; *lines != NULL; lines++) {
        if (strstr(*lines, heading) != NULL)
            inside = TRUE;
        else if (**lines == '[')
            inside = FALSE;
        else if (inside && starts_with_word(*lines, key))
            return TRUE;
    }
    return FALSE;
}

gboolean berth_config_check_manual(const char *path, const BerthConfigOption *options,
                                   gsize n_options, GError **error)
{
    g_autofree char *data = NULL;
    if (!g_file_get_contents(path, &data, NULL, error))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(data, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        char *plain = plain_text(*line);
        g_free(*line);
        *line = plain;
    }
    g_autoptr(GString) missing = g_string_new(NULL);
    for (gsize i = 0; i < n_options; i++) {
        if (!documents(lines, options[i].group, options[i].key))
            g_string_append_printf(missing, "%s[%s] %s", missing->len > 0 ? ", " : "",
                                   options[i].group, options[i].key);
    }
    if (missing->len > 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "%s does not document %s", path,
                    missing->str);
        return FALSE;
    }
    return TRUE;
}
