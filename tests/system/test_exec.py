# SPDX-License-Identifier: Apache-2.0
"""berth exec: a command in a running job's guest, with streams of any size, signals and its status; it ends with
the job, with its client and with the daemons between, and is in the event log."""

import fcntl
import hashlib
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from harness import *

BULK_BYTES = 5 << 20
PIPE_BYTES = 64 << 10  # what Linux keeps in one


def exec_(job, *command, **options):
    return run("exec", str(job), "--", *command, text=True, **options)


def shell(job, script, **options):
    return exec_(job, "sh", "-c", script, **options)


def begin(job, script, *options):
    """A client of its own, for a test that does something to it."""
    return subprocess.Popen([os.environ["BERTH"], "exec", *options, str(job), "--", "sh", "-c", script],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def start_job(script="while :; do sleep 1; done"):
    job = sh(script, "--memory", "96M")
    await_running(job)
    return job


def stop(job):
    berth("cancel", str(job))
    wait_one(job)


def unread(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def processes(job, word):
    """How often WORD is in the command lines of the guest's processes, but for the one that looks."""
    lines = f"cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o '[{word[0]}]{word[1:]}'"
    return len(shell(job, lines).stdout.splitlines())


class Terminal:
    """A client with a terminal of 41 rows and 123 columns."""

    def __init__(self, *arguments):
        has_size, says_so = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(says_so)
            os.read(has_size, 1)  # until it has its size
            os.environ["TERM"] = "vt100"
            os.execv(os.environ["BERTH"], ["berth", *arguments])
        self.resize(41, 123)
        os.close(says_so)
        os.close(has_size)
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys)

    def expect(self, part):
        """Reads until PART has come, after what was expected before."""
        while part not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], 30)
            check(ready, f"{part} has not come: {shorten(self.seen)}")
            self.seen += os.read(self.fd, 4096)
        self.seen = self.seen[self.seen.index(part) + len(part):]

    def wait(self):
        while True:
            try:
                if not os.read(self.fd, 4096):
                    break
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def hostname(node):
    return lab_exec(node, "hostname").strip()


def events(job):
    lines = berth("events", "--since", "1h", str(job)).splitlines()
    return [line for line in lines if " exec-" in line]


@test("a command in a guest has its streams, its status, and the job's user, directory and environment")
def runs():
    job = start_job("export LATER=1; while :; do sleep 1; done")
    ran = shell(job, "echo out; echo err >&2; exit 7")
    check_equal((ran.stdout, ran.stderr, ran.returncode), ("out\n", "err\n", 7), "what it did")
    told = shell(job, "pwd; id -un; echo $BERTH_JOB_ID").stdout.split()
    check_equal((told[0], told[2]), ("/work", str(job)), "its directory and its environment")
    check_equal(exec_(job, "/nonexistent").returncode, 127, "status of a command that there is not")
    check_in("no such file", exec_(job, "/nonexistent").stderr, "what is said of it")
    check_equal(shell(job, "kill -9 $$").returncode, 137, "status of one that was killed")
    seen = events(job)
    check_in("exec-begun on", seen[0], "the event log")
    check_in("by root: sh -c", seen[0], "the event log")
    check_in("ended with status 7", seen[1], "the event log")
    stop(job)


