# SPDX-License-Identifier: Apache-2.0
"""The jobs of bench/mixed-day: how they are drawn from a Torque log, and the same as a trace for berth-sim.

Drawn, with a seed, is from the jobs of the log that ran on one node, with half of its cores at most (three nodes
stand for eighteen here, and a job of a whole one would decide the day alone), for ten minutes at least, and of
which the log has CPU time and memory used. Then they are scaled:

- an hour is a minute; none runs for less than 20 s or more than 180 s;
- four cores are a vCPU, and 1 GiB is 8 MiB: a node of 32 cores and 512 GiB is one of 8 vCPUs and 4 GiB;
- of a vCPU that it uses a job burns a twenty-fourth of a real CPU: all nodes share the few of one machine. In
  simulation and in berthd's eyes jobs so use a twenty-fourth of the CPU that the log's did; their memory they use
  as those did;
- they are submitted at instants that are drawn, each as likely, within two seconds for each job: sixty come in two
  minutes.

All of these times can be stretched, as bench/mixed-day does: where guests are emulated a start takes seconds of the machine's CPUs, and sixty in two minutes
may be all that it has.
"""

import collections
import lzma
import math
import random
import re
import time

RUN_SEC_MIN, RUN_SEC_MAX, TIME_SCALE = 20, 180, 60
CORES_PER_VCPU, MIB_PER_GIB, CPU_SCALE = 4, 8, 24
MEMORY_MIB_MIN, LIMIT_SEC_MIN = 96, 120
ARRIVE_SEC_PER_JOB = 2
NODE_VCPUS, NODE_MIB = 8, 4096
RAN_SEC_MIN, CORES_MAX = 600, 16
# Of what its kernel leaves it, a job holds no more: one that has next to nothing left is at its limit.
FULL_PERMILLE = 800
EPOCH_SEC = 1506816000  # of the trace; 2017-10-01, when mason's log begins
KIB = {"b": 1 / 1024, "kb": 1, "mb": 1 << 10, "gb": 1 << 20, "tb": 1 << 30}

Ended = collections.namedtuple("Ended", "name cores walltime cput limit used_kib asked_kib")
# HELD_MIB: by its payload at most; CPU_MILLI: of a real CPU; SUBMIT_SEC: after the first one.
Job = collections.namedtuple("Job", "number name submit_sec run_sec limit_sec vcpus memory_mib held_mib cpu_milli")


# --- Torque's log ------------------------------------------------------------------------------


def clock(text):
    seconds = 0
    for part in text.split(":"):
        seconds = seconds * 60 + int(part)
    return seconds


def kib(text):
    number, unit = re.fullmatch(r"(\d+)([a-z]+)", text.lower()).groups()
    return int(number) * KIB[unit]


def read_ended(line):
    """An E line of a job on one node that has all that is wanted, or None."""
    fields = line.rstrip("\n").split(";", 3)
    if len(fields) < 4 or fields[1] != "E":
        return None
    values = dict(word.split("=", 1) for word in fields[3].split(" ") if "=" in word)
    nodes, *words = values.get("Resource_List.nodes", "2").split(":")
    if nodes != "1" or "Resource_List.vmem" not in values or "resources_used.mem" not in values:
        return None
    cores = next((int(word[4:]) for word in words if word.startswith("ppn=")), 1)
    return Ended(values["jobname"], cores, clock(values["resources_used.walltime"]),
                 clock(values["resources_used.cput"]), clock(values["Resource_List.walltime"]),
                 kib(values["resources_used.mem"]), kib(values["Resource_List.vmem"]))


def read_log(path):
    opener = lzma.open if path.endswith(".xz") else open
    with opener(path, "rt") as file:
        ended = filter(None, map(read_ended, file))
        return [job for job in ended if job.walltime >= RAN_SEC_MIN and job.cput > 0 and job.used_kib > 0
                and job.cores <= CORES_MAX]


# --- drawing -----------------------------------------------------------------------------------


def clamp(value, least, most):
    return max(least, min(value, most))


def scaled(number, ended, submit_sec, name, stretch):
    run_sec = stretch * clamp(round(ended.walltime / TIME_SCALE), RUN_SEC_MIN, RUN_SEC_MAX)
    memory_mib = clamp(math.ceil(ended.asked_kib * MIB_PER_GIB / KIB["gb"]), MEMORY_MIB_MIN, NODE_MIB)
    used_mib = round(ended.used_kib * MIB_PER_GIB / KIB["gb"])
    cpu_milli = round(1000 * min(ended.cput / ended.walltime, ended.cores) / CORES_PER_VCPU / CPU_SCALE)
    return Job(number=number, name=name, submit_sec=submit_sec, run_sec=run_sec,
               # Nobody is stopped for being slow where all is: that is not what this is about.
               limit_sec=max(stretch * round(ended.limit / TIME_SCALE), 3 * run_sec, stretch * LIMIT_SEC_MIN),
               vcpus=math.ceil(ended.cores / CORES_PER_VCPU), memory_mib=memory_mib, held_mib=used_mib,
               cpu_milli=max(cpu_milli, 1))


def draw(path, count, seed, stretch):
    """COUNT jobs of the log at PATH, by their submit times. All times are STRETCH times as long."""
    chance = random.Random(seed)
    drawn = chance.sample(read_log(path), count)
    submits = sorted(stretch * chance.randrange(ARRIVE_SEC_PER_JOB * count) for _ in drawn)
    names = {}
    return [scaled(i + 1, ended, submits[i] - submits[0], f"app{names.setdefault(ended.name, len(names) + 1)}", stretch)
            for i, ended in enumerate(drawn)]


def fit(jobs, base_mib, kernel_mib):
    """The same, in guests whose kernel keeps KERNEL_MIB to itself and whose system uses BASE_MIB: what a job holds is
    less that, and leaves room."""
    def held(job):
        most = (job.memory_mib - kernel_mib) * FULL_PERMILLE // 1000 - base_mib
        return clamp(job.held_mib - base_mib, 1, most)
    return [job._replace(held_mib=held(job)) for job in jobs]


# --- for berth-sim -----------------------------------------------------------------------------


def stamp(seconds):
    return time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(EPOCH_SEC + seconds))


def trace_line(job, base_mib):
    submit, end = EPOCH_SEC + job.submit_sec, EPOCH_SEC + job.submit_sec + job.run_sec
    values = {
        "user": "root", "group": "root", "jobname": job.name, "queue": "day", "ctime": submit, "qtime": submit,
        "etime": submit, "start": submit, "exec_host": f"node1/0-{job.vcpus - 1}",
        "Resource_List.nodes": f"1:ppn={job.vcpus}", "Resource_List.vmem": f"{job.memory_mib}mb",
        "Resource_List.walltime": job.limit_sec, "end": end, "Exit_status": 0,
        "resources_used.cput": round(job.cpu_milli * job.run_sec / 1000),
        "resources_used.mem": f"{job.held_mib + base_mib}mb", "resources_used.walltime": job.run_sec}
    words = " ".join(f"{key}={value}" for key, value in values.items())
    return f"{stamp(job.submit_sec + job.run_sec)};E;{job.number}.day;{words}\n"


def write_trace(jobs, base_mib, path):
    with open(path, "w") as file:
        for job in sorted(jobs, key=lambda job: job.submit_sec + job.run_sec):
            file.write(trace_line(job, base_mib))
