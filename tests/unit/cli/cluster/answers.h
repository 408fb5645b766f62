/* SPDX-License-Identifier: Apache-2.0 */
/* answers.h - a plan of queries with two columns each, and rows for them, for tests of what is done
 * with answers.
 */
#ifndef UNIT_CLI_ANSWERS_H
#define UNIT_CLI_ANSWERS_H

#include "engine/data/column.h"
#include "engine/plan/plan.h"

enum { ANSWER_QUERIES = 3, ANSWER_ROWS_MAX = 64 };

static const struct field answer_fields[] = {
    {.name = {"number", 6}, .type = {.kind = TYPE_INT}},
    {.name = {"words", 5}, .type = {.kind = TYPE_TEXT}},
};

static struct plan_query answer_queries[ANSWER_QUERIES] = {
    {.name = {"q1", 2}, .schema = {answer_fields, 2}},
    {.name = {"q2", 2}, .schema = {answer_fields, 2}},
    {.name = {"q3", 2}, .schema = {answer_fields, 2}},
};

static const struct plan answer_plan = {
    .queries = answer_queries,
    .query_count = ANSWER_QUERIES,
};

struct answer_rows {
    struct batch batch;
    struct column columns[2];
    int64_t numbers[ANSWER_ROWS_MAX];
    struct text words[ANSWER_ROWS_MAX];
};

/* Rows first .. first+count-1 of a query; `words` is the same for all. */
static inline const struct batch *answer_rows_make(struct answer_rows *rows, int64_t first,
                                                   uint32_t count, const char *words)
{
    for (uint32_t i = 0; i < count; i++) {
        rows->numbers[i] = first + i;
        rows->words[i] = text_of(words);
    }
    rows->columns[0] = (struct column){.type = {.kind = TYPE_INT}, .ints = rows->numbers};
    rows->columns[1] = (struct column){.type = {.kind = TYPE_TEXT}, .texts = rows->words};
    rows->batch = (struct batch){count, 2, rows->columns};
    return &rows->batch;
}

#endif
