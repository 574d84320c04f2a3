# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails while it is frozen to disk, or thawed on another node, step by step
(faults.py). It goes on from what was saved, or from what was saved before where that did not come about; or it is not
frozen.

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from faults import *

# --- steps ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def releasing(case):
    """berthd knows, and what was saved is to be removed from the node."""
    agent = lab_daemon(case.node)
    case.ask(*case.verb)
    with stopped_when("berthd knows", case.node, agent, lambda agent: f" guest-checkpointed on {case.node}: frozen" in
                      berth("events", str(case.job))):
        yield


def asked_to_restore(case):
    return asked(case, "guest-restore ", *case.verb)


def untold_restored(case):
    """It would run, if berthd knew."""
    return untold(case, "guest-restore ", lambda: case.await_said(case.node, RESTORED), *case.verb)


FREEZE = {**SAVING, "releasing": releasing}
THAW = {"asked": asked_to_restore, "restoring": restoring, "untold": untold_restored}

# --- what comes of it ----------------------------------------------------------------------------


def make_running():
    case = Case(is_saved=True)
    case.verb = ["freeze", "--to-disk"]
    case.comes_to = "is frozen to disk"
    return case


def make_on_disk():
    """It goes on on the other node."""
    case = Case()
    berth("freeze", "--to-disk", str(case.job))
    await_true("its node is released", lambda: places(case.job) == [])
    case.node, case.other = case.other, case.node
    case.verb = ["thaw", "--to", case.node]
    return case


def has_qemu(action, step):
    return step != "releasing" and (action != "a thaw from disk" or step != "asked")


def add_case(action, make, step, make_step, name):
    def disturb():
        case = make()
        through(case, make_step, FAULTS[name])
        return conclude(case, goes_back=True)
    is_needed = name != QEMU or has_qemu(action, step)
    if is_needed and (name != LOST or step in ("saving", "restoring", "untold")):
        add(action, step, name, disturb)


for a_name in FAULTS:
    for a_step in FREEZE:
        add_case("a freeze to disk", make_running, a_step, FREEZE[a_step], a_name)
    for a_step in THAW:
        add_case("a thaw from disk", make_on_disk, a_step, THAW[a_step], a_name)
add_without_space("a freeze to disk", make_running)
choose("a thaw from disk, untold: the agent is killed")

if __name__ == "__main__":
    main()
