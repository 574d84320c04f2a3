#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lab/lib/build.sh and progress.sh: two that build in one directory do so one after the other, the
# second says that it waits, and a configure that was interrupted is done again. With a tree of our
# own, whose configure and make wait for us.
set -euo pipefail
. "$top_srcdir/lab/lib/common.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export tree=$work/tree build=$work/build LIB=$top_srcdir/lab/lib
mkdir "$tree" "$build"
: >"$tree/configure.ac"
cat >"$tree/autogen.sh" <<'END'
#!/bin/sh
echo autogen >>calls
touch configure Makefile.in
END
# Says when it began, in a fifo "began" of the build directory's parent if there is one, and goes on
# when it is let. Fails if another works here.
cat >"$tree/configure" <<'END'
#!/bin/bash
set -e
mkdir working || { echo overlap >>../calls; exit 1; }
[[ ! -p ../began ]] || timeout 60 sh -c "echo >../began; cat ../go"
echo "configure $4" >>../calls
printf 'all check:\n\tmkdir working && echo $@ >>../calls && rmdir working\n' >Makefile
rmdir working
[[ ! -e ../interrupt ]] || kill -9 "$$"
END
chmod +x "$tree"/{autogen.sh,configure}

# builder COMMAND [ARGS...]: of build.sh, in a shell of its own.
builder() {
    # shellcheck disable=SC2016
    bash -c 'set -euo pipefail; . "$LIB/common.sh"; . "$LIB/build.sh"; "$@"' builder "$@"
}

expect_calls() {
    [[ $(<"$work/calls") == "$1" ]] || die "$2: $(<"$work/calls")"
    : >"$work/calls"
}

says_that_it_waits() {
    grep -qs "waits for another quickstart or run-tests that works in $build" "$work/second"
}

# The second comes while the first configures, and has nothing left to configure then.
: >"$work/calls"
mkfifo "$work/began" "$work/go"
builder build_configure "$build" --one >"$work/first" 2>&1 &
first=$!
timeout 30 head -c 1 "$work/began" >/dev/null || die "the first did not begin: $(<"$work/first")"
(builder build_configure "$build" --one && builder build_make "$build" all) >"$work/second" 2>&1 &
second=$!
await 30 "the second to say that it waits" says_that_it_waits
rm "$work/began"
# shellcheck disable=SC2016
timeout 30 bash -c 'echo >"$1"' x "$work/go"
wait "$first" || die "the first failed: $(<"$work/first")"
wait "$second" || die "the second failed: $(<"$work/second")"
expect_calls $'configure --one\nall' "calls of both"

# Other arguments, and the end comes before it is done: the next does it again, even with the
# arguments that were the last to come to an end.
: >"$work/interrupt"
! builder build_configure "$build" --two >"$work/first" 2>&1 || die "an interrupted configure succeeded"
rm "$work/interrupt"
builder build_configure "$build" --one >"$work/first" 2>&1
builder build_configure "$build" --one >"$work/first" 2>&1
expect_calls $'configure --two\nconfigure --one' "calls after an interrupted configure"

# An interrupted autogen.sh has made configure, but not the last file.
[[ $(<"$tree/calls") == autogen ]] || die "autogen.sh ran otherwise than once"
rm "$tree/Makefile.in"
builder build_configure "$build" --one >"$work/first" 2>&1
[[ $(<"$tree/calls") == $'autogen\nautogen' ]] || die "an interrupted autogen.sh is not done again"

# Tests run under the lock, and what they leave behind does not hold it.
printf 'check:\ncheck-unit:\n\t@sleep 20 <&- >&- 2>&- & echo $$! >../stray\n' >"$build/Makefile"
builder build_check "$build" check-unit >"$work/first" 2>&1 || die "build_check failed: $(<"$work/first")"
stray=$(<"$work/stray")
trap 'kill "$stray"; rm -rf "$work"' EXIT
flock --nonblock "$build" true || die "a process that tests left behind holds the lock"

# Logs of a run are its own for as long as it takes, not for as long as the daemons that it started.
# shellcheck disable=SC2016 # expanded by that shell
begin='set -euo pipefail; . "$LIB/common.sh"; . "$LIB/progress.sh"; progress_begin 1 "$1"'
bash -c "$begin; progress_step step sh -c '(sleep 20 >&- 2>&- & echo \$! >>\"\$0\")' \"\$2\"
    ! flock --nonblock \"\$1\" true || exit 7" x "$work/log" "$work/strays" >"$work/first" 2>&1 ||
    die "the logs are not locked: $(<"$work/first")"

strays=$(<"$work/strays")
trap 'kill "$stray" $strays; rm -rf "$work"' EXIT
flock --nonblock "$work/log" true || die "a daemon that a step started holds the logs"
