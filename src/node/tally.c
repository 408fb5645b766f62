/* tally.c - adding up, and turning places into file and line. */
#include "node/tally.h"

#include <stdio.h>

#include "data/csv_split.h"

bool tally_init(struct tally *tally, uint32_t column_count, struct arena *arena)
{
    *tally = (struct tally){.column_count = column_count};
    tally->dropped =
        arena_calloc(arena, column_count + 1, sizeof *tally->dropped, alignof(struct tally_line));
    tally->nulled = arena_array(arena, struct tally_line, column_count + 1);
    return tally->dropped != NULL && tally->nulled != NULL;
}

static void line_add(struct tally_line *line, uint64_t chunk_number, const struct chunk *chunk,
                     const struct drop_count *more)
{
    if (more->count == 0) return;
    if (line->count == 0 || chunk_number < line->first_chunk) {
        line->first_chunk = chunk_number;
        line->first_line = csv_count_lines(chunk->bytes, more->first_offset);
    }
    line->count += more->count;
}

void tally_add(struct tally *tally, uint64_t chunk_number, const struct chunk *chunk,
               const struct chunk_tally *more)
{
    tally->record_count += more->record_count;
    tally->kept_count += more->kept_count;
    line_add(&tally->wrong_fields, chunk_number, chunk, &more->wrong_fields);
    for (uint32_t i = 0; i < tally->column_count; i++) {
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            line_add(&tally->dropped[i][reason], chunk_number, chunk, &more->dropped[i][reason]);
        }
        line_add(&tally->nulled[i], chunk_number, chunk, &more->nulled[i]);
    }
}

static void line_merge(struct tally_line *line, const struct tally_line *more)
{
    if (more->count == 0) return;
    if (line->count == 0 || more->first_chunk < line->first_chunk) {
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

struct book_context {
    const struct table_files *files;
    const uint32_t *chunk_lines;
    struct arena *arena;
};

static void place(const struct book_context *context, const struct tally_line *line,
                  struct book_line *out)
{
    out->count = line->count;
    for (uint32_t i = 0; i < context->files->file_count; i++) {
        const struct table_file *file = &context->files->files[i];
        if (line->first_chunk >= file->first_chunk + file->chunk_count) continue;
        uint64_t lines = file->header_lines + line->first_line;
        for (uint64_t chunk = file->first_chunk; chunk < line->first_chunk; chunk++) {
            lines += context->chunk_lines[chunk];
        }
        out->first_file = file->name;
        out->first_line = lines + 1;
        return;
    }
}

static const char *unreadable(const struct book_context *context, struct type type)
{
    char name[TYPE_NAME_SIZE];
    char text[TYPE_NAME_SIZE + 8];
    type_name(type, name);
    (void)snprintf(text, sizeof text, "not %s %s", type.kind == TYPE_INT ? "an" : "a",
                   name); /* Always fits. */
    return arena_copy_string(context->arena, text_of(text));
}

bool tally_book(const struct tally *tally, const struct table *table,
                const struct table_files *files, const uint32_t *chunk_lines, struct arena *arena,
                struct book_table *out_book)
{
    struct book_context context = {files, chunk_lines, arena};
    struct book_line *dropped =
        arena_array(arena, struct book_line, DROP_REASON_COUNT * tally->column_count + 1);
    struct book_line *nulled = arena_array(arena, struct book_line, tally->column_count + 1);
    if (dropped == NULL || nulled == NULL) return false;
    uint32_t dropped_count = 0;
    uint32_t nulled_count = 0;
    if (tally->wrong_fields.count > 0) {
        dropped[dropped_count].reason = "wrong number of fields";
        place(&context, &tally->wrong_fields, &dropped[dropped_count++]);
    }
    for (uint32_t i = 0; i < tally->column_count; i++) {
        const struct field *field = &table->schema.fields[i];
        const char *reasons[] = {"empty", unreadable(&context, field->type)};
        if (reasons[1] == NULL) return false;
        for (uint32_t reason = 0; reason < DROP_REASON_COUNT; reason++) {
            if (tally->dropped[i][reason].count == 0) continue;
            dropped[dropped_count] =
                (struct book_line){.column = field->name, .reason = reasons[reason]};
            place(&context, &tally->dropped[i][reason], &dropped[dropped_count++]);
        }
        if (tally->nulled[i].count > 0) {
            nulled[nulled_count] = (struct book_line){.column = field->name, .reason = reasons[1]};
            place(&context, &tally->nulled[i], &nulled[nulled_count++]);
        }
    }
    *out_book = (struct book_table){
        .name = table->name,
        .file_count = files->file_count,
        .byte_count = files->byte_count,
        .record_count = tally->record_count,
        .kept_count = tally->kept_count,
        .dropped = dropped,
        .dropped_count = dropped_count,
        .nulled = nulled,
        .nulled_count = nulled_count,
    };
    return true;
}
