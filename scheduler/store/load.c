/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a starting daemon reads: everything that is not over yet, and the counters. */
#include "common/error.h"
#include "scheduler/store/read.h"
#include "scheduler/store/tasks.h"

#include <string.h>

typedef struct {
    const BerthStoreLoader *loader;
    gpointer user_data;
    BerthStoreCounters counters;
} Load;

/* Hands each record of SQL, unpacked, to the loader, which may take it. */
typedef gboolean (*RecordFunc)(StoreDb *db, Load *load, ProtobufCMessage **message,
                               StoreStatement *row, GError **error);

static gboolean load_each(StoreDb *db, const char *sql, const char *what,
                          const ProtobufCMessageDescriptor *descriptor, RecordFunc func, Load *load,
                          GError **error)
{
    g_autoptr(StoreStatement) select = store_db_statement(db, sql, error);
    if (select == NULL)
        return FALSE;
    for (;;) {
        gboolean row = FALSE;
        if (!store_db_step(db, select, what, &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        ProtobufCMessage *message = store_column_message(select, 0, descriptor, what, error);
        if (message == NULL)
            return FALSE;
        gboolean ok = func(db, load, &message, select, error);
        if (message != NULL)
            protobuf_c_message_free_unpacked(message, NULL);
        if (!ok)
            return FALSE;
    }
}

static gboolean load_node(StoreDb *db, Load *load, ProtobufCMessage **message, StoreStatement *row,
                          GError **error)
{
    return load->loader->node((const Berth__StoredNode *)*message, load->user_data, error);
}

static gboolean load_image(StoreDb *db, Load *load, ProtobufCMessage **message, StoreStatement *row,
                           GError **error)
{
    return load->loader->image((const Berth__Image *)*message, load->user_data, error);
}

static gboolean load_use(StoreDb *db, Load *load, ProtobufCMessage **message, StoreStatement *row,
                         GError **error)
{
    return load->loader->use((const Berth__StoredUse *)*message, load->user_data, error);
}

static gboolean load_prior(StoreDb *db, Load *load, ProtobufCMessage **message, StoreStatement *row,
                           GError **error)
{
    return load->loader->prior((const Berth__StoredPrior *)*message, load->user_data, error);
}

static gboolean load_unwanted(StoreDb *db, const Load *load, GError **error)
{
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT id, reason FROM unwanted_image ORDER BY id", error);
    if (select == NULL)
        return FALSE;
    for (;;) {
        gboolean row = FALSE;
        if (!store_db_step(db, select, "load what is to be removed", &row, error))
            return FALSE;
        if (!row)
            return TRUE;
        const char *id = (const char *)sqlite3_column_text(select, 0);
        BerthUnwanted why = (BerthUnwanted)sqlite3_column_int(select, 1);
        if (!load->loader->unwanted(id, why, load->user_data, error))
            return FALSE;
    }
}

static gboolean load_job(StoreDb *db, Load *load, ProtobufCMessage **message, StoreStatement *row,
                         GError **error)
{
    BerthStoreLoadedJob loaded = {.job = (Berth__Job *)*message};
    g_autoptr(GPtrArray) tasks = store_tasks_read_open(db, loaded.job->id, error);
    if (tasks == NULL)
        return FALSE;
    Berth__JobSpec *spec =
        store_column_message(row, 1, &berth__job_spec__descriptor, "load a job", error);
    if (spec == NULL)
        return FALSE;
    loaded.spec = spec;
    loaded.tasks = (Berth__StoredTask **)tasks->pdata;
    loaded.n_tasks = tasks->len;
    gboolean ok = store_read_dependencies(db, spec, error) &&
                  load->loader->job(&loaded, load->user_data, error);
    *message = (ProtobufCMessage *)loaded.job;
    berth__job_spec__free_unpacked(spec, NULL);
    return ok;
}

static gboolean load_last_time(StoreDb *db, gint64 *out_usec, GError **error)
{
    static const char what[] = "read the newest event";
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT record FROM event ORDER BY seq DESC LIMIT 1", error);
    gboolean row = FALSE;
    *out_usec = 0;
    if (select == NULL || !store_db_step(db, select, what, &row, error))
        return FALSE;
    if (!row)
        return TRUE;
    Berth__Event *event = store_column_message(select, 0, &berth__event__descriptor, what, error);
    if (event == NULL)
        return FALSE;
    *out_usec = (gint64)event->time_usec;
    berth__event__free_unpacked(event, NULL);
    return TRUE;
}

static gboolean load_identity(StoreDb *db, BerthStoreCounters *counters, GError **error)
{
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT id, jobs_reserved, next_job FROM identity", error);
    gboolean row = FALSE;
    if (select == NULL || !store_db_step(db, select, "read the database's id", &row, error))
        return FALSE;
    const char *id = row ? (const char *)sqlite3_column_text(select, 0) : NULL;
    if (id == NULL || strlen(id) != BERTH_STORE_ID_CHARS) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                            "the state database has lost its id; put a backup in its place");
        return FALSE;
    }
    g_strlcpy(counters->id, id, sizeof counters->id);
    counters->jobs_reserved = (guint64)sqlite3_column_int64(select, 1);
    counters->next_job = MAX(counters->next_job, (guint64)sqlite3_column_int64(select, 2));
    return TRUE;
}

static gboolean load_counters(StoreDb *db, BerthStoreCounters *counters, GError **error)
{
    gint64 job = 0;
    gint64 seq = 0;
    if (!store_db_get_int64(db, "SELECT seq FROM sqlite_sequence WHERE name = 'job'",
                            "read the last job number", &job, error) ||
        !store_db_get_int64(db, "SELECT seq FROM sqlite_sequence WHERE name = 'event'",
                            "read the last event number", &seq, error))
        return FALSE;
    counters->next_job = (guint64)job + 1;
    counters->last_seq = (guint64)seq;
    return load_identity(db, counters, error) && load_last_time(db, &counters->last_usec, error);
}

static gboolean load_all(StoreDb *db, gpointer data, GError **error)
{
    Load *load = data;
    return load_each(db, "SELECT record FROM node ORDER BY name", "load a node",
                     &berth__stored_node__descriptor, load_node, load, error) &&
           load_each(db, "SELECT record FROM image ORDER BY name", "load an image",
                     &berth__image__descriptor, load_image, load, error) &&
           load_unwanted(db, load, error) &&
           load_each(db, "SELECT record FROM used ORDER BY name", "load what was used",
                     &berth__stored_use__descriptor, load_use, load, error) &&
           load_each(db, "SELECT record FROM prior ORDER BY rowid", "load what a family needed",
                     &berth__stored_prior__descriptor, load_prior, load, error) &&
           load_each(db,
                     "SELECT job.record, spec.record FROM job LEFT JOIN spec ON spec.job = job.id"
                     " WHERE job.open = 1 ORDER BY job.id",
                     "load a job", &berth__job__descriptor, load_job, load, error) &&
           load_counters(db, &load->counters, error);
}

gboolean berth_store_load(BerthStore *store, const BerthStoreLoader *loader, gpointer user_data,
                          BerthStoreCounters *out_counters, GError **error)
{
    Load load = {.loader = loader, .user_data = user_data};
    if (!store_read(store, load_all, &load, error))
        return FALSE;
    *out_counters = load.counters;
    return TRUE;
}
