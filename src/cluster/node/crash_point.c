/* SPDX-License-Identifier: Apache-2.0 */
/* crash_point.c - a short list that every hit searches while a point is armed.
 *
 * Chances come from splitmix64 (Steele, Lea and Flood 2014), whose state is a counter: an atomic
 * increment gives each thread its own number of one sequence, so that a seed replays.
 */
#include "cluster/node/crash_point.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/base/number.h"
#include "engine/base/random.h"

enum { POINTS_MAX = 16 };

struct crash_point {
    struct text name;           /* Of crash_points_known. */
    uint64_t count;             /* At which hit; 0: by chance. */
    uint64_t chance;            /* Out of 2^64. */
    atomic_uint_least64_t hits; /* So far. */
    uint64_t seed;
};

bool crash_points_armed;

const struct text crash_points_known[] = {
    TEXT_INIT("before-log"),        TEXT_INIT("after-log"),      TEXT_INIT("before-acknowledge"),
    TEXT_INIT("after-acknowledge"), TEXT_INIT("before-publish"), TEXT_INIT("after-publish"),
    TEXT_INIT("before-confirm"),    TEXT_INIT("after-confirm"),  TEXT_INIT("before-emit"),
    TEXT_INIT("after-emit"),        TEXT_INIT("before-result"),  TEXT_INIT("after-result"),
};
const size_t crash_points_known_count = sizeof crash_points_known / sizeof crash_points_known[0];

static struct crash_point points[POINTS_MAX];
static size_t point_count;
static void (*replaced_kill)(const char *name);

/* Cuts off the text before the first `mark`, or all of it; false: there was no mark. */
static bool take_until(struct text *text, char mark, struct text *out)
{
    const char *end = text->size == 0 ? NULL : memchr(text->bytes, mark, text->size);
    uint32_t size = end == NULL ? text->size : (uint32_t)(end - text->bytes);
    *out = (struct text){text->bytes, size};
    uint32_t used = end == NULL ? size : size + 1;
    text->bytes += used;
    text->size -= used;
    return end != NULL;
}

static const struct text *find_known(struct text name)
{
    for (size_t i = 0; i < crash_points_known_count; i++) {
        if (text_equal(name, crash_points_known[i])) return &crash_points_known[i];
    }
    return NULL;
}

static status name_fail(struct text name, struct error *err)
{
    const struct text *nearest = text_nearest(name, crash_points_known, crash_points_known_count);
    if (nearest == NULL) {
        return error_set(err, STATUS_USAGE, "there is no crash point '%.*s'; one is %.*s",
                         TEXT_ARGS(name), TEXT_ARGS(crash_points_known[0]));
    }
    return error_set(err, STATUS_USAGE, "there is no crash point '%.*s'; did you mean %.*s?",
                     TEXT_ARGS(name), TEXT_ARGS(*nearest));
}

/* Digits only. */
static bool parse_count(struct text text, uint64_t *out)
{
    int64_t value = 0;
    for (uint32_t i = 0; i < text.size; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9') return false;
    }
    if (!int_parse(text, &value)) return false;
    *out = (uint64_t)value;
    return true;
}

/* COUNT, or pPROBABILITY with or without :SEED. */
static status parse_when(struct text words, struct crash_point *out, struct error *err)
{
    struct text first;
    bool has_second = take_until(&words, ':', &first);
    if (first.size > 0 && first.bytes[0] == 'p') {
        double chance = 0;
        struct text number = {first.bytes + 1, first.size - 1};
        if (!double_parse(number, &chance) || !(chance > 0 && chance <= 1)) {
            return error_set(err, STATUS_USAGE,
                             "crash point %.*s: '%.*s' is not a probability above 0 and up to 1",
                             TEXT_ARGS(out->name), TEXT_ARGS(number));
        }
        out->count = 0;
        out->chance = chance >= 1 ? UINT64_MAX : (uint64_t)(chance * 18446744073709551616.0);
        if (!has_second) return STATUS_OK;
        if (parse_count(words, &out->seed)) return STATUS_OK;
        return error_set(err, STATUS_USAGE, "crash point %.*s: '%.*s' is not a seed",
                         TEXT_ARGS(out->name), TEXT_ARGS(words));
    }
    if (has_second || !parse_count(first, &out->count) || out->count == 0) {
        return error_set(
            err, STATUS_USAGE,
            "crash point %.*s: '%.*s' is neither a count from 1 nor p and a probability",
            TEXT_ARGS(out->name), TEXT_ARGS(first));
    }
    return STATUS_OK;
}

