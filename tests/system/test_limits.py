# SPDX-License-Identifier: Apache-2.0
"""A guest's limits hold, and what breaks on them is that guest's job alone."""

import json
import tempfile
import time

from harness import *


def witness():
    """A job beside the one under test, on the same node; it must not notice anything."""
    job = submit("--node", "node1", "--memory", "96M", "--", "sh", "-c",
                 'echo ready; while [ ! -e /tmp/end ]; do sleep 1; done')
    await_running(job)
    return job


def unharmed(job):
    check_equal(show(job)["state"], "RUNNING", "state of the job beside it")
    berth("cancel", str(job))
    check_equal(wait_one(job)["state"], "CANCELLED", "state of the job beside it in the end")


@test("two busy loops in a guest of 1 vCPU use one CPU of the host")
def one_vcpu():
    seconds = by_size(6, 10, 30)
    job = submit("--vcpus", "1", "--", "sh", "-c",
                 f'nproc; for i in 1 2; do timeout {seconds} sh -c "while :; do :; done" & done; wait')
    ended = wait_one(job)
    check_equal(output(job)[0], b"1\n", "nproc in the guest")
    wall = (number(task(ended), "endUsec") - number(task(ended), "startUsec")) / 1e6
    cpu = number(task(ended), "usage", "cpuUsec") / 1e6
    say(f"{cpu:.1f} s of CPU in {wall:.1f} s")
    # The boot is counted, too, and the host measures at intervals.
    check(cpu <= wall * 1.15 + 2.5, f"{cpu:.1f} s of CPU in {wall:.1f} s is more than one CPU")
    check(cpu >= wall * 0.3, f"{cpu:.1f} s of CPU in {wall:.1f} s: the loops did not run")


@test("a job that allocates past its memory ends as OUT_OF_MEMORY, its neighbour notices nothing")
def out_of_memory():
    beside = witness()
    job = submit("--node", "node1", "--memory", "128M", "--", "sh", "-c",
                 'echo begin; awk \'BEGIN { s = "0123456789abcdef"; while (1) { s = s s } }\'')
    ended = wait_one(job)
    check_equal(ended["state"], "OUT_OF_MEMORY", "state")
    check_equal(reason(ended), "REASON_MEMORY_LIMIT", "reason")
    check(number(task(ended), "exit", "oomKills") >= 1, "no OOM kill was counted")
    check_equal(output(job)[0], b"begin\n", "output before the end")
    unharmed(beside)


@test("a full disk is an error of that job")
def full_disk():
    beside = witness()
    job = submit("--node", "node1", "--disk", "32M", "--", "sh", "-c", "dd if=/dev/zero of=big bs=1M; exit $?")
    ended = wait_one(job)
    check_equal(ended["state"], "FAILED", "state")
    check_equal(reason(ended), "REASON_DISK_FULL", "reason")
    check_in(b"No space left on device", output(job)[1], "stderr")
    unharmed(beside)


@test("input that cannot fit into the disk is refused, and what nearly fits ends the job at once")
def input_larger_than_disk():
    image_mib = -(-number(json.loads(berth("image", "show", "--json", "busybox")), "sizeBytes") // (1 << 20))
    with tempfile.NamedTemporaryFile() as file:
        file.truncate((32 + image_mib) * (1 << 20) + 1)
        check_in("--disk", refused("submit", "--disk", "32M", "--input", file.name, "--", "true"), "message")
        file.truncate((32 + image_mib) * (1 << 20))
        ended = wait_one(submit("--disk", "32M", "--input", file.name, "--", "true"))
    check_equal(ended["state"], "FAILED", "state")
    check_equal(reason(ended), "REASON_DISK_FULL", "reason")
    check_equal(number(task(ended), "epoch"), 1, "number of starts")


@test("a fork bomb ends with its own guest")
def fork_bomb():
    beside = witness()
    job = submit("--node", "node1", "--memory", "96M", "--time", "20s", "--on-timeout", "kill", "--on-limit", "kill",
                 "--", "sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 100")
    ended = wait_one(job, timeout=180)
    check(ended["state"] in ("TIMEOUT", "OUT_OF_MEMORY", "FAILED"), f"state is {ended['state']}")
    say(f"ended as {ended['state']}, {reason(ended)}")
    unharmed(beside)


@test("the time limit ends a job within 5 s, SIGTERM first")
def time_limit():
    limit = 5
    job = submit("--time", f"{limit}s", "--on-timeout", "kill", "--", "sh", "-c",
                 'trap "echo got TERM; exit 0" TERM; while :; do sleep 0.2; done')
    ended = wait_one(job)
    check_equal(ended["state"], "TIMEOUT", "state")
    check_equal(output(job)[0], b"got TERM\n", "output")
    check_runtime(ended, limit)


@test("a job that ignores SIGTERM is killed within 5 s of its time limit")
def time_limit_ignored():
    limit = 5
    job = submit("--time", f"{limit}s", "--on-timeout", "kill", "--", "sh", "-c",
                 'trap "" TERM; echo armed; while :; do sleep 0.2; done')
    ended = wait_one(job)
    check_equal(ended["state"], "TIMEOUT", "state")
    check_equal(output(job)[0], b"armed\n", "output")
    check_runtime(ended, limit)


def check_runtime(ended, limit):
    seconds = (number(task(ended), "endUsec") - number(task(ended), "startUsec")) / 1e6
    say(f"ran {seconds:.1f} s of {limit} s")
    check(limit - 0.5 <= seconds <= limit + 5, f"it ran {seconds:.1f} s, its limit was {limit} s")


if __name__ == "__main__":
    main()
