/* SPDX-License-Identifier: Apache-2.0 */
/* function_text.c - functions of texts.
 *
 * What is a part of its argument (trim, substring, split_part) is borrowed from it; what is new is
 * written once, at its final size, to a region of the batch arena. Bytes that are no UTF-8 count as
 * one character each, so every text has a length.
 */
#include <string.h>

#include "engine/base/assert.h"
#include "engine/exec/expr/kernels.h"

static inline struct text text_at(const struct operand *operand, uint32_t row)
{
    return operand->column.texts[row & operand->mask];
}

static inline int64_t int_at(const struct operand *operand, uint32_t row)
{
    return operand->column.ints[row & operand->mask];
}

static status too_long(struct error *err)
{
    return error_set(err, STATUS_LIMIT, "a text would be longer than 4 GiB");
}

/* --- New texts. --- */

status text_concat(struct eval *eval, const struct frame *frame, struct column *out,
                   struct error *err)
{
    struct arena *arena = frame->context->arena;
    uint32_t count = eval->arg_count;
    struct operand *operands = arena_array(arena, struct operand, count);
    if (operands == NULL) return kernel_no_memory(err);
    bool is_null = false;
    for (uint32_t i = 0; i < count; i++) {
        TRY(operand_load(eval->args[i], frame, &operands[i], err));
        is_null |= operands[i].is_null;
    }
    if (is_null) return kernel_all_null(TYPE(TEXT), frame, out, err);
    if (!column_init(out, TYPE(TEXT), frame->batch->row_count, arena)) return kernel_no_memory(err);
    TRY(kernel_nulls(frame, operands, count, &out->nulls, err));
    struct text_writer writer = {.arena = arena};
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        size_t size = 0;
        for (uint32_t j = 0; j < count; j++) {
            size += text_at(&operands[j], row).size;
        }
        if (size > UINT32_MAX) return too_long(err);
        if (!text_writer_reserve(&writer, size)) return kernel_no_memory(err);
        size_t used = 0;
        for (uint32_t j = 0; j < count; j++) {
            struct text part = text_at(&operands[j], row);
            if (part.size > 0) memcpy(writer.next + used, part.bytes, part.size);
            used += part.size;
        }
        out->texts[row] = text_writer_take(&writer, size);
    }
    return STATUS_OK;
}

/* Letters from `first` to `first` + 25 change their case, which is one bit. */
static void change_case(char *out, struct text in, unsigned char first)
{
    for (uint32_t i = 0; i < in.size; i++) {
        unsigned char c = (unsigned char)in.bytes[i];
        out[i] = (char)(c ^ ((unsigned char)(c - first) < 26 ? 0x20 : 0));
    }
}

status text_case(struct eval *eval, const struct frame *frame, struct column *out,
                 struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    unsigned char first = eval->expr->function == FUNCTION_LOWER ? 'A' : 'a';
    struct text_writer writer = {.arena = frame->context->arena};
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        struct text text = text_at(&operands[0], row);
        if (!text_writer_reserve(&writer, text.size)) return kernel_no_memory(err);
        change_case(writer.next, text, first);
        out->texts[row] = text_writer_take(&writer, text.size);
    }
    return STATUS_OK;
}

/* The first place of `needle`, which is not empty, from `start` on; NULL when there is none. */
static const char *find(struct text text, uint32_t start, struct text needle)
{
    if (text.size - start < needle.size)
        return NULL; /* An empty text may have no bytes to add to. */
    return text_find((struct text){text.bytes + start, text.size - start}, needle);
}

static uint32_t count_occurrences(struct text text, struct text needle)
{
    uint32_t count = 0;
    uint32_t start = 0;
    for (const char *at = find(text, start, needle); at != NULL; at = find(text, start, needle)) {
        start = (uint32_t)(at - text.bytes) + needle.size;
        count++;
    }
    return count;
}

static void replace_all(char *out, struct text text, struct text needle, struct text by)
{
    uint32_t start = 0;
    for (const char *at = find(text, start, needle); at != NULL; at = find(text, start, needle)) {
        uint32_t place = (uint32_t)(at - text.bytes);
        memcpy(out, text.bytes + start, place - start);
        out += place - start;
        if (by.size > 0) memcpy(out, by.bytes, by.size);
        out += by.size;
        start = place + needle.size;
    }
    if (text.size > start) memcpy(out, text.bytes + start, text.size - start);
}

