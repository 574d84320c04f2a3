/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* What somebody may have meant by an option or a command that there is not. */

/* How many letters must be inserted, removed, replaced or swapped with their neighbour to make B of A
 * (optimal string alignment: Damerau 1964, as restricted by Wagner and Fischer's table). ASCII. */
guint berth_hint_distance(const char *a, const char *b);

/* ENTRIES (may be NULL) have no WORD ("--mem=4G", "-N"): what to do instead, as a clause that begins
 * with "; ", or "" if nothing is near. (transfer full) */
char *berth_hint_option(const GOptionEntry *entries, const char *word);

/* The same for a WORD that is none of the long names of ENTRIES, nor of OTHERS (NULL-terminated), where they are keys. */
char *berth_hint_key(const GOptionEntry *entries, const char *const *others, const char *word);

/* The same for a word, or a group and a word ("image list"), that is no command. */
char *berth_hint_command(const char *word);
