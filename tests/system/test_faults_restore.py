# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails while it is put back to a checkpoint, step by step (faults.py): it goes on from
that, or runs on as it did.

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from faults import *

# --- steps ---------------------------------------------------------------------------------------


def asked_to_restore(case):
    """It still runs."""
    return asked(case, "job-restore-requested", *case.verb)


def untold_ended(case):
    """It runs no more, and berthd does not know."""
    def is_over():
        await_true("its guest has ended", lambda: case.guest not in guests_on(case.node), 60)
    return untold(case, "job-restore-requested", is_over, *case.verb)


@contextlib.contextmanager
def untold_restored(case):
    """It would run again, if berthd knew."""
    case.ask(*case.verb)
    case.await_event("guest-restore ")
    lab("kill", "-s", "STOP", "berthd")
    try:
        case.await_said(case.node, RESTORED)
        yield
    finally:
        let_go("berthd")


STEPS = {"asked": asked_to_restore, "ended": untold_ended, "restoring": restoring, "untold": untold_restored}

# --- what comes of it ----------------------------------------------------------------------------


def make():
    """It goes on where it was, so that one agent has all of it to do."""
    case = Case("--node", "node1", is_saved=True)
    case.verb = ["restore", "--wait"]

    def check_end(is_done, was_put_back):
        check(was_put_back or not is_done, "it was put back, as it is said to have been")
    case.check_end = check_end
    return case


def add_case(step, name):
    def disturb():
        case = make()
        through(case, STEPS[step], FAULTS[name])
        return conclude(case, goes_back=True)
    # It may run nowhere else; and it has no QEMU when it has ended.
    if name != LOST and (name, step) != (QEMU, "ended"):
        add("a restore", step, name, disturb)


for a_step in STEPS:
    for a_name in FAULTS:
        add_case(a_step, a_name)
choose("a restore, restoring: berthd is killed")

if __name__ == "__main__":
    main()
