# SPDX-License-Identifier: Apache-2.0
"""Reads what bench/rig writes with --trace, and reckons from it what became of jobs. These have one task each."""

import os


class Trace:
    """What there is of it so far: berthd has committed each end that is kept."""

    def __init__(self, path):
        self.path = path
        self.read_bytes = 0
        self.jobs = {"begin": {}, "end": {}, "kept": {}}  # job -> when at first, in seconds since 1970
        self.again = {word: set() for word in self.jobs}  # jobs of which that was said more than once

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
        word, job, usec = words[0], int(words[1]), int(words[-1])
        if job in self.jobs[word]:
            self.again[word].add(job)
        self.jobs[word].setdefault(job, usec / 1e6)

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
