# SPDX-License-Identifier: Apache-2.0
"""Reads what bench/rig writes with --trace, and reckons from it what became of jobs and nodes. A job has one task."""

import os


class Trace:
    """What there is of it so far: berthd has committed each end that is kept."""

    def __init__(self, path):
        self.path = path
        self.read_bytes = 0
        self.jobs = {"begin": {}, "end": {}, "kept": {}}  # job -> when at first, in seconds since 1970
        self.again = {word: set() for word in self.jobs}  # jobs of which that was said more than once
        self.began = {}  # node -> when it dialled, or was made to join again, at last
        self.joins = {}  # node -> when it joined, each time

    def read(self):
        """What was written since the last time: how many lines."""
        if not os.path.exists(self.path):
            return 0
        count = 0
        with open(self.path, "rb") as file:
            file.seek(self.read_bytes)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read_bytes += len(line)
                count += 1
                self.add(line.decode().split())
        return count

    def add(self, words):
        word, seconds = words[0], int(words[-1]) / 1e6
        if word in ("dial", "part"):
            self.began[words[1]] = seconds
        elif word == "join":
            self.joins.setdefault(words[1], []).append(seconds)
        else:
            self.add_job(word, int(words[1]), seconds)

    def add_job(self, word, job, seconds):
        if job in self.jobs[word]:
            self.again[word].add(job)
        self.jobs[word].setdefault(job, seconds)

    def joined(self, since=0):
        """(when it began, when it had joined) of each node that has dialled, or was made to join again, SINCE then."""
        turns = []
        for node, began in self.began.items():
            after = [joined for joined in self.joins.get(node, ()) if joined >= began >= since]
            turns += [(began, after[0])] if after else []
        return turns

    def are_kept(self, jobs):
        return len(self.jobs["kept"]) >= len(jobs) and jobs <= self.jobs["kept"].keys()

    def account(self, acknowledged, known):
        """Of jobs that were ACKNOWLEDGED, when all have ended that could. KNOWN: called if it is needed, all of which berthd
        knows anything.
        lost: there is neither an end that berthd has committed nor a record of the job; unended: there is a record, and it
        has not ended on any node; doubled: it has begun or ended more than once."""
        missing = acknowledged - self.jobs["kept"].keys()
        found = missing & known() if missing else set()
        return {"lost": len(missing - found), "unended": len(found),
                "doubled": len(self.again["begin"] | self.again["end"])}
