/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* Hashes of keys with several members: each is mixed into what those before it made, so that members that are alike
 * (a user's number and that of what he runs) do not cancel each other. The multiplier is 2^64 divided by the golden
 * ratio (Knuth, The Art of Computer Programming, volume 3, 6.4); the upper half of the product depends on all bits. */
static inline guint64 core_mix(guint64 hash, guint64 value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

/* What a table of GLib's wants of it. */
static inline guint core_mix_end(guint64 hash)
{
    return (guint)(hash >> 32);
}
