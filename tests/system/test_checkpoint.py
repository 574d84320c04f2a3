# SPDX-License-Identifier: Apache-2.0
"""berth checkpoint, restore, freeze --to-disk and thaw --to: a job that checks its output's chain, its disk, its memory
and its clock is saved while it runs, goes on from that when its host has lost power, is put back on request, and goes
through storage to another node. Nothing is left in the pool."""

import json

from counting import *

KEPT_MIB = by_size(8, 64, 200)
TIMES = by_size(2, 3, 20)
ENDLESS = 1000000
PERIODS = by_size(1, 1, 4)
ROUNDS = by_size(3, 5, 100)
MEMORY_MIB, TOUCHED_MIB = by_size((256, 48), (1024, 150), (2048, 300))
OWN_MIB = 100  # at most, of the guest's kernel and init


def checkpoints(job):
    return [json.loads(line) for line in berth("checkpoint", "ls", str(job), "--json").splitlines()]


def left_in_pool(job):
    return [name for name in lab_exec("host", "rbd", "--pool", "berth", "ls").split()
            if f"-{job}-" in name]


def await_empty(job):
    await_true("nothing of it is left in the pool", lambda: not left_in_pool(job), 60)


@test("a job is checkpointed while it runs, frozen to disk, and goes on on the other node")
def to_disk():
    job = start(KEPT_MIB)
    for i in range(TIMES):
        check_in(f"checkpoint {i + 1}", berth("checkpoint", "--wait", str(job)), "what it says")
        await_more(job)
    kept = checkpoints(job)
    check_equal([c["serial"] for c in kept], list(range(max(TIMES - 1, 1), TIMES + 1)), "those that are kept")
    first = node_of(job)
    berth("freeze", "--to-disk", str(job))
    check_equal(show(job)["state"], "SUSPENDED", "its state")
    await_true("its node is released", lambda: f"berth-{job}-0-0-1" not in guests_on(first))
    check_in("to disk", berth("show", str(job)), "berth show")
    # Ceph may still count the client of the QEMU that was just ended: then its start is tried again, anywhere.
    berth("thaw", "--to", other(first), str(job))
    await_true("it goes on", lambda: show(job)["state"] == "RUNNING", 120)
    await_more(job)
    check_whole(job, epoch=starts(task(show(job))))
    await_empty(job)


@test("a job that is saved every minute goes on from the newest checkpoint, on another node, when its host has lost power")
def host_dies():
    job = start(KEPT_MIB, "--checkpoint-every", "1m", "--checkpoint-keep", "2", lines=ENDLESS)
    await_true("it was saved by itself", lambda: [c["serial"] for c in checkpoints(job)][-1:] == [PERIODS], 75 * PERIODS)
    check_equal([c["serial"] for c in checkpoints(job)], list(range(max(PERIODS - 1, 1), PERIODS + 1)), "those that are kept")
    await_more(job)
    first = node_of(job)
    lab("stop", f"host/{first}")
    try:
        await_true("it goes on elsewhere", lambda: node_of(job) == other(first)
                   and show(job)["state"] == "RUNNING", 240)
        await_more(job)
        stop(job)
        check_whole(job, epoch=starts(task(show(job))), lines=ENDLESS, was_stopped=True)
    finally:
        lab("start", f"host/{first}")
        await_true("the node is back", lambda: node_is_up(first), 120)
    await_empty(job)


def drawn(job):
    """What it has drawn at random for each of its lines."""
    words = [line.split() for line in output(job)[0].decode().splitlines()]
    return {int(w[0]): w[3] for w in words if len(w) == 4}


