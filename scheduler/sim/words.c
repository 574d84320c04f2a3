/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the words for the actions of the core, and what of foreign text may reach a terminal. */
#include "config.h"

#include "scheduler/sim/words.h"

#include "common/words.h"

#define PRINTED_MAX 400 /* characters of foreign text in one message */

const char *sim_action_verb(guint kind)
{
    static const char *const verbs[] = {
        [BERTH_ACTION_START] = "start",     [BERTH_ACTION_STOP] = "stop",
        [BERTH_ACTION_RELEASE] = "release", [BERTH_ACTION_FENCE] = "fence",
        [BERTH_ACTION_MIGRATE] = "migrate", [BERTH_ACTION_CHECKPOINT] = "checkpoint",
        [BERTH_ACTION_RESTORE] = "restore", [BERTH_ACTION_FREEZE] = "freeze",
        [BERTH_ACTION_THAW] = "thaw",       [BERTH_ACTION_RESIZE] = "resize"};
    return kind < G_N_ELEMENTS(verbs) ? verbs[kind] : NULL;
}

char *sim_action_text(const BerthCoreAction *action, const char *node, const char *to)
{
    gboolean moves = action->kind == BERTH_ACTION_MIGRATE;
    g_autofree char *what =
        g_strdup_printf("%s guest %u", sim_action_verb(action->kind), action->guest.guest);
    return berth_words_deed(what, node, moves ? to : NULL, action->is_opportunistic,
                            action->reason);
}

char *sim_printable(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    guint n = 0;
    for (const char *at = valid; *at != '\0' && n < PRINTED_MAX; at = g_utf8_next_char(at), n++) {
        gunichar c = g_utf8_get_char(at);
        if (g_unichar_iscntrl(c))
            g_string_append_c(out, '?');
        else
            g_string_append_unichar(out, c);
    }
    if (n == PRINTED_MAX)
        g_string_append(out, "...");
    return g_string_free(out, FALSE);
}
