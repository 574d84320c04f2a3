/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys and certificates of two days, made by openssl. All arguments but NAME are paths. */

/* A certificate that has signed itself: a CA, or one that is all there is. */
void certificate_make_root(const char *name, const char *key, const char *certificate);
/* A certificate for NAME, for either end of a connection, signed by CA. */
void certificate_make(const char *name, const char *ca_key, const char *ca, const char *key,
                      const char *certificate);
