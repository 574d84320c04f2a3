#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/rig, bench/scale, bench/queue, bench/hostile and bench/vs-slurm's side of Berth, with few jobs: what they count is what was done, through lost connections and a
# berthd that is killed, and nothing of them is left.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v openssl >/dev/null || exit 77

"$top_srcdir/bench/vs-slurm" --schedulers berth --prefix "$top_builddir" --directory "$work" --runs 1 --json \
    --only latency,complete,list,recover,loss,array,bulk \
    --count latency=20 --count complete=40 --count list=40 --count recover=40 --count loss=80 --count bulk=2000 >"$work/out" 2>"$work/err" ||
    { cat "$work/err" >&2; exit 1; }
python3 - "$work/out" <<'PYTHON'
import json, sys
found = {row["metric"]: row["berth"] for row in json.load(open(sys.argv[1]))}
assert found.pop("lost of 80 acknowledged jobs") == 0, found
# A record for each of a million tasks would be hundreds of bytes.
assert all(abs(found.pop(f"memory for each of its pending tasks{when}")) < 50 for when in ("", ", after a restart")), found
assert all(found.pop(f"refused in bulk until it was submitted again, {at_once} at once") == 0 for at_once in (1, 8)), found
assert len(found) == 12 and all(value > 0 for value in found.values()), found
PYTHON
for wrong in "--only nothing" "--count list=3" "--count list" "--schedulers pbs"; do
    # shellcheck disable=SC2086 # words
    ! "$top_srcdir/bench/vs-slurm" $wrong 2>/dev/null || { echo "$wrong is taken" >&2; exit 1; }
done

"$top_srcdir/bench/scale" --prefix "$top_builddir" --directory "$work" --certificates "$work/certificates" --json \
    --nodes 8 --guests 20 --rate 40 --seconds 2 >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
python3 - "$work/out" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["submitted"] == 80 and len(found["parts"]) == 10, found
assert found["lost"] == found["unended"] == found["doubled"] == 0, found
for what in ("join", "rejoin"):  # of each node, and of all
    assert 0 < found[what]["p50_ms"] <= found[what]["p99_ms"] <= found[what]["seconds"] * 1000 + 1, found
PYTHON

if [ "$(id -u)" = 0 ]; then # it is many users, who read what they submit
    chmod 755 "$work"
    "$top_srcdir/bench/hostile" --prefix "$top_builddir" --directory "$work" --json --runs 1 --count 50 >"$work/out" 2>"$work/err" ||
        { cat "$work/err" >&2; exit 1; }
    python3 - "$work/out" <<'PYTHON'
import json, sys
found = {row["crowd"]: row for row in json.load(open(sys.argv[1]))}
assert len(found) == 7 and all(0 < row["beside_p50_ms"] <= row["beside_p99_ms"] for row in found.values()), found
asking = ("flooding", "listing", "fast readers")
assert all((row["answered"] > 0) == any(words in crowd for words in asking) for crowd, row in found.items()), found
assert all(row["refused"] == 0 for row in found.values()), found
PYTHON
fi

"$top_srcdir/bench/queue" --prefix "$top_builddir" --directory "$work" --certificates "$work/certificates" --json \
    --count 300 --tasks 20 >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
python3 - "$work/out" <<'PYTHON'
import json, sys
array, jobs, payload = json.load(open(sys.argv[1])).values()
for row in (array, jobs):
    assert row["count"] == 300 and all(row[name] > 0 for name in ("submit_s", "listing_s", "restart_s", "cancel_s")), row
# Not a copy for each task.
assert payload["memory_waiting_mib"] < payload["memory_empty_mib"] + 20, payload
PYTHON

# Certificates that are kept are good for years, and what is kept of others is not used.
for made in ca berthd n00000 n00007; do
    openssl x509 -checkend $((3600 * 86400)) -noout -in "$work/certificates/$made.pem" >/dev/null ||
        { echo "$made.pem expires too soon" >&2; exit 1; }
done
(cd "$work/certificates" && openssl req -x509 -key ca.key -subj /CN=bench -days 1 -out ca.pem)
! "$top_srcdir/bench/scale" --prefix "$top_builddir" --directory "$work" --certificates "$work/certificates" \
    --nodes 8 2>"$work/err" || { echo "an authority that expires is used" >&2; exit 1; }
grep -q "remove that directory" "$work/err" || { cat "$work/err" >&2; exit 1; }

# What it says of jobs that are lost, or run twice: of a trace that was made up, and of a berthd that got an older state back.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$top_srcdir/bench" python3 - "$work" "$top_builddir" <<'PYTHON'
import shutil, sys
import vs_cluster
from rig_trace import Trace
from vs_berth import Berth

def written(text):
    with open(f"{sys.argv[1]}/trace", "a") as file:
        file.write(text)
    return trace.read()

