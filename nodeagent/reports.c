/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the scheduler was told of each guest's measurements, and what it is to be told next.
 *
 * Values are absolute, and those are left out that the scheduler has said that it has. A report whose fate is
 * not known may have been taken or not; the next one of its guests is whole, so that a value which has
 * changed and changed back meanwhile is right as well. Differences (of counters, say) would have to be
 * applied exactly once, for which both ends would have to number and keep them.
 *
 * A guest of which nothing changes is told of after pauses that double, as time must pass for the scheduler's
 * predictions to sink (scheduler/sim/reports.c does the same); one that is near a limit every
 * interval, however rarely it is looked at as it does not change either, since what is to be done about it may become possible
 * without any news of it, and as how fast it fills its memory is reckoned from one report to the next. */
#include <config.h>

#include "nodeagent/reports.h"

#include "common/delta.h"
#include "common/id.h"
#include "common/message.h"

/* Longest pause between two reports of a guest. */
#define PAUSE_MAX_USEC (60 * G_USEC_PER_SEC)
/* Whatever was left out, or went wrong, is right again after so long. */
#define WHOLE_USEC (600 * G_USEC_PER_SEC)

#define MIB (G_GUINT64_CONSTANT(1) << 20)

typedef struct {
    BerthGuestId id; /* the key */
    gboolean is_known;
    Berth__Usage usage; /* as was answered */
    guint64 durable[BERTH_N_STREAMS];
    gint64 told_usec; /* that of its usage */
    gint64 pause_usec;
    gint64 whole_usec;
    /* In the report under way. */
    gboolean is_sent;
    Berth__Usage sent_usage;
    guint64 sent_durable[BERTH_N_STREAMS];
} Told;

struct BerthReports {
    GHashTable *told; /* set of Told */
    GPtrArray *next;  /* Berth__GuestReport */
};

static void free_report(gpointer report)
{
    berth_message_free(report);
}

BerthReports *berth_reports_new(void)
{
    BerthReports *reports = g_new0(BerthReports, 1);
    reports->told =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, g_free, NULL);
    reports->next = g_ptr_array_new_with_free_func(free_report);
    return reports;
}

void berth_reports_free(BerthReports *reports)
{
    if (reports == NULL)
        return;
    g_hash_table_unref(reports->told);
    g_ptr_array_unref(reports->next);
    g_free(reports);
}

void berth_reports_reset(BerthReports *reports)
{
    g_hash_table_remove_all(reports->told);
    g_ptr_array_set_size(reports->next, 0);
}

GPtrArray *berth_reports_next(BerthReports *reports)
{
    return reports->next;
}

/* --- what is worth telling ------------------------------------------------------------------- */

static gboolean differs(guint64 a, guint64 b, guint64 by)
{
    return (a > b ? a - b : b - a) >= by;
}

static gboolean has_pressure_changed(const Berth__Usage *told, const Berth__Usage *now, guint32 by)
{
    return differs(told->psi_cpu_some, now->psi_cpu_some, by) ||
           differs(told->psi_memory_some, now->psi_memory_some, by) ||
           differs(told->psi_memory_full, now->psi_memory_full, by) ||
           differs(told->psi_io_some, now->psi_io_some, by);
}

static gboolean has_memory_changed(const Berth__Usage *told, const Berth__Usage *now, guint64 by)
{
    return told->memory_total_mib != now->memory_total_mib || told->oom_kills != now->oom_kills ||
           differs(told->memory_available_mib, now->memory_available_mib, by) ||
           differs(told->swap_used_mib, now->swap_used_mib, by);
}

static gboolean has_rate_changed(const Berth__Usage *told, const Berth__Usage *now)
{
    return (told->rate_msec == 0) != (now->rate_msec == 0) ||
           differs(told->cpu_milli, now->cpu_milli, MAX(50, told->cpu_milli / 8)) ||
           differs(told->starved_permille, now->starved_permille, 20) ||
           differs(told->throttled_permille, now->throttled_permille, 20);
}

/* Traffic that is going on is told of as it comes to much. */
static gboolean has_traffic_grown(const Berth__Usage *told, const Berth__Usage *now)
{
    return differs(told->disk_read_bytes, now->disk_read_bytes, 64 * MIB) ||
           differs(told->disk_write_bytes, now->disk_write_bytes, 64 * MIB) ||
           differs(told->net_receive_bytes, now->net_receive_bytes, 64 * MIB) ||
           differs(told->net_send_bytes, now->net_send_bytes, 64 * MIB) ||
           differs(told->disk_free_bytes, now->disk_free_bytes, 64 * MIB);
}

gboolean berth_report_is_news(const Berth__Usage *told, const Berth__Usage *now, gboolean is_near)
{
    guint64 step_mib = is_near ? 1 : MAX(now->memory_total_mib / 64, 8);
    guint64 host_step_mib = MAX(now->memory_total_mib / 32, 16);
    return has_memory_changed(told, now, step_mib) ||
           has_pressure_changed(told, now, is_near ? 1 : 100) || has_rate_changed(told, now) ||
           differs(told->host_memory_mib, now->host_memory_mib, host_step_mib) ||
           has_traffic_grown(told, now);
}

/* --- adding ---------------------------------------------------------------------------------- */

