/* SPDX-License-Identifier: Apache-2.0 */
/* batch_builder.c - one growing buffer per column.
 *
 * Texts are kept as end offsets into one run of bytes: appending never moves what was appended, and
 * the wire format (engine/data/batch_codec.c) is the same, so that encoding is a copy.
 */
#include "engine/data/batch_builder.h"

#include "engine/base/assert.h"

bool builder_init(struct batch_builder *builder, struct schema schema, struct budget *budget)
{
    *builder = (struct batch_builder){.schema = schema};
    arena_init(&builder->arena, budget);
    builder->columns = arena_array(&builder->arena, struct builder_column, schema.count + 1);
    if (builder->columns == NULL) return false;
    for (uint32_t i = 0; i < schema.count; i++) {
        struct builder_column *column = &builder->columns[i];
        column->values.budget = budget;
        column->nulls.budget = budget;
        column->bytes.budget = budget;
        column->elements.budget = budget;
    }
    builder->mark = arena_mark(&builder->arena);
    return true;
}

void builder_done(struct batch_builder *builder)
{
    for (uint32_t i = 0; builder->columns != NULL && i < builder->schema.count; i++) {
        struct builder_column *column = &builder->columns[i];
        buf_done(&column->values);
        buf_done(&column->nulls);
        buf_done(&column->bytes);
        buf_done(&column->elements);
    }
    builder->columns = NULL;
    arena_done(&builder->arena);
}

void builder_reset(struct batch_builder *builder)
{
    for (uint32_t i = 0; i < builder->schema.count; i++) {
        struct builder_column *column = &builder->columns[i];
        buf_reset(&column->values);
        buf_reset(&column->nulls);
        buf_reset(&column->bytes);
        buf_reset(&column->elements);
    }
    arena_release(&builder->arena, builder->mark);
    builder->row_count = 0;
    builder->failed = false;
    builder->too_large = false;
}

static bool has_null(const struct column *column, struct selection selection)
{
    uint8_t found = 0;
    for (uint32_t i = 0; column->nulls != NULL && i < selection.count; i++) {
        found |= column->nulls[selection_row(selection, i)];
    }
    return found != 0;
}

static void append_nulls(struct batch_builder *builder, struct builder_column *out,
                         const struct column *in, struct selection selection)
{
    /* An array of nulls in which none is says nothing: equal rows have equal bytes. */
    if (out->nulls.size == 0 && !has_null(in, selection)) return;
    /* Rows before the first NULL were not noted. */
    size_t missing = builder->row_count - out->nulls.size;
    if (!buf_reserve(&out->nulls, missing + selection.count)) return;
    memset(out->nulls.bytes + out->nulls.size, 0, missing + selection.count);
    out->nulls.size += missing;
    uint8_t *nulls = out->nulls.bytes + out->nulls.size;
    for (uint32_t i = 0; in->nulls != NULL && i < selection.count; i++) {
        nulls[i] = in->nulls[selection_row(selection, i)];
    }
    out->nulls.size += selection.count;
}

static void append_words(struct builder_column *out, const struct column *in,
                         struct selection selection)
{
    size_t size = (size_t)selection.count * sizeof(int64_t);
    if (!buf_reserve(&out->values, size)) return;
    int64_t *values = (int64_t *)(void *)(out->values.bytes + out->values.size);
    if (in->nulls != NULL) {
        /* A NULL's place holds zero, so that equal rows have equal bytes. */
        for (uint32_t i = 0; i < selection.count; i++) {
            uint32_t row = selection_row(selection, i);
            values[i] = in->nulls[row] ? 0 : in->ints[row];
        }
    } else if (selection.rows == NULL) {
        memcpy(values, in->ints, size);
    } else {
        for (uint32_t i = 0; i < selection.count; i++) {
            values[i] = in->ints[selection.rows[i]];
        }
    }
    out->values.size += size;
}

static void append_bools(struct builder_column *out, const struct column *in,
                         struct selection selection)
{
    if (!buf_reserve(&out->values, selection.count)) return;
    uint8_t *values = out->values.bytes + out->values.size;
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        values[i] = column_is_null(in, row) ? 0 : in->bools[row];
    }
    out->values.size += selection.count;
}

/* One text and its end offset; more than 4 GiB of text in one batch fails. */
static void append_text(struct buf *ends, struct buf *bytes, struct text text)
{
    buf_put_text(bytes, text);
    if (bytes->size > UINT32_MAX) bytes->failed = true;
    uint32_t end = (uint32_t)bytes->size;
    buf_put(ends, &end, sizeof end);
}

static struct text text_or_empty(const struct column *in, uint32_t row)
{
    return column_is_null(in, row) ? (struct text){0} : in->texts[row];
}

/* Room for all texts is made first, so that each is no more than a copy. */
static void append_texts(struct batch_builder *builder, struct builder_column *out,
                         const struct column *in, struct selection selection)
{
    size_t total = 0;
    for (uint32_t i = 0; i < selection.count; i++) {
        total += text_or_empty(in, selection_row(selection, i)).size;
    }
    if (total > UINT32_MAX - out->bytes.size) {
        builder->too_large = true;
        out->bytes.failed = true;
        return;
    }
    size_t ends_size = (size_t)selection.count * sizeof(uint32_t);
    if (!buf_reserve(&out->bytes, total) || !buf_reserve(&out->values, ends_size)) return;
    uint32_t *ends = (uint32_t *)(void *)(out->values.bytes + out->values.size);
    uint32_t end = (uint32_t)out->bytes.size;
    for (uint32_t i = 0; i < selection.count; i++) {
        struct text text = text_or_empty(in, selection_row(selection, i));
        if (text.size > 0) memcpy(out->bytes.bytes + end, text.bytes, text.size);
        end += text.size;
        ends[i] = end;
    }
    out->bytes.size = end;
    out->values.size += ends_size;
}

