#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/unit/core_slack_script.h"
#define NO_PROMOTION (BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION)

#define E1 "node 1 4 4000\n" "node 2 4 4000\n" "node 3 4 4000\n" \
 "submit 1 v=2 m=2000 limit=100000 nodes=1 -> START 1.1@1\n" \
 "submit 3 v=2 m=1000 limit=200000 nodes=1,2 may-move -> START 3.1@1\n"
/* put 3 on node 2 directly */
static void e1(void **s)
{
    const char *base =
        "node 1 4 4000\nnode 2 4 4000\nnode 3 4 4000\n"
        "submit 1 v=2 m=2000 limit=100000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=2 m=2000 limit=10 nodes=1 -> START 2.1@1\n"
        "submit 3 v=2 m=1000 limit=200000 nodes=1,2 may-move -> START 3.1@2\n"
        "submit 7 v=2 m=500 limit=500 nodes=3 -> START 7.1@3\n"
        "submit 8 v=2 m=500 limit=1000 nodes=3 -> START 8.1@3\n"
        "running 1.1\nrunning 2.1\nrunning 3.1\nrunning 7.1\nrunning 8.1\n"
        "exited 2.1 -> RELEASE 2.1@1\nreleased 2.1\n"
        "submit 4 v=4 m=3500 limit=100\n"
        "planned 4 1000\n"
        "at 60\ntimer\nat 120\ntimer -> MIGRATE 3.1@2>1\n"
        "planned 4 123\n"
        "at 490\n"
        "exited 7.1 -> RELEASE 7.1@3\n"
        "released 7.1\n";
    g_autofree char *hung = g_strconcat(base,
        "submit 9 v=2 m=500 limit=90000 nodes=3 -> START 9.1@3\n"
        "running 9.1\n"
        "at 990\n"
        "exited 8.1 -> RELEASE 8.1@3\n"
        "released 8.1\n"
        "at 5000\n"
        "timer\n"
        "? 4 PENDING none none\n", NULL);
    run(hung);
}
/* control: the move failed */
static void e1c(void **s)
{
    run("node 1 4 4000\nnode 2 4 4000\nnode 3 4 4000\n"
        "submit 1 v=2 m=2000 limit=100000 nodes=1 -> START 1.1@1\n"
        "submit 2 v=2 m=2000 limit=10 nodes=1 -> START 2.1@1\n"
        "submit 3 v=2 m=1000 limit=200000 nodes=2 -> START 3.1@2\n"
        "submit 7 v=2 m=500 limit=500 nodes=3 -> START 7.1@3\n"
        "submit 8 v=2 m=500 limit=1000 nodes=3 -> START 8.1@3\n"
        "running 1.1\nrunning 2.1\nrunning 3.1\nrunning 7.1\nrunning 8.1\n"
        "exited 2.1 -> RELEASE 2.1@1\nreleased 2.1\n"
        "submit 4 v=4 m=3500 limit=100\n"
        "planned 4 1000\n"
        "at 490\n"
        "exited 7.1 -> RELEASE 7.1@3\n"
        "released 7.1\n"
        "submit 9 v=2 m=500 limit=90000 nodes=3\n"
        "at 990\n"
        "exited 8.1 -> RELEASE 8.1@3\n"
        "released 8.1 -> START 4.1@3\n");
}
/* E2: a guest that uses 10 milli moves for 1 permille */
static void e2(void **s)
{
    run_with(NO_PROMOTION,
        "node 1 8 4000\n"
        "submit 1 v=8 m=4000 limit=100000 nodes=1 -> START 1.1@1\n"
        "running 1.1\nat 20\nreport 1.1 cpu=7000 mem=100\n"
        "submit 3 v=1 m=2000 slack may-move limit=90000 -> START 3.1@1~\n"
        "running 3.1\nat 40\n"
        "report 1.1 cpu=7000 mem=100\n"
        "report 3.1 cpu=10 mem=1900\n"
        "node 2 8 4000\n"
        "submit 2 v=8 m=4000 limit=100000 nodes=2 -> START 2.1@2\n"
        "running 2.1\nat 80\n"
        "report 2.1 cpu=100 mem=100\n"
        "at 120\ntimer\nat 180\n"
        "timer -> MIGRATE 3.1@1>2~\n");
}
#define UNEVEN(memory_of_3) \
    "node 1 8 4000\n" \
    "submit 1 v=8 m=4000 limit=100000 nodes=1 -> START 1.1@1\n" \
    "running 1.1\nat 20\nreport 1.1 cpu=2000 mem=100\n" \
    "submit 3 v=4 m=2000 slack may-move limit=90000 -> START 3.1@1~\n" \
    "running 3.1\nat 40\nreport 1.1 cpu=2000 mem=100\n" \
    "report 3.1 cpu=4000 mem=" memory_of_3 "\n" \
    "node 2 8 2000\n" \
    "submit 2 v=8 m=2000 limit=100000 nodes=2 -> START 2.1@2\n" \
    "running 2.1\nat 59\nreport 2.1 cpu=100 mem=100\n" \
    "submit 4 v=3 m=1000 slack may-move limit=90000 -> START 4.1@2~\n" \
    "running 4.1\nat 80\nreport 2.1 cpu=100 mem=100\n"
