# SPDX-License-Identifier: Apache-2.0
"""What the tests of failures in the midst of an action share: a job, how to stand at a step of what is done to it, what
can fail there, and what has come of it. A table of step, fault and outcome.

A step is a context in which the action stands at that step, because a process without which it cannot go on is stopped;
at its end it goes on. A fault is a context too, which is entered in that of the step and left after it: a link that is
cut stays cut while the action goes on, for some seconds.

Whatever has failed, the job goes on in exactly one place: as if nothing had been, or from its newest checkpoint where
its guest itself was lost. Its output, its disk, and the disk's log of epochs show that it was nowhere else."""

import contextlib
import glob
import signal
import subprocess
import time

from counting import *

KEPT_MIB = 48  # which takes some tenths of a second to be saved
TRIES = 3
ENDLESS = 1000000
FAULT_SECONDS = 5
LONG_SECONDS = 45  # longer than op_timeout_sec of berthd and agents
_cases = []
_outcomes = []
_jobs = []  # of the case that is under way


class Missed(Failed):
    """The action had not come to the step, or had gone on, when it was stopped: on a busy machine once in a while."""


class Case:
    """A job, and what is asked for it."""

    def __init__(self, *options, kept_mib=KEPT_MIB, is_saved=False):
        # Of the case before: a node that was cut off, or an agent that was killed.
        await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 120)
        self.job = start(kept_mib, "--time", "1h", *options, lines=ENDLESS)
        _jobs.append(self.job)
        self.node = node_of(self.job)
        self.other = other(self.node)
        # A start may be tried again, where the test before has left its node in a bad way.
        self.epoch = number(task(show(self.job)), "epoch")
        self.guest = f"berth-{self.job}-0-0-{self.epoch}"
        self.verb = None
        self.question = None
        self.why_not = None
        self.comes_to = "runs on"  # what the job does when it is done, in the words of let_run()
        self.check_end = lambda is_done, was_put_back: None
        self.end = lambda: None  # whatever has come of it
        self.log_sizes = {node: os.path.getsize(agent_log(node)) for node in nodes()}
        if is_saved:
            self.save()

    def save(self):
        berth("checkpoint", "--wait", str(self.job))

    def ask(self, *arguments):
        """`berth ARGUMENTS JOB`, which waits until it is done."""
        self.ask_of_all(*arguments, str(self.job))

    def ask_of_all(self, *arguments):
        """`berth ARGUMENTS`, which waits until it is done."""
        self.question = subprocess.Popen([BERTH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def answer(self):
        """None if it was done, or why not."""
        if self.question.returncode is None:
            try:
                _, self.why_not = self.question.communicate(timeout=240)
            except subprocess.TimeoutExpired:
                self.question.kill()
                raise Failed(f"{' '.join(self.question.args)} does not end; {show(self.job)}") from None
        return self.why_not.strip() if self.question.returncode != 0 else None

    def await_event(self, kind):
        await_true(f"{kind} is in the event log", lambda: kind in berth("events", str(self.job)), 60, rest=0)

    def await_said(self, node, words):
        await_true(f"the agent of {node} says {words}", lambda: self.has_said(node, words), 60, rest=0)

    def has_said(self, node, words):
        """Its agent, since the beginning."""
        with open(agent_log(node)) as file:
            file.seek(self.log_sizes[node])
            return any(self.guest in line and words in line for line in file)

    def virsh(self, node, *arguments):
        return subprocess.run([*LAB, "exec", "--name", LAB_NAME, node, "virsh", *arguments], capture_output=True,
                              text=True, timeout=60).stdout

    def await_domain(self, state):
        await_true(f"its domain is {state}", lambda: self.virsh(self.node, "domstate", self.guest).strip() == state, 60)

    def qemu(self):
        """libvirt starts none before it has read the beginning of what was saved, which the agent may not have sent yet
        when it was stopped."""
        agent = await_true(f"{self.node} runs", lambda: lab_daemon(self.node), 60)
        try:
            return await_true(f"{self.guest} has a QEMU on {self.node}", lambda: qemu_of(agent, self.guest), 20, least=0)
        except Failed as failure:
            raise Missed(str(failure)) from None


def agent_log(node):
    return os.path.join(LAB_DATA, "log", node, "berth-node.log")


def await_soon(what, function, timeout=60):
    """For what is over so soon that it has to be looked at all the time."""
    deadline = time.monotonic() + timeout
    while not function():
        check(time.monotonic() < deadline, f"not within {timeout} s: {what}")
        time.sleep(0.002)


# --- processes -----------------------------------------------------------------------------------


@contextlib.contextmanager
def stopped(service):
    """Signals go by what the service is then: it may have been killed."""
    lab("kill", "-s", "STOP", service)
    try:
        yield
    finally:
        let_go(service)


def let_go(service):
    subprocess.run([*LAB, "kill", "--name", LAB_NAME, "-s", "CONT", service], capture_output=True, timeout=60)


@contextlib.contextmanager
def stopped_when(what, service, pid, condition):
    """At the very instant. PID is its process: who looked for that only now would come too late."""
    await_soon(what, lambda: condition(pid))
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        let_go(service)


def processes_beside(agent, program):
    """(process id, command line) of those of PROGRAM on the host of the agent that has the process AGENT."""
    net = os.readlink(f"/proc/{agent}/ns/net")
    for path in glob.iglob("/proc/[0-9]*"):
        try:
            if program in os.readlink(f"{path}/exe") and os.readlink(f"{path}/ns/net") == net:
                with open(f"{path}/cmdline") as file:
                    yield int(os.path.basename(path)), file.read()
        except OSError:
            continue  # it has ended meanwhile


def qemu_of(agent, guest):
    """Its process, or None."""
    return next((pid for pid, line in processes_beside(agent, "qemu-system") if f"guest={guest}," in line), None)


def has_memory_open(pid):
    """The FIFO through which a guest's memory goes."""
    for path in glob.iglob(f"/proc/{pid}/fd/*"):
        try:
            if os.path.basename(os.path.dirname(os.readlink(path))).startswith("memory-"):
                return True
        except OSError:
            continue
    return False


def children(pid):
    for path in glob.iglob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path) as file:
            yield from map(int, file.read().split())


def unless_done(case, done, condition):
    """CONDITION, until the agent's log has the words DONE."""
    def look(agent):
        if condition(agent):
            return True
        if case.has_said(case.node, done):
            raise Missed(f"it was looked at too late: {done}")
        return False
    return look


@contextlib.contextmanager
def stopped_with_memory(case, done):
    """While a guest's memory is on its way between libvirt, or its helper, and the agent, and it has a QEMU: libvirt starts none
    before it has read the beginning of what was saved."""
    libvirtd, agent = lab_pid(f"{case.node}/libvirtd"), lab_daemon(case.node)

    def is_under_way(agent):
        return (any(has_memory_open(pid) for pid in (libvirtd, *children(libvirtd))) and
                qemu_of(agent, case.guest) is not None)
    case.ask(*case.verb)
    with stopped_when("its memory is on its way", case.node, agent, unless_done(case, done, is_under_way)):
        yield


# --- steps that many actions have ----------------------------------------------------------------


@contextlib.contextmanager
def asked(case, event, *question):
    """It is decided, and the agent has not answered yet."""
    with stopped(case.node):
        case.ask(*question)
        case.await_event(event)
        yield


@contextlib.contextmanager
def at_work(case, event, *question):
    """libvirt waits for QEMU, and the agent for libvirt."""
    pid = case.qemu()
    os.kill(pid, signal.SIGSTOP)
    try:
        case.ask(*question)
        case.await_event(event)
        await_true("libvirt waits for QEMU", lambda: "occupied" in case.virsh(case.node, "domcontrol", case.guest))
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def untold(case, event, is_done, *question):
    """It is done, and berthd has not heard of it."""
    with stopped(case.node):
        case.ask(*question)
        case.await_event(event)
        lab("kill", "-s", "STOP", "berthd")
    try:
        try:
            is_done()
        except Failed as failure:
            raise Missed(f"it may have been stopped before it had asked: {failure}") from None
        yield
    finally:
        let_go("berthd")


# --- steps of what is saved: CASE.verb asks for that ----------------------------------------------


def asked_to_save(case):
    return asked(case, "guest-checkpoint ", *case.verb)


@contextlib.contextmanager
def saving(case):
    """It stands still, and its memory is on its way."""
    with stopped_with_memory(case, "-0-2 is taken"):
        yield


@contextlib.contextmanager
def saved(case):
    """All of its memory has come; what makes it a checkpoint, the snapshot of its disk and the record, has not."""
    done = "-0-2 is taken"
    agent = lab_daemon(case.node)
    begins = unless_done(case, done, has_memory_open)
    case.ask(*case.verb)
    await_soon("there is a FIFO", lambda: begins(agent))
    with stopped_when("its memory has come", case.node, agent, lambda agent: not has_memory_open(agent)):
        if case.has_said(case.node, done):
            raise Missed(f"it was looked at too late: {done}")
        yield


def untold_saved(case):
    """There is a checkpoint, and berthd does not know."""
    return untold(case, "guest-checkpoint ", lambda: case.await_said(case.node, "-0-2 is taken"), *case.verb)


SAVING = {"asked": asked_to_save, "saving": saving, "saved": saved, "untold": untold_saved}


RESTORED = "is restored, and stands still"


@contextlib.contextmanager
def restoring(case):
    """Its memory is on its way back."""
    with stopped_with_memory(case, RESTORED):
        yield


# --- faults --------------------------------------------------------------------------------------


@contextlib.contextmanager
def kill(service):
    lab("kill", service)
    yield


@contextlib.contextmanager
def kill_qemu(case):
    os.kill(case.qemu(), signal.SIGKILL)
    yield


@contextlib.contextmanager
def lasting(begin, end, seconds=FAULT_SECONDS):
    lab_exec("host", *begin)
    try:
        yield
        time.sleep(seconds)
    finally:
        lab_exec("host", *end)


def cut_link(node):
    return lasting(["ip", "link", "set", node, "down"], ["ip", "link", "set", node, "up"])


@contextlib.contextmanager
def lose(node, case):
    """Cut off until it is given up, while what runs on it runs on."""
    lab_exec("host", "ip", "link", "set", node, "down")
    try:
        yield
        await_true(f"{node} is given up", lambda: nodes()[node]["state"] == "NODE_LOST", 120)
        await_true("the job is elsewhere", lambda: show(case.job)["state"] != "RUNNING" or
                   (node_of(case.job) != node and not task(show(case.job)).get("booting")), 120)
    finally:
        lab_exec("host", "ip", "link", "set", node, "up")
    # Its storage client was cut off, too, which its agent learns from what it does with it first: that start fails, and is
    # tried again.
    if not nodes()[node].get("admission"):
        wait_one(submit("--node", node, "--memory", "128M", "--", "true"), timeout=180)


def pause_ceph(seconds=FAULT_SECONDS):
    return lasting(["ceph", "osd", "pause"], ["ceph", "osd", "unpause"], seconds)


def pool_is_full():
    pools = json.loads(lab_exec("host", "ceph", "osd", "pool", "ls", "detail", "--format", "json"))
    return any("full_quota" in pool["flags_names"].split(",") for pool in pools)


@contextlib.contextmanager
def fill_pool():
    """Of its objects there are more than there may be: nothing can be written."""
    try:
        with lasting(["ceph", "osd", "pool", "set-quota", "berth", "max_objects", "1"],
                     ["ceph", "osd", "pool", "set-quota", "berth", "max_objects", "0"]):
            await_true("the pool is full", pool_is_full, 60)
            yield
    finally:
        await_true("the pool is not full any more", lambda: not pool_is_full(), 60)


@contextlib.contextmanager
def without_space():
    """What berthd may use of storage for checkpoints is used up."""
    path = os.path.join(LAB_DATA, "etc", "berthd.conf")
    with open(path) as file:
        text = file.read()

    def restart(with_text):
        with open(path, "w") as file:
            file.write(with_text)
        lab("kill", "berthd")
        await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
        await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 60)
    try:
        restart(text.replace("[policy]\n", "[policy]\ncheckpoint_space_mib=1\n"))
        yield
    finally:
        restart(text)


