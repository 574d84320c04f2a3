#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# In the example configurations, a line "#key=value" shows the default that the manual names, unless
# the comment above it ends in "Example:".
set -euo pipefail
export LC_ALL=C.UTF-8

# default_in MANUAL KEY: what its first entry of that name says; without the full stop.
default_in() {
    awk -v entry="\\\\fB$2\\\\fR=" '
        index($0, entry) == 1 { found = 1; next }
        found && /^\.TP/ { exit }
        found && match($0, /Default: /) {
            text = substr($0, RSTART + RLENGTH)
            sub(/\.$/, "", text)
            gsub(/\\-/, "-", text)
            print text
            exit
        }' "$1"
}

# check EXAMPLE MANUAL
check() {
    local line before='' n=0 key
    while IFS= read -r line; do
        if [[ $line =~ ^#([a-z_]+)=(.*)$ && $before != *'Example:' ]]; then
            key=${BASH_REMATCH[1]}
            [[ ${BASH_REMATCH[2]} == "$(default_in "$2" "$key")" ]] || {
                echo "$1: \"$line\": the default is $(default_in "$2" "$key") in $2" >&2
                exit 1
            }
            n=$((n + 1))
        fi
        before=$line
    done <"$1"
    ((n >= 5)) || { echo "$1: only $n defaults found" >&2; exit 1; }
}

check "$top_srcdir/scheduler/daemon/berthd.conf.example" "$top_srcdir/doc/berthd.conf.5"
check "$top_srcdir/nodeagent/berth-node.conf.example" "$top_srcdir/doc/berth-node.conf.5"
