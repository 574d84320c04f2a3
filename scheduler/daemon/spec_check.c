/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules for a job's specification. Pure. */
#include "config.h"

#include "scheduler/daemon/spec_check.h"

#include "common/channel.h"
#include "common/error.h"
#include "common/id.h"
#include "common/ranges.h"
#include "common/task_lines.h"
#include "common/units.h"
#include "scheduler/daemon/start_request.h"
#include "storage/storage.h"

#include <signal.h>
#include <string.h>

#define NAME_MAX_BYTES     128u
#define IMAGE_NAME_MAX     64u
#define PATH_MAX_BYTES     4096u
#define PART_MAX_BYTES     255u
#define HOST_MAX_BYTES     253u
#define WHY_MAX_BYTES      1024u
#define NODES_MAX          10000u
#define DEPENDENCIES_MAX   100u
#define ELEMENTS_MAX       8u /* of these, task by task */
#define MEMORY_MAX_MIB     (16u << 20)
#define DISK_MAX_MIB       (64u << 20) /* of a whole disk in storage */
#define VCPUS_MAX          1024u
#define TIME_LIMIT_MAX_SEC (10u * 366u * 86400u)
/* A guest stands still for each: less than that is no policy but a load test, for which there is berth checkpoint. */
#define CHECKPOINT_EVERY_MIN_SEC 60u
#define CHECKPOINT_EVERY_MAX_SEC (30u * 86400u)
/* One may be of no use; a third would have to be as well. */
#define CHECKPOINT_KEEP_DEFAULT 2u
#define CHECKPOINT_KEEP_MAX     64u

#define SIGNAL_MAX     31u /* those of real time mean what a program says */
#define PRIORITY_MAX   1000000
#define SPEC_MAX_BYTES (1u << 20)
#define BYTES_PER_MIB  ((guint64)1 << 20)

