/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_train.c - makes the model of sentiment(), and measures one.
 *
 *     sentiment_train train MODEL FILE=COST...     labelled texts in, a model out
 *     sentiment_train score MODEL FILE...          how often the model is right about labelled
 * texts
 *
 * tools/sentiment_build.py calls it with the public data sets: docs/reference/sentiment.md.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/exec/expr/sentiment.h"
#include "engine/file/file.h"
#include "sentiment_corpus.h"
#include "sentiment_fit.h"
#include "sentiment_pack.h"

static status usage(struct error *err)
{
    return error_set(err, STATUS_USAGE,
                     "usage: sentiment_train train MODEL FILE=COST[*]...\n"
                     "       sentiment_train score MODEL FILE...");
}

static status write_file(const char *path, const struct buf *bytes, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return error_set(err, STATUS_IO, "cannot write %s", path);
    status result = file_write(fd, path, bytes->bytes, bytes->size, NULL, err);
    if (close(fd) != 0 && result == STATUS_OK) {
        result = error_set(err, STATUS_IO, "cannot write %s", path);
    }
    return result;
}

static status read_files(struct corpus *corpus, char *const *files, uint32_t count,
                         struct fit_options *options, struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        char *equals = strrchr(files[i], '=');
        if (equals == NULL || i == CORPUS_FILES_MAX) return usage(err);
        *equals = '\0';
        char *rest;
        options->costs[i] = strtod(equals + 1, &rest);
        options->is_by_size[i] = strcmp(rest, "*") == 0;
        bool is_cost = options->costs[i] > 0.0 && (*rest == '\0' || options->is_by_size[i]);
        if (!is_cost) return usage(err);
        TRY(corpus_add(corpus, files[i], err));
    }
    return corpus_number(corpus, err);
}

static status fit_model(struct corpus *corpus, const struct fit_options *options, struct buf *out,
                        struct error *err)
{
    double *weights;
    TRY(fit_weights(corpus, options, &weights, err));
    return pack_model(corpus, weights, SENTIMENT_BUCKETS_MAX, out, err);
}

static status train(const char *model_path, char *const *files, uint32_t count, struct error *err)
{
    struct fit_options options = {
        .balance = 0.25,
        .neutral_count = 0.5,
        .centring = 0.6,
        .smoothing = 1.0,
        .epochs = 12,
        .seed = 1,
    };
    struct corpus corpus;
    struct buf model = {0};
    corpus_init(&corpus);
    TRY(read_files(&corpus, files, count, &options, err));
    (void)fprintf(stderr, "%u texts, %u features\n", corpus.example_count, corpus.hash_count);
    status result = fit_model(&corpus, &options, &model, err);
    if (result == STATUS_OK) result = write_file(model_path, &model, err);
    buf_done(&model);
    arena_done(&corpus.arena);
    return result;
}

static void score_file(const struct sentiment_model *model, const struct corpus *corpus,
                       const char *name)
{
    struct sentiment_scratch scratch = {0};
    uint32_t labelled = 0;
    uint32_t right = 0;
    uint32_t positive = 0;
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        const struct labelled_text *example = &corpus->examples[i];
        bool is_kind = sentiment_score(model, &scratch, example->text).total >= 0;
        positive += is_kind;
        if (example->label == LABEL_NEUTRAL) continue;
        labelled++;
        right += is_kind == (example->label == LABEL_POSITIVE);
    }
    double all = corpus->example_count;
    (void)printf("%s: %u texts, %.2f %% positive", name, corpus->example_count,
                 100.0 * positive / all);
    if (labelled > 0) (void)printf(", %.2f %% right", 100.0 * right / labelled);
    (void)printf("\n");
}

static status score(const char *model_path, char *const *files, uint32_t count, struct error *err)
{
    struct arena arena;
    struct text bytes;
    struct sentiment_model model;
    arena_init(&arena, NULL);
    TRY(file_read_whole(model_path, SENTIMENT_FILE_MAX, &arena, &bytes, err));
    TRY(sentiment_model_read(bytes, &model, err));
    for (uint32_t i = 0; i < count; i++) {
        struct corpus corpus;
        corpus_init(&corpus);
        TRY(corpus_add(&corpus, files[i], err));
        score_file(&model, &corpus, files[i]);
        arena_done(&corpus.arena);
    }
    arena_done(&arena);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct error err = {.code = STATUS_OK};
    status result;
    if (argc >= 4 && strcmp(argv[1], "train") == 0) {
        result = train(argv[2], argv + 3, (uint32_t)(argc - 3), &err);
    } else if (argc >= 4 && strcmp(argv[1], "score") == 0) {
        result = score(argv[2], argv + 3, (uint32_t)(argc - 3), &err);
    } else {
        result = usage(&err);
    }
    if (result != STATUS_OK) (void)fprintf(stderr, "sentiment_train: %s\n", err.text);
    return result == STATUS_OK ? 0 : 1;
}
