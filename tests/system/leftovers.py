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


def holders():
    """What Ceph knows of the disks that are left: who has them open, and what of them is being removed."""
    if os.path.isdir(os.path.join(LAB_DATA, "storage")):
        return ""
    looks = [("rbd", "status", f"berth/{name}") for name in disks()]
    # A disk that is being removed has no name any more, and is listed nevertheless.
    looks.append(("rbd", "trash", "ls", "--all", "--long", "berth"))
    looks.append(("rados", "--pool", "berth", "listomapvals", "rbd_directory"))
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
        print(explain(error))
        print(holders())
        sys.exit(1)


main()
