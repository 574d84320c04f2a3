# SPDX-License-Identifier: Apache-2.0
"""What bench/vs-slurm wants of either scheduler, and what is the same for both: processes that are ended by their
numbers, clients that submit, and what is read of the controller."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SCRIPT = "#!/bin/sh\ntrue\n"
START_SECONDS = 120  # until a daemon answers
ANSWER_SECONDS = 600
END_SECONDS = 30  # for a daemon that was asked to end
PR_SET_CHILD_SUBREAPER = 36

PRIVATE_OPEN_FILES = 65536


def adopt_orphans():
    """What daemons leave behind becomes a child of this process, which can end it then without looking at others'."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_on_signals():
    """Through what cleans up, which a second signal does not disturb."""
    def end(number, _):
        for other in (signal.SIGINT, signal.SIGTERM):
            signal.signal(other, signal.SIG_IGN)
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def children():
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]


def end_orphans():
    deadline = time.monotonic() + END_SECONDS
    while left := children():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes {left} do not end")


PORTS_STEP = 100
ports_claimed = contextlib.ExitStack()


def claim_ports(first, count):
    """Sockets of which each keeps PORTS_STEP ports from others who ask here, also while nobody listens on them."""
    with contextlib.ExitStack() as claims:
        for step in range(first, first + count, PORTS_STEP):
            claims.enter_context(socket.socket(socket.AF_UNIX)).bind(f"\0berth-bench-ports-{step}")
        return claims.pop_all()


def free_ports(count):
    """That many in a row on which nobody listens. They are this program's until it ends."""
    for first in range(20000 + os.getpid() % 97 * PORTS_STEP, 60000, PORTS_STEP):
        with contextlib.ExitStack() as stack:
            try:
                claims = stack.enter_context(claim_ports(first, count))
                with contextlib.ExitStack() as listening:
                    for port in range(first, first + count):
                        listening.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            stack.pop_all()
            ports_claimed.push(claims)
            return first
    raise RuntimeError(f"there are no {count} free ports in a row")


def raise_open_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    want = PRIVATE_OPEN_FILES if hard == resource.RLIM_INFINITY else min(PRIVATE_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(want, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), hard))