static void append_lists(struct builder_column *out, const struct column *in,
                         struct selection selection)
{
    size_t element_bytes = in->type.kind == TYPE_LIST_TEXT ? sizeof(uint32_t) : sizeof(int64_t);
    for (uint32_t i = 0; i < selection.count; i++) {
        uint32_t row = selection_row(selection, i);
        struct list list = column_is_null(in, row) ? (struct list){0} : in->lists[row];
        for (uint32_t j = list.first; j < list.first + list.count; j++) {
            if (in->type.kind == TYPE_LIST_TEXT) {
                append_text(&out->elements, &out->bytes, in->child->texts[j]);
            } else {
                buf_put(&out->elements, &in->child->ints[j], sizeof in->child->ints[j]);
            }
        }
        if (out->elements.size / element_bytes > UINT32_MAX) out->elements.failed = true;
        uint32_t end = (uint32_t)(out->elements.size / element_bytes);
        buf_put(&out->values, &end, sizeof end);
    }
}

void builder_append(struct batch_builder *builder, const struct batch *batch,
                    struct selection selection)
{
    if (builder->failed || selection.count == 0) return;
    if (selection.count > UINT32_MAX - 1 - builder->row_count) {
        builder->failed = true;
        builder->too_large = true;
        return;
    }
    ASSERT(batch->column_count >= builder->schema.count);
    for (uint32_t i = 0; i < builder->schema.count; i++) {
        struct builder_column *out = &builder->columns[i];
        const struct column *in = &batch->columns[i];
        ASSERT(in->type.kind == builder->schema.fields[i].type.kind);
        append_nulls(builder, out, in, selection);
        switch ((enum type_kind)in->type.kind) {
        case TYPE_NULL:
        case TYPE_BOOL:
            append_bools(out, in, selection);
            break;
        case TYPE_TEXT:
            append_texts(builder, out, in, selection);
            break;
        case TYPE_LIST_TEXT:
        case TYPE_LIST_INT:
            append_lists(out, in, selection);
            break;
        case TYPE_INT:
        case TYPE_DECIMAL:
        case TYPE_DOUBLE:
        case TYPE_DATE:
        case TYPE_TIMESTAMP:
            append_words(out, in, selection);
            break;
        }
        builder->too_large = builder->too_large || out->bytes.size > UINT32_MAX ||
                             out->elements.size / sizeof(uint32_t) > UINT32_MAX;
        builder->failed = builder->failed || out->values.failed || out->nulls.failed ||
                          out->bytes.failed || out->elements.failed;
    }
    builder->row_count += selection.count;
}

static bool view_texts(struct text **out, const struct buf *ends, const struct buf *bytes,
                       size_t count, struct arena *arena)
{
    struct text *texts = arena_array(arena, struct text, count + 1);
    if (texts == NULL) return false;
    const uint32_t *end = (const uint32_t *)(const void *)ends->bytes;
    uint32_t start = 0;
    for (size_t i = 0; i < count; i++) {
        texts[i] = (struct text){"", end[i] - start};
        if (texts[i].size > 0) texts[i].bytes = (const char *)bytes->bytes + start;
        start = end[i];
    }
    *out = texts;
    return true;
}

static bool view_lists(struct column *column, const struct builder_column *from, uint32_t row_count,
                       struct arena *arena)
{
    column->lists = arena_array(arena, struct list, row_count + 1);
    column->child = arena_new(arena, struct column);
    if (column->lists == NULL || column->child == NULL) return false;
    const uint32_t *end = (const uint32_t *)(const void *)from->values.bytes;
    uint32_t start = 0;
    for (uint32_t i = 0; i < row_count; i++) {
        column->lists[i] = (struct list){start, end[i] - start};
        start = end[i];
    }
    column->child->type = type_element(column->type);
    if (column->type.kind == TYPE_LIST_INT) {
        column->child->data = from->elements.bytes;
        return true;
    }
    return view_texts(&column->child->texts, &from->elements, &from->bytes, start, arena);
}

bool builder_batch(struct batch_builder *builder, struct batch *out_batch)
{
    if (builder->failed) return false;
    arena_release(&builder->arena, builder->mark);
    uint32_t count = builder->schema.count;
    struct column *columns = arena_array(&builder->arena, struct column, count + 1);
    if (columns == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct builder_column *from = &builder->columns[i];
        columns[i].type = builder->schema.fields[i].type;
        if (from->nulls.size > 0) {
            ASSERT(from->nulls.size == builder->row_count);
            columns[i].nulls = from->nulls.bytes;
        }
        if (columns[i].type.kind == TYPE_TEXT) {
            if (!view_texts(&columns[i].texts, &from->values, &from->bytes, builder->row_count,
                            &builder->arena)) {
                return false;
            }
        } else if (type_is_list(columns[i].type)) {
            if (!view_lists(&columns[i], from, builder->row_count, &builder->arena)) return false;
        } else {
            columns[i].data = from->values.bytes;
        }
    }
    *out_batch =
        (struct batch){.row_count = builder->row_count, .column_count = count, .columns = columns};
    return true;
}
