# SPDX-License-Identifier: Apache-2.0
"""berth node roll: agents are brought to another version, node after node, while jobs run and others are
submitted; no job notices."""

import os
import shutil
import subprocess

from counting import *
from faults import cut_link
from harness import *

JOBS = by_size(1, 2, 20)
MANY_LINES = 100000
# Emulated guests that are at work all the time would take the host's CPUs from what is tried here.
PAUSE_USEC = by_size(30000, 30000, 3000000)
SERVICES = os.path.join(os.environ.get("BERTH_LAB_RUN", "/run/berth-lab"), LAB_NAME, "services")
NEXT = os.path.join(LAB_DATA, "next", "berth-node")


def versions():
    return {name: node["info"]["version"] for name, node in nodes().items()}


def service(node):
    return os.path.join(SERVICES, node, "berth-node.run")


def program(node):
    """What the node's service manager starts as its agent."""
    with open(service(node)) as file:
        words = file.read().split()
    return words[words.index("--config") - 1]


def build_next(old):
    """The same agent with another version number. Its first digit alone is another: the linker lets other strings
    share what follows it."""
    version = versions()[min(nodes())]
    new = f"{(int(version[0]) + 1) % 10}{version[1:]}"
    with open(old, "rb") as file:
        text = file.read()
    check(f"\0{version}\0".encode() in text, "the agent has its version in it")
    os.makedirs(os.path.dirname(NEXT), exist_ok=True)
    with open(NEXT, "wb") as file:
        file.write(text.replace(f"\0{version}\0".encode(), f"\0{new}\0".encode()))
    shutil.copymode(old, NEXT)
    return new


def restart_as(path, was):
    """A command for hosts: their agent is PATH from now on. It ends with the agent that runs it."""
    here = f"{SERVICES}/$(hostname)/berth-node"
    return ["sh", "-c", f"sed -i 's#{was} #{path} #' {here}.run && kill $(cat {here}.pid)"]


def start_endless():
    return start(4, lines=MANY_LINES, pause_usec=PAUSE_USEC)


def roll(*arguments, timeout=600):
    return run("node", "roll", "node[1-2]", *arguments, text=True, timeout=timeout)


@test(f"all agents are restarted in another version while {JOBS} jobs run and others come, and no job notices")
def rolls():
    # Two come while it goes on, and all of them are on one node at times: what has no place there is checkpointed,
    # and notices.
    check(number(nodes()["node1"], "info", "vcpus") >= JOBS + 2, f"a node has {JOBS + 2} vCPUs")
    old = program("node1")
    before = versions()
    new = build_next(old)
    with Allowed("node1", "node2"):
        jobs = [start_endless() for _ in range(JOBS)]
        began = time.monotonic()
        with subprocess.Popen([BERTH, "node", "roll", "node[1-2]", "--reason", "a new agent", "--rejoin", "2m", "--",
                               *restart_as(NEXT, old)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as command:
            said = []
            for line in command.stdout:
                said.append(line)
                if line.endswith("is open again\n"):
                    jobs.append(start_endless())
            errors = command.stderr.read()
        check_equal(command.returncode, 0, f"status of the roll ({errors}; {said})")
        say(f"two nodes took {time.monotonic() - began:.1f} s")
        text = "".join(said)
        for name in sorted(before):
            check_in(f"{name}: berth-node {new} (it was {before[name]}) has joined\n{name}: is open again\n",
                     text, "what the roll says")
        check_equal(versions(), {name: new for name in before}, "versions of the agents")
        moved = sum(berth("events", str(job)).count("guest-migrated on") for job in jobs)
        check(moved >= 1, "jobs were moved")
        back = roll("--reason", "the old agent", "--", *restart_as(old, NEXT))
        check_equal(back.returncode, 0, f"status of the roll back ({back.stderr})")
        check_equal(versions(), before, "versions of the agents")
        for job in jobs:
            stop(job)
        for job in jobs:
            check_whole(job, lines=MANY_LINES, was_stopped=True)
        check_in("a new agent", berth("events", "--since", "1h"), "the event log")


@test("a roll goes on where berthd, agents and a link fail in the midst of it, and no job notices")
def outlives_failures():
    old = program("node1")
    # By what it has just said. (A command whose node or berthd fails while it runs stops the roll: it is not known what it has done.)
    def cut_node1():
        with cut_link("node1"):
            pass  # for some seconds, as many as nobody is given up for
    faults = {"moves to node2": lambda: lab("kill", "berthd"), "node1: its agent is waited for": lambda: lab("kill", "node2"),
              "moves to node1": lambda: lab("kill", "node1"), "node2: its agent is waited for": cut_node1}
    with Allowed("node1", "node2"):
        job = start(32, lines=MANY_LINES)
        if node_of(job) != "node1":
            berth("migrate", "--to", "node1", "--wait", str(job))
        said = []
        with subprocess.Popen([BERTH, "node", "roll", "node[1-2]", "--reason", "a roll with faults", "--rejoin", "2m", "--",
                               *restart_as(old, old)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as command:
            for line in command.stdout:
                said.append(line)
                for what in [what for what in faults if what in line]:
                    faults.pop(what)()
            errors = command.stderr.read()
        check_equal(command.returncode, 0, f"status of the roll ({errors}; {said})")
        check_equal(list(faults), [], f"faults that were not tried: {said}")
        check_equal(sum(line.endswith("is open again\n") for line in said), 2, f"nodes that are open again: {said}")
        check_equal([node.get("admission", {}).get("kind") for node in nodes().values()], [None, None],
                    "what the nodes are used for")
        stop(job)
        check_whole(job, lines=MANY_LINES, was_stopped=True)


@test("an agent that does not come up stops the roll at its node, and the roll can be gone on with")
def stops():
    old = program("node1")
    with Allowed("node1", "node2"):
        job = start(4)
        try:
            failed = roll("--rejoin", "5", "--reason", "a broken agent", "--", *restart_as("/bin/false", old))
            check_equal(failed.returncode, 1, "status of the roll")
            check_in("node node1: its agent has not joined again", failed.stderr, "what it says")
            check_in("0 of 2 nodes done; node1 is drained", failed.stderr, "what it says")
            check_in("berth node undrain node1", failed.stderr, "what it says")
            check_equal([nodes()[name].get("admission", {}).get("kind") for name in ("node1", "node2")],
                        ["DRAINING", None], "what the nodes are used for")
        finally:
            lab_exec("node1", "sed", "-i", f"s#/bin/false #{old} #", service("node1"))
        await_true("the agent joins", lambda: node_is_up("node1"), 60)
        again = roll("--reason", "a broken agent", "--", *restart_as(old, old))
        check_equal(again.returncode, 0, f"status of the roll that goes on ({again.stderr})")
        check_whole(job)


if __name__ == "__main__":
    main()
