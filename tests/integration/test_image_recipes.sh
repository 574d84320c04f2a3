#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The recipe "busybox" gives an archive with what a guest needs, the same bytes each time; recipes
# and the kernel's build refuse wrong usage. (The recipe "debian" needs a mirror: quickstart runs it.)
set -euo pipefail

top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
recipe=$top/images/recipes/busybox

fail() {
    echo "FAIL: $*" >&2
    exit 1
}
if ! command -v busybox >/dev/null || [[ $(LC_ALL=C readelf -l "$(command -v busybox)") == *INTERP* ]]; then
    echo "no static busybox: apt-get install busybox-static"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# --- content
"$recipe" one.tar
tar -tvf one.tar --numeric-owner >list
for wanted in '^-rwxr-xr-x 0/0 .* ./bin/busybox$' '^l.* ./bin/sh -> /bin/busybox$' \
    '^l.* ./usr/bin/awk -> /bin/busybox$' '^drwxrwxrwt 0/0 .* ./tmp/$' \
    '^drwxrwxrwt 0/0 .* ./work/$' '^drwx------ 0/0 .* ./root/$' '^drwxr-xr-x 0/0 .* ./proc/$' \
    '^-rw-r--r-- 0/0 .* ./etc/passwd$'; do
    grep -Eq -- "$wanted" list || fail "nothing in the archive is $wanted"
done
! grep -Ev ' 0/0 ' list || fail "not all of it is root's"
tar -xOf one.tar ./etc/passwd | grep -q '^root:x:0:0:.*:/bin/sh$' || fail "root has no shell"

# --- the same bytes, whatever the umask and the locale
(umask 077 && LC_ALL=C.UTF-8 "$recipe" two.tar)
cmp one.tar two.tar || fail "two runs differ"
[ "$(stat -c %a two.tar)" = 644 ] || fail "the archive cannot be read by others"

# --- wrong usage
refuses() { # STATUS TEXT COMMAND...
    local status=0 wanted=$1 text=$2
    shift 2
    "$@" >said 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || fail "$* ended with $status, not $wanted: $(cat said)"
    grep -qF -- "$text" said || fail "$* did not say '$text': $(cat said)"
}
for name in busybox debian; do
    refuses 2 usage: "$top/images/recipes/$name"
    refuses 2 usage: "$top/images/recipes/$name" --help
    refuses 2 usage: "$top/images/recipes/$name" a b
done
for packages in "" , gcc, ",gcc" "gcc libc6" "-gcc" "gcc;true"; do
    refuses 2 usage: "$top/images/recipes/debian" --include "$packages" out.tar
done
refuses 2 usage: "$top/images/recipes/debian" --include gcc
refuses 1 "cannot write to missing" "$recipe" missing/one.tar
refuses 1 usage: "$top/images/kernel/build"
refuses 1 "unknown option" "$top/images/kernel/build" --fast out
refuses 1 "not a number" "$top/images/kernel/build" --jobs many out
left=$(find . -mindepth 1 -not -name '*.tar' -not -name list -not -name said)
[ -z "$left" ] || fail "left behind: $left"
