#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# images/kernel/prune: kernels that were not used for long go, but neither the one that was just taken
# nor one that somebody builds.
set -euo pipefail
. "$top_srcdir/lab/lib/common.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BERTH_CACHE_DIR=$work/cache
mkdir -p "$BERTH_CACHE_DIR" "$work/output"

# kept NAME AGE_DAYS: a kernel whose content is its name.
kept() {
    mkdir "$BERTH_CACHE_DIR/kernel-$1"
    printf '%s' "$1" >"$BERTH_CACHE_DIR/kernel-$1/vmlinux"
    touch -d "$2 days ago" "$BERTH_CACHE_DIR/kernel-$1"
}
left() {
    (cd "$BERTH_CACHE_DIR" && printf '%s ' kernel-*/)
}

kept recent 80
kept old 100
kept locked 100
kept taken 100
cp "$BERTH_CACHE_DIR/kernel-taken/vmlinux" "$work/output/"
: >"$BERTH_CACHE_DIR/recipe-other.tar"
exec {lock}>"$BERTH_CACHE_DIR/kernel-locked.lock"
flock "$lock"
"$top_srcdir/images/kernel/prune" "$work/output" >"$work/said"
[[ $(left) == "kernel-locked/ kernel-recent/ kernel-taken/ " ]] || die "left: $(left)"
[[ $(<"$work/said") == *"removed $BERTH_CACHE_DIR/kernel-old,"* ]] || die "said: $(<"$work/said")"
[[ -e $BERTH_CACHE_DIR/recipe-other.tar ]] || die "something else is gone"
# It counts as used now, whatever is taken next; and nobody builds the other any more.
exec {lock}>&-
printf recent >"$work/output/vmlinux"
"$top_srcdir/images/kernel/prune" "$work/output" >/dev/null
[[ $(left) == "kernel-recent/ kernel-taken/ " ]] || die "left then: $(left)"
