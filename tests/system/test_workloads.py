# SPDX-License-Identifier: Apache-2.0
"""bench/workloads: a compile, numbers, a database and memory that grows and shrinks are moved, checkpointed and
thawed from disk, and right in the end, as they are when they are left alone."""

import json
import subprocess

from harness import *

STEPS = by_size(5, 8, 16)


@test("each workload is right, alone, and after two moves, a checkpoint and a freeze to disk")
def workloads():
    if SIZE == "quick":
        skip("takes minutes, and an image of Debian packages")
    done = subprocess.run([os.path.join(TREE, "bench", "workloads", "run"), "--json", "--prefix", os.path.dirname(BERTH),
                           "--lab", LAB_NAME, "--steps", str(STEPS)], capture_output=True, timeout=1100)
    check_equal(done.returncode, 0, f"status; it said {done.stderr.decode()}")
    said = json.loads(done.stdout)
    check_equal([row["workload"] for row in said["handled"]], ["memory", "compile", "numeric", "database"], "what ran")
    for alone, row in zip(said["alone"], said["handled"]):
        name = row["workload"]
        check_equal([alone["moves"], alone["checkpoints"], alone["restores"]], [0, 0, 0], f"{name}, left alone")
        check_equal([row["moves"], row["checkpoints"], row["restores"]], [2, 2, 1], f"what was done to {name}")
        check(row["is_right"] and row["result"] == alone["result"], f"{name}: {row['result']}")
        say(f"{name}: {alone['seconds']} s alone, {row['seconds']} s with all that; {row['result']}")


main()