LOST = "its node is cut off for good"
QEMU = "QEMU is killed"
FULL = "the pool is full"
LONG = "Ceph is paused for longer than it is waited for"
FAULTS = {
    "the agent is killed": lambda case: kill(case.node),
    "berthd is killed": lambda case: kill("berthd"),
    "libvirtd is killed": lambda case: kill(f"{case.node}/libvirtd"),
    QEMU: kill_qemu,
    "the link is cut": lambda case: cut_link(case.node),
    LOST: lambda case: lose(case.node, case),
    "Ceph is paused": lambda case: pause_ceph(),
    LONG: lambda case: pause_ceph(LONG_SECONDS),
    FULL: lambda case: fill_pool(),
}


# --- what comes of it ----------------------------------------------------------------------------


def places(job):
    """Nodes that have a guest of it, each as often as they have one."""
    return [node for node in sorted(nodes()) for name in guests_on(node) if name.startswith(f"berth-{job}-")]


def come_to_rest(job, is_frozen=False):
    """Until nothing is being done to it: it is in one place and runs there, or stands still there or on disk. One that
    IS_FROZEN and was lost runs for a moment when it goes on from its checkpoint, and stands still again then."""
    def shown_at_rest():
        now = show(job)
        check(now["state"] in ("PENDING", "RUNNING", "SUSPENDED"), f"job {job} is {now['state']}: {reason(now)}")
        under_way = any(task(now).get(what) for what in ("booting", "restoring", "migration", "resize", "checkpointing"))
        return now if not under_way and now["state"] in (("SUSPENDED",) if is_frozen else ("RUNNING", "SUSPENDED")) else None

    def at_rest():
        now = shown_at_rest()
        if not now or places(job) != ([] if task(now).get("toDisk") else [task(now)["node"]]):
            return None
        # What was there may have been another guest of it, where berthd had not heard yet that the one before was lost.
        again = shown_at_rest()
        return again if again and task(again)["epoch"] == task(now)["epoch"] else None
    await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
    await_true("all nodes are up", lambda: all(map(node_is_up, nodes())), 120)
    return await_true(f"nothing is being done to job {job}, and it is in one place", at_rest, 180)


