/* SPDX-License-Identifier: Apache-2.0 */
/* counters.c - addition, and an encoding of the counts that are not zero.
 *
 * Encoded counters are a list of entries: a tag, an index, and the entry's counts; entries come in
 * the order of tags and indexes, so equal counters have equal bytes.
 */
#include "engine/plan/counters.h"

#include <stdalign.h>

#include "engine/base/hash.h"

bool table_counters_init(struct table_counters *table_counters, uint32_t column_count,
                         struct arena *arena)
{
    *table_counters = (struct table_counters){.column_count = column_count};
    table_counters->dropped = arena_calloc(arena, column_count + 1, sizeof *table_counters->dropped,
                                           alignof(struct drop_counter));
    table_counters->nulled = arena_array(arena, struct drop_counter, column_count + 1);
    return table_counters->dropped != NULL && table_counters->nulled != NULL;
}

void table_counters_reset(struct table_counters *table_counters)
{
    struct table_counters empty = {.column_count = table_counters->column_count,
                                   .dropped = table_counters->dropped,
                                   .nulled = table_counters->nulled};
    memset(table_counters->dropped, 0,
           table_counters->column_count * sizeof *table_counters->dropped);
    memset(table_counters->nulled, 0,
           table_counters->column_count * sizeof *table_counters->nulled);
    *table_counters = empty;
}

static bool stands_before(const struct drop_counter *a, const struct drop_counter *b)
{
    if (a->first_chunk != b->first_chunk) return a->first_chunk < b->first_chunk;
    return a->first_line < b->first_line;
}

static void line_merge(struct drop_counter *line, const struct drop_counter *more)
{
    if (more->count == 0) return;
    if (line->count == 0 || stands_before(more, line)) {
        line->first_chunk = more->first_chunk;
        line->first_line = more->first_line;
    }
    line->count += more->count;
}

void table_counters_merge(struct table_counters *table_counters, const struct table_counters *more)
{
    table_counters->record_count += more->record_count;
    table_counters->kept_count += more->kept_count;
    line_merge(&table_counters->wrong_fields, &more->wrong_fields);
    for (uint32_t i = 0; i < table_counters->column_count; i++) {
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            line_merge(&table_counters->dropped[i][reason], &more->dropped[i][reason]);
        }
        line_merge(&table_counters->nulled[i], &more->nulled[i]);
    }
}

bool counters_init(struct counters *counters, const struct plan *plan, struct arena *arena)
{
    *counters = (struct counters){
        .tables = arena_array(arena, struct table_counters, plan->table_count + 1),
        .maps = arena_array(arena, struct stage_counts, plan->pipeline_count + 1),
        .sent = arena_array(arena, struct exchange_count, plan->pipeline_count + 1),
        .applied = arena_array(arena, struct exchange_count, plan->pipeline_count + 1),
        .folds = arena_array(arena, struct fold_counts, plan->fold_count + 1),
        .given = arena_array(arena, struct exchange_count, plan->query_count + 1),
        .taken = arena_array(arena, struct exchange_count, plan->query_count + 1),
    };
    bool fits = counters->tables != NULL && counters->maps != NULL && counters->sent != NULL &&
                counters->applied != NULL && counters->folds != NULL && counters->given != NULL &&
                counters->taken != NULL;
    for (uint32_t i = 0; fits && i < plan->table_count; i++) {
        fits = table_counters_init(&counters->tables[i], plan->tables[i].schema.count, arena);
    }
    return fits;
}

void counters_reset(struct counters *counters, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->table_count; i++) {
        table_counters_reset(&counters->tables[i]);
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        counters->maps[i] = (struct stage_counts){0};
        counters->sent[i] = (struct exchange_count){0};
        counters->applied[i] = (struct exchange_count){0};
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        counters->folds[i] = (struct fold_counts){0};
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        counters->given[i] = (struct exchange_count){0};
        counters->taken[i] = (struct exchange_count){0};
    }
}

static void stage_merge(struct stage_counts *stage, const struct stage_counts *more)
{
    stage->rows_in += more->rows_in;
    stage->rows_out += more->rows_out;
    stage->malformed += more->malformed;
}

static void fold_merge(struct fold_counts *fold, const struct fold_counts *more)
{
    fold->rows_in += more->rows_in;
    fold->rows_out += more->rows_out;
    fold->batches_out += more->batches_out;
}

void exchange_count_add(struct exchange_count *end, struct batch_place place, uint64_t row_count,
                        struct text bytes)
{
    uint64_t hash = hash_u64((uint64_t)place.producer << 32 | place.shard);
    hash = hash_combine(hash, place.number);
    hash = hash_combine(hash, hash_bytes(bytes.bytes, bytes.size));
    end->batch_count++;
    end->row_count += row_count;
    end->hash_sum += hash;
}

void exchange_count_add_answer(struct exchange_count *end, uint64_t number, const struct buf *bytes)
{
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    exchange_count_add(end, (struct batch_place){.number = number}, 0, text);
}

/* ---- encoding ---- */

/* What was taken is known where counters end. */
enum counters_tag { TAG_TABLE = 1, TAG_LINE, TAG_MAP, TAG_SENT, TAG_APPLIED, TAG_FOLD, TAG_GIVEN };

/* Lines of a table: the wrong number of fields, then the reasons and NULLs of each column. */
enum { LINES_PER_COLUMN = DROP_REASON_COUNT + 1 };

