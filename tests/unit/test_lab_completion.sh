#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The completion of berth-lab: commands, options, labs, services and places, asked from a stand-in.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/berth-lab" <<'END'
#!/bin/sh
case $* in
list) echo default; echo other ;;
status) printf '%-22s %s\n' SERVICE STATE host/berthd running node1/berth-node running node1/libvirtd dead ;;
"status --name other") printf '%-22s %s\n' SERVICE STATE host/berthd running node7/berth-node running ;;
esac
END
chmod +x "$work/berth-lab"
# A slow machine is not what this looks for.
export BERTH_COMPLETION_TIMEOUT=60
# shellcheck source=lab/berth-lab.bash
. "$top_srcdir/lab/berth-lab.bash"

# expect REPLY WORD...: what is proposed for the last of the words, separated by spaces.
expect() {
    local reply=$1
    shift
    COMP_WORDS=(berth-lab "$@")
    COMP_CWORD=$#
    _berth_lab "$work/berth-lab"
    [[ ${COMPREPLY[*]} == "$reply" ]] || {
        printf 'berth-lab %s: "%s" instead of "%s"\n' "$*" "${COMPREPLY[*]}" "$reply" >&2
        exit 1
    }
}

expect "status stop start" st
expect "--name" --n
expect "default other" status --name ""
expect "other" --name o
expect "--nodes --name" up --n
expect "rbd" up --storage r
expect "--all" down --a
expect "berthd host/berthd node1/berth-node node1 node1/libvirtd" stop ""
expect "node7/berth-node node7" --name other logs n
expect "node7/berth-node node7" logs --name other n
expect "host node1" exec ""
expect "KILL" kill -s K
expect "berthd" kill -s TERM b
expect "" up --nodes ""

# The commands of the help text, no more and no fewer.
COMP_WORDS=(berth-lab "") COMP_CWORD=1
_berth_lab "$work/berth-lab"
helped=$("$top_srcdir/lab/berth-lab" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | sort | xargs)
proposed=$(printf '%s\n' "${COMPREPLY[@]}" | grep -v '^-' | grep -vx help | sort | xargs)
[[ $helped == "$proposed" ]] || {
    printf 'commands: "%s", proposed: "%s"\n' "$helped" "$proposed" >&2
    exit 1
}
