/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_corpus.c - reading, ordering, and giving every feature a number.
 *
 * Numbers come from one big sort of all hashes: simple, and the same on every machine.
 */
#include "sentiment_corpus.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/exec/expr/sentiment_features.h"
#include "engine/file/file.h"

enum { FILE_SIZE_MAX = 1 << 30 };

void corpus_init(struct corpus *corpus)
{
    *corpus = (struct corpus){0};
    arena_init(&corpus->arena, NULL);
}

static status add_line(struct corpus *corpus, struct text line, struct error *err)
{
    static const char labels[] = {'0', '1', 'n'};
    uint32_t label = 0;
    while (line.size >= 2 && label < sizeof labels && labels[label] != line.bytes[0]) {
        label++;
    }
    if (line.size < 2 || line.bytes[1] != '\t' || label == sizeof labels) {
        return error_set(err, STATUS_INPUT, "a line must be 0, 1 or n, a tab, and a text");
    }
    struct labelled_text *examples = arena_grow(&corpus->arena, corpus->examples, corpus->example_count,
                                          &corpus->example_capacity, sizeof *corpus->examples);
    if (examples == NULL) return error_memory(err);
    corpus->examples = examples;
    struct text text = {line.bytes + 2, line.size - 2};
    examples[corpus->example_count++] = (struct labelled_text){
        .text = text,
        .order = hash_bytes(text.bytes, text.size),
        .label = (enum corpus_label)label,
        .file = corpus->file_count,
    };
    return STATUS_OK;
}

status corpus_add(struct corpus *corpus, const char *path, struct error *err)
{
    struct text file;
    if (corpus->file_count == CORPUS_FILES_MAX) {
        return error_set(err, STATUS_USAGE, "at most %d files", CORPUS_FILES_MAX);
    }
    TRY(file_read_whole(path, FILE_SIZE_MAX, &corpus->arena, &file, err));
    uint32_t number = 1;
    while (file.size > 0) {
        const char *newline = memchr(file.bytes, '\n', file.size);
        struct text line = {file.bytes,
                            newline == NULL ? file.size : (uint32_t)(newline - file.bytes)};
        if (add_line(corpus, line, err) != STATUS_OK) {
            return error_prefix(err, "%s:%u", path, number);
        }
        uint32_t used = newline == NULL ? line.size : line.size + 1;
        file = (struct text){file.bytes + used, file.size - used};
        number++;
    }
    corpus->file_count++;
    return STATUS_OK;
}

static int compare_examples(const void *a, const void *b)
{
    const struct labelled_text *left = a;
    const struct labelled_text *right = b;
    if (left->order != right->order) return left->order < right->order ? -1 : 1;
    int order = text_compare(left->text, right->text);
    if (order != 0) return order;
    if (left->label != right->label) return left->label < right->label ? -1 : 1;
    return (left->file > right->file) - (left->file < right->file);
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static size_t keep_distinct(uint64_t *sorted, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || sorted[kept - 1] != sorted[i]) sorted[kept++] = sorted[i];
    }
    return kept;
}

static size_t read_features(struct text text, uint64_t *out)
{
    struct feature_reader reader = feature_reader_of(text);
    uint64_t *next = out;
    uint32_t count;
    while ((count = features_next(&reader, next)) > 0) {
        next += count;
    }
    qsort(out, (size_t)(next - out), sizeof *out, compare_hashes);
    return keep_distinct(out, (size_t)(next - out));
}

static uint32_t number_of(const struct corpus *corpus, uint64_t hash)
{
    uint32_t low = 0;
    uint32_t high = corpus->hash_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (corpus->hashes[middle] < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

status corpus_number(struct corpus *corpus, struct error *err)
{
    size_t byte_count = 0;
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        byte_count += corpus->examples[i].text.size;
    }
    if (corpus->example_count == 0) return error_set(err, STATUS_USAGE, "no texts to learn from");
    qsort(corpus->examples, corpus->example_count, sizeof *corpus->examples, compare_examples);
    /* Every byte gives at most two features: a word of one byte, and its pair. */
    uint64_t *found = arena_array(&corpus->arena, uint64_t, 2 * byte_count + FEATURES_MAX);
    if (found == NULL) return error_memory(err);
    size_t total = 0;
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        struct labelled_text *example = &corpus->examples[i];
        example->first = total;
        example->count = (uint32_t)read_features(example->text, found + total);
        total += example->count;
    }
    corpus->hashes = arena_array(&corpus->arena, uint64_t, total + 1);
    corpus->features = arena_array(&corpus->arena, uint32_t, total + 1);
    if (corpus->hashes == NULL || corpus->features == NULL) return error_memory(err);
    memcpy(corpus->hashes, found, total * sizeof *found);
    qsort(corpus->hashes, total, sizeof *found, compare_hashes);
    corpus->hash_count = (uint32_t)keep_distinct(corpus->hashes, total);
    corpus->feature_total = total;
    for (size_t i = 0; i < total; i++) {
        corpus->features[i] = number_of(corpus, found[i]);
    }
    return STATUS_OK;
}
