# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: the berth command, the lab, and "ok"/"not ok" lines.

A test is a function with the decorator @test("what it shows"). It fails by an exception; it is
skipped by skip(). Waits are for events (`berth wait`), with a deadline.

Environment, set by tests/system/run: BERTH (the CLI), BERTH_LAB_COMMAND and BERTH_LAB (the lab and
its command), BERTH_SOCKET, BERTH_SYSTEM_SIZE (quick, ci or full), BERTH_SYSTEM_SEED.
"""

import glob
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback

BERTH = os.environ["BERTH"]
LAB = [os.environ["BERTH_LAB_COMMAND"]]
LAB_NAME = os.environ["BERTH_LAB"]
LAB_DATA = os.path.join(os.environ.get("BERTH_LAB_DATA", "/var/lib/berth-lab"), LAB_NAME)
SIZE = os.environ.get("BERTH_SYSTEM_SIZE", "ci")
TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_tests = []


class Skip(Exception):
    pass


class Failed(Exception):
    pass


def test(description):
    def add(function):
        _tests.append((description, function))
        return function
    return add


def skip(reason):
    raise Skip(reason)


def main():
    """Runs the tests of the calling file in order; the exit status is 1 if any failed."""
    failed = False
    for number, (description, function) in enumerate(_tests, 1):
        began = time.monotonic()
        before = active_jobs()
        try:
            function()
            result, note = "ok", ""
        except Skip as reason:
            result, note = "ok", f" # SKIP {reason}"
        except Exception as error:  # each failure is reported, the others still run
            result, note, failed = "not ok", "", True
            for line in [*explain(error).splitlines(), *end_jobs(active_jobs() - before)]:
                print(f"# {line}")
        print(f"{result} {number} - {description} ({time.monotonic() - began:.1f} s){note}", flush=True)
    sys.exit(1 if failed else 0)


def active_jobs():
    """Numbers of those that have not ended; none if berthd does not answer, which is for a test to find."""
    try:
        listed = run("ls", "--json")
    except Failed:
        return set()
    return {int(json.loads(line)["id"]) for line in listed.stdout.splitlines()} if listed.returncode == 0 else set()


def end_jobs(jobs):
    """Those that a failed test leaves would take from the tests after it what these need. Returns what is to be said of it:
    what was done with them."""
    try:
        for job in sorted(jobs):
            yield f"its job {job} is to end; the end of what was done with it:"
            yield from (f"  {line}" for line in run("events", str(job)).stdout.decode().splitlines()[-40:])
            run("cancel", str(job))
        wait(*jobs)
    except Failed as error:
        yield f"not all of its jobs have ended: {error}"


def explain(error):
    if isinstance(error, Failed):
        frame = traceback.extract_tb(error.__traceback__)
        where = next((f for f in reversed(frame) if f.filename != __file__), frame[-1])
        return f"{os.path.basename(where.filename)}:{where.lineno}: {error}"
    return "".join(traceback.format_exception(error))


def by_size(quick, ci, full):
    """A quantity that depends on how long the tests may take."""
    return {"quick": quick, "ci": ci, "full": full}[SIZE]


def seeded_random():
    seed = int(os.environ.get("BERTH_SYSTEM_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# seed {seed} (again: BERTH_SYSTEM_SEED={seed})", flush=True)
    return random.Random(seed)


def say(text):
    print(f"# {text}", flush=True)


def check(condition, message):
    if not condition:
        raise Failed(message)


def check_equal(got, wanted, what):
    check(got == wanted, f"{what}: {shorten(got)} instead of {shorten(wanted)}")


def check_in(part, whole, what):
    check(part in whole, f"{what}: {shorten(part)} is not in {shorten(whole)}")


def shorten(value):
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:400]} ... {text[-150:]} ({len(text)} characters)"


def await_true(what, function, timeout=30, least=90, rest=2):
    """For what offers no event: until FUNCTION returns something true, which is returned. It rests for REST times as long as
    it has asked, so that it does not slow down on a crowded machine what is waited for; for what is soon over that is 0. There
    what takes a second may take LEAST seconds, too; who goes on without it has less of them."""
    timeout = max(timeout, least)
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        result = function()
        if result:
            return result
        now = time.monotonic()
        check(now < deadline, f"not within {timeout} s: {what}")
        time.sleep(max(0.1, rest * (now - asked)))


# --- the command line ------------------------------------------------------------------------


def run(*arguments, timeout=120, **options):
    """`berth ARGUMENTS`; the result has returncode, stdout and stderr (bytes)."""
    try:
        return subprocess.run([BERTH, *arguments], capture_output=True, timeout=timeout, **options)
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"berth {' '.join(arguments)} took more than {timeout} s; it wrote "
                     f"{shorten(expired.stdout)} and {shorten(expired.stderr)}") from None


def berth(*arguments, **options):
    """The same, and it must succeed. Returns its stdout as text."""
    result = run(*arguments, **options)
    check(result.returncode == 0,
          f"berth {' '.join(arguments)} exited with {result.returncode}: {result.stderr.decode()}")
    return result.stdout.decode()


def refused(*arguments, **options):
    """`berth ARGUMENTS` that must be refused; returns what it said."""
    result = run(*arguments, **options)
    check(result.returncode != 0, f"berth {' '.join(arguments)} was not refused: {result.stdout}")
    return result.stderr.decode()


def submit(*arguments, script=None):
    """Submits ARGUMENTS, or the text SCRIPT with ARGUMENTS as options; returns the job's number."""
    if script is None:
        return int(berth("submit", *arguments))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "script")
        with open(path, "w") as file:
            file.write(script)
        return int(berth("submit", *arguments, path))


