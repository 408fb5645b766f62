/* SPDX-License-Identifier: Apache-2.0 */
/* bench_sentiment.c - how fast sentiment() reads, on one core.
 *
 *     bench_sentiment [FILE]
 *
 * FILE has one text per line; without it, texts of a few hundred bytes are made from a seed out of
 * words as long as English ones are. Prints the best of some rounds, in MB (10^6 bytes) per second
 * of processor time, so that what else the machine does matters little.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/random.h"
#include "engine/exec/expr/sentiment.h"
#include "engine/file/file.h"

enum { MADE_BYTES = 8 << 20, FILE_LIMIT = 1 << 30, ROUNDS = 15 };

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time); /* It is always there. */
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Words of few kinds are frequent, as in any language: the smaller of two draws, twice. */
static struct text make_texts(struct arena *arena)
{
    static const char *const words[] = {
        "the", "a",    "of",   "and",  "to",   "his",   "is",     "in",    "with",      "her",
        "he",  "when", "life", "not",  "film", "young", "world",  "love",  "family",    "story",
        "war", "good", "bad",  "best", "dull", "never", "lovely", "awful", "wonderful", "boring"};
    enum { WORDS = sizeof words / sizeof words[0] };
    char *bytes = arena_alloc(arena, MADE_BYTES, 1);
    struct random random = {1};
    uint32_t size = 0;
    while (bytes != NULL && size + 40 < MADE_BYTES) {
        uint32_t first = random_below(&random, WORDS);
        uint32_t second = random_below(&random, WORDS);
        const char *word = words[first < second ? first : second];
        size_t length = strlen(word);
        memcpy(bytes + size, word, length);
        size += (uint32_t)length;
        /* Half of all words are unknown ones. */
        if (random_below(&random, 2) == 0) {
            for (uint32_t left = random_below(&random, 6); left > 0; left--) {
                bytes[size++] = (char)('a' + random_below(&random, 26));
            }
        }
        uint32_t end = random_below(&random, 60);
        if (end < 5) bytes[size++] = end < 4 ? ',' : '.';
        bytes[size++] = end == 5 ? '\n' : ' ';
    }
    return (struct text){bytes, size};
}

static int64_t score_lines(struct text texts)
{
    struct sentiment_scratch scratch = {0};
    int64_t sum = 0;
    while (texts.size > 0) {
        const char *newline = memchr(texts.bytes, '\n', texts.size);
        uint32_t size = newline == NULL ? texts.size : (uint32_t)(newline - texts.bytes);
        sum +=
            sentiment_score(&sentiment_builtin, &scratch, (struct text){texts.bytes, size}).total;
        uint32_t used = newline == NULL ? size : size + 1;
        texts = (struct text){texts.bytes + used, texts.size - used};
    }
    return sum;
}

int main(int argc, char **argv)
{
    struct arena arena;
    struct text texts;
    struct error err;
    arena_init(&arena, NULL);
    if (argc > 1) {
        if (file_read_whole(argv[1], FILE_LIMIT, &arena, &texts, &err) != STATUS_OK) {
            (void)fprintf(stderr, "bench_sentiment: %s\n", err.text);
            return 1;
        }
    } else {
        texts = make_texts(&arena);
    }
    double best = 0.0;
    int64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        sum = score_lines(texts);
        double speed = (double)texts.size / (now() - start) / 1e6;
        if (speed > best) best = speed;
    }
    (void)printf("sentiment: %.0f MB/s on one core (%.1f MB, sum of scores %lld)\n", best,
                 (double)texts.size / 1e6, (long long)sum);
    arena_done(&arena);
    return 0;
}
