# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A lab's control groups: berth-lab/NAME/host for what runs beside the nodes, berth-lab/NAME/NODE
# for each node, in every hierarchy that is mounted (v1, v2 or both). They are also the list of the
# lab's processes: the kernel keeps it, and no process gets out of it by dying or by forking.

# Lines "VERSION MOUNTPOINT CONTROLLERS" (v2: controllers are "-").
cgroup_mounts() {
    local fields fstype options i
    while read -r -a fields; do
        for ((i = 6; i < ${#fields[@]}; i++)); do
            [[ ${fields[i]} != - ]] || break
        done
        fstype=${fields[i + 1]:-} options=${fields[i + 3]:-}
        case $fstype in
        cgroup2) printf '2 %s -\n' "${fields[4]}" ;;
        cgroup)
            printf '1 %s %s\n' "${fields[4]}" "$(cgroup_controllers "$options")"
            ;;
        esac
    done </proc/self/mountinfo
}

# cgroup_controllers OPTIONS: of a v1 mount's options, those that name its hierarchy.
cgroup_controllers() {
    local option hierarchy=
    for option in ${1//,/ }; do
        case $option in
        rw | ro | xattr | noprefix | clone_children | release_agent=*) ;;
        *) hierarchy+=${hierarchy:+,}$option ;;
        esac
    done
    printf '%s\n' "$hierarchy"
}

# A new v1 cpuset has no CPUs, and takes no process before it has.
cgroup_inherit_cpuset() {
    local dir=$1 file
    for file in cpuset.cpus cpuset.mems; do
        [[ -e $dir/$file && -z $(<"$dir/$file") ]] || continue
        printf '%s\n' "$(<"${dir%/*}/$file")" >"$dir/$file"
    done
}

# In v2 a group's children have the controllers that it hands down. A controller that the host does
# not hand down is one that this lab's guests are not limited by: libvirt says so when it matters.
cgroup_hand_down() {
    local controller
    for controller in cpu cpuset io memory pids; do
        printf '+%s\n' "$controller" >"$1/cgroup.subtree_control" 2>/dev/null || true
    done
}

# cgroup_make VERSION MOUNTPOINT PATH: with all that is above it.
cgroup_make() {
    local version=$1 dir=$2 part
    local -a parts
    IFS=/ read -r -a parts <<<"$3"
    for part in "${parts[@]}"; do
        ((version == 1)) || cgroup_hand_down "$dir"
        dir+=/$part
        mkdir -p "$dir"
        ((version == 2)) || cgroup_inherit_cpuset "$dir"
    done
}

# cgroup_enter PATH [PID]: moves PID (or this shell) into berth-lab/PATH of every hierarchy.
cgroup_enter() {
    local path=berth-lab/$1 pid=${2:-$BASHPID} version mount _
    while read -r version mount _; do
        cgroup_make "$version" "$mount" "$path"
        printf '%s\n' "$pid" >"$mount/$path/cgroup.procs"
    done < <(cgroup_mounts)
}

cgroup_exists() {
    local mount _
    while read -r _ mount _; do
        [[ ! -d $mount/berth-lab/$LAB ]] || return 0
    done < <(cgroup_mounts)
    return 1
}

# cgroup_processes [SUBPATH]: pids of the lab, or of one of its groups, one a line. (0 stands for
# those that this PID namespace does not see.)
cgroup_processes() {
    local mount _
    while read -r _ mount _; do
        find "$mount/berth-lab/$LAB${1:+/$1}" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    done < <(cgroup_mounts) | sort -un | sed '/^0$/d'
}

# cgroup_kill [SUBPATH]: ends every process of the lab, or of one of its groups, at once.
cgroup_kill() {
    local deadline=$(($(now_usec) + 20000000)) pid pids
    while pids=$(cgroup_processes "${1:-}") && [[ -n $pids ]]; do
        for pid in $pids; do
            kill -9 "$pid" 2>/dev/null || true
        done
        if (($(now_usec) > deadline)); then
            warn "processes of lab $LAB do not end: ${pids//$'\n'/ }"
            return 1
        fi
        sleep 0.05
    done
}

# cgroup_remove [SUBPATH]: the kernel may need a moment after the last process.
cgroup_remove() {
    await 10 "the control groups of lab $LAB to be removable" cgroup_try_remove "${1:-}"
}

cgroup_try_remove() {
    local mount dir left=0 _
    while read -r _ mount _; do
        dir=$mount/berth-lab/$LAB${1:+/$1}
        [[ ! -d $dir ]] || find "$dir" -depth -type d -exec rmdir {} + || left=1
        # Shared by all labs, so it goes with the last.
        rmdir "$mount/berth-lab" 2>/dev/null || true
    done < <(cgroup_mounts)
    return "$left"
}

# In a node, after `unshare --cgroup`: its own group is the root of every hierarchy that it sees.
cgroup_mount_in_namespace() {
    local version controllers mounts mount name
    mounts=$(cgroup_mounts)
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    if ! grep -q '^1' <<<"$mounts"; then
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        return
    fi
    while read -r version mount controllers; do
        if ((version == 2)); then
            name=unified
            mkdir -p "/sys/fs/cgroup/$name"
            mount -t cgroup2 cgroup2 "/sys/fs/cgroup/$name"
        else
            name=${controllers#name=}
            mkdir -p "/sys/fs/cgroup/$name"
            mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$name"
        fi
    done <<<"$mounts"
}

# v2 hands no controllers down from a group that has processes: this shell goes from PATH, the root
# of its namespace, one level down before others are started.
cgroup_leave_root() {
    local dir version mount _
    while read -r version mount _; do
        ((version == 2)) || continue
        dir=$mount/berth-lab/$1
        mkdir -p "$dir/init"
        printf '%s\n' "$BASHPID" >"$dir/init/cgroup.procs"
        cgroup_hand_down "$dir"
    done < <(cgroup_mounts)
}
