/* SPDX-License-Identifier: Apache-2.0 */
/* gen_dirt.c - the ways in which real files are broken.
 *
 * Kinds take turns instead of being drawn, so that a small file has many of them and a large one
 * has all of them equally often; where the round begins is drawn. A kind that does not apply to a
 * table passes its turn on.
 */
#include "gen/gen_dirt.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/text.h"
#include "gen/gen_put.h"
#include "gen/gen_writer.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static const struct text bad_numbers[] = {
    TEXT_INIT("n/a"),   TEXT_INIT("1e"),    TEXT_INIT("--"),
    TEXT_INIT("12abc"), TEXT_INIT("1.2.3"), TEXT_INIT("0x1F"),
};
static const struct text bad_dates[] = {
    TEXT_INIT("2000-13-45"),          TEXT_INIT("n/a"), TEXT_INIT("31/12/2004"),
    TEXT_INIT("2001-02-30 25:61:00"), TEXT_INIT("0"),
};
static const struct text bad_bytes[] = {
    TEXT_INIT("\xff\xfe"),     TEXT_INIT("\xc3"),     TEXT_INIT("\xc0\xaf"),
    TEXT_INIT("\xed\xa0\x80"), TEXT_INIT("\xe2\x82"),
};
static const struct text bad_lists[] = {
    TEXT_INIT("\"[{'id': 18, 'name': 'Dra\""),
    TEXT_INIT("\"[{'id': 18 'name': 'Drama'}]\""),
    TEXT_INIT("\"[{'id': 18, 'name': 'Drama'},\""),
    TEXT_INIT("[{id: 18}]"),
    TEXT_INIT("nan"),
};

static const struct text empty = TEXT_INIT("");
static const struct text space = TEXT_INIT(" ");
static const struct text nul = TEXT_INIT("\0");

struct dirty_record {
    struct text fields[GEN_FIELDS_MAX]; /* Raw, quotes included. */
    uint32_t field_count;
    struct text line_end;
};

/* Takes apart a record that is clean and so obeys the CSV rules. */
static struct dirty_record record_split(const char *start, const char *end)
{
    struct dirty_record record = {.line_end = TEXT_LITERAL("\n")};
    bool is_quoted = false;
    const char *first = start;

    end--;
    ASSERT(*end == '\n');
    if (end > start && end[-1] == '\r') {
        record.line_end = TEXT_LITERAL("\r\n");
        end--;
    }
    for (const char *at = start; at <= end; at++) {
        if (at < end && *at == '"') is_quoted = !is_quoted;
        if (at < end && (*at != ',' || is_quoted)) continue;
        ASSERT(record.field_count < GEN_FIELDS_MAX);
        record.fields[record.field_count++] = (struct text){first, (uint32_t)(at - first)};
        first = at + 1;
    }
    ASSERT(!is_quoted);
    return record;
}

static char *record_put(char *at, const struct dirty_record *record)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (i > 0) at = gen_put_char(at, ',');
        at = gen_put_text(at, record->fields[i]);
    }
    return gen_put_text(at, record->line_end);
}

/* A column of the set that the record has, or GEN_FIELDS_MAX. */
static uint32_t pick_column(struct random *random, const struct dirty_record *record,
                            uint32_t columns)
{
    if (record->field_count < GEN_FIELDS_MAX) columns &= GEN_FIELD(record->field_count) - 1;
    if (columns == 0) return GEN_FIELDS_MAX;
    uint32_t skip = random_below(random, (uint32_t)__builtin_popcount(columns));
    while (skip > 0) {
        columns &= columns - 1;
        skip--;
    }
    return (uint32_t)__builtin_ctz(columns);
}

/* Like pick_column, but only a field without quotes; falls back on any such field. */
static uint32_t pick_bare_column(struct random *random, const struct dirty_record *record,
                                 uint32_t columns)
{
    uint32_t bare = 0;
    for (uint32_t i = 0; i < record->field_count; i++) {
        struct text field = record->fields[i];
        if (field.size == 0 || field.bytes[0] != '"') bare |= GEN_FIELD(i);
    }
    return pick_column(random, record, (bare & columns) != 0 ? bare & columns : bare);
}

enum { PIECES_MAX = 3 };