class Cluster:
    """A controller with its state in a directory of its own, and perhaps nodes. Subclasses say how."""

    name = ""
    look_seconds = 0.02  # between two looks at what has ended

    def __init__(self, directory):
        self.directory = tempfile.mkdtemp(prefix=f"vs-slurm-{self.name}-", dir=directory)
        os.chmod(self.directory, 0o755)
        self.environment = dict(os.environ)
        self.processes = {}
        self.script = self.write("job.sh", SCRIPT)

    def __enter__(self):
        try:
            self.prepare()
            self.start_controller()
            self.await_answer()
            self.is_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in reversed(list(self.processes)):
            self.end(name)
        end_orphans()
        shutil.rmtree(self.directory)

    # --- what subclasses say ---

    def prepare(self):
        raise NotImplementedError

    def start_controller(self):
        raise NotImplementedError

    def is_up(self):
        """Once, when the controller answers for the first time."""

    def start_nodes(self, count):
        raise NotImplementedError

    def submit_command(self):
        """Of one job, as a user types it."""
        raise NotImplementedError

    def client_command(self):
        raise NotImplementedError

    def ask_command(self):
        """The cheapest question that the controller answers."""
        raise NotImplementedError

    def list_command(self):
        raise NotImplementedError

    def array_command(self, count):
        """Of one array of so many tasks, as a user types it. It prints the job's number, or that and more words."""
        raise NotImplementedError

    def pending_tasks(self, job):
        """How many tasks of that array wait."""
        raise NotImplementedError

    def submit_bulk(self, count, at_once=1):
        """Independent jobs, by the fastest way that it has, AT_ONCE of it, until all are taken: how many, in how many
        seconds, and how often one was refused meanwhile."""
        raise NotImplementedError

    def starts(self):
        """Job -> when its command began, in seconds since 1970."""
        raise NotImplementedError

    def has_ended(self, count):
        """Have so many jobs ended, and does the controller know?"""
        raise NotImplementedError

    def await_ended(self, count):
        """Until so many jobs have ended: when, in seconds since 1970."""
        self.await_true(f"{count} jobs have ended", lambda: self.has_ended(count), ANSWER_SECONDS, self.look_seconds)
        return time.time()

    def await_saved(self):
        """Until what was acknowledged is on disk, where that is not the same."""

    # --- files and processes ---

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def write(self, name, text, mode=0o755):
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def start(self, name, *command):
        with open(self.path(f"{name}.log"), "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                    env=self.environment, preexec_fn=raise_open_files)
        return self.processes[name]

    def log(self, name):
        with open(self.path(f"{name}.log"), errors="replace") as file:
            return file.read()[-2000:]

    def end(self, name, signal_number=signal.SIGTERM):
        """Its status: that of SIGKILL, if it did not end otherwise."""
        process = self.processes.pop(name)
        process.send_signal(signal_number)
        try:
            return process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def check_runs(self, name):
        if (status := self.processes[name].poll()) is not None:
            raise RuntimeError(f"{self.name}: {name} has ended by itself, with status {status}: {self.log(name)}")

    def kill_controller(self):
        self.end("controller", signal.SIGKILL)

    def run(self, *command, check=True, timeout=ANSWER_SECONDS):
        return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment,
                              timeout=timeout)

    def await_true(self, what, condition, seconds=START_SECONDS, pause=0.01):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(self.log(name) for name in self.processes)
                raise RuntimeError(f"{self.name}: not within {seconds} s: {what}\n{logs}")
            time.sleep(pause)

    def answers(self):
        self.check_runs("controller")
        return self.run(*self.ask_command(), check=False).returncode == 0

    def await_answer(self):
        self.await_true("the controller answers", self.answers)

    # --- what is measured of either ---

    def submit_by_processes(self, count, at_once=1):
        """Jobs a second by one process for each job, AT_ONCE loops of a shell side by side."""
        loop = 'i=0; count=$1; shift; while [ $i -lt $count ]; do "$@" >/dev/null || exit 1; i=$((i + 1)); done'
        began = time.monotonic()
        loops = [subprocess.Popen(["sh", "-c", loop, "sh", str(count // at_once), *self.submit_command()],
                                  env=self.environment, stdin=subprocess.DEVNULL) for _ in range(at_once)]
        if any([process.wait() != 0 for process in loops]):
            raise RuntimeError(f"{self.name}: a submission failed")
        return count // at_once * at_once / (time.monotonic() - began)

    def submit_array(self, count):
        """One of so many tasks: its number, and how many seconds its submission took."""
        began = time.monotonic()
        text = self.run(*self.array_command(count)).stdout
        return int(text.split()[-1]), time.monotonic() - began

    def submit(self, count, connections=1, pause_msec=0, script=None, user=None):
        """(job, when it was begun to be submitted in seconds since 1970, seconds until it was acknowledged) of each. By USER, or
        by who runs this."""
        command = [*self.client_command(), str(count // connections), str(pause_msec), script or self.script]
        clients = [subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user)
                   for _ in range(connections)]
        for client in clients:
            if client.stdout.readline() != "ready\n":
                raise RuntimeError(f"{self.name}: a client could not begin")
        for client in clients:
            client.stdin.close()
        texts = [None] * connections

        def read(number):
            texts[number] = clients[number].stdout.read()

        readers = [threading.Thread(target=read, args=(number,)) for number in range(connections)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        if any([client.wait() != 0 for client in clients]):
            raise RuntimeError(f"{self.name}: a submission failed")
        lines = [line.split() for text in texts for line in text.splitlines()]
        return [(int(job), int(began) / 1e6, int(took) / 1e6) for job, began, took in lines]

    def status(self, field):
        with open(f"/proc/{self.processes['controller'].pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(f"{field}:"))

    def memory(self):
        """Of the controller's own, in bytes: neither files nor what it shares."""
        return self.status("RssAnon")

    def cpu_seconds(self):
        """That the controller has used."""
        with open(f"/proc/{self.processes['controller'].pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def listing_seconds(self, least_lines):
        began = time.monotonic()
        lines = self.run(*self.list_command()).stdout.count(b"\n")
        took = time.monotonic() - began
        if lines < least_lines:
            raise RuntimeError(f"{self.name}: a listing has {lines} lines, and not {least_lines}")
        return took

    def jobs(self):
        """The numbers of all that wait."""
        raise NotImplementedError

    def restart_seconds(self):
        """From kill -9 to the first answer."""
        began = time.monotonic()
        self.kill_controller()
        self.start_controller()
        self.await_answer()
        return time.monotonic() - began
