/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_source.c - cuts chunks in order, records their offsets, and reads them again by these.
 *
 * The body of a chunk does not depend on the scan, so all scans of a table share the records, and
 * the first one that reaches a chunk cuts it.
 *
 * The client does not upload unused columns: a chunk is made narrow (csv_narrow.h) if neither the
 * answer nor the audit could show it, which is nearly always. Whether a chunk is narrow depends
 * only on the bytes up to it, so another incarnation of the client makes identical bodies.
 */
#include "cluster/node/chunk_source.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/buf.h"
#include "engine/base/hash.h"
#include "engine/data/csv_narrow.h"
#include "engine/data/csv_scan.h"
#include "engine/file/file.h"
#include "engine/local/chunk_reader.h"
#include "cluster/wire/message.h"

enum {
    /* After a chunk that could not be made narrow, so many are not tried: where an unused column
     * holds texts with line ends, most attempts would fail. */
    WIDE_CHUNKS = 16,
};

struct source_note {
    uint64_t offset;
    uint64_t first_line;
    uint64_t checksum; /* Of the whole body. */
    uint32_t file;
    bool is_narrow;
};

/* Of a file: its used columns, and the position of each column of the table among them. */
struct source_columns {
    struct csv_narrow narrow;
    const uint32_t *column_map;
};

struct source_table {
    struct source_note *notes;      /* By chunk. */
    uint64_t known_count;           /* Chunks that were cut. */
    uint64_t next_offset;           /* Of the next chunk's records in its file. */
    uint64_t narrow_from;           /* No chunk below this one is made narrow. */
    struct source_columns *columns; /* By file. */
};

struct chunk_source {
    struct chunk_source_options options;
    struct arena arena;
    struct source_table *tables;
    uint32_t **line_counts;
    struct chunk_reader *reader;
    struct buf head; /* Of the chunk that is being cut. */
};

/* ---- creating ---- */

static status plan_columns(struct chunk_source *source, uint32_t table, struct error *err)
{
    const struct table_files *files = &source->options.files[table];
    uint32_t count = source->options.plan->tables[table].schema.count;
    struct source_columns *columns =
        arena_array(&source->arena, struct source_columns, files->file_count + (size_t)1);
    if (columns == NULL) return error_memory(err);
    for (uint32_t i = 0; i < files->file_count; i++) {
        const struct table_file *file = &files->files[i];
        if (file->column_map == NULL) continue; /* It is empty. */
        uint32_t *map = arena_array(&source->arena, uint32_t, count + (size_t)1);
        if (map == NULL) return error_memory(err);
        memcpy(map, file->column_map, count * sizeof *map);
        TRY(csv_narrow_init(&columns[i].narrow, file->column_count, map, count, &source->arena,
                            err));
        columns[i].column_map = map;
    }
    source->tables[table].columns = columns;
    return STATUS_OK;
}

static status source_init(struct chunk_source *source, struct error *err)
{
    const struct plan *plan = source->options.plan;
    struct arena *arena = &source->arena;
    source->tables = arena_array(arena, struct source_table, plan->table_count + 1);
    source->line_counts = arena_array(arena, uint32_t *, plan->table_count + 1);
    if (source->tables == NULL || source->line_counts == NULL) return error_memory(err);
    for (uint32_t i = 0; i < plan->table_count; i++) {
        uint64_t count = source->options.files[i].chunk_count;
        source->tables[i].notes = arena_array(arena, struct source_note, count + 1);
        source->line_counts[i] = arena_array(arena, uint32_t, count + 1);
        if (source->tables[i].notes == NULL || source->line_counts[i] == NULL) {
            return error_set(err, STATUS_MEMORY, "table %.*s: no memory for its list of chunks",
                             TEXT_ARGS(plan->tables[i].name));
        }
        TRY(plan_columns(source, i, err));
    }
    return chunk_reader_create(NULL, &source->reader, err);
}