static gboolean invalid(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean invalid(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    GError *made = g_error_new_valist(BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, format, args);
    va_end(args);
    g_propagate_error(error, made);
    return FALSE;
}

/* --- defaults -------------------------------------------------------------------------------- */

static gboolean can_checkpoint(const BerthDaemonConfig *config)
{
    return g_strcmp0(config->storage.kind, "rbd") == 0;
}

void berth_spec_apply_defaults(Berth__JobSpec *spec, const BerthDaemonConfig *config)
{
    if (!*spec->image)
        berth_pb_set_string(&spec->image, config->default_image);
    if (spec->vcpus == 0)
        spec->vcpus = config->default_vcpus;
    if (spec->memory_mib == 0)
        spec->memory_mib = config->default_memory_mib;
    if (spec->disk_mib == 0)
        spec->disk_mib = config->default_disk_mib;
    if (spec->time_limit_sec == 0)
        spec->time_limit_sec = config->default_time_limit_sec;
    if (spec->checkpoint_keep == 0)
        spec->checkpoint_keep = CHECKPOINT_KEEP_DEFAULT;
    if (spec->on_limit == BERTH__ON_LIMIT__ON_LIMIT_DEFAULT)
        spec->on_limit = (Berth__OnLimit)(config->default_on_limit + 1);
    if (spec->on_timeout == BERTH__ON_TIMEOUT__ON_TIMEOUT_DEFAULT)
        spec->on_timeout = config->default_on_timeout == 0 && can_checkpoint(config)
                               ? BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT
                               : BERTH__ON_TIMEOUT__ON_TIMEOUT_KILL;
}

/* --- texts ----------------------------------------------------------------------------------- */

gboolean berth_text_check(const char *what, const char *text, gsize max_bytes, GError **error)
{
    if (strlen(text) > max_bytes) {
        return invalid(error, "%s has %zu bytes; at most %zu are allowed", what, strlen(text),
                       max_bytes);
    }
    if (!g_utf8_validate(text, -1, NULL))
        return invalid(error, "%s is not valid UTF-8", what);
    for (const char *c = text; *c; c = g_utf8_next_char(c)) {
        if (g_unichar_iscntrl(g_utf8_get_char(c))) {
            return invalid(error, "%s has a control character; only printable ones are allowed",
                           what);
        }
    }
    return TRUE;
}

gboolean berth_why_check(const char *why, GError **error)
{
    return berth_text_check("the reason", why, WHY_MAX_BYTES, error);
}

gboolean berth_image_name_check(const char *name, GError **error)
{
    gsize length = strlen(name);
    gboolean is_good = length > 0 && length <= IMAGE_NAME_MAX && g_ascii_isalnum(name[0]);
    for (gsize i = 0; is_good && i < length; i++)
        is_good = g_ascii_isalnum(name[i]) || strchr("._-", name[i]);
    if (is_good)
        return TRUE;
    g_autofree char *shown = g_utf8_make_valid(name, (gssize)MIN(length, IMAGE_NAME_MAX));
    return invalid(error,
                   "\"%s\" cannot be the name of an image: 1 to %u letters, digits, '.', '_' and "
                   "'-', the first a letter or digit",
                   shown, IMAGE_NAME_MAX);
}

gboolean berth_input_name_check(const char *name, GError **error)
{
    if (!berth_text_check("the name of an input file", name, PATH_MAX_BYTES, error))
        return FALSE;
    g_auto(GStrv) parts = g_strsplit(name, "/", -1);
    gboolean is_good = *name != '\0';
    for (gsize i = 0; is_good && parts[i]; i++) {
        is_good = *parts[i] && strcmp(parts[i], ".") != 0 && strcmp(parts[i], "..") != 0 &&
                  strlen(parts[i]) <= PART_MAX_BYTES;
    }
    if (is_good)
        return TRUE;
    return invalid(error,
                   "\"%s\" cannot be the name of an input file: it is a path below the working "
                   "directory, without \".\", \"..\" and empty parts",
                   name);
}

gboolean berth_environment_check(const guint8 *data, gsize length, GError **error)
{
    if (length == 0)
        return TRUE;
    if (data[length - 1] != '\0')
        return invalid(error, "the environment does not end with a NUL after its last entry");
    const char *entry = (const char *)data;
    const char *end = entry + length;
    for (guint number = 1; entry < end; number++) {
        const char *equals = strchr(entry, '=');
        if (!equals || equals == entry)
            return invalid(error, "entry %u of the environment is not NAME=VALUE", number);
        entry += strlen(entry) + 1;
    }
    return TRUE;
}

/* --- parts of a specification ----------------------------------------------------------------- */

gboolean berth_size_check(guint32 vcpus, guint64 memory_mib, GError **error)
{
    if (vcpus < 1 || vcpus > VCPUS_MAX)
        return invalid(error, "%u vCPUs cannot be had: 1 to %u are allowed", vcpus, VCPUS_MAX);
    if (memory_mib < BERTH_MEMORY_MIN_MIB || memory_mib > MEMORY_MAX_MIB) {
        return invalid(error,
                       "%" G_GUINT64_FORMAT " MiB of memory cannot be had: %u to %u MiB are "
                       "allowed (a guest does not boot with less)",
                       memory_mib, BERTH_MEMORY_MIN_MIB, MEMORY_MAX_MIB);
    }
    return TRUE;
}

static gboolean check_ceiling(const Berth__JobSpec *spec, GError **error)
{
    if (spec->vcpus_max != 0 && spec->vcpus_max < spec->vcpus) {
        return invalid(error,
                       "a ceiling of %u vCPU%s (--vcpus-max) is below the %u that the job begins "
                       "with",
                       spec->vcpus_max, spec->vcpus_max == 1 ? "" : "s", spec->vcpus);
    }
    if (spec->memory_max_mib != 0 && spec->memory_max_mib < spec->memory_mib) {
        return invalid(error,
                       "a ceiling of %" G_GUINT64_FORMAT
                       " MiB of memory (--memory-max) is below the %" G_GUINT64_FORMAT
                       " MiB that the job begins with",
                       spec->memory_max_mib, spec->memory_mib);
    }
    return berth_size_check(MAX(spec->vcpus_max, spec->vcpus),
                            MAX(spec->memory_max_mib, spec->memory_mib), error);
}

gboolean berth_time_limit_check(guint64 seconds, GError **error)
{
    if (seconds <= TIME_LIMIT_MAX_SEC)
        return TRUE;
    g_autofree char *asked = berth_format_duration_sec(seconds);
    return invalid(error,
                   "a time limit of %s (days-hours:minutes:seconds) cannot be had: at most %u "
                   "days are allowed",
                   asked, TIME_LIMIT_MAX_SEC / 86400);
}

/* Numbers that this release does not know come from a newer one. */
static gboolean check_at_limits(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                                GError **error)
{
    if ((guint)spec->on_limit > BERTH__ON_LIMIT__ON_LIMIT_KILL)
        return invalid(error,
                       "what is to become of it at the limit of its memory (%d) is not known here: "
                       "grow, freeze and kill are",
                       (int)spec->on_limit);
    if ((guint)spec->on_timeout > BERTH__ON_TIMEOUT__ON_TIMEOUT_KILL)
        return invalid(error,
                       "what is to become of it at its time limit (%d) is not known here: "
                       "checkpoint and kill are",
                       (int)spec->on_timeout);
    if (spec->on_timeout != BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT || can_checkpoint(config))
        return TRUE;
    g_set_error_literal(
        error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
        "jobs cannot be checkpointed here, at their time limit or before: that "
        "needs guests' disks in Ceph (kind = rbd in [storage] of berthd.conf); submit it without "
        "--on-timeout=checkpoint");
    return FALSE;
}

static gboolean check_resources(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                                GError **error)
{
    if (!berth_size_check(spec->vcpus, spec->memory_mib, error) || !check_ceiling(spec, error))
        return FALSE;
    if (!berth_time_limit_check(spec->time_limit_sec, error))
        return FALSE;
    if (spec->stop_grace_sec > config->stop_grace_max_sec) {
        return invalid(error,
                       "%u s from SIGTERM to SIGKILL cannot be had: at most %u s are allowed here "
                       "(stop_grace_max)",
                       spec->stop_grace_sec, config->stop_grace_max_sec);
    }
    return TRUE;
}

static gboolean check_signal(guint32 number, GError **error)
{
    if (number <= SIGNAL_MAX && number != SIGKILL && number != SIGSTOP)
        return TRUE;
    return invalid(error, "signal %u cannot be caught: 1 to %u can, but for %d and %d", number,
                   SIGNAL_MAX, SIGKILL, SIGSTOP);
}

gboolean berth_checkpoint_every_check(guint32 every_sec, const BerthDaemonConfig *config,
                                      GError **error)
{
    if (every_sec != 0 && !can_checkpoint(config)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                            "jobs cannot be checkpointed here: that needs guests' disks in Ceph "
                            "(kind = rbd in [storage] of berthd.conf); do not ask for a checkpoint "
                            "every so often");
        return FALSE;
    }
    if (every_sec != 0 &&
        (every_sec < CHECKPOINT_EVERY_MIN_SEC || every_sec > CHECKPOINT_EVERY_MAX_SEC)) {
        return invalid(error, "a checkpoint every %u s cannot be had: %u s to %u days are allowed",
                       every_sec, CHECKPOINT_EVERY_MIN_SEC, CHECKPOINT_EVERY_MAX_SEC / 86400);
    }
    return TRUE;
}

