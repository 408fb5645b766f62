/* counters.c - adding up, and an encoding of what is not zero.
 *
 * An encoded account is a list of entries: a tag, an index, and the entry's counts; entries come in
 * the order of tags and indexes, so equal accounts have equal bytes.
 */
#include "engine/plan/counters.h"

#include <stdalign.h>

#include "engine/base/hash.h"

bool tally_init(struct tally *tally, uint32_t column_count, struct arena *arena)
{
    *tally = (struct tally){.column_count = column_count};
    tally->dropped =
        arena_calloc(arena, column_count + 1, sizeof *tally->dropped, alignof(struct tally_line));
    tally->nulled = arena_array(arena, struct tally_line, column_count + 1);
    return tally->dropped != NULL && tally->nulled != NULL;
}

void tally_reset(struct tally *tally)
{
    struct tally empty = {
        .column_count = tally->column_count, .dropped = tally->dropped, .nulled = tally->nulled};
    memset(tally->dropped, 0, tally->column_count * sizeof *tally->dropped);
    memset(tally->nulled, 0, tally->column_count * sizeof *tally->nulled);
    *tally = empty;
}

static bool stands_before(const struct tally_line *a, const struct tally_line *b)
{
    if (a->first_chunk != b->first_chunk) return a->first_chunk < b->first_chunk;
    return a->first_line < b->first_line;
}

static void line_merge(struct tally_line *line, const struct tally_line *more)
{
    if (more->count == 0) return;
    if (line->count == 0 || stands_before(more, line)) {
        line->first_chunk = more->first_chunk;
        line->first_line = more->first_line;
    }
    line->count += more->count;
}

void tally_merge(struct tally *tally, const struct tally *more)
{
    tally->record_count += more->record_count;
    tally->kept_count += more->kept_count;
    line_merge(&tally->wrong_fields, &more->wrong_fields);
    for (uint32_t i = 0; i < tally->column_count; i++) {
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            line_merge(&tally->dropped[i][reason], &more->dropped[i][reason]);
        }
        line_merge(&tally->nulled[i], &more->nulled[i]);
    }
}

bool account_init(struct account *account, const struct plan *plan, struct arena *arena)
{
    *account = (struct account){
        .tallies = arena_array(arena, struct tally, plan->table_count + 1),
        .maps = arena_array(arena, struct stage_counts, plan->pipeline_count + 1),
        .sent = arena_array(arena, struct book_end, plan->pipeline_count + 1),
        .applied = arena_array(arena, struct book_end, plan->pipeline_count + 1),
        .folds = arena_array(arena, struct fold_counts, plan->fold_count + 1),
        .given = arena_array(arena, struct book_end, plan->query_count + 1),
        .taken = arena_array(arena, struct book_end, plan->query_count + 1),
    };
    bool fits = account->tallies != NULL && account->maps != NULL && account->sent != NULL &&
                account->applied != NULL && account->folds != NULL && account->given != NULL &&
                account->taken != NULL;
    for (uint32_t i = 0; fits && i < plan->table_count; i++) {
        fits = tally_init(&account->tallies[i], plan->tables[i].schema.count, arena);
    }
    return fits;
}

