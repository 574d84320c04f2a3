#!/bin/sh
# Makes ./configure from a fresh checkout. Names the Debian package of any tool that is missing.
set -eu
cd "$(dirname "$0")"

missing=
need() { command -v "$1" >/dev/null 2>&1 || missing="$missing $2"; }
need autoreconf autoconf
need automake automake
need pkg-config pkg-config
if [ -n "$missing" ]; then
    echo "autogen.sh: missing tools; install them with: apt-get install$missing" >&2
    exit 1
fi
mkdir -p build-aux m4
exec autoreconf --force --install --warnings=all,no-portability "$@"
