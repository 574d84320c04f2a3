# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Messages, steps with their duration, and waits with a deadline. Used by berth-lab, quickstart,
# run-tests, the system tests and the benchmarks; knows nothing of a lab.

# One locale and one umask, whatever the caller has: messages are searched, numbers are read, and
# other users (QEMU's among them) open what is made here. What is secret says so (umask 077).
export LC_ALL=C.UTF-8
umask 022

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

warn() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

require_root() {
    ((EUID == 0)) || die "$1 needs root: it makes namespaces, control groups and guests; run it with sudo"
}

# Microseconds since the epoch. (In some locales EPOCHREALTIME has a comma.)
now_usec() {
    printf '%s\n' "${EPOCHREALTIME/[.,]/}"
}

# format_duration USEC: "0.4 s", "72 s", "3 min 12 s"
format_duration() {
    local tenths=$((($1 + 50000) / 100000))
    if ((tenths < 1000)); then
        printf '%d.%d s\n' $((tenths / 10)) $((tenths % 10))
    elif ((tenths < 6000)); then
        printf '%d s\n' $((tenths / 10))
    else
        printf '%d min %d s\n' $((tenths / 600)) $((tenths % 600 / 10))
    fi
}

# step TEXT COMMAND [ARGS...]: runs COMMAND in this shell, says how long it took. A command that
# fails ends the program (set -e); step_failed then says in which step.
step() {
    local text=$1 start
    shift
    start=$(now_usec)
    STEP_NOW=$text
    [[ ! -t 1 ]] || printf '  %-46s ...' "$text"
    "$@"
    STEP_NOW=
    [[ ! -t 1 ]] || printf '\r'
    printf '  %-46s %10s\n' "$text" "$(format_duration $(($(now_usec) - start)))"
}

# await SECONDS WHAT COMMAND [ARGS...]: until COMMAND succeeds; fails with a message at the deadline.
# For what offers no event to wait for (another program's socket that is about to appear).
await() {
    local deadline=$(($(now_usec) + $1 * 1000000)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        if (($(now_usec) > deadline)); then
            warn "gave up waiting for $what"
            return 1
        fi
        sleep 0.05
    done
}

# await_process_end PID SECONDS: until no such process is left (a zombie has ended).
await_process_end() {
    local pid=$1
    await "$2" "process $pid to end" process_ended "$pid"
}

process_ended() {
    local stat
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
    stat=${stat##*) }
    [[ ${stat%% *} == [ZX] ]]
}

# process_start_time PID: field 22 of its stat, which with the pid names a process for good.
process_start_time() {
    local stat fields
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    read -r -a fields <<<"${stat##*) }"
    printf '%s\n' "${fields[19]}"
}

# lock_directory VARIABLE DIR WHO: an exclusive lock on DIR itself, so that nothing is left of it, for as
# long as the descriptor that VARIABLE gets is open, here or in a child. WHO has it is said, and waited
# for until it ends.
lock_directory() {
    local descriptor
    exec {descriptor}<"$2" || die "cannot open $2"
    printf -v "$1" '%d' "$descriptor"
    flock --nonblock "$descriptor" || {
        warn "waits for $3"
        flock "$descriptor"
    }
    [[ $2 -ef /proc/self/fd/$descriptor ]] || die "$2 was removed or replaced meanwhile; run it again"
}

# json_string TEXT: quoted and escaped.
json_string() {
    local text=$1
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\n'/\\n}
    text=${text//$'\t'/\\t}
    printf '"%s"' "$text"
}
