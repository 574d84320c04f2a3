# SPDX-License-Identifier: Apache-2.0
"""Jobs that come to a limit: of memory, they are grown where they are, grown by a move, or stand still until their user
gives them more; of vCPUs, they are grown; of time, they stand still as a checkpoint until they are extended. None of them loses what it has
done."""

import contextlib
import hashlib
import re

from counting import *
from scenario import tuned

OVERHEAD_MIB = 96
LITTLE_MIB = 8  # too little for it to be grown by that
BLOCK_MIB = 128  # Linux takes memory in these
LINES = by_size(100, 200, 400)

# It fills a file system in memory with blocks of 1 MiB, slowly where little is left, and goes through all of them in
# the end. What was in each is said by a digest that it has put out by then. It begins at once, or WHEN there is a file.
FILLS = """
mount -o remount,size=95% /dev/shm || exit 7
until [ -e $WHEN ]; do usleep 100000; done
i=0
while [ $i -lt $BLOCKS ]; do
    mount -o remount,size=95% /dev/shm || exit 7 # of what it has by now
    dd if=/dev/urandom of=/dev/shm/$i bs=1M count=1 2>/dev/null || exit 8
    echo "$i $(sha256sum </dev/shm/$i | cut -c 1-64)"
    left=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
    [ $left -gt 16 ] || sleep 2
    i=$((i+1))
done
echo all
i=0
while [ $i -lt $BLOCKS ]; do
    echo "$i $(sha256sum </dev/shm/$i | cut -c 1-64)"
    i=$((i+1))
done
"""

# It keeps much, and reads a file again and again that does not fit into the rest beside it. Two read it at once: the kernel counts
# a wait for what it had put out as a lack of memory if that was used more than once.
THRASHES = """
mount -o remount,size=95% /dev/shm || exit 7
dd if=/dev/urandom of=/dev/shm/kept bs=1M count=$KEPT 2>/dev/null || exit 8
kept=$(sha256sum </dev/shm/kept)
dd if=/dev/urandom of=file bs=1M count=$FILE 2>/dev/null || exit 9
file=$(sha256sum <file)
i=0
until [ -e /dev/shm/enough ]; do
    n=0
    while [ $n -lt 20 ] && [ ! -e /dev/shm/enough ]; do # of which nearly all is waiting
        cat file >/dev/null &
        cat file >/dev/null
        wait
        n=$((n+1))
    done
    [ "$(sha256sum <file)" = "$file" ] || { echo "the file is damaged"; exit 10; }
    echo $i
    i=$((i+1))
done
[ "$(sha256sum </dev/shm/kept)" = "$kept" ] || { echo "memory is damaged"; exit 11; }
echo whole
"""


# It fills a file system in memory, steadily and with something left until the end, and then lacks memory as above.
FILLS_STEADILY = """
mount -o remount,size=95% /dev/shm || exit 7
i=0
while [ $i -lt $KEPT ]; do
    mount -o remount,size=95% /dev/shm || exit 7 # of what it has by now
    dd if=/dev/zero of=/dev/shm/$i bs=1M count=2 2>/dev/null || exit 8
    sleep $PAUSE
    i=$((i+2))
done
echo filled
dd if=/dev/zero of=file bs=1M count=$FILE 2>/dev/null || exit 9
while :; do
    cat file >/dev/null
done
"""


def free_mib(node):
    known = nodes()[node]
    return number(known, "info", "guestMemoryMib") - number(known, "memoryReservedMib")


def fill(node, left_mib):
    """A job that leaves so much of an empty node's memory to others."""
    # The guest of a job that has ended is there for a moment yet.
    await_true(f"{node} is empty", lambda: number(nodes()[node], "memoryReservedMib") == 0, 60)
    job = sh("sleep 3000", "--memory", f"{free_mib(node) - OVERHEAD_MIB - left_mib}M", "--node", node, "--time", "60m")
    await_running(job)
    return job


def give_back(job):
    """What it had is free again."""
    berth("cancel", str(job))
    wait_one(job)
    await_released(job)


def start_filling(blocks, *options, when="/"):
    job = sh(f"BLOCKS={blocks}\nWHEN={when}\n{FILLS}", "--memory", "128M", "--memory-max", "384M", "--time", "30m", *options)
    await_running(job)
    return job


def check_filled(job, blocks):
    ended = wait_one(job, timeout=600)
    check_equal(ended["state"], "COMPLETED", f"state of job {job} ({output(job)[0][-200:]}; {berth('events', str(job))})")
    check_equal(number(task(ended), "epoch"), 1, "its epoch: it was never started again")
    lines = output(job)[0].decode().splitlines()
    check_equal(lines[blocks], "all", "its middle")
    check_equal(lines[:blocks], lines[blocks + 1:], "what it has kept")
    check_equal([line.split()[0] for line in lines[:blocks]], [str(i) for i in range(blocks)], "its blocks")


