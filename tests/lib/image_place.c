/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a directory with a source and an image (tests/lib/image_place.h). */
#include <config.h>

#include "tests/lib/image_place.h"

int image_place_make(void **state)
{
    ImagePlace *place = g_new0(ImagePlace, 1);
    place->directory = image_fixture_directory();
    place->source = g_build_filename(place->directory, "source", NULL);
    place->image = g_build_filename(place->directory, "image", NULL);
    *state = place;
    return 0;
}

int image_place_remove(void **state)
{
    ImagePlace *place = *state;
    image_fixture_remove(place->directory);
    g_free(place->source);
    g_free(place->image);
    g_free(place);
    return 0;
}

BerthImageInfo image_place_build(const ImagePlace *place)
{
    BerthImageInfo info;
    g_autoptr(GError) error = NULL;
    berth_image_build(place->source, place->image, 0, NULL, NULL, NULL, &info, &error);
    assert_no_error(error);
    assert_image_is_clean(place->image);
    return info;
}

void image_place_build_entries(const ImagePlace *place, const ImageEntry *entries, gsize count)
{
    image_archive_write(place->source, "none", entries, count);
    image_place_build(place);
}

GError *image_place_build_fails(const ImagePlace *place, guint64 max_bytes)
{
    GError *error = NULL;
    assert_false(
        berth_image_build(place->source, place->image, max_bytes, NULL, NULL, NULL, NULL, &error));
    assert_non_null(error);
    assert_false(g_file_test(place->image, G_FILE_TEST_EXISTS));
    return error;
}
