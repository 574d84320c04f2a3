# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is a clear message that says what to do, and nothing is lost."""

import os
import re
import signal
import subprocess
import tempfile
import time

from harness import *


@test("a request larger than any node is refused at submit, naming the largest")
def too_large():
    message = refused("submit", "--vcpus", "64", "--", "true")
    check(re.search(r"node[12]", message) and "64" in message, f"message: {message}")
    message = refused("submit", "--memory", "900G", "--", "true")
    check(re.search(r"node[12]", message), f"message: {message}")


@test("an unknown image and an unknown node are refused at submit")
def unknown_names():
    check_in("no-such-image", refused("submit", "--image", "no-such-image", "--", "true"), "message")
    check_in("no-such-node", refused("submit", "--node", "no-such-node", "--", "true"), "message")


@test("an unreadable script, a missing and an unreadable input file are refused, naming the file")
def unreadable():
    check_in("/no/such/script", refused("submit", "/no/such/script"), "message")
    check_in("/no/such/input", refused("submit", "--input", "/no/such/input", "--", "true"), "message")
    with tempfile.TemporaryDirectory() as directory:
        check_in(directory, refused("submit", "--input", directory, "--", "true"), "message")


@test("an input file larger than the limit is refused before it is sent")
def input_too_large():
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(3 << 30)
        message = refused("submit", "--input", file.name, "--", "true", timeout=20)
    check(re.search(r"large|limit|at most", message), f"message: {message}")


@test("a command that the image does not have ends the job with that reason")
def no_such_command():
    ended = wait_one(submit("--", "no-such-command"))
    check_equal(ended["state"], "FAILED", "state")
    check_equal(reason(ended), "REASON_COMMAND_NOT_FOUND", "reason")
    check_in("no-such-command", task(ended).get("reasonText", ""), "reason in words")


@test("berth without a daemon says how to start or find one")
def no_daemon():
    result = run("ls", env={**os.environ, "BERTH_SOCKET": "/no/such/socket"})
    check(result.returncode != 0, "it did not fail")
    check_in(b"/no/such/socket", result.stderr, "message")


@test("a second berthd on the same state refuses to start, and the first goes on")
def second_daemon():
    before = lab_pid("berthd")
    config = os.path.join(LAB_DATA, "etc", "berthd.conf")
    program = os.path.join(os.path.dirname(BERTH), "berthd")
    # Its own socket and port, so that the state is all that they share.
    with open(config) as file:
        text = file.read()
    text = re.sub(r"(?m)^socket=.*", f"socket={LAB_DATA}/second.sock", text)
    text = text.replace("[agents]\n", "[agents]\nport=0\n")
    second = os.path.join(LAB_DATA, "etc", "second.conf")
    with open(second, "w") as file:
        file.write(text)
    result = subprocess.run([*LAB, "exec", "--name", LAB_NAME, "host", program, "--config", second],
                            capture_output=True, timeout=60)
    os.unlink(second)
    message = (result.stdout + result.stderr).decode()
    check(result.returncode != 0, "the second one started")
    check_in("berth.db", message, "message")
    check_equal(lab_pid("berthd"), before, "process of the first")
    berth("ls")


def agent_config(node):
    return os.path.join(LAB_DATA, "etc", f"{node}.conf")


class Changed:
    """A node's agent with a changed configuration, until the block ends."""

    def __init__(self, node, *changes):
        self.node, self.changes = node, changes

    def __enter__(self):
        with open(agent_config(self.node)) as file:
            self.saved = text = file.read()
        for pattern, replacement in self.changes:
            text, found = re.subn(pattern, replacement, text, flags=re.MULTILINE)
            check(found, f"{pattern} is not in the configuration")
        self.restart(text)

    def __exit__(self, *_):
        self.restart(self.saved)
        await_true(f"{self.node} is up again", lambda: node_is_up(self.node), 60)

    def restart(self, text):
        lab("stop", self.node)
        with open(agent_config(self.node), "w") as file:
            file.write(text)
        self.log_start = os.path.getsize(self.log_path())
        lab("start", self.node)

    def log_path(self):
        return os.path.join(LAB_DATA, "log", self.node, "berth-node.log")

    def log(self):
        with open(self.log_path(), errors="replace") as file:
            file.seek(self.log_start)
            return file.read()


@test("a guest whose kernel panics fails its job with the tail of the console")
def guest_panics():
    with tempfile.TemporaryDirectory(dir=LAB_DATA) as directory:
        os.chmod(directory, 0o755)
        # An initramfs without anything to run: the kernel finds no init.
        broken = os.path.join(directory, "initramfs.cpio")
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=b"", check=True,
                       stdout=open(broken, "wb"), cwd=directory)
        with Changed("node2", (r"^initramfs=.*", f"initramfs={broken}")):
            await_true("node2 is up", lambda: node_is_up("node2"), 60)
            ended = wait_one(submit("--node", "node2", "--", "true"), timeout=240)
    check_equal(ended["state"], "FAILED", "state")
    check(reason(ended) in ("REASON_GUEST_CRASHED", "REASON_BOOT_DEADLINE"), f"reason: {reason(ended)}")
    check_in("anic", task(ended).get("consoleTail", ""), "console")
    if reason(ended) == "REASON_GUEST_CRASHED":
        check_equal(number(task(ended), "epoch"), 3, "starts: nothing of it had run")


