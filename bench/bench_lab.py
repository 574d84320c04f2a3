# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks with real guests share: a lab, and how a set of runs is summed up."""

import contextlib
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAB_COMMAND = os.path.join(TREE, "lab", "berth-lab")
# Nothing of what the caller set for another lab or other jobs.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
UP_SECONDS = 600  # a lab with Ceph, or one image


def note(text):
    print(text, file=sys.stderr, flush=True)


def spread(values):
    """Half the distance between the quartiles."""
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return round((quartiles[2] - quartiles[0]) / 2, 4)


def read(path):
    with open(path) as file:
        return file.read()


class Lab:
    """A lab that is up, or one of our own (NAME is None), named after PURPOSE, that goes down at the end."""

    def __init__(self, prefix, name=None, purpose="bench", nodes=1, storage="rbd", vcpus=4, memory="4G",
                 ceph_gib=8):
        self.name = name or f"{purpose}-{os.getpid()}"
        self.ours = name is None
        self.prefix = os.path.abspath(prefix)
        self.nodes, self.storage, self.vcpus, self.memory, self.ceph_gib = nodes, storage, vcpus, memory, ceph_gib
        self.berth_program = os.path.join(self.prefix, "berth")
        self.environment = {**ENVIRONMENT, "BERTH_SOCKET": f"/run/berth-lab/{self.name}/berthd.sock"}
        self.data = f"/var/lib/berth-lab/{self.name}"

    def __enter__(self):
        try:
            self.prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # A start that failed has removed itself: then there is no lab (3).
        if self.ours and self.lab("status", check=False, stdout=subprocess.DEVNULL).returncode != 3:
            self.lab("down")

    def prepare(self):
        if self.ours:
            note(f"lab {self.name} comes up")
            self.lab("up", "--nodes", str(self.nodes), "--storage", self.storage, "--vcpus", str(self.vcpus),
                     "--memory", self.memory, "--ceph-size", str(self.ceph_gib), "--owner", str(os.getpid()), "--prefix", self.prefix)
        if "busybox" not in self.berth("image", "ls"):
            with tempfile.TemporaryDirectory() as directory:
                archive = os.path.join(directory, "busybox.tar")
                subprocess.run([os.path.join(TREE, "images", "recipes", "busybox"), archive],
                               check=True, stdout=sys.stderr, timeout=UP_SECONDS)
                self.berth("image", "import", "busybox", archive)

    def lab(self, *arguments, check=True, stdout=sys.stderr):
        return subprocess.run(self.command(*arguments), check=check, stdout=stdout, env=ENVIRONMENT,
                              timeout=UP_SECONDS)

    def command(self, verb, *arguments):
        return [LAB_COMMAND, verb, "--name", self.name, *arguments]

    def ask(self, *arguments):
        """The same; what it prints."""
        return self.lab(*arguments, stdout=subprocess.PIPE).stdout.decode()

    def berth(self, *arguments, check=True):
        return subprocess.run([self.berth_program, *arguments], check=check, stdout=subprocess.PIPE,
                              env=self.environment, timeout=300).stdout.decode()

    def set_values(self, daemon, group, values):
        """Sets VALUES in GROUP of the file of DAEMON, which reads it when it is started anew; None: its default."""
        path = os.path.join(self.data, "etc", f"{daemon}.conf")
        text = read(path)
        if f"[{group}]\n" not in text:
            text += f"\n[{group}]\n"
        for name, value in values.items():
            text = re.sub(rf"^{name}=.*\n", "", text, flags=re.M)
            if value is not None:
                text = text.replace(f"[{group}]\n", f"[{group}]\n{name}={value}\n")
        with open(path, "w") as file:
            file.write(text)

    def cpu_seconds(self, group):
        """Of each control group of this lab that GROUP means, which may have wildcards, by its path: what its processes
        have used, with those that have ended."""
        counted = {}
        for path in (glob.glob(f"/sys/fs/cgroup/cpuacct/berth-lab/{self.name}/{group}/cpuacct.usage") or
                     glob.glob(f"/sys/fs/cgroup/berth-lab/{self.name}/{group}/cpu.stat")):
            with contextlib.suppress(OSError):  # it has gone meanwhile
                words = read(path).split()
                counted[path] = int(words[0]) / 1e9 if len(words) == 1 else int(words[1]) / 1e6
        return counted

    def node(self):
        return json.loads(self.berth("node", "ls", "--json").splitlines()[0])


def initramfs_with(lab, program, name, path):
    """Writes PATH: the lab's initramfs, and PROGRAM of the build directory in it as /NAME."""
    with open(os.path.join(lab.data, "guest", "initramfs.cpio"), "rb") as file:
        archive = file.read()
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, name)
        with open(os.path.join(lab.prefix, program), "rb") as source, open(copy, "wb") as target:
            target.write(source.read())
        os.chmod(copy, 0o755)
        extra = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=f"{name}\n".encode(),
                               cwd=directory, check=True, stdout=subprocess.PIPE).stdout
    with open(path, "wb") as file:
        file.write(archive + extra)
