# SPDX-License-Identifier: Apache-2.0
"""The lab itself: side by side with others, and gone without a trace whatever was killed."""

import glob
import os
import signal
import subprocess
import time

from harness import *

PREFIX = os.path.dirname(BERTH)


def other(command, *arguments, name, **options):
    return subprocess.run([*LAB, command, "--name", name, *arguments], capture_output=True,
                          timeout=180, **options)


def up(name, storage="dir"):
    return ["up", "--name", name, "--nodes", "1", "--storage", storage, "--prefix", PREFIX,
            "--owner", str(os.getpid())]


def traces(name):
    """What is left of lab NAME: directories, control groups, processes, mounts."""
    left = [path for path in (f"/run/berth-lab/{name}", f"/var/lib/berth-lab/{name}",
                              *glob.glob(f"/sys/fs/cgroup/berth-lab/{name}"),
                              *glob.glob(f"/sys/fs/cgroup/*/berth-lab/{name}")) if os.path.exists(path)]
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read()
        except OSError:
            continue
        if f"berth-lab/{name}/".encode() in words:
            left.append(words.replace(b"\0", b" ").decode(errors="replace"))
    with open("/proc/self/mountinfo") as file:
        left += [line for line in file if f"berth-lab/{name}/" in line]
    return left


def down_without_a_trace(name):
    result = other("down", name=name)
    check_equal(result.returncode, 0, f"status of down: {result.stderr.decode()}")
    check_equal(traces(name), [], "what is left")


@test("a second lab beside this one works, and its end leaves this one alone")
def side_by_side():
    name = f"beside-{os.getpid()}"
    job = sh("sleep 8; echo undisturbed")
    started = subprocess.run([*LAB, *up(name)], capture_output=True, timeout=180)
    try:
        check_equal(started.returncode, 0, f"status of up: {started.stderr.decode()}")
        environment = {**os.environ, "BERTH_SOCKET": f"/run/berth-lab/{name}/berthd.sock"}
        check_in("node1", berth("node", "ls", env=environment), "nodes of the second lab")
        with open(f"/run/berth-lab/{name}/owner") as file:
            check_equal(file.read().split()[0], str(os.getpid()), "owner of the second lab")
        check_equal(berth("ls", "--all", env=environment).count("\n"), 1, "lines of its empty list of jobs")
    finally:
        down_without_a_trace(name)
    check_equal(wait_one(job)["state"], "COMPLETED", "state of the job here")
    check_equal(output(job)[0], b"undisturbed\n", "its output")


@test("two berth-lab up of one name at a time make one lab, and neither fails")
def up_twice():
    name = f"twice-{os.getpid()}"
    both = [subprocess.Popen([*LAB, *up(name)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    try:
        said = [process.communicate(timeout=180) for process in both]
        check_equal([process.returncode for process in both], [0, 0], f"status of both: {said}")
        check_equal(sum(b"is up already" in stdout for stdout, _ in said), 1, f"labs found up: {said}")
        check_equal(other("status", name=name).returncode, 0, "status of the lab")
        refused = other("up", "--nodes", "2", "--prefix", PREFIX, name=name)
        check(refused.returncode != 0 and b"node1" in refused.stderr, f"up with other options: {refused}")
    finally:
        down_without_a_trace(name)


@test("restart starts what was stopped, and kill of what does not run fails")
def stopped_is_mended():
    name = f"mended-{os.getpid()}"
    started = subprocess.run([*LAB, *up(name)], capture_output=True, timeout=180)
    try:
        check_equal(started.returncode, 0, f"status of up: {started.stderr.decode()}")
        for service in ("node1", "host/node1", "berthd"):
            check_equal(other("stop", service, name=name).returncode, 0, f"status of stop {service}")
        check(other("kill", "berthd", name=name).returncode != 0, "kill of a stopped berthd did not fail")
        check_equal(other("status", name=name).returncode, 1, "status of a lab that was stopped")
        check_equal(other("restart", name=name).returncode, 0, "status of restart")
        check_equal(other("status", name=name).returncode, 0, "status of the lab afterwards")
    finally:
        down_without_a_trace(name)


@test("env finds berth and its manual, before what the system has")
def env_finds_all():
    shell = 'eval "$("$1" env)" && command -v berth && echo "$MANPATH" && { ! command -v man || man -w berth-lab; }'
    for before, after in (("", ""), ("/mine:", "/mine:")):
        told = subprocess.run(["sh", "-c", shell, "sh", *LAB], capture_output=True, timeout=60,
                              env={**os.environ, "MANPATH": before}).stdout.decode().split()
        pages = os.path.join(PREFIX, "doc", "man")
        check_equal(told[:2], [BERTH, f"{pages}:{after}"], "program and manual")
        check(os.path.exists(f"{pages}/man1/berth.1"), "berth.1 is not where man looks for it")
        if len(told) > 2:
            check_equal(told[3], os.path.realpath(f"{pages}/man1/berth-lab.1"), "page that man finds")


@test("status shows Ceph's daemons, and one that is gone counts")
def ceph_in_status():
    name = f"ceph-{os.getpid()}"
    started = subprocess.run([*LAB, *up(name, "rbd")], capture_output=True, timeout=180)
    try:
        check_equal(started.returncode, 0, f"status of up: {started.stderr.decode()}")
        status = other("status", name=name)
        check_equal(status.returncode, 0, "status of the lab")
        shown = {line.split()[1]: line.split()[2:4] for line in status.stdout.decode().splitlines()
                 if line.startswith("Ceph's ")}
        check_equal(sorted(shown), ["ceph-mgr", "ceph-mon", "ceph-osd"], "daemons shown")
        for daemon, (state, pid) in shown.items():
            with open(f"/proc/{pid}/comm") as file:
                check_equal((state, file.read().strip()), ("running", daemon), f"process {pid}")
        os.kill(int(shown["ceph-osd"][1]), signal.SIGKILL)
        await_true("status says that not all runs", lambda: other("status", name=name).returncode == 1, 20)
        check_in(b"Ceph's ceph-osd        dead", other("status", name=name).stdout, "status without the OSD")
    finally:
        down_without_a_trace(name)


@test("berth-lab up, killed with -9 at random moments, leaves nothing that down does not remove")
def up_is_killed():
    rng = seeded_random()
    for n in range(by_size(2, 2, 20)):
        name = f"killed-{os.getpid()}-{n}"
        process = subprocess.Popen([*LAB, *up(name, "rbd")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        delay = rng.uniform(0.02, 12)
        time.sleep(delay)
        process.kill()
        process.wait()
        say(f"killed after {delay:.2f} s")
        if other("status", name=name).returncode != 3:
            down_without_a_trace(name)
        check_equal(traces(name), [], "what is left")


@test("a lab whose first process is killed with -9 is gone at once, and down removes the rest")
def first_process_is_killed():
    name = f"first-{os.getpid()}"
    started = subprocess.run([*LAB, *up(name)], capture_output=True, timeout=180)
    check_equal(started.returncode, 0, f"status of up: {started.stderr.decode()}")
    with open(f"/run/berth-lab/{name}/host.init") as file:
        os.kill(int(file.read().split()[0]), signal.SIGKILL)
    await_true("status says that not all runs", lambda: other("status", name=name).returncode == 1, 20)
    down_without_a_trace(name)


if __name__ == "__main__":
    main()
