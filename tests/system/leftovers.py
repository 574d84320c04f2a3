# SPDX-License-Identifier: Apache-2.0
"""After all jobs have ended: no guest, no QEMU, no disk, nothing reserved."""

import json
import os
import sys

from harness import *


def active():
    return [json.loads(line)["id"] for line in berth("ls", "--json").splitlines()]


def disks():
    """Disks of guests that storage still has; images and their snapshots may stay."""
    storage = os.path.join(LAB_DATA, "storage", "disks")
    if os.path.isdir(os.path.join(LAB_DATA, "storage")):
        return sorted(os.listdir(storage)) if os.path.isdir(storage) else []
    names = json.loads(lab_exec("host", "rbd", "ls", "--format", "json", "berth"))
    return [name for name in names if name.startswith("disk")]


def told(*command):
    """What COMMAND says on the lab's host, be it an error: the disk may go as we look."""
    try:
        return f"# {' '.join(command)}\n{lab_exec('host', *command)}"
    except Failed as error:
        return f"{error}\n"


def trashed():
    """Identifiers of images that are being removed, or were: they have no name any more, and are listed nevertheless."""
    return [entry["id"] for entry in json.loads(
        lab_exec("host", "rbd", "trash", "ls", "--all", "--format", "json", "berth"))]


def holders():
    """What Ceph knows of the disks that are left: who has them open, and who removes them."""
    if os.path.isdir(os.path.join(LAB_DATA, "storage")):
        return ""
    looks = [("date", "+%s")]
    looks += [("rbd", "status", f"berth/{name}") for name in disks()]
    looks.append(("rbd", "trash", "ls", "--all", "--long", "berth"))
    for identifier in trashed():
        header = f"rbd_header.{identifier}"
        looks.append(("rados", "--pool", "berth", "listwatchers", header))
        looks.append(("rados", "--pool", "berth", "getxattr", header, "berth.removed-by"))
    return "".join(told(*look) for look in looks)


def main():
    try:
        for job in active():
            run("cancel", job)
        await_true("no job is active", lambda: not active(), 60)
        await_true("no guest is left", lambda: not domains(), 60)
        # Ceph forgets a client that was killed after 30 s; then the next collection takes its disk.
        await_true(f"no disk is left: {disks()}", lambda: not disks(), 180)
        await_true("nothing is reserved", lambda: not any(
            number(n, "vcpusReserved") or number(n, "memoryReservedMib") for n in nodes().values()), 30)
    except Exception as error:
        try:
            print(holders())
        finally:  # what is read first comes last
            print(explain(error))
        sys.exit(1)


main()
