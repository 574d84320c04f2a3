# SPDX-License-Identifier: Apache-2.0
"""berth freeze and thaw: a job stands still and goes on as if nothing had been, also if its agent was
killed meanwhile; a frozen job ends as any other."""

import time

from harness import *

LINES = 120
STILL_SEC = 4

# Each line has its number and the guest's clock; each is on the disk before the next one.
SCRIPT = (f'i=0; while [ $i -lt {LINES} ]; do echo "$i $(date +%s)"; echo $i > kept; '
          '[ "$(cat kept)" = $i ] || exit 9; i=$((i+1)); usleep 50000; done')


def lines(job):
    return [tuple(map(int, line.split())) for line in output(job)[0].decode().splitlines()]


def start_counting():
    job = sh(SCRIPT, "--memory", "96M")
    await_running(job)
    await_true("it writes", lambda: lines(job))
    return job


def domain_of(job):
    shown = task(show(job))
    return shown["node"], f"berth-{job}-0-0-{shown['epoch']}"


def domain_state(job):
    return lab_exec(domain_of(job)[0], "virsh", "domstate", domain_of(job)[1]).strip()


def check_still(job):
    """What was on its way when it was frozen has come; nothing more comes."""
    before = await_settled(job)
    time.sleep(STILL_SEC)
    check_equal(lines(job), before, "lines of a frozen job")
    return before


def await_settled(job):
    def settled():
        first = lines(job)
        time.sleep(0.5)
        return first if lines(job) == first else None
    return await_true("the output of a frozen job comes to its end", settled)


def check_whole(job, stood_sec):
    ended = wait_one(job)
    check_equal(ended["state"], "COMPLETED", f"state of job {job}")
    written = lines(job)
    check_equal([number for number, _ in written], list(range(LINES)), "numbers of its lines")
    clock = [second for _, second in written]
    check_equal(clock, sorted(clock), "its clock, which never goes back")
    gap = max(later - sooner for sooner, later in zip(clock, clock[1:]))
    check(gap >= stood_sec - 1, f"its clock was set after a freeze of {stood_sec} s: largest step {gap} s")
    end = number(task(ended), "endUsec") / 1e6
    check(abs(clock[-1] - end) < 10, f"its clock is right at the end: {clock[-1]} where it is {end}")


@test("a job that is frozen stands still, and goes on where it was with the right time")
def freezes():
    job = start_counting()
    berth("freeze", str(job))
    shown = show(job)
    check_equal(shown["state"], "SUSPENDED", "its state")
    check_equal(reason(shown), "REASON_FROZEN_BY_USER", "its reason")
    check_in("Frozen since", berth("show", str(job)), "berth show")
    check_equal(domain_state(job), "paused", "its domain")
    before = check_still(job)
    check(len(before) < LINES, "it was frozen in the midst of its work")
    berth("freeze", str(job))
    check_in("hold", refused("freeze", str(sh("true", "--hold"))), "what freeze says of a pending job")
    berth("thaw", str(job))
    check_equal(domain_state(job), "running", "its domain")
    check_in("not frozen", refused("thaw", str(job)), "what thaw says of one that runs")
    check_whole(job, STILL_SEC)


@test("a frozen job stays frozen when its agent and berthd are killed, and is thawed after that")
def outlives():
    job = start_counting()
    berth("freeze", str(job))
    before = await_settled(job)
    node, _ = domain_of(job)
    pid = lab_daemon(node)
    lab("kill", node)
    lab("kill", "berthd")
    await_true("another agent runs", lambda: lab_daemon(node) not in (None, pid), 60)
    await_true("berthd answers again", lambda: run("node", "ls").returncode == 0)
    await_true(f"{node} joins again", lambda: node_is_up(node), 60)
    check_equal(show(job)["state"], "SUSPENDED", "its state")
    check_equal(domain_state(job), "paused", "its domain")
    check_equal(lines(job), before, "its lines")
    berth("thaw", str(job))
    check_whole(job, 1)


@test("a frozen job is checkpointed twice, moved and frozen to disk, and stands still until it is thawed")
def is_saved():
    job = start_counting()
    berth("freeze", str(job))
    for _ in range(2):
        check_in("checkpoint", berth("checkpoint", "--wait", str(job)), "what a checkpoint says")
    check_equal(domain_state(job), "paused", "its domain")
    before = await_settled(job)
    there = next(name for name in ("node1", "node2") if name != domain_of(job)[0])
    berth("migrate", "--wait", "--to", there, str(job))
    check_equal(domain_of(job)[0], there, "where it is")
    check_equal(domain_state(job), "paused", "its domain")
    check_equal(lines(job), before, "its lines")
    berth("freeze", "--to-disk", str(job))
    check_equal(show(job)["state"], "SUSPENDED", "its state")
    check_equal(lines(job), before, "its lines")
    berth("thaw", str(job))
    check_whole(job, 0)


@test("a frozen job that is cancelled goes on to take its SIGTERM")
def ends():
    # It takes its time to clean up: a second SIGTERM would find it there.
    job = sh("trap 'echo sorry; usleep 500000; usleep 500000; exit 3' TERM; echo here; while :; do usleep 50000; done",
             "--memory", "96M")
    await_running(job)
    await_true("its trap is set", lambda: output(job)[0] == b"here\n")
    berth("freeze", str(job))
    berth("cancel", str(job))
    ended = wait_one(job)
    check_equal(ended["state"], "CANCELLED", "its state")
    check_equal(output(job)[0], b"here\nsorry\n", "its output")


if __name__ == "__main__":
    main()
