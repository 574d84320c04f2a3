/* SPDX-License-Identifier: Apache-2.0 */
/* RBD images that many threads open and close at once, in a process whose freed memory is made unusable: what librbd still
 * does with an image that is closed ends it. */
#include <malloc.h>

#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#define MIB     ((gsize)1024 * 1024)
#define THREADS 8
#define OPENS   200

static gpointer look_often(gpointer data)
{
    guint failed = 0;
    for (guint i = 0; i < OPENS; i++) {
        g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "seen", NULL);
        failed += clients == NULL;
    }
    return GUINT_TO_POINTER(failed);
}

/* A disk is a clone, so that its image's is opened with it. */
static void disk_that_many_threads_look_at(void **state)
{
    g_autoptr(GError) error = NULL;
    GThread *threads[THREADS];
    guint failed = 0;
    conformance_image(conformance_storage, "base", MIB, (const guint8 *)"b", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "seen", "base", MIB, &error);
    assert_no_error(error);
    mallopt(M_PERTURB, 0xa5);
    for (guint i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("looks", look_often, NULL);
    for (guint i = 0; i < THREADS; i++)
        failed += GPOINTER_TO_UINT(g_thread_join(threads[i]));
    mallopt(M_PERTURB, 0);
    assert_int_equal(failed, 0);
    assert_true(berth_storage_disk_remove(conformance_storage, "seen", &error));
    assert_no_error(error);
    assert_true(berth_storage_image_remove(conformance_storage, "base", &error));
    assert_no_error(error);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(disk_that_many_threads_look_at),
    };
    return cluster_run("storage_opens", tests, G_N_ELEMENTS(tests));
}
