/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_fit.c - a naive-Bayes-scaled linear support vector machine, and what is done to it.
 *
 * 1. Ratio: ln of how much oftener a feature stands in kind texts than in unkind ones. Neutral
 * texts count for both sides. Its square root (with the sign) scales the feature: rare words of
 * strong opinion keep a say, and the next step need not find them.
 * 2. Classifier: squared hinge loss, no bias, solved in the dual one example at a time; neutral
 *    texts are asked for a score of 0 by squared loss. Examples have unit length. Where a file has
 *    sentences beside their own parts, what an error costs grows with the size of the text.
 * 3. Balance: a classifier that has seen long reviews only half believes in what makes a sentence
 *    kind; averaged with the ratio alone it is better at both.
 * 4. Centring: reviews speak of films kindly even while they tell what happens, so that mere
 *    descriptions come out kind. The smallest change of weights along the mean texts is sought that
 *    takes the neutral texts' mean score down and leaves the mean score of every other file.
 */
#include "sentiment_fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/random.h"

struct fit {
    struct corpus *corpus;
    const struct fit_options *options;
    double *ratios;  /* By feature: the scale of step 1. */
    double *weights; /* By feature: of scaled features first, then of features themselves. */
    double *duals;   /* By example. */
    double *lengths; /* By example: 1 / the length of the scaled vector. */
    uint32_t *order;
    double mean_counts[CORPUS_FILES_MAX]; /* By file: features of a text. */
};

/* Exact to the last bit or two, which is all the same to us, and the same everywhere: x = m * 2^e
 * with m near 1, then the series of 2 artanh((m - 1) / (m + 1)). */
static double natural_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
    memcpy(&x, &bits, sizeof x);
    if (x > 1.4142135623730951) {
        x *= 0.5;
        exponent++;
    }
    double step = (x - 1.0) / (x + 1.0);
    double square = step * step;
    double sum = 0.0;
    for (int i = 25; i >= 1; i -= 2) {
        sum = sum * square + 1.0 / i;
    }
    return 2.0 * step * sum + exponent * 0.69314718055994531;
}

static double magnitude(double x)
{
    return x < 0.0 ? -x : x;
}

static const uint32_t *features_of(const struct corpus *corpus, const struct labelled_text *example)
{
    return corpus->features + example->first;
}

/* Step 1. */
static status find_ratios(struct fit *fit, struct error *err)
{
    struct corpus *corpus = fit->corpus;
    const struct fit_options *options = fit->options;
    double *kind = arena_array(&corpus->arena, double, corpus->hash_count);
    double *unkind = arena_array(&corpus->arena, double, corpus->hash_count);
    if (kind == NULL || unkind == NULL) return error_memory(err);
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        const struct labelled_text *example = &corpus->examples[i];
        const uint32_t *features = features_of(corpus, example);
        double half = options->neutral_count / 2;
        double to_kind = example->label == LABEL_NEUTRAL ? half : example->label == LABEL_POSITIVE;
        double to_unkind =
            example->label == LABEL_NEUTRAL ? half : example->label == LABEL_NEGATIVE;
        for (uint32_t j = 0; j < example->count; j++) {
            kind[features[j]] += to_kind;
            unkind[features[j]] += to_unkind;
        }
    }
    double kind_sum = 0.0;
    double unkind_sum = 0.0;
    for (uint32_t i = 0; i < corpus->hash_count; i++) {
        kind_sum += kind[i] += options->smoothing;
        unkind_sum += unkind[i] += options->smoothing;
    }
    for (uint32_t i = 0; i < corpus->hash_count; i++) {
        double ratio = natural_log((kind[i] / kind_sum) / (unkind[i] / unkind_sum));
        fit->ratios[i] = ratio < 0.0 ? -sqrt(-ratio) : sqrt(ratio);
    }
    return STATUS_OK;
}

static void find_lengths(struct fit *fit)
{
    const struct corpus *corpus = fit->corpus;
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        const struct labelled_text *example = &corpus->examples[i];
        const uint32_t *features = features_of(corpus, example);
        double square = 0.0;
        for (uint32_t j = 0; j < example->count; j++) {
            square += fit->ratios[features[j]] * fit->ratios[features[j]];
        }
        fit->lengths[i] = square == 0.0 ? 0.0 : 1.0 / sqrt(square);
    }
}

static void find_mean_counts(struct fit *fit)
{
    const struct corpus *corpus = fit->corpus;
    double texts[CORPUS_FILES_MAX] = {0.0};
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        texts[corpus->examples[i].file] += 1.0;
        fit->mean_counts[corpus->examples[i].file] += corpus->examples[i].count;
    }
    for (uint32_t i = 0; i < corpus->file_count; i++) {
        if (texts[i] > 0.0) fit->mean_counts[i] /= texts[i];
    }
}

/* One step of dual coordinate descent: the best value of this example's variable, all else as it
 * is. The scaled example has length 1. */
