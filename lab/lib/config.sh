# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The daemons' configuration files of a lab, in $LAB_DATA/etc: berthd.conf(5), berth-node.conf(5).
# A file that is there stays: a restart keeps what somebody changed in it.

config_write_berthd() {
    local file=$LAB_DATA/etc/berthd.conf
    [[ ! -e $file ]] || return 0
    mkdir -p "$LAB_DATA/etc" "$LAB_DATA/state"
    {
        cat <<END
[berthd]
cluster=$LAB
socket=$LAB_SOCKET
state=$LAB_DATA/state/berth.db

[agents]
address=$LAB_HOST_ADDRESS
certificate=$LAB_DATA/ca/$LAB_HOST_NAME.pem
key=$LAB_DATA/ca/$LAB_HOST_NAME.key
ca=$LAB_DATA/ca/ca.pem
node_timeout=30s
report_interval=1s

[defaults]
image=busybox
memory=128M
disk=64M

[guests]
start_backoff=1s

[policy]
drain_patience_usec=10000000
END
        config_storage
        printf 'check_interval=2s\ngc_interval=10s\n'
    } >"$file.new"
    mv "$file.new" "$file"
}

# config_write_node NODE
config_write_node() {
    local node=$1 file=$LAB_DATA/etc/$1.conf
    [[ ! -e $file ]] || return 0
    mkdir -p "$LAB_DATA/etc"
    {
        cat <<END
[node]
name=$node
run_dir=/run/berth-node

[scheduler]
address=$LAB_HOST_NAME
certificate=$LAB_DATA/ca/$node.pem
key=$LAB_DATA/ca/$node.key
ca=$LAB_DATA/ca/ca.pem

[libvirt]
pki_dir=$NODE_PKI_DIR

[guests]
vcpus=$LAB_VCPUS
memory=$LAB_MEMORY
kernel=$LAB_DATA/guest/vmlinux
initramfs=$LAB_DATA/guest/initramfs.cpio
allow_emulation=true
probe_deadline=5s
memory_patience=3m
END
        config_storage
    } >"$file.new"
    mv "$file.new" "$file"
}

config_storage() {
    printf '\n[storage]\nkind=%s\n' "$LAB_STORAGE"
    if [[ $LAB_STORAGE == dir ]]; then
        printf 'path=%s\n' "$LAB_DATA/storage"
        return
    fi
    cat <<END
ceph_conf=$LAB_CEPH_CONF
ceph_user=$LAB_CEPH_USER
ceph_live_user=$LAB_CEPH_USER-live
keyring=$LAB_CEPH_KEYRING
pool=$LAB_POOL
secret_uuid=$LAB_SECRET_UUID
END
}
