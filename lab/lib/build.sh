# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Building this tree out of place, for quickstart and run-tests. Needs common.sh and $tree, the top
# of the source. Called by root through sudo, the files belong to the user all the same.
#
# What makes something in a directory has a lock on it, and runs in a subshell, with which the lock
# goes. Two of configure or make in one directory would overwrite each other's files.

# The owner of the source tree if that is not us, else nobody.
build_owner() {
    local owner
    owner=$(stat -c %U "$tree")
    [[ $owner == root || $owner == UNKNOWN ]] || printf '%s\n' "$owner"
}

# as_owner COMMAND [ARGS...]
as_owner() {
    local owner
    owner=$(build_owner)
    if [[ -n $owner ]]; then
        runuser -u "$owner" -- "$@"
    else
        "$@"
    fi
}

# A source tree that was configured itself cannot be built elsewhere as well: configure refuses.
build_require_clean_tree() {
    [[ ! -e $tree/config.status ]] ||
        die "the source tree itself is configured, so that nothing can be built beside it; first run: make -C $tree distclean"
}

build_make_directory() {
    as_owner mkdir -p "$1"
}

build_lock() {
    lock_directory BUILD_LOCK_FD "$1" "another quickstart or run-tests that works in $1"
}

# Interrupted, autogen.sh has not come to Makefile.in. The tree is shared by all that is built of it.
build_autogen() (
    build_lock "$tree"
    [[ ! -x $tree/configure || ! -e $tree/Makefile.in || $tree/configure -ot $tree/configure.ac ]] || exit 0
    cd "$tree" && as_owner ./autogen.sh
)

# build_configure DIR [ARGS...]: does nothing if DIR was configured with the same arguments since
# the last change of configure.ac; make does the rest. DIR/.configured says so, and only after a
# configure that came to its end.
build_configure() (
    dir=$1
    shift
    wanted="$*"
    build_autogen
    build_lock "$dir"
    if [[ -e $dir/Makefile && -e $dir/.configured && $(<"$dir/.configured") == "$wanted" ]]; then
        exit 0
    fi
    as_owner rm -f "$dir/.configured"
    cd "$dir" || exit
    as_owner "$tree/configure" --prefix=/usr --sysconfdir=/etc --localstatedir=/var "$@"
    printf '%s\n' "$wanted" | as_owner tee "$dir/.configured" >/dev/null
)

# build_make DIR [TARGETS...]
build_make() (
    dir=$1
    shift
    build_lock "$dir"
    as_owner make -C "$dir" -j "$(nproc)" "$@"
)

# build_check DIR TARGET [PROGRAMS]: `make TARGET`, which runs tests, after `make PROGRAMS`; by default all are made. They are
# compiled as the owner, but run as ourselves: as another user, those that need root would skip themselves. They wait more than they
# compute, for daemons, Ceph and guests: twice as many as there are CPUs run at a time.
build_check() {
    local status=0
    # shellcheck disable=SC2086 # two words
    build_make "$1" ${3:-check TESTS=}
    build_run_tests "$1" "$2" || status=$?
    build_give_back "$1"
    return "$status"
}

# What a test starts and loses has no part in the lock. Called as a condition.
build_run_tests() (
    build_lock "$1" || exit
    (
        exec {BUILD_LOCK_FD}<&-
        exec make -C "$1" -j "$((2 * $(nproc)))" "$2"
    )
)

# build_give_back DIR: what root made in it becomes the owner's.
build_give_back() {
    local owner
    owner=$(build_owner)
    [[ -z $owner ]] || find "$1" -user root -exec chown -h "$owner:" {} +
}

# The kernel is kept in /var/cache/berth by its inputs, so root makes it.
build_guest() (
    build_lock "$1"
    make -C "$1" guest-kernel
    build_give_back "$1"
)
