# SPDX-License-Identifier: Apache-2.0
"""kill -9 of berthd, of each berth-node and of the CLI at random moments while jobs run: every
job ends right, once, with its complete output."""

import json
import os
import random
import subprocess
import threading
import time

from harness import *

JOBS = by_size(10, 12, 50)
KILLS = by_size(6, 8, 30)
LINES = 400

# Each line carries its number; a start leaves its mark first, so that a second one would show.
SCRIPT = (f'echo "start $BERTH_JOB_ID"; i=0; while [ $i -lt {LINES} ]; do echo "line $i"; '
          'i=$((i+1)); [ $((i % 50)) -ne 0 ] || sleep 1; done; echo "end" >&2; exit $(($1 % 2))')


def expected(job):
    lines = [f"start {job}"] + [f"line {i}" for i in range(LINES)]
    return ("\n".join(lines) + "\n").encode(), b"end\n"


class Submitter(threading.Thread):
    """Submits all jobs over the time of the kills, each with a key; a submission whose CLI was killed
    or that found no berthd is made again with the same key."""

    NAME = f"kill-{os.getpid()}"

    def __init__(self, rng):
        super().__init__()
        self.rng = rng
        self.jobs = {}
        self.kills_due = 0
        self.error = None

    def run(self):
        try:
            for n in range(JOBS):
                self.jobs[n] = self.submit(n)
                time.sleep(self.rng.uniform(0, 1.0))
        except Exception as error:  # raised again by the main thread
            self.error = error

    def start_cli(self, n):
        return subprocess.Popen(
            [BERTH, "submit", "--key", f"{self.NAME}-{n}", "--name", self.NAME, "--memory", "96M", "--",
             "sh", "-c", SCRIPT, "job", str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def submit(self, n):
        deadline = time.monotonic() + 60
        while True:
            process = self.start_cli(n)
            if self.kills_due > 0:
                self.kills_due -= 1
                time.sleep(self.rng.uniform(0, 0.03))
                process.kill()
            stdout, stderr = process.communicate()
            if process.returncode == 0:
                return int(stdout)
            check(time.monotonic() < deadline, f"submit fails for 60 s: {stderr.decode()}")
            time.sleep(0.1)


def kill_cli(submitter, rng):
    """A submission if one is still to come, else a reader."""
    if submitter.is_alive():
        submitter.kills_due += 1
        return "the next berth submit"
    process = subprocess.Popen([BERTH, "logs", "-f", str(rng.choice(list(submitter.jobs.values())))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(rng.uniform(0, 0.5))
    process.kill()
    process.wait()
    return "berth logs -f"


def kill_daemon(name):
    """Waits until a process runs (the last one may have just been killed), and sees it end."""
    pid = await_true(f"{name} runs", lambda: lab_daemon(name), 60)
    lab("kill", name)
    await_true(f"process {pid}, {name}, ends", lambda: not os.path.exists(f"/proc/{pid}"))
    return f"{name}, process {pid}"


def await_berthd():
    """The last kill may have been its."""
    await_true("berthd answers again", lambda: run("node", "ls").returncode == 0)


@test(f"{KILLS} kills at random moments while {JOBS} jobs run: each ends once, with all of its output")
def kills():
    rng = seeded_random()
    submitter = Submitter(random.Random(rng.random()))
    submitter.start()
    done = 0
    for n in range(KILLS):
        time.sleep(rng.uniform(0.1, 2.5))
        target = rng.choice(["berthd", "node1", "node2", "cli"])
        if target == "cli":
            target = kill_cli(submitter, rng)
        else:
            target = kill_daemon(target)
        done += 1
        say(f"kill {done}: {target}")
    submitter.join()
    if submitter.error:
        raise submitter.error
    await_berthd()
    jobs = submitter.jobs
    check_equal(len(set(jobs.values())), JOBS, "distinct jobs")
    known = [json.loads(line) for line in berth("ls", "--all", "--json").splitlines()]
    check_equal(sorted(int(job["id"]) for job in known if job["name"] == submitter.NAME),
                sorted(jobs.values()), "jobs that berthd knows")
    ended = wait(*jobs.values(), timeout=1000)
    logs = logs_in_storage()
    for n, job in jobs.items():
        check_equal(ended[job]["state"], "FAILED" if n % 2 else "COMPLETED", f"state of job {job}: {ended[job]}")
        check_equal(number(task(ended[job]), "exit", "status"), n % 2, f"status of job {job}")
        # A start that failed before the command's first word may have been made again.
        earlier = [f"log-{job}-0-0-{epoch}.out" for epoch in range(1, number(task(ended[job]), "epoch"))]
        check_equal(logs.intersection(earlier), set(), f"output of earlier guests of job {job}")
        check_equal(number(task(ended[job]), "requeues"), 0, f"lost guests of job {job}")
        check_equal(output(job), expected(job), f"output of job {job}")


@test("all daemons are back, and a job runs")
def back():
    await_berthd()
    await_true("all nodes are up", lambda: all(n["state"] == "NODE_UP" for n in nodes().values()))
    check_equal(run("run", "--", "echo", "well").stdout, b"well\n", "output")


if __name__ == "__main__":
    main()
