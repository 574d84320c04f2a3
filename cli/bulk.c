/* SPDX-License-Identifier: Apache-2.0 */
/* berth bulk: submits one job for each line of JSON, many in a call. Reads line by line, so that a long list does not have
 * to fit. */
#include "cli/hint.h"
#include "cli/job_spec.h"
#include "cli/table.h"
#include "common/error.h"

#include <errno.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What goes with one call. */
#define JOBS_PER_CALL  1000u
#define BYTES_PER_CALL (1u << 20)
/* Of scripts and the like, that wait for it. */
#define HELD_MAX_BYTES (16u << 20)

typedef struct {
    BerthCli *cli;
    const char *name; /* of what is read, for messages */
    guint64 line;     /* of it, that was read last */
    char *key;        /* of this run: begins those of jobs that have none of their own */
    BerthPayload *payload;
    GPtrArray *waiting; /* BerthSubmission */
    GArray *lines;      /* guint64, of these */
    gsize bytes;        /* of these, packed */
    gboolean has_refused;
} Bulk;

static void bulk_clear(Bulk *bulk)
{
    g_clear_pointer(&bulk->waiting, g_ptr_array_unref);
    g_clear_pointer(&bulk->lines, g_array_unref);
    g_clear_pointer(&bulk->payload, berth_payload_free);
    g_clear_pointer(&bulk->key, g_free);
}

/* --- a line ----------------------------------------------------------------------------------- */

static gboolean refuse(GError **error, const char *name, const char *why)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "\"%s\" %s", name, why);
    return FALSE;
}

/* As the option's value would be written. NULL: it is none. (transfer full) */
static char *value_text(JsonNode *node)
{
    if (!JSON_NODE_HOLDS_VALUE(node))
        return NULL;
    if (json_node_get_value_type(node) == G_TYPE_STRING)
        return g_strdup(json_node_get_string(node));
    if (json_node_get_value_type(node) == G_TYPE_BOOLEAN)
        return g_strdup(json_node_get_boolean(node) ? "yes" : "no");
    if (json_node_get_value_type(node) == G_TYPE_INT64)
        return g_strdup_printf("%" G_GINT64_FORMAT, json_node_get_int(node));
    return NULL;
}

static gboolean set_value(BerthJobOptions *options, const char *name, JsonNode *node,
                          GError **error)
{
    g_autofree char *text = value_text(node);
    if (text == NULL)
        return refuse(error, name, "is neither a text, nor a whole number, nor true or false");
    if (berth_job_options_set(options, name, text, error))
        return TRUE;
    g_prefix_error(error, "\"%s\": ", name);
    return FALSE;
}

/* An option that may be repeated has a list. */
static gboolean set_member(BerthJobOptions *options, const char *name, JsonNode *node,
                           GError **error)
{
    if (!JSON_NODE_HOLDS_ARRAY(node))
        return set_value(options, name, node, error);
    JsonArray *list = json_node_get_array(node);
    for (guint i = 0; i < json_array_get_length(list); i++)
        if (!set_value(options, name, json_array_get_element(list, i), error))
            return FALSE;
    return TRUE;
}

/* (transfer full) */
static char **read_words(JsonObject *object, const char *name, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    JsonNode *node = json_object_get_member(object, name);
    JsonArray *list =
        node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    if (node != NULL && list == NULL) {
        refuse(error, name, "is not a list of words");
        return NULL;
    }
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        char *word = value_text(json_array_get_element(list, i));
        if (word == NULL) {
            refuse(error, name, "has a word that is no text");
            return NULL;
        }
        g_ptr_array_add(words, word);
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_steal(words, NULL);
}

/* What is no option. */
static const char *const command_keys[] = {"command", "script", "arguments", NULL};

static gboolean is_option(const char *name)
{
    const GOptionEntry *entry = berth_job_option_entries();
    while (entry->long_name != NULL && !g_str_equal(entry->long_name, name))
        entry++;
    return entry->long_name != NULL;
}

/* First of all: where one is misspelt, it is not that another is missing. */
static gboolean check_keys(JsonObject *object, GError **error)
{
    JsonObjectIter iter;
    const char *name;
    json_object_iter_init(&iter, object);
    while (json_object_iter_next(&iter, &name, NULL)) {
        if (g_strv_contains(command_keys, name) || is_option(name))
            continue;
        g_autofree char *shown = berth_printable(name);
        g_autofree char *hint = berth_hint_key(berth_job_option_entries(), command_keys, name);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "unknown key \"%s\"%s", shown,
                    *hint != '\0' ? hint : "; berth bulk --help says which there are");
        return FALSE;
    }
    return TRUE;
}

