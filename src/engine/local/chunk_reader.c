/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_reader.c - a block that slides over the file, and the chain of where chunks begin.
 *
 * A piece is read with some bytes more, since its last record nearly always ends there; they are
 * moved to the front when the next piece is read behind them.
 */
#include "engine/local/chunk_reader.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/data/csv_guess.h"
#include "engine/data/csv_scan.h"
#include "engine/file/file.h"

enum {
    TAIL_BYTES = 4096,       /* Read with the piece, */
    MORE_BYTES = 64 * 1024,  /* and at least at a time when that was not enough. */
    GUESS_BYTES = 64 * 1024, /* Looked at for a guess. */
    MOVE_BYTES = 64 * 1024,  /* More than that stays where it is. */
};

/* A chunk is at most its stretch of the file and a record. */
#define RECORD_LIMIT_MAX ((uint32_t)(CSV_CHUNK_LIMIT_BYTES - TABLE_FILES_CHUNK_LIMIT_BYTES))

struct chunk_reader {
    struct budget *budget;
    size_t piece_bytes;
    struct csv_index index;

    char *block;
    size_t capacity;
    size_t front;    /* Bytes of the block that belong to others; behind them are */
    uint64_t offset; /* those of the file from here on, */
    size_t filled;   /* so many. */

    /* The chunk in flight: */
    struct table_files *files;
    struct table_file *file;
    uint32_t file_number;
    uint64_t number; /* Within the file. */
    uint32_t record_limit;
    uint64_t first; /* Where its first record is taken to begin, */
    bool is_guess;
    uint64_t next; /* what is not read yet begins, */
    uint64_t end;  /* and records begin that are not its own. */
};

status chunk_reader_create(struct budget *budget, struct chunk_reader **out, struct error *err)
{
    struct chunk_reader *reader = memory_alloc(budget, sizeof *reader);
    if (reader == NULL) return error_set(err, STATUS_MEMORY, "no memory to read files");
    *reader = (struct chunk_reader){
        .budget = budget, .index = {.budget = budget}, .piece_bytes = CHUNK_PIECE_BYTES};
    *out = reader;
    return STATUS_OK;
}

#if FAULT_INJECTION
void chunk_reader_set_piece(struct chunk_reader *reader, size_t piece_bytes)
{
    ASSERT(piece_bytes > 0);
    reader->piece_bytes = piece_bytes;
}
#endif

void chunk_reader_destroy(struct chunk_reader *reader)
{
    if (reader == NULL) return;
    csv_index_done(&reader->index);
    memory_free(reader->budget, reader->block, reader->capacity);
    memory_free(reader->budget, reader, sizeof *reader);
}

uint32_t chunk_reader_file(const struct chunk_reader *reader)
{
    return reader->file_number;
}

uint64_t chunk_reader_offset(const struct chunk_reader *reader)
{
    return reader->first;
}

uint64_t chunk_reader_bytes(const struct chunk_reader *reader)
{
    return reader->next - reader->first;
}

/* ---- the block ---- */

/* The bytes of the file from an offset on that the block holds. */
static const char *bytes_at(const struct chunk_reader *reader, uint64_t offset)
{
    return reader->block + reader->front + (offset - reader->offset);
}

/* Lets the block begin at an offset of the file, keeping what it has from there on. */
static void slide(struct chunk_reader *reader, uint64_t offset)
{
    bool is_there = offset >= reader->offset && offset - reader->offset <= reader->filled;
    size_t kept = is_there ? reader->filled - (size_t)(offset - reader->offset) : 0;
    if (kept > MOVE_BYTES) return;
    if (kept > 0) memmove(reader->block + reader->front, bytes_at(reader, offset), kept);
    reader->offset = offset;
    reader->filled = kept;
}

/* Reads on until `size` bytes from the offset on, or all there are, are in the block. */
static status fill(struct chunk_reader *reader, uint64_t offset, size_t size, struct error *err)
{
    const struct table_file *file = reader->file;
    uint64_t left = file->size - offset;
    if (size > left) size = (size_t)left;
    size_t wanted = (size_t)(offset - reader->offset) + size;
    size_t needed = reader->front + wanted;
    if (needed > reader->capacity) {
        char *grown = memory_resize(reader->budget, reader->block, reader->capacity, needed);
        if (grown == NULL) {
            return error_set(err, STATUS_MEMORY, "%.*s: no memory to read %zu bytes",
                             TEXT_ARGS(file->name), wanted);
        }
        reader->block = grown;
        reader->capacity = needed;
    }
    if (wanted <= reader->filled) return STATUS_OK;
    struct file_part part = {
        .fd = file->fd,
        .path = file->path,
        .offset = reader->offset + reader->filled,
        .size = wanted - reader->filled,
    };
    TRY(file_read(part, reader->block + reader->front + reader->filled, err));
    reader->filled = wanted;
    return STATUS_OK;
}

