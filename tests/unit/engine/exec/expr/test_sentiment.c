/* SPDX-License-Identifier: Apache-2.0 */
/* test_sentiment.c - scores are those of a plain reading of the rules; damaged models are refused.
 *
 * Method: texts made of everything the rules speak of are scored by the kernel and by a model that
 * goes byte by byte, with tables of its own making and the one in the program. The vectors' scores
 * come from a third implementation (tests/oracle/sentiment.py). Every byte of a model file is
 * changed once, and the file cut at every length.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "engine/base/random.h"
#include "engine/exec/expr/sentiment.h"
#include "engine/file/file.h"

enum { TEXT_MAX = 1 << 16, SMALL_BUCKETS = 3 };

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

/* --- The rules, byte by byte. --- */

struct naive_sentiment {
    const struct sentiment_model *model;
    bool *seen; /* By slot. */
    bool has_before;
    uint64_t before;
    struct sentiment_score score;
};

static bool is_word_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

static uint64_t naive_mix(uint64_t x)
{
    for (int i = 0; i < 2; i++) {
        x ^= x >> 32;
        x *= UINT64_C(0xd6e8feb86659fd93);
    }
    return x ^ x >> 32;
}

static void naive_take(struct naive_sentiment *naive, uint64_t feature)
{
    uint64_t bucket = ((feature >> 32) * naive->model->bucket_count) >> 32;
    uint32_t fingerprint = (uint32_t)(((feature >> 8 & 0xffff) * 1023) >> 16) + 1;
    for (uint64_t i = 4 * bucket; i < 4 * bucket + 4; i++) {
        uint32_t slot = naive->model->buckets[2 * i] | (uint32_t)naive->model->buckets[2 * i + 1]
                                                           << 8;
        if (slot >> 6 != fingerprint || naive->seen[i]) continue;
        naive->seen[i] = true;
        int64_t weight = (int64_t)((slot & 31) * (slot & 31));
        naive->score.magnitude += weight;
        naive->score.total += (slot & 32) != 0 ? -weight : weight;
    }
}

static uint64_t naive_hash(const unsigned char *word, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t start = 0; start < size; start += 8) {
        uint64_t piece = 0;
        for (size_t i = start; i < size && i < start + 8; i++) {
            unsigned char c = word[i];
            if (c >= 'A' && c <= 'Z') c = (unsigned char)(c + 'a' - 'A');
            piece |= (uint64_t)c << (8 * (i - start));
        }
        hash = (hash ^ piece) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return naive_mix(hash);
}

static void naive_word(struct naive_sentiment *naive, const unsigned char *word, size_t size)
{
    uint64_t hash = naive_hash(word, size);
    naive_take(naive, hash);
    if (naive->has_before) {
        naive_take(naive, naive_mix(naive->before * UINT64_C(0x9e3779b97f4a7c15) + hash));
    }
    naive->has_before = true;
    naive->before = hash;
}

static size_t word_size(const unsigned char *bytes, size_t at, size_t size)
{
    size_t end = at;
    while (end < size && is_word_byte(bytes[end])) {
        end++;
    }
    return end - at;
}

/* Where the text continues behind the token that begins at `at`. */
static size_t naive_step(struct naive_sentiment *naive, const unsigned char *bytes, size_t at,
                         size_t size)
{
    size_t length = word_size(bytes, at, size);
    size_t end = at + length;
    if (length > 0) {
        bool negates = (bytes[end - 1] == 'n' || bytes[end - 1] == 'N') && end + 1 < size &&
                       bytes[end] == '\'' && (bytes[end + 1] == 't' || bytes[end + 1] == 'T') &&
                       word_size(bytes, end + 1, size) == 1;
        if (!negates || length > 1) naive_word(naive, bytes + at, negates ? length - 1 : length);
        if (negates) naive_word(naive, (const unsigned char *)"n't", 3);
        return negates ? end + 2 : end;
    }
    if (bytes[at] == '\'') {
        length = word_size(bytes, at + 1, size);
        if (length != 1 && length != 2) return at + 1;
        naive_word(naive, bytes + at, length + 1);
        return at + 1 + length;
    }
    if (memchr(" \t\n\r`/\"-", bytes[at], 8) != NULL) return at + 1;
    naive->has_before = false;
    if (bytes[at] == '!' || bytes[at] == '?') naive_take(naive, naive_hash(bytes + at, 1));
    if (bytes[at] != '<') return at + 1;
    for (end = at + 1; end < size && end < at + 256 && bytes[end] != '<'; end++) {
        if (bytes[end] == '>') return end + 1;
    }
    return at + 1;
}

