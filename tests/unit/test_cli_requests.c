/* SPDX-License-Identifier: Apache-2.0 */
/* How requests of people are told. */
#include "tests/lib/assert.h"

#include "cli/requests.h"

#define KIND(name)      BERTH__EVENT__KIND__##name
#define OUTCOME(name)   BERTH__JOB_REQUEST__OUTCOME__##name
#define ASKED_USEC      (1772366405 * (guint64)G_USEC_PER_SEC) /* 2026-03-01 12:00:05 UTC */
#define LINE(what, why) "2026-03-01 12:00:05  alice  " what "  " why

typedef struct {
    Berth__Event__Kind kind;
    const char *node, *text, *why;
    Berth__JobRequest__Outcome outcome;
    Berth__Event__Kind settled; /* 0 = at once, or not yet */
    const char *settled_node, *settled_text;
    const char *line;
    const char *refusal; /* NULL = it was not refused */
} Case;

static const Case cases[] = {
    {KIND(JOB_HELD), "", "", "", OUTCOME(DONE), 0, "", "", LINE("hold  done", "-")},
    {KIND(JOB_FREEZE_REQUESTED), "", "to disk", "too hot", OUTCOME(OPEN), 0, "", "",
     LINE("freeze to disk  under way", "too hot")},
    {KIND(JOB_FREEZE_REQUESTED), "", "", "", OUTCOME(FAILED), KIND(GUEST_FREEZE_FAILED), "n1",
     "no\nmore", LINE("freeze  failed: no", "-")},
    {KIND(JOB_FREEZE_REQUESTED), "", "", "", OUTCOME(OVERTAKEN), KIND(JOB_THAW_REQUESTED), "", "",
     LINE("freeze  overtaken: thaw, by bob", "-")},
    {KIND(JOB_THAW_REQUESTED), "n2", "", "", OUTCOME(DONE), KIND(TASK_STATE), "n2", "",
     LINE("thaw to n2  done", "-")},
    {KIND(JOB_MIGRATE_REQUESTED), "n2", "", "", OUTCOME(DONE), KIND(GUEST_MIGRATED), "n2", "",
     LINE("migrate to n2  done: on n2", "-")},
    {KIND(JOB_MIGRATE_REQUESTED), "", "", "", OUTCOME(FAILED), KIND(TASK_STATE), "", "",
     LINE("migrate  failed: its guest is no more (requeued)", "-")},
    {KIND(JOB_MIGRATE_CANCEL_REQUESTED), "", "", "", OUTCOME(FAILED), KIND(GUEST_MIGRATED), "n2",
     "", LINE("migrate --cancel  failed: too late, it is on n2", "-")},
    {KIND(JOB_RESIZE_REQUESTED), "", "2 vCPUs", "", OUTCOME(DONE), KIND(GUEST_RESIZED), "n1",
     "2 vCPUs, 64M", LINE("resize: 2 vCPUs  done: has 2 vCPUs, 64M", "-")},
    {KIND(JOB_RESIZE_REQUESTED), "", "256M", "", OUTCOME(FAILED), KIND(GUEST_MIGRATED), "n2", "",
     LINE("resize: 256M  failed: moved to n2, which has no room for it any more", "-")},
    {KIND(JOB_RESTORE_REQUESTED), "", "3", "", OUTCOME(DONE), KIND(GUEST_RUNNING), "n2", "",
     LINE("restore 3  done", "-")},
    {KIND(JOB_RESTORE_REQUESTED), "", "3", "", OUTCOME(FAILED), KIND(CHECKPOINT_REMOVED), "",
     "3: it is torn", LINE("restore 3  failed: checkpoint 3: it is torn", "-")},
    {KIND(CHECKPOINT_REMOVED), "", "3: it is not wanted any more", "", OUTCOME(DONE), 0, "", "",
     LINE("checkpoint rm 3  done", "-")},
    {KIND(JOB_CANCEL_REQUESTED), "", "", "wrong\x1b[2Jdata", OUTCOME(OVERTAKEN), KIND(TASK_STATE),
     "", "", LINE("cancel  overtaken: the job ended (COMPLETED)", "wrong?[2Jdata")},
    {KIND(JOB_RESIZE_REQUESTED), "", "9 vCPUs", "slow", OUTCOME(REFUSED), 0, "", "",
     LINE("resize: 9 vCPUs  refused: it may have 4", "slow"), "it may have 4"},
    {KIND(JOB_MIGRATE_REQUESTED), "n2", "", "", OUTCOME(REFUSED), 0, "", "",
     LINE("migrate to n2  refused", "-")},
};

