/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of libvirt for a resize, and what is read of a domain before it. */
#include "nodeagent/hypervisor/private.h"

#include "common/error.h"
#include "tests/lib/assert.h"

/* As libvirt 9.0 writes it of a guest with a ceiling. */
#define DOMAIN                                                                                     \
    "<domain type='qemu'><name>n</name><metadata><b:guest xmlns:b='" BERTH_DOMAIN_XMLNS            \
    "' job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='300' disk-mib='16' disk='d' "    \
    "log='l' balloon-mib='20' opportunistic='1'/></metadata>"                                      \
    "<maxMemory slots='1' unit='KiB'>786432</maxMemory><memory unit='KiB'>786432</memory>"         \
    "<currentMemory unit='KiB'>466944</currentMemory><vcpu current='2'>3</vcpu><devices>"          \
    "<memory model='virtio-mem'><target><size unit='KiB'>524288</size><node>0</node>"              \
    "<block unit='KiB'>131072</block><requested unit='KiB'>262144</requested>"                     \
    "<current unit='KiB'>131072</current></target><alias name='ua-growth'/></memory></devices>"    \
    "</domain>"

static void state_parse_ceiling_is_read(void **state)
{
    g_auto(BerthDomainState) read = {0};
    g_autoptr(GError) error = NULL;
    assert_true(berth_domain_state_parse(DOMAIN, strlen(DOMAIN), &read, &error));
    assert_no_error(error);
    assert_int_equal(read.vcpus, 2);
    assert_int_equal(read.vcpus_max, 3);
    assert_int_equal(read.base_mib, 256);
    assert_int_equal(read.growth_mib, 512);
    assert_int_equal(read.requested_mib, 256);
    assert_int_equal(read.plugged_mib, 128);
    assert_int_equal(read.memory_mib, 456);
    assert_int_equal(read.metadata.limits.memory_mib, 300);
    assert_int_equal(read.metadata.balloon_mib, 20);
    assert_true(read.metadata.is_opportunistic);
}

static void state_parse_bad_documents_are_refused(void **state)
{
    static const struct {
        const char *xml;
        int code;
    } cases[] = {
        {"<domain/>", BERTH_ERROR_NOT_FOUND},
        {"<domain", BERTH_ERROR_INVALID_ARGUMENT},
        {"<domain><metadata><b:guest xmlns:b='" BERTH_DOMAIN_XMLNS "'/></metadata></domain>",
         BERTH_ERROR_INVALID_ARGUMENT},
        {"<domain><metadata><b:guest xmlns:b='" BERTH_DOMAIN_XMLNS
         "' job='1' task='0' guest='0' epoch='1' vcpus='1' memory-mib='3' disk-mib='1' disk='d' "
         "log='l'/></metadata><vcpu>many</vcpu></domain>",
         BERTH_ERROR_INVALID_ARGUMENT},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(BerthDomainState) read = {0};
        g_autoptr(GError) error = NULL;
        assert_false(berth_domain_state_parse(cases[i].xml, strlen(cases[i].xml), &read, &error));
        assert_int_equal(error->code, cases[i].code);
    }
}

/* A guest of 256 MiB that may have 512 MiB more, in blocks of 4, and 3 vCPUs. */
typedef struct {
    const char *name;
    guint32 vcpus;         /* plugged in */
    guint64 requested_mib; /* blocks that it was to have */
    guint64 plugged_mib;   /* that it has */
    guint64 memory_mib;    /* in all, without what the balloon has */
    BerthDomainSize wanted;
    gboolean presses;
    BerthResizePlan plan;
} Case;

