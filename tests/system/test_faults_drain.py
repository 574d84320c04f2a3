# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails while its node is drained, step by step (faults.py): the node gets empty, and the
job goes on on the other one.

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from moving import *


def make(is_saved):
    case = Case(is_saved=is_saved)
    case.begin = lambda: case.ask_of_all("node", "drain", case.node, "--reason", "a fault")
    case.end = lambda: berth("node", "undrain", case.node)

    def check_end(is_done, was_put_back):
        check(is_done, f"the drain ends well: {case.why_not}")
        check_equal(node_of(case.job), case.other, "where it is, as its node is drained")
        check_equal(guests_on(case.node), [], "guests on the drained node")
    case.check_end = check_end
    return case


add_moving("a drain", make, may_be_put_back=True)
choose("a drain, copying: the agent is killed (source)", "a drain, arrived: berthd is killed")

if __name__ == "__main__":
    main()