def check_disk(job, epoch):
    """It has one, which is that of its epoch, and is open once in the end."""
    def disks():
        return [name for name in lab_exec("host", "rbd", "--pool", "berth", "ls").split()
                if name.startswith(f"disk-disk-{job}-")]
    name = f"disk-disk-{job}-0-0-{epoch}"
    await_true(f"it has the disk {name} alone", lambda: disks() == [name], 120)

    def watchers():
        status = lab_exec("host", "rbd", "--pool", "berth", "status", name, "--format", "json")
        return [watcher["address"] for watcher in json.loads(status)["watchers"]]
    try:
        # One that was killed is forgotten after half a minute.
        await_true("one client alone has its disk open", lambda: len(watchers()) == 1, 120)
    except Failed as error:
        for look in (["rbd", "--pool", "berth", "status", name], ["rbd", "--pool", "berth", "lock", "ls", name],
                     ["ceph", "osd", "blocklist", "ls"]):
            say(f"{' '.join(look)}\n{lab_exec('host', *look)}")
        is_cut_off = lab_exec("host", "ceph", "osd", "blocklist", "ls").split("\n")
        raise Failed(f"{error}; it is open for {watchers() or 'none'}, and cut off are {is_cut_off}") from error


def let_run(job, is_frozen=False):
    """As its user would; returns how it was found."""
    now = come_to_rest(job, is_frozen)
    if now["state"] != "SUSPENDED":
        return "runs on"
    how = "is frozen to disk" if task(now).get("toDisk") else "is frozen"
    berth("thaw", str(job), timeout=240)
    come_to_rest(job)
    check_equal(show(job)["state"], "RUNNING", "its state when it was thawed")
    return how


