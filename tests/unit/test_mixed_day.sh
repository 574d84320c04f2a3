#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/mixed-day without its lab: which jobs of a log may be drawn and how they are scaled, by hand; the same seed
# draws the same, another one others; berth-sim takes them when they come and with what they use; and the payload comes
# to the same result in a hurry as at its pace, and to another one with another seed, or with a step less.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
payload=$top_builddir/bench/payload

fail() {
    echo "$1" >&2
    exit 1
}

# job NUMBER NODES CORES WALLTIME CPUT MEM VMEM
job() {
    printf '10/01/2017 00:01:38;E;%s.m1;user=a group=g jobname=name%s etime=1000 exec_host=c1/0 ' "$1" "$1"
    printf 'Resource_List.nodes=%s:ppn=%s Resource_List.vmem=%s Resource_List.walltime=10:00:00 end=9000 ' "$2" "$3" "$7"
    printf 'resources_used.cput=%s resources_used.mem=%s resources_used.walltime=%s\n' "$5" "$6" "$4"
}

day() {
    "$top_srcdir/bench/mixed-day" --only-predict --json --prefix "$top_builddir" --log "$work/log" "$@"
}

# Only the first two are of one node, long enough, not too wide, and known to have used something.
{
    job 1 1 8 02:00:00 28800 16777216kb 64gb
    job 2 1 1 00:10:00 60 100kb 1gb
    job 3 2 1 02:00:00 100 100kb 1gb
    job 4 1 1 00:09:59 100 100kb 1gb
    job 5 1 17 02:00:00 100 100kb 1gb
    job 6 1 1 02:00:00 0 100kb 1gb
    job 7 1 1 02:00:00 100 0kb 1gb
} >"$work/log"

for stretch in 1 2; do
    day --jobs 2 --stretch $stretch --trace "$work/trace" >"$work/said"
    python3 - "$work/said" $stretch <<'PYTHON'
import json, sys
said = json.load(open(sys.argv[1]))
stretch = int(sys.argv[2])
jobs = {job["vcpus"]: job for job in said["jobs"]}
# Eight cores for two hours, half of them busy, 16 of 64 GiB used: less what a guest uses by itself. And the least.
wanted = {2: (120, 512, 128 - 15, 42), 1: (20, 96, 1, 1)}
for vcpus, values in wanted.items():
    job = jobs[vcpus]
    got = job["run_sec"], job["memory_mib"], job["held_mib"], job["cpu_milli"]
    assert got == (stretch * values[0], *values[1:]), f"{vcpus} vCPUs, stretched {stretch} times: {got} instead of {values}"
assert min(job["submit_sec"] for job in jobs.values()) == 0 and jobs[2]["limit_sec"] == 600 * stretch
# Both start as they come: the last to end is the longest, or the other by so much later as it came.
for name, predicted in said["predicted"].items():
    boot = said["costs"]["boot_usec"] / 1e6
    last = max(job["submit_sec"] + boot + job["run_sec"] for job in jobs.values())
    assert abs(predicted["finished_s"] - last) < 0.1, f"{name}: {predicted} instead of {last}"
PYTHON
done
[[ $(grep -c ';E;' "$work/trace") == 2 ]] || fail "the trace: $(cat "$work/trace")"

# --- what is drawn
for i in {1..40}; do
    job "$i" 1 $((i % 16 + 1)) "$((i % 9 + 1)):00:00" $((i * 1000)) "$((i * 100000))kb" "$((i + 1))gb"
done >"$work/log"
day --jobs 6 --seed 7 >"$work/first"
day --jobs 6 --seed 7 >"$work/again"
day --jobs 6 --seed 8 >"$work/other"
drawn() {
    python3 -c 'import json, sys; said = json.load(open(sys.argv[1])); print(said["jobs"], said["predicted"])' "$1"
}
[[ $(drawn "$work/first") == "$(drawn "$work/again")" ]] || fail "a seed draws this and that"
[[ $(drawn "$work/first") != "$(drawn "$work/other")" ]] || fail "two seeds draw the same"
status=0
"$top_srcdir/bench/mixed-day" --only-predict --log "$work/none" 2>"$work/err" || status=$?
[[ $status == 77 && $(cat "$work/err") == *"there is no $work/none"* ]] || fail "no log: $status, $(cat "$work/err")"

# --- what hosts count besides
mkdir "$work/plain" "$work/besides"
day --jobs 6 --trace "$work/trace" >"$work/said"
for dir in plain besides; do
    besides=0
    [[ $dir == plain ]] || besides=100
    "$top_builddir/berth-sim" --quiet --format torque-whole --policy berth --nodes 3 --vcpus 8 --memory 5G \
        --cost "host_mib=$besides" --journal "$work/$dir" "$work/trace" >"$work/said"
done
touched() { grep -m 1 -o 'touched_mib=[0-9]*' "$work/$1/berth.log" | cut -d= -f2; }
[[ $(touched besides) == $(($(touched plain) + 100)) ]] || fail "host_mib: $(touched plain) and $(touched besides)"

# --- the payload
paced=$("$payload" 2 20 3 7 | tail -n 1)
[[ $paced == "result "* && $paced == "$("$payload" --expect 2 20 3 7)" ]] || fail "at its pace: $paced"
for other in "2 20 3 8" "2 19 3 7" "2 20 4 7" "1 20 3 7"; do
    # shellcheck disable=SC2086 # four words
    [[ $("$payload" --expect $other) != "$paced" ]] || fail "payload $other comes to the same result"
done
status=0
"$payload" 2 20 three 7 2>"$work/err" || status=$?
[[ $status == 2 && $(cat "$work/err") == *"'three' is no number"* ]] || fail "wrong usage: $status, $(cat "$work/err")"