/* A field and what it is replaced by: up to three pieces, one after the other. */
struct patch {
    uint32_t column;
    struct text pieces[PIECES_MAX];
};

static char *record_put_patched(char *at, const struct dirty_record *record,
                                const struct patch *patch)
{
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (i > 0) at = gen_put_char(at, ',');
        if (i != patch->column) {
            at = gen_put_text(at, record->fields[i]);
            continue;
        }
        for (uint32_t piece = 0; piece < PIECES_MAX; piece++) {
            if (patch->pieces[piece].size > 0) at = gen_put_text(at, patch->pieces[piece]);
        }
    }
    return gen_put_text(at, record->line_end);
}

/* `inserted` in the middle of a bare field, or just inside the quotes of a quoted one. */
static struct patch patch_insert(const struct dirty_record *record, uint32_t column,
                                 struct text inserted)
{
    struct patch patch = {.column = column};
    if (column >= GEN_FIELDS_MAX) return patch;
    struct text field = record->fields[column];
    uint32_t cut = field.size / 2;
    if (field.size > 0 && field.bytes[0] == '"') cut = 1;
    patch.pieces[0] = (struct text){field.bytes, cut};
    patch.pieces[1] = inserted;
    patch.pieces[2] = (struct text){field.bytes + cut, field.size - cut};
    return patch;
}

static struct patch patch_replace(uint32_t column, struct text replacement)
{
    return (struct patch){.column = column, .pieces = {replacement}};
}

/* Closes the quotes and goes on: "abc"def */
static struct patch patch_after_quote(const struct dirty_record *record, uint32_t column)
{
    struct patch patch = {.column = column};
    if (column >= GEN_FIELDS_MAX) return patch;
    struct text field = record->fields[column];
    if (field.size > 0 && field.bytes[0] == '"') {
        patch.pieces[0] = field;
        patch.pieces[1] = TEXT_LITERAL(" etc");
    } else {
        patch.pieces[0] = TEXT_LITERAL("\"");
        patch.pieces[1] = field;
        patch.pieces[2] = TEXT_LITERAL("\"etc");
    }
    return patch;
}

typedef enum {
    DIRT_EMPTY_REQUIRED,
    DIRT_TOO_FEW,
    DIRT_BAD_NUMBER,
    DIRT_BAD_BYTES,
    DIRT_INNER_QUOTE,
    DIRT_BAD_DATE,
    DIRT_BAD_LIST,
    DIRT_LINE_END,
    DIRT_TOO_MANY,
    DIRT_SPACE,
    DIRT_NUL,
    DIRT_AFTER_QUOTE,
    DIRT_BLANK_LINE,
    DIRT_LONE_CR,
    DIRT_INNER_QUOTES,
    DIRT_KINDS
} dirt_kind;

static struct text pick_text(struct random *random, const struct text *texts, uint32_t count)
{
    return texts[random_below(random, count)];
}

/* A column is drawn before a text, in statements of their own: the order in which a compiler
 * evaluates arguments must not decide bytes. */
static struct patch patch_replaced(struct gen_dirt *dirt, const struct dirty_record *record,
                                   uint32_t columns, const struct text *texts, uint32_t text_count)
{
    uint32_t column = pick_column(&dirt->random, record, columns);
    return patch_replace(column, pick_text(&dirt->random, texts, text_count));
}

static struct patch patch_inserted(struct gen_dirt *dirt, const struct dirty_record *record,
                                   const struct text *texts, uint32_t text_count)
{
    uint32_t column = pick_column(&dirt->random, record, dirt->columns->texts);
    return patch_insert(record, column, pick_text(&dirt->random, texts, text_count));
}

/* What is inserted starts with a letter: a quote at the start of a field would open it. */
static struct patch patch_bare(struct gen_dirt *dirt, const struct dirty_record *record,
                               struct text inserted)
{
    uint32_t column = pick_bare_column(&dirt->random, record, dirt->columns->texts);
    return patch_insert(record, column, inserted);
}

