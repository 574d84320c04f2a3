# SPDX-License-Identifier: Apache-2.0
"""The founding scenario: a job reserves much and uses little, another one starts in what it leaves, the first grows to its
reservation and gets it, and the other one goes on elsewhere, or later. Both have results that are verified."""

from scenario import *

LARGE_MIB, GROWS_TO_MIB = 2200, 1700
# Some kernels give a page to whoever reads one that was never written, so that a guest that is copied takes all that it has
# reserved: there is to be room for that.
IN_SLACK_MIB, FILLED_MIB = 1000, 700


def cpu_weight(job):
    """Of its guest, against the others of its node."""
    shown = task(show(job))
    name = next(name for name in guests_on(shown["node"]) if name.startswith(f"berth-{job}-"))
    for line in lab_exec(shown["node"], "virsh", "schedinfo", name).splitlines():
        if line.startswith("cpu_shares"):
            return int(line.split(":")[1])
    raise Failed(f"{name} has no CPU weight")


def start_large(node):
    return start_growing(GROWS_TO_MIB, LARGE_MIB, "--vcpus", "3", "--guaranteed", "--node", node)


def start_in_slack(large):
    """What all LARGE ones leave is all the room that there is. It has begun to count."""
    job = start(8, "--time", "1h", "--vcpus", "2", lines=100000, memory=f"{IN_SLACK_MIB}M")
    in_guest(job, f"mount -o remount,size=95% /dev/shm; dd if=/dev/zero of=/dev/shm/filled bs=1M count={FILLED_MIB}")
    node = node_of(job)
    check(is_in_slack(job), "it runs in slack")
    check(not is_in_slack(large[node]), "the other one is backed")
    weights = cpu_weight(large[node]), cpu_weight(job)
    check(weights[0] > 10 * weights[1], f"vCPUs of who is backed go first: {weights}")
    return job


def grow(job):
    begin_to_grow(job)
    await_grown(job)


def end(job):
    """One that has grown, and was never moved out of its reservation."""
    check_starts(task(end_grown(job)), 1, "how often it was started")


def check_moved_for_memory(job):
    """The other one takes its CPUs back, too, while it grows: TUNINGS see to it that nobody is moved for that."""
    events = map(json.loads, berth("events", "--json", str(job)).splitlines())
    moves = [event for event in events if event["kind"] == "GUEST_MIGRATE"]
    check(moves, "it was moved")
    for move in moves:
        check_equal(move["reason"], "REASON_PRESSURE", "why it was moved")
        check_in("the node's guests are predicted to need ", move.get("cause", ""), "what that says of the node")


def check_relieved(node, since_usec):
    """The log says when it became short of memory, and how long it was: from the growth until there was enough again."""
    def told():
        return [(event["kind"], event.get("text", "")) for event in map(json.loads, berth("events", "--json", "--node", node).splitlines())
                if event["kind"] in ("NODE_SHORT", "NODE_RELIEVED") and int(event["timeUsec"]) >= since_usec]

    await_true(f"{node} has enough memory again", lambda: len(told()) > 1, 60)
    (short, why), (relieved, after) = told()
    check_equal((short, relieved), ("NODE_SHORT", "NODE_RELIEVED"), "what was told of it")
    check_in("the node's guests are predicted to need ", why, "why it was short")
    say(f"{node} was short of memory: {why}; relieved {after}")


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
        since_usec = time.time_ns() // 1000
        grow(large[first])
        await_true("it runs on the other node", lambda: node_of(job) == second and "migration" not in task(show(job)), 120)
        check(is_in_slack(job), "it is in slack there")
        await_true("it has the weight of that, which it had not while it was copied", lambda: cpu_weight(job) == light, 60)
        check_moved_for_memory(job)
        check_relieved(first, since_usec)
        await_more(job)
        end(large[first])
        berth("cancel", str(large[second]))
        await_true("it is backed", lambda: not is_in_slack(job), 60)
        await_true("its vCPUs have their weight", lambda: cpu_weight(job) > 10 * light, 60)
        stop(job)
        check_whole(job, 1, lines=100000, was_stopped=True)


@test("without room anywhere it is checkpointed, and goes on when there is, with nothing lost")
def saved():
    with tuned(**TUNINGS), cordoned("node2"):
        large = {"node1": start_large("node1")}
        job = start_in_slack(large)
        before = count(job)
        grow(large["node1"])
        await_true("it waits", lambda: show(job)["state"] == "PENDING", 120)
        check_in(": evicted", berth("events", str(job)), "why")
        end(large["node1"])
        await_running(job, 120)
        await_more(job)
        check(count(job) >= before, "it has gone on with what it had")
        stop(job)
        check_whole(job, 2, lines=100000, was_stopped=True)


main()
