/* SPDX-License-Identifier: Apache-2.0 */
/* gen_memes.c - posts of a meme forum and the comments under them.
 *
 * A post is a number; its id and url follow from it, so comments find their post without a table in
 * memory. Low numbers are popular and get most of the comments.
 */
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "gen/gen_dirt.h"
#include "gen/gen_put.h"
#include "gen/gen_run.h"
#include "gen/gen_words.h"
#include "gen/gen_writer.h"

enum {
    POST_COUNT = 250000,
    COMMENT_COUNT = 2850000,
    POST_ID_LETTERS = 6,
    COMMENT_ID_LETTERS = 7,
    FIRST_SECOND = 1388534400, /* 2014 */
    SPAN_SECONDS = 8 * 365 * 86400,
    STREAM_POSTS = 1,
    STREAM_COMMENTS,
    STREAM_DIRT,
};

struct memes {
    struct gen_run *run;
    uint32_t post_count;
    uint64_t post_seed;
    struct gen_writer writer;
    char *scratch; /* Owned: GEN_RECORD_BYTES, where a text is composed before it is escaped. */
};

static const struct gen_columns post_columns = {
    .required = GEN_FIELD(1) | GEN_FIELD(11),
    .numbers = GEN_FIELD(5) | GEN_FIELD(11),
    .texts = GEN_FIELD(8) | GEN_FIELD(9) | GEN_FIELD(10),
};
static const struct gen_columns comment_columns = {
    .required = GEN_FIELD(6),
    .numbers = GEN_FIELD(5) | GEN_FIELD(8) | GEN_FIELD(9),
    .texts = GEN_FIELD(6) | GEN_FIELD(7),
};

/* Different numbers give different ids: the factor has no divisor in common with 36. */
static char *put_post_id(char *at, uint64_t post)
{
    const uint64_t id_count = UINT64_C(36) * 36 * 36 * 36 * 36 * 36;
    return gen_put_base36(at, (post * UINT64_C(1190494759) + 48271) % id_count, POST_ID_LETTERS);
}

static char *put_comment_id(char *at, uint64_t comment)
{
    const uint64_t id_count = UINT64_C(36) * 36 * 36 * 36 * 36 * 36 * 36;
    return gen_put_base36(at, (comment * UINT64_C(479001599) + 69621) % id_count,
                          COMMENT_ID_LETTERS);
}

/* subreddit.id to the permalink's post, with the slash behind it. */
static char *put_place(char *at, uint64_t post, uint64_t second)
{
    bool is_main = hash_u64(post) % 5 != 0;
    at = is_main ? GEN_PUT(at, ",2m31r,meirl,False,") : GEN_PUT(at, ",2m3ir,me_irl,False,");
    at = gen_put_u64(at, second);
    at = is_main ? GEN_PUT(at, ",https://old.reddit.com/r/meirl/comments/")
                 : GEN_PUT(at, ",https://old.reddit.com/r/me_irl/comments/");
    at = put_post_id(at, post);
    return is_main ? GEN_PUT(at, "/meirl/") : GEN_PUT(at, "/me_irl/");
}

/* domain and url; the same picture is posted again now and then. */
static char *put_picture(char *at, const struct memes *memes, uint32_t post, struct random *random)
{
    uint32_t picture = post >= 17 && gen_chance(random, 60) ? post - 17 : post;
    uint64_t bits = hash_combine(memes->post_seed, picture);
    if (bits % 8 < 6) {
        at = GEN_PUT(at, "i.redd.it,https://i.redd.it/");
        at = gen_put_base36(at, bits >> 3, 12);
        return (bits >> 60) < 12 ? GEN_PUT(at, ".jpg,") : GEN_PUT(at, ".png,");
    }
    at = (bits >> 60) < 8 ? GEN_PUT(at, "i.imgur.com,https://i.imgur.com/")
                          : GEN_PUT(at, "i.imgur.com,http://i.imgur.com/");
    at = gen_put_base36(at, bits >> 3, 7);
    return GEN_PUT(at, ".jpg,");
}

/* Most posts are hardly seen, a few are seen by everybody. */
static int64_t pick_score(struct random *random, uint32_t limit)
{
    int64_t score = gen_skewed(random, limit, 2);
    return gen_chance(random, 25) ? -(score % 200) : score;
}

static char *put_post(char *at, const struct memes *memes, struct random *random, uint32_t post,
                      uint64_t second)
{
    at = GEN_PUT(at, "post,");
    at = put_post_id(at, post);
    at = put_place(at, post, second);
    at = gen_put_char(at, ',');
    if (gen_chance(random, 12)) {
        /* A post of words: no url, and sometimes no words either. */
        at = GEN_PUT(at, "self.meirl,,");
        char *end =
            gen_chance(random, 4) ? memes->scratch : words_put_comment(memes->scratch, random, 40);
        at = gen_put_csv(at, memes->scratch, (size_t)(end - memes->scratch));
    } else {
        at = put_picture(at, memes, post, random);
    }
    at = gen_put_char(at, ',');
    char *end = words_put(memes->scratch, random, WORDS_POST_TITLE);
    if (gen_chance(random, 10)) end = words_put_comment(gen_put_char(end, ' '), random, 60);
    at = gen_put_csv(at, memes->scratch, (size_t)(end - memes->scratch));
    at = gen_put_char(at, ',');
    at = gen_put_i64(at, pick_score(random, 90000));
    return gen_put_char(at, '\n');
}

