# SPDX-License-Identifier: Apache-2.0
"""A node whose guests want all of it at once, and jobs that do all they can to their neighbours: nobody on it comes to
harm, and the node stays up. (What neighbours lose of their rate is for bench/neighbours: it is a ratio.)"""

from scenario import *

BACKED_MIB, BACKED_GROWS_TO_MIB = 1200, 900
IN_SLACK_MIB, IN_SLACK_GROWS_TO_MIB = 700, 500
LINES_BESIDE = by_size(20, 60, 400)

# As fast as they can; FILL is what their guest has, nearly.
TAKE = "mount -o remount,size=95% /dev/shm\n"
ADVERSARIES = {
    "takes memory and gives it back": TAKE + "while :; do dd if=/dev/zero of=/dev/shm/a bs=1M count=200; rm /dev/shm/a; done",
    "dirties memory": TAKE + "while :; do dd if=/dev/zero of=/dev/shm/a bs=1M count=200 conv=notrunc; done",
    "takes more than it has": TAKE + "while :; do sh -c 'dd if=/dev/zero bs=300M count=1 | tail -c 1'; done",
    "forks without end": "bomb() { bomb | bomb & }; bomb; while :; do :; done",
    "floods its output": "yes 'all work and no play'",
    "floods its channel": "while :; do echo x; done",
}
# Over what its guest's init reads: it has all memory of the world, and uses none.
LIE = """
printf 'MemTotal: 99999999999 kB\\nMemFree: 99999999999 kB\\nMemAvailable: 99999999999 kB\\n' >/dev/shm/meminfo
printf 'some avg10=0.00 avg60=0.00 avg300=0.00 total=0\\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\\n' >/dev/shm/pressure
mount --bind /dev/shm/meminfo /proc/meminfo
for what in memory cpu io; do mount --bind /dev/shm/pressure /proc/pressure/$what; done
"""


def held_back_and_let_go(job):
    said = berth("events", str(job))
    return said.count("guest-held-back"), said.count("guest-let-go")


BEGINS = {"GUEST_MIGRATE", "GUEST_CHECKPOINT"}
ENDS = {"GUEST_MIGRATED", "GUEST_MIGRATE_FAILED", "GUEST_CHECKPOINTED", "GUEST_CHECKPOINT_FAILED", "GUEST_RELEASED"}


def moves(jobs):
    """(how many moves and checkpoints of them were begun, the most that were under way at once)"""
    events = [json.loads(line) for job in jobs for line in berth("events", "--json", str(job)).splitlines()]
    under_way, begun, most = set(), 0, 0
    for event in sorted(events, key=lambda each: int(each["seq"])):
        if event["kind"] in BEGINS:
            under_way.add(event["job"])
            begun += 1
        elif event["kind"] in ENDS:
            under_way.discard(event["job"])
        most = max(most, len(under_way))
    return begun, most


@test("all guests of a node grow at once: those that are backed get all, those in slack leave or wait, and all finish")
def at_once():
    # Of two that may have to leave, one has to wait for the other. Where the first makes room enough, it stays.
    with tuned(**TUNINGS, moves_per_node=1):
        backed = [start_growing(BACKED_GROWS_TO_MIB, BACKED_MIB, "--guaranteed", "--node", "node1") for _ in range(2)]
        with cordoned("node2"):
            in_slack = [start_growing(IN_SLACK_GROWS_TO_MIB, IN_SLACK_MIB, "--time", "1h") for _ in range(2)]
            check(all(map(is_in_slack, in_slack)), "they run in slack")
        for job in backed + in_slack:
            begin_to_grow(job)
        for job in backed:
            await_grown(job)
            ended = task(end_grown(job))
            check_equal([ended["node"], number(ended, "epoch")], ["node1", 1], "where it ran, and how often it was started")
            held, let_go = held_back_and_let_go(job)
            check(held - let_go in (0, 1), "it was let go again, if it waited for who was in its memory, or has ended before that")
        for job in in_slack:
            await_grown(job)
            end_grown(job)
            held, let_go = held_back_and_let_go(job)
            check(held - let_go in (0, 1), "it was let go again, or has left before that")
        begun, most = moves(backed + in_slack)
        say(f"{begun} moves and checkpoints, at most {most} at once")
        check(begun >= 1 and most == 1, f"{begun} moves and checkpoints, {most} at once, where the cap is 1")
        check(all(map(node_is_up, nodes())), "all nodes are up")


@test("jobs that take, dirty, fork and flood all they can harm neither a job beside them nor their node")
def adversaries():
    with cordoned("node2"):
        victim = start(8, lines=100000, memory="192M")
        for what, script in ADVERSARIES.items():
            before = count(victim)
            other = sh(script, "--memory", "320M", "--vcpus", "2", "--node", "node1")
            await_running(other)
            await_true(f"the job beside one that {what} goes on", lambda: count(victim) >= before + LINES_BESIDE, 180)
            berth("cancel", str(other))
            check_equal(wait_one(other)["state"], "CANCELLED", f"how the one that {what} has ended")
            check(node_is_up("node1"), f"the node of one that {what} is up")
        stop(victim)
        check_whole(victim, 1, lines=100000, was_stopped=True)