static gboolean check_checkpoints(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                                  GError **error)
{
    if (!berth_checkpoint_every_check(spec->checkpoint_every_sec, config, error))
        return FALSE;
    if (spec->checkpoint_keep > CHECKPOINT_KEEP_MAX) {
        return invalid(error, "%u checkpoints cannot be kept: at most %u are",
                       spec->checkpoint_keep, CHECKPOINT_KEEP_MAX);
    }
    if (spec->checkpoint_signal_sec > config->checkpoint_signal_max_sec) {
        return invalid(
            error,
            "%u s from a signal to its checkpoint cannot be had: at most %u s are allowed here "
            "(checkpoint_signal_max)",
            spec->checkpoint_signal_sec, config->checkpoint_signal_max_sec);
    }
    return check_signal(spec->checkpoint_signal, error) &&
           check_signal(spec->restore_signal, error);
}

static gboolean check_priority(const Berth__JobSpec *spec, gboolean is_operator, GError **error)
{
    if (spec->priority < -PRIORITY_MAX || spec->priority > PRIORITY_MAX) {
        return invalid(error, "priority %d is out of range: %d to %d are allowed", spec->priority,
                       -PRIORITY_MAX, is_operator ? PRIORITY_MAX : 0);
    }
    if (spec->priority > 0 && !is_operator) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                    "priority %d is above 0, which only operators may ask for; ask for 0 or less",
                    spec->priority);
        return FALSE;
    }
    return TRUE;
}

