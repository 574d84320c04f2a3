#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs, CPU hours and quantiles of the waiting time per queue of a Torque accounting log (.xz)."""

import lzma
import sys
from collections import defaultdict


def seconds(text):
    """ "HH:MM:SS" or a number of seconds."""
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


queues = defaultdict(lambda: {"jobs": 0, "cpu": 0, "waits": []})
with lzma.open(sys.argv[1], "rt") as log:
    for line in log:
        _, kind, _, fields = line.rstrip("\n").split(";", 3)
        if kind != "E":
            continue
        job = dict(field.split("=", 1) for field in fields.split(" ") if "=" in field)
        queue = queues[job["queue"]]
        queue["jobs"] += 1
        queue["cpu"] += seconds(job.get("resources_used.cput", "0"))
        queue["waits"].append(int(job["start"]) - int(job["qtime"]))

print(f"{'queue':<12} {'jobs':>6} {'CPU hours':>12} {'p50 wait':>9} {'p90 wait':>9} {'p99 wait':>9} {'longest':>9}")
for name in sorted(queues):
    queue = queues[name]
    waits = sorted(queue["waits"])
    quantiles = [waits[min(len(waits) - 1, int(len(waits) * q))] for q in (0.5, 0.9, 0.99, 1)]
    print(f"{name:<12} {queue['jobs']:>6} {queue['cpu'] / 3600:>12.3f} " +
          " ".join(f"{value:>9}" for value in quantiles))
