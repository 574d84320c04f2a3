/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a test sees of the storage of a berthd, and of its mark. */

#include "tests/lib/assert.h"
#include "tests/lib/berthd_fixture.h"

#include "common/message.h"

/* Why storage cannot be used, as berthd says; "" = it can. (transfer full) */
static inline char *berthd_test_storage_error(BerthdFixture *berthd)
{
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    Berth__ServerInfo *info =
        berthd_fixture_call(berthd, &berth__server__descriptor, "Info", &request.base);
    char *error = g_strdup(info->storage_error);
    berth_message_free(&info->base);
    return error;
}

/* To be freed with berth__storage_mark__free_unpacked(). */
static inline Berth__StorageMark *berthd_test_read_mark(BerthdFixture *berthd)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) content = berth_storage_mark_read(berthd_fixture_storage(berthd), &error);
    assert_no_error(error);
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    Berth__StorageMark *mark = berth__storage_mark__unpack(NULL, length, data);
    assert_non_null(mark);
    return mark;
}

static inline gboolean berthd_test_mark_has(BerthdFixture *berthd, guint64 jobs_reserved,
                                            guint64 next_job)
{
    Berth__StorageMark *mark = berthd_test_read_mark(berthd);
    gboolean has = mark->jobs_reserved == jobs_reserved && mark->next_job == next_job;
    berth__storage_mark__free_unpacked(mark, NULL);
    return has;
}
