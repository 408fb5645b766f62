/* SPDX-License-Identifier: Apache-2.0 */
/* bench_data.c - files for the micro-benchmarks, made from a seed.
 *
 * The files look like those of the analyses as far as a scanner cares: how many columns, how long
 * the fields, how often quotes. Text is written by hand rather than formatted, because making the
 * data must not take longer than measuring it, also when instructions are counted.
 */
#include "micro.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"

enum { RECORD_BYTES_MAX = 2048, ID_BYTES = 7 };

static const char *const headers[MICRO_FILES] = {
    [MICRO_RATINGS] = "userId,movieId,rating,timestamp",
    [MICRO_TRANSACTIONS] = "transaction_id,store_id,payment_method_id,voucher_id,user_id,"
                           "original_amount,discount_applied,final_amount,created_at",
    [MICRO_USERS] = "user_id,gender,birthdate,registered_at",
    [MICRO_COMMENTS] = "type,id,subreddit.id,subreddit.name,subreddit.nsfw,created_utc,permalink,"
                       "body,sentiment,score",
};

void micro_require(status code, const struct error *err)
{
    if (code == STATUS_OK) return;
    (void)fprintf(stderr, "bench_engine: %s\n", err->text);
    exit(1);
}

void *micro_need(void *block)
{
    if (block != NULL) return block;
    (void)fprintf(stderr, "bench_engine: out of memory\n");
    exit(1);
}

/* Where the next byte goes; records are shorter than the room that is left at its start. */
struct pen {
    char *at;
    struct random random;
    uint64_t record;
};

static uint32_t pick(struct pen *pen, uint32_t bound)
{
    return random_below(&pen->random, bound);
}

static void put_string(struct pen *pen, const char *string)
{
    size_t size = strlen(string);
    memcpy(pen->at, string, size);
    pen->at += size;
}

/* With zeros up to `width`. */
static void put_number(struct pen *pen, uint64_t number, uint32_t width)
{
    char digits[20];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 || count < width);
    while (count > 0) {
        *pen->at++ = digits[--count];
    }
}

static void put_digits(struct pen *pen, uint64_t number, uint32_t base, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        *pen->at++ = "0123456789abcdefghijklmnopqrstuvwxyz"[number % base];
        number /= base;
    }
}

static void put_date(struct pen *pen, uint32_t first_year, uint32_t years)
{
    put_number(pen, first_year + pick(pen, years), 4);
    *pen->at++ = '-';
    put_number(pen, 1 + pick(pen, 12), 2);
    *pen->at++ = '-';
    put_number(pen, 1 + pick(pen, 28), 2);
}

static void put_time(struct pen *pen)
{
    *pen->at++ = ' ';
    put_number(pen, pick(pen, 24), 2);
    *pen->at++ = ':';
    put_number(pen, pick(pen, 60), 2);
    *pen->at++ = ':';
    put_number(pen, pick(pen, 60), 2);
}

static void put_rating(struct pen *pen)
{
    put_number(pen, 1 + pen->record / 100, 1);
    *pen->at++ = ',';
    put_number(pen, 1 + pick(pen, 1u << (4 + pick(pen, 14))), 1);
    *pen->at++ = ',';
    put_number(pen, pick(pen, 5), 1);
    put_string(pen, pick(pen, 2) == 0 ? ".5," : ".0,");
    put_number(pen, 850000000 + pick(pen, 600000000), 1);
    *pen->at++ = '\n';
}

static void put_transaction(struct pen *pen)
{
    static const uint32_t groups[] = {8, 4, 4, 4, 12};
    for (uint32_t i = 0; i < 5; i++) {
        if (i > 0) *pen->at++ = '-';
        put_digits(pen, random_u64(&pen->random), 16, groups[i]);
    }
    *pen->at++ = ',';
    put_number(pen, 1 + pick(pen, 10), 1);
    *pen->at++ = ',';
    put_number(pen, 1 + pick(pen, 5), 1);
    put_string(pen, ",,");
    if (pick(pen, 2) == 0) {
        put_number(pen, 1 + pick(pen, 1000000), 1);
        put_string(pen, ".0");
    }
    *pen->at++ = ',';
    uint32_t amount = 10 + pick(pen, 110);
    const char *fraction = pick(pen, 2) == 0 ? ".5" : ".0";
    put_number(pen, amount, 1);
    put_string(pen, fraction);
    put_string(pen, ",0.0,");
    put_number(pen, amount, 1);
    put_string(pen, fraction);
    *pen->at++ = ',';
    put_date(pen, 2023, 3);
    put_time(pen);
    *pen->at++ = '\n';
}

