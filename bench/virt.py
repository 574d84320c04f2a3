# SPDX-License-Identifier: Apache-2.0
"""The dozen calls of libvirt that bench/costs times, by ctypes: python3-libvirt is for the distribution's
own python3 only, and the start of a virsh takes longer than some of what is timed."""

import ctypes
import threading
import time
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint, c_ulong, c_void_p

AFFECT_LIVE = 1
XML_INACTIVE, XML_MIGRATABLE = 2, 8
MIGRATE_LIVE, MIGRATE_AUTO_CONVERGE = 1, 1 << 13
SNAPSHOT_NO_METADATA, SNAPSHOT_LIVE = 1 << 2, 1 << 8
STATS_COMPLETED, STATS_KEEP = 1, 2
EVENT_LIFECYCLE, EVENT_SUSPENDED, EVENT_RESUMED = 0, 3, 4

library = ctypes.CDLL("libvirt.so.0")


class Error(Exception):
    pass


class Value(ctypes.Union):
    _fields_ = [("i", c_int), ("ui", c_uint), ("l", ctypes.c_longlong), ("ul", ctypes.c_ulonglong),
                ("d", ctypes.c_double), ("b", ctypes.c_char), ("s", c_char_p)]


class Parameter(ctypes.Structure):
    """virTypedParameter"""
    KINDS = ["i", "ui", "l", "ul", "d", "b", "s"]  # of type 1 and so on
    _fields_ = [("field", ctypes.c_char * 80), ("type", c_int), ("value", Value)]


EventCallback = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int, c_void_p)
ErrorCallback = CFUNCTYPE(None, c_void_p, c_void_p)
_quiet = ErrorCallback(lambda *_: None)

for name, result, arguments in [
        ("virConnectOpen", c_void_p, [c_char_p]),
        ("virConnectDomainEventRegisterAny", c_int, [c_void_p, c_void_p, c_int, EventCallback, c_void_p, c_void_p]),
        ("virDomainCreateXML", c_void_p, [c_void_p, c_char_p, c_uint]),
        ("virDomainDestroy", c_int, [c_void_p]),
        ("virDomainGetJobStats", c_int,
         [c_void_p, POINTER(c_int), POINTER(POINTER(Parameter)), POINTER(c_int), c_uint]),
        ("virDomainGetName", c_char_p, [c_void_p]),
        ("virDomainGetXMLDesc", c_char_p, [c_void_p, c_uint]),
        ("virDomainLookupByName", c_void_p, [c_void_p, c_char_p]),
        ("virDomainMigrate", c_void_p, [c_void_p, c_void_p, c_ulong, c_char_p, c_char_p, c_ulong]),
        ("virDomainRestore", c_int, [c_void_p, c_char_p]),
        ("virDomainResume", c_int, [c_void_p]),
        ("virDomainSave", c_int, [c_void_p, c_char_p]),
        ("virDomainSetVcpusFlags", c_int, [c_void_p, c_uint, c_uint]),
        ("virDomainSnapshotCreateXML", c_void_p, [c_void_p, c_char_p, c_uint]),
        ("virDomainSuspend", c_int, [c_void_p]),
        ("virDomainUpdateDeviceFlags", c_int, [c_void_p, c_char_p, c_uint]),
        ("virEventRegisterDefaultImpl", c_int, []),
        ("virEventRunDefaultImpl", c_int, []),
        ("virGetLastErrorMessage", c_char_p, []),
        ("virSetErrorFunc", None, [c_void_p, ErrorCallback])]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


def within(seconds, what, function, *arguments):
    """FUNCTION's result; Error if it fails, or says nothing for SECONDS. In a thread: errors of libvirt are
    those of the thread that called, and a call that hangs could not be left otherwise."""
    said = []

    def run():
        result = function(*arguments)
        failed = result is None or (isinstance(result, int) and result < 0)
        said.append((result, library.virGetLastErrorMessage().decode() if failed else None))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not said:
        raise Error(f"{what}: no answer within {seconds} s")
    if said[0][1] is not None:
        raise Error(f"{what}: {said[0][1]}")
    return said[0][0]


