# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails in the midst of a move of it, step by step (faults.py): it stays or has
moved, or goes on from its checkpoint where its guest itself was lost.

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from moving import *


def make(is_saved):
    case = Case(is_saved=is_saved)
    case.begin = lambda: case.ask("migrate", "--wait", "--to", case.other)

    def check_end(is_done, was_put_back):
        if is_done and not was_put_back:
            check_equal(node_of(case.job), case.other, "where it is, as it is said to have moved")
    case.check_end = check_end
    return case


add_moving("a move", make)
choose("a move, copying: the agent is killed (source)", "a move, arrived: berthd is killed",
       "a move, arrived: the agent is killed (destination)")

if __name__ == "__main__":
    main()