static struct sentiment_score naive_score(const struct sentiment_model *model, struct text text)
{
    bool *seen = calloc((size_t)model->bucket_count * 4, sizeof *seen);
    assert_non_null(seen);
    struct naive_sentiment naive = {.model = model, .seen = seen};
    for (size_t at = 0; at < text.size;) {
        at = naive_step(&naive, (const unsigned char *)text.bytes, at, text.size);
    }
    free(seen);
    return naive.score;
}

/* The copy has exactly the text's size, so that a read beyond its end is noticed. */
static void check_text(const struct sentiment_model *model, struct sentiment_scratch *scratch,
                       struct text text)
{
    char *copy = malloc(text.size > 0 ? text.size : 1);
    assert_non_null(copy);
    if (text.size > 0) memcpy(copy, text.bytes, text.size);
    struct text exact = {copy, text.size};
    struct sentiment_score expected = naive_score(model, exact);
    struct sentiment_score score = sentiment_score(model, scratch, exact);
    assert_true(score.total == expected.total);
    assert_true(score.magnitude == expected.magnitude);
    double polarity = sentiment_polarity(score);
    assert_true(polarity >= -1.0 && polarity <= 1.0);
    free(copy);
}

/* --- Model files. --- */

/* A full table of random slots: nearly every text has much in it. */
static void make_file(struct buf *out, uint32_t bucket_count, uint64_t seed)
{
    struct random random = {seed};
    buf_put_string(out, SENTIMENT_MAGIC);
    buf_put_u32(out, SENTIMENT_VERSION);
    buf_put_u32(out, bucket_count);
    buf_put_u32(out, bucket_count * 4);
    buf_put_u32(out, 0);
    buf_put_u64(out, 0);
    for (uint32_t i = 0; i < bucket_count; i++) {
        uint64_t bucket = 0;
        uint64_t first = 1 + random_below(&random, 1000);
        for (uint32_t j = 0; j < 4; j++) {
            uint64_t slot = (first + j) << 6 | random_below(&random, 2) << 5;
            bucket |= (slot | (1 + random_below(&random, 31))) << (16 * j);
        }
        buf_put_u64(out, bucket);
    }
}

static void seal(struct buf *file)
{
    uint64_t sum =
        sentiment_checksum((struct text){(const char *)file->bytes, (uint32_t)file->size});
    for (uint32_t i = 0; i < 8; i++) {
        file->bytes[SENTIMENT_CHECKSUM_OFFSET + i] = (unsigned char)(sum >> (8 * i));
    }
}

static status read_model(const struct buf *file, size_t size, struct sentiment_model *out,
                         struct error *err)
{
    return sentiment_model_read((struct text){(const char *)file->bytes, (uint32_t)size}, out, err);
}

static void the_model_in_the_program_is_the_file(void **state)
{
    (void)state;
    struct text file;
    struct error err;
    struct sentiment_model model;
    assert_int_equal(file_read_whole(MILLRACE_SOURCE_DIR "/src/engine/exec/expr/sentiment.model",
                                     SENTIMENT_FILE_MAX, &arena, &file, &err),
                     STATUS_OK);
    assert_int_equal(sentiment_model_read(file, &model, &err), STATUS_OK);
    assert_int_equal(model.bucket_count, sentiment_builtin.bucket_count);
    assert_true(model.checksum == sentiment_builtin.checksum);
    assert_memory_equal(model.buckets, sentiment_builtin.buckets,
                        (size_t)model.bucket_count * SENTIMENT_BUCKET_BYTES);
}