def start_events():
    """Once, before the first connection."""
    library.virSetErrorFunc(None, _quiet)
    library.virEventRegisterDefaultImpl()

    def run():
        while library.virEventRunDefaultImpl() >= 0:
            pass

    threading.Thread(target=run, daemon=True).start()


class Connection:
    """A libvirtd whose socket is at PATH. Notes when its guests' states change."""

    def __init__(self, path):
        self.changes = threading.Condition()
        self.events = []  # (when, name, event, detail)
        self.pointer = within(30, f"connect to {path}", library.virConnectOpen,
                              f"qemu+unix:///system?socket={path}".encode())
        self.callback = EventCallback(self.take)  # lives as long as this
        within(30, "ask for events", library.virConnectDomainEventRegisterAny, self.pointer, None,
               EVENT_LIFECYCLE, self.callback, None, None)

    def take(self, _connection, domain, event, detail, _data):
        when = time.monotonic()
        with self.changes:
            self.events.append((when, library.virDomainGetName(domain).decode(), event, detail))
            self.changes.notify_all()
        return 0

    def when(self, name, event, since, seconds=60):
        """The moment at which EVENT happened to guest NAME, SINCE another."""
        def found():
            return [at for at, who, what, _ in self.events if who == name and what == event and at >= since]
        with self.changes:
            if not self.changes.wait_for(found, seconds):
                raise Error(f"{name}: event {event} did not come within {seconds} s")
            return found()[0]

    def create(self, name, xml):
        return Domain(name, within(120, "start of a guest", library.virDomainCreateXML, self.pointer,
                                   xml.encode(), 0))

    def find(self, name):
        return Domain(name, within(30, f"look up {name}", library.virDomainLookupByName, self.pointer,
                                   name.encode()))

    def restore(self, path):
        within(300, "restore", library.virDomainRestore, self.pointer, path.encode())


class Domain:
    def __init__(self, name, pointer):
        self.name, self.pointer = name, pointer

    def xml(self):
        return within(30, "definition", library.virDomainGetXMLDesc, self.pointer,
                      XML_INACTIVE | XML_MIGRATABLE).decode()

    def migrate(self, to, mib_per_sec, flags):
        """Returns the guest there. 0 MiB/s: as fast as it goes."""
        return Domain(self.name, within(600, "migration", library.virDomainMigrate, self.pointer, to.pointer, flags,
                                        None, None, mib_per_sec))

    def job_stats(self):
        """Of the last job that completed; times in ms, memory in bytes."""
        kind, number = c_int(), c_int()
        parameters = POINTER(Parameter)()
        within(30, "statistics", library.virDomainGetJobStats, self.pointer, ctypes.byref(kind),
               ctypes.byref(parameters), ctypes.byref(number), STATS_COMPLETED | STATS_KEEP)
        return {p.field.decode(): getattr(p.value, Parameter.KINDS[p.type - 1])
                for p in parameters[:number.value]}

    def save(self, path):
        within(300, "save", library.virDomainSave, self.pointer, path.encode())

    def snapshot(self, xml, flags=SNAPSHOT_LIVE):
        within(300, "snapshot", library.virDomainSnapshotCreateXML, self.pointer, xml.encode(),
               flags | SNAPSHOT_NO_METADATA)

    def suspend(self):
        within(60, "suspend", library.virDomainSuspend, self.pointer)

    def resume(self):
        within(60, "resume", library.virDomainResume, self.pointer)

    def set_vcpus(self, number):
        within(60, "set vCPUs", library.virDomainSetVcpusFlags, self.pointer, number, AFFECT_LIVE)

    def update_device(self, xml):
        within(60, "update of a device", library.virDomainUpdateDeviceFlags, self.pointer, xml.encode(),
               AFFECT_LIVE)

    def destroy(self):
        within(60, "destroy", library.virDomainDestroy, self.pointer)
