#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# EASY on KTH-SP2 comes to what others have published for the same log. Gaussier, Glesser, Reis and Trystram
# ("Improving backfilling by using machine learning to predict running times", SC 2015) give their simulator's
# results with their code: EASY with the users' estimates, 28481 jobs, mean flow time 15696.80 s, mean bounded
# slowdown 92.577. The mean run time of those jobs is 8859.93 s, so that they wait 6836.87 s. They end a job at its
# estimate where the log let it run on, and take jobs that end at one instant one by one: hence a percent of room.
set -euo pipefail

top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
program=${top_builddir:-$top/build}/berth-sim
trace=${BERTH_TRACES:-$top/../shared/traces}/KTH-SP2-1996-2.swf.xz

if [ ! -e "$trace" ]; then
    echo "no $trace: BERTH_TRACES names the directory of workload traces"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Fields of SWF: 4 is the run time, 9 what was asked for.
xz -dc "$trace" | awk '!/^;/ && $9 > 0 && $4 > $9 { $4 = $9 } { print }' >"$work/kth.swf"
"$program" --quiet --policy easy --json "$work/easy.json" "$work/kth.swf"

failed=0
check() { # NAME PUBLISHED
    local ours
    ours=$(awk -v name="\"$1\"" -F '[ :,]+' '$2 == name && !seen++ { print $3 }' "$work/easy.json")
    awk -v name="$1" -v ours="$ours" -v published="$2" 'BEGIN {
        off = ours / published - 1
        printf "%s: %.3f, published %.3f, %+.2f %%\n", name, ours, published, 100 * off
        exit !(off > -0.01 && off < 0.01)
    }' || failed=1
}
check jobs 28481
check mean_wait_s 6836.87
check mean_bounded_slowdown 92.577
exit $failed