/* ---- pieces ---- */

static status fail_record_limit(const struct chunk_reader *reader, uint64_t offset,
                                struct error *err)
{
    status failed =
        error_set(err, STATUS_LIMIT,
                  "the record that begins here is longer than %u bytes; is a quote unclosed?",
                  reader->record_limit);
    (void)failed; /* It gets its place. */
    return table_files_place(reader->files, reader->file_number, offset, err);
}

/* Looks at every record of a piece that is longer than a record may be. */
static status check_records(const struct chunk_reader *reader, const struct chunk *piece,
                            struct error *err)
{
    for (size_t start = 0; start < piece->size;) {
        enum csv_state state = CSV_RECORD_START;
        size_t size = csv_record_end(&state, piece->bytes + start, piece->size - start);
        if (size > reader->record_limit) {
            return fail_record_limit(reader, piece->offset + start, err);
        }
        start += size;
    }
    return STATUS_OK;
}

/* Where the record ends that is in progress `size` bytes behind the start of the piece; or any
 * place, if that is too far. */
static status find_end(struct chunk_reader *reader, size_t size, enum csv_state state,
                       size_t *out_end, struct error *err)
{
    size_t end = size;
    while (state != CSV_RECORD_START) {
        size_t filled = reader->filled - (size_t)(reader->next - reader->offset);
        if (end == filled) {
            if (reader->next + end == reader->file->size) break;
            size_t more = end / 2 > MORE_BYTES ? end / 2 : MORE_BYTES;
            TRY(fill(reader, reader->next, end + more, err));
            continue;
        }
        end += csv_record_end(&state, bytes_at(reader, reader->next) + end, filled - end);
        if (end - size > reader->record_limit) break; /* check_records tells where it begins. */
    }
    *out_end = end;
    return STATUS_OK;
}

/* Cuts off the records that begin in the next `size` bytes. */
static status cut(struct chunk_reader *reader, size_t size, bool with_index, struct chunk *out,
                  struct error *err)
{
    const struct table_file *file = reader->file;
    enum csv_state state = CSV_RECORD_START;
    slide(reader, reader->next);
    TRY(fill(reader, reader->next, size + TAIL_BYTES, err));
    const char *bytes = bytes_at(reader, reader->next);
    if (with_index) {
        struct csv_input input = {bytes, size, file->column_count};
        csv_index_begin(&reader->index, file->column_count);
        TRY(csv_index_advance(&reader->index, input, &state, err));
    } else {
        state = csv_advance(state, bytes, size);
    }
    size_t end;
    TRY(find_end(reader, size, state, &end, err));
    *out = (struct chunk){
        .bytes = bytes_at(reader, reader->next),
        .size = end,
        .file_columns = file->column_count,
        .column_map = file->column_map,
        .offset = reader->next,
        .index = with_index ? &reader->index : NULL,
    };
    if (out->size > reader->record_limit) TRY(check_records(reader, out, err));
    reader->next += end;
    return STATUS_OK;
}

/* ---- chunks ---- */

static uint32_t find_file(const struct table_files *files, uint64_t chunk_number)
{
    ASSERT(chunk_number < files->chunk_count);
    uint32_t low = 0;
    uint32_t high = files->file_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (files->files[middle].first_chunk <= chunk_number) {
            low = middle;
        } else {
            high = middle;
        }
    }
    /* Of files with the same first chunk, all but the last are empty. */
    ASSERT(chunk_number - files->files[low].first_chunk < files->files[low].chunk_count);
    return low;
}

static void take_up(struct chunk_reader *reader, struct table_files *files, uint64_t chunk_number,
                    uint32_t record_limit)
{
    reader->files = files;
    reader->file_number = find_file(files, chunk_number);
    reader->file = &files->files[reader->file_number];
    reader->number = chunk_number - reader->file->first_chunk;
    reader->record_limit = record_limit > RECORD_LIMIT_MAX ? RECORD_LIMIT_MAX : record_limit;
    reader->first = reader->file->body_offset + reader->number * files->chunk_bytes;
    uint64_t left = reader->file->size - reader->first;
    reader->end = reader->first + (left < files->chunk_bytes ? left : files->chunk_bytes);
    reader->filled = 0; /* Whatever file that was. */
}

static void start_at(struct chunk_reader *reader, uint64_t first, bool is_guess)
{
    reader->first = reader->next = first;
    reader->is_guess = is_guess;
}

