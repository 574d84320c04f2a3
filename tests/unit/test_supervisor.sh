#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lab/lib/supervisor: what ends is started again, also if `wait -n` does not tell.
set -euo pipefail
. "$top_srcdir/lab/lib/common.sh"

work=$(mktemp -d)
supervisor=
finish() {
    [[ -z $supervisor ]] || kill -KILL -- "-$supervisor" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
mkdir "$work/services" "$work/log"

# service NAME: its program, from standard input.
service() {
    cat >"$work/services/$1.run"
    chmod +x "$work/services/$1.run"
}

has_ended_twice() {
    (($(grep -c "ends .* ended with status 3" "$work/log/supervisor.log") >= 2))
}

service ends <<'END_OF_SERVICE'
#!/bin/sh
exit 3
END_OF_SERVICE
service stays <<'END_OF_SERVICE'
#!/bin/sh
exec sleep 600
END_OF_SERVICE
# As if bash knew of none but the first to wait for any more.
cat >"$work/forgetful" <<'END_OF_ENV'
wait() {
    if [[ $1 == -n ]]; then builtin wait -n "$2"; else builtin wait "$@"; fi
}
END_OF_ENV

BASH_ENV=$work/forgetful setsid "$BASH" "$top_srcdir/lab/lib/supervisor" "$work/services" "$work/log" &
supervisor=$!
await 30 "a service that ended at once to be started again" has_ended_twice
kill -0 "$(cat "$work/services/stays.pid")" || die "what stays has ended"
