/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A place where a test builds an image: the setup, the teardown and the steps that most tests take. */

#include "images/build/image_build.h"
#include "tests/lib/assert.h"
#include "tests/lib/image_fixture.h"

typedef struct {
    char *directory;
    char *source; /* what is built from; not there yet */
    char *image;  /* where the image is to be; not there yet */
} ImagePlace;

int image_place_make(void **state);
int image_place_remove(void **state);
#define in_place(test) cmocka_unit_test_setup_teardown(test, image_place_make, image_place_remove)

/* Builds the image, which must succeed and be clean. */
BerthImageInfo image_place_build(const ImagePlace *place);
/* The same from an archive of these entries. */
void image_place_build_entries(const ImagePlace *place, const ImageEntry *entries, gsize count);
/* Builds the image, which must fail and leave none. MAX_BYTES: its limit; 0 = none. (transfer full) */
GError *image_place_build_fails(const ImagePlace *place, guint64 max_bytes);