status chunk_source_create(const struct chunk_source_options *options, struct chunk_source **out,
                           struct error *err)
{
    struct chunk_source *source = memory_alloc(NULL, sizeof *source);
    if (source == NULL) return error_memory(err);
    *source = (struct chunk_source){.options = *options};
    status result = source_init(source, err);
    if (result != STATUS_OK) {
        chunk_source_destroy(source);
        return result;
    }
    *out = source;
    return STATUS_OK;
}

void chunk_source_destroy(struct chunk_source *source)
{
    if (source == NULL) return;
    chunk_reader_destroy(source->reader);
    buf_done(&source->head);
    arena_done(&source->arena);
    memory_free(NULL, source, sizeof *source);
}

/* ---- identity of files ---- */

static status fail_changed(struct text name, struct error *err)
{
    return error_set(err, STATUS_INPUT, "%.*s changed while it was being read", TEXT_ARGS(name));
}

/* By its path, so that a file that was replaced is noticed. */
static status check_file(const struct table_file *file, struct error *err)
{
    struct file_info info = {0};
    int fd = -1;
    struct error ignored;
    bool is_there = file_open(file->path, &fd, &info, &ignored) == STATUS_OK;
    file_close(fd);
    bool is_same = is_there && info.size == file->size && info.modified_ns == file->modified_ns &&
                   info.inode == file->inode;
    return is_same ? STATUS_OK : fail_changed(file->name, err);
}

static status check_table(const struct table_files *files, struct error *err)
{
    for (uint32_t i = 0; i < files->file_count; i++) {
        TRY(check_file(&files->files[i], err));
    }
    return STATUS_OK;
}

/* ---- reading ---- */

static uint32_t column_count(const struct chunk_source *source, uint32_t table)
{
    return source->options.plan->tables[table].schema.count;
}

/* Completes a body: writes the head before the records. */
static status put_head(struct chunk_source *source, uint32_t table, const struct source_note *note,
                       struct buf *body, struct error *err)
{
    const struct table_file *file = &source->options.files[table].files[note->file];
    const struct source_columns *columns = &source->tables[table].columns[note->file];
    struct buf *head = &source->head;
    size_t front = chunk_body_head_bytes(column_count(source, table));
    struct chunk_body fields = {
        .file = note->file,
        .offset = note->offset,
        .first_line = note->first_line,
        .file_columns = note->is_narrow ? columns->narrow.kept_count : file->column_count,
        .column_map = note->is_narrow ? columns->column_map : file->column_map,
        .column_count = column_count(source, table),
        .bytes = {NULL, (uint32_t)(body->size - front)},
    };
    if (file->column_count > CHUNK_COLUMNS_MAX) {
        return error_set(err, STATUS_LIMIT, "%.*s has %u columns; a cluster takes at most %d",
                         TEXT_ARGS(file->name), file->column_count, CHUNK_COLUMNS_MAX);
    }
    buf_reset(head);
    chunk_body_encode_head(&fields, head);
    if (head->failed) {
        return error_set(err, STATUS_MEMORY, "%.*s: no memory for a chunk", TEXT_ARGS(file->name));
    }
    ASSERT(head->size == front);
    memcpy(body->bytes, head->bytes, front);
    return STATUS_OK;
}

/* A chunk that was cut: its records, behind room for a head. */
struct source_cut {
    uint32_t file;
    uint64_t offset;
    uint64_t size;
    uint64_t line_count;
    bool is_narrow;
};

/* All columns. */
static status read_wide(struct chunk_source *source, size_t front, struct source_cut *cut,
                        struct buf *out, struct error *err)
{
    struct chunk chunk;
    TRY(chunk_reader_whole(source->reader, front, &chunk, err));
    cut->line_count = csv_count_lines(chunk.bytes, chunk.size);
    buf_done(out);
    *out = chunk_reader_take(source->reader);
    out->size = front + chunk.size;
    return STATUS_OK;
}

