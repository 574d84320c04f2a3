# SPDX-License-Identifier: Apache-2.0
"""Debian's Slurm for bench/vs-slurm, as its High Throughput Computing Administration Guide has it: munged with ten threads, no
accounting, priority/basic, MinJobAge of seconds, several ports, and the guide's scheduling parameters where throughput is measured."""

import os
import shutil
import socket
import subprocess
import sys
import time

from vs_cluster import SCRIPT, Cluster

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "libslurm-dev", "munge"]
PROGRAMS = ["slurmctld", "slurmd", "sbatch", "squeue", "munged"]

# The guide's own set, "currently used for running hundreds of jobs per second on a sustained basis on one cluster".
THROUGHPUT = ("batch_sched_delay=20,bf_continue,bf_interval=300,bf_min_age_reserve=10800,bf_resolution=600,"
              "bf_yield_interval=1000000,partition_job_depth=500,sched_max_job_start=200,sched_min_interval=2000000")
# What starts jobs soonest.
SOON = "batch_sched_delay=0,sched_min_interval=0"

CONTROLLER_PORTS = 8
SAVE_SECONDS = 15
CPUS = 64

CONFIG = """ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}-{last_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmctldDebug=error
SlurmdSpoolDir={directory}/spool-%n
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmdLogFile={directory}/slurmd-%n.log
SlurmdDebug=error
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
MaxJobCount=2000000
MaxArraySize=1000001
MessageTimeout=100
MinJobAge=2
PriorityType=priority/basic
SchedulerType=sched/{scheduler}
SchedulerParameters={parameters}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{node_port}-{last_node_port}] CPUs={cpus} State={state}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State={partition}
"""


def install():
    """What is missing of it, by apt-get. Its daemons are not started by that where there is no systemd; here nobody needs them."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    if all(shutil.which(program, path=path) for program in PROGRAMS) and os.path.exists("/usr/include/slurm/slurm.h"):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for arguments in (["update", "-qq"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        subprocess.run(["apt-get", *arguments], check=True, env=environment, stdout=sys.stderr)


class Slurm(Cluster):
    """NODES of 0: none will ever run, and jobs wait."""

    name = "slurm"
    look_seconds = 0.5  # each costs its controller a listing

    def __init__(self, directory, source, port, nodes=0, parameters=THROUGHPUT):
        super().__init__(directory)
        self.source, self.port, self.nodes, self.parameters = source, port, nodes, parameters
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        self.environment["SLURM_CONF"] = self.path("slurm.conf")

    def prepare(self):
        os.mkdir(self.path("state"))
        with open(self.path("munge.key"), "wb") as file:
            file.write(os.urandom(128))
        os.chmod(self.path("munge.key"), 0o400)
        count = max(self.nodes, 1)
        host = socket.gethostname().split(".")[0]
        self.write("slurm.conf", CONFIG.format(
            host=host, directory=self.directory, port=self.port, last_port=self.port + CONTROLLER_PORTS - 1,
            parameters=self.parameters, nodes=count, node_port=self.port + CONTROLLER_PORTS,
            last_node_port=self.port + CONTROLLER_PORTS + count - 1, cpus=CPUS, scheduler="builtin",
            state="UNKNOWN" if self.nodes else "DOWN", partition="UP" if self.nodes else "DOWN"), 0o644)
        self.run("cc", "-O2", "-I", os.path.dirname(self.source), "-o", self.path("submit"),
                 os.path.join(self.source, "submit.c"), os.path.join(self.source, "submit_slurm.c"), "-lslurm")
        self.start("munge", "munged", "--foreground", "--force", "--num-threads=10", f"--socket={self.path('munge.socket')}",
                   f"--key-file={self.path('munge.key')}", f"--pid-file={self.path('munged.pid')}",
                   f"--seed-file={self.path('munged.seed')}", f"--log-file={self.path('munged.log')}")
        self.await_true("munged listens", lambda: os.path.exists(self.path("munge.socket")))

    def start_controller(self):
        self.start("controller", "slurmctld", "-D", "-f", self.path("slurm.conf"))

    def start_nodes(self, count):
        for number in range(1, count + 1):
            self.start(f"node{number}", "slurmd", "-D", "-N", f"n{number}", "-f", self.path("slurm.conf"))
        self.await_true("all nodes are idle", lambda: self.run(
            "sinfo", "-h", "-N", "-t", "idle", "-o", "%n", check=False).stdout.count(b"\n") == count, pause=0.1)

    def submit_command(self):
        return ["sbatch", "-o", "/dev/null", self.script]

    def array_command(self, count):
        return ["sbatch", "-o", "/dev/null", f"--array=0-{count - 1}", self.script]

    def pending_tasks(self, job):
        return self.run("squeue", "-h", "-r", "-t", "PENDING", "-j", str(job), "-o", "%K").stdout.count(b"\n")

    def submit_bulk(self, count, at_once=1):
        done = self.submit(count, at_once)
        return len(done), max(began + took for _, began, took in done) - min(began for _, began, _ in done), 0

    def client_command(self):
        return [self.path("submit")]

    def ask_command(self):
        return ["scontrol", "show", "config"]

    def list_command(self):
        return ["squeue"]

    def jobs(self):
        return {int(line) for line in self.run("squeue", "-h", "-o", "%A").stdout.split()}

    def await_saved(self):
        """It writes its table of jobs some seconds after a change (SAVE_MAX_WAIT), all of it each time."""
        time.sleep(SAVE_SECONDS)

    def stamping_script(self):
        """As SCRIPT, and says when it began: Slurm itself knows seconds only."""
        os.makedirs(self.path("stamps"), exist_ok=True)
        return self.write("stamp.sh", f"{SCRIPT.splitlines()[0]}\ndate +%s.%N >{self.path('stamps')}/$SLURM_JOB_ID\n")

    def starts(self):
        found = {}
        for name in os.listdir(self.path("stamps")):
            with open(self.path("stamps", name)) as file:
                text = file.read()
            if text.endswith("\n"):
                found[int(name)] = float(text)
        return found

    def has_ended(self, count):
        return self.run("squeue", "-h", "-o", "%A").stdout == b""