/* E3: a third node, full of a backed job, ends all balancing */
static void e3(void **s)
{
    run_with(NO_PROMOTION, UNEVEN("1000") "report 4.1 cpu=2000 mem=500\n"
        "node 3 8 4000\n"
        "submit 6 v=8 m=4000 limit=100000 nodes=3 -> START 6.1@3\n"
        "running 6.1\nat 100\nreport 6.1 cpu=8000 mem=4000\n"
        "at 120\ntimer\nat 180\ntimer\nat 240\ntimer\nat 300\ntimer\nat 360\ntimer\n");
}
/* E4: the node that refused a move a round ago */
static void e4(void **s)
{
    run_with(NO_PROMOTION, "node 1 8 4000\n"
        "submit 1 v=8 m=4000 nodes=1 limit=100000 -> START 1.1@1\n"
        "running 1.1\nat 20\nreport 1.1 cpu=6000 mem=100\n"
        "submit 5 v=1 m=100 slack may-move limit=90000 -> START 5.1@1~\nrunning 5.1\n"
        "submit 6 v=1 m=100 slack may-move limit=90000 -> START 6.1@1~\nrunning 6.1\nat 40\n"
        "report 1.1 cpu=6000 mem=100\nreport 5.1 cpu=1000 mem=50\nreport 6.1 cpu=1000 mem=50\n"
        "node 2 8 4000\nnode 3 8 4000\n"
        "submit 2 v=8 m=4000 nodes=2 limit=100000 -> START 2.1@2\n"
        "submit 3 v=8 m=4000 nodes=3 limit=100000 -> START 3.1@3\n"
        "running 2.1\nrunning 3.1\nat 80\n"
        "report 2.1 cpu=100 mem=100\nreport 3.1 cpu=200 mem=100\n"
        "at 120\ntimer\nat 180\ntimer -> MIGRATE 5.1@1>2~\n"
        "migrated 5.1 failed\n"
        "at 240\ntimer\nat 300\ntimer -> MIGRATE 6.1@1>2~\n");
}
/* E5 */
#define E5 "node 1 8 1000\n" \
    "submit 1 v=1 m=300 mmax=600 limit=10000 -> START 1.1@1\n" \
    "submit 2 v=1 m=200 limit=10000 -> START 2.1@1\n" \
    "submit 9 v=1 m=300 limit=30 -> START 9.1@1\n" \
    "running 1.1\nrunning 2.1\nrunning 9.1\nat 20\n" \
    "report 1.1 cpu=10 mem=50 left=250\nreport 2.1 cpu=10 mem=10 left=190\nreport 9.1 cpu=10 mem=10 left=290\n" \
    "submit 5 v=1 m=600 limit=5000 slack may-checkpoint -> START 5.1@1~\n" \
    "submit 7 v=1 m=210 limit=5000 slack may-checkpoint -> START 7.1@1~\n" \
    "running 5.1\nrunning 7.1\nreport 5.1 cpu=10 mem=580 left=20\nreport 7.1 cpu=10 mem=30 left=180\nat 29\n" \
    "report 5.1 cpu=10 mem=580 left=20\nreport 7.1 cpu=10 mem=30 left=180\n"
