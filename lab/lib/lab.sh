# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Bringing a whole lab up and down, in terms of the other parts.
#
# What makes `down` complete at any moment, also when `up` was killed: every process enters the
# lab's control group before it does anything else, mounts and links are made in namespaces only,
# and files only below the two directories of state.sh.

LAB_SELF=$(readlink -f "$0")

# lab_find_programs [PREFIX]: sets LAB_BERTHD, LAB_BERTH_NODE, LAB_BERTH, LAB_KERNEL and
# LAB_INITRAMFS.
lab_find_programs() {
    local prefix=${1:-} tree
    tree=$(dirname "$LAB_LIB")
    if [[ -z $prefix ]]; then
        # In the source tree lib/ is beside berth-lab; installed, it is PREFIX/lib/berth/lab.
        if [[ -e $tree/berth-lab ]]; then
            prefix=$(dirname "$tree")/build
        else
            prefix=$(readlink -f "$(dirname "$LAB_SELF")/..")
        fi
    fi
    prefix=$(readlink -f "$prefix") || die "there is no directory '$1'"
    if [[ -x $prefix/berthd ]]; then
        LAB_BERTHD=$prefix/berthd LAB_BERTH_NODE=$prefix/berth-node LAB_BERTH=$prefix/berth
        LAB_KERNEL=$prefix/images/guest/vmlinux LAB_INITRAMFS=$prefix/images/initramfs.cpio
    elif [[ -x $prefix/sbin/berthd ]]; then
        LAB_BERTHD=$prefix/sbin/berthd LAB_BERTH_NODE=$prefix/sbin/berth-node LAB_BERTH=$prefix/bin/berth
        lab_find_guest "$prefix"
    else
        die "$prefix has no berthd: build it (./quickstart does), or name another with --prefix"
    fi
    local program
    for program in "$LAB_BERTH_NODE" "$LAB_BERTH"; do
        [[ -x $program ]] || die "$program is missing; build it with: make -C $prefix"
    done
}

# lab_find_guest PREFIX: the guest's files are among a host's variable data, which is below PREFIX by
# default and beside /usr in a distribution.
lab_find_guest() {
    local dir=$1/var/lib/berth-guest
    [[ -e $dir ]] || dir=${1%/usr}/var/lib/berth-guest
    LAB_KERNEL=$dir/vmlinux LAB_INITRAMFS=$dir/initramfs.cpio
}

# lab_up [SETTING...]: names of those settings that were asked for. Another `up` or `down` of this
# lab may run: what there is is looked at under the lock only.
lab_up() {
    lab_lock
    until lab_is_empty; do
        if lab_is_up; then
            lab_require_settings "$@"
            [[ -z $LAB_OWNER ]] || lab_owner_write "$LAB_OWNER"
            printf 'lab %s is up already; see: berth-lab status --name %s\n' "$LAB" "$LAB"
            return
        fi
        [[ ! -e $LAB_RUN/up ]] || warn "lab $LAB was up, but its processes are gone"
        step "clean up what is left of lab $LAB" lab_down_quietly
        # The lock went with the directory.
        lab_unlock
        lab_lock
    done
    trap lab_up_failed EXIT
    [[ -z $LAB_OWNER ]] || lab_owner_write "$LAB_OWNER"
    LAB_SOCKET=$LAB_RUN/berthd.sock
    lab_settings_write LAB_STORAGE LAB_VCPUS LAB_MEMORY LAB_CEPH_SIZE LAB_SOCKET LAB_BERTHD LAB_BERTH_NODE \
        LAB_BERTH LAB_KERNEL LAB_INITRAMFS
    step "certificates" lab_make_certificates
    step "namespaces" lab_start_host
    [[ $LAB_STORAGE != rbd ]] || step "Ceph" ceph_up
    step "guest kernel and initramfs" lab_install_guest
    step "${#LAB_NODES[@]} nodes and berthd" lab_start_services
    step "nodes join" lab_await_nodes
    : >"$LAB_RUN/up"
    trap - EXIT
}

lab_is_up() {
    [[ -e $LAB_RUN/up ]] && place_init host >/dev/null
}

