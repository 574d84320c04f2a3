#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the program of the same name on a host of its own, with a libvirtd of its own.
exec "$top_srcdir/tests/lib/with-libvirtd" "$top_builddir/tests/integration/checkpoint_guests"