static void fit_example(struct fit *fit, uint32_t index)
{
    const struct labelled_text *example = &fit->corpus->examples[index];
    const uint32_t *features = features_of(fit->corpus, example);
    double length = fit->lengths[index];
    if (length == 0.0) return;
    double score = 0.0;
    for (uint32_t j = 0; j < example->count; j++) {
        score += fit->weights[features[j]] * fit->ratios[features[j]];
    }
    score *= length;
    double side = example->label == LABEL_NEGATIVE ? -1.0 : 1.0;
    double goal = example->label == LABEL_NEUTRAL ? 0.0 : 1.0;
    double cost = fit->options->costs[example->file];
    if (fit->options->is_by_size[example->file]) {
        cost *= example->count / fit->mean_counts[example->file];
    }
    double softness = 1.0 / (2.0 * cost);
    double before = fit->duals[index];
    double slope = side * score - goal + before * softness;
    double after = before - slope / (1.0 + softness);
    if (after < 0.0 && example->label != LABEL_NEUTRAL) after = 0.0;
    if (after == before) return;
    fit->duals[index] = after;
    double change = (after - before) * side * length;
    for (uint32_t j = 0; j < example->count; j++) {
        fit->weights[features[j]] += change * fit->ratios[features[j]];
    }
}

/* Step 2. */
static void classify(struct fit *fit)
{
    uint32_t count = fit->corpus->example_count;
    struct random random = {fit->options->seed};
    for (uint32_t i = 0; i < count; i++) {
        fit->order[i] = i;
    }
    for (uint32_t epoch = 0; epoch < fit->options->epochs; epoch++) {
        for (uint32_t i = count - 1; i > 0; i--) {
            uint32_t other = random_below(&random, i + 1);
            uint32_t moved = fit->order[i];
            fit->order[i] = fit->order[other];
            fit->order[other] = moved;
        }
        for (uint32_t i = 0; i < count; i++) {
            fit_example(fit, fit->order[i]);
        }
    }
}

/* Step 3. */
static void balance(struct fit *fit)
{
    uint32_t count = fit->corpus->hash_count;
    double share = fit->options->balance;
    double mean = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        mean += magnitude(fit->weights[i]);
    }
    mean /= count;
    for (uint32_t i = 0; i < count; i++) {
        double weight = share * fit->weights[i] + (1.0 - share) * mean;
        fit->weights[i] = weight * fit->ratios[i];
    }
}

/* Solves a small system with a symmetric, positive matrix in place; the answer is the last column.
 */
enum { MEANS_MAX = CORPUS_FILES_MAX };

static void solve(double rows[MEANS_MAX][MEANS_MAX + 1], uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        double pivot = rows[i][i];
        for (uint32_t j = 0; j <= size; j++) {
            rows[i][j] = pivot == 0.0 ? 0.0 : rows[i][j] / pivot;
        }
        for (uint32_t k = 0; k < size; k++) {
            double factor = rows[k][i];
            for (uint32_t j = 0; k != i && j <= size; j++) {
                rows[k][j] -= factor * rows[i][j];
            }
        }
    }
}

static double dot(const double *a, const double *b, uint32_t count)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Which share of a file's texts has each feature. */
static status find_mean(const struct corpus *corpus, struct arena *arena, uint32_t file,
                        double **out, bool *out_is_neutral, struct error *err)
{
    double *mean = arena_array(arena, double, corpus->hash_count);
    if (mean == NULL) return error_memory(err);
    double texts = 0.0;
    *out_is_neutral = false;
    for (uint32_t i = 0; i < corpus->example_count; i++) {
        const struct labelled_text *example = &corpus->examples[i];
        const uint32_t *features = features_of(corpus, example);
        if (example->file != file) continue;
        texts += 1.0;
        if (example->label == LABEL_NEUTRAL) *out_is_neutral = true;
        for (uint32_t j = 0; j < example->count; j++) {
            mean[features[j]] += 1.0;
        }
    }
    for (uint32_t i = 0; texts > 0.0 && i < corpus->hash_count; i++) {
        mean[i] /= texts;
    }
    *out = mean;
    return STATUS_OK;
}

/* Step 4. */
static status centre(struct fit *fit, struct error *err)
{
    struct corpus *corpus = fit->corpus;
    uint32_t files = corpus->file_count;
    uint32_t count = corpus->hash_count;
    double *means[MEANS_MAX];
    double rows[MEANS_MAX][MEANS_MAX + 1] = {{0.0}};
    for (uint32_t i = 0; i < files; i++) {
        bool is_neutral;
        TRY(find_mean(corpus, &corpus->arena, i, &means[i], &is_neutral, err));
        if (is_neutral)
            rows[i][files] = -fit->options->centring * dot(means[i], fit->weights, count);
    }
    for (uint32_t i = 0; i < files; i++) {
        for (uint32_t j = 0; j < files; j++) {
            rows[i][j] = dot(means[i], means[j], count);
        }
    }
    solve(rows, files);
    for (uint32_t i = 0; i < files; i++) {
        for (uint32_t j = 0; j < count; j++) {
            fit->weights[j] += rows[i][files] * means[i][j];
        }
    }
    return STATUS_OK;
}

status fit_weights(struct corpus *corpus, const struct fit_options *options, double **out_weights,
                   struct error *err)
{
    struct arena *arena = &corpus->arena;
    struct fit fit = {
        .corpus = corpus,
        .options = options,
        .ratios = arena_array(arena, double, corpus->hash_count),
        .weights = arena_array(arena, double, corpus->hash_count),
        .duals = arena_array(arena, double, corpus->example_count),
        .lengths = arena_array(arena, double, corpus->example_count),
        .order = arena_array(arena, uint32_t, corpus->example_count),
    };
    if (fit.ratios == NULL || fit.weights == NULL || fit.duals == NULL || fit.lengths == NULL ||
        fit.order == NULL) {
        return error_memory(err);
    }
    TRY(find_ratios(&fit, err));
    find_lengths(&fit);
    find_mean_counts(&fit);
    classify(&fit);
    balance(&fit);
    TRY(centre(&fit, err));
    *out_weights = fit.weights;
    return STATUS_OK;
}
