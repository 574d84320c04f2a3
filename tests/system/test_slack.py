# SPDX-License-Identifier: Apache-2.0
"""The founding scenario: a job reserves much and uses little, another one starts in what it leaves, the first grows to its
reservation and gets it, and the other one goes on elsewhere, or later. Both have results that are verified."""

import contextlib

from counting import *

LARGE_MIB, GROWS_TO_MIB = 2200, 1700
FILLED_MIB = 700
# What takes minutes in a cluster takes seconds here.
TUNINGS = {"settle_usec": 3000000, "slack_plan_interval_usec": 1000000, "balance_interval_usec": 3000000,
           "cooldown_usec": 1000000, "cpu_headroom_permille": 0, "starved_permille": 1000}

# In what it has filled there are blocks, here and there, that it verifies in the end.
GROWING = f"""
mount -o remount,size=95% /dev/shm
blocks() {{
    for i in 0 1 2 3 4 5 6 7; do
        dd if=/dev/shm/data bs=64k count=1 skip=$((i * {GROWS_TO_MIB} * 2 - i)) 2>/dev/null
    done | sha256sum
}}
echo small
while [ ! -e /dev/shm/grow ]; do usleep 100000; done
dd if=/dev/zero of=/dev/shm/data bs=1M count={GROWS_TO_MIB} 2>/dev/null
for i in 0 1 2 3 4 5 6 7; do
    dd if=/dev/urandom of=/dev/shm/data bs=64k count=1 seek=$((i * {GROWS_TO_MIB} * 2 - i)) conv=notrunc 2>/dev/null
done
before=$(blocks)
echo large
while [ ! -e /dev/shm/stop ]; do usleep 100000; done
[ "$(blocks)" = "$before" ] || {{ echo "memory is damaged"; exit 9; }}
echo whole
"""


@contextlib.contextmanager
def tuned(**tunings):
    """berthd has these in its configuration, until the block ends."""
    path = os.path.join(LAB_DATA, "etc", "berthd.conf")
    with open(path) as file:
        text = file.read()

    def restart(with_text):
        with open(path, "w") as file:
            file.write(with_text)
        lab("restart", "berthd")
        await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
        await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 60)
    lines = "".join(f"{name}={value}\n" for name, value in tunings.items())
    try:
        restart(text.replace("[policy]\n", f"[policy]\n{lines}"))
        yield
    finally:
        restart(text)


def is_in_slack(job):
    return task(show(job)).get("opportunistic", False)


def cpu_weight(job):
    """Of its guest, against the others of its node."""
    shown = task(show(job))
    name = next(name for name in guests_on(shown["node"]) if name.startswith(f"berth-{job}-"))
    for line in lab_exec(shown["node"], "virsh", "schedinfo", name).splitlines():
        if line.startswith("cpu_shares"):
            return int(line.split(":")[1])
    raise Failed(f"{name} has no CPU weight")


def start_large(node):
    job = sh(GROWING, "--memory", f"{LARGE_MIB}M", "--vcpus", "3", "--guaranteed", "--node", node)
    await_running(job)
    return job


def start_in_slack(large):
    """What all LARGE ones leave is all the room that there is. It has begun to count."""
    job = start(8, "--time", "1h", "--vcpus", "2", lines=100000, memory=f"{2 * FILLED_MIB + 128}M")
    in_guest(job, f"dd if=/dev/zero of=/dev/shm/filled bs=1M count={FILLED_MIB}")
    node = node_of(job)
    check(is_in_slack(job), "it runs in slack")
    check(not is_in_slack(large[node]), "the other one is backed")
    weights = cpu_weight(large[node]), cpu_weight(job)
    check(weights[0] > 10 * weights[1], f"vCPUs of who is backed go first: {weights}")
    return job


def grow(job):
    in_guest(job, "touch /dev/shm/grow")
    await_true("it has grown", lambda: output(job)[0] == b"small\nlarge\n", 180)


def end(job):
    """One that has grown."""
    in_guest(job, "touch /dev/shm/stop")
    ended = wait_one(job)
    check_equal([ended["state"], output(job)[0]], ["COMPLETED", b"small\nlarge\nwhole\n"], "how it has ended")
    check_equal(number(task(ended), "epoch"), 1, "how often it was started")


@test("a job in another's slack is moved into that of a third when the other takes what it has reserved")
def moved():
    with tuned(**TUNINGS):
        large = {node: start_large(node) for node in nodes()}
        job = start_in_slack(large)
        first, light = node_of(job), cpu_weight(job)
        second = other(first)
        lab("kill", "berthd")
        await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
        await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 60)
        check(is_in_slack(job), "it is known to run in slack")
        grow(large[first])
        await_true("it runs on the other node", lambda: node_of(job) == second and "migration" not in task(show(job)), 120)
        check_equal([is_in_slack(job), cpu_weight(job)], [True, light], "it is in slack there, with its CPU weight")
        said = berth("events", str(job))  # the other one takes its CPUs back, too, while it grows
        check("pressure: " in said or "balance: " in said, f"why it was moved: {said}")
        await_more(job)
        end(large[first])
        berth("cancel", str(large[second]))
        await_true("it is backed", lambda: not is_in_slack(job), 60)
        await_true("its vCPUs have their weight", lambda: cpu_weight(job) > 10 * light, 60)
        stop(job)
        check_whole(job, 1, lines=100000, was_stopped=True)


@test("without room anywhere it is checkpointed, and goes on when there is, with nothing lost")
def saved():
    with tuned(**TUNINGS):
        berth("node", "cordon", "node2", "--reason", "there is to be no room")
        large = {"node1": start_large("node1")}
        job = start_in_slack(large)
        before = count(job)
        grow(large["node1"])
        await_true("it waits", lambda: show(job)["state"] == "PENDING", 120)
        check_equal(reason(show(job)), "REASON_EVICTED", "why")
        end(large["node1"])
        await_running(job, 120)
        await_more(job)
        check(count(job) >= before, "it has gone on with what it had")
        stop(job)
        check_whole(job, 2, lines=100000, was_stopped=True)
        berth("node", "uncordon", "node2")


main()