/* Only the used columns. Without records on return if the chunk cannot be made narrow. */
static status read_narrow(struct chunk_source *source, const struct csv_narrow *narrow,
                          size_t front, struct source_cut *cut, struct buf *out, struct error *err)
{
    buf_reset(out);
    if (!buf_reserve(out, front)) return error_memory(err);
    out->size = front;
    cut->line_count = 0;
    for (;;) {
        struct chunk piece;
        bool has_more;
        TRY(chunk_reader_next(source->reader, &piece, &has_more, err));
        if (!has_more) break;
        struct csv_input input = {piece.bytes, piece.size, piece.file_columns};
        status indexed = csv_index_finish(piece.index, input, err);
        if (indexed == STATUS_MEMORY) return indexed;
        /* The worker that scans the chunk reports the malformed CSV. */
        if (indexed != STATUS_OK) return STATUS_OK;
        if (!csv_narrow_append(narrow, piece.index, input, out)) {
            return out->failed ? error_memory(err) : STATUS_OK;
        }
        cut->line_count += piece.index->line_count;
    }
    cut->is_narrow = true;
    return STATUS_OK;
}

/* Reads a chunk whose records begin at `from`. */
static status read_records(struct chunk_source *source, uint32_t table, uint64_t number,
                           uint64_t from, bool try_narrow, struct source_cut *cut, struct buf *out,
                           struct error *err)
{
    struct table_files *files = &source->options.files[table];
    struct chunk_reader *reader = source->reader;
    uint32_t limit = table_files_record_limit(source->options.field_limit);
    size_t front = chunk_body_head_bytes(column_count(source, table));
    *cut = (struct source_cut){0};
    chunk_reader_begin_at(reader, files, number, from, limit);
    cut->file = chunk_reader_file(reader);
    cut->offset = chunk_reader_offset(reader);
    const struct csv_narrow *narrow = &source->tables[table].columns[cut->file].narrow;
    if (try_narrow && narrow->kept_count < narrow->column_count) {
        TRY(read_narrow(source, narrow, front, cut, out, err));
        if (!cut->is_narrow) {
            source->tables[table].narrow_from = number + 1 + WIDE_CHUNKS;
            chunk_reader_begin_at(reader, files, number, from, limit);
        }
    }
    if (!cut->is_narrow) TRY(read_wide(source, front, cut, out, err));
    cut->size = chunk_reader_bytes(reader);
    ASSERT(cut->size <= UINT32_MAX);
    return STATUS_OK;
}

/* Cuts the next chunk. */
static status cut_next(struct chunk_source *source, uint32_t table, struct buf *out_body,
                       struct error *err)
{
    struct table_files *files = &source->options.files[table];
    struct source_table *known = &source->tables[table];
    uint64_t number = known->known_count;
    struct source_cut cut;
    bool try_narrow = number >= known->narrow_from;
    TRY(read_records(source, table, number, known->next_offset, try_narrow, &cut, out_body, err));
    if (cut.size > 0) known->next_offset = cut.offset + cut.size;
    struct source_note *note = &known->notes[number];
    *note = (struct source_note){
        .offset = cut.offset,
        .first_line = files->files[cut.file].header_lines + 1,
        .file = cut.file,
        .is_narrow = cut.is_narrow,
    };
    if (number > files->files[cut.file].first_chunk) {
        note->first_line = note[-1].first_line + source->line_counts[table][number - 1];
    }
    TRY(put_head(source, table, note, out_body, err));
    note->checksum = hash_bytes(out_body->bytes, out_body->size);
    source->line_counts[table][number] = (uint32_t)cut.line_count;
    known->known_count++;
    return STATUS_OK;
}

static status read_again(struct chunk_source *source, uint32_t table, uint64_t number,
                         struct buf *out_body, struct error *err)
{
    const struct source_note *note = &source->tables[table].notes[number];
    const struct table_file *file = &source->options.files[table].files[note->file];
    struct source_cut cut;
    TRY(check_file(file, err));
    TRY(read_records(source, table, number, note->offset, note->is_narrow, &cut, out_body, err));
    TRY(put_head(source, table, note, out_body, err));
    /* Some file systems store times in whole seconds: only the bytes may show a change. */
    if (hash_bytes(out_body->bytes, out_body->size) != note->checksum) {
        return fail_changed(file->name, err);
    }
    return STATUS_OK;
}