/* `out_mine`: the word names this node, its role, or neither. */
static status parse_point(struct text words, struct crash_owner owner, struct crash_point *out,
                          bool *out_mine, struct error *err)
{
    struct text where;
    struct text name;
    bool has_when = take_until(&words, ':', &where);
    bool has_owner = take_until(&where, '@', &name);
    const struct text *known = find_known(name);
    if (known == NULL) return name_fail(name, err);
    if (has_owner && where.size == 0) {
        return error_set(err, STATUS_USAGE, "crash point %.*s: a node or role is missing after @",
                         TEXT_ARGS(name));
    }
    out->name = *known;
    out->count = 1;
    out->seed = hash_u64((uint64_t)getpid());
    if (has_when) TRY(parse_when(words, out, err));
    *out_mine = !has_owner || text_equal(where, text_of(owner.node)) ||
                text_equal(where, text_of(owner.role));
    return STATUS_OK;
}

status crash_points_arm(const char *words, struct crash_owner owner, struct error *err)
{
    crash_points_disarm();
    if (words == NULL || strlen(words) > INT32_MAX) return STATUS_OK;
    struct text left = text_of(words);
    size_t count = 0;
    while (left.size > 0) {
        struct text word;
        bool is_mine = false;
        bool has_more = take_until(&left, ',', &word);
        if (has_more && left.size == 0) {
            return error_set(err, STATUS_USAGE, "crash points: nothing follows the last comma");
        }
        if (count == POINTS_MAX) {
            return error_set(err, STATUS_USAGE, "more than %d crash points", (int)POINTS_MAX);
        }
        struct crash_point *point = &points[count];
        point->chance = 0;
        atomic_store(&point->hits, 0);
        TRY(parse_point(word, owner, point, &is_mine, err));
        count += is_mine;
    }
    point_count = count;
    crash_points_armed = count > 0;
    return STATUS_OK;
}

void crash_points_disarm(void)
{
    crash_points_armed = false;
    point_count = 0;
}

void crash_points_replace_kill(void (*kill_process)(const char *name))
{
    replaced_kill = kill_process;
}

static void crash(struct text name)
{
    if (replaced_kill != NULL) {
        replaced_kill(name.bytes);
        return;
    }
    char line[128];
    int size = snprintf(line, sizeof line, "crash point %.*s: killing process %ld\n",
                        TEXT_ARGS(name), (long)getpid());
    /* Where standard error does not take the line, no other place is left to report that. */
    ssize_t written = write(STDERR_FILENO, line, (size_t)size);
    (void)written;
    (void)kill(getpid(), SIGKILL); /* Always allowed. */
}

static bool point_is_due(struct crash_point *point)
{
    uint64_t before = atomic_fetch_add(&point->hits, 1);
    if (point->count != 0) return before + 1 == point->count;
    /* The hit's number in the sequence of the seed. */
    struct random random = {point->seed + before * 0x9e3779b97f4a7c15u};
    return point->chance == UINT64_MAX || random_u64(&random) < point->chance;
}

void crash_point_hit(const char *name)
{
    struct text wanted = text_of(name);
    ASSERT(find_known(wanted) != NULL);
    for (size_t i = 0; i < point_count; i++) {
        struct crash_point *point = &points[i];
        if (text_equal(point->name, wanted) && point_is_due(point)) crash(point->name);
    }
}
