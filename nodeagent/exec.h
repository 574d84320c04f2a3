/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A command that runs for somebody, in a guest or on the host: what there is to say to it and what it says. */

#include "common/exec.h"
#include "proto/berth.pb-c.h"

#include <glib.h>

typedef struct BerthExec BerthExec;

/* What it says. None comes after `ended` nor after close(), and none from inside a function of BerthExec. */
typedef struct {
    /* DATA follows what came before on that stream, and stays within the window. */
    void (*output)(gboolean is_stderr, guint64 offset, const guint8 *data, gsize length,
                   gpointer user_data);
    /* The input that it was given last was taken. */
    void (*taken)(gpointer user_data);
    /* EXIT, or ERROR: nobody knows how, or it never began. The other one is NULL. */
    void (*ended)(const Berth__Exit *exit, const GError *error, gpointer user_data);
} BerthExecFuncs;

typedef struct {
    /* DATA of BERTH_EXEC_INPUT_MAX_BYTES at most, then its end if END. The piece before was taken. */
    void (*input)(BerthExec *exec, const guint8 *data, gsize length, gboolean end);
    /* Output up to there was read; SIGNAL to all its processes, 0 = none. */
    void (*control)(BerthExec *exec, const guint64 acked[2], guint signal);
    /* Its terminal has SIZE now. */
    void (*resize)(BerthExec *exec, const Berth__Terminal *size);
    /* Nobody wants it any more: it is ended, and EXEC is invalid. */
    void (*close)(BerthExec *exec);
} BerthExecClass;

struct BerthExec {
    const BerthExecClass *class;
};
