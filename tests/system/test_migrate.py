# SPDX-License-Identifier: Apache-2.0
"""berth migrate and the moves of a drain: a job goes on on another node as if nothing had been, and on
exactly one, whoever is killed meanwhile."""

import queue
import subprocess
import threading
import time

from counting import *

MOVES = by_size(2, 4, 20)
KILLS = by_size(1, 1, 8)


def cpu_usec(job):
    return number(task(show(job)), "usage", "cpuUsec")


@test(f"a job that is moved {MOVES} times to and fro keeps its output, disk, memory, clock and accounting")
def moves():
    job = start()
    used = 0
    for n in range(MOVES):
        here = node_of(job)
        there = other(here)
        said = berth("migrate", str(job), "--wait", *(["--to", there] if n % 2 else []))
        check_equal(said, f"job {job} runs on {there}\n", "what it says")
        check_equal(node_of(job), there, "its node")
        check_equal(guests_on(here), [], f"guests left on {here}")
        check(cpu_usec(job) >= used, f"its CPU time goes on from {used}: {cpu_usec(job)}")
        used = cpu_usec(job)
    check_whole(job)
    log = berth("events", str(job))
    check_equal(log.count("guest-migrated on"), MOVES, "moves in the event log")
    check_in("job-migrate-requested on", log, "the event log, where a node was named")
    check_in("by root", log, "the event log")


@test("what cannot be moved is refused with the reason, and runs on")
def refuses():
    job = sh("echo here; while [ ! -e stop ]; do usleep 100000; done", "--memory", "96M", "--time", "10m")
    await_running(job)
    here, there = node_of(job), other(node_of(job))
    check_in("no node", refused("migrate", str(job), "--to", "nowhere"), "an unknown node")
    check_in("runs there already", refused("migrate", str(job), "--to", here), "its own node")
    check_in("does not run", refused("migrate", str(sh("true", "--hold"))), "a job that waits")
    check_in("not being moved", refused("migrate", "--cancel", str(job)), "nothing to call off")
    large = sh("sleep 60", "--memory", "96M", "--vcpus", "4", "--node", there)
    await_running(large)
    check_in("no room", refused("migrate", str(job), "--to", there), "a full node")
    check_in("no other node that it may use has all free", refused("migrate", str(job)), "no room anywhere")
    berth("cancel", str(large))
    wait_one(large)
    try:
        berth("node", "cordon", there, "--reason", "a test")
        check_in("cordoned", refused("migrate", str(job), "--to", there), "a cordoned node")
    finally:
        berth("node", "uncordon", there)
    shown = show(job)
    check_equal((task(shown)["node"], shown["state"]), (here, "RUNNING"), "its node and state")
    berth("cancel", str(job))
    check_equal(wait_one(job)["state"], "CANCELLED", "its state in the end")


@test("a frozen job is moved frozen to and fro, and saved there, and goes on when it is thawed")
def frozen():
    job = start()
    berth("freeze", str(job))
    for _ in range(2):
        there = other(node_of(job))
        berth("migrate", str(job), "--wait")
        shown = show(job)
        check_equal((task(shown)["node"], shown["state"]), (there, "SUSPENDED"), "its node and state")
    berth("checkpoint", "--wait", str(job))
    check_equal(show(job)["state"], "SUSPENDED", "its state")
    berth("thaw", str(job))
    check_whole(job)


@test("a move that is called off leaves the job where it is, running")
def called_off():
    job = start(kept_mib=96)
    here = node_of(job)
    berth("migrate", str(job))
    check_equal(berth("migrate", "--cancel", "--wait", str(job)), f"job {job} runs on {here}\n", "what it says")
    check_equal(node_of(job), here, "its node")
    check_in("called off", berth("events", str(job)), "the event log")
    settle(job)
    check_whole(job)


@test("a job that is cancelled while it is moved ends there, and nothing of it is left at either end")
def cancelled():
    job = start(kept_mib=96)
    here, there = node_of(job), other(node_of(job))
    berth("migrate", str(job))
    await_true("it is copied", lambda: guests_on(there) != [], 60)
    berth("cancel", str(job))
    check_equal(wait_one(job)["state"], "CANCELLED", "its state")
    for node in (here, there):
        await_true(f"nothing of it is on {node}", lambda node=node: guests_on(node) == [], 60)
    await_true("its disk is gone",
               lambda: f"-{job}-" not in lab_exec("host", "rbd", "--pool", "berth", "ls"), 120)


