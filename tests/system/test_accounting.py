# SPDX-License-Identifier: Apache-2.0
"""Real input in the debian image: what a guest computes is byte for byte what the host does."""

import lzma
import os
import random
import subprocess
import sys
import tempfile

from harness import *

TRACE = os.environ.get("BERTH_TEST_TRACE") or \
    os.path.join(TREE, "..", "shared", "traces", "mason-torque-2017-10_11.acct.xz")
PROGRAM = os.path.join(TREE, "tests", "system", "queue_times.py")


def made_up_trace(path):
    """Where the real log is not at hand: lines of the same format, the same each time."""
    rng = random.Random(1)
    with lzma.open(path, "wt") as log:
        time = 1506830400
        for n in range(5000):
            time += rng.randrange(60)
            start = time + int(rng.expovariate(1 / 600))
            log.write(f"10/01/2017 00:00:00;E;{n}.host;user=u{rng.randrange(9)} queue=q{rng.randrange(4)} "
                      f"qtime={time} start={start} end={start + 60} Exit_status=0 "
                      f"resources_used.cput={rng.randrange(99):02}:00:{rng.randrange(60):02}\n")


@test("image debian is made by its recipe and imported")
def import_debian():
    if SIZE == "quick":
        skip("takes a minute")
    with tempfile.TemporaryDirectory() as directory:
        archive = os.path.join(directory, "debian.tar")
        made = subprocess.run([os.path.join(TREE, "images", "recipes", "debian"), archive],
                              capture_output=True, timeout=600)
        check_equal(made.returncode, 0, f"the recipe's status: {made.stderr.decode()[-2000:]}")
        berth("image", "import", "debian", archive, timeout=600)
    check_in("debian", berth("image", "ls"), "image ls")


@test("an accounting log, handed over with --input, gives the same table in a guest as on the host")
def accounting():
    if SIZE == "quick":
        skip("needs the image debian")
    with tempfile.TemporaryDirectory() as directory:
        trace = TRACE
        if not os.path.exists(trace):
            trace = os.path.join(directory, "made-up.acct.xz")
            made_up_trace(trace)
        say(f"input: {os.path.basename(trace)}, {os.path.getsize(trace)} bytes")
        wanted = subprocess.run([sys.executable, PROGRAM, trace], capture_output=True, check=True).stdout
        job = submit("--image", "debian", "--memory", "512M", "--input", f"log.xz={trace}", PROGRAM, "log.xz")
        ended = wait_one(job, timeout=600)
        check_equal(ended["state"], "COMPLETED", f"state; stderr: {output(job)[1]}")
        check_equal(output(job)[0], wanted, "the table")
    for line in wanted.decode().splitlines():
        say(line)


if __name__ == "__main__":
    main()