static void e5(void **s)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALLOON, "node 1 8 1000\n"
    "submit 1 v=1 m=300 mmax=600 limit=10000 -> START 1.1@1\n"
    "submit 2 v=1 m=200 limit=10000 -> START 2.1@1\n"
    "submit 9 v=1 m=480 limit=10000 -> START 9.1@1\n"
    "running 1.1\nrunning 2.1\nrunning 9.1\nat 20\n"
    "report 1.1 cpu=10 mem=50 left=250\nreport 2.1 cpu=10 mem=10 left=190\nreport 9.1 cpu=10 mem=0 left=480\n"
    "submit 5 v=1 m=600 limit=5000 slack may-checkpoint -> START 5.1@1~\n"
    "running 5.1\nreport 5.1 cpu=10 mem=570 left=30\nat 40\nreport 5.1 cpu=10 mem=570 left=30\n"
    "submit 7 v=1 m=31 limit=5000 slack may-checkpoint -> START 7.1@1~\n"
    "running 7.1\nreport 7.1 cpu=10 mem=30 left=1\nat 60\nreport 7.1 cpu=10 mem=30 left=1\n"
    "exited 9.1 -> RELEASE 9.1@1\n"
    "submit 6 v=1 m=350 limit=10000\n"
    "released 9.1 -> CHECKPOINT 7.1@1~\n"
    "needs 1 50\n"
    "resize 1 m=440 -> CHECKPOINT 5.1@1~\n"
    "needs 1 440\n"
    "exited 7.1 -> RELEASE 7.1@1\n"
    "released 7.1 -> START 6.1@1\n");
}
static void e5c(void **s)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_BALLOON, "node 1 8 1000\n"
    "submit 1 v=1 m=300 mmax=600 limit=10000 -> START 1.1@1\n"
    "submit 2 v=1 m=200 limit=10000 -> START 2.1@1\n"
    "submit 9 v=1 m=480 limit=10000 -> START 9.1@1\n"
    "running 1.1\nrunning 2.1\nrunning 9.1\nat 20\n"
    "report 1.1 cpu=10 mem=50 left=250\nreport 2.1 cpu=10 mem=10 left=190\nreport 9.1 cpu=10 mem=0 left=480\n"
    "submit 5 v=1 m=600 limit=5000 slack may-checkpoint -> START 5.1@1~\n"
    "running 5.1\nreport 5.1 cpu=10 mem=570 left=30\nat 40\nreport 5.1 cpu=10 mem=570 left=30\n"
    "submit 7 v=1 m=31 limit=5000 slack may-checkpoint -> START 7.1@1~\n"
    "running 7.1\nreport 7.1 cpu=10 mem=30 left=1\nat 60\nreport 7.1 cpu=10 mem=30 left=1\n"
    "exited 9.1 -> RELEASE 9.1@1\n"
    "submit 6 v=1 m=350 limit=10000\n"
    "released 9.1 -> CHECKPOINT 7.1@1~\n"
    "exited 7.1 -> RELEASE 7.1@1\n"
    "released 7.1 -> START 6.1@1\n");
}