static gboolean set_members(BerthJobOptions *options, JsonObject *object, GError **error)
{
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;
    json_object_iter_init(&iter, object);
    while (json_object_iter_next(&iter, &name, &node)) {
        if (!g_strv_contains(command_keys, name) && !set_member(options, name, node, error))
            return FALSE;
    }
    return TRUE;
}

/* *OUT_SCRIPT: a path, or NULL where WORDS are a command of the image. (transfer full) */
static gboolean read_command(JsonObject *object, char **out_script, char ***out_words,
                             GError **error)
{
    JsonNode *script = json_object_get_member(object, "script");
    *out_script = script != NULL ? value_text(script) : NULL;
    *out_words = read_words(object, script != NULL ? "arguments" : "command", error);
    if (*out_words == NULL)
        return FALSE;
    if (script != NULL && *out_script == NULL)
        return refuse(error, "script", "is not the path of a file");
    if (script == NULL && (*out_words)[0] == NULL)
        return refuse(error, "command", "is missing: a list of words; or \"script\", a path");
    return TRUE;
}

static BerthSubmission *read_object(Bulk *bulk, JsonObject *object, GError **error)
{
    g_autofree char *script = NULL;
    g_auto(GStrv) words = NULL;
    if (!check_keys(object, error) || !read_command(object, &script, &words, error))
        return NULL;
    g_autoptr(BerthSubmission) submission =
        berth_submission_begin(bulk->payload, script, words, error);
    if (submission == NULL || !set_members(submission->options, object, error) ||
        !berth_submission_complete(submission, bulk->cli, error))
        return NULL;
    if (submission->options->idempotency_key == NULL)
        submission->options->idempotency_key =
            g_strdup_printf("%s-%" G_GUINT64_FORMAT, bulk->key, bulk->line);
    return g_steal_pointer(&submission);
}

static BerthSubmission *read_line(Bulk *bulk, const char *text, gsize length, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) local = NULL;
    if (!json_parser_load_from_data(parser, text, (gssize)length, &local)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "not JSON: %s",
                    local->message);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "not a JSON object: write {\"command\": [\"true\"]}");
        return NULL;
    }
    return read_object(bulk, json_node_get_object(root), error);
}

/* --- a call ----------------------------------------------------------------------------------- */

typedef struct {
    Berth__SubmitManyRequest request;
    Berth__SubmitManyReply *reply;
} Sending;

static gboolean send_attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Sending *sending = user_data;
    sending->reply = (Berth__SubmitManyReply *)berth_cli_call(
        cli, &berth__jobs__descriptor, "SubmitMany", &sending->request.base, error);
    return sending->reply != NULL;
}

static void report(Bulk *bulk, guint64 line, const char *why)
{
    bulk->has_refused = TRUE;
    fprintf(stderr, "%s: %s, line %" G_GUINT64_FORMAT ": %s\n", g_get_prgname(), bulk->name, line,
            why);
}

static void print_results(Bulk *bulk, const Berth__SubmitManyReply *reply)
{
    for (gsize i = 0; i < reply->n_results && i < bulk->lines->len; i++) {
        const Berth__SubmitManyReply__Result *result = reply->results[i];
        if (result->error != NULL) {
            report(bulk, g_array_index(bulk->lines, guint64, i), result->error->message);
            puts("-");
        } else {
            printf("%" G_GUINT64_FORMAT "\n", result->job);
        }
    }
}

static gboolean send_waiting(Bulk *bulk, GError **error)
{
    guint n = bulk->waiting->len;
    if (!berth_payload_upload(bulk->payload, bulk->cli, error))
        return FALSE;
    g_autofree Berth__SubmitRequest *requests = g_new(Berth__SubmitRequest, n);
    g_autofree Berth__SubmitRequest **pointers = g_new(Berth__SubmitRequest *, n);
    Sending sending = {BERTH__SUBMIT_MANY_REQUEST__INIT, NULL};
    for (guint i = 0; i < n; i++) {
        const BerthSubmission *submission = g_ptr_array_index(bulk->waiting, i);
        berth__submit_request__init(&requests[i]);
        requests[i].spec = submission->spec;
        requests[i].idempotency_key = submission->options->idempotency_key;
        pointers[i] = &requests[i];
    }
    sending.request.jobs = pointers;
    sending.request.n_jobs = n;
    sending.request.inline_blobs =
        berth_payload_inline(bulk->payload, &sending.request.n_inline_blobs);
    if (!berth_cli_persist(bulk->cli, FALSE, send_attempt, &sending, error))
        return FALSE;
    print_results(bulk, sending.reply);
    berth__submit_many_reply__free_unpacked(sending.reply, NULL);
    return TRUE;
}

