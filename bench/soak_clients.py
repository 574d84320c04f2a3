# SPDX-License-Identifier: Apache-2.0
"""The clients of bench/soak: users' own commands, of which some are killed at random. Who was not answered asks again, as
berth(1) tells scripts to: with the same key, or from the last event that was seen."""

import collections
import json
import random
import re
import subprocess
import threading
import time

UNANSWERED_SECONDS = 600  # for so long nobody goes without an answer, kills or not
AGAIN_SECONDS = 0.05
KILL_SHARE = 0.1  # of the commands ...
KILL_WITHIN_SECONDS = 0.1  # ... which are killed in their first so many seconds
REPEAT_SHARE = 0.1  # of submissions, which are made once more
RECENT = 2000  # jobs, one of which is waited for
STATUS_OF_BERTH = 125  # berth(1): of the command, and not of the job
WATCH_SECONDS = (1, 60)
SEEN_AGAIN = 1000  # events that a watcher asks for once more when it goes on
CANCELS = 20  # at most, until one is answered


class Wrong(Exception):
    """What Berth says contradicts what it said before."""


class Counts:
    """What all clients have met."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kills = 0
        self.refusals = collections.Counter()  # by what was said, without its numbers
        self.recent = collections.deque(maxlen=RECENT)  # jobs that are to complete

    def add_kill(self):
        with self.lock:
            self.kills += 1

    def add_refusal(self, text):
        line = (text.strip().splitlines() or ["(nothing)"])[0]
        with self.lock:
            self.refusals[re.sub(r"\d+", "N", line)] += 1

    def add_job(self, job):
        with self.lock:
            self.recent.append(job)

    def any_job(self, rng):
        with self.lock:
            return rng.choice(self.recent) if self.recent else None


class Client(threading.Thread):
    def __init__(self, berth, ledger, counts, longest, number, seed):
        """LONGEST: tasks of an array, lines of a bulk."""
        super().__init__(daemon=True, name=f"{type(self).__name__.lower()}-{number}")
        self.berth, self.ledger, self.counts, self.longest = berth, ledger, counts, longest
        self.random = random.Random(f"{seed} {self.name}")
        self.is_over = threading.Event()
        self.process = None
        self.error = None
        self.turn = 0

    def run(self):
        try:
            while not self.is_over.is_set():
                self.turn += 1
                self.work()
        except Exception as error:  # pylint: disable=broad-except  # the main thread says it
            self.error = error

    def work(self):
        raise NotImplementedError

    def end(self):
        """Now, whatever it waits for."""
        self.is_over.set()
        if (process := self.process) is not None:
            process.kill()

    def key(self):
        return f"{self.name}-{self.turn}"

    def open(self, *words):
        self.process = subprocess.Popen([self.berth.program("berth"), *words], env=self.berth.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return self.process

    def command(self, *words):
        """(status, whole lines of its output) of `berth WORDS`, which is killed now and then."""
        with self.open(*words) as process:
            is_to_die = self.random.random() < KILL_SHARE
            killer = threading.Timer(self.random.uniform(0, KILL_WITHIN_SECONDS) if is_to_die else UNANSWERED_SECONDS, process.kill)
            killer.start()
            out, said = process.communicate()
            killer.cancel()
        if process.returncode > 0:
            self.counts.add_refusal(said)
        elif process.returncode < 0 and not is_to_die and not self.is_over.is_set():
            raise Wrong(f"berth {' '.join(words)} did not end within {UNANSWERED_SECONDS} s, or was ended by signal {-process.returncode}")
        elif process.returncode < 0:
            self.counts.add_kill()
        return process.returncode, out.rpartition("\n")[0].splitlines()

    def until(self, is_done, *words):
        """`berth WORDS` again and again, until IS_DONE with its status and its lines, which it returns."""
        deadline = time.monotonic() + UNANSWERED_SECONDS
        while not (done := is_done(*self.command(*words))):
            if time.monotonic() > deadline:
                raise Wrong(f"berth {' '.join(words)} has no answer within {UNANSWERED_SECONDS} s")
            time.sleep(AGAIN_SECONDS)
        return done

    def submit(self, *options):
        """With the key of this turn: the job."""
        return self.until(lambda status, lines: status == 0 and int(lines[0]), "submit", "--key", self.key(), *options,
                          self.berth.script)

    def submit_once(self, *options):
        """As submit(), once more now and then, which is to make no other job."""
        job = self.submit(*options)
        if self.random.random() < REPEAT_SHARE and (again := self.submit(*options)) != job:
            raise Wrong(f"key {self.key()} was answered with job {job}, and then with {again}")
        return job


class Single(Client):
    """One job at a time."""

    def work(self):
        job = self.submit_once()
        self.ledger.acknowledge(job)
        self.counts.add_job(job)


class Bulk(Client):
    """Many jobs in a call."""

    def work(self):
        count = self.random.randint(1, self.longest)
        path = self.berth.write(f"{self.name}.jsonl", (json.dumps({"script": self.berth.script}) + "\n") * count, 0o644)
        jobs = {}

        def are_all_taken(_, lines):
            for line, job in enumerate(lines):
                if job != "-" and jobs.setdefault(line, int(job)) != int(job):
                    raise Wrong(f"line {line} of key {self.key()} was job {jobs[line]}, and is {job}")
            return len(jobs) == count

        self.until(are_all_taken, "bulk", "--key", self.key(), path)
        if len(set(jobs.values())) != count:
            raise Wrong(f"{count} lines of key {self.key()} are {len(set(jobs.values()))} jobs")
        for job in jobs.values():
            self.ledger.acknowledge(job)
            self.counts.add_job(job)


class Array(Client):
    """Arrays, of some of which some tasks are cancelled."""

    def work(self):
        count = self.random.randint(1, self.longest)
        job = self.submit_once("--array", f"0-{count - 1}")
        cancelled = range(0)
        if self.random.random() < 0.5:
            first = self.random.randrange(count)
            cancelled = range(first, self.random.randint(first, count - 1) + 1)
            time.sleep(self.random.uniform(0, 1))
            for _ in range(CANCELS):
                if self.command("cancel", f"{job}[{cancelled[0]}-{cancelled[-1]}]")[0] == 0:
                    break
                time.sleep(AGAIN_SECONDS)
        self.ledger.acknowledge(job, count, cancelled)


class Waiter(Client):
    """Whoever waits for a job hears that it has completed, if that is still known."""

    def work(self):
        job = self.counts.any_job(self.random)
        status, lines = self.command("wait", str(job)) if job is not None else (STATUS_OF_BERTH, [])
        if status == 0 and lines != [f"{job} COMPLETED"] or 0 < status < STATUS_OF_BERTH:
            raise Wrong(f"berth wait {job} ends with {status}, and says {lines}")
        if status != 0:
            time.sleep(AGAIN_SECONDS)


class Watcher(Client):
    """Follows all events. It goes on some before the last that it has seen: those say what they said, and there is no gap after them."""

    NUMBER = re.compile(r'"seq":"(\d+)"')
    OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.latest = collections.deque(maxlen=SEEN_AGAIN)  # lines, of which the last has the number ...
        self.seen = self.first = None
        self.next = None  # that comes next

    def since(self):
        return [] if self.seen is None else ["--since", str(self.seen - len(self.latest))]

    def work(self):
        self.next = None if self.seen is None else self.seen - len(self.latest) + 1
        with self.open("events", "--follow", "--json", *self.since()) as process:
            killer = threading.Timer(self.random.uniform(*WATCH_SECONDS), process.kill)
            killer.start()
            try:
                for line in process.stdout:
                    if line.endswith("\n"):
                        self.take(line)
            finally:
                process.kill()
                killer.cancel()
            said = process.stderr.read()
        if process.returncode < 0:
            self.counts.add_kill()
        else:
            self.counts.add_refusal(said)
            time.sleep(AGAIN_SECONDS)

    def take(self, line):
        number = int(self.NUMBER.search(line).group(1))
        if self.next is not None and number != self.next:
            raise Wrong(f"where event {self.next} is to come comes event {number}")
        self.next = number + 1
        if self.seen is not None and number <= self.seen:
            before = self.latest[len(self.latest) - 1 - (self.seen - number)]
            if line != before:
                raise Wrong(f"event {number} was {before.strip()}, and is {line.strip()}")
            return
        self.first = number if self.first is None else self.first
        self.seen = number
        self.latest.append(line)
        if '"TASK_STATE"' in line:
            self.take_state(json.loads(line))

    def take_state(self, event):
        """Of a range of tasks, where one event is for all of them."""
        state = event["state"]
        if state in self.OVER:
            task = event.get("task", 0)
            for each in range(task, max(task, event.get("restLast", 0)) + 1, event.get("restStep", 0) or 1):
                self.ledger.add_event(int(event["job"]), each, state)

    def count(self):
        return 0 if self.seen is None else self.seen - self.first + 1
