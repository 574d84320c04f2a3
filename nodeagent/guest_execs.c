/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the agent's half of the commands beside a guest's job: what of each is still to be sent, and how much
 * of it may come. It lives over sessions of one connection, and not over connections.
 *
 * Invariants: one piece of input at a time is on its way; a command counts until the guest has said that it has
 * ended, though nobody waits for it any more; memory is bounded by BERTH_EXECS_MAX commands and pieces. */
#include <config.h>

#include "nodeagent/guest_execs.h"

#include "common/error.h"
#include "common/message.h"
#include "nodeagent/guest_channel.h"

#include <signal.h>

/* Who has just come to this node, or whose agent was started, answers within seconds. */
#define ANSWER_MSEC 30000u

struct BerthGuestExecs {
    const BerthGuestExecsFuncs *funcs;
    gpointer user_data;
    GPtrArray *all; /* Exec */
    gboolean is_open;
    guint execs_max; /* of the guest */
};

typedef struct {
    BerthExec base;
    BerthGuestExecs *execs;
    guint64 id;
    ProtobufCMessage *request;   /* Berth__ExecRequest */
    guint32 rows, columns;       /* to be sent; 0: as they were */
    const BerthExecFuncs *funcs; /* NULL: nobody wants it any more */
    gpointer user_data;
    gboolean was_sent;
    guint answer_source; /* until it is sent: when nobody waits for the guest's answer any more */
    gboolean close_was_sent;
    guint64 received[2];
    guint64 acked[2];
    gboolean ack_due;
    guint64 signals;   /* bit N: SIGNAL N is to be sent */
    GByteArray *input; /* the piece that the guest has not taken; NULL: none */
    guint64 input_offset;
    gboolean input_ends;
    gboolean input_was_sent;
} Exec;

static Exec *exec_of(BerthExec *base)
{
    return (Exec *)(void *)base;
}

static void exec_free(gpointer data)
{
    Exec *exec = data;
    g_clear_handle_id(&exec->answer_source, g_source_remove);
    berth_message_free(exec->request);
    g_clear_pointer(&exec->input, g_byte_array_unref);
    g_free(exec);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void send_body(Exec *exec, Berth__ToGuest__BodyCase body, gpointer value)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = body;
    message.exec = value; /* any of the union's pointers */
    exec->execs->funcs->send(&message, exec->execs->user_data);
}

static void send_begin(Exec *exec)
{
    Berth__ToGuest__Exec body = BERTH__TO_GUEST__EXEC__INIT;
    const Berth__ExecRequest *request = (const Berth__ExecRequest *)(void *)exec->request;
    body.exec = exec->id;
    body.command = request->command;
    body.n_command = request->n_command;
    body.terminal = request->terminal;
    exec->was_sent = TRUE;
    g_clear_handle_id(&exec->answer_source, g_source_remove);
    send_body(exec, BERTH__TO_GUEST__BODY_EXEC, &body);
}

static void send_control(Exec *exec)
{
    Berth__ToGuest__ExecControl body = BERTH__TO_GUEST__EXEC_CONTROL__INIT;
    body.exec = exec->id;
    body.stdout_bytes = exec->acked[0];
    body.stderr_bytes = exec->acked[1];
    gint bit = g_bit_nth_lsf(exec->signals, -1);
    if (bit > 0) {
        body.signal = (guint)bit;
        exec->signals &= ~((guint64)1 << bit);
    }
    Berth__Terminal size = BERTH__TERMINAL__INIT;
    size.rows = exec->rows;
    size.columns = exec->columns;
    body.size = exec->rows != 0 ? &size : NULL;
    exec->rows = exec->columns = 0;
    exec->ack_due = FALSE;
    send_body(exec, BERTH__TO_GUEST__BODY_EXEC_CONTROL, &body);
}

static void send_input(Exec *exec)
{
    Berth__ToGuest__ExecInput body = BERTH__TO_GUEST__EXEC_INPUT__INIT;
    body.exec = exec->id;
    body.offset = exec->input_offset;
    body.data = (ProtobufCBinaryData){exec->input->len, exec->input->data};
    body.end = exec->input_ends;
    exec->input_was_sent = TRUE;
    send_body(exec, BERTH__TO_GUEST__BODY_EXEC_INPUT, &body);
}

static void send_close(Exec *exec)
{
    Berth__ToGuest__ExecClose body = BERTH__TO_GUEST__EXEC_CLOSE__INIT;
    body.exec = exec->id;
    exec->close_was_sent = TRUE;
    send_body(exec, BERTH__TO_GUEST__BODY_EXEC_CLOSE, &body);
}

static gboolean can_send(const Exec *exec)
{
    const BerthGuestExecs *execs = exec->execs;
    return execs->is_open && execs->funcs->has_room(execs->user_data);
}

/* All that is due, in its order, as far as there is room. */
static void send_due(Exec *exec)
{
    if (!exec->was_sent && can_send(exec))
        send_begin(exec);
    while ((exec->ack_due || exec->signals != 0 || exec->rows != 0) && exec->was_sent &&
           can_send(exec))
        send_control(exec);
    if (exec->input != NULL && !exec->input_was_sent && exec->was_sent && can_send(exec))
        send_input(exec);
    if (exec->funcs == NULL && !exec->close_was_sent && can_send(exec))
        send_close(exec);
}

