# SPDX-License-Identifier: Apache-2.0
"""Memory that a job needs no more is its host's again: what it has freed by itself, what the copying of its guest has
taken, and page cache by a balloon where its node is short of memory and berthd may use balloons."""

import re

from scenario import *

HELD_MIB, UNTOLD_MIB = 300, 32  # smaller changes are not reported
LARGE_MIB, GROWS_TO_MIB = 2200, 1700
COPIED_MIB, COPIED_LEFT_MIB = 700, 100
IN_SLACK_MIB, CACHED_MIB, GIVEN_BACK_MIB = 1000, 700, 64

HOLDS = f"""
mount -o remount,size=95% /dev/shm
dd if=/dev/zero of=/dev/shm/held bs=1M count={HELD_MIB} 2>/dev/null
echo holds
while [ ! -e /dev/shm/drop ]; do usleep 100000; done
rm /dev/shm/held
echo dropped
while [ ! -e /dev/shm/stop ]; do usleep 100000; done
"""


def host_mib(job):
    return number(task(show(job)), "usage", "hostMemoryMib")


@test("what a job has held and frees is its host's again")
def freed():
    job = sh(HOLDS, "--memory", "512M")
    await_running(job)
    await_true("it holds memory", lambda: output(job)[0] == b"holds\n", 120)
    await_true("its host counts that", lambda: host_mib(job) >= HELD_MIB, 60)
    held = host_mib(job)  # or less than it has by now: it may be a report from before it held all
    in_guest(job, "touch /dev/shm/drop")
    await_true("its host has it again", lambda: host_mib(job) <= HELD_MIB - UNTOLD_MIB, 120)
    say(f"{held} MiB of the host's or more while it held {HELD_MIB} MiB, {host_mib(job)} MiB after that")
    check_equal(output(job)[0], b"holds\ndropped\n", "what it has said")
    stop(job)
    check_equal(wait_one(job)["state"], "COMPLETED", "how it has ended")


def occupied_mib(job):
    pid_file = f"/run/libvirt/qemu/berth-{job}-0-0-*.pid"
    status = lab_exec(task(show(job))["node"], "sh", "-c", f"cat /proc/$(cat {pid_file})/status")
    return int(re.search(r"RssAnon:\s*(\d+) kB", status)[1]) / 1024


# Some kernels take memory for what is only read of it. Each copy reads all of a guest's memory, and is made before it goes on.
@test("what a move, a checkpoint and a restore take of its host beyond what a job uses is its host's again")
def copied():
    job = start(8, "--time", "1h", lines=100000, memory=f"{COPIED_MIB}M")
    await_more(job)
    settled = await_true("its host does not hold much more than it uses",
                         lambda: (mib := occupied_mib(job)) < COPIED_MIB / 2 and mib, 60)
    for command in (["migrate"], ["checkpoint"], ["restore"]):
        berth(*command, str(job), "--wait")
        taken = occupied_mib(job)
        if taken < settled + COPIED_LEFT_MIB:
            say(f"{command[0]}: this host's kernel takes no memory for what is only read of it")
        await_more(job)
        await_true(f"nor after a {command[0]}", lambda: occupied_mib(job) < settled + COPIED_LEFT_MIB, 90)
        say(f"{command[0]}: {settled:.0f} MiB of its host's before it, {taken:.0f} MiB with it, {occupied_mib(job):.0f} MiB after it")
        used = number(task(show(job)), "usage", "memoryPeakMib")
        check(used < COPIED_MIB / 2, f"what was taken for that is not counted as the job's ({used} MiB)")
    stop(job)
    check_whole(job, 2, lines=100000, was_stopped=True)


def kinds(job):
    return [json.loads(line)["kind"] for line in berth("events", "--json", str(job)).splitlines()]


@test("page cache of a job in slack makes room for who grows into what he has reserved: by a balloon, and nobody is moved")
def ballooned():
    with configured("guests", balloons="yes"), tuned(**TUNINGS), cordoned("node2"):
        large = start_growing(GROWS_TO_MIB, LARGE_MIB, "--vcpus", "3", "--guaranteed", "--node", "node1")
        job = start(8, "--time", "1h", "--disk", "2G", lines=100000, memory=f"{IN_SLACK_MIB}M")
        check(is_in_slack(job), "it runs in slack")
        in_guest(job, f"dd if=/dev/zero of=cached bs=1M count={CACHED_MIB}; sync")
        await_true("its host holds its cache", lambda: host_mib(job) >= CACHED_MIB, 60)
        cached = host_mib(job)
        begin_to_grow(large)
        await_true("its balloon keeps memory from it", lambda: number(task(show(job)), "balloonMib") > 0, 120)
        await_grown(large)
        await_true("its host has some of that again", lambda: host_mib(job) <= cached - GIVEN_BACK_MIB, 60)
        say(f"{cached} MiB of the host's with cache, {host_mib(job)} MiB with a balloon of {number(task(show(job)), 'balloonMib')} MiB")
        check_equal(number(task(end_grown(large)), "epoch"), 1, "how often the other one was started")
        check(not {"GUEST_MIGRATE", "GUEST_CHECKPOINT"} & set(kinds(job)), "it was neither moved nor saved")
        await_more(job)
        stop(job)
        check_whole(job, 1, lines=100000, was_stopped=True)


main()
