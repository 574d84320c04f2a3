#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# bench/soak for seconds: through kills of berthd and of clients nothing is lost, doubled or begun for nobody. And it says so where
# it is.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v openssl >/dev/null || exit 77

# What is flat takes longer to be seen: its status is not looked at.
"$top_srcdir/bench/soak" --prefix "$top_builddir" --directory "$work" --json --nodes 8 --waiting 300 --keep 60 --seed 1 \
    --seconds 16 --kill-every 2 --kills-least 2 >"$work/out" 2>"$work/err" || [ -s "$work/out" ] || { cat "$work/err" >&2; exit 1; }
python3 - "$work/out" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["lost"] == found["doubled"] == found["wrong"] == found["strays"] == found["status"] == 0, found
assert found["database"] == "ok" and found["kills"] >= 2 and found["client_kills"] >= 3, found
assert found["tasks"] > found["jobs"] > 100 and found["events"] > 1000, found
assert len(found["parts"]) == 10 and any(part["memory_mib"] > 0 for part in found["parts"]), found
PYTHON

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$top_srcdir/bench" python3 - "$work" <<'PYTHON'
import sys
from soak_clients import Counts, Watcher, Wrong
from soak_ledger import Ledger

ledger = Ledger(f"{sys.argv[1]}/trace")
with open(ledger.path, "w") as file:
    file.write("dial n1 1\nbegin 1 0 1 2\nend 1 0 1 3\nkept 1 0 1 4\n"
               "begin 2 1 1 6\nend 2 1 1 7\nbegin 2 1 2 8\n"  # begun twice
               "begin 3 0 1 9\nend 3 0 1 9\nend 4 0 1 9\n")
ledger.read()
ledger.acknowledge(1)
assert not ledger.is_settled()  # it has ended, and berthd has not said so
ledger.add_event(1, 0, "COMPLETED")
assert ledger.is_settled() and ledger.account() == {"lost": 0, "doubled": 1, "wrong": 0, "strays": 3}, ledger.account()
ledger.acknowledge(2, 3, range(2, 3))
ledger.add_event(2, 1, "COMPLETED")
ledger.add_event(2, 2, "CANCELLED")  # as it was to be
assert list(ledger.missing()) == [(2, 0)] and ledger.numbers() == (2, 4) and ledger.ended_tasks == 3
ledger.acknowledge(4)
ledger.add_event(4, 0, "CANCELLED")  # as it was not
ledger.acknowledge(5)
ledger.add_event(5, 0, "COMPLETED")  # on no node
ledger.add_event(1, 0, "COMPLETED")
ledger.add_event(3, 0, "NODE_FAIL")
assert list(ledger.missing()) == [(2, 0), (4, 0), (5, 0)]
assert ledger.account() == {"lost": 3, "doubled": 2, "wrong": 1, "strays": 1}, ledger.account()

def line(number, job=9, more=""):
    return f'{{"seq":"{number}","kind":"TASK_STATE","job":"{job}","state":"COMPLETED"{more}}}\n'

watcher = Watcher(None, ledger, Counts(), 1, 0, 0)
for number in (7, 8, 9):
    watcher.take(line(number, number))
assert watcher.count() == 3 and watcher.since() == ["--since", "6"] and ledger.ended_tasks == 10
watcher.next = 8  # it goes on
watcher.take(line(8, 8))
watcher.take(line(9, 9))
watcher.take(line(10, 10, ',"task":2,"restLast":6,"restStep":2'))
assert watcher.count() == 4 and ledger.ended_tasks == 13 and len(ledger.told[10]) == 7
for following, wrong in ((11, line(12)), (11, line(10)), (9, line(9, 8))):  # a gap, twice, and another one of that number
    watcher.next = following
    try:
        watcher.take(wrong)
    except Wrong:
        continue
    raise AssertionError(f"{wrong} is taken where event {following} is to come")
PYTHON
