# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The lab's Ceph. The script `ceph-cluster` makes and runs it, inside the lab's namespaces, so that it ends
# with them; here it is started, and what the others need of it is fetched.

LAB_CEPH_USER=berth
LAB_POOL=berth
LAB_CEPH_DAEMONS=(ceph-mon ceph-mgr ceph-osd)

# Sets LAB_CEPH_CONF, LAB_CEPH_KEYRING, LAB_CEPH_KEY and LAB_SECRET_UUID.
ceph_up() {
    local dir=$LAB_DATA/ceph
    command -v ceph-osd ceph-mon ceph-mgr >/dev/null ||
        die "Ceph is missing; apt-get install ceph-mon ceph-mgr ceph-osd ceph-common qemu-block-extra"
    place_run host "$LAB_LIB/ceph-cluster" start "$dir" --addr "$LAB_HOST_ADDRESS" \
        --size "$LAB_CEPH_SIZE" >"$LAB_DATA/log/host/ceph.log" 2>&1 ||
        die "Ceph did not start; see $LAB_DATA/log/host/ceph.log"
    LAB_CEPH_CONF=$dir/ceph.conf
    LAB_CEPH_KEYRING=$dir/ceph.client.$LAB_CEPH_USER.keyring
    LAB_CEPH_KEY=$(ceph-authtool "$LAB_CEPH_KEYRING" -n "client.$LAB_CEPH_USER" -p)
    LAB_SECRET_UUID=$(uuidgen)
    # What `ceph` and `rbd` look for when somebody works inside the lab.
    cp "$dir/ceph.conf" "$dir/ceph.client.admin.keyring" "$LAB_DATA/etc-ceph/"
}

# ceph_pid DAEMON: its process id on the host; nothing if it does not run. No service of ours, so that
# nobody starts it again.
ceph_pid() {
    local pid argv
    for pid in $(cgroup_processes host); do
        mapfile -d '' argv 2>/dev/null <"/proc/$pid/cmdline" || continue
        [[ ${argv[0]:-} == "$1" && " ${argv[*]} " == *" $LAB_DATA/ceph/ceph.conf "* ]] || continue
        ! process_ended "$pid" || continue
        printf '%s\n' "$pid"
        return
    done
}
