# SPDX-License-Identifier: Apache-2.0
"""Guests that are like Berth's own, and the pool's images as files: what bench/costs measures with.

The definition of a guest of Berth's is taken from a job; Berth's daemons stand still while guests are
moved that are none of theirs."""

import contextlib
import json
import os
import socket
import subprocess
import time
import xml.etree.ElementTree as ET

import virt
from bench_lab import initramfs_with

MIB = 1 << 20
GUEST = "bench-costs"
DAEMONS = ["host/berthd", "node1/berth-node", "node2/berth-node"]
SOCKETS = "/var/lib/libvirt/qemu"  # on a node; QEMU may make them there
EXPORT = "/run/bench-costs.memory"
OF_ITSELF_MIB = 128  # memory of a guest beyond its load: kernel, initramfs, and some to spare
VCPUS_MAX = 4


class Node:
    def __init__(self, lab, name):
        self.lab, self.name = lab, name
        pid = lab.ask("pid", f"{name}/libvirtd").strip()
        self.root = f"/proc/{pid}/root"
        self.libvirt = virt.Connection(self.root + "/run/libvirt/libvirt-sock")


class Channel:
    """To the program in the guest, line by line."""

    def __init__(self, node, name):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(f"{node.root}{SOCKETS}/{name}.sock")
        self.lines = self.socket.makefile("rb")

    def ask(self, line, answer):
        self.send(line)
        return self.await_answer(answer)

    def send(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def await_answer(self, answer):
        """Of a line "ANSWER NUMBER", the number."""
        while heard := self.lines.readline():
            words = heard.decode().split()
            if words and words[0] == answer:
                return int(words[1])
        raise RuntimeError(f"the guest ended before it said {answer!r}")

    def dirtied(self):
        """MiB so far. That it answers also says that the guest runs."""
        return self.ask("dirtied", "dirtied") * 4096 / MIB

    def close(self):
        self.lines.close()
        self.socket.close()


class Guests:
    """Makes guests that are like Berth's own. Berth's daemons stand still meanwhile."""

    def __init__(self, lab):
        self.lab = lab
        self.n_made = 0
        self.initramfs = os.path.join(lab.data, "guest", f"{GUEST}.cpio")

    def __enter__(self):
        virt.start_events()
        self.nodes = [Node(self.lab, "node1"), Node(self.lab, "node2")]
        self.definition = self.one_of_berth()
        self.image = f"berth/{GUEST}"
        try:
            for daemon in DAEMONS:
                self.lab.lab("stop", daemon)
            initramfs_with(self.lab, "bench/load", "bench-load", self.initramfs)
            rbd(self.lab, "create", "--size", "64M", self.image)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.lab.ours:
            return  # it goes as a whole
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.initramfs)
        self.lab.lab("exec", "host", "rbd", "rm", "--no-progress", self.image, check=False)
        for daemon in DAEMONS:
            self.lab.lab("start", daemon)

    def one_of_berth(self):
        """The definition of the guest of a job."""
        job = self.lab.berth("submit", "--image", "busybox", "--memory", "128M", "--disk", "64M", "--",
                             "sleep", "3600").strip()
        name = f"berth-{job}-0-0-1"
        try:
            return self.find(name, 60).xml()
        finally:
            self.lab.berth("cancel", job)
            # Its state is no failure of ours.
            subprocess.run([self.lab.berth_program, "wait", "--quiet", job], check=False,
                           env=self.lab.environment, timeout=60)

    def find(self, name, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for node in self.nodes:
                with contextlib.suppress(virt.Error):
                    return node.libvirt.find(name)
            time.sleep(0.1)
        raise RuntimeError(f"guest {name} does not exist after {seconds} s")

    def xml(self, name, memory_mib, growth_mib):
        domain = ET.fromstring(self.definition)
        for element in domain.findall("uuid") + domain.findall("metadata") + domain.findall("genid"):
            domain.remove(element)
        domain.find("name").text = name
        for size in ("memory", "currentMemory"):
            domain.find(size).text, domain.find(size).attrib["unit"] = str(memory_mib), "MiB"
        system = domain.find("os")
        system.find("initrd").text = self.initramfs
        system.find("cmdline").text += " rdinit=/bench-load panic=0"
        # One that breaks when it is moved stays: libvirt forgets what moved with the guest.
        domain.find("on_crash").text, domain.find("on_reboot").text = "preserve", "restart"
        devices = domain.find("devices")
        devices.find("disk/source").attrib["name"] = self.image
        devices.find("channel/source").attrib["path"] = f"{SOCKETS}/{name}.sock"
        for console in devices.findall("serial/source") + devices.findall("console/source"):
            console.attrib["path"] = "/run/bench-costs.console"
        ET.SubElement(domain, "genid")
        if growth_mib:
            make_growable(domain, memory_mib, growth_mib)
        return ET.tostring(domain, encoding="unicode")

    @contextlib.contextmanager
    def running(self, memory_mib, rate=0, growth_mib=0, verb="load"):
        """A guest on the first node that has touched MEMORY_MIB and dirties RATE MiB/s: its domain, and the
        channel to it. VERB: as bench/load.c has them."""
        # None has the name of one before: what libvirt takes away of that could be of this.
        self.n_made += 1
        name = f"{GUEST}-{self.n_made}"
        domain = self.nodes[0].libvirt.create(name, self.xml(name, memory_mib + OF_ITSELF_MIB, growth_mib))
        channel = Channel(self.nodes[0], name)
        try:
            channel.ask(f"{verb} {memory_mib} {rate}", "loaded")
            yield domain, channel
        finally:
            channel.close()
            for node in self.nodes:
                with contextlib.suppress(virt.Error):
                    node.libvirt.find(name).destroy()


def make_growable(domain, memory_mib, growth_mib):
    """With room for more vCPUs and memory, which a guest of Berth's has not yet."""
    domain.find("vcpu").text = str(VCPUS_MAX)
    domain.find("vcpu").attrib["current"] = "1"
    # Both are for a guest that stays with one.
    cmdline = domain.find("os/cmdline")
    cmdline.text = cmdline.text.replace(" noreplace-smp", "").replace(" nolapic_timer", "")
    cpu = domain.find("cpu")
    cpu.find("topology").attrib["cores"] = str(VCPUS_MAX)
    ET.SubElement(ET.SubElement(cpu, "numa"), "cell", id="0", cpus=f"0-{VCPUS_MAX - 1}",
                  memory=str(memory_mib), unit="MiB")
    domain.insert(0, ET.Element("maxMemory", slots="1", unit="MiB"))
    domain[0].text = str(memory_mib + growth_mib)
    memory = ET.SubElement(domain.find("devices"), "memory", model="virtio-mem")
    target = ET.SubElement(memory, "target")
    for name, size, unit in (("size", growth_mib, "MiB"), ("node", 0, None), ("block", 2, "MiB"),
                             ("requested", 0, "MiB")):
        element = ET.SubElement(target, name, {"unit": unit} if unit else {})
        element.text = str(size)


def rbd(lab, *arguments):
    return lab.ask("exec", "host", "rbd", *arguments)


@contextlib.contextmanager
def exported(node, image, writable):
    """The image of the pool as the file EXPORT of the node. Yields a dictionary, which gets the seconds
    until it was there ("start") and until all was written and the export gone ("end")."""
    conf = os.path.join(node.lab.data, "ceph", "ceph.conf")
    switch = "on" if writable else "off"
    command = ["qemu-storage-daemon", "--blockdev",
               f"driver=rbd,node-name=image,pool=berth,image={image},conf={conf},user=berth,read-only="
               f"{'off' if writable else 'on'},cache.direct=off", "--export",
               f"type=fuse,id=file,node-name=image,mountpoint={EXPORT},writable={switch},growable={switch}",
               "--chardev", "stdio,id=monitor", "--monitor", "chardev=monitor"]
    process = subprocess.Popen(
        node.lab.command("exec", node.name, "sh", "-c", ': >>"$0" && echo begins && exec "$@"', EXPORT, *command),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        await_line(process, b"begins")
        times = {}
        began = time.monotonic()
        await_line(process, b"QMP")  # the monitor comes up after the exports
        times["start"] = time.monotonic() - began
        yield times
        began = time.monotonic()
        process.stdin.write(b'{"execute":"qmp_capabilities"}{"execute":"quit"}')
        process.stdin.flush()
        while process.stdout.readline():
            pass
        if process.wait(60) != 0:
            raise RuntimeError(f"qemu-storage-daemon ended with {process.returncode}")
        times["end"] = time.monotonic() - began
    finally:
        process.stdin.close()
        process.kill()
        process.wait()


def await_line(process, words):
    while line := process.stdout.readline():
        if words in line:
            return
    raise RuntimeError(f"qemu-storage-daemon ended before it said {words.decode()!r}")


@contextlib.contextmanager
def image_for(guests, memory_mib):
    rbd(guests.lab, "create", "--size", f"{memory_mib + 2 * OF_ITSELF_MIB}M", f"berth/{GUEST}-memory")
    try:
        yield f"{GUEST}-memory"
    finally:
        rbd(guests.lab, "rm", "--no-progress", f"berth/{GUEST}-memory")


def stored_mib(guests, image):
    usage = json.loads(rbd(guests.lab, "du", "--format", "json", f"berth/{image}"))
    return usage["images"][0]["used_size"] / MIB