/* From the bytes of the chunk's first piece, which are read for it, and the one before. */
static status guess(struct chunk_reader *reader, struct error *err)
{
    uint64_t before = reader->first - 1;
    uint64_t size = reader->end - before;
    start_at(reader, reader->first, true);
    slide(reader, before);
    TRY(fill(reader, before, size < reader->piece_bytes ? (size_t)size : reader->piece_bytes, err));
    size_t looked_at = reader->filled < GUESS_BYTES ? reader->filled : GUESS_BYTES;
    uint32_t column_count = reader->file->column_count;
    size_t start = csv_guess_record(bytes_at(reader, before), looked_at, column_count);
    start_at(reader, before + start, true);
    return STATUS_OK;
}

status chunk_reader_begin(struct chunk_reader *reader, struct table_files *files,
                          uint64_t chunk_number, uint32_t record_limit, struct error *err)
{
    reader->front = 0;
    take_up(reader, files, chunk_number, record_limit);
    pthread_mutex_lock(&files->mutex);
    bool is_known = reader->file->known_chunk == reader->number;
    if (is_known) start_at(reader, reader->file->next_record, false);
    pthread_mutex_unlock(&files->mutex);
    return is_known ? STATUS_OK : guess(reader, err);
}

status chunk_reader_next(struct chunk_reader *reader, struct chunk *out_piece, bool *out_more,
                         struct error *err)
{
    *out_more = reader->next < reader->end;
    if (!*out_more) return STATUS_OK;
    uint64_t left = reader->end - reader->next;
    size_t size = left < reader->piece_bytes ? (size_t)left : reader->piece_bytes;
    return cut(reader, size, true, out_piece, err);
}

/* Where the chunk begins, when it is known. */
static status wait_for_first(const struct chunk_reader *reader, const atomic_bool *stopped,
                             uint64_t *out_first, struct error *err)
{
    struct table_files *files = reader->files;
    const struct table_file *file = reader->file;
    bool given_up = false;
    pthread_mutex_lock(&files->mutex);
    while (file->known_chunk < reader->number && !given_up) {
        given_up = files->stopped || file->poisoned_chunk <= reader->number ||
                   (stopped != NULL && atomic_load(stopped));
        if (!given_up) pthread_cond_wait(&files->changed, &files->mutex);
    }
    ASSERT(given_up || file->known_chunk == reader->number);
    *out_first = file->next_record;
    pthread_mutex_unlock(&files->mutex);
    if (given_up) return error_set(err, STATUS_CANCELLED, "reading was stopped");
    return STATUS_OK;
}

status chunk_reader_end(struct chunk_reader *reader, const atomic_bool *stopped, bool *out_again,
                        struct error *err)
{
    *out_again = false;
    if (reader->is_guess) {
        uint64_t first;
        TRY(wait_for_first(reader, stopped, &first, err));
        /* Beyond the end it does not matter where. */
        bool is_empty = first >= reader->end && reader->first >= reader->end;
        *out_again = first != reader->first && !is_empty;
        if (*out_again || is_empty) start_at(reader, first, false);
        reader->is_guess = false;
        if (*out_again) return STATUS_OK;
    }
    struct table_files *files = reader->files;
    struct table_file *file = reader->file;
    pthread_mutex_lock(&files->mutex);
    if (reader->next >= reader->end) {
        file->known_chunk = reader->number + 1;
        file->next_record = reader->next;
    } else if (reader->number < file->poisoned_chunk) {
        file->poisoned_chunk = reader->number;
    }
    pthread_cond_broadcast(&files->changed);
    pthread_mutex_unlock(&files->mutex);
    return STATUS_OK;
}

/* ---- one reader alone ---- */

void chunk_reader_begin_at(struct chunk_reader *reader, struct table_files *files,
                           uint64_t chunk_number, uint64_t from, uint32_t record_limit)
{
    reader->front = 0;
    take_up(reader, files, chunk_number, record_limit);
    if (reader->number == 0) from = reader->first;
    ASSERT(from >= reader->first);
    start_at(reader, from < reader->end ? from : reader->end, false);
}

status chunk_reader_whole(struct chunk_reader *reader, size_t front, struct chunk *out_chunk,
                          struct error *err)
{
    ASSERT(reader->next == reader->first);
    reader->front = front;
    return cut(reader, (size_t)(reader->end - reader->next), false, out_chunk, err);
}

struct buf chunk_reader_take(struct chunk_reader *reader)
{
    struct buf block = {.bytes = (unsigned char *)reader->block,
                        .capacity = reader->capacity,
                        .budget = reader->budget};
    reader->block = NULL;
    reader->capacity = 0;
    reader->filled = 0;
    return block;
}
