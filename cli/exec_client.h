/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/exec.h"
#include "common/rpc.h"
#include "proto/berth.pb-c.h"

/* One command that runs for this program, on a connection that may have several. All in the main loop. */

typedef struct BerthExecClient BerthExecClient;

typedef struct {
    /* It was taken on: there may be input. */
    void (*begun)(gpointer user_data);
    /* More of its output; what this function has returned from counts as read. */
    void (*output)(gboolean is_stderr, const guint8 *data, gsize length, gpointer user_data);
    /* The input before was taken: there may be more. */
    void (*taken)(gpointer user_data);
    /* EXIT, or why nobody knows it; the other one is NULL. Last of all. */
    void (*ended)(const Berth__Exit *exit, const GError *error, gpointer user_data);
} BerthExecClientFuncs;

/* Asks for REQUEST, which is not needed afterwards. FUNCS stays valid. */
BerthExecClient *berth_exec_client_new(BerthRpcPeer *peer, const Berth__ExecRequest *request,
                                       const BerthExecClientFuncs *funcs, gpointer user_data);
/* One that runs is ended. Not from inside its callbacks. */
void berth_exec_client_free(BerthExecClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthExecClient, berth_exec_client_free)

/* LENGTH: BERTH_EXEC_INPUT_MAX_BYTES at most; END: no more follows. After `begun`, and once `taken`. */
void berth_exec_client_input(BerthExecClient *client, const guint8 *data, gsize length,
                             gboolean end);
/* Its terminal has SIZE now. */
void berth_exec_client_resize(BerthExecClient *client, const Berth__Terminal *size);
/* To all its processes. One that has not begun is not reached: FALSE. */
gboolean berth_exec_client_signal(BerthExecClient *client, guint signal);