/* --- what is said to a command ---------------------------------------------------------------- */

static void exec_input(BerthExec *base, const guint8 *data, gsize length, gboolean end)
{
    Exec *exec = exec_of(base);
    g_return_if_fail(exec->input == NULL && length <= BERTH_EXEC_INPUT_MAX_BYTES);
    exec->input = g_byte_array_append(g_byte_array_sized_new((guint)length), data, (guint)length);
    exec->input_ends = end;
    exec->input_was_sent = FALSE;
    send_due(exec);
}

static void exec_control(BerthExec *base, const guint64 acked[2], guint signal)
{
    Exec *exec = exec_of(base);
    for (guint i = 0; i < 2; i++) {
        guint64 sensible = MIN(acked[i], exec->received[i]);
        exec->ack_due = exec->ack_due || sensible > exec->acked[i];
        exec->acked[i] = MAX(exec->acked[i], sensible);
    }
    if (signal > 0 && signal < 64)
        exec->signals |= (guint64)1 << signal;
    send_due(exec);
}

static void exec_resize(BerthExec *base, const Berth__Terminal *size)
{
    Exec *exec = exec_of(base);
    exec->rows = size->rows;
    exec->columns = size->columns;
    send_due(exec);
}

static void exec_close(BerthExec *base)
{
    Exec *exec = exec_of(base);
    exec->funcs = NULL;
    exec->ack_due = FALSE;
    exec->signals = 0;
    exec->rows = 0;
    g_clear_pointer(&exec->input, g_byte_array_unref);
    if (!exec->was_sent)
        g_ptr_array_remove(exec->execs->all, exec);
    else
        send_due(exec);
}

static const BerthExecClass exec_class = {exec_input, exec_control, exec_resize, exec_close};

/* There is no such command any more. */
static void fail(Exec *exec, const GError *reason)
{
    guint index = 0;
    g_ptr_array_find(exec->execs->all, exec, &index);
    g_ptr_array_steal_index(exec->execs->all, index);
    if (exec->funcs != NULL)
        exec->funcs->ended(NULL, reason, exec->user_data);
    exec_free(exec);
}

static void on_no_answer(gpointer data)
{
    Exec *exec = data;
    g_autoptr(GError) error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                                                  "the guest does not answer now; try again");
    exec->answer_source = 0;
    fail(exec, error);
}

/* Can the guest have N of them? How many it can run is known when it has answered. */
static gboolean check_number(const BerthGuestExecs *execs, guint n, GError **error)
{
    guint most = execs->is_open ? MIN(execs->execs_max, BERTH_EXECS_MAX) : BERTH_EXECS_MAX;
    if (n <= most)
        return TRUE;
    if (most == 0)
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                            "the guest was started by a release that runs no commands in it");
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%u commands run in the guest beside the job's, which are all that may at a "
                    "time",
                    most);
    return FALSE;
}

BerthExec *berth_guest_execs_open(BerthGuestExecs *execs, const Berth__ExecRequest *request,
                                  const BerthExecFuncs *funcs, gpointer user_data, GError **error)
{
    if (!check_number(execs, execs->all->len + 1, error))
        return NULL;
    Exec *exec = g_new0(Exec, 1);
    exec->base.class = &exec_class;
    exec->execs = execs;
    exec->id = (guint64)g_random_int() << 32 | MAX(g_random_int(), 1);
    exec->request = berth_message_copy(&request->base);
    exec->funcs = funcs;
    exec->user_data = user_data;
    exec->answer_source = g_timeout_add_once(ANSWER_MSEC, on_no_answer, exec);
    g_ptr_array_add(execs->all, exec);
    send_due(exec);
    return &exec->base;
}

/* --- what the guest says ---------------------------------------------------------------------- */

static Exec *find(const BerthGuestExecs *execs, guint64 id)
{
    for (guint i = 0; i < execs->all->len; i++) {
        Exec *exec = g_ptr_array_index(execs->all, i);
        if (exec->id == id)
            return exec;
    }
    return NULL;
}

static BerthExecVerdict take_output(const BerthGuestExecs *execs,
                                    const Berth__FromGuest__ExecOutput *output)
{
    Exec *exec = find(execs, output->exec);
    gsize length = output->data.len;
    if (exec == NULL || exec->funcs == NULL)
        return BERTH_EXEC_STALE;
    guint stream = output->is_stderr ? 1 : 0;
    guint64 known = exec->received[stream];
    if (output->offset > known || length > BERTH_EXEC_WINDOW_BYTES ||
        output->offset + length > exec->acked[stream] + BERTH_EXEC_WINDOW_BYTES)
        return BERTH_EXEC_BROKEN;
    if (output->offset + length <= known)
        return BERTH_EXEC_STALE;
    gsize again = (gsize)(known - output->offset);
    exec->received[stream] = output->offset + length;
    exec->funcs->output(output->is_stderr, known, output->data.data + again, length - again,
                        exec->user_data);
    return BERTH_EXEC_FRESH;
}