static void a_model_that_is_cut_or_changed_anywhere_is_refused(void **state)
{
    (void)state;
    struct buf file = {0};
    struct sentiment_model model;
    struct error err;
    make_file(&file, SMALL_BUCKETS, 5);
    seal(&file);
    assert_int_equal(read_model(&file, file.size, &model, &err), STATUS_OK);
    for (size_t size = 0; size < file.size; size++) {
        assert_int_equal(read_model(&file, size, &model, &err), STATUS_INPUT);
        assert_true(strlen(err.text) > 0);
    }
    for (size_t i = 0; i < file.size; i++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            file.bytes[i] ^= (unsigned char)(1 << bit);
            assert_int_equal(read_model(&file, file.size, &model, &err), STATUS_INPUT);
            file.bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    buf_put_u8(&file, 0);
    assert_int_equal(read_model(&file, file.size, &model, &err), STATUS_INPUT);
    buf_done(&file);
}

/* Changes one slot or count and seals the file anew: what the checksum does not tell. */
static void check_refused(size_t offset, uint32_t value, const char *reason)
{
    struct buf file = {0};
    struct sentiment_model model;
    struct error err;
    make_file(&file, SMALL_BUCKETS, 5);
    file.bytes[offset] = (unsigned char)value;
    file.bytes[offset + 1] = (unsigned char)(value >> 8);
    seal(&file);
    assert_int_equal(read_model(&file, file.size, &model, &err), STATUS_INPUT);
    assert_non_null(strstr(err.text, reason));
    buf_done(&file);
}

static void a_model_that_says_nonsense_is_refused_with_a_reason(void **state)
{
    (void)state;
    check_refused(0, 'x', "not a sentiment model");
    check_refused(8, 2, "version 2");
    check_refused(12, 0, "not what its header says");
    check_refused(12, SMALL_BUCKETS + 1, "not what its header says");
    check_refused(12, UINT16_MAX, "not what its header says");
    check_refused(16, 7, "says that it has 7");
    check_refused(20, 1, "not what its header says");
    check_refused(32, 0, "bucket 0");         /* A free slot before a used one. */
    check_refused(34, 5, "bucket 0");         /* No fingerprint. */
    check_refused(38, 777 << 6, "bucket 0");  /* No level. */
    check_refused(46, 0, "says that it has"); /* The last of a bucket may be free. */
    struct buf file = {0};
    struct sentiment_model model;
    struct error err;
    make_file(&file, 1, 5);
    memcpy(file.bytes + 34, file.bytes + 32, 2); /* A fingerprint twice. */
    seal(&file);
    assert_int_equal(read_model(&file, file.size, &model, &err), STATUS_INPUT);
    buf_done(&file);
}

static void the_largest_model_is_read_and_no_larger_one(void **state)
{
    (void)state;
    for (uint32_t more = 0; more < 2; more++) {
        struct buf file = {0};
        struct sentiment_model model;
        struct error err;
        make_file(&file, SENTIMENT_BUCKETS_MAX + more, 1);
        seal(&file);
        assert_int_equal(read_model(&file, file.size, &model, &err),
                         more == 0 ? STATUS_OK : STATUS_INPUT);
        buf_done(&file);
    }
}

/* --- Texts. --- */

static void vectors_have_their_scores(void **state)
{
    (void)state;
    struct text file;
    struct error err;
    struct sentiment_scratch scratch = {0};
    assert_int_equal(file_read_whole(MILLRACE_SOURCE_DIR
                                     "/tests/unit/engine/exec/expr/sentiment_vectors.tsv",
                                     1 << 20, &arena, &file, &err),
                     STATUS_OK);
    uint32_t count = 0;
    const char *at = file.bytes; /* A zero follows the file. */
    while (*at != '\0') {
        char *next;
        long long total = strtoll(at, &next, 10);
        long long magnitude = strtoll(next, &next, 10);
        assert_int_equal(*next, '\t');
        static char text[TEXT_MAX];
        uint32_t size = 0;
        for (at = next + 1; *at != '\n'; size++) {
            assert_true(*at != '\0' && size < TEXT_MAX);
            unsigned byte = 0;
            bool is_escape = at[0] == '\\' && at[1] == 'x' && sscanf(at + 2, "%2x", &byte) == 1;
            text[size] = is_escape ? (char)byte : *at;
            at += is_escape ? 4 : 1;
        }
        at++;
        struct sentiment_score score =
            sentiment_score(&sentiment_builtin, &scratch, (struct text){text, size});
        assert_true(score.total == total && score.magnitude == magnitude);
        check_text(&sentiment_builtin, &scratch, (struct text){text, size});
        count++;
    }
    assert_true(count > 50);
}

static uint32_t random_text(struct random *random, char *out, uint32_t limit)
{
    static const char *const pieces[] = {
        "good",     "bad",      "not",         "n't",
        "isn't",    "N'T",      "'s",          "'ve",
        "'til",     "'",        "<br>",        "<",
        ">",        "</a b c>", "eightbyt",    "sixteen bytes ab",
        "!",        "?",        ".",           ", ",
        "-",        "/",        "\"",          "`",
        "\t",       "\n",       "\r",          "Great",
        "x",        "n",        "'t",          "7",
        "\xc3\xa9", "\xff",     "\x80",        "@",
        "[",        "{",        "wonderfully", "abcdefghijklmnopqrstuvwxyz"};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    uint32_t size = 0;
    uint32_t wanted = random_below(random, limit - 40);
    while (size < wanted) {
        if (random_below(random, 8) == 0) {
            out[size++] = (char)random_below(random, 256);
            continue;
        }
        const char *piece = pieces[random_below(random, PIECES)];
        memcpy(out + size, piece, strlen(piece));
        size += (uint32_t)strlen(piece);
        if (random_below(random, 2) == 0) out[size++] = ' ';
    }
    return size;
}

static void random_texts_agree_with_the_rules(void **state)
{
    (void)state;
    static char text[TEXT_MAX];
    struct buf file = {0};
    struct sentiment_model small;
    struct error err;
    struct random random = {3};
    make_file(&file, 100, 9);
    seal(&file);
    assert_int_equal(read_model(&file, file.size, &small, &err), STATUS_OK);
    /* One scratch for all: what a text leaves behind would show in the next. */
    struct sentiment_scratch scratch = {0};
    struct sentiment_scratch others = {0};
    for (int round = 0; round < 4000; round++) {
        uint32_t limit = round % 100 == 0 ? 20000 : round % 10 == 0 ? 2000 : 120;
        struct text made = {text, random_text(&random, text, limit)};
        check_text(&sentiment_builtin, &scratch, made);
        check_text(&small, &others, made);
    }
    buf_done(&file);
}

/* Every pair of bytes, between words: all classes next to each other, and at both ends. */
static void every_two_bytes_agree_with_the_rules(void **state)
{
    (void)state;
    struct sentiment_scratch scratch = {0};
    for (uint32_t first = 0; first < 256; first++) {
        for (uint32_t second = 0; second < 256; second++) {
            char text[] = {(char)first, (char)second, 'g', 'o',         'o',         'd',
                           (char)first, (char)second, 'b', (char)first, (char)second};
            check_text(&sentiment_builtin, &scratch, (struct text){text, sizeof text});
        }
    }
}

/* Tags and words of every size around the limits and the pieces of eight. */
static void every_size_agrees_with_the_rules(void **state)
{
    (void)state;
    static char text[1000];
    struct sentiment_scratch scratch = {0};
    for (uint32_t size = 0; size < 300; size++) {
        uint32_t end = (uint32_t)snprintf(text, sizeof text, "bad <%0*d good> good", (int)size, 0);
        check_text(&sentiment_builtin, &scratch, (struct text){text, end});
        memset(text, 'a', size);
        memcpy(text + size, "n't good", 8);
        for (uint32_t cut = size; cut <= size + 8; cut++) {
            check_text(&sentiment_builtin, &scratch, (struct text){text, cut});
        }
    }
}

static void texts_without_evidence_have_no_polarity(void **state)
{
    (void)state;
    static const char *const texts[] = {"", " ", "...", "<p></p>", "- - -", "'''", "\n\n", "();:"};
    struct sentiment_scratch scratch = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sentiment_score score =
            sentiment_score(&sentiment_builtin, &scratch, text_of(texts[i]));
        assert_int_equal(score.magnitude, 0);
        assert_true(sentiment_polarity(score) == 0.0);
    }
    assert_int_equal(sentiment_score(&sentiment_builtin, &scratch, (struct text){0}).magnitude, 0);
}