def conclude(case, goes_back):
    """What has come of it, in words. GOES_BACK: whether it may have been put back to a checkpoint."""
    why_not = case.answer()
    check(why_not != "", "it is not done, and nobody says why")
    how = let_run(case.job, is_frozen=why_not is None and case.comes_to != "runs on")
    epoch = number(task(show(case.job)), "epoch")
    check(goes_back or epoch == case.epoch, f"it was not put back: its epoch was {case.epoch}, and is {epoch}")
    check_disk(case.job, epoch)
    await_more(case.job)
    if why_not is None:
        check_equal(how, case.comes_to, "what the job does, where it is said to be done")
    case.check_end(is_done=why_not is None, was_put_back=epoch > case.epoch)
    note_epoch(case.job)
    stop(case.job)
    check_whole(case.job, epoch=epoch, lines=ENDLESS, was_stopped=True, epochs=sorted({case.epoch, epoch}))
    if epoch > case.epoch:
        how = "goes on from a checkpoint" if how == "runs on" else f"{how}, and goes on from a checkpoint"
    return f"it is {'done' if why_not is None else f'not done ({why_not})'}; the job {how}"


def cancel_all():
    for job in _jobs:
        run("cancel", str(job))


def add(action, step, fault, disturb):
    """A test, if it is chosen: DISTURB returns the outcome."""
    def attempt(is_last):
        try:
            return disturb()
        except Missed:
            cancel_all()
            if is_last:
                raise
            return None
        except Exception:
            for job in _jobs:
                say(f"what was done to job {job}:\n{berth('events', str(job))}")
            cancel_all()
            raise
        finally:
            _jobs.clear()

    def one():
        outcome = next(filter(None, (attempt(n == TRIES - 1) for n in range(TRIES))))
        _outcomes.append((action, step, fault, outcome))
        say(f"{action}, {step}, {fault}: {outcome}")
    _cases.append((action, step, fault, one))