@test("input and output of any size come whole, each way, also to one that reads slowly")
def carries():
    job = start_job()
    data = os.urandom(BULK_BYTES)
    began = time.monotonic()
    with subprocess.Popen([os.environ["BERTH"], "exec", str(job), "cat"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as client:
        got = client.communicate(data, timeout=300)[0]
    say(f"{BULK_BYTES >> 20} MiB to a guest and back took {time.monotonic() - began:.1f} s")
    check_equal(client.returncode, 0, "its status")
    check_equal(hashlib.sha256(got).digest(), hashlib.sha256(data).digest(), "what came back")
    client = begin(job, "head -c 1000000 /dev/zero; echo x >&2")
    await_true("it waits for a reader", lambda: unread(client.stdout) >= PIPE_BYTES // 2)
    check_equal(len(client.communicate(timeout=60)[0]), 1000000, "bytes of the slow reader")
    check_equal(client.returncode, 0, "its status")
    stop(job)


@test("signals reach the command, and a client that goes away takes it along")
def signals():
    job = start_job()
    client = begin(job, "trap 'echo caught; exit 4' INT; echo set; while :; do sleep 0.1; done")
    check_equal(client.stdout.readline(), b"set\n", "its first line")
    client.send_signal(signal.SIGINT)
    check_equal(client.communicate(timeout=30)[0], b"caught\n", "its answer")
    check_equal(client.returncode, 4, "its status")
    client = begin(job, "trap '' HUP; echo set; sleep 1234 & while :; do sleep 1; done")
    check_equal(client.stdout.readline(), b"set\n", "its first line")
    check(processes(job, "sleep 1234") >= 1, "processes of it")
    client.kill()
    client.wait()
    await_true("its processes end", lambda: processes(job, "sleep 1234") == 0)
    await_true("the event log says so", lambda: any("left by who ran it" in line for line in events(job)))
    piped = subprocess.run(f'"$BERTH" exec {job} yes abc | head -n 1', shell=True, capture_output=True, timeout=60)
    check_equal((piped.stdout, piped.stderr), (b"abc\n", b""), "what a reader of one line has")
    await_true("it ends with its reader", lambda: processes(job, "yes abc") == 0)
    stop(job)


@test("a terminal has the size of the client's, passes keys on, and is left by its escape; so is a shell of attach")
def terminals():
    job = start_job()
    with Terminal("exec", "-t", str(job), "sh") as terminal:
        terminal.expect(b"# ")
        terminal.type(b"stty size; echo $TERM-$((6*7))\r")
        terminal.expect(b"41 123\r\n")
        terminal.expect(b"vt100-42\r\n")
        terminal.resize(43, 101)
        terminal.type(b"sleep 1234\r")
        await_true("it sleeps", lambda: processes(job, "sleep 1234") >= 1)
        terminal.type(b"\x03")
        terminal.type(b"stty size; exit 5\r")
        terminal.expect(b"43 101\r\n")
        check_equal(terminal.wait(), 5, "its status")
    with Terminal("attach", str(job)) as terminal:
        terminal.expect(b"# ")
        terminal.type(b"sleep 1235\r")
        await_true("it sleeps", lambda: processes(job, "sleep 1235") >= 1)
        terminal.type(b"\r~.")
        check_equal(terminal.wait(), 125, "its status")
        await_true("its processes end", lambda: processes(job, "sleep 1235") == 0)
    check_in("no terminal", refused("exec", "-t", str(job), "sh"), "what is said without a terminal")
    stop(job)


@test("a frozen guest is said to be so; a command under way stands still and goes on with it")
def freezes():
    job = start_job()
    client = begin(job, "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); usleep 50000; done")
    check_equal(client.stdout.readline(), b"0\n", "its first line")
    berth("freeze", str(job))
    check_in("is frozen", refused("exec", str(job), "true"), "what exec says")
    time.sleep(1)
    berth("thaw", str(job))
    rest = client.communicate(timeout=60)[0].split()
    check_equal([int(line) for line in rest], list(range(1, 40)), "the other lines")
    check_equal(client.returncode, 0, "its status")
    stop(job)


@test("commands end with their job, within its limits, and no more than eight at a time")
def ends():
    job = start_job("sleep 6")
    client = begin(job, "while :; do sleep 0.1; done")
    wait_one(job)
    check_in(b"the job has ended", client.communicate(timeout=30)[1], "what is said of it")
    check_equal(client.returncode, 137, "its status")
    check_in("does not run", refused("exec", str(job), "true"), "what exec says after that")
    job = start_job()
    clients = [begin(job, "echo here; exec sleep 1000") for _ in range(8)]
    for client in clients:
        check_equal(client.stdout.readline(), b"here\n", "the first line of one of eight")
    check_in("all that may", refused("exec", str(job), "true"), "what the ninth is told")
    for client in clients:
        client.kill()
        client.wait()
    await_true("there is room again", lambda: exec_(job, "true").returncode == 0)
    stop(job)


@test("commands run on the hosts of nodes where these allow it, side by side, and fail together")
def on_nodes():
    check_in("allow_exec", refused("node", "exec", "node[1-2]", "true"), "what is said by default")
    names = ("node1", "node2")
    with Allowed(*names):
        ran = run("node", "exec", "node[1-2]", "--", "sh", "-c", "hostname; echo err >&2; printf open; exit 2",
                  text=True)
        check_equal(sorted(ran.stdout.splitlines()),
                    sorted(f"{name}: {line}" for name in names for line in (hostname(name), "open")), "lines")
        check_equal(ran.stderr.count("node1: err\n"), 1, "lines of stderr")
        check_in("failed on 2 of 2 nodes", ran.stderr, "the summary")
        check_in("node2 (status 2)", ran.stderr, "the summary")
        check_equal(ran.returncode, 1, "its status")
        check_equal(run("node", "exec", "node1,node2", "true").returncode, 0, "its status where all is well")
        check_in("there is no node", refused("node", "exec", "node[1-3]", "true"), "what is said of a third")
        bulk = run("node", "exec", "node1", "head", "-c", "3000000", "/dev/zero")
        check_equal(bulk.stdout.count(b"\0"), 3000000, "bytes without a line's end")
        client = subprocess.Popen([os.environ["BERTH"], "node", "exec", "node1", "--", "sleep", "1236"])
        await_true("it sleeps", lambda: run("node", "exec", "node1", "pgrep", "-fx", "sleep 1236").returncode == 0)
        client.kill()
        client.wait()
        await_true("it ends", lambda: run("node", "exec", "node1", "pgrep", "-fx", "sleep 1236").returncode == 1)
    check_in("node node1 exec-begun by root", berth("events", "--since", "1h"), "the event log")


@test("an agent or a berthd that is killed ends the command, and nothing of it stays in the guest")
def dies():
    job = start_job()
    node = task(show(job))["node"]
    for victim in (node, "berthd"):
        client = begin(job, "echo here; exec sleep 1234")
        check_equal(client.stdout.readline(), b"here\n", "its first line")
        check(processes(job, "sleep 1234") >= 1, "processes of it")
        lab("kill", victim)
        said = client.communicate(timeout=90)[1].decode()
        check_equal(client.returncode, 125, f"status when {victim} is killed")
        check_in("lost", said, "what is said of it")
        await_true("berthd answers again", lambda: run("node", "ls").returncode == 0, 60)
        await_true(f"{node} joins again", lambda: node_is_up(node), 60)
        await_true("its processes are gone", lambda: processes(job, "sleep 1234") == 0, 60)
    stop(job)


if __name__ == "__main__":
    main()
