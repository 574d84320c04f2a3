# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Services of a lab, from outside: where they are, their processes, stopping and starting them.
# A place is "host" (Ceph, berthd and the nodes themselves) or a node (virtlogd, libvirtd,
# berth-node); the supervisor of that place runs them. A service is written PLACE/NAME.

service_dir() {
    printf '%s\n' "$LAB_RUN/services/$1"
}

# place_require PLACE: the lab has such a place, whether it runs or not.
place_require() {
    local -a LAB_NODES=()
    lab_settings_read || die "lab $LAB was not started; see: berth-lab up --help"
    [[ " host ${LAB_NODES[*]} " == *" $1 "* ]] ||
        die "lab $LAB has no place '$1'; it has: host ${LAB_NODES[*]}"
}

# service_define PLACE/NAME COMMAND [ARGS...]: takes effect when the place's supervisor looks again.
service_define() {
    local file
    file=$LAB_RUN/services/$1.run
    shift
    mkdir -p "${file%/*}"
    {
        printf '#!/bin/bash\n'
        printf 'exec'
        printf ' %q' "$@"
        printf '\n'
    } >"$file.new"
    chmod 755 "$file.new"
    mv "$file.new" "$file"
}

# Makes the supervisor of PLACE look at its services again.
service_poke() {
    timeout 5 bash -c 'printf "look\n" >"$1"' poke "$(service_dir "$1")/control" ||
        die "the supervisor of $1 in lab $LAB does not answer; see $LAB_DATA/log/$1/supervisor.log"
}

# place_init PLACE: pid, on the host, of the first process of PLACE; fails if it is not running.
place_init() {
    local pid start
    read -r pid start 2>/dev/null <"$LAB_RUN/$1.init" || return 1
    [[ $(process_start_time "$pid") == "$start" ]] || return 1
    printf '%s\n' "$pid"
}

# place_exec PLACE COMMAND [ARGS...]: replaces this shell by COMMAND inside PLACE.
place_exec() {
    local place=$1 init
    shift
    init=$(place_init "$place") || die "$place of lab $LAB is not running"
    cgroup_enter_place "$place"
    [[ -z ${LAB_LOCK_FD:-} ]] || exec {LAB_LOCK_FD}<&-
    exec nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup -- "$@"
}

# The groups of a node were made by its first process; in v2 processes are one level down.
cgroup_enter_place() {
    local path=berth-lab/$LAB/$1 version mount _
    while read -r version mount _; do
        if ((version == 2)) && [[ -d $mount/$path/init ]]; then
            printf '%s\n' "$BASHPID" >"$mount/$path/init/cgroup.procs"
        else
            printf '%s\n' "$BASHPID" >"$mount/$path/cgroup.procs"
        fi
    done < <(cgroup_mounts)
}

place_run() {
    (place_exec "$@")
}

# service_pid PLACE/NAME: its process id on the host; fails if it does not run.
service_pid() {
    local place=${1%/*} inner pid line
    read -r inner 2>/dev/null <"$LAB_RUN/services/$1.pid" || return 1
    for pid in $(cgroup_processes); do
        line=$(grep ^NSpid: "/proc/$pid/status" 2>/dev/null) || continue
        [[ ${line##*[[:space:]]} == "$inner" ]] || continue
        [[ $(process_namespace "$pid") == "$(place_namespace "$place")" ]] || continue
        printf '%s\n' "$pid"
        return
    done
    return 1
}

process_namespace() {
    readlink "/proc/$1/ns/pid" 2>/dev/null
}

place_namespace() {
    local init
    init=$(place_init "$1") || return 1
    process_namespace "$init"
}

service_down_file() {
    printf '%s\n' "$LAB_RUN/services/$1.down"
}

# service_kill PLACE/NAME SIGNAL: the supervisor starts it again if the signal ends it. Fails if there
# is no process to get it.
service_kill() {
    local pid
    pid=$(service_pid "$1") || die "$1 of lab $LAB does not run"
    kill -s "$2" "$pid" 2>/dev/null || die "$1 of lab $LAB could not be sent $2"
}

# Stays down until service_start. TERM first, KILL after a minute (under valgrind, a daemon needs many
# seconds to end); a node has its power cut.
service_stop() {
    local pid
    : >"$(service_down_file "$1")"
    pid=$(service_pid "$1") || return 0
    if [[ $1 != host/node* ]]; then
        kill -TERM "$pid" 2>/dev/null || true
        ! await_process_end "$pid" 60 || return 0
        warn "$1 of lab $LAB does not end by itself and is killed"
    fi
    kill -9 "$pid" 2>/dev/null || true
    await_process_end "$pid" 10
}

service_start() {
    rm -f "$(service_down_file "$1")"
    service_poke "${1%/*}"
}

# berthd => host/berthd, node1 => node1/berth-node, node1/libvirtd as it is.
service_resolve() {
    case $1 in
    */*) printf '%s\n' "$1" ;;
    berthd) printf 'host/berthd\n' ;;
    *) printf '%s/berth-node\n' "$1" ;;
    esac
}

service_require() {
    [[ -e $LAB_RUN/services/$1.run ]] || die "lab $LAB has no service '$1'; see: berth-lab status --name $LAB"
}