trace = Trace(f"{sys.argv[1]}/trace")
assert trace.read() == 0
assert written("begin 1 0 1 1000000\nend 1 0 1 3000000\nkept 1 0 1 3500000\nbegin 2 0 1 20") == 3
assert trace.are_kept({1}) and not trace.are_kept({1, 2})
assert written("00000\nend 2 0 1 2000001\n") == 2
assert trace.jobs["begin"] == {1: 1, 2: 2} and trace.account({1}, None) == {"lost": 0, "unended": 0, "doubled": 0}
assert trace.account({1, 2, 3}, lambda: {2}) == {"lost": 1, "unended": 1, "doubled": 0}
written("begin 2 0 2 4000000\nend 2 0 2 5000000\nbegin 3 0 1 5000000\nbegin 3 0 2 6000000\n")
written("end 1 0 1 6000000\nkept 2 0 2 6000000\n")
assert trace.account({1, 2, 3}, lambda: {3}) == {"lost": 0, "unended": 1, "doubled": 3}

written("dial n1 1000000\ndial n2 2000000\njoin n2 2500000\njoin n1 3000000\njoin n1 4000000\n")  # one was lost, and came back
assert sorted(trace.joined()) == [(1, 3), (2, 2.5)] and trace.joined(6) == []
written("part n1 6000000\njoin n2 6500000\n")
assert trace.joined() == [(2, 2.5)] and trace.joined(6) == []
written("join n1 7000000\npart n2 7000001\n")
assert trace.joined(6) == [(6, 7)] and trace.joins == {"n1": [3, 4, 7], "n2": [2.5, 6.5]}

vs_cluster.adopt_orphans()
with Berth(sys.argv[1], sys.argv[2], vs_cluster.free_ports(1)) as berth:
    def put_back(old, new):
        berth.kill_controller()
        shutil.rmtree(berth.path(new), ignore_errors=True)
        shutil.copytree(berth.path(old), berth.path(new))
        berth.start_controller()
        berth.await_answer()

    stays = {job for job, _, _ in berth.submit(3)}
    put_back("state", "older")
    gone = {job for job, _, _ in berth.submit(5)}
    assert berth.trace.account(stays | gone, berth.known_jobs) == {"lost": 0, "unended": 8, "doubled": 0}
    put_back("older", "state")
    assert berth.trace.account(stays | gone, berth.known_jobs) == {"lost": 5, "unended": 3, "doubled": 0}
    berth.start_nodes(2)
    berth.await_ended(3)
    assert berth.trace.account(stays | gone, berth.known_jobs) == {"lost": 5, "unended": 0, "doubled": 0}
PYTHON

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$top_srcdir/bench" python3 - "$work" "$top_builddir" <<'PYTHON'
import json, signal, sys, time
import vs_cluster
from vs_berth import Berth

NODES, JOBS = 12, 40
vs_cluster.adopt_orphans()
with Berth(sys.argv[1], sys.argv[2], vs_cluster.free_ports(1)) as berth:
    berth.start_nodes(NODES)
    jobs = [berth.run(*berth.submit_command()[:2], "--", "sleep", f"{number % 5 / 2}").stdout for number in range(JOBS)]
    failing = berth.run(*berth.submit_command()[:2], "--", "false").stdout.decode().strip()
    assert len(berth.trace.joins) == NODES and all(len(joins) == 1 for joins in berth.trace.joins.values()), berth.trace.joins
    began = time.time()
    berth.processes["nodes"].send_signal(signal.SIGUSR1)
    berth.await_joined(NODES, since=began)
    berth.restart_seconds()
    berth.await_joins(3)
    berth.await_ended(JOBS + 1)
    assert b"FAILED" in berth.run(berth.program("berth"), "show", failing).stdout
    nodes = berth.processes["nodes"]
    berth.end("nodes")
    with open(berth.path("nodes.log")) as file:
        counts = json.loads(file.read().splitlines()[-1])
    with open(berth.path("trace")) as file:
        lines = [line.split() for line in file]
assert nodes.returncode == 0
for what in ("begin", "end", "kept"):  # each once, in its first epoch, whatever was lost and told again
    named = sorted((int(words[1]), *words[2:-1]) for words in lines if words[0] == what)
    assert named == [(number + 1, "0", "1") for number in range(JOBS + 1)], (what, named)
for name in ("starts", "begins", "ends", "kept", "releases"):
    assert counts[name] == JOBS + 1, (name, counts)
assert counts["nodes"] == NODES and counts["guests"] == 0, counts
assert counts["joins"] >= 3 * NODES and counts["reconnects"] == counts["joins"] - NODES, counts
PYTHON
[[ $(find "$work" -name 'vs-slurm-*') == "" ]] || { echo "something is left" >&2; exit 1; }
