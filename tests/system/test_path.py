# SPDX-License-Identifier: Apache-2.0
"""The whole path: a script goes in, its output and status come back exactly."""

import json
import os
import subprocess
import tempfile

from harness import *


@test("a script with arguments: stdout, stderr and status come back exactly")
def script_with_arguments():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "greet")
        with open(path, "w") as file:
            file.write('#!/bin/sh\n#BERTH --memory 128M --name greeting\n'
                       'printf "%s|" "$@"; echo "to stderr" >&2; exit 7\n')
        job = int(berth("submit", path, "one", "two words", "", "$HOME"))
    ended = wait_one(job)
    check_equal(ended["state"], "FAILED", "state")
    check_equal(reason(ended), "REASON_EXIT_STATUS", "reason")
    check_equal(number(task(ended), "exit", "status"), 7, "exit status")
    check_equal(ended["name"], "greeting", "name")
    check_equal(output(job), (b"one|two words||$HOME|", b"to stderr\n"), "output")


@test("berth run passes output and status through, 128+N for a signal")
def run_passes_status():
    result = run("run", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    check_equal(result.returncode, 3, "status")
    check_equal(result.stdout, b"out\n", "stdout")
    check_in(b"err\n", result.stderr, "stderr")
    check_equal(run("run", "--", "sh", "-c", "kill -9 $$").returncode, 128 + 9, "status of a signal")
    check_equal(run("run", "--", "true").returncode, 0, "status of true")
    check_equal(run("run", "--", "no-such-command").returncode, 127, "status of no command at all")


@test("output is binary-safe, and comes back to the byte")
def binary_output():
    job = sh("head -c 300000 /dev/urandom >f; cat f; sha256sum <f | cut -c1-64 >&2")
    wait_one(job)
    stdout, stderr = output(job)
    check_equal(len(stdout), 300000, "size")
    check_equal(hashlib.sha256(stdout).hexdigest(), stderr.decode().strip(), "digest")


@test("environment, working directory and host name")
def environment():
    job = submit("--env", "COLOUR=blue green", "--chdir", "/tmp", "--", "sh", "-c",
                 'echo "$COLOUR"; pwd; echo "$BERTH_JOB_ID"; hostname')
    wait_one(job)
    lines = output(job)[0].decode().splitlines()
    check_equal(lines[:3], ["blue green", "/tmp", str(job)], "environment")
    check(lines[3], "the guest has no host name")


@test("input files arrive with their content and mode")
def inputs():
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "data")
        tool = os.path.join(directory, "tool")
        with open(data, "wb") as file:
            file.write(os.urandom(3 << 20))
        with open(tool, "w") as file:
            file.write("#!/bin/sh\necho tool runs\n")
        os.chmod(tool, 0o755)
        job = submit("--input", data, "--input", f"bin/tool={tool}", "--", "sh", "-c",
                     "pwd; sha256sum <data | cut -c1-64; bin/tool")
        with open(data, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
    ended = wait_one(job)
    check_equal(output(job)[0].decode().splitlines(), ["/work", digest, "tool runs"], "output")
    check_equal(ended["state"], "COMPLETED", "state")


@test("a job runs as the user who submitted it, and other users cannot touch it")
def as_user():
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    # The build may be where that user cannot look.
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        cli = os.path.join(directory, "berth")
        subprocess.run(["cp", BERTH, cli], check=True)

        def as_nobody(*arguments):
            return subprocess.run([*nobody, cli, *arguments], capture_output=True, timeout=120, cwd="/")
        submitted = as_nobody("submit", "--", "sh", "-c", "id -u; id -g; touch /etc/x || echo refused")
        check_equal(submitted.returncode, 0, f"submit as nobody: {submitted.stderr.decode()}")
        job = int(submitted.stdout)
        check_equal(wait_one(job)["user"], "nobody", "user")
        check_equal(output(job)[0], b"65534\n65534\nrefused\n", "output")
        mine = sh("sleep 3600")
        check(as_nobody("cancel", str(mine)).returncode != 0, "another user's cancel was not refused")
        check(as_nobody("logs", str(mine)).returncode != 0, "another user's logs were not refused")
        berth("cancel", str(mine))
        wait_one(mine)


@test("hold keeps a job from starting, release lets it, cancel ends it")
def hold_release_cancel():
    held = submit("--hold", "--", "true")
    running = sh('trap "echo got TERM; exit 0" TERM; echo ready; while :; do sleep 1; done')
    await_running(running)
    check_equal(show(held)["state"], "PENDING", "state of the held job")
    check_equal(reason(show(held)), "REASON_HELD_BY_USER", "its reason")
    berth("release", str(held))
    check_equal(wait_one(held)["state"], "COMPLETED", "state after release")
    await_true("the job's first output", lambda: output(running)[0] == b"ready\n")
    berth("cancel", str(running))
    ended = wait_one(running)
    check_equal(ended["state"], "CANCELLED", "state after cancel")
    check_equal(output(running)[0], b"ready\ngot TERM\n", "output")


@test("logs -f follows while the job runs, and ends with it")
def logs_follow():
    job = sh("for i in 1 2 3; do echo line $i; sleep 0.5; done")
    result = run("logs", "-f", str(job))
    check_equal(result.stdout, b"line 1\nline 2\nline 3\n", "output")
    check(show(job)["state"] in ("COMPLETED", "RUNNING"), "the job has not ended")


@test("ls, show, node ls and node show, as tables and as JSON")
def listings():
    job = sh("sleep 3600", "--name", "listed")
    listed = [json.loads(line) for line in berth("ls", "--json").splitlines()]
    check_in(str(job), [entry["id"] for entry in listed], "ls --json")
    check_in("listed", berth("ls"), "ls")
    check_in("listed", berth("show", str(job)), "show")
    for name, node in nodes().items():
        check_equal(node["state"], "NODE_UP", f"state of {name}")
        check(number(node, "info", "vcpus") > 0, f"{name} offers no vCPUs")
        check_in(name, berth("node", "show", name), "node show")
    berth("cancel", str(job))
    check_equal(wait_one(job)["state"], "CANCELLED", "state after cancel")


@test("an image cannot be removed while a job needs it")
def image_in_use():
    job = submit("--hold", "--", "true")
    check_in("busybox", refused("image", "rm", "busybox"), "message")
    check_equal(number(json.loads(berth("image", "show", "--json", "busybox")), "jobs") > 0, True, "jobs of the image")
    berth("cancel", str(job))
    wait_one(job)


@test("a job may be bound to a node")
def bound_to_node():
    for name in nodes():
        job = submit("--node", name, "--", "true")
        check_equal(task(wait_one(job))["node"], name, "node")


@test("berth wait reports the first failure's status; the same key is the same job")
def wait_and_key():
    good, bad = sh("exit 0"), sh("exit 9")
    check_equal(run("wait", str(good), str(bad)).returncode, 9, "status of wait")
    first = submit("--key", "once", "--", "true")
    check_equal(submit("--key", "once", "--", "true"), first, "job of the same key")
    wait_one(first)


if __name__ == "__main__":
    main()