def start_thrashing(*options):
    job = sh(f"KEPT=60\nFILE=60\n{THRASHES}", "--memory", "128M", "--disk", "128M", "--time", "30m",
             *options)
    await_running(job)
    return job


def log_of(job):
    return berth("events", str(job))


# By steps of half of what it has; or to its ceiling at once, if it was seen to fill that much in the time that growing takes.
@test("a job that comes to the limit of its memory is grown where it is, by steps or as fast as it fills it")
def grown_in_place():
    job = start_filling(150)
    here = node_of(job)
    check_filled(job, 150)
    log = log_of(job)
    check_equal(node_of(job), here, "its node")
    check("guest-migrate" not in log, f"it was not moved: {log}")
    sizes = [int(mib) for mib in re.findall(r"guest-resized on \S+: .*, (\d+)M", log)]
    check(len(sizes) >= 2 or (len(sizes) == 1 and 384 - sizes[0] < BLOCK_MIB), f"it was grown as far as it had to be: {log}")
    check_in("at-limit", log, "why")


def memory_mib(job):
    return number(task(show(job)), "memoryMib")


@test("a job that fills its memory steadily, beyond its ceiling, is grown block by block to that, and then stands still")
def grown_to_its_ceiling():
    for pause in by_size((0.25,), (0.25,), (0.25, 1)):
        job = sh(f"KEPT=424\nFILE=100\nPAUSE={pause}\n{FILLS_STEADILY}", "--memory", "128M", "--memory-max", "512M",
                 "--disk", "160M", "--on-limit", "freeze", "--time", "30m")
        await_running(job)
        await_true(f"job {job} stands still ({pause} s for 2 MiB)", lambda: show(job)["state"] != "RUNNING", 900)
        log = log_of(job)
        check_equal(show(job)["state"], "SUSPENDED", f"its state ({output(job)}; {log})")
        check_equal(output(job)[0], b"filled\n", f"what it came to ({log})")
        check_equal(memory_mib(job), 512, f"its memory ({log})")
        check(log.count("guest-resized") >= 3, f"it was grown more than once: {log}")
        check_in("at-limit", log, "why")
        berth("cancel", str(job))
        wait_one(job)


@test("a ceiling that is less than 128 MiB above what a job begins with is reached, and not exceeded")
def grown_by_less_than_a_block():
    total = "awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo >&2\n"
    job = sh(f"BLOCKS=160\nWHEN=/\n{total}{FILLS}{total}", "--memory", "128M", "--memory-max", "192M", "--time", "30m")
    await_running(job)
    check_filled(job, 160)
    before, after = map(int, output(job)[1].split())
    check_equal(after - before, 64, f"what its kernel has got ({before} MiB, {after} MiB)")


@test("a job that comes to the limit of its memory on a full node is moved to where there is more, and grown there")
def grown_by_a_move():
    here = sorted(nodes())[0]
    blocker = fill(here, 128 + OVERHEAD_MIB + 16)
    try:
        there = fill(other(here), 16)  # so that it begins where it just fits
        try:
            job = start_filling(130, "--node", ",".join(sorted(nodes())), when="/dev/shm/go")
            check_equal(node_of(job), here, f"where it began ({log_of(job)})")
        finally:
            give_back(there)
        berth("exec", str(job), "--", "touch", "/dev/shm/go")
        check_filled(job, 130)
    finally:
        give_back(blocker)
    log = log_of(job)
    check_equal(node_of(job), other(here), "its node")
    check_in("guest-migrated", log, "the event log")
    check_in("guest-resized", log, "the event log")


@contextlib.contextmanager
def nearly_full():
    """The first node has room for a guest of 128 MiB and a little more, and the others have that little alone."""
    first, *others = sorted(nodes())
    blockers = [fill(first, 128 + OVERHEAD_MIB + LITTLE_MIB)] + [fill(name, LITTLE_MIB) for name in others]
    try:
        yield
    finally:
        for blocker in blockers:
            give_back(blocker)


def await_still(job):
    await_true(f"job {job} stands still", lambda: show(job)["state"] == "SUSPENDED", 300)


def check_thrashed(job):
    """It has enough now, and ends with all that it kept."""
    berth("exec", str(job), "--", "touch", "/dev/shm/enough")
    ended = wait_one(job, timeout=600)
    check_equal(ended["state"], "COMPLETED", f"state of job {job} ({output(job)[0]}; {log_of(job)})")
    check_equal(output(job)[0].splitlines()[-1], b"whole", "its output")
    check_equal(number(task(ended), "epoch"), 1, "its epoch")


