# SPDX-License-Identifier: Apache-2.0
"""What becomes of a job where something fails while it gets more, or gives back, step by step (faults.py).

All of it is run with BERTH_TEST_FULL=1, else what is named at the end: each is of a way through the code of its own."""

from moving import *

SMALL_MIB = memory_mib(8)
LARGE_MIB = SMALL_MIB + 128
GROW = ["resize", "--wait", "--vcpus", "3", "--memory", f"{LARGE_MIB}M"]
SHRINK = ["resize", "--wait", "--vcpus", "1", "--memory", f"{SMALL_MIB}M"]


def make_small(is_saved):
    case = Case("--vcpus-max", "3", "--memory-max", f"{LARGE_MIB}M", kept_mib=8, is_saved=is_saved)
    end_as(case, 3, LARGE_MIB)
    return case


def make_large(is_saved):
    """It was saved when it was small."""
    case = make_small(is_saved)
    berth(*GROW, str(case.job))
    end_as(case, 1, SMALL_MIB)
    return case


def end_as(case, vcpus, mib):
    """It has what it is counted with: what was asked for, if that is done, or what was saved."""
    def check_end(is_done, was_put_back):
        has = task(show(case.job))
        size = number(has, "vcpus") or 1, number(has, "memoryMib") or SMALL_MIB
        case.node, case.guest = has["node"], guests_on(has["node"])[0]
        await_size(case, *size)
        if is_done or was_put_back:
            check_equal(size, (1, SMALL_MIB) if was_put_back else (vcpus, mib), "its size")
    case.check_end = check_end


def await_size(case, vcpus, mib):
    """As its domain has it noted."""
    def has_size():
        xml = case.virsh(case.node, "dumpxml", case.guest)
        return f'vcpus="{vcpus}" memory-mib="{mib}"' in xml
    await_true(f"its domain has {vcpus} vCPUs and {mib} MiB", has_size, 60)


def steps_of_resize(question, vcpus, mib):
    return {
        "asked": lambda case: asked(case, "guest-resize ", *question),
        "at libvirt": lambda case: at_work(case, "guest-resize ", *question),
        "untold": lambda case: untold(case, "guest-resize ", lambda: await_size(case, vcpus, mib), *question),
    }


def make_for_elsewhere(is_saved):
    """Its node has no room for more."""
    case = Case("--vcpus-max", "3", is_saved=is_saved)
    blocker = sh("sleep 1000", "--memory", "96M", "--vcpus", "3", "--node", case.node, "--time", "30m")
    await_running(blocker)
    case.begin = lambda: case.ask("resize", "--wait", "--vcpus", "3")
    case.end = lambda: berth("cancel", str(blocker))

    def check_end(is_done, was_put_back):
        if is_done and not was_put_back:
            now = task(show(case.job))
            check_equal((now["node"], number(now, "vcpus")), (case.other, 3), "where it is, and what it has there")
    case.check_end = check_end
    return case


add_action("a growth", make_small, steps_of_resize(GROW, 3, LARGE_MIB))
add_action("a shrinkage", make_large, steps_of_resize(SHRINK, 1, SMALL_MIB))
add_moving("a growth by a move", make_for_elsewhere)
choose("a growth, at libvirt: berthd is killed", "a growth by a move, arrived: berthd is killed")

if __name__ == "__main__":
    main()
