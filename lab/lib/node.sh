# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The files of a node, made before it boots: what it sees as /etc/libvirt and the other directories
# of libvirt, the secret with the Ceph key, its services. lib/place then boots it.

NODE_PKI_DIR=/etc/libvirt/pki
LIBVIRT_DIRS=(/etc/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt)

# node_root NODE: its own files; below it, a directory is where the node sees it.
node_root() {
    printf '%s\n' "$LAB_DATA/nodes/$1"
}

# node_prepare NODE: everything but its agent's configuration.
node_prepare() {
    local node=$1 root dir
    root=$(node_root "$node")
    for dir in "${LIBVIRT_DIRS[@]}"; do
        mkdir -p "$root$dir"
    done
    mkdir -p "$root/var/lib/libvirt/qemu" "$LAB_DATA/log/$node"
    # Nodes are hosts of their own: berth-node(8) says what for.
    tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
    # QEMU runs as libvirt-qemu and makes its sockets below.
    chown -R --reference=/var/lib/libvirt/qemu "$root/var/lib/libvirt/qemu"
    node_write_libvirt_config "$root/etc/libvirt" "$node"
    node_write_certificates "$node" "$root$NODE_PKI_DIR"
    [[ -z ${LAB_CEPH_KEY:-} ]] || node_write_secret "$root/etc/libvirt/secrets"
    service_define "$node/virtlogd" /usr/sbin/virtlogd
    service_define "$node/libvirtd" /usr/sbin/libvirtd --listen
}

# Of its own: sockets for root only, no networks, no host devices. Guests' files are the lab's. What
# other nodes' libvirtd and QEMU say to it goes over TLS (berth-node(8)).
node_write_libvirt_config() {
    cat >"$1/libvirtd.conf" <<END
listen_tls = 1
listen_tcp = 0
listen_addr = "$(node_address "$2")"
auth_tls = "none"
ca_file = "$NODE_PKI_DIR/cacert.pem"
cert_file = "$NODE_PKI_DIR/servercert.pem"
key_file = "$NODE_PKI_DIR/serverkey.pem"
auth_unix_rw = "none"
unix_sock_group = "root"
unix_sock_rw_perms = "0700"
host_uuid = "$(uuidgen)"
log_outputs = "3:stderr"
END
    cat >"$1/qemu.conf" <<END
security_driver = "none"
namespaces = []
remember_owner = 0
stdio_handler = "logd"
default_tls_x509_cert_dir = "$NODE_PKI_DIR"
default_tls_x509_verify = 1
migration_address = "0.0.0.0"
END
    cat >"$1/virtlogd.conf" <<END
max_size = 2097152
max_backups = 1
log_outputs = "3:stderr"
END
}

# node_write_certificates NODE DIR: one certificate for both ends, under the names that libvirt gives the
# files, and under QEMU's; QEMU's user may read them.
node_write_certificates() {
    local ca=$LAB_DATA/ca end
    mkdir -p -m 700 "$2"
    install -m 600 "$ca/ca.pem" "$2/cacert.pem"
    install -m 600 "$ca/ca.pem" "$2/ca-cert.pem"
    for end in server client; do
        install -m 600 "$ca/$1.pem" "$2/${end}cert.pem"
        install -m 600 "$ca/$1.key" "$2/${end}key.pem"
        install -m 600 "$ca/$1.pem" "$2/$end-cert.pem"
        install -m 600 "$ca/$1.key" "$2/$end-key.pem"
    done
    chown -R --reference=/var/lib/libvirt/qemu "$2"
}

# As libvirt itself stores a secret; it reads them when it starts.
node_write_secret() {
    mkdir -p -m 700 "$1"
    cat >"$1/$LAB_SECRET_UUID.xml" <<END
<secret ephemeral='no' private='no'>
  <uuid>$LAB_SECRET_UUID</uuid>
  <usage type='ceph'>
    <name>client.$LAB_CEPH_USER</name>
  </usage>
</secret>
END
    (umask 077 && printf '%s' "$LAB_CEPH_KEY" >"$1/$LAB_SECRET_UUID.base64")
}