# lab_require_settings NAME...: the lab that is up has the values that these have now.
lab_require_settings() {
    local name has what
    for name in "$@"; do
        # shellcheck disable=SC1091 # written by lab_settings_write
        has=$(. "$LAB_RUN/settings" && printf '%s' "${!name}")
        what=${name#LAB_}
        what=${what,,}
        [[ $has == "${!name}" ]] ||
            die "lab $LAB is up with ${what//_/ } '$has', not '${!name}';" \
                "end it with: berth-lab down --name $LAB, or choose another --name"
    done
}

lab_up_failed() {
    local log
    trap - EXIT
    printf '\nberth-lab: the start of lab %s failed%s\n' "$LAB" "${STEP_NOW:+ in step \"$STEP_NOW\"}" >&2
    for log in "$LAB_DATA"/log/*/*.log; do
        [[ -s $log ]] || continue
        printf -- '--- the end of %s\n' "$log" >&2
        tail -n 5 "$log" >&2
    done
    if [[ $LAB_KEEP == yes ]]; then
        warn "left as it is for inspection; remove it with: berth-lab down --name $LAB"
    else
        lab_down_quietly
        warn "removed again; to keep it for inspection, add --keep"
    fi
    exit 1
}

lab_make_certificates() {
    local node
    mkdir -p "$LAB_DATA/log/host"
    ca_create "$LAB"
    ca_issue "$LAB_HOST_NAME" "$LAB_HOST_ADDRESS"
    for node in "${LAB_NODES[@]}"; do
        ca_issue "$node" "$(node_address "$node")"
    done
}

# In a session of its own, so that no terminal ends it, and without our lock.
lab_start_host() {
    net_write_hosts "${LAB_NODES[@]}" >"$LAB_DATA/hosts"
    mkdir -p "$LAB_DATA/etc-ceph" "$LAB_RUN/services/host"
    setsid "$LAB_LIB/place" "$LAB" host </dev/null >>"$LAB_DATA/log/host/place.log" 2>&1 {LAB_LOCK_FD}<&- &
    disown
    await 10 "the lab's first process" test -p "$LAB_RUN/services/host/control"
    place_init host >/dev/null
}

# Copies, so that a build in progress does not change them and QEMU's user can read them.
lab_install_guest() {
    mkdir -p "$LAB_DATA/guest"
    lab_install_file "$LAB_KERNEL" "$LAB_DATA/guest/vmlinux"
    lab_install_file "$LAB_INITRAMFS" "$LAB_DATA/guest/initramfs.cpio"
}

# Replaced as a whole: guests boot from it meanwhile.
lab_install_file() {
    [[ -r $1 ]] || die "$1 is missing; build it with: make all guest-kernel" \
        "(and for an installed Berth: make install install-guest-kernel)"
    cp "$1" "$2.new"
    chmod 644 "$2.new"
    mv "$2.new" "$2"
}

lab_start_services() {
    local node
    [[ $LAB_STORAGE != dir ]] || mkdir -p "$LAB_DATA/storage"
    config_write_berthd
    service_define host/berthd "${LAB_WRAP[@]}" "$LAB_BERTHD" --config "$LAB_DATA/etc/berthd.conf"
    for node in "${LAB_NODES[@]}"; do
        node_prepare "$node"
        config_write_node "$node"
        service_define "$node/berth-node" "${LAB_WRAP[@]}" "$LAB_BERTH_NODE" --config "$LAB_DATA/etc/$node.conf"
        service_define "host/$node" "$LAB_LIB/place" "$LAB" "$node"
    done
    service_poke host
}

# Undoes every stop. The host comes last: a node whose power is back starts all of its services.
lab_start_stopped() {
    local place
    for place in "${LAB_NODES[@]}" host; do
        rm -f "$(service_dir "$place")"/*.down
        ! place_init "$place" >/dev/null || service_poke "$place"
    done
}

lab_restart_service() {
    service_stop "$1"
    service_start "$1"
}

# lab_await_service PLACE/NAME: what was started serves, if it is one that others call at once.
lab_await_service() {
    [[ $1 == host/berthd ]] || return 0
    lab_settings_read || return 0
    await 60 "berthd to answer; see $LAB_DATA/log/host/berthd.log" lab_berth node ls
}

# Each node has a session: it discovered its capacity and booted its first guest as a probe.
lab_await_nodes() {
    await 60 "berthd to answer; see $LAB_DATA/log/host/berthd.log" lab_berth node ls
    await 120 "the nodes to join; see $LAB_DATA/log/node1/berth-node.log" lab_nodes_are_up
}

lab_berth() {
    BERTH_SOCKET=$LAB_SOCKET "$LAB_BERTH" "$@"
}

lab_nodes_are_up() {
    local table node
    table=$(lab_berth node ls)
    for node in "${LAB_NODES[@]}"; do
        # One that gets no new jobs has joined, too.
        grep -Eiq "^$node +(up|cordoned|draining|drained|closed)\b" <<<"$table" || return 1
    done
}

lab_down() {
    step "end all processes of lab $LAB" cgroup_kill
    step "remove its files and control groups" lab_remove_files
}

lab_down_quietly() {
    cgroup_kill
    lab_remove_files
}

# The last processes' namespaces go with them, and their mounts with those: what we see here of the
# directories is plain files.
lab_remove_files() {
    cgroup_remove
    rm -rf --one-file-system -- "$LAB_DATA" "$LAB_RUN"
    rmdir "$LAB_DATA_ROOT" "$LAB_RUN_ROOT" 2>/dev/null || true
}

lab_status() {
    local place file all=0
    lab_settings_read || true
    if [[ ! -e $LAB_RUN/up ]]; then
        warn "the start of lab $LAB was not completed; remove it with: berth-lab down --name $LAB"
        all=1
    fi
    printf '%-22s %-8s %8s  %s\n' SERVICE STATE PID SINCE
    for place in host ${LAB_NODES[@]+"${LAB_NODES[@]}"}; do
        for file in "$(service_dir "$place")"/*.run; do
            [[ ! -e $file ]] || lab_status_line "$place/$(basename "$file" .run)" || all=1
        done
    done
    [[ ! -e $LAB_DATA/ceph ]] || lab_status_ceph || all=1
    return "$all"
}

lab_status_ceph() {
    local daemon all=0
    for daemon in "${LAB_CEPH_DAEMONS[@]}"; do
        lab_status_process "Ceph's $daemon" "$(ceph_pid "$daemon")" || all=1
    done
    return "$all"
}

# lab_status_process NAME PID: PID is empty if it does not run.
lab_status_process() {
    if [[ -n $2 ]]; then
        printf '%-22s %-8s %8d  %s\n' "$1" running "$2" "$(ps -o lstart= -p "$2")"
    else
        printf '%-22s %-8s\n' "$1" dead
        return 1
    fi
}

lab_status_line() {
    local pid
    pid=$(service_pid "$1") || pid=
    if [[ -z $pid && -e $(service_down_file "$1") ]]; then
        printf '%-22s %-8s\n' "$1" stopped
        return 1
    fi
    lab_status_process "$1" "$pid"
}
