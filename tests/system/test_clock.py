# SPDX-License-Identifier: Apache-2.0
"""A guest's time: it is its host's, also if the host gave it no CPU for long or the job has set it."""

import time

from harness import *

STOPPED_SEC = 10  # twice what the ACPI timer counts to
SLACK_SEC = 0.1

# The host's word of its time is all that can bring it back.
SETS_CLOCK = ("date -s @1000000000; until [ $(date +%s) -gt 1500000000 ]; do sleep 1; done; "
              "date -s @3000000000; until [ $(date +%s) -lt 2500000000 ]; do sleep 1; done")


def guest_uptime(job):
    """What has passed for the guest, and before and after which times of the host it was read."""
    since = time.monotonic()
    uptime = float(berth("exec", str(job), "--", "cat", "/proc/uptime").split()[0])
    return since, uptime, time.monotonic()


def signal_qemu(job, name):
    shown = task(show(job))
    domain = f"berth-{job}-0-0-{shown['epoch']}"
    lab_exec(shown["node"], "sh", "-c", f"kill -{name} $(cat /run/libvirt/qemu/{domain}.pid)")


@test(f"a guest whose QEMU gets no CPU for {STOPPED_SEC} s loses no time")
def stands():
    job = sh("while :; do sleep 1; done", "--memory", "96M")
    await_running(job)
    before = guest_uptime(job)
    signal_qemu(job, "STOP")
    time.sleep(STOPPED_SEC)
    signal_qemu(job, "CONT")
    after = guest_uptime(job)
    passed = after[1] - before[1]
    say(f"{passed:.2f} s have passed")
    check(after[0] - before[2] - SLACK_SEC <= passed <= after[2] - before[0] + SLACK_SEC,
          f"{passed:.2f} s have passed in the guest, {after[0] - before[2]:.2f} to "
          f"{after[2] - before[0]:.2f} s on its host")
    berth("cancel", str(job))
    wait_one(job)


@test("a clock that a job has set wrong is put right, and the job's end is told in the host's time")
def is_set():
    since = time.time()
    job = sh(SETS_CLOCK, "--memory", "96M")
    ended = wait_one(job)
    check_equal(ended["state"], "COMPLETED", "its state")
    start, end = (number(task(ended), name) / 1e6 for name in ("startUsec", "endUsec"))
    # A clock that was ahead stays so by a question's way at most.
    check(since <= start <= end <= time.time() + 5, f"it began at {start} and ended at {end}")


if __name__ == "__main__":
    main()
