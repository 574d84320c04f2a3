# SPDX-License-Identifier: Apache-2.0
"""Arrays: each task once, with its own index, output and end; some of them cancelled; a berthd that is killed meanwhile."""

from harness import *


@test("an array runs each of its tasks once, so many at a time, each with its own index, output and end")
def runs_each_once():
    array = submit("--array", "1-5:2,9%2", "--memory", "96M", "--", "sh", "-c",
                   'echo "task $BERTH_TASK_ID of $BERTH_JOB_ID"; exit $((BERTH_TASK_ID == 3))')
    shown = json.loads(berth("show", "--json", str(array)))
    check_equal(shown["array"]["runningMax"], 2, "how many run at a time")
    check_equal(run("wait", str(array)).returncode, 1, "the status of an array of which a task has failed")
    for index in (1, 3, 5, 9):
        check_equal(output(f"{array}[{index}]"), (f"task {index} of {array}\n".encode(), b""), f"output of task {index}")
    ended = json.loads(berth("show", "--json", f"{array}[1-9]"))
    check_equal({task["index"]: task["state"] for task in ended["tasks"]},
                {1: "COMPLETED", 3: "FAILED", 5: "COMPLETED", 9: "COMPLETED"}, "its tasks")
    events = berth("events", str(array))
    for index in (1, 3, 5, 9):
        check_equal(events.count(f"job {array}[{index}] guest-running"), 1, f"how often task {index} began")
    check(f"{array}[1-5:2,9%2]" in berth("ls", "--all"), "berth ls does not name its tasks")


@test("an array of a million tasks is there at once; most of it is cancelled, and berthd killed, and the rest runs")
def most_is_cancelled():
    array = submit("--array", "0-999999%2", "--memory", "96M", "--", "sh", "-c", "echo $BERTH_TASK_ID; sleep 2")
    await_true("a task of it runs", lambda: " running" in berth("show", str(array)), 60)
    berth("cancel", f"{array}[4-999999]")
    check(f"{array}[4-999999]" in berth("events", str(array)), "the events do not say which were cancelled")
    lab("kill", "berthd")
    await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
    check_equal(run("wait", str(array), timeout=240).returncode, 1, "the status of an array that was cancelled in part")
    counts = json.loads(berth("show", "--json", str(array)))["counts"]
    check_equal((number(counts, "completed"), number(counts, "cancelled")), (4, 999996), "how its tasks ended")
    for index in range(4):
        check_equal(output(f"{array}[{index}]"), (f"{index}\n".encode(), b""), f"output of task {index}")
    check_equal(run("logs", str(array)).returncode, 1, "the status of `berth logs` of a whole array")


@test("tasks of an array are held and let go by their numbers, also by a berthd that comes after one that was killed")
def held_by_number():
    array = submit("--hold", "--array", "0-3", "--memory", "96M", "--", "sh", "-c", "echo $BERTH_TASK_ID")

    def completed():
        return number(json.loads(berth("show", "--json", str(array)))["counts"], "completed")
    berth("release", f"{array}[1-2]")
    await_true("those that were released end", lambda: completed() == 2, 60)
    lab("kill", "berthd")
    await_true("berthd answers", lambda: run("node", "ls").returncode == 0, 60)
    check_in("\nHeld ", berth("show", str(array)), "what berth show says")
    check_in("its user holds it", berth("why", f"{array}[3]"), "what berth why says")
    berth("release", f"{array}[3]")
    await_true("the one that was released ends", lambda: completed() == 3, 60)
    check_equal(output(f"{array}[3]"), (b"3\n", b""), "its output")
    berth("release", str(array))
    check_equal(run("wait", str(array)).returncode, 0, "the status of the array")
    check_in("tasks 1-2", berth("events", str(array)), "the event log")


@test("tasks of an array are frozen, moved, checkpointed and put back each by itself")
def each_by_itself():
    array = submit("--array", "0-1", "--memory", "96M", "--time", "1h", "--", "sh", "-c", "while :; do echo $BERTH_TASK_ID; sleep 0.1; done")

    def tasks():
        return {number(one, "index"): one for one in json.loads(berth("show", "--json", f"{array}[0-1]"))["tasks"]}

    def both_run():
        return all(one["state"] == "RUNNING" and not one.get("booting") for one in tasks().values())
    await_true("both of its tasks run", both_run, 60)
    berth("freeze", f"{array}[1]")
    check_equal({index: one["state"] for index, one in tasks().items()}, {0: "RUNNING", 1: "SUSPENDED"}, "its tasks")
    before = tasks()[0]["node"]
    berth("migrate", "--wait", f"{array}[0]", timeout=120)
    check(tasks()[0]["node"] != before, "task 0 was not moved")
    berth("thaw", f"{array}[1]")
    berth("checkpoint", "--wait", f"{array}[1]", timeout=120)
    check_equal([len(tasks()[index].get("checkpoints", [])) for index in (0, 1)], [0, 1], "their checkpoints")
    berth("restore", "--wait", f"{array}[1]", timeout=120)
    check_equal([number(tasks()[index], "epoch") for index in (0, 1)], [1, 2], "their epochs")
    check_equal(berth("exec", f"{array}[1]", "--", "cat", "/proc/sys/kernel/hostname").strip() != "", True, "a command beside task 1")
    check_equal(run("restore", str(array)).returncode, 1, "the status of `berth restore` of a whole array")
    berth("cancel", str(array))
    run("wait", str(array))
    for index in (0, 1):
        lines = set(output(f"{array}[{index}]")[0].split())
        check_equal(lines, {str(index).encode()}, f"output of task {index}")


if __name__ == "__main__":
    main()
