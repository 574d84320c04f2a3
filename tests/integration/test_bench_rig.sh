#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/rig, bench/scale and bench/vs-slurm's side of Berth, with few jobs: what they count is what was done, through lost connections and a
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
assert found["submitted"] == 80 and found["lost"] == 0 and found["doubled"] == 0 and len(found["parts"]) == 10, found
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
    berth.processes["nodes"].send_signal(signal.SIGUSR1)
    time.sleep(0.5)
    berth.restart_seconds()
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
    named = sorted((int(job), task, epoch) for word, job, task, epoch, _ in lines if word == what)
    assert named == [(number + 1, "0", "1") for number in range(JOBS + 1)], (what, named)
for name in ("starts", "begins", "ends", "kept", "releases"):
    assert counts[name] == JOBS + 1, (name, counts)
assert counts["nodes"] == NODES and counts["guests"] == 0, counts
assert counts["joins"] >= 2 * NODES and counts["reconnects"] == counts["joins"] - NODES, counts
PYTHON
[[ $(find "$work" -name 'vs-slurm-*') == "" ]] || { echo "something is left" >&2; exit 1; }