static status write_posts(struct memes *memes, struct error *err)
{
    struct gen_writer *writer = &memes->writer;
    struct random random = gen_run_random(memes->run, STREAM_POSTS);
    struct gen_dirt dirt =
        gen_dirt_init(&post_columns, gen_run_random(memes->run, STREAM_DIRT), 2000);
    struct gen_walk walk = gen_walk_over(memes->post_count);

    TRY(gen_writer_open(writer, memes->run, "posts.csv", err));
    TRY(gen_writer_take(writer,
                        GEN_PUT(writer->at, "\xef\xbb\xbf"
                                            "type,id,subreddit.id,subreddit.name,subreddit.nsfw,"
                                            "created_utc,permalink,domain,url,selftext,title,"
                                            "score\n"),
                        err));
    for (uint32_t i = 0; i < memes->post_count; i++) {
        uint32_t post = (uint32_t)gen_walk_next(&walk);
        uint32_t copy_count = hash_combine(memes->post_seed ^ 3, post) % 2500 == 0 ? 2 : 1;
        uint64_t age = (uint64_t)i * SPAN_SECONDS / memes->post_count;
        for (uint32_t copy = 0; copy < copy_count; copy++) {
            char *end =
                put_post(writer->at, memes, &random, post, FIRST_SECOND + SPAN_SECONDS - age);
            TRY(gen_writer_end(writer, gen_dirt_pass(&dirt, writer->at, end), err));
        }
    }
    return gen_writer_close(writer, GEN_END_NEWLINE, err);
}

static char *put_body(char *at, const struct memes *memes, struct random *random)
{
    uint32_t form = random_below(random, 200);
    if (form < 8) return GEN_PUT(at, "[deleted],");
    if (form < 14) return GEN_PUT(at, "[removed],");
    if (form < 16) return gen_put_char(at, ',');
    char *end = words_put_comment(memes->scratch, random, 50);
    at = gen_put_csv(at, memes->scratch, (size_t)(end - memes->scratch));
    return gen_put_char(at, ',');
}

/* -1 to 1 with at most four decimals; zero is common. */
static char *put_sentiment(char *at, struct random *random)
{
    uint32_t form = random_below(random, 100);
    if (form < 4) return gen_put_char(at, ',');
    if (form < 25) return GEN_PUT(at, "0.0,");
    uint32_t size = 1 + random_below(random, 10000);
    if (form < 55) at = gen_put_char(at, '-');
    at = gen_put_u64(at, size / 10000);
    at = gen_put_char(at, '.');
    uint32_t decimals = size % 10000;
    uint32_t width = 4;
    while (width > 1 && decimals % 10 == 0) {
        decimals /= 10;
        width--;
    }
    at = gen_put_padded(at, decimals, width);
    return gen_put_char(at, ',');
}

static char *put_comment(char *at, const struct memes *memes, struct random *random,
                         uint64_t comment, uint64_t second)
{
    /* Some posts are gone while their comments are still there. */
    uint64_t post = gen_chance(random, 50)
                        ? (uint64_t)memes->post_count + random_below(random, 1000)
                        : gen_skewed(random, memes->post_count, 5);
    at = GEN_PUT(at, "comment,");
    at = put_comment_id(at, comment);
    at = put_place(at, post, second);
    at = put_comment_id(at, comment);
    at = GEN_PUT(at, "/,");
    at = put_body(at, memes, random);
    at = put_sentiment(at, random);
    at = gen_put_i64(at, pick_score(random, 5000));
    return gen_put_char(at, '\n');
}

static status write_comments(struct memes *memes, struct error *err)
{
    struct gen_writer *writer = &memes->writer;
    struct random random = gen_run_random(memes->run, STREAM_COMMENTS);
    struct gen_dirt dirt =
        gen_dirt_init(&comment_columns, gen_run_random(memes->run, STREAM_DIRT + 1), 2000);
    uint64_t comment_count = gen_run_count(memes->run, COMMENT_COUNT, 20);

    TRY(gen_writer_open(writer, memes->run, "comments.csv", err));
    TRY(gen_writer_take(writer,
                        GEN_PUT(writer->at, "type,id,subreddit.id,subreddit.name,subreddit.nsfw,"
                                            "created_utc,permalink,body,sentiment,score\n"),
                        err));
    for (uint64_t i = 0; i < comment_count; i++) {
        uint64_t age = i * SPAN_SECONDS / comment_count;
        /* Once in a while a comment is there twice under one id. */
        uint64_t comment = i % 3001 == 3000 ? i - 1 : i;
        char *end =
            put_comment(writer->at, memes, &random, comment, FIRST_SECOND + SPAN_SECONDS - age);
        TRY(gen_writer_end(writer, gen_dirt_pass(&dirt, writer->at, end), err));
    }
    return gen_writer_close(writer, GEN_END_BARE, err);
}

static status write_all(struct memes *memes, struct error *err)
{
    TRY(write_posts(memes, err));
    return write_comments(memes, err);
}

status gen_memes_write(struct gen_run *run, struct error *err)
{
    struct memes memes = {
        .run = run,
        .post_count = (uint32_t)gen_run_count(run, POST_COUNT, 8),
        .post_seed = gen_run_random(run, STREAM_POSTS).state,
        .scratch = memory_alloc(NULL, GEN_RECORD_BYTES),
    };
    status result = memes.scratch == NULL
                        ? error_set(err, STATUS_MEMORY, "gen: no memory to compose records")
                        : write_all(&memes, err);
    gen_writer_abandon(&memes.writer);
    memory_free(NULL, memes.scratch, GEN_RECORD_BYTES);
    return result;
}
