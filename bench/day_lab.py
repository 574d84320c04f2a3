# SPDX-License-Identifier: Apache-2.0
"""The lab of bench/mixed-day: how it is set up, what it takes there to start, move and save a guest, and a day on it."""

import concurrent.futures
import functools
import itertools
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

from bench_lab import TREE, Lab, note
from day_jobs import ARRIVE_SEC_PER_JOB, NODE_MIB, NODE_VCPUS

NODES = 3
OVERHEAD_MIB = 96  # berthd.conf(5), guests.overhead
# Half of what storage has left is for checkpoints, and whoever runs in slack needs as much of that as he has reserved: with 8 GiB
# it is that which keeps jobs from slack, and nothing that a day is about.
CEPH_GIB = 48
NODE_WITH_OVERHEAD_MIB = NODE_MIB + NODE_VCPUS * OVERHEAD_MIB
TICKS_PER_SEC = 5  # payload.c
WAIT_SECONDS = 1800
# The day's constants: an hour is a minute, and so what is minutes by default is seconds here. What moves and
# checkpoints cost is not scaled. Nobody lacks CPU, but all are emulated by a machine that is shared: who is late has not
# starved.
POLICY = {
    "settle_usec": 5000000, "slack_plan_interval_usec": 1000000, "rank_interval_usec": 1000000,
    "balance_interval_usec": 3000000, "cooldown_usec": 10000000, "near_end_usec": 10000000,
    "decay_half_life_usec": 720000000, "cpu_decay_half_life_usec": 10000000, "evacuation_max_usec": 60000000,
    "starved_permille": 1001, "migrate_mib_per_sec": 100, "checkpoint_mib_per_sec": 50}
BALLOONS = False  # berthd.conf(5), guests.balloons
DISK = "8M"
REHEARSED, REHEARSAL_MIB, REHEARSAL_HELD_MIB, REHEARSAL_STEPS = 6, 256, 64, 2000
# Of who is measured, and of the first two, who are handled when all have been.
REHEARSAL_SEC, HANDLED_SEC, HANDLED = 60, 200, 2


def await_true(what, condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.2)
    return found


