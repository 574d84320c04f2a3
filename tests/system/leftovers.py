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


def holders():
    """Who has the disks open that are left, as Ceph says."""
    if os.path.isdir(os.path.join(LAB_DATA, "storage")):
        return ""
    return "".join(lab_exec("host", "rbd", "status", f"berth/{name}") for name in disks())


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