@test("a guest that hangs whenever it boots ends at its deadline with what to do, and its node serves on")
def guest_hangs():
    config = os.path.join(LAB_DATA, "etc", "berthd.conf")
    with open(config) as file:
        saved = file.read()
    short, found = re.subn(r"(?m)^\[guests\]$", "[guests]\nboot_deadline=20s", saved)
    check(found, "berthd's configuration has no [guests]")

    def restart_berthd(text):
        lab("stop", "host/berthd")
        with open(config, "w") as file:
            file.write(text)
        lab("start", "host/berthd")
        await_true("node2 is up", lambda: node_is_up("node2"), 60)

    restart_berthd(short)
    try:
        with tempfile.TemporaryDirectory(dir=LAB_DATA) as directory:
            os.chmod(directory, 0o755)
            hanging = initramfs_that(directory, "int main(void) { for (;;) { } }")
            with Changed("node2", (r"^initramfs=.*", f"initramfs={hanging}")):
                await_true("node2 is up", lambda: node_is_up("node2"), 60)
                ended = wait_one(submit("--node", "node2", "--", "true"), timeout=240)
    finally:
        restart_berthd(saved)
    check_equal(ended["state"], "FAILED", "state")
    check_equal(reason(ended), "REASON_BOOT_DEADLINE", "reason")
    check_equal(number(task(ended), "epoch"), 3, "starts: its node might have been slow")
    check_in("did not boot", task(ended).get("reasonText", ""), "reason in words")
    check_equal(wait_one(submit("--node", "node2", "--", "true"))["state"], "COMPLETED", "the next job")


def initramfs_that(directory, program):
    """An initramfs whose init is this C program."""
    root = os.path.join(directory, "root")
    os.mkdir(root)
    subprocess.run(["cc", "-static", "-x", "c", "-o", os.path.join(root, "init"), "-"],
                   input=program.encode(), check=True)
    path = os.path.join(directory, "hanging.cpio")
    with open(path, "wb") as file:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], input=b"init\n", check=True, stdout=file,
                       cwd=root)
    return path


@test("an agent with a certificate of another CA is not let in, and says why")
def wrong_certificate():
    with tempfile.TemporaryDirectory(dir=LAB_DATA) as directory:
        key, cert = os.path.join(directory, "key"), os.path.join(directory, "cert")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-subj", "/CN=node2", "-addext", "subjectAltName=DNS:node2",
                        "-keyout", key, "-out", cert], check=True, capture_output=True)
        changed = Changed("node2", (r"^certificate=.*", f"certificate={cert}"), (r"^key=.*", f"key={key}"))
        with changed:
            await_true("the agent says why", lambda: "certificate" in changed.log().lower(), 60)
            check(not node_is_up("node2"), "the node was let in")


@test("an agent without libvirt says so and comes up when libvirt does")
def without_libvirt():
    lab("stop", "node2/libvirtd")
    changed = Changed("node2")
    try:
        with open(agent_config("node2")) as file:
            changed.restart(file.read())
        await_true("the agent says so", lambda: "libvirt" in changed.log(), 60)
        check(not node_is_up("node2"), "the node is up without libvirt")
    finally:
        lab("start", "node2/libvirtd")
    await_true("node2 is up again", lambda: node_is_up("node2"), 90)


@test("storage that stalls in flight stalls guests, and nothing fails")
def storage_stalls():
    pids = ceph_osds()
    if not pids:
        skip("storage is a directory")
    job = sh('i=0; while [ $i -lt 12 ]; do echo "line $i"; dd if=/dev/zero of=f bs=64k count=4 2>/dev/null; sync; '
             'i=$((i+1)); sleep 0.5; done')
    await_running(job)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(by_size(3, 8, 40))  # the outage itself
        check(show(job)["state"] == "RUNNING", f"the job is {show(job)['state']} while storage stalls")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    ended = wait_one(job)
    check_equal(ended["state"], "COMPLETED", "state")
    check_equal(output(job)[0], "".join(f"line {i}\n" for i in range(12)).encode(), "output")


def ceph_osds():
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        if os.path.basename(words[0]) == "ceph-osd" and any(f"/{LAB_NAME}/" in word for word in words):
            pids.append(int(pid))
    return pids


@test("a node that loses its power: its job starts again elsewhere, and ends once")
def node_power_failure():
    # Its first guest runs until it is lost.
    job = sh('echo "on $(hostname)"; [ "$BERTH_EPOCH" -gt 1 ] || sleep 3600; echo end')
    first = task(await_running(job))["node"]
    lab("stop", f"host/{first}")
    try:
        ended = wait_one(job, timeout=240)
    finally:
        lab("start", f"host/{first}")
    await_true(f"{first} is up again", lambda: node_is_up(first), 60)
    check_equal(ended["state"], "COMPLETED", "state")
    check(number(task(ended), "epoch") >= 2, f"epoch: {task(ended)}")
    check_equal(output(job)[0].count(b"end\n"), 1, f"ends in the output {output(job)[0]}")


if __name__ == "__main__":
    main()
