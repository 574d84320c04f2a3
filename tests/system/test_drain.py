# SPDX-License-Identifier: Apache-2.0
"""berth node cordon, drain and undrain: where new jobs go, who is waited for, what is told, and what
outlives berthd and the agent."""

import subprocess

import counting
from harness import *

COUNT = "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); usleep 100000; done"


def start(node, text=COUNT):
    job = sh(text, "--memory", "96M", "--time", "10m", "--node", node)
    await_running(job)
    return job


def follow(*arguments):
    return subprocess.Popen([BERTH, "node", "drain", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def read_until(process, part):
    """The lines of PROCESS up to the one that has PART; it ends before that only if it has failed."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if part in line:
            return lines
    raise Failed(f"no {part!r} in {lines}: {process.stderr.read()}")


def admission(name):
    return nodes()[name].get("admission", {})


def open_all():
    berth("node", "undrain", *nodes())


@test("a cordoned node keeps its jobs, and new ones go elsewhere or wait")
def cordons():
    first, *others = sorted(nodes())
    try:
        old = start(first)
        berth("node", "cordon", first, "--reason", "a fan rattles")
        check_in("a fan rattles", berth("node", "ls"), "berth node ls")
        new = sh("true", "--memory", "96M")
        check_equal(task(wait_one(new))["node"], others[0], "node of a new job")
        tied = sh("true", "--memory", "96M", "--node", first)
        await_true("it says why it waits", lambda: reason(show(tied)) == "REASON_NODE_UNAVAILABLE")
        check_equal(wait_one(old)["state"], "COMPLETED", "state of the job that ran there")
        check_equal(show(tied)["state"], "PENDING", "state of the one that waits for it")
        berth("node", "uncordon", first)
        check_equal(wait_one(tied)["state"], "COMPLETED", "its state once the node is open")
    finally:
        open_all()


@test("a drain follows its jobs to their end, over a kill of berthd and of the agent, and the node stays empty")
def drains():
    first = sorted(nodes())[0]
    try:
        jobs = [start(first), start(first)]
        plan = berth("node", "drain", first, "--plan")
        for job in jobs:
            check_in(f" {job} ", plan, "the plan")
        check_in("is checkpointed", plan, "the plan")
        check_in("expected to have left in 00:", plan, "the plan")
        check_equal(admission(first), {}, "what a plan changes")
        command = follow(first, "--reason", "new firmware")
        await_true("it is drained", lambda: admission(first).get("kind") == "DRAINING")
        pid = lab_daemon(first)
        lab("kill", first)
        lab("kill", "berthd")
        await_true("another agent runs", lambda: lab_daemon(first) not in (None, pid), 60)
        await_true("berthd answers again", lambda: run("node", "ls").returncode == 0)
        check_equal(admission(first).get("reason"), "new firmware", "the reason after a restart")
        for job in jobs:
            check_equal(wait_one(job)["state"], "COMPLETED", f"state of job {job}")
            check_equal(output(job)[0].split(), [b"%d" % i for i in range(60)], "its output")
        written, said = command.communicate(timeout=60)
        check_equal(command.returncode, 0, f"status of the drain ({said})")
        for job in jobs:
            check_in(f"{first}: job {job} has ended: COMPLETED", written, "what the drain said")
        check_in(f"{first}: is empty", written, "what the drain said")
        check_equal(lab_exec(first, "virsh", "list", "--all", "--name").split(), [], "guests left there")
        check(number(admission(first), "emptyUsec") > 0, "it is known to be empty")
        check_in("by root since", berth("node", "show", first), "berth node show")
    finally:
        open_all()


@test("a drain that is left goes on, and undrain ends it while its jobs run on")
def undrains():
    first = sorted(nodes())[0]
    try:
        job = start(first)
        command = follow(first, "--reason", "a mistake")
        read_until(command, "is checkpointed")
        command.send_signal(subprocess.signal.SIGINT)
        check_equal(command.wait(30), 130, "status of a drain that was left")
        check_in("undrain", command.stderr.read(), "what it says")
        check_equal(admission(first).get("kind"), "DRAINING", "the node")
        other = sh("true", "--memory", "96M", "--node", first)
        await_true("it waits", lambda: reason(show(other)) == "REASON_NODE_UNAVAILABLE")
        berth("node", "undrain", first)
        check_equal(wait_one(other)["state"], "COMPLETED", "state of the job that waited")
        check_equal(wait_one(job)["state"], "COMPLETED", "state of the job that ran on")
    finally:
        open_all()


@test("a job that may run nowhere else is checkpointed by a drain, and goes on when its node is open again")
def saves():
    first = sorted(nodes())[0]
    job = counting.start(8, "--node", first, lines=400)
    try:
        written = berth("node", "drain", first, "--reason", "a new disk", timeout=300)
        check_in(f"{first}: job {job} was checkpointed, and goes on", written, "what the drain said")
        check_in(f"{first}: is empty", written, "what the drain said")
        check_equal(lab_exec(first, "virsh", "list", "--all", "--name").split(), [], "guests left there")
        check_equal(show(job)["state"], "PENDING", "its state")
    finally:
        open_all()
    counting.check_whole(job, epoch=2, lines=400)


if __name__ == "__main__":
    main()