def sh(text, *options):
    """Submits a shell command."""
    return submit(*options, "--", "sh", "-c", text)


def wait(*jobs, timeout=300):
    """Waits until all JOBS have ended; returns them by number."""
    ended = {}
    result = run("wait", "--json", *map(str, jobs), timeout=timeout)
    for line in result.stdout.decode().splitlines():
        job = json.loads(line)
        ended[int(job["id"])] = job
    missing = set(jobs) - set(ended)
    check(not missing, f"wait did not report {sorted(missing)}: {result.stderr.decode()}")
    return ended


def wait_one(job, timeout=300):
    return wait(job, timeout=timeout)[job]


def show(job):
    return json.loads(berth("show", "--json", str(job)))


def task(job):
    """The one task of a job as `show --json` or `wait --json` gave it."""
    return job["tasks"][0]


def reason(job):
    return task(job).get("reason", "REASON_NONE")


def number(message, *path):
    """A number in MESSAGE; those that are 0 are left out of JSON."""
    for name in path:
        message = message.get(name, {})
    return int(message or 0)


def output(job, timeout=120):
    """What the job wrote: (stdout, stderr)."""
    result = run("logs", str(job), timeout=timeout)
    check(result.returncode == 0, f"berth logs {job}: {result.stderr.decode()}")
    return result.stdout, result.stderr