status text_replace(struct eval *eval, const struct frame *frame, struct column *out,
                    struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct text_writer writer = {.arena = frame->context->arena};
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        struct text text = text_at(&operands[0], row);
        struct text needle = text_at(&operands[1], row);
        struct text by = text_at(&operands[2], row);
        uint64_t count = needle.size == 0 ? 0 : count_occurrences(text, needle);
        if (count == 0) {
            out->texts[row] = text;
            continue;
        }
        uint64_t size = text.size - count * needle.size + count * by.size;
        if (size > UINT32_MAX) return too_long(err);
        if (!text_writer_reserve(&writer, size)) return kernel_no_memory(err);
        replace_all(writer.next, text, needle, by);
        out->texts[row] = text_writer_take(&writer, size);
    }
    return STATUS_OK;
}

/* --- Parts of texts. --- */

status text_trim(struct eval *eval, const struct frame *frame, struct column *out,
                 struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    for (uint32_t i = 0; i < frame->selection.count; i++) {
        uint32_t row = selection_row(frame->selection, i);
        if (is_null_at(out->nulls, row)) continue;
        struct text text = text_at(&operands[0], row);
        while (text.size > 0 && text.bytes[0] == ' ') {
            text.bytes++;
            text.size--;
        }
        while (text.size > 0 && text.bytes[text.size - 1] == ' ') {
            text.size--;
        }
        out->texts[row] = text;
    }
    return STATUS_OK;
}

/* Where the character number `index` after those before `from_byte` begins; the text's end if it
 * has fewer. */
static uint32_t byte_of_character(struct text text, uint32_t from_byte, int64_t index)
{
    uint32_t at = from_byte;
    for (; index > 0 && at < text.size; index--) {
        at += utf8_step(text.bytes + at, text.size - at);
    }
    return at;
}

status text_length(struct eval *eval, const struct frame *frame, struct column *out,
                   struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
             out->ints[row] = utf8_count(text_at(&operands[0], row)););
    return STATUS_OK;
}

/* The characters start .. end-1 that substring(text of `length` characters, from, count) means.
 * As in DuckDB: position 0 is before the first character, a negative one counts from the end, a
 * negative count takes what stands before. */
static void substring_bounds(int64_t length, int64_t from, int64_t count, int64_t *out_start,
                             int64_t *out_end)
{
    *out_start = *out_end = 0;
    /* No text is longer than this, so larger numbers mean the same and cannot overflow. */
    const int64_t bound = (int64_t)UINT32_MAX + 2;
    from = from > bound ? bound : from < -bound ? -bound : from;
    count = count > bound ? bound : count < -bound ? -bound : count;
    if (from == 0 && count < 0) return;
    /* Where the counting starts may lie outside of the text; a negative count goes to the left. */
    int64_t origin = from > 0 ? from - 1 : from < 0 ? length + from : -1;
    int64_t start = count < 0 ? origin + count : origin;
    int64_t end = count < 0 ? origin : origin + count;
    if (start < 0) start = 0;
    if (end > length) end = length;
    if (start >= end) return;
    *out_start = start;
    *out_end = end;
}

static struct text substring(struct text text, int64_t from, int64_t count)
{
    int64_t start, end;
    /* What is counted from the start does not ask how long the text is: it has no more characters
     * than bytes. */
    bool is_from_start = from >= 0 && count >= 0;
    uint32_t length = is_from_start ? text.size : utf8_count(text);
    substring_bounds(length, from, count, &start, &end);
    uint32_t first_byte = byte_of_character(text, 0, start);
    uint32_t end_byte = byte_of_character(text, first_byte, end - start);
    return (struct text){text.bytes + first_byte, end_byte - first_byte};
}

status text_substring(struct eval *eval, const struct frame *frame, struct column *out,
                      struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    bool has_count = eval->arg_count == 3;
    EACH_ROW(
        frame->selection, row, if (is_null_at(out->nulls, row)) continue;
        const struct text text = text_at(&operands[0], row);
        if (text.size == 0) {
            out->texts[row] = text;
            continue;
        } out->texts[row] = substring(text, int_at(&operands[1], row),
                                      has_count ? int_at(&operands[2], row) : INT64_MAX););
    return STATUS_OK;
}

/* Number of the part among `parts` that an index means, from 1; 0: none. */
static uint32_t part_number(int64_t index, uint32_t parts)
{
    if (index < 0) index += (int64_t)parts + 1;
    return index < 1 || index > parts ? 0 : (uint32_t)index;
}

