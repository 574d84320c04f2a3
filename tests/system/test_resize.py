# SPDX-License-Identifier: Apache-2.0
"""berth resize: a running job gets more or less, on the spot or on a node that has room, and its processes see
and use it; nothing of what it does is lost, whoever is killed meanwhile."""

import hashlib
import re
import time

from harness import *

ROUNDS = by_size(1, 2, 10)
KILLS = by_size(1, 1, 5)
BLOCKS = 8

# Each line has its number and a link of a chain of checksums, both of which are on the disk before it is written; and
# one of the blocks of a file in memory is what was put there last, and gets something else. When it is told to, it
# holds 150 MiB: dd has taken them when it has something to write, and nobody reads it.
SCRIPT = f"""
chain=start
i=0
holder=
while [ ! -e /dev/shm/stop ]; do
    if [ -e /dev/shm/hold ] && [ -z "$holder" ]; then
        (dd if=/dev/zero bs=150M count=1 | sleep 1000) >/dev/null 2>&1 &
        holder=$!
    fi
    chain=$(echo "$chain $i" | sha256sum | cut -c 1-64)
    echo "$i $chain" >>journal
    sync
    b=$((i % {BLOCKS}))
    if [ $i -ge {BLOCKS} ]; then
        [ "$(sha256sum </dev/shm/$b)" = "$(cat /dev/shm/$b.sum)" ] || {{ echo "block $b is damaged"; exit 8; }}
    fi
    dd if=/dev/urandom of=/dev/shm/$b bs=64k count=1 2>/dev/null
    sha256sum </dev/shm/$b >/dev/shm/$b.sum
    echo "$i $chain"
    i=$((i+1))
    usleep 50000
done
echo "journal $(sha256sum <journal | cut -c 1-64)"
"""

# It begins with 1 vCPU and 128 MiB.
CEILING = ["--vcpus-max", "3", "--memory-max", "384M"]


def start():
    job = sh(SCRIPT, "--memory", "128M", *CEILING, "--disk", "64M", "--time", "30m")
    await_running(job)
    await_true("it has begun to count", lambda: output(job)[0], 120)
    return job


def check_whole(job):
    """It ends well when it is told to, on its first guest, without a line lost, doubled or wrong."""
    tell_to_end(job)
    ended = wait_one(job)
    check_equal(ended["state"], "COMPLETED", f"state of job {job} ({output(job)[0][-200:]})")
    check_equal(number(task(ended), "epoch"), 1, "its epoch: it was never started again")
    *lines, last = output(job)[0].decode().splitlines()
    link, journal = "start", ""
    for i, line in enumerate(lines):
        link = hashlib.sha256(f"{link} {i}\n".encode()).hexdigest()
        check_equal(line, f"{i} {link}", "a line of its chain")
        journal += f"{i} {link}\n"
    check_equal(last, f"journal {hashlib.sha256(journal.encode()).hexdigest()}", "its disk")
    say(f"{len(lines)} lines")


def shell(job, script):
    """One that has just come to its node takes no commands until its channel is open again."""
    def ask():
        said = run("exec", str(job), "--", "sh", "-c", script, text=True)
        comes = any(words in said.stderr for words in ("has not begun yet", "has not answered yet"))
        return None if said.returncode == 125 and comes else said
    said = await_true(f"job {job} takes a command", ask, 30)
    check_equal((said.returncode, said.stderr), (0, ""), f"how {script} ends")
    return said.stdout


def node_of(job):
    return task(show(job))["node"]


def other(node):
    return next(name for name in sorted(nodes()) if name != node)


def seen(job):
    """vCPUs and MiB of memory, as its guest has them. A kernel keeps some of the latter for itself."""
    vcpus, total = shell(job, "nproc; grep MemTotal /proc/meminfo").splitlines()
    return int(vcpus), int(total.split()[1]) // 1024


def await_vcpus(job, vcpus):
    """Its init sets to work what is plugged in."""
    await_true(f"the guest sees {vcpus} vCPUs", lambda: seen(job)[0] == vcpus, 60)


def shown(job):
    has = task(show(job))
    check("resize" not in has, f"nothing is under way: {has.get('resize')}")
    return number(has, "vcpus"), number(has, "memoryMib")


def resize(job, vcpus, memory_mib):
    said = berth("resize", "--vcpus", str(vcpus), "--memory", f"{memory_mib}M", "--wait", str(job), timeout=300)
    check_equal(said, f"job {job} has {vcpus} vCPU{'s' * (vcpus > 1)}, {memory_mib}M\n", "what it says")
    check_equal(shown(job), (vcpus, memory_mib) if (vcpus, memory_mib) != (1, 128) else (0, 0), "what is shown")


def fill(node, vcpus):
    """A job that keeps so many vCPUs of a node."""
    job = sh("sleep 1000", "--memory", "96M", "--vcpus", str(vcpus), "--node", node, "--time", "30m")
    await_running(job)
    return job


def stop(job):
    """Until what it had is free again."""
    had_guest = show(job)["state"] != "PENDING"
    berth("cancel", str(job))
    wait_one(job)
    if had_guest:
        await_released(job)


