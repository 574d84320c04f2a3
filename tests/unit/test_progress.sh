#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lab/lib/progress.sh: a step fails if any of its commands does, and cannot be called where that
# would go unnoticed.
set -euo pipefail
. "$top_srcdir/lab/lib/common.sh"
. "$top_srcdir/lab/lib/progress.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
progress_begin 9 "$work/log"

fails_first() {
    false
    touch "$work/went-on"
}

fails_in_a_subshell_first() {
    (cd /nowhere && true)
    touch "$work/went-on"
}

fails_in_a_pipe_first() {
    false | cat
    touch "$work/went-on"
}

succeeds() {
    echo done
}

# expect WANTED STEP: its status is 0 or not.
expect() {
    progress_step "$2" "$2" >"$work/shown"
    if [[ $1 == success ]]; then
        ((PROGRESS_STATUS == 0)) || die "$2 counts as failed"
        grep -q ' done ' "$work/shown" || die "$2 is not shown as done: $(<"$work/shown")"
        return
    fi
    ((PROGRESS_STATUS != 0)) || die "$2 counts as done"
    [[ ! -e $work/went-on ]] || die "$2 went on after its failure"
    grep -q ' FAILED ' "$work/shown" || die "$2 is not shown as failed: $(<"$work/shown")"
}

expect failure fails_first
expect failure fails_in_a_subshell_first
expect failure fails_in_a_pipe_first
expect success succeeds

# Each in a shell of its own, as that must end.
for use in 'if progress_step step true; then :; fi' 'progress_step step true || :' \
    'progress_step step true && :' '! progress_step step true' \
    'around() { progress_step step true; }; around || :'; do
    ! bash -c "set -euo pipefail; . '$top_srcdir/lab/lib/common.sh'; . '$top_srcdir/lab/lib/progress.sh'
        progress_begin 1 '$work/refused'; $use; exit 0" >"$work/shown" 2>&1 ||
        die "not refused: $use"
    grep -q 'as a condition' "$work/shown" || die "ends otherwise: $use: $(<"$work/shown")"
done

# A step that is stopped ends, with what it started.
export LIB=$top_srcdir/lab/lib work
mkfifo "$work/began"
# shellcheck disable=SC2016 # expanded by that shell
bash -c 'set -euo pipefail; . "$LIB/common.sh"; . "$LIB/progress.sh"; progress_begin 1 "$work/stopped"
    trap "progress_stop; exit 130" TERM
    progress_step step bash -c "sleep 60 & echo \$! >$work/began; wait"' x >"$work/shown" 2>&1 &
runner=$!
sleeper=$(timeout 30 cat "$work/began") || die "the step did not begin: $(<"$work/shown")"
kill "$runner"
status=0
wait "$runner" || status=$?
((status == 130)) || die "a stopped step ends with $status: $(<"$work/shown")"
await_process_end "$sleeper" 10
