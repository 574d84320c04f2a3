/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Pressure stall information of the kernel (Documentation/accounting/psi.rst). Plain C: berth-init
 * uses it, too. */

/* The 10 s average of line KIND ("some", "full") of a /proc/pressure file's TEXT, in hundredths of a
 * percent; 0 if it has none. */
uint32_t berth_pressure_parse(const char *text, const char *kind);

/* The time that such a line counts in all, in us; 0 if it does not. */
uint64_t berth_pressure_parse_total(const char *text, const char *kind);