/* Without that of the titles. (transfer full) */
static GPtrArray *lines_of(const Case *c, guint width)
{
    Berth__Event asked = BERTH__EVENT__INIT, settled = BERTH__EVENT__INIT;
    Berth__JobRequest request = BERTH__JOB_REQUEST__INIT, *requests[] = {&request};
    Berth__Job job = BERTH__JOB__INIT;
    request.kind = asked.kind = c->kind;
    asked.time_usec = ASKED_USEC;
    asked.user = (char *)"alice";
    asked.node = (char *)c->node;
    asked.text = (char *)c->text;
    asked.why = (char *)c->why;
    if (c->refusal)
        asked.refusal = (char *)c->refusal;
    settled.kind = c->settled;
    settled.user = (char *)"bob";
    settled.node = (char *)c->settled_node;
    settled.text = (char *)c->settled_text;
    settled.state = BERTH__JOB_STATE__COMPLETED;
    settled.reason = BERTH__REASON__REASON_REQUEUED;
    request.outcome = c->outcome;
    request.asked = &asked;
    request.settled = c->settled != 0 ? &settled : NULL;
    job.requests = requests;
    job.n_requests = 1;
    GPtrArray *lines = berth_request_lines(&job, width);
    g_ptr_array_remove_index(lines, 0);
    return lines;
}

/* Runs of spaces as two, for columns are as wide as their titles. */
static char *squeezed(const char *line)
{
    g_autoptr(GRegex) spaces = g_regex_new(" {2,}", 0, 0, NULL);
    return g_regex_replace_literal(spaces, line, -1, 0, "  ", 0, NULL);
}

static void requests_are_told_with_their_outcome(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) lines = lines_of(&cases[i], 0);
        assert_int_equal(lines->len, 1);
        g_autofree char *text = squeezed(g_ptr_array_index(lines, 0));
        if (!g_str_equal(text, cases[i].line))
            fail_msg("case %zu: \"%s\"", i, text);
    }
}

static void requests_fit_a_terminal(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) lines = lines_of(&cases[i], 80);
        for (guint k = 0; k < lines->len; k++)
            if (g_utf8_strlen(g_ptr_array_index(lines, k), -1) > 80)
                fail_msg("case %zu: \"%s\"", i, (char *)g_ptr_array_index(lines, k));
    }
}

/* What it was refused for is what its user wants to read. */
static void long_answers_go_on_below(void **state)
{
    static const Case refused = {KIND(JOB_RESIZE_REQUESTED),
                                 "",
                                 "512M",
                                 "it is slow",
                                 OUTCOME(REFUSED),
                                 0,
                                 "",
                                 "",
                                 NULL,
                                 "it cannot have that: it runs in slack on n1, where it gets no "
                                 "more than it has"};
    g_autoptr(GPtrArray) lines = lines_of(&refused, 80);
    g_ptr_array_add(lines, NULL);
    g_autofree char *text = g_strjoinv("\n", (char **)lines->pdata);
    assert_string_equal(
        text, "2026-03-01 12:00:05  alice  resize: 512M  refused: it cannot have     it is slow\n"
              "                                          that: it runs in slack on\n"
              "                                          n1, where it gets no more\n"
              "                                          than it has");
}

/* The record has its number alone. */
static void request_without_its_event_is_told_all_the_same(void **state)
{
    Berth__JobRequest request = BERTH__JOB_REQUEST__INIT, *requests[] = {&request};
    Berth__Job job = BERTH__JOB__INIT;
    request.kind = KIND(JOB_FREEZE_REQUESTED);
    request.outcome = OUTCOME(FAILED);
    job.requests = requests;
    g_autoptr(GPtrArray) none = berth_request_lines(&job, 0);
    assert_int_equal(none->len, 0);
    job.n_requests = 1;
    g_autoptr(GPtrArray) lines = berth_request_lines(&job, 0);
    g_autofree char *text = squeezed(g_ptr_array_index(lines, 1));
    assert_string_equal(text, "-  -  freeze  failed  -");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_told_with_their_outcome),
        cmocka_unit_test(requests_fit_a_terminal),
        cmocka_unit_test(long_answers_go_on_below),
        cmocka_unit_test(request_without_its_event_is_told_all_the_same),
    };
    g_setenv("TZ", "UTC", TRUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
