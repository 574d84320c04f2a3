#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/unit/core_slack_script.h"
#define NO_PROMOTION (BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION)
/* two slack guests on node 1 (loaded 6/8), node 2 idle: one moves */
#define PAIR \
    "node 1 8 4000\n" \
    "submit 1 v=8 m=4000 limit=100000 nodes=1 -> START 1.1@1\n" \
    "running 1.1\n" \
    "at 20\n" \
    "report 1.1 cpu=2000 mem=100\n" \
    "submit 3 v=2 m=1000 slack may-move limit=90000 -> START 3.1@1~\n" \
    "running 3.1\n" \
    "submit 4 v=2 m=1000 slack may-move limit=90000 -> START 4.1@1~\n" \
    "running 4.1\n" \
    "at 40\n" \
    "report 1.1 cpu=2000 mem=100\n" \
    "report 3.1 cpu=2000 mem=100\n" \
    "report 4.1 cpu=2000 mem=100\n" \
    "node 2 8 4000\n" \
    "submit 2 v=8 m=4000 limit=100000 nodes=2 -> START 2.1@2\n" \
    "running 2.1\n" \
    "at 59\n" \
    "report 2.1 cpu=100 mem=100\n" \
    "at 80\n" \
    "report 2.1 cpu=100 mem=100\n"
static void base(void **s){ run_with(NO_PROMOTION, PAIR "at 120\ntimer\nat 180\ntimer -> MIGRATE 3.1@1>2~\n"); }
static void stalled(void **s){ run_with(NO_PROMOTION, PAIR
  "node 3 8 4000\n"
  "submit 9 v=8 m=4000 limit=100000 nodes=3 -> START 9.1@3\n"
  "running 9.1\n"
  "at 100\n"
  "report 9.1 cpu=8000 mem=3000\n"
  "at 120\ntimer\nat 180\ntimer -> MIGRATE 3.1@1>2~\n"); }
static void stalled_idle(void **s){ run_with(NO_PROMOTION, PAIR
  "node 3 8 300\n"
  "at 100\n"
  "at 120\ntimer\nat 180\ntimer -> MIGRATE 3.1@1>2~\n"); }
/* tiny gain */
static void tiny(void **s){ run_with(NO_PROMOTION, 
    "node 1 8 4000\n"
    "submit 1 v=8 m=4000 limit=100000 nodes=1 -> START 1.1@1\n"
    "running 1.1\n"
    "at 20\n"
    "report 1.1 cpu=6000 mem=100\n"
    "submit 3 v=1 m=2000 slack may-move limit=90000 -> START 3.1@1~\n"
    "running 3.1\n"
    "at 40\n"
    "report 1.1 cpu=6000 mem=100\n"
    "report 3.1 cpu=10 mem=1900\n"
    "node 2 8 4000\n"
    "submit 2 v=8 m=4000 limit=100000 nodes=2 -> START 2.1@2\n"
    "running 2.1\n"
    "at 59\n"
    "report 2.1 cpu=100 mem=100\n"
    "at 80\n"
    "report 2.1 cpu=100 mem=100\n"
 "at 120\ntimer\nat 180\ntimer\n"); }
int main(void){ const struct CMUnitTest t[]={cmocka_unit_test(base),cmocka_unit_test(stalled),cmocka_unit_test(stalled_idle),cmocka_unit_test(tiny)}; return cmocka_run_group_tests(t,NULL,NULL);}
