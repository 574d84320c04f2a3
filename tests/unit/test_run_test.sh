#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build-aux/run-test: a test is what it becomes; one that hangs is killed at the deadline, with what
# it has started, and it is said where it stood.
set -euo pipefail
. "$top_srcdir/lab/lib/common.sh"

run_test=$top_srcdir/build-aux/run-test
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

status=0
"$run_test" sh -c 'echo "$1"; exit 3' sh said >"$work/out" 2>"$work/err" || status=$?
((status == 3)) || die "a program's status 3 became $status"
[[ $(<"$work/out") == said && ! -s $work/err ]] || die "a program said: $(cat "$work/out" "$work/err")"

status=0
# shellcheck disable=SC2016 # for the program
BERTH_TEST_DEADLINE_SEC=1 "$run_test" sh -c 'sleep 1000 & echo $! >"$1"; wait' sh "$work/child" 2>"$work/err" || status=$?
((status == 128 + 9)) || die "a program that hung ended with $status"
grep -q '^run-test: sh -c .* has not ended after 1 s and is killed' "$work/err" || die "it said: $(<"$work/err")"
grep -q ' sleep 1000$' "$work/err" || die "its processes are not shown: $(<"$work/err")"
await 60 "what it had started to end" process_ended "$(<"$work/child")"
