/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_fit.h - from numbered examples to a weight for every feature.
 *
 * The steps are described in the source. Deterministic: + - * / and sqrt of doubles in a fixed
 * order, nothing of a mathematical library, and a seeded shuffle.
 */
#ifndef TOOLS_SENTIMENT_FIT_H
#define TOOLS_SENTIMENT_FIT_H

#include <stdbool.h>

#include "sentiment_corpus.h"

struct fit_options {
    double costs[CORPUS_FILES_MAX];    /* By file: what an error costs, */
    bool is_by_size[CORPUS_FILES_MAX]; /* in a text of the file's mean size, others by theirs. */
    double balance;       /* The classifier's share in a weight; the rest is the ratio alone. */
    double neutral_count; /* What a neutral text counts in the ratios, beside 1 for others. */
    double centring;      /* How much of the neutral texts' mean score is taken away: 0 to 1. */
    double smoothing;     /* Added to every count. */
    uint32_t epochs;
    uint64_t seed;
};

/* *out_weights: by number of the feature, in the corpus's arena. */
MUST_USE status fit_weights(struct corpus *corpus, const struct fit_options *options,
                            double **out_weights, struct error *err);

#endif