def output_digests(job, *options, timeout=600):
    """SHA-256 and size of stdout and of stderr, read as a stream."""
    process = subprocess.Popen([BERTH, "logs", *options, str(job)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    import threading
    results = {}

    def read(name, stream):
        digest, size = hashlib.sha256(), 0
        while block := stream.read1(1 << 20):
            digest.update(block)
            size += len(block)
        results[name] = (digest.hexdigest(), size)

    readers = [threading.Thread(target=read, args=(n, s))
               for n, s in (("stdout", process.stdout), ("stderr", process.stderr))]
    for reader in readers:
        reader.start()
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Failed(f"berth logs {job} took more than {timeout} s") from None
    finally:
        for reader in readers:
            reader.join()
    check(status == 0, f"berth logs {job} exited with {status}")
    return results["stdout"], results["stderr"]


def await_running(job, timeout=120):
    """Until the job's command runs; ended is an error. Returns the job."""
    def running():
        now = show(job)
        check(now["state"] in ("PENDING", "RUNNING"), f"job {job} is {now['state']}: {now}")
        return now if now["state"] == "RUNNING" and not task(now).get("booting") else None
    return await_true(f"job {job} runs", running, timeout)


def await_released(job):
    """Until what its guest had is free again. One that had to be booted again has released another before."""
    def is_released():
        kinds = re.findall(r" guest-(start|restore|released|fenced) on ", berth("events", str(job)))
        return kinds[-1:] in (["released"], ["fenced"])
    await_true(f"the guest of job {job} is gone", is_released, 60)


def tell_to_end(job):
    """By the file /dev/shm/stop, for which it looks. It may have ended before the command that makes it: that ends with it."""
    def is_told():
        return (run("exec", str(job), "--", "touch", "/dev/shm/stop").returncode == 0 or
                show(job)["state"] not in ("PENDING", "RUNNING", "SUSPENDED"))
    await_true(f"job {job} is told to end", is_told, 60)


def nodes():
    return {node["info"]["name"]: node
            for node in map(json.loads, berth("node", "ls", "--json").splitlines())}


def node_is_up(name):
    return nodes()[name]["state"] == "NODE_UP"


# --- the lab -----------------------------------------------------------------------------------


def lab(command, *arguments, timeout=120):
    result = subprocess.run([*LAB, command, "--name", LAB_NAME, *arguments], capture_output=True,
                            timeout=timeout)
    check(result.returncode == 0,
          f"berth-lab {command} {' '.join(arguments)}: {result.stderr.decode()}")
    return result.stdout.decode()


def lab_pid(service):
    return int(lab("pid", service))


def lab_daemon(name):
    """The process of berthd or of a node's agent, or None if none runs (yet)."""
    result = subprocess.run([*LAB, "pid", "--name", LAB_NAME, name], capture_output=True, timeout=60)
    if result.returncode != 0:
        return None
    pid = int(result.stdout)
    try:
        program = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None
    # Before it becomes the daemon, the process is a shell.
    return pid if os.path.basename(program).startswith("berth") else None


def qemu_logs(ended):
    """What libvirt has kept of QEMU's messages, for each guest that the job of this task had: [(path, text)]."""
    logs = glob.glob(os.path.join(LAB_DATA, "nodes", "*", "var/log/libvirt/qemu", f"berth-{number(ended, 'job')}-*.log"))
    texts = []
    for path in sorted(logs):
        with open(path, errors="replace") as file:
            texts.append((path, file.read()))
    return texts


def starts(ended):
    """Of a task that has ended: its epoch, less the starts at which QEMU 7.2 aborted by itself. It does so now and then, as an
    emulated guest of several vCPUs boots and sets its interrupts up; Berth starts the guest again."""
    aborted = sum("msix_table_mmio_write: Assertion" in text for _, text in qemu_logs(ended))
    return number(ended, "epoch") - aborted


def say_history(ended):
    """What was done with the job of a task that has ended, and what its guests said last."""
    say(f"the end of what was done with job {number(ended, 'job')}:")
    for line in run("events", str(number(ended, "job"))).stdout.decode().splitlines()[-40:]:
        say(f"  {line}")
    for path, text in qemu_logs(ended):
        say(f"the end of {path}:")
        for line in text.splitlines()[-6:]:
            say(f"  {line[:400]}")


def check_starts(ended, wanted, what):
    """That a task that has ended was started so often."""
    if starts(ended) != wanted:
        say_history(ended)
    check_equal(starts(ended), wanted, what)


def lab_exec(place, *command, timeout=60):
    return lab("exec", place, *command, timeout=timeout)


class Allowed:
    """NODES let commands run on their hosts."""

    def __init__(self, *names):
        self.names = names

    def change(self, old, new):
        for name in self.names:
            path = os.path.join(LAB_DATA, "etc", f"{name}.conf")
            with open(path) as file:
                text = file.read()
            check_in(old, text, f"the configuration of {name}")
            with open(path, "w") as file:
                file.write(text.replace(old, new))
            pid = lab_daemon(name)
            lab("kill", name)
            await_true("another agent runs", lambda: lab_daemon(name) not in (None, pid), 60)
            await_true(f"{name} joins again", lambda: node_is_up(name), 60)

    def __enter__(self):
        self.change("[node]\n", "[node]\nallow_exec=true\n")

    def __exit__(self, *_):
        self.change("allow_exec=true\n", "")


def memory_mib(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    raise Failed(f"process {pid} has no {field}")


def logs_in_storage():
    """Names of all jobs' logs, log-JOB-TASK-GUEST-EPOCH.out and .err: which guests ever wrote."""
    directory = os.path.join(LAB_DATA, "storage", "logs")
    if os.path.isdir(directory):
        return set(os.listdir(directory))
    listed = lab_exec("host", "rados", "--pool", "berth", "--all", "ls").splitlines()
    return {line.split("\t")[1] for line in listed if line.startswith("logs\t")}


def domains():
    """Names of all guests that libvirt has on any node."""
    names = []
    for name in nodes():
        names += lab_exec(name, "virsh", "list", "--all", "--name").split()
    return names