@test("a job that cannot be grown stands still, says why, and finishes with what its user gives it")
def frozen_and_resized():
    with nearly_full():
        job = start_thrashing("--memory-max", "384M")
        await_still(job)
        shown = berth("show", str(job))
        check_in("when there is some, it is given more, up to 384 MiB, and goes on", shown, "berth show")
        check_in("berth thaw", shown, "berth show")
        used = re.search(r"^Memory +(\d+)M when it was frozen, and \d+M of its node's$", shown, re.MULTILINE)
        check(used and 0 < int(used[1]) <= 128, f"what it had taken of its memory: {shown}")
        check_in("is frozen", refused("resize", "--memory", "96M", str(job)), "less")
        check_in("neither has another node", refused("resize", "--memory", "384M", str(job)), "what there is not")
        check_equal(show(job)["state"], "SUSPENDED", "its state after that")
        more = f"{128 + LITTLE_MIB}M"
        check_in(more, berth("resize", "--memory", more, "--wait", str(job), timeout=300), "what it says")
        check_thrashed(job)


@test("a job that stands still at its limit goes on by itself when there is room for more")
def frozen_until_there_is_room():
    with nearly_full():
        job = start_thrashing("--memory-max", "384M")
        await_still(job)
    await_true("it goes on", lambda: show(job)["state"] == "RUNNING", 300)
    check_thrashed(job)
    check("guest-resize on" in log_of(job).split(" SUSPENDED ")[-1], f"it was given more where it stood still: {log_of(job)}")


@test("a job that fills its memory with data of its own, where there is no room for more, stands still before it is full, and goes on")
def frozen_before_it_is_full():
    with nearly_full():
        job = start_filling(200)
        await_still(job)
        check_in(" at-limit: ", log_of(job), "the event log")
    check_filled(job, 200)


@test("a job that is to end at the limit of its memory does, as OUT_OF_MEMORY")
def killed():
    job = start_thrashing("--on-limit", "kill")
    ended = wait_one(job, timeout=300)
    check_equal(ended["state"], "OUT_OF_MEMORY", f"state ({log_of(job)})")
    check_equal(reason(ended), "REASON_MEMORY_LIMIT", "reason")
    check_in("--on-limit=kill", task(ended)["reasonText"], "the reason in words")


# Two that want a vCPU each, until both have one.
SPINS = """
while :; do :; done &
while :; do :; done &
while [ $(nproc) -lt 2 ]; do sleep 1; done
echo "$(nproc) vCPUs"
kill %1 %2
"""


@test("a job whose vCPU does not do for what it runs is grown where it is, and uses what it has got")
def grown_by_a_vcpu():
    with tuned(limit_cpu_usec=10000000, limit_cpu_used_permille=100):  # others want the CPUs of this machine, too
        job = sh(SPINS, "--memory", "128M", "--vcpus", "1", "--vcpus-max", "2", "--time", "30m")
        ended = wait_one(job, timeout=600)
    log = log_of(job)
    check_equal(ended["state"], "COMPLETED", f"state of job {job} ({output(job)[0][-200:]}; {log})")
    check_equal(output(job)[0], b"2 vCPUs\n", "what it sees")
    check_equal(number(task(ended), "epoch"), 1, "its epoch: it was never started again")
    check("guest-migrate" not in log, f"it was not moved: {log}")
    check_in("at-limit", log, "why")


@test("a job at its time limit is checkpointed, leaves its node, and goes on when it is extended, twice")
def extended():
    job = start(8, "--time", "15s", lines=LINES * 100)
    for epoch in (1, 2):
        await_true("it stands still", lambda: show(job)["state"] == "SUSPENDED", 120)
        check_equal(reason(show(job)), "REASON_TIME_LIMIT", "reason")
        await_true("its node is released",
                   lambda: not any(f"berth-{job}-0-0-{epoch}" in guests_on(name) for name in nodes()), 60)
        check_in("berth extend", berth("show", str(job)), "berth show")
        check_in("berth extend", refused("thaw", str(job)), "a thaw")
        check_in("it has used", refused("extend", "--time", "1s", str(job)), "less than it has used")
        lines = count(job)
        check_in(f"job {job} may run for", berth("extend", "--by", "15s" if epoch == 1 else "30m", str(job)), "what it says")
        await_true("it goes on", lambda: show(job)["state"] == "RUNNING" and count(job) > lines, 180)
    stop(job)
    check_whole(job, epoch=number(task(show(job)), "epoch"), lines=LINES * 100, was_stopped=True)
    check_in("job-extend-requested by root: 00:00:30, before 00:00:15", log_of(job), "the event log")


if __name__ == "__main__":
    main()
