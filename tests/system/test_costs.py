# SPDX-License-Identifier: Apache-2.0
"""bench/costs and bench/move: guests like Berth's own, and Berth's own, are moved, saved and grown by plain libvirt
beside Berth, which goes on afterwards. How long it takes is the machine's business; what is copied is not."""

import json
import subprocess

from harness import *


def bench(name, *arguments):
    command = [os.path.join(TREE, "bench", name), "--json", "--prefix", os.path.dirname(BERTH), "--lab", LAB_NAME]
    result = subprocess.run([*command, *arguments], capture_output=True, timeout=600)
    check_equal(result.returncode, 0, f"status of bench/{name}, which said {result.stderr.decode()}")
    return {row["metric"]: row for row in json.loads(result.stdout)}


@test("bench/costs measures each cost, and what a migration copies follows the formula")
def costs():
    rows = bench("costs", "--quick")
    for metric in ("migration: apart from copying", "migration: pause", "restore: apart from copying", "freeze",
                   "thaw", "grow by 64 MiB", "grow by a vCPU", "end of a guest"):
        check_in(metric, rows, "what was measured")
    copied = [row for metric, row in rows.items() if metric.startswith("copied")]
    check_equal(len(copied), 1, "dirty rates in a quick run")
    check(copied[0]["ours"] > 1.1, f"what is dirtied is copied again: {copied}")
    check(0.7 < copied[0]["ratio"] < 1.4, f"1 / (1 - R/B) times as much: {copied}")
    stored = rows["checkpoint: stored"]
    check(0.7 < stored["ours"] < 1.4, f"what was touched is stored, once: {stored}")


@test("bench/move moves, saves and restores one guest by Berth and by libvirt, in turns")
def moves():
    runs = by_size(1, 1, 2)
    rows = bench("move", "--runs", str(runs), "--touched", "16")
    saves = {"checkpoint: stands still", "checkpoint, with its disk", "freeze to disk", "freeze, in Ceph with its disk",
             "thaw from disk", "thaw from disk, from Ceph"}
    check_equal(set(rows), saves | {"transfer", "move: stands still", "move: whole command"}, "what was measured")
    for row in rows.values():
        check_equal(row["runs"], 2 * runs, "times of each kind")
        check(row["ours"] > 0 and row["reference"] > 0, f"both took time: {row}")


@test("afterwards both nodes run jobs again, and nothing of the bench is left")
def afterwards():
    for name in ("node1", "node2"):
        await_true(f"{name} is up", lambda name=name: node_is_up(name), 120)
        check_equal(wait_one(submit("--node", name, "--", "true"))["state"], "COMPLETED", f"job on {name}")
        check_equal([domain for domain in domains() if "bench" in domain], [], "guests of the bench")
    images = json.loads(lab_exec("host", "rbd", "ls", "--format", "json", "berth"))
    check_equal([image for image in images if "bench" in image], [], "images of the bench")


main()