static gboolean check_command(const Berth__JobSpec *spec, guint max_bytes, GError **error)
{
    if (spec->n_command == 0 || !*spec->command[0])
        return invalid(error, "there is no command to run; name a script, or a command after --");
    gsize total = 0;
    for (gsize i = 0; i < spec->n_command; i++) {
        if (!g_utf8_validate(spec->command[i], -1, NULL))
            return invalid(error, "argument %zu of the command is not valid UTF-8", i);
        total += strlen(spec->command[i]) + 1;
    }
    if (total > max_bytes) {
        return invalid(error,
                       "the command and its arguments have %zu bytes; at most %u are allowed; put "
                       "long lists into an input file",
                       total, max_bytes);
    }
    return TRUE;
}

static gboolean check_blob(const char *what, const Berth__BlobRef *blob, guint64 max_bytes,
                           GError **error)
{
    if (blob->sha256.len != BERTH_SHA256_BYTES) {
        return invalid(error, "the digest of %s has %zu bytes instead of %u", what,
                       blob->sha256.len, BERTH_SHA256_BYTES);
    }
    if (blob->size_bytes > max_bytes) {
        return invalid(
            error, "%s has %" G_GUINT64_FORMAT " bytes; at most %" G_GUINT64_FORMAT " are allowed",
            what, blob->size_bytes, max_bytes);
    }
    return TRUE;
}

static gboolean check_input(const Berth__InputFile *input, guint64 max_bytes, GHashTable *names,
                            GError **error)
{
    if (!berth_input_name_check(input->name, error))
        return FALSE;
    if (!g_hash_table_add(names, input->name))
        return invalid(error, "two input files are to be named \"%s\"", input->name);
    if (input->mode > 0777) {
        return invalid(error, "input file \"%s\": mode %o has more than permission bits",
                       input->name, input->mode);
    }
    if (!input->blob)
        return invalid(error, "input file \"%s\" has no content", input->name);
    g_autofree char *what = g_strdup_printf("input file \"%s\"", input->name);
    return check_blob(what, input->blob, max_bytes, error);
}

static gboolean check_inputs(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                             GError **error)
{
    if (spec->n_inputs > config->inputs_max) {
        return invalid(error,
                       "%zu input files are too many: at most %u are allowed; put them into one "
                       "archive",
                       spec->n_inputs, config->inputs_max);
    }
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    guint64 file_max_bytes = config->input_file_max_mib * BYTES_PER_MIB;
    guint64 total = 0;
    for (gsize i = 0; i < spec->n_inputs; i++) {
        if (!check_input(spec->inputs[i], file_max_bytes, names, error))
            return FALSE;
        total += spec->inputs[i]->blob->size_bytes;
    }
    if (total > config->inputs_max_mib * BYTES_PER_MIB) {
        return invalid(error,
                       "the input files have %" G_GUINT64_FORMAT " bytes together; at most "
                       "%" G_GUINT64_FORMAT " MiB are allowed",
                       total, config->inputs_max_mib);
    }
    return TRUE;
}

static gboolean check_each(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                           GError **error)
{
    const Berth__TaskLines *each = spec->each;
    if (!each)
        return TRUE;
    if (!spec->array)
        return invalid(error, "there are lines for the tasks of an array, and the job is none");
    if (!each->blob || each->count == 0 ||
        each->blob->size_bytes < (each->count + (guint64)1) * BERTH_TASK_LINES_OFFSET_BYTES)
        return invalid(error, "the lines for %u tasks have no content, or too little", each->count);
    return check_blob("the file of lines for the tasks", each->blob,
                      config->input_file_max_mib * BYTES_PER_MIB, error);
}

static gboolean check_payloads(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                               GError **error)
{
    if (spec->script &&
        !check_blob("the script", spec->script, config->input_file_max_mib * BYTES_PER_MIB, error))
        return FALSE;
    if (spec->environment &&
        !check_blob("the environment", spec->environment, config->environment_max_bytes, error))
        return FALSE;
    return check_inputs(spec, config, error) && check_each(spec, config, error);
}

/* Such as tells tasks apart, or is none. */
static gboolean check_array_path(const char *what, const char *path, GError **error)
{
    if (!*path || strcmp(path, "/dev/null") == 0 || berth_job_path_is_of_task(path))
        return TRUE;
    return invalid(error,
                   "%s would be one for all tasks of the array: have %%a in it, which stands "
                   "for a task's index",
                   what);
}

