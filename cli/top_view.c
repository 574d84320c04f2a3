/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a snapshot of the cluster becomes lines of a screen. */
#include "cli/top_view.h"

#include "cli/format.h"
#include "cli/table.h"
#include "common/id.h"
#include "common/units.h"

#include <stdio.h>
#include <string.h>

/* Sums, and the two empty lines below them and between the tables; titles of both tables; the keys. */
#define SUM_LINES   3u
#define FIXED_LINES (SUM_LINES + 2 + 2 + 1)
#define NODES_MIN   3u

static const struct {
    Berth__TopRequest__Order order;
    const char *name;
    char key;
} orders[] = {
    {BERTH__TOP_REQUEST__ORDER__BY_NAME, "name", 'n'},
    {BERTH__TOP_REQUEST__ORDER__BY_CPU, "cpu", 'c'},
    {BERTH__TOP_REQUEST__ORDER__BY_MEMORY, "memory", 'm'},
    {BERTH__TOP_REQUEST__ORDER__BY_PRESSURE, "pressure", 'p'},
    {BERTH__TOP_REQUEST__ORDER__BY_TIME_LEFT, "time", 't'},
    {BERTH__TOP_REQUEST__ORDER__BY_MOVE, "move", 'v'},
};

const char *berth_top_order_name(Berth__TopRequest__Order order)
{
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++)
        if (orders[i].order == order)
            return orders[i].name;
    return NULL;
}

gboolean berth_top_order_find(const char *name, Berth__TopRequest__Order *out_order)
{
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        if (!g_str_equal(orders[i].name, name))
            continue;
        *out_order = orders[i].order;
        return TRUE;
    }
    return FALSE;
}

gboolean berth_top_order_of_key(char key, Berth__TopRequest__Order *out_order)
{
    for (guint i = 0; i < G_N_ELEMENTS(orders); i++) {
        if (orders[i].key != key)
            continue;
        *out_order = orders[i].order;
        return TRUE;
    }
    return FALSE;
}

void berth_top_share(guint height, guint n_nodes, guint n_guests, guint *out_nodes,
                     guint *out_guests)
{
    guint left = height > FIXED_LINES ? height - FIXED_LINES : 0;
    guint nodes = MIN(n_nodes, MAX(left / 3, MIN(NODES_MIN, left)));
    *out_guests = MIN(n_guests, left - nodes);
    *out_nodes = MIN(n_nodes, left - *out_guests); /* what the guests leave */
}

/* --- words ------------------------------------------------------------------------------------ */

static char *vcpus_text(guint32 milli)
{
    return g_strdup_printf("%.1f", milli / 1000.0);
}

/* Of sums: "12.4G". */
static char *memory_text(guint64 mib)
{
    return mib < 10240 ? berth_format_size_mib(mib) : g_strdup_printf("%.1fG", (double)mib / 1024);
}

static char *reserved_vcpus_text(guint32 backed, guint32 slack)
{
    return slack > 0 ? g_strdup_printf("%u+%u", backed, slack) : g_strdup_printf("%u", backed);
}

static char *reserved_memory_text(guint64 backed_mib, guint64 slack_mib)
{
    g_autofree char *backed = memory_text(backed_mib);
    g_autofree char *slack = memory_text(slack_mib);
    return slack_mib > 0 ? g_strdup_printf("%s+%s", backed, slack) : g_steal_pointer(&backed);
}

/* From seconds on the two largest units: "3m20s", "2h05m", "1d04h". */
static char *span_text(guint64 usec)
{
    guint64 sec = usec / G_USEC_PER_SEC;
    if (sec < 60)
        return g_strdup_printf("%us", (guint)sec);
    if (sec < 3600)
        return g_strdup_printf("%um%02us", (guint)sec / 60, (guint)sec % 60);
    if (sec < 86400)
        return g_strdup_printf("%uh%02um", (guint)sec / 3600, (guint)sec / 60 % 60);
    return g_strdup_printf("%" G_GUINT64_FORMAT "d%02uh", sec / 86400, (guint)(sec / 3600 % 24));
}

typedef struct {
    const char *name;
    guint32 centi; /* hundredths of a percent */
} Pressure;

