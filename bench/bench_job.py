# SPDX-License-Identifier: Apache-2.0
"""The guest of one job, and what is done to it: by Berth, and by virsh while Berth's daemons stand still. What
bench/move measures with; moments are those of libvirt's events."""

import contextlib
import json
import os
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
# It fills memory, says that it has, and from then on says every second that it lives.
COMMAND = "dd if=/dev/urandom of=/dev/shm/data bs=1M count={} 2>/dev/null; while echo lives; do sleep 1; done"


def await_true(what, condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {WAIT_SECONDS} s: {what}")
        time.sleep(0.1)


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

    def plain_checkpoint(self, stands_still):
        """A snapshot of the memory alone, to a file. (Its disk would need one of its own, of the same instant.)
        libvirt 9.0 leaves a guest standing that it has not taken live."""
        xml = (f"<domainsnapshot><memory snapshot='external' file='{SAVED}'/>"
               "<disks><disk name='vda' snapshot='manual'/></disks></domainsnapshot>")
        self.domain().snapshot(xml, 0 if stands_still else virt.SNAPSHOT_LIVE)
        if stands_still:
            self.domain().resume()

    def berth_freeze(self):
        self.lab.berth("freeze", "--to-disk", self.job)

    def virsh_freeze(self):
        self.virsh(self.here, "save", self.name, SAVED)

    def berth_thaw(self):
        self.lab.berth("thaw", "--to", self.here.name, self.job)

    def virsh_thaw(self):
        self.virsh(self.here, "restore", SAVED)

    def rbd(self, verb, *arguments, **streams):
        subprocess.run(self.lab.command("exec", "host", "rbd", verb, "--no-progress", *arguments), check=True,
                       timeout=WAIT_SECONDS, **streams)

    def spool(self):
        """What virsh has saved goes to Ceph, and comes back, by Ceph's own tool: the plain way to have it there. Seconds."""
        saved, image = self.here.root + SAVED, "berth/bench-move"
        began = time.monotonic()
        with open(saved, "rb") as file:
            self.rbd("import", "-", image, stdin=file)
        there = time.monotonic()
        with open(saved, "wb") as file:
            self.rbd("export", image, "-", stdout=file)
        back = time.monotonic()
        self.rbd("remove", image)
        return {"import": there - began, "export": back - there}

    def remove_saved(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.here.root + SAVED)

    def save(self, checkpoint, freeze, thaw, between=dict):
        """Seconds: for which it stands still while it is checkpointed, in which it is frozen to disk, and from
        there on until it runs again; and what BETWEEN returns, which is called while it is on disk."""
        self.remove_saved()
        name, libvirt = self.name, self.here.libvirt
        began = time.monotonic()
        checkpoint()
        stops = libvirt.when(name, virt.EVENT_SUSPENDED, began)
        runs = libvirt.when(name, virt.EVENT_RESUMED, stops)
        self.remove_saved()
        began = time.monotonic()
        freeze()
        frozen = time.monotonic()
        others = between()
        thawed = time.monotonic()
        thaw()
        return {"checkpoint": runs - stops, "freeze": frozen - began,
                "thaw": libvirt.when(name, virt.EVENT_RESUMED, thawed) - thawed, **others}
