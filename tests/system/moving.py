# SPDX-License-Identifier: Apache-2.0
"""What the tests of failures in the midst of what moves a job share: the steps of a move, and what can fail at either of
its ends. An action begins it by CASE.begin()."""

from faults import *

SLOW_MIB_PER_SEC = 4


# --- steps ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def decided(case):
    """The destination has not answered yet."""
    with stopped(case.other):
        case.begin()
        case.await_event("guest-migrate ")
        yield


def begin_slowly(case):
    """Until its memory is on its way. A move that the other node has refused is tried again after a minute."""
    set_speed(case, SLOW_MIB_PER_SEC)
    case.begin()
    await_true("its memory is copied", lambda: is_copied(case), 150)


@contextlib.contextmanager
def copying(case):
    begin_slowly(case)
    try:
        yield
    finally:
        set_speed(case, 1024)


@contextlib.contextmanager
def arrived(case):
    """It is there, and nobody has let it go on yet."""
    begin_slowly(case)
    with stopped(case.other):
        set_speed(case, 1024)
        await_true("it has left", lambda: case.guest not in guests_on(case.node), 60)
        yield


def set_speed(case, mib_per_sec):
    """Nobody knows whether there is anything left to be copied."""
    case.virsh(case.node, "migrate-setspeed", case.guest, str(mib_per_sec))


def is_copied(case):
    if case.question.poll() is not None:
        raise Missed("the move was over before its memory was copied")
    return "Memory processed" in case.virsh(case.node, "domjobinfo", case.guest)


STEPS = {"asked": decided, "copying": copying, "arrived": arrived}


# --- faults --------------------------------------------------------------------------------------


def at_destination(fault):
    """The same, there."""
    @contextlib.contextmanager
    def there(case):
        source = case.node
        case.node = case.other
        try:
            with fault(case):
                yield
        finally:
            case.node = source
    return there


ANYWHERE = ("berthd is killed", "Ceph is paused", LONG, FULL)
SOURCE = {f"{what} (source)": fault for what, fault in FAULTS.items() if what not in ANYWHERE}
DESTINATION = {f"{what} (destination)": at_destination(FAULTS[what]) for what in FAULTS if what not in ANYWHERE}


def has_such_a_guest(step, fault):
    """There is nobody to be killed at the destination before it is copied to, nor at the source afterwards."""
    return not (fault == f"{QEMU} (source)" and step == "arrived" or
                fault == f"{QEMU} (destination)" and step == "asked")


def takes_long(step, fault):
    """Once shows it, at each end."""
    if fault == LONG:
        return step != "arrived"
    return LOST in fault and (step, fault) not in (("copying", f"{LOST} (source)"), ("arrived", f"{LOST} (destination)"))


def loses_the_guest(step, fault):
    if step == "arrived":
        return fault in (f"{QEMU} (destination)", f"{LOST} (destination)")
    return fault in (f"{QEMU} (source)", f"{LOST} (source)")


# --- what comes of it ----------------------------------------------------------------------------


def add_moving(action, make, may_be_put_back=False):
    """MAKE is told whether the job is to be saved before, as its guest is lost. MAY_BE_PUT_BACK: also where nothing is lost, as
    the action itself may save it and put it back."""
    def add_case(step, name, fault):
        def disturb():
            is_lost = loses_the_guest(step, name)
            case = make(is_lost)
            try:
                through(case, STEPS[step], fault)
                return conclude(case, is_lost or may_be_put_back)
            finally:
                case.end()
        if has_such_a_guest(step, name) and not takes_long(step, name):
            add(action, step, name, disturb)
    for step in STEPS:
        for name, fault in {**SOURCE, **DESTINATION, **{what: FAULTS[what] for what in ANYWHERE}}.items():
            add_case(step, name, fault)
