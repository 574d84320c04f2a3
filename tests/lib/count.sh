# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Counting test cases, and showing those that failed: of automake's results (cmocka cases where a
# program has them), and of "ok"/"not ok" lines.

# count_automake DIR: prints "PASSED FAILED SKIPPED" of all *.trs below DIR.
count_automake() {
    local trs passed=0 failed=0 skipped=0 p f s
    while read -r trs; do
        read -r p f s < <(count_program "$trs")
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done < <(find "$1" -name '*.trs' | sort)
    printf '%d %d %d\n' "$passed" "$failed" "$skipped"
}

# One program. A program that ended badly counts as a failure even if its cases say otherwise.
count_program() {
    local result
    result=$(sed -n 's/^:global-test-result: //p' "$1")
    awk -v result="$result" '
        /^\[       OK \] / { passed++ }
        /^\[  FAILED  \] [0-9]+ test\(s\)/ { failed += $4 }
        /^\[  SKIPPED \] [0-9]+ test\(s\)/ { skipped += $4 }
        END {
            if (result !~ /^(PASS|SKIP)$/ && !failed) failed = 1
            if (passed + failed + skipped == 0) { if (result == "SKIP") skipped = 1; else passed = 1 }
            printf "%d %d %d\n", passed, failed, skipped
        }' "${1%.trs}.log"
}

# skipped_programs BUILD: those that ran none of their cases, as paths in BUILD.
skipped_programs() {
    local trs
    while read -r trs; do
        trs=${trs#"$1/"}
        printf '%s\n' "${trs%.trs}"
    done < <(find "$1/tests" -name '*.trs' -exec grep -l '^:global-test-result: SKIP$' {} + | sort)
}

# why_skipped LOG: what a program said last. After it automake writes a line of its own.
why_skipped() {
    sed '/^SKIP .* (exit status: 77)$/d' "$1" | tail -n 1
}

lacks_traces() {
    grep -q ': BERTH_TRACES names the directory of workload traces$' "$1"
}

# failed_programs DIR: results of those below DIR that failed.
failed_programs() {
    find "$1" -name '*.trs' -exec grep -LE '^:global-test-result: (PASS|SKIP)$' {} + | sort
}

# show_failed_programs DIR: of each program below DIR that failed, the cases that failed and why, or
# the end of its log if it names none. One that was killed at its deadline has where it stood there.
show_failed_programs() {
    local trs log why
    while read -r trs; do
        log=${trs%.trs}.log
        printf -- '--- %s failed:\n' "${trs%.trs}"
        if grep -q '^run-test: .* is killed' "$log"; then
            grep '^\[ RUN  ' "$log" | tail -n 1 || true
            sed -n '/^run-test: .* is killed/,$p' "$log" | head -n 400 || true
            continue
        fi
        why=$(grep -B 8 '^\[  FAILED  \] [^0-9]' "$log" | sed '/^\[       OK \]/d' | head -n 80) || true
        printf '%s\n' "${why:-$(tail -n 40 "$log")}"
    done < <(failed_programs "$1")
}

# show_failed_lines FILE: the "not ok" lines, each with the remarks before it and those after it.
show_failed_lines() {
    awk '/^#/ { said[n++] = $0; if (after-- > 0) print; next }
        /^not ok / { for (i = n > 120 ? n - 120 : 0; i < n; i++) print said[i]; print; after = 80 }
        !/^not ok / { after = 0 }
        { n = 0 }' "$1" | head -n 600 || true
}

# why_programs_failed DIR, why_lines_failed FILE: the same in a few lines each.
why_programs_failed() {
    local trs log
    while read -r trs; do
        log=${trs%.trs}.log
        printf '%s:\n' "${trs%.trs}"
        { grep -E -B 3 '^\[  (FAILED  |ERROR   )\] [^0-9]' "$log" || tail -n 4 "$log"; } | head -n 12 || true
    done < <(failed_programs "$1")
}

why_lines_failed() {
    awk '/^#/ { said[n++] = $0; next }
        /^not ok / { for (i = n > 12 ? n - 12 : 0; i < n; i++) print said[i]; print }
        { n = 0 }' "$1"
}

# show_running_programs DIR: how many programs below DIR have ended, which run, and once of each that failed, why.
show_running_programs() {
    local log ended=0
    local -a running=()
    while read -r log; do
        if [[ -e ${log%.log}.trs ]]; then
            ended=$((ended + 1))
        else
            log=${log##*/}
            running+=("${log%.log}")
        fi
    done < <(find "$1" -name '*.log' | sort)
    printf '%d ended%s\n' "$ended" "${running:+; ${running[*]} run}"
    why_programs_failed "$1" | show_new "$1/failed.shown"
}

# show_new FILE: those lines of standard input that are not in FILE yet, where they are then. Whoever ends a run that takes too
# long has seen what failed in it.
show_new() {
    local new
    touch "$1"
    new=$(grep -vxF -f "$1") || return 0
    tee -a "$1" <<<"$new" | sed 's/^/    /'
}

# show_slowest_programs DIR: those below DIR that took most of the time, between the first word of a log and its last.
# Awk reads on after the last that it shows: who writes to a pipe that nobody reads is killed, and with pipefail so is the run.
show_slowest_programs() {
    find "$1" -name '*.log' -exec stat -c '%W %Y %n' {} + |
        awk '$1 > 0 { name = $3; sub(".*/", "", name); sub("[.]log$", "", name); print $2 - $1, name }' |
        sort -rn | awk 'NR <= 12 { printf "%s%s %d s", (NR == 1 ? "  slowest: " : ", "), $2, $1 } END { print "" }'
}

# show_running_tests FILE: how far the system tests are that write to FILE, which run, and once of each that failed, why.
show_running_tests() {
    [[ -e $1 ]] || return 0
    awk '/^# .* begins$/ { runs[$2] = 1 }
        /^# --- / { delete runs[$3] }
        /^ok / { p++ }
        /^not ok / { f++ }
        END { printf "%d passed, %d failed;", p, f; for (name in runs) printf " %s", name; print " run" }' "$1"
    why_lines_failed "$1" | show_new "$1.shown"
}

# count_lines FILE: prints "PASSED FAILED SKIPPED" of its "ok" and "not ok" lines.
count_lines() {
    awk '/^ok .*# SKIP/ { s++; next } /^ok / { p++ } /^not ok / { f++ }
        END { printf "%d %d %d\n", p, f, s }' "$1"
}
