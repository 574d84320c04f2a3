/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading trace files line by line, through libarchive. Knows nothing of their formats. */
#include "config.h"

#include "scheduler/sim/input.h"

#include "common/error.h"
#include "scheduler/sim/words.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES     (256u * 1024u)
#define LINE_MAX_BYTES  (1024u * 1024u)
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct SimInput {
    const char *path; /* of its source */
    int fd;
    char *file; /* member of a tar; NULL where the file is no tar */
    char *name; /* of the present file */
    struct archive *archive;
    GByteArray *buffer;
    gsize at; /* in BUFFER */
    guint64 line;
    gboolean file_ended;
    gboolean is_cut; /* the line that was given last has no end */
};

/* As libarchive says of its filters; and liblzma's LZMA_BUF_ERROR. */
static gboolean is_truncated(const char *why)
{
    return why != NULL &&
           (strstr(why, "runcated") != NULL || strstr(why, "No progress is possible") != NULL);
}

static gboolean fail(SimInput *input, GError **error)
{
    const char *why = archive_error_string(input->archive);
    int number = archive_errno(input->archive);
    if (why != NULL && g_str_has_prefix(why, "Error reading")) { /* the file itself */
        berth_set_error_errno(error, number, "cannot read %s", input->path);
        return FALSE;
    }
    if (is_truncated(why))
        why = "it is truncated; fetch it again";
    BerthErrorCode code = number > 0 ? berth_error_code_from_errno(number) : BERTH_ERROR_DATA_LOSS;
    g_set_error(error, BERTH_ERROR, code, "cannot read %s: %s", input->path,
                why != NULL ? why : g_strerror(number));
    return FALSE;
}

SimInput *sim_input_open(const SimSource *source, GError **error)
{
    g_autoptr(SimInput) input = g_new0(SimInput, 1);
    input->path = sim_source_name(source);
    input->fd = sim_source_open(source, error);
    input->buffer = g_byte_array_new();
    input->archive = archive_read_new();
    g_assert(input->archive != NULL);
    archive_read_support_filter_gzip(input->archive);
    archive_read_support_filter_xz(input->archive);
    archive_read_support_filter_bzip2(input->archive);
    archive_read_support_filter_zstd(input->archive);
    archive_read_support_format_tar(input->archive);
    archive_read_support_format_raw(input->archive);
    archive_read_support_format_empty(input->archive);
    if (input->fd < 0)
        return NULL;
    if (archive_read_open_fd(input->archive, input->fd, BLOCK_BYTES) != ARCHIVE_OK) {
        fail(input, error);
        return NULL;
    }
    return g_steal_pointer(&input);
}

void sim_input_close(SimInput *input)
{
    if (input == NULL)
        return;
    archive_read_free(input->archive);
    if (input->fd >= 0)
        (void)close(input->fd);
    g_byte_array_unref(input->buffer);
    g_free(input->file);
    g_free(input->name);
    g_free(input);
}

gboolean sim_input_is_tar(const SimInput *input)
{
    return (archive_format(input->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
}

static void begin_file(SimInput *input, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    g_free(input->file);
    g_free(input->name);
    input->file = sim_input_is_tar(input) ? g_strdup(name != NULL ? name : "?") : NULL;
    input->name = g_strdup(input->file != NULL ? input->file : input->path);
    g_byte_array_set_size(input->buffer, 0);
    input->at = 0;
    input->line = 0;
    input->file_ended = FALSE;
}

gboolean sim_input_next_file(SimInput *input, const char **out_name, GError **error)
{
    struct archive_entry *entry;
    int result;
    while ((result = archive_read_next_header(input->archive, &entry)) == ARCHIVE_OK) {
        /* A raw stream has no type that it could state. */
        if (sim_input_is_tar(input) && archive_entry_filetype(entry) != AE_IFREG)
            continue;
        begin_file(input, entry);
        *out_name = input->name;
        return TRUE;
    }
    if (result != ARCHIVE_EOF)
        return fail(input, error);
    *out_name = NULL;
    return TRUE;
}

/* Drops what was read and adds what comes next. */
static gboolean fill(SimInput *input, GError **error)
{
    g_byte_array_remove_range(input->buffer, 0, (guint)input->at);
    input->at = 0;
    guint had = input->buffer->len;
    g_byte_array_set_size(input->buffer, had + BLOCK_BYTES);
    la_ssize_t n = archive_read_data(input->archive, input->buffer->data + had, BLOCK_BYTES);
    g_byte_array_set_size(input->buffer, had + (n > 0 ? (guint)n : 0));
    if (n < 0)
        return fail(input, error);
    input->file_ended = n == 0;
    return TRUE;
}

static gboolean take_line(SimInput *input, gsize length, gsize skip, char **out_line,
                          GError **error)
{
    char *line = (char *)input->buffer->data + input->at;
    input->line++;
    if (memchr(line, '\0', length) != NULL)
        return sim_input_refuse(input, error,
                                "a NUL byte: this is no text, nor text compressed with gzip, xz, "
                                "bzip2 or zstd");
    line[length] = '\0';
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    input->at += length + skip;
    *out_line = input->line == 1 && g_str_has_prefix(line, BYTE_ORDER_MARK)
                    ? line + strlen(BYTE_ORDER_MARK)
                    : line;
    return TRUE;
}

gboolean sim_input_next_line(SimInput *input, char **out_line, GError **error)
{
    input->is_cut = FALSE;
    for (;;) {
        gsize left = input->buffer->len - input->at;
        guint8 *from = input->buffer->data + input->at;
        guint8 *end = left > 0 ? memchr(from, '\n', left) : NULL;
        if (end != NULL)
            return take_line(input, (gsize)(end - from), 1, out_line, error);
        if (input->file_ended && left > 0) {
            g_byte_array_append(input->buffer, (const guint8 *)"", 1); /* room for the NUL */
            input->is_cut = TRUE;
            return take_line(input, left, 1, out_line, error);
        }
        if (input->file_ended) {
            *out_line = NULL;
            return TRUE;
        }
        if (left > LINE_MAX_BYTES) {
            input->line++;
            return sim_input_refuse(input, error, "a line of more than 1 MiB: this is no trace");
        }
        if (!fill(input, error))
            return FALSE;
    }
}

gboolean sim_input_is_cut(const SimInput *input)
{
    return input->is_cut;
}

gboolean sim_input_refuse(const SimInput *input, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *raw = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *message = sim_printable(raw); /* it may be anything */
    g_autofree char *file = input->file != NULL ? sim_printable(input->file) : NULL;
    g_autofree char *place =
        file != NULL ? g_strdup_printf("%s(%s)", input->path, file) : g_strdup(input->path);
    g_autofree char *line =
        input->line > 0 ? g_strdup_printf(":%" G_GUINT64_FORMAT, input->line) : g_strdup("");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s%s: %s", place, line, message);
    return FALSE;
}