/* The kinds that change one field; a column of GEN_FIELDS_MAX says that the kind does not apply. */
static struct patch patch_for(struct gen_dirt *dirt, const struct dirty_record *record,
                              dirt_kind kind)
{
    const struct gen_columns *columns = dirt->columns;
    switch (kind) {
    case DIRT_EMPTY_REQUIRED:
        return patch_replaced(dirt, record, columns->required, &empty, 1);
    case DIRT_BAD_NUMBER:
        return patch_replaced(dirt, record, columns->numbers, bad_numbers, COUNT(bad_numbers));
    case DIRT_BAD_DATE:
        return patch_replaced(dirt, record, columns->dates, bad_dates, COUNT(bad_dates));
    case DIRT_BAD_LIST:
        return patch_replaced(dirt, record, columns->lists, bad_lists, COUNT(bad_lists));
    case DIRT_SPACE:
        return patch_replaced(dirt, record, columns->texts, &space, 1);
    case DIRT_BAD_BYTES:
        return patch_inserted(dirt, record, bad_bytes, COUNT(bad_bytes));
    case DIRT_NUL:
        return patch_inserted(dirt, record, &nul, 1);
    case DIRT_INNER_QUOTE:
        return patch_bare(dirt, record, TEXT_LITERAL("x\"y"));
    case DIRT_INNER_QUOTES:
        return patch_bare(dirt, record, TEXT_LITERAL("a \"so called\" b"));
    case DIRT_LONE_CR:
        return patch_bare(dirt, record, TEXT_LITERAL("x\ry"));
    case DIRT_AFTER_QUOTE:
        return patch_after_quote(record, pick_column(&dirt->random, record, columns->texts));
    default:
        return (struct patch){.column = GEN_FIELDS_MAX};
    }
}

/* NULL when the kind does not apply to the table. */
static char *break_as(struct gen_dirt *dirt, char *start, struct dirty_record *record,
                      dirt_kind kind)
{
    switch (kind) {
    case DIRT_TOO_FEW:
        if (record->field_count < 2) return NULL;
        record->field_count -= 1 + random_below(&dirt->random, record->field_count - 1);
        return record_put(start, record);
    case DIRT_TOO_MANY:
        if (record->field_count >= GEN_FIELDS_MAX) return NULL;
        record->fields[record->field_count++] = TEXT_LITERAL("extra");
        return record_put(start, record);
    case DIRT_BLANK_LINE:
        return record_put(gen_put_text(start, record->line_end), record);
    case DIRT_LINE_END:
        record->line_end = record->line_end.size == 1 ? TEXT_LITERAL("\r\n") : TEXT_LITERAL("\n");
        return record_put(start, record);
    default:
        break;
    }
    struct patch patch = patch_for(dirt, record, kind);
    if (patch.column >= GEN_FIELDS_MAX) return NULL;
    return record_put_patched(start, record, &patch);
}

struct gen_dirt gen_dirt_init(const struct gen_columns *columns, struct random random,
                              uint32_t one_in)
{
    ASSERT(one_in >= 8);
    struct gen_dirt dirt = {.columns = columns, .random = random, .one_in = one_in};
    dirt.countdown = one_in / 8 + random_below(&dirt.random, one_in / 8);
    dirt.next_kind = random_below(&dirt.random, DIRT_KINDS);
    return dirt;
}

char *gen_dirt_break(struct gen_dirt *dirt, char *start, char *end)
{
    size_t size = (size_t)(end - start);
    char *copy = start + GEN_RECORD_BYTES;
    ASSERT(size <= GEN_RECORD_BYTES);
    memcpy(copy, start, size);

    struct dirty_record record = record_split(copy, copy + size);
    char *new_end = NULL;
    while (new_end == NULL) {
        new_end = break_as(dirt, start, &record, (dirt_kind)dirt->next_kind);
        dirt->next_kind = (dirt->next_kind + 1) % DIRT_KINDS;
    }
    dirt->countdown = 1 + random_below(&dirt->random, 2 * dirt->one_in);
    return new_end;
}

char *gen_dirt_reorder(char *start, char *end, const uint8_t *order, uint32_t field_count)
{
    size_t size = (size_t)(end - start);
    char *copy = start + GEN_RECORD_BYTES;
    ASSERT(size <= GEN_RECORD_BYTES);
    memcpy(copy, start, size);

    struct dirty_record record = record_split(copy, copy + size);
    if (record.field_count != field_count) return end;
    struct dirty_record moved = record;
    for (uint32_t i = 0; i < field_count; i++) {
        moved.fields[i] = record.fields[order[i]];
    }
    return record_put(start, &moved);
}
