/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a stored job becomes a guest's task. */
#include "config.h"

#include "scheduler/daemon/start_request.h"

#include "common/error.h"
#include "common/id.h"
#include "common/task_lines.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/storage_link.h"
#include "scheduler/daemon/submit_blobs.h"

#include <string.h>

#define DEFAULT_WORKING_DIRECTORY "/work"
/* The longest that they can be. */
#define USER_MAX_BYTES 256u
#define NODE_MAX_BYTES 253u
#define BYTES_PER_MIB  ((guint64)1 << 20)
#define LINE_VARIABLE  "BERTH_TASK_LINE"

/* --- the request -------------------------------------------------------------------------------- */

static void add_variable(GPtrArray *entries, const char *name, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static void add_variable(GPtrArray *entries, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *value = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(entries, g_strdup_printf("%s=%s", name, value));
}

/* What a job may want to know about itself. */
static GPtrArray *build_environment(const Berth__JobSpec *spec, const BerthStartFacts *facts)
{
    GPtrArray *entries = g_ptr_array_new_with_free_func(g_free);
    add_variable(entries, "BERTH_JOB_ID", "%" G_GUINT64_FORMAT, facts->id.job);
    add_variable(entries, "BERTH_TASK_ID", "%u", facts->id.task);
    add_variable(entries, "BERTH_EPOCH", "%u", facts->id.epoch);
    add_variable(entries, "BERTH_JOB_NAME", "%s", spec->name);
    add_variable(entries, "BERTH_JOB_USER", "%s", facts->user);
    add_variable(entries, "BERTH_NODE", "%s", facts->node);
    add_variable(entries, "BERTH_IMAGE", "%s", spec->image);
    add_variable(entries, "BERTH_VCPUS", "%u", spec->vcpus);
    add_variable(entries, "BERTH_MEMORY_MIB", "%" G_GUINT64_FORMAT, spec->memory_mib);
    add_variable(entries, "BERTH_TIME_LIMIT_SEC", "%" G_GUINT64_FORMAT,
                 facts->time_limit_sec > 0 ? facts->time_limit_sec : spec->time_limit_sec);
    add_variable(entries, "BERTH_SUBMIT_HOST", "%s", spec->submit_host);
    if (facts->line)
        add_variable(entries, LINE_VARIABLE, "%s", facts->line);
    return entries;
}

static Berth__GuestFile **build_inputs(const Berth__JobSpec *spec)
{
    Berth__GuestFile **files = g_new0(Berth__GuestFile *, spec->n_inputs + 1);
    for (gsize i = 0; i < spec->n_inputs; i++) {
        files[i] = g_new(Berth__GuestFile, 1);
        berth__guest_file__init(files[i]);
        files[i]->path = spec->inputs[i]->name;
        files[i]->mode = spec->inputs[i]->mode;
        files[i]->blob = spec->inputs[i]->blob;
    }
    return files;
}

static void inputs_free(Berth__GuestFile **files, gsize n)
{
    for (gsize i = 0; i < n; i++)
        g_free(files[i]);
    g_free(files);
}

static void fill_task(const Berth__JobSpec *spec, const BerthStartFacts *facts,
                      Berth__GuestTask *task)
{
    task->command = spec->command;
    task->n_command = spec->n_command;
    task->environment = spec->environment;
    task->script = spec->script;
    task->working_directory =
        *spec->working_directory ? spec->working_directory : (char *)DEFAULT_WORKING_DIRECTORY;
    task->uid = facts->uid;
    task->gid = facts->gid;
    task->groups = (guint32 *)facts->groups;
    task->n_groups = facts->n_groups;
    task->user = (char *)facts->user;
}

Berth__StartGuestRequest *berth_start_request_build(const Berth__JobSpec *spec,
                                                    const BerthStartFacts *facts)
{
    g_autoptr(GPtrArray) environment = build_environment(spec, facts);
    g_autofree char *hostname = g_strdup_printf("job-%" G_GUINT64_FORMAT, facts->id.job);
    g_autofree char *disk_id = berth_disk_id_format(&facts->id);
    g_autofree char *log_id =
        facts->log_id ? g_strdup(facts->log_id) : berth_log_id_format(&facts->id);
    g_autofree char *checkpoint_id =
        berth_checkpoint_id_format(facts->id.job, facts->id.task, facts->checkpoint);
    BerthGuestId from = facts->id;
    from.epoch = facts->from_epoch;
    g_autofree char *from_disk_id = berth_disk_id_format(&from);
    Berth__RestoreFrom restore = BERTH__RESTORE_FROM__INIT;
    restore.checkpoint_id = checkpoint_id;
    restore.disk_id = from_disk_id;
    restore.signal = spec->restore_signal;
    Berth__GuestTask task = BERTH__GUEST_TASK__INIT;
    fill_task(spec, facts, &task);
    task.inputs = build_inputs(spec);
    task.n_inputs = spec->n_inputs;
    task.hostname = hostname;
    task.extra_environment = (char **)environment->pdata;
    task.n_extra_environment = environment->len;
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    id.job = facts->id.job;
    id.task = facts->id.task;
    id.guest = facts->id.guest;
    id.epoch = facts->id.epoch;
    Berth__StartGuestRequest request = BERTH__START_GUEST_REQUEST__INIT;
    request.id = &id;
    request.image_id = (char *)facts->image_id;
    request.disk_bytes = facts->image_bytes + spec->disk_mib * BYTES_PER_MIB;
    request.vcpus = spec->vcpus;
    request.memory_mib = spec->memory_mib;
    request.vcpus_max = spec->vcpus_max;
    request.memory_max_mib = spec->memory_max_mib;
    request.task = &task;
    request.boot_deadline_sec = facts->boot_deadline_sec;
    request.disk_id = disk_id;
    request.log_id = log_id;
    request.opportunistic = facts->is_opportunistic;
    request.restore = facts->checkpoint != 0 ? &restore : NULL;
    Berth__StartGuestRequest *copy = berth_pb_dup(&request.base);
    inputs_free(task.inputs, spec->n_inputs);
    return copy;
}

gsize berth_start_request_task_bytes_max(const Berth__JobSpec *spec)
{
    g_autofree char *user = g_strnfill(USER_MAX_BYTES, 'x');
    g_autofree char *node = g_strnfill(NODE_MAX_BYTES, 'x');
    g_autofree char *line = spec->each ? g_strnfill(BERTH_TASK_LINE_MAX_BYTES, 'x') : NULL;
    g_autofree guint32 *groups = g_new(guint32, BERTH_USER_GROUPS_MAX);
    for (guint i = 0; i < BERTH_USER_GROUPS_MAX; i++)
        groups[i] = G_MAXUINT32;
    BerthStartFacts facts = {
        .id = {.job = G_MAXUINT64, .task = G_MAXUINT32, .epoch = G_MAXUINT32},
        .user = user,
        .uid = G_MAXUINT32,
        .gid = G_MAXUINT32,
        .groups = groups,
        .n_groups = BERTH_USER_GROUPS_MAX,
        .node = node,
        .image_id = "",
        .line = line,
    };
    Berth__StartGuestRequest *request = berth_start_request_build(spec, &facts);
    gsize size = berth__guest_task__get_packed_size(request->task);
    berth__start_guest_request__free_unpacked(request, NULL);
    return size;
}

/* --- on a worker -------------------------------------------------------------------------------- */

typedef struct {
    BerthStore *store;
    BerthStartFacts facts; /* its strings are the next four */
    char *user;
    char *node;
    char *image_id;
    char *log_id;
} Input;

static void input_free(gpointer data)
{
    Input *input = data;
    g_free(input->user);
    g_free(input->node);
    g_free(input->image_id);
    g_free(input->log_id);
    g_free(input);
}

/* Of them the lines of all tasks are not for the guest. */
static void add_inline_blobs(const GPtrArray *places, const BerthBlobPlace *lines,
                             Berth__StartGuestRequest *request)
{
    request->inline_blobs = g_new0(ProtobufCBinaryData, places->len + 1);
    for (guint i = 0; i < places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(places, i);
        if (place->to_storage || place == lines)
            continue;
        gsize length = 0;
        gconstpointer data = g_bytes_get_data(place->content, &length);
        ProtobufCBinaryData *blob = &request->inline_blobs[request->n_inline_blobs++];
        blob->data = length > 0 ? g_memdup2(data, length) : NULL;
        blob->len = length;
    }
}

static gboolean is_of(const Berth__BlobRef *blob, const BerthBlobPlace *place)
{
    return blob && berth_digest_equal(blob->sha256.data, place->digest);
}

/* As berth_spec_blobs() has it, the last: NULL where the job has none, or has the same for another purpose. */
static const BerthBlobPlace *lines_of(const Berth__JobSpec *spec, const GPtrArray *places)
{
    const BerthBlobPlace *last = places->len > 0 ? places->pdata[places->len - 1] : NULL;
    if (!spec->each || !last || !is_of(spec->each->blob, last) || is_of(spec->script, last) ||
        is_of(spec->environment, last))
        return NULL;
    for (gsize i = 0; i < spec->n_inputs; i++)
        if (is_of(spec->inputs[i]->blob, last))
            return NULL;
    return last;
}

static GBytes *read_content(gpointer source, guint64 offset, gsize length, GError **error)
{
    GBytes *content = source;
    gsize size = g_bytes_get_size(content);
    gsize from = (gsize)MIN(offset, size);
    return g_bytes_new_from_bytes(content, from, MIN(length, size - from));
}

typedef struct {
    Berth__StartGuestRequest *request;
    guint8 *lines; /* digest of what has its line, in storage; NULL: it has that, or needs none */
} Made;

static void made_free(gpointer data)
{
    Made *made = data;
    if (made->request)
        berth__start_guest_request__free_unpacked(made->request, NULL);
    g_free(made->lines);
    g_free(made);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Made, made_free)

static Made *make(const Berth__JobSpec *spec, const BerthStartFacts *facts, const GPtrArray *places,
                  GError **error)
{
    const BerthBlobPlace *lines = lines_of(spec, places);
    g_autofree char *line = NULL;
    BerthStartFacts with_line = *facts;
    if (spec->each && spec->each->blob->in_state) {
        g_autoptr(GBytes) content = berth_submit_blobs_content(places, spec->each->blob);
        line = berth_task_lines_get(read_content, content, facts->id.task, error);
        if (!line)
            return NULL;
    }
    with_line.line = line;
    Made *made = g_new0(Made, 1);
    made->request = berth_start_request_build(spec, &with_line);
    add_inline_blobs(places, lines, made->request);
    if (spec->each && !line)
        made->lines = g_memdup2(spec->each->blob->sha256.data, BERTH_SHA256_BYTES);
    return made;
}

static gpointer make_request(gconstpointer data, GCancellable *cancellable, GError **error)
{
    const Input *input = data;
    g_autoptr(Berth__JobSpec) spec = berth_store_get_spec(input->store, input->facts.id.job, error);
    if (!spec)
        return NULL;
    g_autoptr(GPtrArray) places = berth_submit_blobs_recall(spec, input->store, error);
    if (!places)
        return NULL;
    g_autoptr(GArray) groups = berth_user_groups(input->user, input->facts.gid, error);
    if (!groups)
        return NULL;
    BerthStartFacts facts = input->facts;
    facts.groups = (const guint32 *)(void *)groups->data;
    facts.n_groups = groups->len;
    return make(spec, &facts, places, error);
}

/* --- a line that is in storage ------------------------------------------------------------------ */

typedef struct {
    guint8 digest[BERTH_SHA256_BYTES];
    guint32 task;
} LineInput;

typedef struct {
    BerthStorage *storage;
    const guint8 *digest;
} LineSource;

static GBytes *read_storage(gpointer data, guint64 offset, gsize length, GError **error)
{
    const LineSource *source = data;
    return berth_storage_blob_read(source->storage, source->digest, offset, length, error);
}

static gpointer read_line(BerthStorage *storage, gconstpointer data, GError **error)
{
    const LineInput *input = data;
    LineSource source = {storage, input->digest};
    return berth_task_lines_get(read_storage, &source, input->task, error);
}

static void add_line(Berth__GuestTask *task, const char *line)
{
    task->extra_environment =
        g_renew(char *, task->extra_environment, task->n_extra_environment + 1);
    task->extra_environment[task->n_extra_environment++] =
        g_strconcat(LINE_VARIABLE "=", line, NULL);
}

/* --- on the loop -------------------------------------------------------------------------------- */

typedef struct {
    BerthDaemon *daemon;
    BerthStartRequestFunc func;
    gpointer user_data;
    Made *made; /* that waits for its line */
} Making;

/* Of MAKING, which is freed: what was made, or ERROR. */
static void tell(Making *making, Made *made, const GError *error)
{
    making->func(made && !error ? g_steal_pointer(&made->request) : NULL, error, making->user_data);
    g_clear_pointer(&made, made_free);
    g_free(making);
}

static void on_line(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Making *making = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *line = berth_work_finish(result, &error);
    if (line)
        add_line(making->made->request->task, line);
    tell(making, making->made, error);
}

static void on_made(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Making *making = user_data;
    g_autoptr(GError) error = NULL;
    Made *made = berth_work_finish(result, &error);
    if (!made || !made->lines) {
        tell(making, made, error);
        return;
    }
    LineInput *input = g_new(LineInput, 1);
    memcpy(input->digest, made->lines, sizeof input->digest);
    input->task = made->request->id->task;
    making->made = made;
    berth_storage_link_run(making->daemon->storage, BERTH_LANE_STORAGE_DATA, "read a task's line",
                           read_line, input, g_free, g_free, on_line, making);
}

static Input *input_new(BerthDaemon *daemon, const BerthGuestId *id)
{
    const BerthJobEntry *job = berth_job_table_find(daemon->jobs, id->job);
    const BerthTaskEntry *task = berth_job_table_find_task(daemon->jobs, id->job, id->task);
    const Berth__Image *image =
        job ? berth_image_table_find(daemon->images, job->job->image) : NULL;
    if (!task || !image)
        return NULL;
    Input *input = g_new0(Input, 1);
    input->store = daemon->store;
    input->user = g_strdup(job->job->user);
    input->node = g_strdup(task->stored->task->node);
    input->image_id = g_strdup(image->id);
    input->log_id = g_strdup(task->stored->log_id);
    input->facts = (BerthStartFacts){
        .id = *id,
        .user = input->user,
        .uid = job->job->uid,
        .gid = job->job->gid,
        .node = input->node,
        .time_limit_sec = job->job->time_limit_sec,
        .image_id = input->image_id,
        .image_bytes = image->size_bytes,
        .boot_deadline_sec = daemon->config->boot_deadline_sec,
        .log_id = input->log_id,
        .checkpoint = task->stored->task->restores_from,
        .from_epoch = task->stored->checkpoint_epoch,
        .is_opportunistic = task->stored->task->opportunistic,
    };
    return input;
}

void berth_start_request_make(BerthDaemon *daemon, const BerthGuestId *id,
                              BerthStartRequestFunc func, gpointer user_data)
{
    Input *input = input_new(daemon, id);
    if (!input) {
        g_autoptr(GError) error = g_error_new(
            BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
            "the image of job %" G_GUINT64_FORMAT " is not in the daemon's state", id->job);
        func(NULL, error, user_data);
        return;
    }
    Making *making = g_new(Making, 1);
    *making = (Making){daemon, func, user_data, NULL};
    berth_workers_run(daemon->workers, BERTH_LANE_START, "prepare a start", make_request, input,
                      input_free, made_free, 0, on_made, making);
}
