# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Numbered steps of a long run (quickstart, run-tests): each has its output in a log, shows that it
# is alive, and ends with its duration. Needs common.sh.

PROGRESS_NUMBER=0
PROGRESS_TOTAL=0
PROGRESS_DIR=
# Of the last step.
PROGRESS_STATUS=0
# Of the step that runs, else empty.
PROGRESS_PID=
# A command that says in a line how far the step is; its caller may know one.
PROGRESS_DETAIL=(true)

# progress_begin TOTAL DIR: DIR gets a log for each step. Another run with the same logs is waited for.
progress_begin() {
    PROGRESS_TOTAL=$1
    PROGRESS_DIR=$2
    mkdir -p "$PROGRESS_DIR"
    lock_directory PROGRESS_LOCK_FD "$PROGRESS_DIR" "another ${0##*/} that writes its logs to $PROGRESS_DIR"
}

# progress_log: of the step that runs.
progress_log() {
    printf '%s/%02d.log\n' "$PROGRESS_DIR" "$PROGRESS_NUMBER"
}

# progress_step TEXT COMMAND [ARGS...]: sets PROGRESS_STATUS to COMMAND's status, after showing the
# end of its log if it failed. COMMAND runs in a subshell, and ends at its first command that fails.
#
# Not as a condition (if, &&, ||, !), nor in a function that is called as one: bash ignores set -e in
# all that runs there, and the step would be as good as its last command.
progress_step() {
    local text=$1 start
    PROGRESS_STATUS=0
    progress_require_errexit "$text"
    shift
    PROGRESS_NUMBER=$((PROGRESS_NUMBER + 1))
    start=$(now_usec)
    : >"$(progress_log)"
    (
        set -e
        # A step may start daemons, which outlive this run.
        [[ -z ${PROGRESS_LOCK_FD:-} ]] || exec {PROGRESS_LOCK_FD}<&-
        "$@"
    ) </dev/null >>"$(progress_log)" 2>&1 &
    PROGRESS_PID=$!
    progress_show "$text" "$start" "$PROGRESS_PID"
    wait "$PROGRESS_PID" || PROGRESS_STATUS=$?
    PROGRESS_PID=
    if ((PROGRESS_STATUS == 0)); then
        progress_line "$text" "$start" 'done'
        printf '\n'
    else
        progress_line "$text" "$start" FAILED
        printf '\n'
        progress_failed "$text"
    fi
}

# Ends the step that runs, with all that it started: from the terminal no interrupt reaches it.
progress_stop() {
    [[ -n $PROGRESS_PID ]] || return 0
    # shellcheck disable=SC2046 # one word each
    kill $(progress_processes "$PROGRESS_PID") 2>/dev/null || true
    await_process_end "$PROGRESS_PID" 20 || true
    PROGRESS_PID=
}

# progress_processes PID: it and all below it.
progress_processes() {
    local child
    printf '%s\n' "$1"
    for child in $(ps -o pid= --ppid "$1"); do
        progress_processes "$child"
    done
}

progress_require_errexit() {
    local status=0
    (
        set -e
        false
        exit 7
    ) &
    wait "$!" || status=$?
    ((status != 7)) || die "step \"$1\" is called as a condition, so that its failures would go unnoticed"
}

progress_line() {
    local head
    head=$(printf '[%d/%d] %s' "$PROGRESS_NUMBER" "$PROGRESS_TOTAL" "$1")
    [[ ! -t 1 ]] || printf '\r\033[K'
    printf '%-56s %-7s %12s' "$head" "$3" "$(format_duration $(($(now_usec) - $2)))"
}

# On a terminal the line and the newest word of the log, renewed each second; else a line a minute,
# with the detail.
progress_show() {
    local text=$1 start=$2 pid=$3 next=60 seconds
    while ! process_ended "$pid"; do
        if [[ -t 1 ]]; then
            progress_line "$text" "$start" ...
            printf '  %.40s' "$(tail -n 1 "$(progress_log)" | tr -cd '[:print:]')"
        else
            seconds=$((($(now_usec) - start) / 1000000))
            if ((seconds >= next)); then
                progress_line "$text" "$start" runs
                printf '  %s\n' "$("${PROGRESS_DETAIL[@]}")"
                next=$((next + 60))
            fi
        fi
        sleep 0.2
    done
}

progress_failed() {
    printf '\n--- "%s" failed; the end of %s:\n' "$1" "$(progress_log)"
    tail -n 30 "$(progress_log)"
    printf -- '---\n'
}
