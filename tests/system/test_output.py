# SPDX-License-Identifier: Apache-2.0
"""A flood of output: complete, to the byte, and nobody else suffers from it."""

import subprocess

from harness import *
from scenario import node_tuned

STDOUT_MIB = by_size(32, 64, 500)
STDERR_MIB = by_size(8, 16, 100)

# A stream that can be made again here, at the speed of the guest's emulated CPU: one block,
# numbered. yes(1) is a few hundred MB/s even there.
OUT_LINE = "standard output of a job that has a lot to say, line after line, all of them the same 0123456789"
ERR_LINE = "standard error of it, a little less, but still more than any pipe or buffer on the way holds"


def expected(line, mib):
    digest, size, block = hashlib.sha256(), mib << 20, (line + "\n").encode() * 10000
    while size > 0:
        digest.update(block[:size])
        # The stream is periodic in lines, and so must the next block begin.
        if size < len(block):
            break
        size -= len(block)
    return digest.hexdigest(), mib << 20


class Memory:
    """How much the daemons grow at most from now on: the kernel notes the peak of each process."""

    def __init__(self):
        self.pids = self.daemons()
        self.before = {}
        for name, pid in self.pids.items():
            with open(f"/proc/{pid}/clear_refs", "w") as file:
                file.write("5")  # the peak begins anew, proc(5)
            self.before[name] = memory_mib(pid)
            check(memory_mib(pid, "VmHWM") <= self.before[name] + 1, f"the peak of {name} does not begin anew")

    @staticmethod
    def daemons():
        return {name: lab_pid(name) for name in ["berthd", *nodes()]}

    def grown(self):
        """MiB by name; the daemons must be the processes that they were."""
        check_equal(self.daemons(), self.pids, "the daemons' processes")
        return {name: memory_mib(pid, "VmHWM") - self.before[name] for name, pid in self.pids.items()}


@test(f"{STDOUT_MIB} MiB of stdout and {STDERR_MIB} MiB of stderr: digests match, daemons stay small")
def flood():
    with node_tuned("node1", "output_rate=256M"):  # as fast as all of it can
        check_flood()


def check_flood():
    memory = Memory()
    job = sh(f'yes "{OUT_LINE}" | head -c {STDOUT_MIB << 20} & '
             f'yes "{ERR_LINE}" | head -c {STDERR_MIB << 20} >&2; wait', "--node", "node1")
    stalled = start_stalled_reader(job)
    try:
        # Followed by a reader that keeps up, beside one that does not read at all.
        stdout, stderr = output_digests(job, "-f", timeout=1000)
        ended = wait_one(job, timeout=600)
    finally:
        stalled.kill()
        stalled.wait()
    check_equal(ended["state"], "COMPLETED", "state")
    check_equal(stdout, expected(OUT_LINE, STDOUT_MIB), "stdout, followed")
    check_equal(stderr, expected(ERR_LINE, STDERR_MIB), "stderr, followed")
    check_equal(output_digests(job), (expected(OUT_LINE, STDOUT_MIB), expected(ERR_LINE, STDERR_MIB)), "logs afterwards")
    check_equal((number(task(ended), "exit", "stdoutBytes"), number(task(ended), "exit", "stderrBytes")),
                (STDOUT_MIB << 20, STDERR_MIB << 20), "sizes in the job's record")
    seconds = (number(task(ended), "endUsec") - number(task(ended), "startUsec")) / 1e6
    grown = memory.grown()
    say(f"{(STDOUT_MIB + STDERR_MIB) / seconds:.0f} MiB/s; growth in MiB: " +
        ", ".join(f"{name} {size:.1f}" for name, size in grown.items()))
    for name, size in grown.items():
        check(size <= 32, f"{name} grew by {size:.1f} MiB")


def start_stalled_reader(job):
    """A `berth logs -f` whose output nobody reads, also of a job that is still to start."""
    return subprocess.Popen([BERTH, "logs", "-f", str(job)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@test("while a reader stalls, other jobs run and other readers read")
def stalled_reader():
    job = sh(f'yes "{OUT_LINE}" | head -c {16 << 20}')
    stalled = start_stalled_reader(job)
    try:
        result = run("run", "--", "echo", "not stalled", timeout=60)
        check_equal(result.stdout, b"not stalled\n", "another job's output")
        check_equal(wait_one(job)["state"], "COMPLETED", "state of the job whose reader stalls")
        check_equal(output_digests(job)[0], expected(OUT_LINE, 16), "its output")
    finally:
        stalled.kill()
        stalled.wait()


if __name__ == "__main__":
    main()