/* What was read since the last call; also when the daemon is restarted meanwhile. */
static gboolean flush(Bulk *bulk, GError **error)
{
    if (bulk->waiting->len > 0 && !send_waiting(bulk, error))
        return FALSE;
    g_ptr_array_set_size(bulk->waiting, 0);
    g_array_set_size(bulk->lines, 0);
    bulk->bytes = 0;
    berth_payload_free(bulk->payload);
    bulk->payload = berth_payload_new();
    return TRUE;
}

static gboolean add_line(Bulk *bulk, const char *text, gsize length, GError **error)
{
    g_autoptr(GError) local = NULL;
    bulk->line++;
    if (strspn(text, " \t\r\n") >= length)
        return TRUE; /* an empty line */
    BerthSubmission *submission = read_line(bulk, text, length, &local);
    if (submission == NULL) {
        /* In its place among the others. */
        if (!flush(bulk, error))
            return FALSE;
        report(bulk, bulk->line, local->message);
        puts("-");
        return TRUE;
    }
    g_ptr_array_add(bulk->waiting, submission);
    g_array_append_val(bulk->lines, bulk->line);
    bulk->bytes += berth__job_spec__get_packed_size(submission->spec);
    return (bulk->waiting->len < JOBS_PER_CALL && bulk->bytes < BYTES_PER_CALL &&
            berth_payload_held_bytes(bulk->payload) < HELD_MAX_BYTES) ||
           flush(bulk, error);
}

/* --- the verb --------------------------------------------------------------------------------- */

static gboolean read_all(Bulk *bulk, FILE *file, GError **error)
{
    char *text = NULL;
    size_t size = 0;
    gssize length;
    gboolean ok = TRUE;
    while (ok && (length = getline(&text, &size, file)) >= 0)
        ok = add_line(bulk, text, (gsize)length, error);
    free(text);
    if (ok && ferror(file)) {
        berth_set_error_errno(error, errno, "cannot read \"%s\"", bulk->name);
        ok = FALSE;
    }
    return ok && flush(bulk, error);
}

static gboolean submit_all(Bulk *bulk, const char *path, GError **error)
{
    FILE *file = g_str_equal(path, "-") ? stdin : fopen(path, "re");
    if (file == NULL) {
        berth_set_error_errno(error, errno, "cannot read \"%s\"", path);
        return FALSE;
    }
    bulk->name = file == stdin ? "standard input" : path;
    bulk->payload = berth_payload_new();
    bulk->waiting = g_ptr_array_new_with_free_func((GDestroyNotify)berth_submission_free);
    bulk->lines = g_array_new(FALSE, FALSE, sizeof(guint64));
    gboolean ok = berth_cli_connect(bulk->cli, error) && read_all(bulk, file, error);
    if (file != stdin)
        fclose(file);
    return ok;
}

gboolean berth_cli_bulk(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *key = NULL;
    const GOptionEntry entries[] = {
        {"key", 'k', 0, G_OPTION_ARG_STRING, &key,
         "Submit each line once, however often this is run with the same key", "KEY"},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "[FILE]",
            "Submits a job for each line of FILE, or of standard input: a JSON object with "
            "\"command\", a list of words,\nor \"script\", a path, and its \"arguments\"; and any "
            "of "
            "the long options of `berth submit`, as in\n"
            "  {\"command\": [\"sleep\", \"1\"], \"vcpus\": 2, \"memory\": \"256M\", \"env\": "
            "[\"A=1\"]}\nPrints the number of each job, in their order, and \"-\" for one that is "
            "refused, of which standard error says why.",
            NULL, out_status, error))
        return FALSE;
    if (argc > 2)
        return berth_cli_usage_error(out_status, error, "name one file (see %s --help)", argv[0]);
    Bulk bulk = {.cli = cli, .key = key != NULL ? g_strdup(key) : g_uuid_string_random()};
    gboolean ok = submit_all(&bulk, argc == 2 ? argv[1] : "-", error);
    fflush(stdout);
    if (ok && bulk.has_refused)
        *out_status = BERTH_EXIT_FAILED;
    bulk_clear(&bulk);
    return ok;
}
