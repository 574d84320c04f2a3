# SPDX-License-Identifier: Apache-2.0
"""A cluster in which little takes long: berthd with tunings of its own, and jobs that grow to what they have reserved."""

import contextlib

from counting import *

# What takes minutes in a cluster takes seconds here.
TUNINGS = {"settle_usec": 3000000, "slack_plan_interval_usec": 1000000, "balance_interval_usec": 3000000,
           "cooldown_usec": 1000000, "cpu_headroom_permille": 0, "starved_permille": 1001,
           "balance_gain_min_permille": 1000}  # who fills his memory uses a CPU, and would be moved for that

# It takes GROWS_TO MiB when it is told to. In what it has filled there are blocks, here and there, that it verifies in the end.
GROWING = """
mount -o remount,size=95% /dev/shm
blocks() {
    for i in 0 1 2 3 4 5 6 7; do
        dd if=/dev/shm/data bs=64k count=1 skip=$((i * GROWS_TO * 2 - i)) 2>/dev/null
    done | sha256sum
}
echo small
while [ ! -e /dev/shm/grow ]; do usleep 100000; done
dd if=/dev/zero of=/dev/shm/data bs=1M count=$GROWS_TO 2>/dev/null
for i in 0 1 2 3 4 5 6 7; do
    dd if=/dev/urandom of=/dev/shm/data bs=64k count=1 seek=$((i * GROWS_TO * 2 - i)) conv=notrunc 2>/dev/null
done
before=$(blocks)
echo large
while [ ! -e /dev/shm/stop ]; do usleep 100000; done
[ "$(blocks)" = "$before" ] || { echo "memory is damaged"; exit 9; }
echo whole
"""


@contextlib.contextmanager
def configured(section, **values):
    """berthd has these in that section of its configuration, until the block ends."""
    path = os.path.join(LAB_DATA, "etc", "berthd.conf")
    with open(path) as file:
        text = file.read()

    def restart(with_text):
        with open(path, "w") as file:
            file.write(with_text)
        lab("restart", "berthd")
        await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
        await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 60)
    lines = "".join(f"{name}={value}\n" for name, value in values.items())
    check_in(f"[{section}]\n", text, "the sections of berthd.conf")
    try:
        restart(text.replace(f"[{section}]\n", f"[{section}]\n{lines}"))
        yield
    finally:
        restart(text)


def tuned(**tunings):
    return configured("policy", **tunings)


@contextlib.contextmanager
def cordoned(node):
    berth("node", "cordon", node, "--reason", "there is to be no room")
    try:
        yield
    finally:
        berth("node", "uncordon", node)


def is_in_slack(job):
    return task(show(job)).get("opportunistic", False)


def start_growing(grows_to_mib, memory_mib, *options):
    job = sh(f"GROWS_TO={grows_to_mib}\n{GROWING}", "--memory", f"{memory_mib}M", *options)
    await_running(job)
    await_true("it has begun", lambda: output(job)[0] == b"small\n", 60)
    return job


def begin_to_grow(job):
    in_guest(job, "touch /dev/shm/grow")


def await_grown(job, timeout=180):
    await_true("it has grown", lambda: output(job)[0] == b"small\nlarge\n", timeout)


def end_grown(job):
    """It ends well; returns what is known of it."""
    stop(job)
    ended = wait_one(job)
    check_equal([ended["state"], output(job)[0]], ["COMPLETED", b"small\nlarge\nwhole\n"], "how it has ended")
    return ended


@contextlib.contextmanager
def node_tuned(node, line):
    """Its agent has LINE among what its guests get, until the block ends."""
    path = os.path.join(LAB_DATA, "etc", f"{node}.conf")
    with open(path) as file:
        text = file.read()

    def restart(with_text):
        with open(path, "w") as file:
            file.write(with_text)
        pid = lab_daemon(node)
        lab("kill", node)
        await_true("another agent runs", lambda: lab_daemon(node) not in (None, pid), 60)
        await_true(f"{node} joins again", lambda: node_is_up(node), 60)
    try:
        restart(text.replace("[guests]\n", f"[guests]\n{line}\n"))
        yield
    finally:
        restart(text)