@test("a running job is put back to a checkpoint, twice, and each time draws other random numbers than before")
def put_back():
    more = 8
    job = start(KEPT_MIB)
    berth("checkpoint", "--wait", str(job))
    # What it had drawn already, and had not written; and some until its kernel has heard of it.
    since = max(drawn(job)) + 1 + more // 2
    lives = []
    for _ in range(2):
        await_true("it has come so far", lambda: max(drawn(job)) >= since + more, 60)
        lives.append(drawn(job))
        result = run("restore", "--wait", str(job), "1")
        check_in("was put back", result.stdout.decode(), "what it says")
        check_in(f"job {job} goes back to checkpoint 1, taken 20", result.stderr.decode(), "what it says before")
    await_true("it has come so far", lambda: max(drawn(job)) >= since + more, 60)
    lives.append(drawn(job))
    for i in range(since, since + more):
        check_equal(len({life[i] for life in lives}), len(lives), f"different numbers of its line {i}: {lives}")
    check_whole(job, epoch=starts(task(show(job))))
    await_empty(job)


LISTS = ("rbd_children", "rbd_trash")  # librbd's own, which it makes when there is first something for them


def stored():
    """What is in the pool, but for output, which outlives its jobs: objects, and what librbd's lists have."""
    objects = set(lab_exec("host", "rados", "--pool", "berth", "ls").splitlines())
    listed = [lab_exec("host", "rados", "--pool", "berth", "listomapvals", name) for name in LISTS if name in objects]
    return {name for name in objects if name not in LISTS and not name.startswith("log-")} | set(filter(None, listed))


def used_mib(image):
    """By its objects, as Ceph counts them."""
    said = json.loads(lab_exec("host", "rbd", "--pool", "berth", "du", "--format", "json", image))
    return said["images"][0]["used_size"] / 2**20


@test(f"{ROUNDS} checkpoints of a guest that touched {TOUCHED_MIB} MiB of {MEMORY_MIB} have what it touched, and leave nothing")
def leaves_nothing():
    before = stored()
    job = sh("echo ready; while [ ! -e /dev/shm/stop ]; do usleep 100000; done", "--memory", f"{MEMORY_MIB}M")
    await_running(job)
    in_guest(job, f"dd if=/dev/urandom of=/dev/shm/touched bs=1M count={TOUCHED_MIB}")
    for serial in range(1, ROUNDS + 1):
        berth("checkpoint", "--wait", str(job))
        saved = checkpoints(job)
        check_equal([each["serial"] for each in saved], [serial], "its checkpoints")
        told, used = number(saved[0], "memoryBytes") / 2**20, used_mib(f"ckpt-{job}-0-{serial}")
        if serial in (1, ROUNDS):
            say(f"checkpoint {serial} takes {told:.0f} MiB as berth says, {used:.0f} MiB as Ceph says")
        for mib in (told, used):
            check(TOUCHED_MIB < mib < TOUCHED_MIB + OWN_MIB, f"{mib:.0f} MiB are stored: {TOUCHED_MIB} and the guest's own")
        berth("checkpoint", "rm", str(job), str(serial))
        await_true("it is removed", lambda: not checkpoints(job))
    stop(job)
    check_equal(wait_one(job)["state"], "COMPLETED", "its state")
    await_true("its disk is gone", lambda: not left_in_pool(job), 120)
    check_equal(stored() - before, set(), "objects that are left in the pool")


# Its command notes the signals that it gets; what it has started has no part in them.
SIGNALLED = """
trap 'echo saving; sync' USR1
trap 'echo restored' USR2
echo ready
i=0
while [ ! -e /dev/shm/stop ]; do usleep 100000; i=$((i+1)); done
echo done
"""


@test("a job's command is told before its checkpoint and after it was put back, and nobody else")
def signals():
    job = sh(SIGNALLED, "--memory", "128M", "--checkpoint-signal", "USR1@3s", "--restore-signal", "USR2")
    await_running(job)
    await_true("it is ready", lambda: output(job)[0] == b"ready\n", 120)
    berth("checkpoint", "--wait", str(job))
    await_true("it has got ready", lambda: output(job)[0] == b"ready\nsaving\n")
    berth("restore", "--wait", str(job))
    # What it wrote before its checkpoint is part of it.
    await_true("it was told", lambda: output(job)[0] == b"ready\nsaving\nrestored\n", 60)
    stop(job)
    check_equal(wait_one(job)["state"], "COMPLETED", "its state")
    check_equal(output(job)[0], b"ready\nsaving\nrestored\ndone\n", "what it wrote")


main()
