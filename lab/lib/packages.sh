# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Installing the packages of lab/packages. Needs common.sh.

# packages_of FILE KIND...: names, one a line.
packages_of() {
    local file=$1 kinds
    shift
    kinds=" $* "
    awk -v kinds="$kinds" '!/^#/ && NF { if (index(kinds, " " $2 " ")) print $1 }' "$file"
}

# packages_missing NAME...: those that are not installed, one a line.
packages_missing() {
    local installed name
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
    for name in "$@"; do
        grep -qxF "$name" <<<"$installed" || printf '%s\n' "$name"
    done
}

# packages_install LOG NAME...: what is missing of them. Waits for another apt to finish.
packages_install() {
    local log=$1 missing
    shift
    command -v dpkg-query >/dev/null || die "packages are installed for Debian 12 only; install by hand: $*"
    missing=$(packages_missing "$@")
    [[ -n $missing ]] || return 0
    apt_get "$log" update
    # shellcheck disable=SC2086 # a list of names
    apt_get "$log" install -y --no-install-recommends $missing
}

apt_get() {
    local log=$1
    shift
    DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@" </dev/null >>"$log" 2>&1
}
