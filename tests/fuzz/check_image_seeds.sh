#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Gives check_image archives and file systems, and mutations of them.
set -euo pipefail

seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
"${top_srcdir:-.}/tests/fuzz/seeds_image" "$seeds"
# Each builds an image in a file.
FUZZ_CORPUS=$seeds FUZZ_MUTATIONS=${FUZZ_MUTATIONS:-100} "${top_builddir:-.}/tests/fuzz/check_image"
