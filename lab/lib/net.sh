# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Addresses of a lab. Its bridge is inside the lab's own network namespace, so that labs side by
# side may use the same addresses and nothing of them shows on the host.

LAB_HOST_NAME=berthd
LAB_HOST_ADDRESS=10.77.0.1
LAB_PREFIX_LENGTH=24

# node_address node3 => 10.77.0.13
node_address() {
    printf '10.77.0.%d\n' $((10 + ${1#node}))
}

net_write_hosts() {
    local node
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n'
    printf '%s %s\n' "$LAB_HOST_ADDRESS" "$LAB_HOST_NAME"
    for node in "$@"; do
        printf '%s %s\n' "$(node_address "$node")" "$node"
    done
}

# In the lab's namespace.
net_up_host() {
    ip link set lo up
    ip link add berth0 type bridge forward_delay 0
    ip addr add "$LAB_HOST_ADDRESS/$LAB_PREFIX_LENGTH" dev berth0
    ip link set berth0 up
}

# By a node's first process, with OUTER_NET the lab's namespace. The cable is pulled from the lab's
# side: a node that was killed may have left its end for a moment.
net_up_node() {
    local node=$1 outer_net=$2
    ip link set lo up
    nsenter --net="$outer_net" ip link del "$node" 2>/dev/null || true
    nsenter --net="$outer_net" ip link add "$node" type veth peer name eth0 netns 1
    nsenter --net="$outer_net" ip link set "$node" master berth0 up
    ip addr add "$(node_address "$node")/$LAB_PREFIX_LENGTH" dev eth0
    ip link set eth0 up
}
