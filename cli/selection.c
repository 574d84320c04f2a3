/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way through jobs that are selected: page by page of a list, and of each page many requests at a time. */
#include "cli/selection.h"

#include "common/error.h"

/* More of one user are not dealt with at a time. */
#define FLYING_MAX 32u

void berth_selection_clear(BerthSelection *selection)
{
    g_clear_pointer(&selection->user, g_free);
    g_clear_pointer(&selection->name, g_free);
}

gboolean berth_selection_is_made(const BerthSelection *selection)
{
    return selection->all || selection->user != NULL || selection->name != NULL;
}

typedef struct {
    BerthCli *cli;
    const BerthSelection *selection;
    const char *method;
    BerthSelectionFill fill;
    gpointer user_data;
    guint n_flying;
    guint64 n_done;
    int *out_status;
    GError *lost; /* the connection, or what else keeps the rest from being asked */
} Asking;

static gboolean is_of_the_job(const GError *error)
{
    return !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) &&
           !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) &&
           !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_PROTOCOL) &&
           !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED);
}

static void on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Asking *asking = user_data;
    g_autoptr(GError) error = NULL;
    Berth__JobReply *reply = (Berth__JobReply *)berth_rpc_peer_call_finish(result, &error);
    asking->n_flying--;
    if (reply != NULL) {
        asking->n_done++;
        if (asking->cli->json && reply->job != NULL)
            berth_cli_print_json(&reply->job->base);
        berth__job_reply__free_unpacked(reply, NULL);
    } else if (!is_of_the_job(error)) {
        if (asking->lost == NULL)
            asking->lost = g_steal_pointer(&error);
    } else if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) &&
               !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION)) {
        berth_cli_report(error, asking->out_status);
    }
}

static void ask_one(Asking *asking, const Berth__Job *job)
{
    const ProtobufCMessage *request = asking->fill(job, asking->user_data);
    if (request == NULL)
        return;
    berth_rpc_peer_call_async(asking->cli->peer, &berth__jobs__descriptor, asking->method, request,
                              0, NULL, on_answer, asking);
    asking->n_flying++;
    while (asking->n_flying >= FLYING_MAX)
        g_main_context_iteration(NULL, TRUE);
}

static gboolean is_selected(const Asking *asking, const Berth__Job *job)
{
    return asking->selection->name == NULL || g_str_equal(job->name, asking->selection->name);
}

static gboolean ask_page(Asking *asking, const Berth__ListJobsReply *page, GError **error)
{
    for (size_t i = 0; asking->lost == NULL && i < page->n_jobs; i++)
        if (is_selected(asking, page->jobs[i]))
            ask_one(asking, page->jobs[i]);
    while (asking->n_flying > 0)
        g_main_context_iteration(NULL, TRUE);
    if (asking->lost == NULL)
        return TRUE;
    if (asking->n_done == 0)
        g_propagate_error(error, g_steal_pointer(&asking->lost));
    else
        g_propagate_prefixed_error(error, g_steal_pointer(&asking->lost),
                                   "%" G_GUINT64_FORMAT
                                   " jobs are done, do the same again for the others: ",
                                   asking->n_done);
    return FALSE;
}

gboolean berth_selection_ask(BerthCli *cli, const BerthSelection *selection, const char *method,
                             BerthSelectionFill fill, gpointer user_data, guint64 *out_n,
                             int *out_status, GError **error)
{
    Asking asking = {cli, selection, method, fill, user_data, 0, 0, out_status, NULL};
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    request.user = selection->user != NULL ? selection->user : request.user;
    gboolean ok = TRUE;
    do {
        Berth__ListJobsReply *page = (Berth__ListJobsReply *)berth_cli_call(
            cli, &berth__jobs__descriptor, "List", &request.base, error);
        if (page == NULL)
            return FALSE;
        ok = ask_page(&asking, page, error);
        request.after_job = page->next_after_job;
        berth__list_jobs_reply__free_unpacked(page, NULL);
    } while (ok && request.after_job != 0);
    *out_n = asking.n_done;
    return ok;
}