static const Case cases[] = {
    {"as it is", 1, 0, 0, 256, {1, 256, 0, FALSE}, FALSE, {1, -1, 100, 0, 256, TRUE}},
    {"more, in whole blocks", 1, 0, 0, 256, {3, 512, 0, FALSE}, FALSE, {3, -1, 300, 256, 0, FALSE}},
    {"on its way", 3, 256, 128, 384, {3, 512, 0, FALSE}, FALSE, {3, -1, 300, 256, 0, FALSE}},
    {"there", 3, 256, 256, 512, {3, 512, 0, FALSE}, FALSE, {3, -1, 300, 256, 256, TRUE}},
    {"blocks before their balloon",
     1,
     0,
     0,
     256,
     {1, 301, 0, FALSE},
     FALSE,
     {1, -1, 100, 48, 0, FALSE}},
    {"the rest of a block",
     1,
     48,
     48,
     304,
     {1, 301, 0, FALSE},
     FALSE,
     {1, -1, 100, 48, 253, FALSE}},
    {"what is kept is not plugged in",
     1,
     48,
     48,
     304,
     {1, 304, 40, FALSE},
     FALSE,
     {1, -1, 100, 8, 0, FALSE}},
    {"... nor what is kept of the base",
     1,
     0,
     0,
     256,
     {1, 304, 80, FALSE},
     FALSE,
     {1, -1, 100, 0, 224, FALSE}},
    {"the balloon gives back at once",
     1,
     0,
     0,
     200,
     {1, 512, 0, FALSE},
     FALSE,
     {1, -1, 100, 256, 256, FALSE}},
    {"less than at its start",
     1,
     0,
     0,
     256,
     {1, 200, 0, FALSE},
     FALSE,
     {1, -1, 100, 0, 200, FALSE}},
    {"fewer vCPUs get less time",
     3,
     0,
     0,
     256,
     {1, 256, 0, FALSE},
     FALSE,
     {3, 100000, 100, 0, 256, TRUE}},
    {"of those that are there", 2, 0, 0, 256, {2, 256, 0, TRUE}, FALSE, {2, -1, 4, 0, 256, TRUE}},
    {"blocks that stay", 1, 128, 256, 512, {1, 384, 0, FALSE}, FALSE, {1, -1, 100, 128, 0, FALSE}},
    {"... are taken by the balloon",
     1,
     128,
     256,
     512,
     {1, 384, 0, FALSE},
     TRUE,
     {1, -1, 100, 128, 128, FALSE}},
    {"... which gives back when they go",
     1,
     128,
     128,
     256,
     {1, 384, 0, FALSE},
     FALSE,
     {1, -1, 100, 128, 256, FALSE}},
    {"a quarter of its base is left",
     1,
     0,
     512,
     768,
     {1, 256, 0, FALSE},
     TRUE,
     {1, -1, 100, 0, 64, FALSE}},
};

static void resize_plan_cases(void **state)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];
        BerthDomainState has = {.vcpus = c->vcpus,
                                .vcpus_max = 3,
                                .base_mib = 256,
                                .growth_mib = 512,
                                .requested_mib = c->requested_mib,
                                .plugged_mib = c->plugged_mib,
                                .memory_mib = c->memory_mib};
        BerthResizePlan plan = {0};
        g_autoptr(GError) error = NULL;
        if (!berth_resize_plan(&has, &c->wanted, 0, c->presses, &plan, &error))
            fail_msg("%s: %s", c->name, error->message);
        if (plan.vcpus != c->plan.vcpus || plan.quota_usec != c->plan.quota_usec ||
            plan.shares != c->plan.shares || plan.requested_mib != c->plan.requested_mib ||
            plan.base_left_mib != c->plan.base_left_mib || plan.is_done != c->plan.is_done)
            fail_msg("%s: %u vCPUs, quota %" G_GINT64_FORMAT ", weight %" G_GUINT64_FORMAT
                     ", plugged %" G_GUINT64_FORMAT ", left %" G_GUINT64_FORMAT ", done %d",
                     c->name, plan.vcpus, plan.quota_usec, plan.shares, plan.requested_mib,
                     plan.base_left_mib, plan.is_done);
    }
}

