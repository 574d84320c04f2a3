#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/core's command line: what it does not know or cannot do is refused with status 2 and by its name.
set -euo pipefail
core=$top_builddir/bench/core
failed=0

refused() { # WHAT-IS-SAID ARGUMENTS
    local said=$1 status=0 out
    shift
    out=$(timeout 60 "$core" --nodes 2 --jobs 20 --events 30 "$@" 2>&1) || status=$?
    if [[ $status != 2 || $out != *"$said"* ]]; then
        echo "core $*: status $status, not 2 with '$said': $out" >&2
        failed=1
    fi
}

refused --frobnicate --frobnicate 7
refused "--nodes 0: from 1" --nodes 0
refused "--jobs -1: from 1" --jobs -1
refused "--events 2: from 3" --events 2
refused "--cells 9: from 0 to 8" --cells 9
refused "--gangs 1001: from 0 to 1000" --gangs 1001
refused "--plan-depth 0: from 1 to 4096" --plan-depth 0
refused "--nodes 2: from 9" --gangs 1
refused "--jobs" --jobs
refused "12x" --jobs 12x
refused "stray: nothing is expected" stray

help=$("$core" --help)
for said in --nodes --jobs --events --cells --gangs=N --plan-depth=N --distinct --lopsided --berth --json permille 10000 1000000; do
    [[ $help == *"$said"* ]] || { echo "--help does not say $said" >&2; failed=1; }
done

events="event submit exit run report"
sizes="full_pass_s bytes_per_pending_job bytes_per_node guests_running"

has() { # "KIND..." ARGUMENTS: the median, 99th percentile and largest cost of each kind, and the sizes
    local kind metrics expected=() kinds=$1
    shift
    for kind in $kinds; do expected+=("${kind}"_{median,p99,max}_us); done
    metrics=$("$core" --nodes 9 "$@" --json |
        python3 -c 'import json, sys; print(*(entry["metric"] for entry in json.load(sys.stdin)))')
    [[ $metrics == "${expected[*]} $sizes" ]] || { echo "core $*: metrics: $metrics" >&2; failed=1; }
}

has "$events" --jobs 400 --events 30 --gangs 500 --cells 2 --plan-depth 8
has "$events" --jobs 400 --events 30 --distinct
has "$events" --jobs 400 --events 30 --distinct --lopsided
# Timers are due in the run: it is long enough for three rounds of balancing.
has "$events answer timer" --jobs 4000 --events 6000 --berth --distinct

exit $failed
