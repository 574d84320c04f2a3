/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from the numbers of events in a job's record to the events. Each is looked up by its number: what
 * that takes does not depend on how long the job's history is. */
#include "scheduler/store/requests.h"

/* *OUT_EVENT NULL: there is none of that number. (transfer full) */
static gboolean read_event(StoreDb *db, guint64 seq, Berth__Event **out_event, GError **error)
{
    static const char what[] = "read what was asked of a job";
    gboolean row = FALSE;
    g_autoptr(StoreStatement) select =
        store_db_statement(db, "SELECT record FROM event WHERE seq = ?1", error);
    if (select == NULL)
        return FALSE;
    store_bind_uint64(select, 1, seq);
    if (!store_db_step(db, select, what, &row, error))
        return FALSE;
    *out_event =
        row ? store_column_message(select, 0, &berth__event__descriptor, what, error) : NULL;
    return !row || *out_event != NULL;
}

static gboolean attach(StoreDb *db, Berth__JobRequest *request, GError **error)
{
    gboolean is_apart = request->settled_seq != 0 && request->settled_seq != request->asked_seq;
    return read_event(db, request->asked_seq, &request->asked, error) &&
           (!is_apart || read_event(db, request->settled_seq, &request->settled, error));
}

gboolean store_requests_attach(StoreDb *db, Berth__Job *job, GError **error)
{
    for (gsize i = 0; i < job->n_requests; i++)
        if (!attach(db, job->requests[i], error))
            return FALSE;
    return TRUE;
}