static struct text nth_character(struct text text, int64_t index)
{
    uint32_t number = part_number(index, utf8_count(text));
    if (number == 0) return TEXT_LITERAL("");
    uint32_t at = byte_of_character(text, 0, number - 1);
    return (struct text){text.bytes + at, utf8_step(text.bytes + at, text.size - at)};
}

/* Where part `number` of the text begins, from 1; false: there are fewer. */
static bool find_part(struct text text, struct text separator, int64_t number, uint32_t *out_start)
{
    uint32_t start = 0;
    for (; number > 1; number--) {
        const char *at = find(text, start, separator);
        if (at == NULL) return false;
        start = (uint32_t)(at - text.bytes) + separator.size;
    }
    *out_start = start;
    return number == 1;
}

static struct text part_at(struct text text, struct text separator, uint32_t start)
{
    const char *at = find(text, start, separator);
    uint32_t end = at == NULL ? text.size : (uint32_t)(at - text.bytes);
    return (struct text){text.bytes + start, end - start};
}

/* As in DuckDB: a negative index counts from the end, an empty separator splits at every
 * character. */
static struct text split_part(struct text text, struct text separator, int64_t index)
{
    if (text.size == 0) return TEXT_LITERAL("");
    if (separator.size == 0) return nth_character(text, index);
    if (index < 0) index = part_number(index, count_occurrences(text, separator) + 1);
    uint32_t start;
    if (!find_part(text, separator, index, &start)) return TEXT_LITERAL("");
    return part_at(text, separator, start);
}

/* What came before the part in some texts: addresses and paths begin alike, and a text that begins
 * like another one has the part in the same place. */
struct known_fronts {
    struct text fronts[2];
    uint32_t next; /* To be replaced. */
    uint32_t known_count;
    uint32_t new_count;
};

static bool find_front(const struct known_fronts *known, struct text text, uint32_t *out_start)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct text front = known->fronts[i];
        if (front.size == 0 || front.size > text.size) continue;
        *out_start = front.size;
        if (memcmp(text.bytes, front.bytes, front.size) == 0) return true;
    }
    return false;
}

static struct text split_like_others(struct known_fronts *known, struct text text,
                                     struct text separator, int64_t index)
{
    enum { NEW_MORE = 16 }; /* By so many more new ones than known ones it is given up. */
    uint32_t start;
    if (known->new_count > known->known_count + NEW_MORE) return split_part(text, separator, index);
    if (find_front(known, text, &start)) {
        known->known_count++;
        return part_at(text, separator, start);
    }
    known->new_count++;
    if (text.size == 0 || !find_part(text, separator, index, &start)) return TEXT_LITERAL("");
    known->fronts[known->next] = (struct text){text.bytes, start};
    known->next ^= 1;
    return part_at(text, separator, start);
}

status text_split_part(struct eval *eval, const struct frame *frame, struct column *out,
                       struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    struct known_fronts known = {0};
    bool is_fixed = operands[1].mask == 0 && operands[2].mask == 0;
    /* The first part has nothing before it. */
    if (is_fixed && int_at(&operands[2], 0) > 1 && text_at(&operands[1], 0).size > 0) {
        EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
                 out->texts[row] =
                     split_like_others(&known, text_at(&operands[0], row),
                                       text_at(&operands[1], row), int_at(&operands[2], row)););
        return STATUS_OK;
    }
    EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
             out->texts[row] = split_part(text_at(&operands[0], row), text_at(&operands[1], row),
                                          int_at(&operands[2], row)););
    return STATUS_OK;
}

/* --- Tests. --- */

static bool search(enum function_id function, struct text text, struct text needle)
{
    if (needle.size == 0) return true;
    if (needle.size > text.size) return false;
    switch (function) {
    case FUNCTION_STARTS_WITH:
        return memcmp(text.bytes, needle.bytes, needle.size) == 0;
    case FUNCTION_ENDS_WITH:
        return memcmp(text.bytes + (text.size - needle.size), needle.bytes, needle.size) == 0;
    default:
        ASSERT(function == FUNCTION_CONTAINS);
        return find(text, 0, needle) != NULL;
    }
}

status text_search(struct eval *eval, const struct frame *frame, struct column *out,
                   struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    enum function_id function = eval->expr->function;
    EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
             out->bools[row] =
                 search(function, text_at(&operands[0], row), text_at(&operands[1], row)););
    return STATUS_OK;
}
