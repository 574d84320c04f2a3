# SPDX-License-Identifier: Apache-2.0
"""What was acknowledged to bench/soak's clients, and what became of it on the nodes of bench/rig."""

import threading

from rig_trace import Trace

BEGUN, ENDED, AGAIN = 1, 2, 4
FLAGS = {"begin": BEGUN, "end": ENDED}
TOLD_COMPLETED, TOLD_CANCELLED, TOLD_AGAIN, TOLD_WRONG = 1, 2, 4, 8


class Marks(dict):
    """Job -> flags of each of its tasks, in a byte each: hours of them are millions."""

    def of(self, job, task):
        marks = self.get(job, b"")
        return marks[task] if task < len(marks) else 0

    def add(self, job, task, flags):
        marks = self.setdefault(job, bytearray())
        marks.extend(bytes(max(0, task + 1 - len(marks))))
        marks[task] |= flags

    def count(self, flags):
        return sum(1 for marks in self.values() for mark in marks if mark & flags)


class Ledger(Trace):
    """Clients enter what they were told from threads of their own; one thread reads the trace."""

    def __init__(self, path):
        super().__init__(path)
        self.lock = threading.Lock()
        self.ran = Marks()  # on nodes
        self.told = Marks()  # in berthd's log of events, as its watcher has seen it
        self.promises = {}  # job -> (how many tasks it has, those of them that were cancelled)
        self.ended_tasks = 0

    def add(self, words):
        if words[0] in FLAGS:
            job, task, flag = int(words[1]), int(words[2]), FLAGS[words[0]]
            self.ran.add(job, task, flag | (AGAIN if self.ran.of(job, task) & flag else 0))
        elif words[0] in ("dial", "part", "join"):
            super().add(words)

    def add_event(self, job, task, state):
        """One that says that the task is over. Called by the watcher alone."""
        flag = {"COMPLETED": TOLD_COMPLETED, "CANCELLED": TOLD_CANCELLED}.get(state, TOLD_WRONG)
        self.ended_tasks += 1
        self.told.add(job, task, flag | (TOLD_AGAIN if self.told.of(job, task) else 0))

    def acknowledge(self, job, tasks=1, cancelled=range(0)):
        with self.lock:
            self.promises[job] = (tasks, cancelled)

    def numbers(self):
        """Of jobs and tasks that were acknowledged."""
        with self.lock:
            return len(self.promises), sum(tasks for tasks, _ in self.promises.values())

    def missing(self):
        """(job, task) of each that was promised and that berthd has not said to be over; or, where it was not cancelled, to have
        completed, or that has not ended on a node."""
        with self.lock:
            promises = list(self.promises.items())
        for job, (tasks, cancelled) in promises:
            for task in range(tasks):
                told = self.told.of(job, task)
                if told == 0 or (task not in cancelled and (told & TOLD_COMPLETED == 0 or self.ran.of(job, task) & ENDED == 0)):
                    yield job, task

    def is_settled(self):
        return next(self.missing(), None) is None

    def account(self):
        """lost: promised, and has not ended as it was to; doubled: begun or ended more than once, on nodes or in berthd's log; wrong: it
        has failed; strays: jobs that ran, and are acknowledged to nobody, though each client has asked until it was answered."""
        return {"lost": sum(1 for _ in self.missing()),
                "doubled": self.ran.count(AGAIN) + self.told.count(TOLD_AGAIN),
                "wrong": self.told.count(TOLD_WRONG),
                "strays": len(self.ran.keys() - self.promises.keys())}