static status read_chunk(struct chunk_source *source, uint32_t table, uint64_t number,
                         struct buf *out_body, struct error *err)
{
    const struct table_files *files = &source->options.files[table];
    struct source_table *known = &source->tables[table];
    if (number < files->chunk_count) {
        bool is_known = number < known->known_count;
        while (known->known_count <= number) {
            TRY(cut_next(source, table, out_body, err));
        }
        if (is_known) TRY(read_again(source, table, number, out_body, err));
    }
    return number + 1 >= files->chunk_count ? check_table(files, err) : STATUS_OK;
}

status chunk_source_read(struct chunk_source *source, uint32_t scan, uint64_t number,
                         struct client_chunk *out, struct error *err)
{
    const struct plan *plan = source->options.plan;
    ASSERT(scan < plan->scan_count);
    uint32_t table = plan->scans[scan].table;
    uint64_t count = source->options.files[table].chunk_count;
    struct buf body = {0};
    status result = read_chunk(source, table, number, &body, err);
    if (result != STATUS_OK) {
        buf_done(&body);
        return result;
    }
    *out = (struct client_chunk){
        .scan = scan,
        .number = number,
        .is_last = number >= count || number + 1 == count,
        .is_none = number >= count,
        .body = body,
    };
    if (!out->is_none) out->checksum = source->tables[table].notes[number].checksum;
    return STATUS_OK;
}

/* ---- queries ---- */

uint32_t *const *chunk_source_line_counts(const struct chunk_source *source)
{
    return source->line_counts;
}

status chunk_source_files(const struct chunk_source *source, struct arena *arena,
                          struct source_file **out, uint32_t *out_count, struct error *err)
{
    uint32_t table_count = source->options.plan->table_count;
    size_t count = 0;
    for (uint32_t i = 0; i < table_count; i++) {
        count += source->options.files[i].file_count;
    }
    struct source_file *list = arena_array(arena, struct source_file, count + 1);
    if (list == NULL) return error_memory(err);
    uint32_t listed = 0;
    for (uint32_t i = 0; i < table_count; i++) {
        const struct table_files *files = &source->options.files[i];
        for (uint32_t j = 0; j < files->file_count; j++) {
            const struct table_file *file = &files->files[j];
            list[listed++] = (struct source_file){
                .table = i,
                .name = file->name,
                .size = file->size,
                .modified_ns = file->modified_ns,
                .inode = file->inode,
            };
        }
    }
    *out = list;
    *out_count = listed;
    return STATUS_OK;
}

static status match_file(const struct source_file *now, const struct source_file *earlier,
                         struct error *err)
{
    if (now->table != earlier->table || !text_equal(now->name, earlier->name)) {
        return error_set(err, STATUS_INPUT,
                         "the files are not those that the job began with: found %.*s instead of "
                         "%.*s",
                         TEXT_ARGS(now->name), TEXT_ARGS(earlier->name));
    }
    bool is_same = now->size == earlier->size && now->modified_ns == earlier->modified_ns &&
                   now->inode == earlier->inode;
    if (is_same) return STATUS_OK;
    return error_set(err, STATUS_INPUT, "%.*s has changed since the job began",
                     TEXT_ARGS(now->name));
}

status chunk_source_match(const struct chunk_source *source, const struct source_file *earlier,
                          uint32_t count, struct error *err)
{
    struct arena arena = {0};
    struct source_file *now = NULL;
    uint32_t now_count = 0;
    status result = chunk_source_files(source, &arena, &now, &now_count, err);
    for (uint32_t i = 0; result == STATUS_OK && i < now_count && i < count; i++) {
        result = match_file(&now[i], &earlier[i], err);
    }
    if (result == STATUS_OK && now_count != count) {
        result = error_set(err, STATUS_INPUT,
                           "the files are not those that the job began with: found %u instead of "
                           "%u",
                           now_count, count);
    }
    arena_done(&arena);
    return result;
}