/* Ten million bytes that could be slow: each must be passed over about once. */
static void long_texts_are_read_in_one_pass(void **state)
{
    (void)state;
    enum { LONG = 10 * 1000 * 1000 };
    static const char *const patterns[] = {"x", "<", "<a ", "'", "n't", "!", "\xff", "good bad "};
    char *text = malloc(LONG);
    assert_non_null(text);
    struct sentiment_scratch scratch = {0};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        size_t size = strlen(patterns[i]);
        for (size_t at = 0; at < LONG; at++) {
            text[at] = patterns[i][at % size];
        }
        check_text(&sentiment_builtin, &scratch, (struct text){text, LONG});
    }
    free(text);
}

static void labels_have_a_band_around_zero(void **state)
{
    (void)state;
    static const struct {
        double polarity;
        double band;
        const char *label;
    } cases[] = {{0.0, -1.0, "positive"}, {1.0, -1.0, "positive"},  {-0.1, -1.0, "negative"},
                 {0.0, 0.0, "neutral"},   {0.25, 0.25, "neutral"},  {-0.25, 0.25, "neutral"},
                 {0.3, 0.25, "positive"}, {-0.3, 0.25, "negative"}, {-1.0, 1.0, "neutral"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(
            text_equal(sentiment_label(cases[i].polarity, cases[i].band), text_of(cases[i].label)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_in_the_program_is_the_file),
        cmocka_unit_test(a_model_that_is_cut_or_changed_anywhere_is_refused),
        cmocka_unit_test(a_model_that_says_nonsense_is_refused_with_a_reason),
        cmocka_unit_test(the_largest_model_is_read_and_no_larger_one),
        cmocka_unit_test(vectors_have_their_scores),
        cmocka_unit_test(random_texts_agree_with_the_rules),
        cmocka_unit_test(every_two_bytes_agree_with_the_rules),
        cmocka_unit_test(every_size_agrees_with_the_rules),
        cmocka_unit_test(texts_without_evidence_have_no_polarity),
        cmocka_unit_test(long_texts_are_read_in_one_pass),
        cmocka_unit_test(labels_have_a_band_around_zero),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
