# SPDX-License-Identifier: Apache-2.0
"""All that operators do with a running job, with one job, one after the other: it is saved live between any two."""

from counting import *

KEPT_MIB = by_size(8, 64, 200)
MOVES = by_size(2, 2, 20)
LINES_MAX = 1000000


def epoch(job):
    return number(task(show(job)), "epoch")


@test(f"one job is moved {MOVES} times, frozen, frozen to disk and thawed elsewhere, resized, and saved all the time")
def everything():
    memory = memory_mib(KEPT_MIB)
    job = start(KEPT_MIB, "--vcpus-max", "2", "--memory-max", f"{memory + 256}M", "--time", "2h", lines=LINES_MAX)
    saved = 0

    def save():
        nonlocal saved
        saved += 1
        check_in(f"checkpoint {saved}", berth("checkpoint", "--wait", str(job), timeout=300), "what it says")
        await_more(job)

    def move():
        there = other(node_of(job))

        # As it fills its memory, it may just be given more.
        def is_taken():
            said = run("migrate", str(job), "--to", there, "--wait", text=True, timeout=300)
            if "is being resized: try again" in said.stderr:
                return False
            check_equal(said.returncode, 0, f"status of berth migrate ({said.stderr})")
            return True
        await_true("it is moved", is_taken, 60)
        check_equal(node_of(job), there, "its node")
        await_more(job)

    def resize(vcpus, memory):
        berth("resize", "--vcpus", vcpus, "--memory", memory, "--wait", str(job), timeout=300)
        await_more(job)

    for i in range(MOVES):
        move()
        save()
        if i == 0:
            resize("2", f"{memory + 256}M")
        elif i == MOVES // 2:
            resize("1", f"{memory}M")
    berth("freeze", str(job))
    berth("thaw", str(job))
    await_more(job)
    save()
    resize("2", f"{memory + 256}M")
    there = other(node_of(job))
    berth("freeze", "--to-disk", str(job), timeout=300)
    saved += 1
    check_equal(show(job)["state"], "SUSPENDED", "its state")
    await_true("its node is released", lambda: not any(f"berth-{job}-" in name for node in nodes()
                                                       for name in guests_on(node)), 60)
    berth("thaw", "--to", there, str(job))
    await_true("it goes on", lambda: show(job)["state"] == "RUNNING", 120)
    await_more(job)
    has = task(show(job))
    check_equal((number(has, "vcpus"), number(has, "memoryMib")), (2, memory + 256), "what it is counted with")
    check_equal(berth("exec", str(job), "--", "nproc").strip(), "2", "the vCPUs that it has")
    resize("1", f"{memory}M")
    move()
    save()
    say(f"{count(job)} lines, {saved} checkpoints, epoch {epoch(job)}")
    stop(job)
    check_whole(job, epoch=epoch(job), lines=LINES_MAX, was_stopped=True)


main()
