# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails in the midst of a freeze or a thaw of it, or while it stands still, step by
step (faults.py).

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from faults import *

# --- frozen in memory ----------------------------------------------------------------------------


def make_running(is_saved):
    case = Case(is_saved=is_saved)
    case.comes_to = "is frozen"
    return case


def make_frozen(is_saved):
    case = Case(is_saved=is_saved)
    berth("freeze", str(case.job))
    return case


@contextlib.contextmanager
def frozen(case):
    """Nothing is being done to it."""
    case.ask("freeze")
    case.await_domain("paused")
    case.answer()
    yield


FREEZE = {
    "asked": lambda case: asked(case, "job-freeze-requested", "freeze"),
    "at libvirt": lambda case: at_work(case, "job-freeze-requested", "freeze"),
    "untold": lambda case: untold(case, "job-freeze-requested", lambda: case.await_domain("paused"), "freeze"),
    "done": frozen,
}
THAW = {
    "asked": lambda case: asked(case, "job-thaw-requested", "thaw"),
    "at libvirt": lambda case: at_work(case, "job-thaw-requested", "thaw"),
    "untold": lambda case: untold(case, "job-thaw-requested", lambda: case.await_domain("running"), "thaw"),
}


add_action("a freeze", make_running, FREEZE)
add_action("a thaw", make_frozen, THAW)
choose("a freeze, untold: the agent is killed")

if __name__ == "__main__":
    main()