def add_without_space(action, make):
    def disturb():
        case = make()
        with without_space():
            case.ask(*case.verb)
            why_not = case.answer()
            check_in("checkpoint_space_mib", why_not or "", "why it is not done")
            return conclude(case, goes_back=False)
    add(action, "asked", "there is no space for checkpoints", disturb)


def add_action(action, make, steps):
    """One that has to do with its guest alone, and not with storage. MAKE is told whether it is to be saved before."""
    def add_case(step, name):
        def disturb():
            is_lost = name in (QEMU, LOST)
            case = make(is_lost)
            through(case, steps[step], FAULTS[name])
            return conclude(case, is_lost)
        # These show the same at each step.
        if name not in (LOST, FULL, LONG) or step in ("done", "at libvirt"):
            add(action, step, name, disturb)
    for step in steps:
        for name in FAULTS:
            add_case(step, name)


def through(case, step, fault):
    """The action goes on while the fault lasts."""
    with contextlib.ExitStack() as lasts:
        with step(case):
            lasts.enter_context(fault(case))


def choose(*short):
    """Those that BERTH_FAULTS is a part of; without it all, or SHORT where the tests are to be. Each is named as
    "ACTION, STEP: FAULT"."""
    cases = {f"{action}, {step}: {fault}": (action, step, fault, one) for action, step, fault, one in _cases}
    wanted = os.environ.get("BERTH_FAULTS", "")
    names = [name for name in cases if wanted in name] if wanted else by_size(short, short, list(cases))
    for action, step, fault, one in (cases[name] for name in names):
        test(f"{action} that is {step} when {fault} costs no job and doubles none")(one)
    test("no fault has left a guest or anything else behind")(table)


def table():
    def of_guests():
        return [name for name in lab_exec("host", "rbd", "--pool", "berth", "ls").split()
                if name.startswith(("disk-", "ckpt-"))]
    for name in nodes():
        await_true(f"no guest is left on {name}", lambda name=name: guests_on(name) == [], 60)
    # A client that was killed is forgotten after half a minute.
    await_true("no disk and no checkpoint is left in storage", lambda: of_guests() == [], 180)
    for row in [("action", "step", "fault", "outcome"), ("---",) * 4, *_outcomes]:
        say(f"| {' | '.join(row)} |")
