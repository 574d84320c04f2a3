/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* "HOST:PORT" (no port: the default one) of each monitor address in MON_HOST, as ceph.conf and
 * librados write it, once each, NULL-terminated (transfer full): what QEMU and libvirt take. */
char **berth_rbd_monitors_parse(const char *mon_host);
