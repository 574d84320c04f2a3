/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* What a job comes after, as it is written: "afterok:12:13,after:14,singleton", all of which must be met. */

/* (transfer full, of Berth__Dependency). INVALID_ARGUMENT: says what is wrong. */
GPtrArray *berth_dependencies_parse(const char *text, GError **error);
/* The words of DEPENDENCY: "afterok:12"; and with the state of the job that it names: "afterok:12 (RUNNING)". (transfer full) */
char *berth_dependency_format(const Berth__Dependency *dependency);
char *berth_dependency_describe(const Berth__Dependency *dependency);
