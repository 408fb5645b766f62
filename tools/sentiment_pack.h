/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_pack.h - from a weight for every feature to a model file of the given size. */
#ifndef TOOLS_SENTIMENT_PACK_H
#define TOOLS_SENTIMENT_PACK_H

#include "engine/base/buf.h"
#include "sentiment_corpus.h"

/* `out` is the whole file, as engine/exec/expr/sentiment_model.h describes it. */
MUST_USE status pack_model(struct corpus *corpus, const double *weights, uint32_t bucket_count,
                           struct buf *out, struct error *err);

#endif
