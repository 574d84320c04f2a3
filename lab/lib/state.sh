# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Where a lab keeps what: its directories, its lock, its settings. Two directories, because /run is
# a small tmpfs on most hosts and Ceph's object store is neither small nor fit for one:
#
#   /run/berth-lab/NAME      sockets, process records, service definitions
#   /var/lib/berth-lab/NAME  Ceph, keys, nodes' files, daemons' state, logs
#
# Nothing else of a lab is visible on the host but its control groups (cgroup.sh): links, mounts and
# processes live in namespaces that end with the lab's first process.

LAB_RUN_ROOT=${BERTH_LAB_RUN:-/run/berth-lab}
LAB_DATA_ROOT=${BERTH_LAB_DATA:-/var/lib/berth-lab}

# lab_select NAME: sets LAB, LAB_RUN and LAB_DATA.
lab_select() {
    [[ $1 =~ ^[a-z0-9][a-z0-9-]{0,23}$ ]] ||
        die "a lab's name is 1 to 24 of a-z, 0-9 and -, not '$1'"
    LAB=$1
    LAB_RUN=$LAB_RUN_ROOT/$LAB
    LAB_DATA=$LAB_DATA_ROOT/$LAB
}

# Names of all labs of which anything is left, one a line.
lab_list() {
    local dir
    for dir in "$LAB_RUN_ROOT"/*/ "$LAB_DATA_ROOT"/*/; do
        [[ ! -d $dir ]] || basename "$dir"
    done | sort -u
}

lab_exists() {
    [[ -d $LAB_RUN || -d $LAB_DATA ]] || cgroup_exists
}

# Nothing but the directory that lab_lock made.
lab_is_empty() {
    [[ ! -e $LAB_DATA && -z $(find "$LAB_RUN" -mindepth 1 -print -quit) ]] && ! cgroup_exists
}

# One up, down or restart of a lab at a time. The lock is on its run directory itself, so that
# nothing is left of it; `down` of another may have removed that directory while we waited.
lab_lock() {
    while :; do
        mkdir -p "$LAB_RUN"
        exec {LAB_LOCK_FD}<"$LAB_RUN" || continue
        flock --nonblock "$LAB_LOCK_FD" || {
            warn "waits for another berth-lab that works on lab $LAB"
            flock "$LAB_LOCK_FD"
        }
        [[ ! $LAB_RUN -ef /proc/self/fd/$LAB_LOCK_FD ]] || return 0
        exec {LAB_LOCK_FD}<&-
    done
}

lab_unlock() {
    exec {LAB_LOCK_FD}<&-
    unset LAB_LOCK_FD
}

# Locks a lab that is up; another may have ended it while we waited.
lab_lock_up() {
    lab_require
    lab_lock
    [[ -e $LAB_RUN/up ]] || rmdir --ignore-fail-on-non-empty "$LAB_RUN"
    lab_require
}

# Settings of a lab: shell assignments, written when its start begins. "up" appears when it is done.
lab_settings_write() {
    local name
    for name in LAB_NODE_NAMES "$@"; do
        printf '%s=%q\n' "$name" "${!name}"
    done >"$LAB_RUN/settings.new"
    mv "$LAB_RUN/settings.new" "$LAB_RUN/settings"
}

# Fails if there are none; sets LAB_NODES and what else was written.
lab_settings_read() {
    [[ -r $LAB_RUN/settings ]] || return 1
    # shellcheck disable=SC1091 # written by lab_settings_write
    . "$LAB_RUN/settings"
    read -r -a LAB_NODES <<<"$LAB_NODE_NAMES"
}

# lab_owner_write PID: the process that the lab is for.
lab_owner_write() {
    local start
    start=$(process_start_time "$1") || die "--owner: there is no process $1"
    printf '%s %s\n' "$1" "$start" >"$LAB_RUN/owner"
}

# Process id of who the lab is for; fails if that has ended, or if it is for nobody.
lab_owner() {
    local pid start
    read -r pid start 2>/dev/null <"$LAB_RUN/owner" || return 1
    [[ $(process_start_time "$pid") == "$start" ]] && ! process_ended "$pid" || return 1
    printf '%s\n' "$pid"
}

lab_require() {
    [[ -e $LAB_RUN/up ]] ||
        die "there is no lab '$LAB' that is up; start it with: berth-lab up --name $LAB"
    lab_settings_read
}