static Told *find(BerthReports *reports, const BerthGuestId *id)
{
    Told *told = g_hash_table_lookup(reports->told, id);
    if (told == NULL) {
        told = g_new0(Told, 1);
        told->id = *id;
        berth__usage__init(&told->usage);
        g_hash_table_add(reports->told, told);
    }
    return told;
}

typedef enum {
    NOTHING,
    NO_USAGE, /* but something else */
    CHANGES,
    ALL,
} Content;

static Content content_of(const Told *told, const BerthReportSource *source, gint64 now_usec,
                          gint64 interval_usec)
{
    gint64 pause_usec = source->is_near ? interval_usec : MAX(told->pause_usec, interval_usec);
    if (!told->is_known || now_usec - told->whole_usec >= WHOLE_USEC)
        return ALL;
    /* Measurements are as far apart as that, more or less. */
    if (now_usec - told->told_usec >= pause_usec - interval_usec / 10 ||
        berth_report_is_news(&told->usage, source->usage, source->is_near))
        return CHANGES;
    gboolean has_more = source->migration != NULL;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        has_more = has_more || source->durable[i] > told->durable[i];
    return has_more ? NO_USAGE : NOTHING;
}

static void fill_usage(Berth__GuestReport *report, const Told *told, const Berth__Usage *now,
                       Content content, Berth__Usage *changed, GArray *zeros)
{
    const Berth__Usage none = BERTH__USAGE__INIT;
    report->whole = content == ALL;
    if (content == NO_USAGE)
        return;
    berth_delta_make(content == ALL ? &none.base : &told->usage.base, &now->base, &changed->base,
                     zeros);
    report->usage = changed;
    report->zeros = (uint32_t *)(void *)zeros->data;
    report->n_zeros = zeros->len;
}

static void note_sent(Told *told, const BerthReportSource *source, Content content, gint64 now_usec,
                      gint64 interval_usec)
{
    gboolean is_news = content == ALL || berth_report_is_news(&told->usage, source->usage, FALSE);
    told->is_sent = TRUE;
    told->sent_usage = content == NO_USAGE ? told->usage : *source->usage;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        told->sent_durable[i] = source->durable[i];
    if (content == NO_USAGE)
        return;
    told->told_usec = now_usec;
    told->pause_usec =
        is_news ? interval_usec : MIN(2 * MAX(told->pause_usec, interval_usec), PAUSE_MAX_USEC);
    if (content == ALL)
        told->whole_usec = now_usec;
}

void berth_reports_add(BerthReports *reports, const BerthReportSource *source, gint64 now_usec,
                       gint64 interval_usec)
{
    Told *told = find(reports, &source->id);
    Content content = content_of(told, source, now_usec, interval_usec);
    if (content == NOTHING || told->is_sent)
        return;
    g_autoptr(GArray) zeros = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__Usage changed = BERTH__USAGE__INIT;
    Berth__GuestReport report = BERTH__GUEST_REPORT__INIT;
    id.job = source->id.job;
    id.task = source->id.task;
    id.guest = source->id.guest;
    id.epoch = source->id.epoch;
    report.id = &id;
    fill_usage(&report, told, source->usage, content, &changed, zeros);
    report.stdout_bytes = source->durable[BERTH_STDOUT];
    report.stderr_bytes = source->durable[BERTH_STDERR];
    report.migration = (Berth__MigrationProgress *)source->migration;
    note_sent(told, source, content, now_usec, interval_usec);
    g_ptr_array_add(reports->next, berth_message_copy(&report.base));
}

void berth_report_source_of(const BerthGuest *guest, Berth__MigrationProgress *buffer,
                            BerthReportSource *out_source)
{
    *out_source = (BerthReportSource){
        .id = *berth_guest_id(guest),
        .usage = berth_guest_usage(guest),
        .migration = berth_guest_migration(guest, buffer) ? buffer : NULL,
        .is_near = berth_guest_is_near(guest),
    };
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        out_source->durable[i] = berth_guest_durable(guest, i);
}

/* --- answers --------------------------------------------------------------------------------- */

static void end_sent(BerthReports *reports, gboolean is_taken)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, reports->told);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        Told *told = key;
        if (!told->is_sent)
            continue;
        told->is_sent = FALSE;
        told->is_known = is_taken;
        told->usage = told->sent_usage;
        for (guint i = 0; i < BERTH_N_STREAMS; i++)
            told->durable[i] = told->sent_durable[i];
    }
    g_ptr_array_set_size(reports->next, 0);
}

void berth_reports_answered(BerthReports *reports, const Berth__ReportReply *reply)
{
    end_sent(reports, TRUE);
    for (gsize i = 0; i < reply->n_unknown; i++) {
        const Berth__GuestId *named = reply->unknown[i];
        const BerthGuestId id = {named->job, named->task, named->guest, named->epoch};
        g_hash_table_remove(reports->told, &id);
    }
}

void berth_reports_lost(BerthReports *reports)
{
    end_sent(reports, FALSE);
}

void berth_reports_prune(BerthReports *reports, BerthGuestTable *table)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, reports->told);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        if (berth_guest_table_find(table, &((const Told *)key)->id) == NULL)
            g_hash_table_iter_remove(&iter);
}
