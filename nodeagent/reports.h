/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a report says of guests: of each what has changed since the scheduler answered the last time, if that is
 * worth telling. One report is under way at a time. Times are monotonic. */

#include "nodeagent/guest_table.h"
#include "nodeagent/log_writer.h"

typedef struct BerthReports BerthReports;
BerthReports *berth_reports_new(void);
void berth_reports_free(BerthReports *reports);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthReports, berth_reports_free)

/* A new session: nothing was told in it. */
void berth_reports_reset(BerthReports *reports);

/* A guest as it is to be told of. */
typedef struct {
    BerthGuestId id;
    const Berth__Usage *usage;
    guint64 durable[BERTH_N_STREAMS];
    const Berth__MigrationProgress *migration; /* NULL: its memory is not being copied */
    gboolean is_near;                          /* a limit */
} BerthReportSource;
void berth_report_source_of(const BerthGuest *guest, Berth__MigrationProgress *buffer,
                            BerthReportSource *out_source);

/* Adds to the next report what is to be told of SOURCE, if anything. */
void berth_reports_add(BerthReports *reports, const BerthReportSource *source, gint64 now_usec,
                       gint64 interval_usec);
/* (transfer none) What was added: Berth__GuestReport. Until it is answered, or lost. */
GPtrArray *berth_reports_next(BerthReports *reports);
/* Nothing was sent of it after all, or the scheduler has answered, or it is not known whether it has it. */
void berth_reports_answered(BerthReports *reports, const Berth__ReportReply *reply);
void berth_reports_lost(BerthReports *reports);
/* Guests that are not in TABLE any more are forgotten. */
void berth_reports_prune(BerthReports *reports, BerthGuestTable *table);

/* Has what NOW says changed noticeably since TOLD? What is NEAR a limit is told of with all that changes. */
gboolean berth_report_is_news(const Berth__Usage *told, const Berth__Usage *now, gboolean is_near);
