/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target as a test: runs the committed seeds and deterministic mutations of them through
 * LLVMFuzzerTestOneInput(). tests/fuzz/check_NAME finds its seeds in tests/fuzz/corpus/NAME/.
 *
 *     check_NAME                 seeds and FUZZ_MUTATIONS (default 2000) mutations of each; with
 *                                FUZZ_CORPUS, those in that directory
 *     check_NAME FILE...         just these inputs: to reproduce a finding of libFuzzer
 *
 * Knows no target: whoever has a parser lists it in tests/fuzz/Makefile-fuzz.am. */
#include <glib.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* xorshift64*: the same inputs on every machine. */
static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t next_random(uint64_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return below == 0 ? 0 : (random_state * 0x2545f4914f6cdd1d >> 11) % below;
}

/* A copy in a block of its exact size, so that a sanitizer sees each byte read too far. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (size > 0)
        memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void flip(GByteArray *input)
{
    if (input->len > 0)
        input->data[next_random(input->len)] ^= (uint8_t)(1u << next_random(8));
}

static void overwrite(GByteArray *input)
{
    static const uint8_t interesting[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '\n', '"', '[', '='};
    if (input->len > 0)
        input->data[next_random(input->len)] = interesting[next_random(sizeof(interesting))];
}

static void cut(GByteArray *input)
{
    if (input->len == 0)
        return;
    guint from = (guint)next_random(input->len);
    g_byte_array_remove_range(input, from, (guint)next_random(input->len - from + 1));
}

static void repeat(GByteArray *input)
{
    if (input->len == 0 || input->len > 65536)
        return;
    guint from = (guint)next_random(input->len);
    guint length = (guint)next_random(input->len - from + 1);
    g_autofree uint8_t *piece = g_memdup2(input->data + from, length);
    for (uint64_t i = next_random(20); i > 0; i--)
        g_byte_array_append(input, piece, length);
}

static void truncate_end(GByteArray *input)
{
    g_byte_array_set_size(input, (guint)next_random(input->len + 1));
}

/* The head of this one, the tail of another. */
static void splice(GByteArray *input, GPtrArray *seeds)
{
    gsize size = 0;
    const uint8_t *other = g_bytes_get_data(seeds->pdata[next_random(seeds->len)], &size);
    gsize from = next_random(size);
    truncate_end(input);
    if (size > from)
        g_byte_array_append(input, other + from, (guint)(size - from));
}

static void mutate(GByteArray *input, GPtrArray *seeds)
{
    static void (*const mutations[])(GByteArray * input) = {flip, overwrite, cut, repeat,
                                                            truncate_end};
    for (uint64_t i = 1 + next_random(4); i > 0; i--) {
        uint64_t which = next_random(G_N_ELEMENTS(mutations) + 1);
        if (which == G_N_ELEMENTS(mutations))
            splice(input, seeds);
        else
            mutations[which](input);
    }
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static GBytes *read_input(const char *path)
{
    g_autoptr(GError) error = NULL;
    char *data = NULL;
    gsize size = 0;
    if (!g_file_get_contents(path, &data, &size, &error)) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
    return g_bytes_new_take(data, size);
}

static GPtrArray *read_corpus(const char *dir_path)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GPtrArray *seeds = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autoptr(GDir) dir = g_dir_open(dir_path, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names); /* not in the order of the directory */
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(dir_path, names->pdata[i], NULL);
        g_ptr_array_add(seeds, read_input(path));
    }
    return seeds;
}

static int run_corpus(const char *program)
{
    const char *top = g_getenv("top_srcdir"), *wish = g_getenv("FUZZ_MUTATIONS");
    const char *name = g_strrstr(program, "check_"), *corpus = g_getenv("FUZZ_CORPUS");
    guint64 mutations = wish != NULL ? g_ascii_strtoull(wish, NULL, 10) : 2000;
    g_autofree char *dir =
        corpus != NULL ? g_strdup(corpus)
                       : g_build_filename(top != NULL ? top : ".", "tests", "fuzz", "corpus",
                                          name != NULL ? name + strlen("check_") : "", NULL);
    g_autoptr(GPtrArray) seeds = read_corpus(dir);
    if (name == NULL || seeds->len == 0) {
        fprintf(stderr, "%s: no seeds in %s\n", program, dir);
        return 1;
    }
    run(NULL, 0);
    for (guint i = 0; i < seeds->len; i++) {
        gsize size = 0;
        const uint8_t *seed = g_bytes_get_data(seeds->pdata[i], &size);
        run(seed, size);
        for (guint64 j = 0; j < mutations; j++) {
            g_autoptr(GByteArray) input = g_byte_array_new();
            g_byte_array_append(input, seed, (guint)size);
            mutate(input, seeds);
            run(input->data, input->len);
        }
    }
    printf("%s: %u seeds, %" G_GUINT64_FORMAT " mutations of each\n", name, seeds->len, mutations);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 1)
        return run_corpus(argv[0]);
    for (int i = 1; i < argc; i++) {
        g_autoptr(GBytes) input = read_input(argv[i]);
        run(g_bytes_get_data(input, NULL), g_bytes_get_size(input));
    }
    return 0;
}
