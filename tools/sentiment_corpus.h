/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_corpus.h - labelled texts as the trainer sees them: sorted sets of numbered features.
 *
 *     corpus_init -> corpus_add* -> corpus_number
 *
 * A file holds one text per line: its label, a tab, the text. Labels are 1 (kind), 0 (unkind) and
 * n (neither: it only tells what ordinary text looks like). Examples are ordered by a hash of their
 * text, so that the order of lines does not change what is learnt.
 *
 * Memory: all lives in the corpus's arena, until the process ends.
 */
#ifndef TOOLS_SENTIMENT_CORPUS_H
#define TOOLS_SENTIMENT_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"

enum { CORPUS_FILES_MAX = 8 };

enum corpus_label { LABEL_NEGATIVE, LABEL_POSITIVE, LABEL_NEUTRAL };

struct labelled_text {
    struct text text;
    uint64_t order; /* The hash of the text. */
    enum corpus_label label;
    uint32_t file;
    size_t first; /* Its features in the corpus's, */
    uint32_t count;
};

struct corpus {
    struct arena arena;
    struct labelled_text *examples;
    uint32_t example_count;
    size_t example_capacity;
    uint32_t file_count;
    /* After corpus_number: */
    uint32_t *features;   /* Numbers of features, example by example, ascending, */
    size_t feature_total; /* and how many in all. */
    uint64_t *hashes;     /* By number: ascending. */
    uint32_t hash_count;
};

void corpus_init(struct corpus *corpus);
/* STATUS_INPUT names the line that is not as above. */
MUST_USE status corpus_add(struct corpus *corpus, const char *path, struct error *err);
MUST_USE status corpus_number(struct corpus *corpus, struct error *err);

#endif