static void put_user(struct pen *pen)
{
    put_number(pen, pen->record + 1, 1);
    put_string(pen, pick(pen, 2) == 0 ? ",male," : ",female,");
    put_date(pen, 1950, 60);
    *pen->at++ = ',';
    put_date(pen, 2023, 3);
    put_time(pen);
    *pen->at++ = '\n';
}

/* In quotes; other quotes and lines now and then. */
static void put_body(struct pen *pen)
{
    static const char *const words[] = {
        "the",  "a",      "my",    "is",    "this",  "who",   "never",  "always",   "brain",
        "boss", "family", "sleep", "taxes", "song",  "every", "really", "just",     "forgets",
        "and",  "to",     "great", "code",  "phone", "at",    "judge",  "internet", "apparently"};
    enum { WORDS = sizeof words / sizeof words[0] };
    *pen->at++ = '"';
    for (uint32_t left = 8 + pick(pen, 40); left > 0; left--) {
        uint32_t chance = pick(pen, 1000);
        put_string(pen, chance == 0 ? "student" : words[pick(pen, WORDS)]);
        if (chance < 60) *pen->at++ = ',';
        if (chance >= 980) put_string(pen, chance >= 990 ? "\"\"" : ".\n");
        *pen->at++ = ' ';
    }
    *pen->at++ = '"';
}

static void put_comment(struct pen *pen)
{
    put_string(pen, "comment,");
    put_digits(pen, random_u64(&pen->random), 36, ID_BYTES);
    put_string(pen, ",2m3ir,me_irl,False,");
    put_number(pen, 1500000000 + pick(pen, 140000000), 1);
    put_string(pen, ",https://old.reddit.com/r/me_irl/comments/");
    put_digits(pen, pick(pen, 200000), 36, 6);
    put_string(pen, "/me_irl/");
    put_digits(pen, random_u64(&pen->random), 36, ID_BYTES);
    put_string(pen, "/,");
    uint32_t kind = pick(pen, 10);
    if (kind == 0) put_string(pen, "[deleted]");
    if (kind == 1 || kind == 2) put_string(pen, "same here every single day");
    if (kind > 2) put_body(pen);
    *pen->at++ = ',';
    if (kind != 0) {
        put_string(pen, pick(pen, 3) == 0 ? "-0." : "0.");
        put_number(pen, pick(pen, 10000), 4);
    }
    *pen->at++ = ',';
    put_number(pen, pick(pen, 3000), 1);
    *pen->at++ = '\n';
}

static void (*const put_record[MICRO_FILES])(struct pen *pen) = {
    [MICRO_RATINGS] = put_rating,
    [MICRO_TRANSACTIONS] = put_transaction,
    [MICRO_USERS] = put_user,
    [MICRO_COMMENTS] = put_comment,
};

uint32_t micro_file_columns(enum micro_file file)
{
    uint32_t count = 1;
    for (const char *at = headers[file]; *at != '\0'; at++) {
        count += *at == ',';
    }
    return count;
}

uint32_t micro_file_column(enum micro_file file, struct text name)
{
    uint32_t column = 0;
    for (const char *at = headers[file];; column++) {
        size_t size = strcspn(at, ",");
        if (text_equal(name, (struct text){at, (uint32_t)size})) return column;
        at += size;
        if (*at++ == '\0') break;
    }
    (void)fprintf(stderr, "bench_engine: no column %.*s\n", TEXT_ARGS(name));
    exit(1);
}

struct micro_data micro_data_make(enum micro_file file, size_t size, struct arena *arena)
{
    char *bytes = micro_need(arena_alloc(arena, size + RECORD_BYTES_MAX, 64));
    struct pen pen = {.at = bytes, .random = {1 + (uint64_t)file}};
    size_t chunk_limit = size / MICRO_CHUNK_BYTES + 2;
    struct micro_data data = {
        .chunks = micro_need(arena_array(arena, struct chunk, chunk_limit)),
    };
    const char *start = bytes;
    while ((size_t)(pen.at - bytes) < size) {
        put_record[file](&pen);
        pen.record++;
        bool is_last = (size_t)(pen.at - bytes) >= size;
        if (!is_last && (size_t)(pen.at - start) < MICRO_CHUNK_BYTES) continue;
        data.chunks[data.chunk_count++] = (struct chunk){
            .bytes = start,
            .size = (size_t)(pen.at - start),
            .file_columns = micro_file_columns(file),
            .offset = (uint64_t)(start - bytes),
        };
        start = pen.at;
    }
    data.size = (size_t)(pen.at - bytes);
    return data;
}