/* E9: the only node: it waits for the bound again and again */
static void e9(void **s)
{
    run("node 1 4 1000\n"
    "submit 1 v=1 m=500 limit=100000 -> START 1.1@1\n"
    "running 1.1\nat 20\nreport 1.1 cpu=10 mem=100 left=400\n"
    "submit 2 v=1 m=600 limit=90000 slack may-checkpoint -> START 2.1@1~\n"
    "running 2.1\nat 40\nreport 2.1 cpu=10 mem=580 left=20\n"
    "submit 3 v=1 m=450 nodes=1 limit=1000 -> CHECKPOINT 2.1@1~\n"
    "checkpointed 2.1 failed\n"
    "at 340\n"
    "timer -> CHECKPOINT 2.1@1~ RELEASE 3.1@1\n"
    "checkpointed 2.1 failed\n"
    "released 3.1\n"
    "? 3 RUNNING none starting\n"
    "at 640\ntimer -> CHECKPOINT 2.1@1~ RELEASE 3.2@1\n"
    "checkpointed 2.1 failed\nreleased 3.2\n? 3 RUNNING none starting\n"
    "at 940\ntimer -> RELEASE 3.3@1\nreleased 3.3\n? 3 RUNNING none starting\n");
}
static void e9b(void **s)
{
    run("node 1 4 1000\n"
    "submit 1 v=1 m=500 limit=100000 -> START 1.1@1\n"
    "running 1.1\nat 20\nreport 1.1 cpu=10 mem=100 left=400\n"
    "submit 2 v=1 m=600 limit=90000 slack may-checkpoint -> START 2.1@1~\n"
    "running 2.1\nat 40\nreport 2.1 cpu=10 mem=580 left=20\n"
    "submit 3 v=1 m=450 nodes=1 limit=1000 -> CHECKPOINT 2.1@1~\n"
    "at 339\n"
    "checkpointed 2.1 failed\n"
    "at 340\n"
    "timer -> RELEASE 3.1@1\n"
    "released 3.1\n"
    "? 3 RUNNING none starting\n"
    "at 640\n"
    "timer -> CHECKPOINT 2.1@1~\n");
}
/* E8: a growth that was given up leaves its need */
static void e8(void **s)
{
    run("node 1 4 1000\n"
    "submit 1 v=1 m=300 mmax=600 limit=10000 -> START 1.1@1\n"
    "submit 2 v=1 m=200 limit=10000 -> START 2.1@1\n"
    "running 1.1\nrunning 2.1\nat 20\n"
    "report 1.1 cpu=10 mem=50 left=250\nreport 2.1 cpu=10 mem=10 left=190\n"
    "submit 5 v=1 m=600 limit=5000 slack may-checkpoint -> START 5.1@1~\n"
    "running 5.1\nreport 5.1 cpu=10 mem=570 left=30\nat 40\nreport 5.1 cpu=10 mem=570 left=30\n"
    "needs 1 50\n"
    "resize 1 m=500 -> CHECKPOINT 5.1@1~\n"
    "at 340\n"
    "timer\n"
    "needs 1 50\n");
}

static void e11(void **s)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION, "node 1 4 1000\nnode 2 4 1000\n"
    "submit 8 v=1 m=900 nodes=1 limit=100000 -> START 8.1@1\n"
    "submit 2 v=1 m=900 nodes=2 limit=100000 -> START 2.1@2\n"
    "running 8.1\nrunning 2.1\nat 20\n"
    "report 8.1 cpu=10 mem=100 left=800\nreport 2.1 cpu=10 mem=200 left=700\n"
    "submit 1 v=1 m=500 nodes=1,2 slack may-move may-checkpoint limit=90000 -> START 1.1@1~\n"
    "running 1.1\nreport 1.1 cpu=10 mem=300 left=200\n"
    "submit 5 v=1 m=680 nodes=2 slack may-checkpoint limit=90000 -> START 5.1@2~\n"
    "running 5.1\nreport 5.1 cpu=10 mem=570 left=110\n"
    "at 40\nreport 1.1 cpu=10 mem=300 left=200\nreport 5.1 cpu=10 mem=570 left=110\n"
    "resize 2 m=400 -> RESIZE 2.1@2=1/400\n"
    "resized 2.1\n"
    "pressed 1 -> CHECKPOINT 1.1@1~\n"
    "checkpointed 1.1 failed\n"
    "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
    "checkpoint 1\n"
    "at 45\n"
    "pressed 1\n"
    "migrate-not 1 op ! not being moved\n"
    "checkpointed 5.1 failed\n"
    "at 46\nreport 1.1 cpu=10 mem=300 left=200\n"
    "at 60\ntimer\nat 120\ntimer\nat 180\ntimer\nat 600\ntimer\nat 660\ntimer\n"
    "report 1.1 cpu=10 mem=300 left=200\n"
    "at 3600\ntimer\n");
}
static void e11c(void **s)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION, "node 1 4 1000\nnode 2 4 1000\n"
    "submit 8 v=1 m=900 nodes=1 limit=100000 -> START 8.1@1\n"
    "submit 2 v=1 m=900 nodes=2 limit=100000 -> START 2.1@2\n"
    "running 8.1\nrunning 2.1\nat 20\n"
    "report 8.1 cpu=10 mem=100 left=800\nreport 2.1 cpu=10 mem=200 left=700\n"
    "submit 1 v=1 m=500 nodes=1,2 slack may-move may-checkpoint limit=90000 -> START 1.1@1~\n"
    "running 1.1\nreport 1.1 cpu=10 mem=300 left=200\n"
    "submit 5 v=1 m=680 nodes=2 slack may-checkpoint limit=90000 -> START 5.1@2~\n"
    "running 5.1\nreport 5.1 cpu=10 mem=570 left=110\n"
    "at 40\nreport 1.1 cpu=10 mem=300 left=200\nreport 5.1 cpu=10 mem=570 left=110\n"
    "resize 2 m=400 -> RESIZE 2.1@2=1/400\n"
    "resized 2.1\n"
    "pressed 1 -> CHECKPOINT 1.1@1~\n"
    "checkpointed 1.1 failed\n"
    "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
    "checkpoint 1\n"
    "at 45\n"
    "migrate-not 1 op -> CHECKPOINT 1.1@1#2~\n");
}

