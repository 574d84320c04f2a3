#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs resize_guests on a host of its own, with a libvirtd of its own.
exec "$top_srcdir/tests/lib/with-libvirtd" "$top_builddir/tests/integration/resize_guests"
