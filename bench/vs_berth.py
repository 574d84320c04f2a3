# SPDX-License-Identifier: Apache-2.0
"""berthd for bench/vs-slurm, with bench/rig as its nodes."""

import json
import os
import subprocess
import time

from rig_trace import Trace
from vs_cluster import ANSWER_SECONDS, START_SECONDS, Cluster

CONFIG = """[berthd]
socket={0}/berthd.sock
state={0}/state/berth.db
log_level=warning
[agents]
address=127.0.0.1
port={1}
certificate={2}/berthd.pem
key={2}/berthd.key
ca={2}/ca.pem
[defaults]
image=empty
vcpus=1
memory=64M
disk=0
[limits]
user_jobs_max=10000000
page_size=10000
[storage]
kind=dir
path={0}/storage
"""
DAYS = "3650"  # of those that are kept, as of the rig's own (bench/rig_certificates.c)
SPARE_SECONDS = 86400  # that they are to be good for still
QUIET_SECONDS = 10  # without a line of the trace, before it is looked whether all have ended
CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


class Berth(Cluster):
    name = "berth"

    def __init__(self, directory, prefix, port, certificates=None):
        """CERTIFICATES: a directory for them that is kept; None: they are made for this cluster."""
        super().__init__(directory)
        self.certificates = os.path.abspath(certificates) if certificates else self.path("certificates")
        self.prefix = os.path.abspath(prefix)
        self.port = port
        self.environment = {name: value for name, value in self.environment.items() if not name.startswith("BERTH_")}
        self.environment["BERTH_SOCKET"] = self.path("berthd.sock")
        self.trace = Trace(self.path("trace"))
        self.config = CONFIG

    def program(self, name):
        return os.path.join(self.prefix, name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=self.certificates, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def prepare(self):
        for name in ("state", "storage", "root"):
            os.mkdir(self.path(name))
        os.makedirs(self.certificates, exist_ok=True)
        self.write("berthd.conf", self.config.format(self.directory, self.port, self.certificates), 0o644)
        if not os.path.exists(os.path.join(self.certificates, "berthd.pem")):
            self.make_certificates()
        self.check_certificates()

    def make_certificates(self):
        self.openssl("req", "-x509", *CURVE, "-subj", "/CN=bench", "-days", DAYS, "-keyout", "ca.key", "-out", "ca.pem")
        self.openssl("req", *CURVE, "-subj", "/CN=berthd", "-addext", "extendedKeyUsage=serverAuth,clientAuth",
                     "-keyout", "berthd.key", "-out", "berthd.csr")
        self.openssl("x509", "-req", "-in", "berthd.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-copy_extensions", "copy", "-days", DAYS, "-out", "berthd.pem")

    def check_certificates(self):
        """All there are were made after that of the authority, for as long: if that is good, so are they."""
        if subprocess.run(["openssl", "x509", "-checkend", str(SPARE_SECONDS), "-noout", "-in", "ca.pem"], cwd=self.certificates,
                          stdout=subprocess.DEVNULL, check=False).returncode != 0:
            raise RuntimeError(f"the certificates in {self.certificates} have expired, or will within a day: remove that directory")

    def start_controller(self):
        self.start("controller", self.program("berthd"), "--config", self.path("berthd.conf"))

    def is_up(self):
        self.write("root/file", "\n")
        self.run("tar", "cf", self.path("empty.tar"), "-C", self.path("root"), ".")
        self.run(self.program("berth"), "image", "import", "empty", self.path("empty.tar"))

    def start_nodes(self, count, *options, seconds=START_SECONDS):
        self.start("nodes", self.program("bench/rig"), "--nodes", str(count), "--port", str(self.port), "--progress", "0",
                   "--certificates", self.certificates, "--trace", self.trace.path, *options)
        return self.await_joined(count, seconds)

    def await_joined(self, count, seconds=START_SECONDS, since=0):
        """Until so many nodes have joined that have begun to SINCE then: (when each began, when it had joined)."""
        turns = []

        def have_joined():
            nonlocal turns
            self.trace.read()
            turns = self.trace.joined(since)
            return len(turns) == count

        self.await_true("all nodes have joined", have_joined, seconds, 0.05)
        return turns

    def await_joins(self, times, seconds=START_SECONDS):
        """Until each node has joined so often."""
        self.await_true(f"all nodes have joined {times} times", lambda: self.trace.read() >= 0 and all(
            len(joins) >= times for joins in self.trace.joins.values()), seconds, 0.05)

    def submit_command(self):
        return [self.program("berth"), "submit", self.script]

    def array_command(self, count):
        return [self.program("berth"), "submit", "--array", f"0-{count - 1}", self.script]

    def pending_tasks(self, job):
        return json.loads(self.run(self.program("berth"), "show", "--json", str(job)).stdout)["counts"].get("pending", 0)

    def submit_bulk(self, count, at_once=1):
        """What a process takes to start, and to read its list, counts with it; and so does what is refused for the moment, which
        is submitted again with the same key, as berth(1) has it."""
        jobs = self.write("jobs", (json.dumps({"script": self.script}) + "\n") * (count // at_once), 0o644)
        numbers, refused = [[] for _ in range(at_once)], 0
        began = time.monotonic()
        left = range(at_once)
        while left:
            if time.monotonic() - began > ANSWER_SECONDS:
                raise RuntimeError("berth: jobs in bulk are refused again and again")
            bulks = {number: subprocess.Popen([self.program("berth"), "bulk", "--key", f"{began}-{number}", jobs],
                                              env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                              stderr=subprocess.DEVNULL) for number in left}
            for number, bulk in bulks.items():
                numbers[number] = bulk.communicate()[0].split()
                if len(numbers[number]) != count // at_once:
                    raise RuntimeError("berth: a submission in bulk failed")
            refused += sum(numbers[number].count(b"-") for number in left)
            left = [number for number in left if b"-" in numbers[number]]
        seconds = time.monotonic() - began
        return len({job for of in numbers for job in of}), seconds, refused

    def client_command(self):
        return [self.program("bench/submit")]

    def ask_command(self):
        return [self.program("berth"), "node", "ls"]

    def list_command(self):
        return [self.program("berth"), "ls"]

    def jobs(self, *options):
        lines = self.run(*self.list_command(), *options).stdout.decode().splitlines()[1:]
        return {int(line.split()[0]) for line in lines}

    def known_jobs(self):
        """The numbers of all that it has a record of, ended ones too."""
        return self.jobs("--all")

    def await_ends(self, are_kept, seconds):
        """Until ARE_KEPT(), that all ends are that are waited for, or it has no job any more that could. Neither is asked before the trace
        has said nothing for a while: the answers cost it a listing, and us much reckoning."""
        looked = time.monotonic()

        def are_over():
            nonlocal looked
            if self.trace.read() > 0:
                looked = time.monotonic()
            if time.monotonic() - looked < QUIET_SECONDS:
                return False
            is_over = are_kept() or not self.run(*self.list_command(), "--json").stdout.strip()
            looked = time.monotonic()
            return is_over

        self.await_true("all have ended", are_over, seconds, 0.2)

    def starts(self):
        self.trace.read()
        return self.trace.jobs["begin"]

    def has_ended(self, count):
        self.trace.read()
        return len(self.trace.jobs["kept"]) >= count