static void held(const char *moves, const char *end)
{
    g_autofree char *script = g_strconcat("node 1 4 1000\nnode 2 4 1000\nnode 3 4 1000\nnode 4 4 1000\n"
    "submit 1 v=1 m=300 nodes=1,2 may-move limit=100000 -> START 1.1@1\n"
    "submit 6 v=1 m=300 nodes=1,2 may-move limit=100000 -> START 6.1@1\n"
    "submit 2 v=1 m=400 nodes=2 limit=100000 -> START 2.1@2\n"
    "submit 10 v=1 m=1000 nodes=3 limit=100000 -> START 10.1@3\n"
    "submit 8 v=1 m=500 nodes=4 limit=100000 -> START 8.1@4\n"
    "running 1.1\nrunning 6.1\nrunning 2.1\nrunning 10.1\nrunning 8.1\n"
    "cordon 3\n"
    "at 20\n"
    "report 1.1 cpu=10 mem=280 left=20\nreport 6.1 cpu=10 mem=280 left=20\nreport 2.1 cpu=10 mem=200 left=200\n"
    "report 10.1 cpu=10 mem=100 left=900\nreport 8.1 cpu=10 mem=100 left=400\n"
    "submit 5 v=1 m=620 nodes=2 slack may-checkpoint limit=90000 -> START 5.1@2~\nrunning 5.1\n"
    "report 5.1 cpu=10 mem=600 left=20\n"
    "submit 9 v=1 m=600 nodes=3,4 slack may-move may-checkpoint limit=90000 -> START 9.1@4~\nrunning 9.1\n"
    "report 9.1 cpu=10 mem=580 left=20\n"
    "at 40\nreport 5.1 cpu=10 mem=600 left=20\nreport 9.1 cpu=10 mem=580 left=20\n"
    "undrain 3\n", moves,
    "submit 11 v=1 m=450 nodes=4 limit=1000 -> ", end, "\n", NULL);
    core_script_run_tuned(BERTH_FEATURE_ALL & ~(BERTH_FEATURE_PROMOTION|BERTH_FEATURE_BALLOON), BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE, 1, script);
}
static void e12c(void **s) { held("", "MIGRATE 9.1@4>3~"); }
static void e12(void **s) { held("migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
   "checkpointed 5.1 failed\nmigrate 6 to=2 op\n", "MIGRATE 9.1@4>3~"); }
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e1), cmocka_unit_test(e1c), cmocka_unit_test(e2), cmocka_unit_test(e3),
        cmocka_unit_test(e4), cmocka_unit_test(e5c), cmocka_unit_test(e5), cmocka_unit_test(e9), cmocka_unit_test(e9b), cmocka_unit_test(e8), cmocka_unit_test(e12c), cmocka_unit_test(e12), cmocka_unit_test(e11c), cmocka_unit_test(e11),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