static BerthExecVerdict take_taken(const BerthGuestExecs *execs,
                                   const Berth__FromGuest__ExecTaken *taken)
{
    Exec *exec = find(execs, taken->exec);
    if (exec == NULL || exec->input == NULL || !exec->input_was_sent)
        return BERTH_EXEC_STALE;
    guint64 end = exec->input_offset + exec->input->len;
    if (taken->input_bytes > end)
        return BERTH_EXEC_BROKEN;
    if (taken->input_bytes < end)
        return BERTH_EXEC_STALE;
    exec->input_offset = end;
    g_clear_pointer(&exec->input, g_byte_array_unref);
    exec->funcs->taken(exec->user_data);
    return BERTH_EXEC_FRESH;
}

/* Of what the guest says of an end, what can be. */
static void tell_end(const Exec *exec, const Berth__Exit *said)
{
    g_autofree char *why = berth_guest_channel_text(said->error);
    Berth__Exit exit = BERTH__EXIT__INIT;
    exit.status = said->status & 0xff;
    exit.signal = said->signal < NSIG ? said->signal : SIGKILL;
    exit.error = why;
    exec->funcs->ended(&exit, NULL, exec->user_data);
}

/* The guest is told that we have heard it, room or not: it is one answer to one question of ours. */
static BerthExecVerdict take_ended(const BerthGuestExecs *execs,
                                   const Berth__FromGuest__ExecEnded *ended)
{
    Exec *exec = find(execs, ended->exec);
    if (exec == NULL)
        return BERTH_EXEC_STALE;
    if (ended->exit == NULL)
        return BERTH_EXEC_BROKEN;
    if (!exec->close_was_sent)
        send_close(exec);
    guint index = 0;
    g_ptr_array_find(execs->all, exec, &index);
    g_ptr_array_steal_index(execs->all, index);
    if (exec->funcs != NULL)
        tell_end(exec, ended->exit);
    exec_free(exec);
    return BERTH_EXEC_FRESH;
}

BerthExecVerdict berth_guest_execs_take(BerthGuestExecs *execs, const Berth__FromGuest *message)
{
    switch (message->body_case) {
    case BERTH__FROM_GUEST__BODY_EXEC_OUTPUT:
        return take_output(execs, message->exec_output);
    case BERTH__FROM_GUEST__BODY_EXEC_TAKEN:
        return take_taken(execs, message->exec_taken);
    case BERTH__FROM_GUEST__BODY_EXEC_ENDED:
        return take_ended(execs, message->exec_ended);
    default:
        return BERTH_EXEC_STALE;
    }
}

/* --- sessions --------------------------------------------------------------------------------- */

GArray *berth_guest_execs_ids(const BerthGuestExecs *execs)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    for (guint i = 0; i < execs->all->len; i++) {
        const Exec *exec = g_ptr_array_index(execs->all, i);
        if (exec->was_sent)
            g_array_append_val(ids, exec->id);
    }
    return ids;
}

void berth_guest_execs_go_on(BerthGuestExecs *execs)
{
    for (guint i = 0; i < execs->all->len; i++)
        send_due(g_ptr_array_index(execs->all, i));
}

/* Those that came before the guest had said how many it can run, from the last on. */
static void fail_excess(BerthGuestExecs *execs)
{
    for (guint i = execs->all->len; i > 0; i--) {
        Exec *exec = g_ptr_array_index(execs->all, i - 1);
        g_autoptr(GError) error = NULL;
        if (!exec->was_sent && !check_number(execs, i, &error))
            fail(exec, error);
    }
}

void berth_guest_execs_begin(BerthGuestExecs *execs, guint execs_max)
{
    execs->is_open = TRUE;
    execs->execs_max = execs_max;
    fail_excess(execs);
    berth_guest_execs_go_on(execs);
}

void berth_guest_execs_pause(BerthGuestExecs *execs)
{
    execs->is_open = FALSE;
}

void berth_guest_execs_lose(BerthGuestExecs *execs, const GError *reason)
{
    execs->is_open = FALSE;
    for (guint i = execs->all->len; i > 0; i--) {
        Exec *exec = g_ptr_array_index(execs->all, i - 1);
        if (exec->was_sent)
            fail(exec, reason);
    }
}

void berth_guest_execs_fail(BerthGuestExecs *execs, const GError *reason)
{
    execs->is_open = FALSE;
    while (execs->all->len > 0)
        fail(g_ptr_array_index(execs->all, execs->all->len - 1), reason);
}

BerthGuestExecs *berth_guest_execs_new(const BerthGuestExecsFuncs *funcs, gpointer user_data)
{
    BerthGuestExecs *execs = g_new0(BerthGuestExecs, 1);
    execs->funcs = funcs;
    execs->user_data = user_data;
    execs->all = g_ptr_array_new_with_free_func(exec_free);
    return execs;
}

void berth_guest_execs_free(BerthGuestExecs *execs)
{
    if (execs == NULL)
        return;
    g_ptr_array_unref(execs->all);
    g_free(execs);
}
