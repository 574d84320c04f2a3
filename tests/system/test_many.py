# SPDX-License-Identifier: Apache-2.0
"""Many jobs over both nodes: all end as they should, each output right, none lost, none twice."""

import re
from concurrent.futures import ThreadPoolExecutor

from harness import *

JOBS = by_size(20, 30, 200)


@test(f"{JOBS} jobs on two nodes: none lost, none run twice, each output right")
def many_jobs():
    def submit_nth(n):
        return submit("--memory", "96M", "--", "sh", "-c",
                      f'echo "job {n} as $BERTH_JOB_ID"; echo "err {n}" >&2; exit {n % 3}')

    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(submit_nth, range(JOBS)))
    check_equal(len(set(jobs)), JOBS, "distinct job numbers")
    ended = wait(*jobs, timeout=1100)
    used = set()
    for n, job in enumerate(jobs):
        check_equal(ended[job]["state"], "FAILED" if n % 3 else "COMPLETED", f"state of job {job}")
        check_equal(number(task(ended[job]), "exit", "status"), n % 3, f"status of job {job}")
        check_equal(len(re.findall(" guest-running on ", berth("events", str(job)))), 1, f"how often the command of job {job} began")
        used.add(task(ended[job])["node"])
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(output, jobs))
    for n, job in enumerate(jobs):
        check_equal(outputs[n], (f"job {n} as {job}\n".encode(), f"err {n}\n".encode()), f"output of job {job}")
    check_equal(len(used), len(nodes()), "nodes that were used")
    # A guest may be lost before its job's command begins, on a machine as busy as this one. Hardly ever.
    lost = [job for job in jobs if starts(task(ended[job])) != 1]
    for job in lost:
        say_history(task(ended[job]))
    check(len(lost) <= max(1, JOBS // 50), f"started again before they began: jobs {lost}")


if __name__ == "__main__":
    main()