class DayLab(Lab):
    """Three nodes, the image "day", and berthd with the day's constants."""

    def __init__(self, prefix, name=None):
        super().__init__(prefix, name, purpose="day", nodes=NODES, vcpus=NODE_VCPUS,
                         memory=f"{NODE_WITH_OVERHEAD_MIB}M", ceph_gib=CEPH_GIB)
        self.payload = os.path.join(self.prefix, "bench", "payload")

    def prepare(self):
        super().prepare()
        if "day" not in [line.split()[0] for line in self.berth("image", "ls").splitlines()]:
            self.import_day()
        with open(self.configuration()) as file:
            self.original = file.read()

    def __exit__(self, *exception):
        if not self.ours and hasattr(self, "original"):
            self.restart(self.original)
        super().__exit__(*exception)

    def configuration(self):
        return os.path.join(self.data, "etc", "berthd.conf")

    def import_day(self):
        """busybox, with the payload in it."""
        with tempfile.TemporaryDirectory() as directory:
            archive, program = os.path.join(directory, "day.tar"), os.path.join(directory, "bin", "payload")
            os.mkdir(os.path.dirname(program))
            subprocess.run(["strip", "-o", program, self.payload], check=True)
            subprocess.run([os.path.join(TREE, "images", "recipes", "busybox"), archive], check=True,
                           stdout=subprocess.DEVNULL)
            subprocess.run(["tar", "-C", directory, "--owner=0", "--group=0", "--mode=0755", "-rf", archive,
                            "./bin/payload"], check=True)
            self.berth("image", "import", "day", archive)

    def configure(self, slack, **policy):
        """berthd is started anew, with the day's constants and those of POLICY; until all nodes have joined it."""
        lines = "".join(f"{name}={value}\n" for name, value in {**POLICY, **policy}.items())
        text = self.original.replace("[policy]\n", f"[policy]\n{lines}")
        text = text.replace("[guests]\n", f"[guests]\nslack={'yes' if slack else 'no'}\nballoons={'yes' if BALLOONS else 'no'}\n"
                            f"overhead={OVERHEAD_MIB}M\n")
        self.restart(text)

    def restart(self, text):
        """berthd, with that as its configuration."""
        with open(self.configuration(), "w") as file:
            file.write(text)
        self.lab("restart", "berthd")
        await_true("berthd is back, and all nodes are up", self.nodes_are_up)

    def nodes_are_up(self):
        listed = subprocess.run([self.berth_program, "node", "ls", "--json"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, env=self.environment, timeout=60)
        states = [json.loads(line)["state"] for line in listed.stdout.splitlines()]
        return len(states) == NODES and set(states) == {"NODE_UP"}

    # --- jobs

    def submit(self, name, vcpus, memory_mib, limit_sec, *payload):
        return self.berth("submit", "--name", name, "--image", "day", "--vcpus", str(vcpus), "--memory",
                          f"{memory_mib}M", "--disk", DISK, "--time", str(limit_sec), "--", "payload",
                          *map(str, payload)).strip()

    def wait(self, jobs):
        """How they have ended, by number; a job that was not COMPLETED is the caller's business."""
        ended = subprocess.run([self.berth_program, "wait", "--json", *jobs], stdout=subprocess.PIPE,
                               env=self.environment, timeout=WAIT_SECONDS)
        return {job["id"]: job for job in map(json.loads, ended.stdout.splitlines())}

    def show(self, job):
        return json.loads(self.berth("show", "--json", job))["tasks"][0]

    def events(self, jobs):
        wanted = set(jobs)
        events = map(json.loads, self.berth("events", "--json", *jobs).splitlines())
        return [event for event in events if event["job"] in wanted]

    def result(self, job):
        """The last line of its output."""
        return (self.berth("logs", job).splitlines() or [""])[-1]

    def verify(self, outcomes):
        """What is wrong with them, a line for each. Each result is computed here once more, which takes as much CPU as
        the job had: not while others are measured."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            expected = list(pool.map(self.expected, [payload for _, payload, _, _ in outcomes]))
        return [f"job {job} is {state}, '{result}' instead of '{wanted}'"
                for (job, _, state, result), wanted in zip(outcomes, expected)
                if (state, result) != ("COMPLETED", wanted)]

    @functools.lru_cache(maxsize=None)
    def expected(self, payload):
        """The same jobs come twice."""
        return subprocess.run([self.payload, "--expect", *map(str, payload)], check=True, stdout=subprocess.PIPE,
                              timeout=WAIT_SECONDS).stdout.decode().strip()


# --- what things take ----------------------------------------------------------------------------

# Of a span of the event log: what begins it, and what ends it.
SPANS = {"release": ("GUEST_EXITED", "GUEST_RELEASED"), "migrate": ("GUEST_MIGRATE", "GUEST_MIGRATED"),
         "checkpoint": ("GUEST_CHECKPOINT", "GUEST_CHECKPOINTED"), "restore": ("GUEST_RESTORE", "GUEST_RUNNING"),
         "boot": ("GUEST_START", "GUEST_RUNNING")}


def spans(events):
    """Seconds, a list for each name of SPANS."""
    found, began = {name: [] for name in SPANS}, {}
    for event in events:
        for name, (first, last) in SPANS.items():
            if event["kind"] == first:
                began[event["job"], name] = int(event["timeUsec"])
            elif event["kind"] == last and (event["job"], name) in began:
                found[name].append((int(event["timeUsec"]) - began.pop((event["job"], name))) / 1e6)
    return found


class Rehearsal:
    """What guests take on this machine: to start, to end, to move, to be saved and put back (medians, in seconds); how
    many steps of the payload a second of CPU is; what a guest uses by itself, what its kernel keeps, and what its host
    counts besides."""

    def __init__(self, lab):
        self.lab = lab
        steps = [0, REHEARSAL_STEPS] * (REHEARSED // 2)
        payloads = [(HANDLED_SEC if i < HANDLED else REHEARSAL_SEC, n, REHEARSAL_HELD_MIB, i)
                    for i, n in enumerate(steps)]
        jobs = [self.begin(*payload) for payload in payloads]
        usages = [self.usage_when_full(job) for job in jobs[HANDLED:]]
        self.handle(jobs[:HANDLED])
        ended = lab.wait(jobs)
        wrong = lab.verify(outcomes(lab, dict(zip(jobs, payloads)), ended))
        if wrong:
            raise RuntimeError("; ".join(wrong))
        self.seconds = {name: statistics.median(times) for name, times in spans(lab.events(jobs)).items()}
        self.measure_memory(usages)
        used = [int(ended[job]["tasks"][0]["usage"]["cpuUsec"]) for job in jobs]
        busy, idle = statistics.median(used[HANDLED + 1::2]), statistics.median(used[HANDLED::2])
        self.steps_per_cpu_sec = REHEARSAL_STEPS * TICKS_PER_SEC * REHEARSAL_SEC / max((busy - idle) / 1e6, 0.001)

    def begin(self, *payload):
        """They come as the day's do, one every two seconds."""
        time.sleep(ARRIVE_SEC_PER_JOB)
        return self.lab.submit("rehearsal", 2, REHEARSAL_MIB, 600, *payload)

    def usage_when_full(self, job):
        """When it holds all that it is to hold, and has been measured since."""
        def is_full():
            said = re.findall(r"^(\d+) of", self.lab.berth("logs", job), re.MULTILINE)
            return said and int(said[-1]) >= REHEARSAL_SEC // 2 + 5
        await_true(f"job {job} holds its memory", is_full, 600)
        return self.lab.show(job)["usage"]

    def handle(self, jobs):
        for job in jobs:
            self.lab.berth("migrate", "--wait", job)
        for job in jobs:
            self.lab.berth("freeze", "--to-disk", job)
            self.lab.berth("thaw", job)

    def measure_memory(self, usages):
        totals = [int(usage["memoryTotalMib"]) for usage in usages]
        used = [total - int(usage["memoryAvailableMib"]) for total, usage in zip(totals, usages)]
        hosts = [int(usage["hostMemoryMib"]) for usage in usages]
        self.kernel_mib = REHEARSAL_MIB - int(statistics.median(totals))
        self.base_mib = int(statistics.median(used)) - REHEARSAL_HELD_MIB
        self.host_mib = int(statistics.median(host - use for host, use in zip(hosts, used)))

    def steps(self, cpu_milli):
        """Of the payload, in each tick, that take so much CPU."""
        return max(round(cpu_milli / 1000 * self.steps_per_cpu_sec / TICKS_PER_SEC), 1)

    def costs(self):
        """For berth-sim. What the rehearsal's guests had to copy is part of what is fixed. An emulated guest stands
        still while it moves."""
        usec = {name: round(seconds * 1e6) for name, seconds in self.seconds.items()}
        return {"boot_usec": usec["boot"], "release_usec": usec["release"], "migrate_fixed_usec": usec["migrate"],
                "migrate_pause_usec": usec["migrate"], "checkpoint_fixed_usec": usec["checkpoint"],
                "restore_fixed_usec": usec["restore"], "host_mib": self.host_mib,
                # Of what is touched beyond the rehearsal's little there is next to nothing.
                "migrate_mib_per_sec": 1000, "checkpoint_mib_per_sec": 1000, "dirty_mib_per_cpu_sec": 1}


def outcomes(lab, payloads, ended):
    """Of each job (number to payload): number, payload, state and last line, for verify()."""
    def state(job):
        return ended[job]["state"] if job in ended else f"not ended: {lab.show(job)['reason']}"
    return [(job, payload, state(job), lab.result(job)) for job, payload in payloads.items()]


# --- a day -----------------------------------------------------------------------------------------


def payload_of(job, rehearsal):
    return job.run_sec, rehearsal.steps(job.cpu_milli), job.held_mib, job.number


def run_day(lab, jobs, rehearsal, name):
    """Submits each job at its time; when all have ended, what came of it, but for whether the OUTCOMES are right."""
    began, submitted, late = time.monotonic(), {}, 0.0
    for job in jobs:
        time.sleep(max(began + job.submit_sec - time.monotonic(), 0))
        late = max(late, time.monotonic() - began - job.submit_sec)
        number = lab.submit(job.name, job.vcpus, job.memory_mib, job.limit_sec, *payload_of(job, rehearsal))
        submitted[number] = job
    note(f"{name}: all {len(jobs)} are submitted, none later than {late:.1f} s after its time")
    ended = lab.wait(list(submitted))
    note(f"{name}: all have ended, {time.monotonic() - began:.0f} s after the first was submitted")
    payloads = {number: payload_of(job, rehearsal) for number, job in submitted.items()}
    return {**summary(submitted, ended, lab.events(list(submitted))), "outcomes": outcomes(lab, payloads, ended)}


def most_at_once(reserved):
    """Of (from, until, vCPUs): beyond what the nodes have it is slack."""
    changes = sorted(change for begin, end, vcpus in reserved for change in ((begin, vcpus), (end, -vcpus)))
    return max(itertools.accumulate(vcpus for _, vcpus in changes))


def summary(submitted, ended, events):
    """As berth-sim counts: until the last command ended; a job waits for all that it was there and did not run, or was
    slow."""
    times = [(int(ended[number]["submitUsec"]) / 1e6, int(ended[number]["tasks"][0]["startUsec"]) / 1e6,
              int(ended[number]["tasks"][0]["endUsec"]) / 1e6, job.run_sec)
             for number, job in submitted.items() if number in ended]
    reserved = [(int(ended[number]["tasks"][0]["startUsec"]), int(ended[number]["tasks"][0]["endUsec"]), job.vcpus)
                for number, job in submitted.items() if number in ended]
    kinds = [event["kind"] for event in events]
    first = min(submit for submit, *_ in times)
    return {"jobs": len(times), "finished_s": round(max(end for _, _, end, _ in times) - first, 1),
            "mean_wait_s": round(statistics.mean(end - submit - run for submit, _, end, run in times), 1),
            "mean_start_wait_s": round(statistics.mean(start - submit for submit, start, _, _ in times), 1),
            "most_vcpus": most_at_once(reserved), "moves": kinds.count("GUEST_MIGRATED"),
            "checkpoints": kinds.count("GUEST_CHECKPOINTED"),
            "starts_failed": kinds.count("GUEST_START_FAILED"), "moves_failed": kinds.count("GUEST_MIGRATE_FAILED"),
            "checkpoints_failed": kinds.count("GUEST_CHECKPOINT_FAILED"),
            "seconds": {what: [round(statistics.median(list_), 2), len(list_)]
                        for what, list_ in spans(events).items() if list_}}
