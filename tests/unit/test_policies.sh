#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/policies on a trace of six jobs: figures by hand, results that are kept are not run again and
# those of another berth-sim are, traces that are not there are named, and without any it exits 77.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/traces" "$work/bin"
cp berth-sim "$work/bin/"

fail() {
    echo "$1" >&2
    exit 1
}

policies() {
    "$top_srcdir/bench/policies" --prefix "$work/bin" --traces "$work/traces" "$@"
}

status=0
policies >"$work/out" 2>"$work/err" || status=$?
[[ $status == 77 ]] || fail "no trace at all: status $status"
for name in mason hpc2n kth ricc curie; do
    grep -q "^skipped: $name: no .* in $work/traces" "$work/err" || fail "$name is not said to be missing"
done

# Two processors; each job wants both for 100 s and comes 50 s after the one before: 0, 50, ... 250 s of wait.
python3 - "$work/traces/KTH-SP2-1996-2.swf.xz" <<'PYTHON'
import lzma, sys
lines = ["; MaxNodes: 2", "; MaxProcs: 2"]
lines += [f"{i + 1} {50 * i} -1 100 2 -1 -1 2 100 -1 1 1 1 -1 -1 -1 -1 -1" for i in range(6)]
lzma.open(sys.argv[1], "wt").write("\n".join(lines) + "\n")
PYTHON

# A load of 2.4 is the trace's own: 6 jobs of 200 s on 2 processors within 250 s.
run() {
    policies --trace kth,hpc2n --loads 2.4 --policies easy,reserved --seeds 1 --keep "$work/keep" "$@" \
        >"$work/out" 2>"$work/err" || fail "status $?: $(cat "$work/err")"
}
run --json
python3 - "$work/out" <<'PYTHON' || fail "$(cat "$work/out")"
import json, sys
found = {entry["metric"]: entry for entry in json.load(open(sys.argv[1]))}
wait = found["kth/2.4/easy/mean_wait_s"]
assert abs(wait["ours"] - 125) < 0.01 and wait["ratio"] == 1 and wait["runs"] == 1, wait
# Boots and ends of guests, 3.5 s each but the first's end.
wait = found["kth/2.4/reserved/mean_wait_s"]
assert 125 < wait["ours"] < 140 and abs(wait["ratio"] - wait["ours"] / 125) < 1e-3, wait
assert not any(name.startswith("hpc2n") for name in found)
PYTHON
grep -q "^skipped: hpc2n" "$work/err" || fail "hpc2n is not said to be missing"
grep -q "^2 simulations, 0 of them kept" "$work/err" || fail "$(cat "$work/err")"

run
grep -q "^2 simulations, 2 of them kept" "$work/err" || fail "they were run again: $(cat "$work/err")"
grep -q "^reserved " "$work/out" || fail "no row in the table: $(cat "$work/out")"
run --tune backfill_depth=7
grep -q "^2 simulations, 0 of them kept" "$work/err" || fail "another setting took what was kept"
printf x >>"$work/bin/berth-sim"
run
grep -q "^2 simulations, 0 of them kept" "$work/err" || fail "another program took what was kept"

# Seed 2 shakes the arrivals, a bit.
run --json --seeds 1,2
python3 - "$work/out" <<'PYTHON' || fail "$(cat "$work/out")"
import json, sys
found = {entry["metric"]: entry for entry in json.load(open(sys.argv[1]))}
wait = found["kth/2.4/easy/mean_wait_s"]
assert wait["runs"] == 2 and 0 < wait["spread"] < 1, wait
PYTHON

# Guests make one wait that a process does not: a slowdown above EASY's by more than the target allows, in each seed.
policies --trace kth --loads 2.4 --targets --seeds 1,2 >"$work/out" 2>"$work/err" || fail "status $?: $(cat "$work/err")"
grep -Eq "^MISSED +kth at 2.4: mean_bounded_slowdown of reserved / of easy +1\\.0[0-9]+ +at most 1.01 +2 seed\\(s\\): 1\\.0[0-9]+ to 1\\.0" \
    "$work/out" || fail "$(cat "$work/out")"
policies --trace kth --loads 2.4 --targets --seeds 1 --cost boot_usec=0 --cost release_usec=0 >"$work/out" 2>"$work/err" ||
    fail "status $?: $(cat "$work/err")"
[[ $(grep -c '^met .* 1 seed(s): 1.0000 to 1.0000$' "$work/out") == 4 ]] || fail "$(cat "$work/out")"

# Policies that do not have the same jobs are not compared in silence.
mv "$work/bin/berth-sim" "$work/bin/real"
cat >"$work/bin/berth-sim" <<'SIM'
#!/bin/bash
"$(dirname "$0")/real" "$@" || exit
[[ " $* " != *" --policy reserved "* ]] || sed -i 's/"jobs" : 6/"jobs" : 5/' "${@: -1}"
SIM
chmod +x "$work/bin/berth-sim"
status=0
policies --trace kth --loads 2.4 --policies easy,reserved --seeds 1 >"$work/out" 2>"$work/err" || status=$?
[[ $status == 1 ]] && grep -q "^failed: kth, load 2.4: not the same jobs" "$work/err" ||
    fail "status $status: $(cat "$work/err")"
mv "$work/bin/real" "$work/bin/berth-sim"

# A directory that cannot be is a message, and nothing is simulated.
for place in /proc/x "$work/bin/berth-sim"; do
    status=0
    policies --trace kth --loads 2.4 --policies easy --seeds 1 --keep "$place" >"$work/out" 2>"$work/err" || status=$?
    [[ $status == 1 && $(cat "$work/err") == "bench/policies: --keep $place: "* && $(wc -l <"$work/err") == 1 ]] ||
        fail "--keep $place: status $status: $(cat "$work/err")"
done

# A simulation that fails is named, and so is what it said.
status=0
policies --trace kth --loads 2.4 --policies easy --seeds 1 --tune bogus=1 >"$work/out" 2>"$work/err" || status=$?
[[ $status == 1 ]] && grep -q -- "--tune bogus=1" "$work/err" || fail "status $status: $(cat "$work/err")"