/* The worst of them: "mem 12%". NULL: below one percent. */
static char *pressure_text(const Pressure *pressures, guint n)
{
    const Pressure *worst = &pressures[0];
    for (guint i = 1; i < n; i++)
        if (pressures[i].centi > worst->centi)
            worst = &pressures[i];
    return worst->centi >= 100 ? g_strdup_printf("%s %u%%", worst->name, worst->centi / 100) : NULL;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static const BerthColumn node_columns[] = {
    {"NODE", FALSE, TRUE, 0},   {"STATE", FALSE, FALSE, 5}, {"VCPUS", TRUE, FALSE, 0},
    {"RSVD", TRUE, FALSE, 0},   {"PRED", TRUE, FALSE, 4},   {"USED", TRUE, FALSE, 0},
    {"MEMORY", TRUE, FALSE, 0}, {"RSVD", TRUE, FALSE, 0},   {"PRED", TRUE, FALSE, 6},
    {"USED", TRUE, FALSE, 0},   {"FREE", TRUE, FALSE, 3},   {"PRESSURE", FALSE, FALSE, 2},
    {"GUESTS", TRUE, FALSE, 7},
};

static const char *node_state_name(const Berth__Node *node, guint64 now_usec)
{
    gboolean is_open = node->state == BERTH__NODE_STATE__NODE_UP && node->admission == NULL &&
                       *node->closed_reason == '\0';
    return is_open && node->pressed_until_usec > now_usec ? "pressed"
                                                          : berth_node_condition_name(node);
}

static char *node_pressure_text(const Berth__NodeUsage *usage)
{
    if (usage == NULL)
        return NULL;
    const Pressure pressures[] = {
        {"mem", usage->psi_memory_some}, {"cpu", usage->psi_cpu_some}, {"io", usage->psi_io_some}};
    return pressure_text(pressures, G_N_ELEMENTS(pressures));
}

/* For guests, as its host says. NULL: it does not. */
static char *free_text(const Berth__NodeUsage *usage)
{
    return usage != NULL && usage->memory_free_mib > 0 ? memory_text(usage->memory_free_mib) : NULL;
}

/* What one that is away did last says nothing of now. */
static void add_node(BerthTable *table, const Berth__Node *node, guint64 now_usec)
{
    gboolean is_up = node->state == BERTH__NODE_STATE__NODE_UP;
    berth_table_add(table, g_strdup(node->info->name));
    berth_table_add(table, g_strdup(node_state_name(node, now_usec)));
    berth_table_add(table, g_strdup_printf("%u", node->info->vcpus));
    berth_table_add(table, reserved_vcpus_text(node->vcpus_reserved, node->vcpus_slack));
    berth_table_add(table, vcpus_text(node->predicted_milli));
    berth_table_add(table, is_up ? vcpus_text(node->used_milli) : NULL);
    berth_table_add(table, memory_text(node->info->guest_memory_mib));
    berth_table_add(table, reserved_memory_text(node->memory_reserved_mib, node->memory_slack_mib));
    berth_table_add(table, memory_text(node->predicted_mib));
    berth_table_add(table, is_up ? memory_text(node->used_mib) : NULL);
    berth_table_add(table, is_up ? free_text(node->usage) : NULL);
    berth_table_add(table, is_up ? node_pressure_text(node->usage) : NULL);
    berth_table_add(table, g_strdup_printf("%u", node->guests));
}

/* --- guests ----------------------------------------------------------------------------------- */

static const BerthColumn guest_columns[] = {
    {"JOB", TRUE, FALSE, 0},       {"USER", FALSE, TRUE, 7},   {"NAME", FALSE, TRUE, 8},
    {"NODE", FALSE, TRUE, 0},      {"PLACE", FALSE, FALSE, 0}, {"VCPUS", TRUE, FALSE, 0},
    {"PRED", TRUE, FALSE, 5},      {"USED", TRUE, FALSE, 0},   {"MEMORY", TRUE, FALSE, 0},
    {"PRED", TRUE, FALSE, 6},      {"USED", TRUE, FALSE, 0},   {"HOST", TRUE, FALSE, 4},
    {"PRESSURE", FALSE, FALSE, 2}, {"LEFT", TRUE, FALSE, 3},   {"LAST MOVE", FALSE, TRUE, 1},
};

static char *job_text(const Berth__TopGuest *guest)
{
    const Berth__Task *task = guest->task;
    g_autofree char *name =
        berth_task_name_format(task->job, guest->of_array || task->index > 0, task->index);
    g_autofree char *part = guest->guest > 0 ? g_strdup_printf(".%u", guest->guest) : g_strdup("");
    return g_strconcat(name, part, NULL);
}

/* What is being done to it says more than where it is. */
static char *place_text(const Berth__Task *task)
{
    if (task->stop_usec != 0)
        return g_strdup("ending");
    if (berth_task_start_name(task) != NULL)
        return g_strdup(berth_task_start_name(task));
    if (task->migration != NULL)
        return g_strdup_printf("to %s", task->migration->to);
    if (task->checkpointing != 0)
        return g_strdup("saving");
    if (task->state == BERTH__JOB_STATE__SUSPENDED)
        return g_strdup("frozen");
    if (berth_job_state_name(task->state) != NULL && task->state > BERTH__JOB_STATE__SUSPENDED)
        return g_strdup("leaving");
    if (task->held_back_usec != 0)
        return g_strdup("held");
    return g_strdup(task->opportunistic ? "slack" : "backed");
}

static char *guest_pressure_text(const Berth__TopGuest *guest)
{
    const Berth__Usage *usage = guest->task->usage;
    const Pressure pressures[] = {
        {"mem", usage != NULL ? usage->psi_memory_some : 0},
        {"cpu", usage != NULL ? usage->psi_cpu_some : 0},
        {"io", usage != NULL ? usage->psi_io_some : 0},
        {"throttled", usage != NULL ? usage->throttled_permille * 10 : 0},
        {"starved", guest->starved_permille * 10},
    };
    g_autofree char *worst = pressure_text(pressures, G_N_ELEMENTS(pressures));
    if (guest->task->short_usec == 0)
        return g_steal_pointer(&worst);
    return g_strdup_printf("%s%sshort", worst != NULL ? worst : "", worst != NULL ? ", " : "");
}

static char *left_text(const Berth__TopGuest *guest, guint64 now_usec)
{
    if (guest->limit_usec == 0)
        return NULL;
    return span_text(guest->limit_usec - MIN(guest->limit_usec, now_usec));
}

/* Why comes first: it is the end that a narrow screen cuts off. */
static char *move_text(const Berth__Move *move, guint64 now_usec)
{
    if (move == NULL)
        return NULL;
    g_autofree char *ago = span_text(now_usec - MIN(now_usec, move->time_usec));
    return g_strdup_printf("%s %s ago, %s %s", berth_reason_name(move->reason), ago,
                           move->from_checkpoint ? "restored, was on" : "from", move->from);
}

static guint64 used_mib(const Berth__Usage *usage)
{
    return usage->memory_total_mib - MIN(usage->memory_available_mib, usage->memory_total_mib);
}

/* Of its host's memory: what it occupies, with what runs it. */
static char *host_text(const Berth__Usage *usage)
{
    return usage != NULL && usage->host_memory_mib > 0 ? memory_text(usage->host_memory_mib) : NULL;
}

static void add_guest(BerthTable *table, const Berth__TopGuest *guest, guint64 now_usec)
{
    const Berth__Task *task = guest->task;
    gboolean is_measured = task->usage != NULL && task->usage->memory_total_mib > 0;
    berth_table_add(table, job_text(guest));
    berth_table_add(table, g_strdup(guest->user));
    berth_table_add(table, g_strdup(guest->name));
    berth_table_add(table, g_strdup(task->node));
    berth_table_add(table, place_text(task));
    berth_table_add(table, g_strdup_printf("%u", guest->vcpus));
    berth_table_add(table, vcpus_text(task->predicted_milli));
    berth_table_add(table, is_measured ? vcpus_text(task->used_milli) : NULL);
    berth_table_add(table, memory_text(guest->memory_mib));
    berth_table_add(table, memory_text(task->predicted_mib));
    berth_table_add(table, is_measured ? memory_text(used_mib(task->usage)) : NULL);
    berth_table_add(table, host_text(task->usage));
    berth_table_add(table, guest_pressure_text(guest));
    berth_table_add(table, left_text(guest, now_usec));
    berth_table_add(table, move_text(task->moved, now_usec));
}

/* --- lines ------------------------------------------------------------------------------------ */

/* What is longer loses its end. */
static void add_line(GPtrArray *lines, const BerthTopLook *look, const char *text)
{
    if (look->height == 0 || lines->len < look->height)
        g_ptr_array_add(lines,
                        look->width > 0 ? berth_text_cut(text, look->width) : g_strdup(text));
}

static void add_linef(GPtrArray *lines, const BerthTopLook *look, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static void add_linef(GPtrArray *lines, const BerthTopLook *look, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *printable = berth_printable(text);
    add_line(lines, look, printable);
}

static void add_sums(GPtrArray *lines, const BerthTopLook *look, const Berth__TopReply *reply)
{
    g_autofree char *time = berth_format_time(reply->now_usec);
    g_autofree char *vcpus = reserved_vcpus_text(reply->vcpus_reserved, reply->vcpus_slack);
    g_autofree char *memory =
        reserved_memory_text(reply->memory_reserved_mib, reply->memory_slack_mib);
    g_autofree char *memory_all = memory_text(reply->memory_mib);
    g_autofree char *memory_predicted = memory_text(reply->predicted_mib);
    g_autofree char *memory_used = memory_text(reply->used_mib);
    add_linef(lines, look,
              "%s  %u of %u node%s up, %u guest%s (%u in slack, %u moving), %" G_GUINT64_FORMAT
              " job%s wait%s",
              time != NULL ? time : "-", reply->nodes_up, reply->nodes_total,
              reply->nodes_total == 1 ? "" : "s", reply->guests_total,
              reply->guests_total == 1 ? "" : "s", reply->guests_slack, reply->guests_moving,
              reply->jobs_waiting, reply->jobs_waiting == 1 ? "" : "s",
              reply->jobs_waiting == 1 ? "s" : "");
    add_linef(lines, look, "vCPUs   %u: %s reserved, %.1f predicted, %.1f used", reply->vcpus,
              vcpus, (double)reply->predicted_milli / 1000, (double)reply->used_milli / 1000);
    add_linef(lines, look, "memory  %s: %s reserved, %s predicted, %s used", memory_all, memory,
              memory_predicted, memory_used);
}

static void add_table(GPtrArray *lines, const BerthTopLook *look, BerthTable *table)
{
    g_autoptr(GPtrArray) rows = berth_table_lines(table, look->width);
    for (guint i = 0; i < rows->len; i++)
        add_line(lines, look, g_ptr_array_index(rows, i));
}

static void add_which(GString *text, const char *what, guint skip, guint n, guint total)
{
    if (n < total || skip > 0)
        g_string_append_printf(text, "%s %u-%u of %u; ", what, MIN(skip + 1, skip + n), skip + n,
                               total);
}

/* Which of how many, where not all are shown. */
static void add_end(GPtrArray *lines, const BerthTopLook *look, const Berth__TopReply *reply,
                    guint n_nodes, guint n_guests)
{
    g_autoptr(GString) text = g_string_new(look->note);
    if (look->note == NULL)
        add_which(text, "nodes", look->node_skip, n_nodes, reply->nodes_total);
    if (look->note == NULL)
        add_which(text, "guests", look->guest_skip, n_guests, reply->guests_total);
    if (look->note == NULL && look->has_keys)
        g_string_append_printf(text,
                               "by %s; keys: c m p t v n sort, arrows and pages move%s, q ends",
                               berth_top_order_name(look->order),
                               n_nodes < reply->nodes_total ? ", < and > nodes" : "");
    if (text->len > 0)
        add_linef(lines, look, "%s", text->str);
}

GPtrArray *berth_top_lines(const Berth__TopReply *reply, const BerthTopLook *look)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(BerthTable) nodes = berth_table_new(node_columns, G_N_ELEMENTS(node_columns));
    g_autoptr(BerthTable) guests = berth_table_new(guest_columns, G_N_ELEMENTS(guest_columns));
    guint n_nodes = (guint)reply->n_nodes, n_guests = (guint)reply->n_guests;
    if (look->height > 0)
        berth_top_share(look->height, n_nodes, n_guests, &n_nodes, &n_guests);
    for (guint i = 0; i < n_nodes; i++)
        add_node(nodes, reply->nodes[i], reply->now_usec);
    for (guint i = 0; i < n_guests; i++)
        add_guest(guests, reply->guests[i], reply->now_usec);
    add_sums(lines, look, reply);
    add_line(lines, look, "");
    add_table(lines, look, nodes);
    add_line(lines, look, "");
    add_table(lines, look, guests);
    while (look->height > 0 && lines->len + 1 < look->height)
        add_line(lines, look, "");
    add_end(lines, look, reply, n_nodes, n_guests);
    return lines;
}
