# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails in the midst of a move of it, step by step (faults.py): it stays or has
moved, or goes on from its checkpoint where its guest itself was lost.

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from faults import *

SLOW_MIB_PER_SEC = 4


# --- steps ---------------------------------------------------------------------------------------


def ask_to_move(case):
    case.ask("migrate", "--wait", "--to", case.other)


@contextlib.contextmanager
def decided(case):
    """The destination has not answered yet."""
    with stopped(case.other):
        ask_to_move(case)
        case.await_event("guest-migrate ")
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
    with stopped(case.other):
        set_speed(case, 1024)
        await_true("it has left", lambda: case.guest not in guests_on(case.node), 60)
        yield


def set_speed(case, mib_per_sec):
    """Nobody knows whether there is anything left to be copied."""
    case.virsh(case.node, "migrate-setspeed", case.guest, str(mib_per_sec))


def is_copied(case):
    check(case.question.poll() is None, "the move was over before its memory was copied")
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


ANYWHERE = ("berthd is killed", "Ceph is paused", FULL)
SOURCE = {f"{what} (source)": fault for what, fault in FAULTS.items() if what not in ANYWHERE}
DESTINATION = {f"{what} (destination)": at_destination(FAULTS[what]) for what in FAULTS if what not in ANYWHERE}


def has_such_a_guest(step, fault):
    """There is nobody to be killed at the destination before it is copied to, nor at the source afterwards."""
    return not (fault == f"{QEMU} (source)" and step == "arrived" or
                fault == f"{QEMU} (destination)" and step == "asked")


def takes_long(step, fault):
    """Once at each end shows it."""
    return LOST in fault and (step, fault) not in (("copying", f"{LOST} (source)"), ("arrived", f"{LOST} (destination)"))


def loses_the_guest(step, fault):
    if step == "arrived":
        return fault in (f"{QEMU} (destination)", f"{LOST} (destination)")
    return fault in (f"{QEMU} (source)", f"{LOST} (source)")


# --- what comes of it ----------------------------------------------------------------------------


def add_move(step, name, fault):
    def disturb():
        is_lost = loses_the_guest(step, name)
        case = Case(is_saved=is_lost)

        def check_end(is_done, was_put_back):
            if is_done and not was_put_back:
                check_equal(node_of(case.job), case.other, "where it is, as it is said to have moved")
        case.check_end = check_end
        through(case, STEPS[step], fault)
        return conclude(case, is_lost)
    if has_such_a_guest(step, name) and not takes_long(step, name):
        add("a move", step, name, disturb)


for a_step in STEPS:
    for a_name, a_fault in {**SOURCE, **DESTINATION, **{what: FAULTS[what] for what in ANYWHERE}}.items():
        add_move(a_step, a_name, a_fault)
choose("a move, copying: the agent is killed (source)", "a move, arrived: berthd is killed",
       "a move, arrived: the agent is killed (destination)")

if __name__ == "__main__":
    main()
