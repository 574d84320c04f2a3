# SPDX-License-Identifier: Apache-2.0
"""bench/mixed-day: a short day of large reservations and little usage, on three nodes: some start in the slack of
others, all results are right, and the simulator takes what the bench has measured. How long it takes is the
machine's business."""

import json
import subprocess
import tempfile

from harness import *

JOBS = 8
# Two of these reservations fill a node of 8 vCPUs; half an hour is half a minute.
LINE = ("10/01/2017 00:01:38;E;{number}.m1;user=a group=g jobname=x etime=1000 exec_host=c1/0-15 "
        "Resource_List.nodes=1:ppn=16 Resource_List.vmem=200gb Resource_List.walltime=05:00:00 end=1200 "
        "resources_used.cput=3000 resources_used.mem=20gb resources_used.walltime=00:30:00\n")


@test("a short day: jobs start in the slack of others, and each has the result that it is to have")
def day():
    with tempfile.NamedTemporaryFile("w") as log:
        log.writelines(LINE.format(number=number) for number in range(JOBS))
        log.flush()
        done = subprocess.run([os.path.join(TREE, "bench", "mixed-day"), "--json", "--prefix",
                               os.path.dirname(BERTH), "--lab", LAB_NAME, "--log", log.name, "--jobs", str(JOBS), "--days", "berth",
                               "--stretch", "1"],
                              capture_output=True, timeout=900)
    check_equal(done.returncode, 0, f"status; it said {done.stderr.decode()} and {done.stdout.decode()[-1000:]}")
    said = json.loads(done.stdout)
    ours = said["days"]["berth"]
    check_equal([ours["jobs"], ours["wrong"]], [JOBS, []], "jobs, and what is wrong with them")
    check(ours["most_vcpus"] > 3 * 8, f"some were in slack: {ours}")
    for name, seconds in said["predicted"].items():
        check(seconds["finished_s"] >= 30, f"the simulator ran the day {name}: {seconds}")
    for name in ("boot_usec", "migrate_fixed_usec", "checkpoint_fixed_usec", "restore_fixed_usec", "release_usec",
                 "host_mib"):
        check(said["costs"][name] > 0, f"{name} was measured: {said['costs']}")
    say(f"all done after {ours['finished_s']} s; the simulator: {said['predicted']['berth']['finished_s']} s")


@test("afterwards berthd has the configuration that it had")
def afterwards():
    with open(os.path.join(LAB_DATA, "etc", "berthd.conf")) as file:
        check("settle_usec" not in file.read(), "the day's constants are gone")
    check_equal(wait_one(submit("--", "true"))["state"], "COMPLETED", "a job")


main()
