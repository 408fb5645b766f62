/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment.h - how kindly a text speaks, by a small linear model of its words and word pairs.
 *
 * The model is a table of weights (sentiment_model.h). Each feature of the text that is in it adds
 * its weight once, however often the text has it; all is integer arithmetic, so that a text has
 * the same score on every machine. docs/reference/sentiment.md says where the weights come from.
 *
 * Memory: none is allocated; the scratch is the caller's and zeroed once, before its first use.
 * Threads: any, each with its own scratch; a model is read-only.
 */
#ifndef ENGINE_EXEC_EXPR_SENTIMENT_H
#define ENGINE_EXEC_EXPR_SENTIMENT_H

#include <stdint.h>

#include "engine/base/text.h"
#include "engine/exec/expr/sentiment_model.h"

enum { SENTIMENT_MARKS_MAX = 256 };

/* Which slots the text has used; all zero between texts. */
struct sentiment_scratch {
    uint64_t seen[SENTIMENT_SLOTS_MAX / 64];
    /* The words of `seen` to clear, when they are few; the last is never looked at. */
    uint16_t marks[SENTIMENT_MARKS_MAX + 1];
};

struct sentiment_score {
    int64_t total;     /* The sum of the weights, */
    int64_t magnitude; /* and of their absolute values. */
};

struct sentiment_score sentiment_score(const struct sentiment_model *model,
                                       struct sentiment_scratch *scratch, struct text text);

/* total / magnitude: -1.0 to 1.0; 0.0 when the text has nothing the model knows. */
double sentiment_polarity(struct sentiment_score score);

/* "neutral" up to `band` from 0.0 (a negative band: never), else "negative" or "positive". */
struct text sentiment_label(double polarity, double band);

#endif