LINK = "rate 100mbit burst 256kb latency 100ms".split()
DIRTIES = TAKE + """
for i in $(seq 100000); do
    dd if=/dev/zero of=/dev/shm/a bs=1M count=200 conv=notrunc 2>/dev/null
    echo $i
done
"""


@contextlib.contextmanager
def slow_link(node):
    """What NODE sends, to the other ones and to Ceph."""
    lab_exec(node, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", *LINK)
    try:
        yield
    finally:
        lab_exec(node, "tc", "qdisc", "del", "dev", "eth0", "root")


@test("a job that dirties memory faster than the link carries it arrives, or stays and says why; its neighbour goes on")
def faster_than_the_link():
    with cordoned("node2"):
        victim = start(8, lines=100000, memory="192M")
        other = sh(DIRTIES, "--memory", "320M", "--vcpus", "2")
        await_true("it dirties memory", lambda: len(output(other)[0].split()) > 2, 120)
    before = count(victim)
    with slow_link("node1"):
        moved = run("migrate", str(other), "--wait", timeout=300)
    await_true("the job beside it goes on", lambda: count(victim) >= before + LINES_BESIDE, 180)
    said = (moved.stdout + moved.stderr).decode().strip()
    say(said)
    if moved.returncode != 0:
        check_in("writes its memory faster", said, "why it stays")
    shown = task(show(other))
    check_equal([shown["node"], number(shown, "epoch")], ["node2" if moved.returncode == 0 else "node1", 1],
                "where it runs, and how often it was started")
    rounds = len(output(other)[0].split())
    await_true("it goes on", lambda: len(output(other)[0].split()) > rounds + 2, 120)
    berth("cancel", str(other))
    wait_one(other)
    check(all(map(node_is_up, nodes())), "all nodes are up")
    stop(victim)
    check_whole(victim, 1, lines=100000, was_stopped=True)


@test("a job in slack that lies about what it uses costs nobody what he has reserved")
def liar():
    with tuned(**TUNINGS), cordoned("node2"):
        large = start_growing(1700, 2200, "--guaranteed", "--node", "node1", "--vcpus", "3")
        other = sh(TAKE + LIE + "echo small\ndd if=/dev/zero of=/dev/shm/a bs=1M count=1000 2>/dev/null\necho large\n"
                   "while :; do :; done", "--memory", "1300M", "--time", "1h")
        await_running(other)
        check(is_in_slack(other), "it runs in slack")
        await_true("it has taken what it denies", lambda: output(other)[0] == b"small\nlarge\n", 180)
        begin_to_grow(large)
        await_grown(large)
        ended = task(end_grown(large))
        check_equal([ended["node"], number(ended, "epoch")], ["node1", 1], "where it ran, and how often it was started")
        check(node_is_up("node1"), "the node is up")
        # Who denies what he uses is asked to give it: it is his own memory that he lacks then.
        run("cancel", str(other))
        check_in(wait_one(other)["state"], ["CANCELLED", "OUT_OF_MEMORY"], "how the liar has ended")


def quota_usec(job):
    """Of each of its vCPUs, in 100 ms."""
    shown = task(show(job))
    for line in lab_exec(shown["node"], "virsh", "schedinfo", f"berth-{job}-0-0-1").splitlines():
        if line.startswith("vcpu_quota"):
            return int(line.split(":")[1])
    raise Failed(f"job {job} has no quota")


@test("a job in slack is held back while its node is short of memory, says so, and goes on after that")
def held_back():
    with tuned(**TUNINGS), cordoned("node2"):
        large = start_growing(1700, 2200, "--guaranteed", "--node", "node1", "--vcpus", "3")
        job = start(8, "--time", "1h", lines=100000, memory="1200M")
        check(is_in_slack(job), "it runs in slack")
        with node_tuned("node1", "memory_margin=3000M"):
            await_true("it is held back", lambda: number(task(show(job)), "heldBackUsec") > 0, 60)
            check_equal([quota_usec(job), quota_usec(large)], [1000, 100000], "what their vCPUs get")
            check_in("Held back", berth("show", str(job)), "what is said of it")
        await_true("it is let go", lambda: quota_usec(job) == 100000, 60)
        await_true("that is said", lambda: number(task(show(job)), "heldBackUsec") == 0, 60)
        await_more(job)
        check_equal(held_back_and_let_go(job), (1, 1), "what the event log says")
        check_equal(held_back_and_let_go(large), (0, 0), "what it says of the other one")
        stop(job)
        check_whole(job, 1, lines=100000, was_stopped=True)
        begin_to_grow(large)
        await_grown(large)
        end_grown(large)


main()
