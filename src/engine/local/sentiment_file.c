/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_file.c - reads the whole file; engine/exec/expr/sentiment_model.h says what it must
 * hold. */
#include "engine/local/sentiment_file.h"

#include "engine/exec/expr/sentiment_model.h"
#include "engine/file/file.h"

/* Much larger than a model may be, so that whatever else is named is told what it is not. */
enum { READ_MAX = 64 << 20 };

status sentiment_file_read(const char *path, struct arena *arena,
                           const struct sentiment_model **out_model, struct error *err)
{
    if (path == NULL || path[0] == '\0') {
        *out_model = NULL;
        return STATUS_OK;
    }
    struct text bytes;
    struct sentiment_model *model = arena_new(arena, struct sentiment_model);
    if (model == NULL) return error_memory(err);
    TRY(file_read_whole(path, READ_MAX, arena, &bytes, err));
    if (sentiment_model_read(bytes, model, err) != STATUS_OK) {
        return error_prefix(err, "%.1000s", path);
    }
    *out_model = model;
    return STATUS_OK;
}
