#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# berth-lab, quickstart and run-tests name what is wrong with their arguments, with status 2; a tree
# that was configured itself is refused with the command that mends it; nothing of the lab shadows a
# program of the host. Nothing is started.
set -euo pipefail
((EUID == 0)) || {
    echo "needs root: berth-lab looks at arguments after that"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BERTH_LAB_RUN=$work/run BERTH_LAB_DATA=$work/data

# refused STATUS TEXT PROGRAM [ARGUMENTS...]: says one line, which has TEXT.
refused() {
    local wanted=$1 text=$2 program=$3 status=0 said
    shift 3
    said=$("$top_srcdir/$program" "$@" 2>&1) || status=$?
    [[ $status == "$wanted" && $said == *"$text"* && $said != *$'\n'* && $said != *": line "* ]] || {
        printf '%s %s: status %s, said: %s\n' "$program" "$*" "$status" "$said" >&2
        exit 1
    }
}

refused 2 "there is no command 'bogus'" lab/berth-lab bogus
refused 2 "--name needs a name" lab/berth-lab status --name
refused 2 "status does not take 'bogus'" lab/berth-lab status bogus
refused 2 "list does not take '--foo'" lab/berth-lab list --foo
refused 2 "env does not take 'x'" lab/berth-lab env x
refused 2 "down does not take 'x'" lab/berth-lab down x
refused 2 "up does not take '--foo'" lab/berth-lab up --foo
refused 2 "up: --nodes needs a value" lab/berth-lab up --nodes
for command in logs kill stop start pid; do
    refused 2 "$command takes a service" lab/berth-lab "$command"
    refused 2 "$command does not take 'c'" lab/berth-lab "$command" a b c
done
refused 2 "kill: -s needs a signal" lab/berth-lab kill -s
refused 2 "kill: there is no signal 'FOO'" lab/berth-lab kill -s FOO berthd
refused 2 "exec takes a place and a command" lab/berth-lab exec node1
refused 2 "--name needs a name" quickstart --name
refused 2 "there is no option '--bogus'" quickstart --bogus
refused 2 "not 'bogus'" run-tests --only bogus
refused 2 "there is no option '--bogus'" run-tests --bogus

# A lab that was begun, as far as its settings tell.
mkdir -p "$work/run/made-up" "$work/data/made-up"
echo "LAB_NODE_NAMES='node1 node2'" >"$work/run/made-up/settings"
refused 1 "no place 'node7'; it has: host node1 node2" lab/berth-lab exec --name made-up node7 true
refused 1 "node2 of lab made-up is not running" lab/berth-lab exec --name made-up node2 true

# What quickstart would end with is said before it builds.
refused 1 "a lab's name is 1 to 24 of a-z" quickstart --name 'My lab'
start_of() { awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$1/stat"; }
mkdir "$work/run/two"
printf '%s\n' LAB_NODE_NAMES="'node1 node2'" LAB_STORAGE=rbd LAB_BERTHD=/usr/sbin/berthd >"$work/run/two/settings"
printf '%s %s\n' "$$" "$(start_of $$)" >"$work/run/two/host.init"
: >"$work/run/two/up"
refused 1 "lab two is up with node names 'node1 node2', not 'node1'" quickstart --small --name two
refused 1 "lab two is up with berthd '/usr/sbin/berthd'" quickstart --name two
rm -r "$work/run/two"

# `down --all` leaves what is for a process that lives, and not what is for another that had its id.
owned_lab() { # NAME PID START
    mkdir -p "$work/run/$1"
    printf '%s %s\n' "$2" "$3" >"$work/run/$1/owner"
}
owned_lab owned "$$" "$(start_of $$)"
owned_lab reused "$$" 1
said=$("$top_srcdir/lab/berth-lab" down --all)
[[ $(head -n 2 <<<"$said") == "lab owned is left: process $$,"*"to end: made-up reused" ]] || {
    printf 'down --all: %s\n' "$said" >&2
    exit 1
}
[[ $("$top_srcdir/lab/berth-lab" list) == owned ]] || exit 1
said=$("$top_srcdir/lab/berth-lab" down --all --force)
[[ $said == "to end: owned"* && ! -e $work/run ]] || {
    printf 'down --all --force: %s\n' "$said" >&2
    exit 1
}
[[ $("$top_srcdir/lab/berth-lab" down --all) == "no lab to end" ]] || exit 1
refused 2 "down --all does not take 'x'" lab/berth-lab down --all x
refused 1 "--owner takes a process id, not 'me'" lab/berth-lab up --owner me

tree=$work/tree
mkdir "$tree"
: >"$tree/config.status"
said=$(tree=$tree bash -c '. "$1/lab/lib/common.sh"; . "$1/lab/lib/build.sh"; build_require_clean_tree' \
    x "$top_srcdir" 2>&1) && exit 1
[[ $said == *"make -C $tree distclean"* ]] || exit 1

# What `berth-lab env` puts first in PATH.
for program in "$top_srcdir"/lab/*; do
    [[ ! -f $program || ! -x $program || ${program##*/} == berth-lab ]] || {
        echo "$program shadows a program of that name" >&2
        exit 1
    }
done
