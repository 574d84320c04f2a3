# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails in the midst of a checkpoint of it, step by step (faults.py). It has a
checkpoint from before: what it goes on from when it is lost, until there is a newer one.

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from faults import *


def make():
    case = Case(is_saved=True)
    case.verb = ["checkpoint", "--wait"]

    def check_end(is_done, was_put_back):
        has = [json.loads(line)["serial"] for line in berth("checkpoint", "ls", "--json", str(case.job)).splitlines()]
        check_equal(has, [1, 2] if is_done else [1], "the checkpoints that it has")
    case.check_end = check_end
    return case


def add_case(step, name):
    def disturb():
        case = make()
        through(case, SAVING[step], FAULTS[name])
        return conclude(case, goes_back=name in (QEMU, LOST))
    if name != LOST or step == "saving":
        add("a checkpoint", step, name, disturb)


for a_step in SAVING:
    for a_name in FAULTS:
        add_case(a_step, a_name)
add_without_space("a checkpoint", make)
choose("a checkpoint, saving: the pool is full", f"a checkpoint, saved: {LONG}")

if __name__ == "__main__":
    main()
