/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sentiment.c - any bytes as a model file and as a text.
 *
 * The first byte cuts the input in two: a model file, sealed with the right checksum so that more
 * than the first look at it is tried, and a text. The text is scored by that model, if it is one,
 * and by the program's; scratch memory must be clean afterwards.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/exec/expr/sentiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_score(const struct sentiment_model *model, struct text text)
{
    static const struct sentiment_scratch clean;
    struct sentiment_scratch scratch = {0};
    struct sentiment_score score = sentiment_score(model, &scratch, text);
    ASSERT(memcmp(scratch.seen, clean.seen, sizeof clean.seen) == 0);
    double polarity = sentiment_polarity(score);
    ASSERT(polarity >= -1.0);
    ASSERT(polarity <= 1.0);
    struct sentiment_score again = sentiment_score(model, &scratch, text);
    ASSERT(again.total == score.total);
    ASSERT(again.magnitude == score.magnitude);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > SENTIMENT_FILE_MAX) return 0;
    size_t cut = (size - 1) * data[0] / 255;
    uint8_t *file = malloc(cut + 1);
    ASSERT(file != NULL);
    memcpy(file, data + 1, cut);
    struct text bytes = {(const char *)file, (uint32_t)cut};
    if (cut >= SENTIMENT_HEADER_BYTES) {
        uint64_t checksum = sentiment_checksum(bytes);
        for (uint32_t i = 0; i < 8; i++) {
            file[SENTIMENT_CHECKSUM_OFFSET + i] = (uint8_t)(checksum >> (8 * i));
        }
    }
    struct text text = {(const char *)data + 1 + cut, (uint32_t)(size - 1 - cut)};
    struct sentiment_model model;
    struct error err;
    check_score(&sentiment_builtin, text);
    if (sentiment_model_read(bytes, &model, &err) == STATUS_OK) check_score(&model, text);
    free(file);
    return 0;
}