void account_reset(struct account *account, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->table_count; i++) {
        tally_reset(&account->tallies[i]);
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        account->maps[i] = (struct stage_counts){0};
        account->sent[i] = (struct book_end){0};
        account->applied[i] = (struct book_end){0};
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        account->folds[i] = (struct fold_counts){0};
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        account->given[i] = (struct book_end){0};
        account->taken[i] = (struct book_end){0};
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

void account_merge(struct account *account, const struct plan *plan, const struct account *more)
{
    for (uint32_t i = 0; i < plan->table_count; i++) {
        tally_merge(&account->tallies[i], &more->tallies[i]);
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        stage_merge(&account->maps[i], &more->maps[i]);
        book_end_merge(&account->sent[i], &more->sent[i]);
        book_end_merge(&account->applied[i], &more->applied[i]);
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        fold_merge(&account->folds[i], &more->folds[i]);
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        book_end_merge(&account->given[i], &more->given[i]);
        book_end_merge(&account->taken[i], &more->taken[i]);
    }
}

void book_end_add(struct book_end *end, struct batch_place place, uint64_t row_count,
                  struct text bytes)
{
    uint64_t hash = hash_u64((uint64_t)place.lane << 32 | place.shard);
    hash = hash_combine(hash, place.number);
    hash = hash_combine(hash, hash_bytes(bytes.bytes, bytes.size));
    end->batch_count++;
    end->row_count += row_count;
    end->hash_sum += hash;
}

void book_end_add_answer(struct book_end *end, uint64_t number, const struct buf *bytes)
{
    struct text text = {(const char *)bytes->bytes, (uint32_t)bytes->size};
    book_end_add(end, (struct batch_place){.number = number}, 0, text);
}

/* ---- encoding ---- */

/* What was taken is known where accounts end. */
enum account_tag { TAG_TABLE = 1, TAG_LINE, TAG_MAP, TAG_SENT, TAG_APPLIED, TAG_FOLD, TAG_GIVEN };

/* Lines of a table: the wrong number of fields, then the reasons and NULLs of each column. */
enum { LINES_PER_COLUMN = DROP_REASON_COUNT + 1 };

static struct tally_line *tally_line_at(const struct tally *tally, uint32_t index)
{
    uint32_t column = (index - 1) / LINES_PER_COLUMN;
    uint32_t kind = (index - 1) % LINES_PER_COLUMN;
    return kind == DROP_REASON_COUNT ? &tally->nulled[column] : &tally->dropped[column][kind];
}

static void put_three(struct buf *out, enum account_tag tag, uint32_t index, const uint64_t *counts)
{
    if (counts[0] == 0 && counts[1] == 0 && counts[2] == 0) return;
    buf_put_u8(out, (uint8_t)tag);
    buf_put_u32(out, index);
    for (uint32_t i = 0; i < 3; i++) {
        buf_put_u64(out, counts[i]);
    }
}

static void put_line(struct buf *out, uint32_t index, const struct tally_line *line)
{
    uint64_t counts[3] = {line->count, line->first_chunk, line->first_line};
    if (line->count > 0) put_three(out, TAG_LINE, index, counts);
}

void account_encode(const struct account *account, const struct plan *plan, struct buf *out)
{
    for (uint32_t i = 0; i < plan->table_count; i++) {
        const struct tally *tally = &account->tallies[i];
        if (tally->record_count == 0) continue;
        put_three(out, TAG_TABLE, i, (uint64_t[]){tally->record_count, tally->kept_count, 0});
        put_line(out, 0, &tally->wrong_fields);
        for (uint32_t line = 1; line <= tally->column_count * LINES_PER_COLUMN; line++) {
            put_line(out, line, tally_line_at(tally, line));
        }
    }
    for (uint32_t i = 0; i < plan->pipeline_count; i++) {
        const struct stage_counts *map = &account->maps[i];
        const struct book_end *sent = &account->sent[i];
        const struct book_end *applied = &account->applied[i];
        put_three(out, TAG_MAP, i, (uint64_t[]){map->rows_in, map->rows_out, map->malformed});
        put_three(out, TAG_SENT, i,
                  (uint64_t[]){sent->batch_count, sent->row_count, sent->hash_sum});
        put_three(out, TAG_APPLIED, i,
                  (uint64_t[]){applied->batch_count, applied->row_count, applied->hash_sum});
    }
    for (uint32_t i = 0; i < plan->fold_count; i++) {
        const struct fold_counts *fold = &account->folds[i];
        put_three(out, TAG_FOLD, i, (uint64_t[]){fold->rows_in, fold->rows_out, fold->batches_out});
    }
    for (uint32_t i = 0; i < plan->query_count; i++) {
        const struct book_end *given = &account->given[i];
        put_three(out, TAG_GIVEN, i,
                  (uint64_t[]){given->batch_count, given->row_count, given->hash_sum});
    }
}

static bool add_line(struct tally *tally, uint32_t index, const uint64_t *counts)
{
    if (tally == NULL || index > tally->column_count * LINES_PER_COLUMN) return false;
    struct tally_line line = {counts[0], counts[1], counts[2]};
    line_merge(index == 0 ? &tally->wrong_fields : tally_line_at(tally, index), &line);
    return true;
}

/* One entry, which speaks of `table` if it is a line. */
static bool add_entry(struct account *account, const struct plan *plan, uint8_t tag, uint32_t index,
                      const uint64_t *counts, struct tally **table)
{
    struct stage_counts stage = {counts[0], counts[1], counts[2]};
    struct book_end end = {counts[0], counts[1], counts[2]};
    struct fold_counts fold = {counts[0], counts[1], counts[2]};
    bool is_pipeline = index < plan->pipeline_count;
    switch (tag) {
    case TAG_TABLE:
        if (index >= plan->table_count) return false;
        *table = &account->tallies[index];
        (*table)->record_count += counts[0];
        (*table)->kept_count += counts[1];
        return true;
    case TAG_LINE:
        return add_line(*table, index, counts);
    case TAG_MAP:
        if (is_pipeline) stage_merge(&account->maps[index], &stage);
        return is_pipeline;
    case TAG_SENT:
        if (is_pipeline) book_end_merge(&account->sent[index], &end);
        return is_pipeline;
    case TAG_APPLIED:
        if (is_pipeline) book_end_merge(&account->applied[index], &end);
        return is_pipeline;
    case TAG_FOLD:
        if (index >= plan->fold_count) return false;
        fold_merge(&account->folds[index], &fold);
        return true;
    case TAG_GIVEN:
        if (index >= plan->query_count) return false;
        book_end_merge(&account->given[index], &end);
        return true;
    default:
        return false;
    }
}

status account_add(struct account *account, const struct plan *plan, struct text bytes,
                   struct error *err)
{
    struct buf_reader reader = {.bytes = (const unsigned char *)bytes.bytes, .size = bytes.size};
    struct tally *table = NULL;
    while (buf_left(&reader) > 0) {
        uint8_t tag = buf_get_u8(&reader);
        uint32_t index = buf_get_u32(&reader);
        uint64_t counts[3];
        for (uint32_t i = 0; i < 3; i++) {
            counts[i] = buf_get_u64(&reader);
        }
        if (reader.failed || !add_entry(account, plan, tag, index, counts, &table)) {
            return error_set(err, STATUS_CORRUPT, "an account does not fit its plan");
        }
    }
    return STATUS_OK;
}