BerthIndexSet *berth_spec_array(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                                GError **error)
{
    g_autoptr(BerthIndexSet) set =
        berth_ranges_take(spec->array->tasks, spec->array->n_tasks, config->array_tasks_max,
                          "the tasks of the array", error);
    if (!set || !check_array_path("the file for standard output", spec->stdout_path, error) ||
        !check_array_path("the file for standard error", spec->stderr_path, error))
        return NULL;
    if (berth_index_set_count(set) == 0) {
        invalid(error, "the array has no tasks: name their indices, as 0-99");
        return NULL;
    }
    guint32 beyond = 0;
    if (spec->each && berth_index_set_next(set, spec->each->count, &beyond)) {
        invalid(error, "there are lines for tasks 0 to %u, and none for task %u of the array",
                spec->each->count - 1, beyond);
        return NULL;
    }
    return g_steal_pointer(&set);
}

static gboolean check_path(const char *what, const char *path, GError **error)
{
    if (!*path)
        return TRUE;
    if (path[0] != '/' || strlen(path) > PATH_MAX_BYTES) {
        return invalid(error, "%s is not an absolute path of at most %u bytes", what,
                       PATH_MAX_BYTES);
    }
    return berth_text_check(what, path, PATH_MAX_BYTES, error);
}

static gboolean check_nodes(const Berth__JobSpec *spec, GError **error)
{
    if (spec->n_nodes > NODES_MAX) {
        return invalid(error, "%zu nodes are named; at most %u are allowed", spec->n_nodes,
                       NODES_MAX);
    }
    for (gsize i = 0; i < spec->n_nodes; i++) {
        if (!*spec->nodes[i])
            return invalid(error, "the name of a node is empty");
        if (!berth_text_check("the name of a node", spec->nodes[i], HOST_MAX_BYTES, error))
            return FALSE;
    }
    return TRUE;
}

/* All of it travels to the node in one frame, with what is inline, and what the guest is to do in one
 * message to the guest. */
static gboolean check_size(const Berth__JobSpec *spec, GError **error)
{
    gsize size = berth__job_spec__get_packed_size(spec);
    if (size > SPEC_MAX_BYTES) {
        return invalid(error,
                       "the job's description has %zu bytes; at most %u are allowed; shorten the "
                       "names of its input files, or put them into one archive",
                       size, SPEC_MAX_BYTES);
    }
    size = berth_start_request_task_bytes_max(spec);
    if (size > BERTH_CHANNEL_TASK_MAX_BYTES) {
        return invalid(error,
                       "what the guest is told of the job may take %zu bytes, and a guest takes %u "
                       "at most; use fewer or shorter arguments and input files, or put the files "
                       "into one archive",
                       size, BERTH_CHANNEL_TASK_MAX_BYTES);
    }
    return TRUE;
}

static guint64 payload_bytes(const Berth__JobSpec *spec)
{
    guint64 bytes = spec->script ? spec->script->size_bytes : 0;
    for (gsize i = 0; i < spec->n_inputs; i++)
        bytes += spec->inputs[i]->blob ? spec->inputs[i]->blob->size_bytes : 0;
    return bytes;
}

/* Even if all of the image's own size were free. What is nearly too much is seen in the guest. */
static gboolean check_payload_fits(const Berth__JobSpec *spec, guint64 image_mib, GError **error)
{
    guint64 payload_mib = (payload_bytes(spec) + BYTES_PER_MIB - 1) / BYTES_PER_MIB;
    if (image_mib == 0 || payload_mib <= image_mib + spec->disk_mib)
        return TRUE;
    g_autofree char *payload = berth_format_size_mib(payload_mib);
    g_autofree char *disk = berth_format_size_mib(spec->disk_mib);
    return invalid(
        error,
        "the input files have %s together and do not fit into the guest's disk, which has "
        "%s beside the image; ask for more with --disk",
        payload, disk);
}

gboolean berth_spec_check_disk(const Berth__JobSpec *spec, guint64 image_bytes, GError **error)
{
    guint64 image_mib = (image_bytes + BYTES_PER_MIB - 1) / BYTES_PER_MIB;
    if (image_mib <= DISK_MAX_MIB && spec->disk_mib <= DISK_MAX_MIB - image_mib)
        return check_payload_fits(spec, image_mib, error);
    g_autofree char *asked = berth_format_size_mib(MIN(spec->disk_mib, BERTH_SIZE_MAX_MIB));
    g_autofree char *image = berth_format_size_mib(image_mib);
    g_autofree char *most = berth_format_size_mib(DISK_MAX_MIB);
    return invalid(error, "%s of disk%s%s%s cannot be had: a disk has %s at most", asked,
                   image_mib > 0 ? " beside " : "", image_mib > 0 ? image : "",
                   image_mib > 0 ? " of the image" : "", most);
}

