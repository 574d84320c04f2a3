/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* What to do where no daemon answers: "; is it running? Start it with ...". SOCKET is where it was looked
 * for. A lab's daemon is none of systemd's, and whoever names one means no other. Where a lab's daemon answers
 * instead of systemd's, "berth-lab env" may have been forgotten: its socket is named. Labs are looked for where berth-lab has them: in
 * $BERTH_LAB_RUN, or /run/berth-lab. (transfer full) */
char *berth_labs_advice(const char *socket);
