#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# berth-sim's exit status as its manual has it, with a message of one line: 2 where the command line, a trace or a
# log is wrong, 1 where it fails itself; and traces that come through a pipe.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

cat >"$work/a.swf" <<'TRACE'
; MaxNodes: 2
; MaxProcs: 2
1 0 -1 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1
2 5 -1 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1
TRACE
xz -k "$work/a.swf"

expect() { # STATUS WHAT-IS-SAID ARGUMENTS
    local wanted=$1 said=$2 status=0
    shift 2
    "$top_builddir/berth-sim" --quiet --policy easy "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    if [[ $status != "$wanted" || $(cat "$work/err") != *"$said"* || $(wc -l <"$work/err") -gt 1 ]]; then
        echo "berth-sim $*: status $status: $(cat "$work/err")" >&2
        failed=1
    fi
}

expect 0 "" "$work/a.swf"
expect 2 "cannot read $work/none: No such file or directory" "$work/none"
expect 2 "cannot read $work: Is a directory" "$work"
expect 2 "--usage: cannot read $work/none" --usage "$work/none" "$work/a.swf"
expect 2 "--cost boot_usec=x" --cost boot_usec=x "$work/a.swf"
expect 2 "--cost boot_usec=-1" --cost boot_usec=-1 "$work/a.swf"
expect 2 "--cost cache_permille=1001" --cost cache_permille=1001 "$work/a.swf"
expect 2 "standard input: the file is empty" -
expect 1 "/proc/none" --plot /proc/none "$work/a.swf"
head -c 60 "$work/a.swf.xz" >"$work/cut.xz"
expect 2 "cannot read $work/cut.xz: it is truncated; fetch it again" "$work/cut.xz"
gzip -c "$work/a.swf" | head -c 60 >"$work/cut.gz"
expect 2 "cannot read $work/cut.gz: it is truncated; fetch it again" "$work/cut.gz"
head -n 2 "$work/a.swf" >"$work/head.swf"
expect 2 "$work/head.swf: no job that ran" "$work/head.swf"
sed 's/MaxProcs: 2/MaxProcs: four/' "$work/a.swf" >"$work/four.swf"
expect 2 "$work/four.swf:2: MaxProcs: \"four\" is no number from 1 to 10000000; mend it, or say --nodes" "$work/four.swf"
expect 0 "" --nodes 2 --vcpus 1 "$work/four.swf"
sed 's/MaxNodes: 2/MaxNodes: 0/' "$work/a.swf" >"$work/zero.swf"
expect 2 "$work/zero.swf:1: MaxNodes: \"0\" is no number from 1" "$work/zero.swf"
sed 's/MaxNodes: 2/MaxNodes: -1/' "$work/a.swf" >"$work/unknown.swf"
expect 0 "" "$work/unknown.swf"

"$top_builddir/berth-sim" --quiet --policy easy "$work/a.swf" >"$work/wanted"
same() { # WHAT
    cmp -s "$work/wanted" "$work/out" || { echo "$1: $(cat "$work/out" "$work/err")" >&2; failed=1; }
}
xz -dc "$work/a.swf.xz" | "$top_builddir/berth-sim" --quiet --policy easy - >"$work/out" 2>"$work/err" || true
same "through a pipe, as -"
"$top_builddir/berth-sim" --quiet --policy easy /dev/stdin <"$work/a.swf.xz" >"$work/out" 2>"$work/err" || true
same "/dev/stdin"
"$top_builddir/berth-sim" --quiet --policy easy <(cat "$work/a.swf.xz") >"$work/out" 2>"$work/err" || true
same "process substitution"

# A log is taken so too; it has no other policy.
"$top_builddir/berth-sim" --quiet --policy easy --journal "$work" "$work/a.swf" >/dev/null
"$top_builddir/berth-sim" --replay - <"$work/easy.log" >"$work/out" 2>"$work/err" || failed=1
grep -q "^[1-9][0-9]* events, [1-9][0-9]* actions: all decisions are the same\$" "$work/out" ||
    { cat "$work/out" "$work/err" >&2; failed=1; }
# Two events, after which something else was done than what the core asks for.
sed '/^action.*kind=1/d' "$work/easy.log" >"$work/other.log"
status=0
"$top_builddir/berth-sim" --replay "$work/other.log" >"$work/out" 2>"$work/err" || status=$?
[[ $status == 1 ]] && grep -q "actions: decisions differ after 2 of the events\$" "$work/out" ||
    { cat "$work/out" "$work/err" >&2; failed=1; }
status=0
"$top_builddir/berth-sim" --replay "$work/none" 2>"$work/err" || status=$?
[[ $status == 2 ]] && grep -q "No such file" "$work/err" || { echo "no log: status $status" >&2; failed=1; }
exit $failed