@test("a command beside a job that is moved ends and says why; another one runs where the job is")
def ends_commands():
    job = start(kept_mib=32)
    with subprocess.Popen([BERTH, "exec", "--no-input", str(job), "--", "sh", "-c", "echo begun; exec sleep 1000"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
        check_equal(command.stdout.readline(), "begun\n", "its first line")
        berth("migrate", str(job), "--wait")
        _, said = command.communicate(timeout=60)
    check_equal(command.returncode, 125, "its status")
    check_in("moved to another node", said, "what it says")
    await_true("another one runs there", lambda: run("exec", "--no-input", str(job), "--", "true").returncode == 0)
    check_whole(job)


@test("an agent that ends does not wait for a move, and the next one sees it through")
def outlives_agents():
    job = start(kept_mib=64)
    here, there = node_of(job), other(node_of(job))
    berth("migrate", str(job))
    await_true("it is copied", lambda: guests_on(there) != [], 60)
    pid = lab_daemon(here)
    lab("kill", "-s", "TERM", here)
    await_true(f"another agent runs on {here}", lambda: lab_daemon(here) not in (None, pid), 20)
    settle(job)
    check_whole(job)
    check_in("guest-migrated on", berth("events", str(job)), "the event log")


@test("a node that is drained gives its running jobs away")
def drains():
    first = sorted(nodes())[0]
    jobs = [start(), start()]
    for job in jobs:
        if node_of(job) != first:
            berth("migrate", str(job), "--wait", "--to", first)
    try:
        check_in("2 of 2 are moved", berth("node", "drain", first, "--plan"), "the plan")
        said = berth("node", "drain", first, "--reason", "new firmware", timeout=300)
        for job in jobs:
            check_in(f"{first}: job {job} moves to {other(first)}\n", said, "what the drain says")
            check_in(f"{first}: job {job} runs on {other(first)} now, after ", said, "what the drain says")
        check_equal(guests_on(first), [], "guests left there")
        for job in jobs:
            check_equal((node_of(job), show(job)["state"]), (other(first), "RUNNING"), f"job {job}")
            check_in("guest-migrated on", berth("events", str(job)), "the event log")
    finally:
        berth("node", "undrain", first)
    for job in jobs:
        check_whole(job)


def kill_in_the_midst(who, rng):
    job = start(kept_mib=64)
    here = node_of(job)
    target = {"source": here, "destination": other(here), "berthd": "berthd"}[who]
    pid = lab_daemon(target)
    berth("migrate", str(job))
    pause = rng.uniform(0, 1.5)
    time.sleep(pause)
    lab("kill", target)
    await_true(f"another {target} runs", lambda: lab_daemon(target) not in (None, pid), 60)
    settle(job)
    say(f"{who} killed after {pause:.2f} s: it runs on {node_of(job)}, moved from {here}")
    check_whole(job)


def add_kills(who):
    @test(f"the agent or daemon that is killed in the midst of a move ({who}, {KILLS} times) costs nothing")
    def kills():
        rng = seeded_random()
        for _ in range(KILLS):
            kill_in_the_midst(who, rng)


for who in ("source", "destination", "berthd"):
    add_kills(who)


class Events:
    """What libvirt on a node tells of the domains there, from now on."""

    def __init__(self, node):
        self.process = subprocess.Popen([*LAB, "exec", "--name", LAB_NAME, node, "stdbuf", "-oL", "virsh",
                                         "event", "--all", "--loop", "--timeout", "300"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def wait(self, word, seconds):
        """Whether WORD is told in so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if word in self.lines.get(timeout=max(deadline - time.monotonic(), 0)):
                    return True
            except queue.Empty:
                return False

    def end(self):
        self.process.kill()
        self.process.wait()


# What libvirt on the node that it goes to tells when a step has been reached.
STEPS = {"it is copied": "Started", "it has come": "Suspended"}


def thaws_seen(job, events):
    berth("freeze", str(job))
    berth("thaw", str(job))
    return events.wait("Resumed", 1)


def kill_libvirt_in(step, end):
    job = start(kept_mib=64)
    there, here = node_of(job), other(node_of(job))
    events = Events(there)
    try:
        await_true("virsh listens", lambda: thaws_seen(job, events), 60)
        berth("migrate", str(job), "--wait")
        check(events.wait("Stopped", 30), "it has left, says libvirt")
        berth("migrate", str(job))
        check(events.wait(STEPS[step], 60), f"libvirt says that {step}")
        lab("kill", f"{here if end == 'source' else there}/libvirtd")
    finally:
        events.end()
    for node in (here, there):
        await_true(f"libvirt on {node} is there", lambda: virsh_answers(node), 60)
    settle(job)
    say(f"libvirtd of the {end} killed when {step}: it runs on {node_of(job)}, moved from {here}")
    check_whole(job)


def virsh_answers(node):
    return subprocess.run([*LAB, "exec", "--name", LAB_NAME, node, "virsh", "list"],
                          capture_output=True).returncode == 0


def add_libvirt_kills(step, end):
    @test(f"libvirtd of the {end} that is killed when {step} costs nothing")
    def kills():
        kill_libvirt_in(step, end)


for step in STEPS:
    for end in ("source", "destination"):
        add_libvirt_kills(step, end)


if __name__ == "__main__":
    main()
