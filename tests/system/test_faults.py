# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails in the midst of a move of it, step by step: a table of step, fault and
outcome. It goes on in one place as if nothing had been, or is started again where its guest itself was lost;
never is it nowhere, and never twice: its output, its chain and its disk would show it.

Which cases are run depends on the size: all of them with BERTH_TEST_FULL=1, else a few, drawn by the seed."""

import contextlib
import subprocess
import time

from counting import *

KEPT_MIB = 48
SLOW_MIB_PER_SEC = 4
CUT_SECONDS = 5
CASES = by_size(2, 4, 1000)
outcomes = []


class Case:
    """A job, and the move of it that is to be disturbed."""

    def __init__(self):
        self.job = start(KEPT_MIB)
        self.source = node_of(self.job)
        self.destination = other(self.source)
        self.guest = f"berth-{self.job}-0-0-1"

    def has_domain(self, node, state):
        said = subprocess.run([*LAB, "exec", "--name", LAB_NAME, node, "virsh", "domstate", self.guest],
                              capture_output=True, text=True, timeout=60)
        return said.stdout.strip() == state


# --- steps: each is a context in which the move stands at that step ----------------------------


@contextlib.contextmanager
def stopped(service):
    """Signals go by what the service is then: it may have been killed."""
    lab("kill", "-s", "STOP", service)
    try:
        yield
    finally:
        subprocess.run([*LAB, "kill", "--name", LAB_NAME, "-s", "CONT", service], capture_output=True, timeout=60)


def ask_to_move(case):
    berth("migrate", "--to", case.destination, str(case.job))


@contextlib.contextmanager
def asked(case):
    """The destination has not answered yet."""
    with stopped(case.destination):
        ask_to_move(case)
        await_true("the move is decided", lambda: "guest-migrate " in berth("events", str(case.job)))
        yield


@contextlib.contextmanager
def copying(case):
    """Its memory is on its way."""
    set_speed(case, SLOW_MIB_PER_SEC)
    ask_to_move(case)
    await_true("its memory is copied", lambda: is_copied(case), 60)
    try:
        yield
    finally:
        set_speed(case, 1024)


@contextlib.contextmanager
def arrived(case):
    """It is there, and nobody has let it go on yet."""
    set_speed(case, SLOW_MIB_PER_SEC)
    ask_to_move(case)
    await_true("its memory is copied", lambda: is_copied(case), 60)
    with stopped(case.destination):
        set_speed(case, 1024)
        await_true("it has left", lambda: case.guest not in guests_on(case.source), 60)
        yield


def set_speed(case, mib_per_sec):
    """Nobody knows whether there is anything left to be copied."""
    subprocess.run([*LAB, "exec", "--name", LAB_NAME, case.source, "virsh", "migrate-setspeed", case.guest,
                    str(mib_per_sec)], capture_output=True, timeout=60)


def is_copied(case):
    said = subprocess.run([*LAB, "exec", "--name", LAB_NAME, case.source, "virsh", "domjobinfo", case.guest],
                          capture_output=True, text=True, timeout=60)
    return "Memory processed" in said.stdout


# --- faults ------------------------------------------------------------------------------------


def kill(service):
    lab("kill", service)


def kill_qemu(node, case):
    lab_exec(node, "sh", "-c", f"kill -9 $(cat /run/libvirt/qemu/{case.guest}.pid)")


def cut_link(node):
    lab_exec("host", "ip", "link", "set", node, "down")
    try:
        time.sleep(CUT_SECONDS)
    finally:
        lab_exec("host", "ip", "link", "set", node, "up")


def pause_ceph():
    lab_exec("host", "ceph", "osd", "pause")
    try:
        time.sleep(CUT_SECONDS)
    finally:
        lab_exec("host", "ceph", "osd", "unpause")


FAULTS = {
    "the source's agent is killed": lambda case: kill(case.source),
    "the destination's agent is killed": lambda case: kill(case.destination),
    "berthd is killed": lambda case: kill("berthd"),
    "the source's libvirtd is killed": lambda case: kill(f"{case.source}/libvirtd"),
    "the destination's libvirtd is killed": lambda case: kill(f"{case.destination}/libvirtd"),
    "QEMU is killed at the source": lambda case: kill_qemu(case.source, case),
    "QEMU is killed at the destination": lambda case: kill_qemu(case.destination, case),
    "the source's link is cut": lambda case: cut_link(case.source),
    "the destination's link is cut": lambda case: cut_link(case.destination),
    "Ceph is paused": lambda case: pause_ceph(),
}
STEPS = {"asked": asked, "copying": copying, "arrived": arrived}


def has_such_a_guest(step, fault):
    """There is nobody to be killed at the destination before it is copied to, nor at the source afterwards."""
    return not (fault == "QEMU is killed at the source" and step == "arrived" or
                fault == "QEMU is killed at the destination" and step == "asked")


def loses_the_guest(step, fault):
    return fault == "QEMU is killed at the source" or fault == "QEMU is killed at the destination" and step == "arrived"


# --- what comes of it --------------------------------------------------------------------------


def disturb(step, fault):
    case = Case()
    with STEPS[step](case):
        FAULTS[fault](case)
    if loses_the_guest(step, fault):
        outcome = "it is started again"
        check_whole(case.job, epoch=2)
    else:
        settle(case.job)
        outcome = "it has moved" if node_of(case.job) == case.destination else "it stays"
        check_whole(case.job)
    outcomes.append((step, fault, outcome))
    say(f"{step}, {fault}: {outcome}")


def add(step, fault):
    @test(f"a move that is {step} when {fault} costs no job and doubles none")
    def one():
        disturb(step, fault)


cases = [(step, fault) for step in STEPS for fault in FAULTS if has_such_a_guest(step, fault)]
wanted = os.environ.get("BERTH_FAULTS", "")  # a part of "STEP: FAULT"
rng = seeded_random()
drawn = [case for case in cases if wanted and wanted in ": ".join(case)] or rng.sample(cases, min(CASES, len(cases)))
for each in drawn:
    add(*each)


@test("no fault has left a guest or anything else behind")
def table():
    for name in nodes():
        await_true(f"no guest is left on {name}", lambda name=name: guests_on(name) == [], 60)
    for row in [("step", "fault", "outcome"), ("---", "---", "---"), *sorted(outcomes)]:
        say(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