static BerthResizePlan plan_of(guint64 memory_mib, guint64 usable_mib, guint64 needed_mib)
{
    BerthDomainState has = {.vcpus = 1,
                            .vcpus_max = 1,
                            .base_mib = 256,
                            .growth_mib = 256,
                            .requested_mib = 256,
                            .plugged_mib = 256,
                            .memory_mib = memory_mib};
    BerthDomainSize wanted = {1, 512, 512 - usable_mib, FALSE};
    BerthResizePlan plan = {0};
    g_autoptr(GError) error = NULL;
    if (!berth_resize_plan(&has, &wanted, needed_mib, TRUE, &plan, &error))
        fail_msg("%s", error->message);
    return plan;
}

/* Of 512 MiB, half of them blocks that are plugged in and that are to stay. */
static void resize_plan_balloon_takes_only_what_is_free(void **state)
{
    static const struct {
        guint64 memory_mib; /* without what the balloon has */
        guint64 usable_mib; /* wanted */
        guint64 needed_mib;
        guint64 left_mib; /* of the base */
    } rows[] = {
        {512, 384, 0, 128},           {512, 384, 384, 128},         {512, 384, 400, 144},
        {512, 384, 512, 0},           {512, 384, 600, 0},           {448, 384, 500, 0},
        {384, 512, 600, 256},         {512, 256, 100, 64},          {512, 384, G_MAXUINT64, 0},
        {320, 384, G_MAXUINT64, 128}, {384, 384, G_MAXUINT64, 128},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        BerthResizePlan plan = plan_of(rows[i].memory_mib, rows[i].usable_mib, rows[i].needed_mib);
        if (plan.base_left_mib != rows[i].left_mib)
            fail_msg("row %" G_GSIZE_FORMAT ": %" G_GUINT64_FORMAT " MiB", i, plan.base_left_mib);
    }
}

/* Of the same. */
static void resize_plan_asks_only_for_blocks_that_are_free(void **state)
{
    static const struct {
        guint64 memory_mib;
        guint64 usable_mib;
        guint64 needed_mib;
        guint64 requested_mib;
    } rows[] = {
        {512, 256, 0, 0},     {512, 256, 256, 0},           {512, 256, 257, 4},
        {512, 300, 290, 44},  {512, 256, 400, 144},         {512, 256, 512, 256},
        {512, 256, 600, 256}, {512, 256, G_MAXUINT64, 256}, {448, 256, 300, 108},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        BerthResizePlan plan = plan_of(rows[i].memory_mib, rows[i].usable_mib, rows[i].needed_mib);
        if (plan.requested_mib != rows[i].requested_mib)
            fail_msg("row %" G_GSIZE_FORMAT ": %" G_GUINT64_FORMAT " MiB", i, plan.requested_mib);
    }
}

static void resize_plan_beyond_its_bounds_is_refused(void **state)
{
    static const BerthDomainSize wanted[] = {
        {0, 256, 0, FALSE}, {4, 256, 0, FALSE},   {1, 769, 0, FALSE},
        {1, 63, 0, FALSE},  {1, 256, 193, FALSE}, {1, 256, 256, FALSE},
    };
    BerthDomainState has = {
        .vcpus = 1, .vcpus_max = 3, .base_mib = 256, .growth_mib = 512, .memory_mib = 256};
    for (gsize i = 0; i < G_N_ELEMENTS(wanted); i++) {
        BerthResizePlan plan;
        g_autoptr(GError) error = NULL;
        assert_false(berth_resize_plan(&has, &wanted[i], 0, FALSE, &plan, &error));
        assert_int_equal(error->code, BERTH_ERROR_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_parse_ceiling_is_read),
        cmocka_unit_test(state_parse_bad_documents_are_refused),
        cmocka_unit_test(resize_plan_cases),
        cmocka_unit_test(resize_plan_balloon_takes_only_what_is_free),
        cmocka_unit_test(resize_plan_asks_only_for_blocks_that_are_free),
        cmocka_unit_test(resize_plan_beyond_its_bounds_is_refused),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