static struct drop_counter *drop_counter_at(const struct table_counters *table_counters,
                                            uint32_t index)
{
    uint32_t column = (index - 1) / LINES_PER_COLUMN;
    uint32_t kind = (index - 1) % LINES_PER_COLUMN;
    return kind == DROP_REASON_COUNT ? &table_counters->nulled[column]
                                     : &table_counters->dropped[column][kind];
}

static void put_three(struct buf *out, enum counters_tag tag, uint32_t index,
                      const uint64_t *counts)
{
    if (counts[0] == 0 && counts[1] == 0 && counts[2] == 0) return;
    buf_put_u8(out, (uint8_t)tag);
    buf_put_u32(out, index);
    for (uint32_t i = 0; i < 3; i++) {
        buf_put_u64(out, counts[i]);
    }
}

static void put_line(struct buf *out, uint32_t index, const struct drop_counter *line)
{
    uint64_t counts[3] = {line->count, line->first_chunk, line->first_line};
    if (line->count > 0) put_three(out, TAG_LINE, index, counts);
}

void counters_encode(const struct counters *counters, const struct plan *plan, struct buf *out)
{
    for (uint32_t i = 0; i < plan->table_count; i++) {
        const struct table_counters *table_counters = &counters->tables[i];
        if (table_counters->record_count == 0) continue;
        put_three(out, TAG_TABLE, i,
                  (uint64_t[]){table_counters->record_count, table_counters->kept_count, 0});
        put_line(out, 0, &table_counters->wrong_fields);
        for (uint32_t line = 1; line <= table_counters->column_count * LINES_PER_COLUMN; line++) {
            put_line(out, line, drop_counter_at(table_counters, line));
        }
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct stage_counts *map = &counters->maps[i];
        const struct exchange_count *sent = &counters->sent[i];
        const struct exchange_count *applied = &counters->applied[i];
        put_three(out, TAG_MAP, i, (uint64_t[]){map->rows_in, map->rows_out, map->malformed});
        put_three(out, TAG_SENT, i,
                  (uint64_t[]){sent->batch_count, sent->row_count, sent->hash_sum});
        put_three(out, TAG_APPLIED, i,
                  (uint64_t[]){applied->batch_count, applied->row_count, applied->hash_sum});
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        const struct fold_counts *fold = &counters->folds[i];
        put_three(out, TAG_FOLD, i, (uint64_t[]){fold->rows_in, fold->rows_out, fold->batches_out});
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        const struct exchange_count *given = &counters->given[i];
        put_three(out, TAG_GIVEN, i,
                  (uint64_t[]){given->batch_count, given->row_count, given->hash_sum});
    }
}

static bool add_line(struct table_counters *table_counters, uint32_t index, const uint64_t *counts)
{
    if (table_counters == NULL || index > table_counters->column_count * LINES_PER_COLUMN)
        return false;
    struct drop_counter line = {counts[0], counts[1], counts[2]};
    line_merge(index == 0 ? &table_counters->wrong_fields : drop_counter_at(table_counters, index),
               &line);
    return true;
}

/* One entry, which speaks of `table` if it is a line. */
static bool add_entry(struct counters *counters, const struct plan *plan, uint8_t tag,
                      uint32_t index, const uint64_t *counts, struct table_counters **table)
{
    struct stage_counts stage = {counts[0], counts[1], counts[2]};
    struct exchange_count end = {counts[0], counts[1], counts[2]};
    struct fold_counts fold = {counts[0], counts[1], counts[2]};
    bool is_pipeline = index < plan->pipeline_count;
    switch (tag) {
    case TAG_TABLE:
        if (index >= plan->table_count) return false;
        *table = &counters->tables[index];
        (*table)->record_count += counts[0];
        (*table)->kept_count += counts[1];
        return true;
    case TAG_LINE:
        return add_line(*table, index, counts);
    case TAG_MAP:
        if (is_pipeline) stage_merge(&counters->maps[index], &stage);
        return is_pipeline;
    case TAG_SENT:
        if (is_pipeline) exchange_count_merge(&counters->sent[index], &end);
        return is_pipeline;
    case TAG_APPLIED:
        if (is_pipeline) exchange_count_merge(&counters->applied[index], &end);
        return is_pipeline;
    case TAG_FOLD:
        if (index >= plan->fold_count) return false;
        fold_merge(&counters->folds[index], &fold);
        return true;
    case TAG_GIVEN:
        if (index >= plan->query_count) return false;
        exchange_count_merge(&counters->given[index], &end);
        return true;
    default:
        return false;
    }
}

status counters_add(struct counters *counters, const struct plan *plan, struct text bytes,
                    struct error *err)
{
    struct buf_reader reader = {.bytes = (const unsigned char *)bytes.bytes, .size = bytes.size};
    struct table_counters *table = NULL;
    while (buf_left(&reader) > 0) {
        uint8_t tag = buf_get_u8(&reader);
        uint32_t index = buf_get_u32(&reader);
        uint64_t counts[3];
        for (uint32_t i = 0; i < 3; i++) {
            counts[i] = buf_get_u64(&reader);
        }
        if (reader.failed || !add_entry(counters, plan, tag, index, counts, &table)) {
            return error_set(err, STATUS_CORRUPT, "these counters do not fit the plan");
        }
    }
    return STATUS_OK;
}