@test(f"a job gets more and less on the spot, {ROUNDS} times: it sees and uses it, and goes on")
def on_the_spot():
    job = start()
    here = node_of(job)
    first_vcpus, first_mib = seen(job)
    check_equal(first_vcpus, 1, "vCPUs that the guest sees")
    for _ in range(ROUNDS):
        resize(job, 3, 384)
        await_vcpus(job, 3)
        mib = seen(job)[1]
        check(first_mib + 240 <= mib <= first_mib + 256, f"memory that the guest sees: {first_mib}, then {mib} MiB")
        # More than it had in all, and more than one vCPU's worth of work.
        shell(job, "dd if=/dev/zero of=/dev/null bs=180M count=1 2>/dev/null")
        shell(job, "for i in 1 2 3; do head -c 1000000 /dev/zero | sha256sum >/dev/null & done; wait")
        resize(job, 1, 128)
        await_true("the guest sees no more than it began with", lambda: seen(job)[1] <= first_mib + 4, 20)
        resize(job, 2, 96)
    check_equal(node_of(job), here, "its node")
    check_whole(job)
    log = berth("events", str(job))
    check_equal(log.count("guest-resized on"), 3 * ROUNDS, "resizes in the event log")
    check_in("3 vCPUs, 384M", log, "the event log")
    check_in("by root", log, "the event log")


@test("a job whose node has no room for more gets it on the other one, and moves on with it")
def elsewhere():
    job = start()
    here, there = node_of(job), other(node_of(job))
    large = fill(here, 3)
    resize(job, 3, 256)
    check_equal(node_of(job), there, "its node")
    await_vcpus(job, 3)
    log = berth("events", str(job))
    check_in("guest-migrated on", log, "the event log")
    stop(large)
    before = seen(job)
    berth("migrate", str(job), "--wait", timeout=300)
    check_equal(node_of(job), here, "its node")
    check_equal((seen(job), shown(job)), (before, (3, 256)), "what it has, moved")
    resize(job, 1, 128)
    check(seen(job)[1] < before[1] - 100, f"memory that the guest sees: {seen(job)[1]}, and before {before[1]} MiB")
    resize(job, 2, 384)
    check_equal(seen(job)[0], 3, "vCPUs: those that it had, with the time of two")
    check_whole(job)


@test("what cannot be had is refused with the reason, and what is not given back is kept")
def refuses():
    job = start()
    plain = sh("sleep 1000", "--memory", "96M", "--time", "30m")
    await_running(plain)
    check_in("submitted for 3 at most", refused("resize", "--vcpus", "4", str(job)), "too many vCPUs")
    check_in("submitted for 384 MiB at most", refused("resize", "--memory", "385M", str(job)), "too much memory")
    check_in("submitted for 1 at most", refused("resize", "--vcpus", "2", str(plain)), "a job without a ceiling")
    check_in("64 to", refused("resize", "--memory", "32M", str(job)), "too little memory")
    check_in("what is the job to have", refused("resize", str(job)), "nothing said")
    waiting = sh("true", "--hold")
    check_in("does not run", refused("resize", "--vcpus", "1", str(waiting)), "a job that waits")
    stop(waiting)
    berth("freeze", str(plain))
    check_in("is frozen", refused("resize", "--memory", "64M", str(plain)), "a frozen job")
    stop(plain)
    blockers = [fill(name, 3 if name == node_of(job) else 4) for name in sorted(nodes())]
    check_in("neither has another node", refused("resize", "--vcpus", "2", str(job)), "full nodes")
    for blocker in blockers:
        stop(blocker)
    check_equal(shown(job), (0, 0), "what it has")
    resize(job, 1, 256)
    holds = "grep -qsE 'VmRSS:.*1[56][0-9]{4} kB' /proc/[0-9]*/status"
    shell(job, f"touch /dev/shm/hold; until {holds}; do usleep 100000; done")
    said = run("resize", "--memory", "128M", "--wait", str(job), timeout=300, text=True)
    check(said.returncode != 0, f"it is not had: {said.stdout}")
    check_in("do not leave so much free", said.stderr, "why")
    shell(job, holds)
    events = berth("events", str(job))
    check_in("guest-resize-failed", events, "the event log")
    # As it filled its memory, it may have been grown meanwhile.
    had = int(re.findall(r" guest-resized on .*, (\d+)M$", events, re.MULTILINE)[-1])
    check(256 <= had <= 384, f"what it had: {had} MiB")
    check_equal(shown(job), (1, had), "what it has kept")
    check_whole(job)


def add_kill(who):
    @test(f"{who} is killed in the midst of a resize, {KILLS} times, and it comes about")
    def kills():
        rng = seeded_random()
        job = start()
        for n in range(KILLS):
            wanted = (3, 384) if n % 2 == 0 else (2, 96)
            target = {"agent": node_of(job), "berthd": "berthd"}[who]
            pid = lab_daemon(target)
            berth("resize", "--vcpus", str(wanted[0]), "--memory", f"{wanted[1]}M", str(job))
            pause = rng.uniform(0, 1.5)
            time.sleep(pause)
            lab("kill", target)
            await_true(f"another {target} runs", lambda: lab_daemon(target) not in (None, pid), 60)
            await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
            await_true("its node is up", lambda: node_is_up(node_of(job)), 60)
            await_true("nothing is under way", lambda: "resize" not in task(show(job)), 120)
            check_equal(shown(job), wanted, f"what it has, {who} having been killed after {pause:.2f} s")
            await_vcpus(job, 3)
        check_whole(job)


for who in ("berthd", "agent"):
    add_kill(who)


if __name__ == "__main__":
    main()