/* Of the dependency at PLACE, for which each task is looked at. */
static gboolean check_by_element(const Berth__JobSpec *spec, gsize place, GError **error)
{
    guint64 job = spec->dependencies[place]->job;
    guint n = 1;
    if (!spec->array)
        return invalid(error,
                       "only the tasks of an array can come after those of another job one by "
                       "one: make it one with --array, or let it come after all of that "
                       "job (afterok)");
    for (gsize i = 0; i < place; i++) {
        const Berth__Dependency *before = spec->dependencies[i];
        if (before->kind != BERTH__DEPENDENCY__KIND__AFTER_CORR)
            continue;
        if (before->job == job)
            return invalid(error, "it comes after the tasks of job %" G_GUINT64_FORMAT " twice",
                           job);
        n++;
    }
    return n <= ELEMENTS_MAX ||
           invalid(error,
                   "its tasks come after those of more than %u other jobs: let one array come "
                   "after some of them, and this one after it",
                   ELEMENTS_MAX);
}

static gboolean check_dependencies(const Berth__JobSpec *spec, GError **error)
{
    if (spec->n_dependencies > DEPENDENCIES_MAX)
        return invalid(
            error,
            "it comes after %zu other jobs; %u are allowed: let one job come after those, "
            "and this one after it",
            spec->n_dependencies, DEPENDENCIES_MAX);
    for (gsize i = 0; i < spec->n_dependencies; i++) {
        const Berth__Dependency *dependency = spec->dependencies[i];
        gboolean is_singleton = dependency->kind == BERTH__DEPENDENCY__KIND__SINGLETON;
        /* Numbers that this release does not know come from a newer one. */
        if (dependency->kind < BERTH__DEPENDENCY__KIND__AFTER_ANY ||
            dependency->kind > BERTH__DEPENDENCY__KIND__AFTER_CORR)
            return invalid(error, "what it is to come after (%d) is not known here",
                           (int)dependency->kind);
        if (is_singleton && !*spec->name)
            return invalid(error, "it is to come after the others of its name, and has none; give "
                                  "it one with --name");
        if (dependency->kind == BERTH__DEPENDENCY__KIND__AFTER_CORR &&
            !check_by_element(spec, i, error))
            return FALSE;
        if ((dependency->job == 0) != is_singleton)
            return invalid(error, "what it is to come after names no job");
    }
    return TRUE;
}

gboolean berth_spec_check(const Berth__JobSpec *spec, const BerthDaemonConfig *config,
                          gboolean is_operator, GError **error)
{
    return berth_text_check("the job's name", spec->name, NAME_MAX_BYTES, error) &&
           berth_image_name_check(spec->image, error) &&
           berth_text_check("the submitting host's name", spec->submit_host, HOST_MAX_BYTES,
                            error) &&
           check_resources(spec, config, error) && berth_spec_check_disk(spec, 0, error) &&
           check_checkpoints(spec, config, error) && check_at_limits(spec, config, error) &&
           check_priority(spec, is_operator, error) &&
           check_command(spec, config->command_max_bytes, error) &&
           check_path("the working directory", spec->working_directory, error) &&
           check_path("the file for standard output", spec->stdout_path, error) &&
           check_path("the file for standard error", spec->stderr_path, error) &&
           check_nodes(spec, error) && check_dependencies(spec, error) &&
           check_payloads(spec, config, error) && check_size(spec, error);
}

GPtrArray *berth_spec_blobs(const Berth__JobSpec *spec)
{
    GPtrArray *blobs = g_ptr_array_new();
    if (spec->environment)
        g_ptr_array_add(blobs, spec->environment);
    if (spec->script)
        g_ptr_array_add(blobs, spec->script);
    for (gsize i = 0; i < spec->n_inputs; i++)
        g_ptr_array_add(blobs, spec->inputs[i]->blob);
    if (spec->each)
        g_ptr_array_add(blobs, spec->each->blob);
    return blobs;
}
