# SPDX-License-Identifier: Apache-2.0
"""A job that shows what was done to it: whether it has run on without a gap, once, in one place, with its disk,
memory and clock as they were."""

import hashlib
import os
import subprocess

from harness import *

LINES = by_size(60, 150, 600)
STRIDE = 7919  # between the blocks that are changed one after the other: a prime

# Each line has its number, a link of a chain of checksums, the guest's clock, and what nobody could write a second
# time. Before it is written all of it is on the disk; and one of the blocks that are kept in memory is what was put there
# last, and gets something else. In the end all of them are checked, and the disk told, as it is
# on the disk: whoever else has written there would have left other lines than those that were put out. So is the disk's
# log of epochs: the one in which it was begun, and those that note_epoch() has noted.
SCRIPT = f"""
echo $BERTH_EPOCH >epochs
sync epochs
mkdir /dev/shm/kept
i=0
while [ $i -lt $KEPT ]; do
    dd if=/dev/urandom of=/dev/shm/kept/$i bs=256k count=1 2>/dev/null || exit 7
    i=$((i+1))
done
sha256sum /dev/shm/kept/* >/dev/shm/sums
chain=start
i=0
echo ready
while [ $i -lt $LINES ] && [ ! -e /dev/shm/stop ]; do
    chain=$(echo "$chain $i" | sha256sum | cut -c 1-64)
    read once </proc/sys/kernel/random/uuid
    line="$i $chain $(date +%s) $once"
    echo "$line" >>journal
    sync journal
    n=$((i * {STRIDE} % KEPT + 1))
    sum=$(sed -n ${{n}}p /dev/shm/sums)
    block=${{sum#*  }}
    [ "$(sha256sum $block)" = "$sum" ] || {{ echo "block $n is damaged"; exit 8; }}
    dd if=/dev/urandom of=$block bs=256k count=1 conv=notrunc 2>/dev/null
    sed -i "${{n}}s|.*|$(sha256sum $block)|" /dev/shm/sums
    echo "$line"
    i=$((i+1))
    usleep $PAUSE
done
sha256sum -c /dev/shm/sums >/dev/null || {{ echo "memory is damaged"; exit 9; }}
[ $(grep -c . /dev/shm/sums) = $KEPT ] || {{ echo "blocks are missing"; exit 9; }}
sync
echo 3 >/proc/sys/vm/drop_caches || exit 10
echo "journal $(sha256sum <journal | cut -c 1-64) $(date +%s) $(grep -c . journal) $(sort journal | uniq -d | grep -c .)" $(cat epochs)
"""


def memory_mib(kept_mib):
    """A file system in memory takes half of it."""
    return max(256, 2 * kept_mib + 128)


def start(kept_mib=8, *options, lines=LINES, pause_usec=30000, memory=None):
    job = sh(f"KEPT={kept_mib * 4}\nLINES={lines}\nPAUSE={pause_usec}{SCRIPT}", "--memory",
             memory or f"{memory_mib(kept_mib)}M", "--disk", "64M", *options)
    await_running(job)
    await_true("it has begun to count", lambda: b" " in output(job)[0], 120)
    return job


def chain(lines=LINES):
    link = "start"
    for i in range(lines):
        link = hashlib.sha256(f"{link} {i}\n".encode()).hexdigest()
        yield i, link


def check_whole(job, epoch=1, lines=LINES, was_stopped=False, epochs=None):
    """It has ended well, on one node, without a line lost, doubled or wrong, and its clock is right; EPOCH: how
    often it was started. WAS_STOPPED: by stop(), after any number of LINES. EPOCHS: what is to be in its disk's log."""
    ended = wait_one(job)
    check_equal(ended["state"], "COMPLETED", f"state of job {job} ({output(job)[0][-200:]})")
    check_starts(task(ended), epoch, "its epoch: how often it was started")
    ready, *written, last = output(job)[0].decode().splitlines()
    lines = min(lines, len(written)) if was_stopped else lines
    check_equal(ready, "ready", "its first line")
    words = [line.split() for line in written]
    check_equal([(int(w[0]), w[1]) for w in words], list(chain(lines)), "its chain")
    journal = "".join(f"{line}\n" for line in written)
    said, digest, now, on_disk, doubled, *log = last.split()
    check_equal([said, digest, on_disk, doubled], ["journal", hashlib.sha256(journal.encode()).hexdigest(), str(len(written)), "0"],
                "its disk, which has what it put out: so many lines, none of them twice")
    check(log == (log if epochs is None else list(map(str, epochs))), f"its disk's log of epochs: {log}, not {epochs}")
    clock = [int(w[2]) for w in words] + [int(now)]
    check_equal(clock, sorted(clock), "its clock, which never goes back")
    end = number(task(ended), "endUsec") / 1e6
    check(abs(clock[-1] - end) < 10, f"its clock is right at the end: {clock[-1]} where it is {end}")


def count(job):
    return output(job)[0].count(b"\n")


def await_more(job):
    """It has written more than it had."""
    before = count(job)
    await_true("it goes on", lambda: count(job) > before, 60)


def in_guest(job, script):
    """One that has just come to its node takes no commands until its channel is open again."""
    await_true(f"job {job} takes a command",
               lambda: run("exec", str(job), "--", "sh", "-c", script).returncode == 0, 60)


def note_epoch(job):
    """In its disk's log: the one in which it runs now."""
    epoch = number(task(show(job)), "epoch")
    in_guest(job, f"grep -qx {epoch} epochs || echo {epoch} >>epochs; sync epochs")


def stop(job):
    """It is to end after the line that it is at."""
    tell_to_end(job)


def node_of(job):
    return task(show(job))["node"]


def other(node):
    return next(name for name in sorted(nodes()) if name != node)


def guests_on(node):
    return lab_exec(node, "virsh", "list", "--all", "--name").split()


def settle(job):
    """Until nothing is being done to it; it is on one node only, and runs there."""
    name = f"berth-{job}-0-0-1"

    def settled():
        shown = task(show(job))
        has_it = [node for node in sorted(nodes()) if name in guests_on(node)]
        return shown["node"] if "migration" not in shown and has_it in ([shown["node"]], []) else None
    await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
    await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 60)
    try:
        node = await_true("its move has come to an end, and it is on one node alone", settled, 120)
    except Failed:
        say(f"guests: { {each: guests_on(each) for each in sorted(nodes())} }; the job: {show(job)}")
        say(berth("events", str(job)))
        for each in sorted(nodes()):
            with open(os.path.join(LAB_DATA, "log", each, "berth-node.log")) as file:
                say(f"the agent of {each}:\n{''.join(file.readlines()[-40:])}")
        raise
    state = subprocess.run([*LAB, "exec", "--name", LAB_NAME, node, "virsh", "domstate", name],
                           capture_output=True, text=True)
    check(state.stdout.strip() in ("running", ""), f"its domain is {state.stdout} {state.stderr}")
