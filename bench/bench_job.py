# SPDX-License-Identifier: Apache-2.0
"""The guest of one job, and what is done to it: by Berth, and by virsh while Berth's daemons stand still. What
bench/move measures with; moments are those of libvirt's events."""

import contextlib
import json
import os
import random
import secrets
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET

import virt
from bench_guests import DAEMONS, Node

PKI = "/etc/libvirt/pki"
SAVED = "/var/tmp/bench-move.save"  # on a node
WAIT_SECONDS = 120
MONITORS_GATHER_SECONDS = 1.0  # paxos_propose_interval
# It fills memory, says that it has, and from then on says every second that it lives.
COMMAND = "dd if=/dev/urandom of=/dev/shm/data bs=1M count={} 2>/dev/null; while echo lives; do sleep 1; done"


def await_true(what, condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {WAIT_SECONDS} s: {what}")
        time.sleep(0.1)


def at_some_moment():
    """Now, as seen from Ceph's monitors: what went before may have ended just when they had gathered their changes, and
    what comes then would always wait longest."""
    time.sleep(random.uniform(0, MONITORS_GATHER_SECONDS))
    return time.monotonic()


@contextlib.contextmanager
def daemons_stopped(lab):
    for daemon in DAEMONS:
        lab.lab("stop", daemon)
    try:
        yield
    finally:
        for daemon in DAEMONS:
            lab.lab("start", daemon)


def nodes_are_up(lab):
    with contextlib.suppress(subprocess.SubprocessError):
        return all(json.loads(line)["state"] == "NODE_UP" for line in lab.berth("node", "ls", "--json").splitlines())
    return False


class JobGuest:
    """Wherever it is. The job is cancelled at the end."""

    def __init__(self, lab, touched_mib):
        self.lab = lab
        self.nodes = [Node(lab, "node1"), Node(lab, "node2")]
        self.job = lab.berth("submit", "--image", "busybox", "--memory", f"{touched_mib * 2 + 128}M", "--disk",
                             "64M", "--", "sh", "-c", COMMAND.format(touched_mib)).strip()
        self.definitions = {}  # each node's own, for virsh

    def __enter__(self):
        try:
            await_true("it has filled its memory", lambda: "lives" in self.lab.berth("logs", self.job))
            self.look()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if not self.lab.ours:
            self.lab.berth("cancel", self.job)

    def show(self):
        return json.loads(self.lab.berth("show", "--json", self.job))["tasks"][0]

    def look(self):
        """Where it is, and under which name: one that was restored has that with which it booted."""
        task = self.show()
        self.at = [each.name for each in self.nodes].index(task["node"])
        for epoch in range(int(task["epoch"]), 0, -1):
            self.name = f"berth-{self.job}-0-0-{epoch}"
            with contextlib.suppress(virt.Error):
                return self.domain()
        raise RuntimeError(f"{task['node']} has no guest of job {self.job}")

    @property
    def here(self):
        return self.nodes[self.at]

    def domain(self):
        return self.here.libvirt.find(self.name)

    def virsh(self, node, *arguments):
        socket = f"{node.root}/run/libvirt/libvirt-sock"
        subprocess.run(["virsh", "--quiet", "-c", f"qemu+unix:///system?socket={socket}", *arguments], check=True,
                       stdout=subprocess.DEVNULL, timeout=WAIT_SECONDS)

    # --- moves

    def prepare_moves(self):
        """By Berth, to either node: virsh gives it the definition that it had there."""
        for _ in range(3):
            self.berth_move()
            self.look()
            self.definitions[self.at] = self.domain().xml()

    def berth_move(self):
        self.lab.berth("migrate", "--wait", "--to", self.nodes[1 - self.at].name, self.job)

    def virsh_move(self, stands_still):
        here, there = self.here, self.nodes[1 - self.at]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(self.definition(1 - self.at))
            file.flush()
            if stands_still:
                self.virsh(here, "suspend", self.name)
            self.virsh(here, "migrate", "--live", "--p2p", "--tls", "--auto-converge", "--xml", file.name, self.name,
                       f"qemu+tls://{there.name}/system?pkipath={PKI}")
        if stands_still:
            self.virsh(there, "resume", self.name)

    def definition(self, node):
        """With a path of its own for the channel: libvirt removes that of a guest that has gone late."""
        domain = ET.fromstring(self.definitions[node])
        source = domain.find("devices/channel/source")
        source.attrib["path"] = f"{os.path.dirname(source.attrib['path'])}/{self.name}.{secrets.token_hex(2)}.sock"
        return ET.tostring(domain, encoding="unicode")

    def move(self, function, *arguments):
        """Seconds: of the whole command, of the copy, and for which the guest stood still."""
        here, there = self.here, self.nodes[1 - self.at]
        began = time.monotonic()
        function(*arguments)
        ended = time.monotonic()
        self.at = 1 - self.at
        stops = here.libvirt.when(self.name, virt.EVENT_SUSPENDED, began)
        runs = there.libvirt.when(self.name, virt.EVENT_RESUMED, began)
        return {"command": ended - began, "copy": self.domain().job_stats()["time_elapsed"] / 1e3,
                "pause": runs - stops}

    # --- what is saved

    def berth_checkpoint(self):
        self.lab.berth("checkpoint", "--wait", self.job)

    def take_memory(self, flags):
        """By libvirt, to a file. Its disk is said to be somebody else's to take, so libvirt leaves the guest standing."""
        self.remove_saved()
        xml = (f"<domainsnapshot><memory snapshot='external' file='{SAVED}'/>"
               "<disks><disk name='vda' snapshot='manual'/></disks></domainsnapshot>")
        self.domain().snapshot(xml, flags)

    def plain_checkpoint(self, flags):
        """Of the memory alone."""
        self.take_memory(flags)
        self.domain().resume()

    def plain_instant(self, flags):
        """Of memory and disk, of one instant."""
        self.take_memory(flags)
        self.take_disk()
        self.domain().resume()

    def take_disk(self):
        """At once: when that is in the monitors' second is for the caller to see to, by at_some_moment()."""
        self.rbd("snap create", f"{self.disk}@bench-move")

    def forget_disk(self):
        self.rbd("snap rm", f"{self.disk}@bench-move")

    def berth_freeze(self):
        self.lab.berth("freeze", "--to-disk", self.job)

    def virsh_freeze(self):
        self.virsh(self.here, "save", self.name, SAVED)

    def berth_thaw(self):
        self.lab.berth("thaw", "--to", self.here.name, self.job)

    def virsh_thaw(self):
        self.virsh(self.here, "restore", SAVED)

    def rbd(self, verb, *arguments, **streams):
        subprocess.run(self.lab.command("exec", "host", "rbd", *verb.split(), "--no-progress", *arguments), check=True,
                       timeout=WAIT_SECONDS, **streams)

    def spool(self):
        """What virsh has saved goes to Ceph, and comes back, by Ceph's own tool: the plain way to have it there. And
        the disk as it is, which nobody else has open now, gets its snapshot. Seconds."""
        saved, image = self.here.root + SAVED, "berth/bench-move"
        began = time.monotonic()
        with open(saved, "rb") as file:
            self.rbd("import", "-", image, stdin=file)
        there = time.monotonic()
        with open(saved, "wb") as file:
            self.rbd("export", image, "-", stdout=file)
        back = time.monotonic()
        asked = at_some_moment()
        self.take_disk()
        taken = time.monotonic()
        self.forget_disk()
        self.rbd("remove", image)
        return {"import": there - began, "export": back - there, "disk": taken - asked}

    def remove_saved(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.here.root + SAVED)

    def stands_still(self, function, *arguments):
        """Seconds."""
        name, libvirt = self.name, self.here.libvirt
        began = at_some_moment()
        function(*arguments)
        stops = libvirt.when(name, virt.EVENT_SUSPENDED, began)
        return libvirt.when(name, virt.EVENT_RESUMED, stops) - stops

    def berth_saves(self):
        """Seconds: for which it stands still while it is checkpointed, in which it is frozen to disk, and from
        there on until it runs again."""
        return {"checkpoint": self.stands_still(self.berth_checkpoint),
                **self.freeze_and_thaw(self.berth_freeze, self.berth_thaw)}

    def plain_saves(self, flags):
        """Likewise, of virsh and Ceph's own tool."""
        self.disk = ET.fromstring(self.domain().xml()).find("devices/disk/source").attrib["name"]
        memory = self.stands_still(self.plain_checkpoint, flags)
        instant = self.stands_still(self.plain_instant, flags)
        self.forget_disk()
        self.remove_saved()
        return {"checkpoint": memory, "instant": instant,
                **self.freeze_and_thaw(self.virsh_freeze, self.virsh_thaw, self.spool)}

    def freeze_and_thaw(self, freeze, thaw, between=dict):
        """And what BETWEEN returns, which is called while it is on disk."""
        began = at_some_moment()
        freeze()
        frozen = time.monotonic()
        others = between()
        thawed = time.monotonic()
        thaw()
        return {"freeze": frozen - began,
                "thaw": self.here.libvirt.when(self.name, virt.EVENT_RESUMED, thawed) - thawed, **others}
