#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/lib/count.sh: what it counts and shows of many programs' results, in a shell that ends at the first failure.
set -euo pipefail
. "$top_srcdir/lab/lib/common.sh"
. "$top_srcdir/tests/lib/count.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# result NAME RESULT: as automake leaves it, with the log from standard input.
result() {
    printf ':test-result: %s\n:global-test-result: %s\n' "$2" "$2" >"$work/$1.trs"
    cat >"$work/$1.log"
}

# expect TEXT WANTED GOT
expect() {
    [[ $2 == "$3" ]] || die "$1: '$3', not '$2'"
}

result passes PASS <<'END'
[       OK ] one
[       OK ] two
END
result fails FAIL <<'END'
[       OK ] one
[ RUN      ] two
two.c:7: 1 != 2
[  FAILED  ] two
[  FAILED  ] 1 test(s), listed below:
END
result crashes FAIL <<<'[       OK ] one'
result skipped SKIP <<<'no trace: BERTH_TRACES names the directory of workload traces'
result script PASS <<<'no cases'
expect "counted" "5 2 1" "$(count_automake "$work")"
expect "failed" "$work/crashes.trs"$'\n'"$work/fails.trs" "$(failed_programs "$work")"
shown=$(show_failed_programs "$work")
[[ $shown == *'two.c:7: 1 != 2'* ]] || die "why it failed is not shown: $shown"
lacks_traces "$work/skipped.log" || die "what skipped for a lack of traces is not known"

# More than a pipe holds.
for i in {1..9000}; do
    : >"$work/program_with_a_name_of_some_length_$i.log"
done
shown=$(show_slowest_programs "$work")
[[ $shown == "  slowest: "*" s, "*" s" ]] || die "slowest: $shown"
expect "slowest shown" 12 "$(tr ',' '\n' <<<"$shown" | wc -l)"
expect "ended and running" "5 ended; program_with_a_name_of_some_length_1" \
    "$(show_running_programs "$work" | sed -n 1p | cut -d ' ' -f 1-3)"
expect "failures are shown once" "" "$(show_running_programs "$work" | sed 1d)"
result fails_late FAIL <<<'late.c:9: 3 != 4'
[[ $(show_running_programs "$work" | sed 1d) == "    $work/fails_late:"$'\n'*'late.c:9: 3 != 4'* ]] || die "a late failure is not shown"

cat >"$work/lines" <<'END'
# --- exec begins
ok one
# why two failed
not ok two
ok three # SKIP none here
END
expect "lines" "1 1 1" "$(count_lines "$work/lines")"
expect "failed lines" $'# why two failed\nnot ok two' "$(why_lines_failed "$work/lines" | grep -v -- ---)"
