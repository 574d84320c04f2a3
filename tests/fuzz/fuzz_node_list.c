/* SPDX-License-Identifier: Apache-2.0 */
/* A list of nodes: it stands for names, each once and without brackets, or for an error whose message is
 * text. What it stands for, written with commas, is read back as the same. */
#include "common/node_list.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(char *const *names)
{
    g_autofree char *joined = g_strjoinv(",", (char **)names);
    g_auto(GStrv) again = berth_node_list_parse(joined, NULL);
    g_assert(names[0] != NULL && again != NULL);
    g_assert(g_strv_equal((const char *const *)names, (const char *const *)again));
    for (; *names != NULL; names++)
        g_assert(**names != '\0' && strpbrk(*names, "[], \n") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_node_list_parse(text, &error);
    g_assert((names != NULL) == (error == NULL));
    if (names != NULL)
        check(names);
    else
        g_assert(g_utf8_validate(error->message, -1, NULL));
    return 0;
}
