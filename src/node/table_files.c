/* table_files.c - headers first, then pieces whose reading overlaps and whose states form a chain.
 *
 * Reading is the slow part and needs no state, so it comes before the wait. Within the chain, only
 * csv_advance is done in turn, which for bytes without quotes is no more than a memchr. When nobody
 * waits, as between a few threads is the rule, the index is made in its place, and the bytes are
 * looked at once instead of twice. A piece is read with some bytes more, since its last record
 * nearly always ends there.
 */
#include "node/table_files.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "data/csv_field.h"
#include "data/csv_scan.h"
#include "data/print_text.h"
#include "io/file.h"

enum {
    HEADER_FIRST_BYTES = 16 * 1024,
    HEADER_LIMIT_BYTES = 1024 * 1024,
    BYTE_ORDER_MARK_BYTES = 3,
    TAIL_BYTES = 4096,       /* Read with the piece, */
    MORE_BYTES = 64 * 1024,  /* and at least at a time when that was not enough. */
    COUNT_BYTES = 64 * 1024, /* At a time when lines are counted. */
    LIST_NAMES = 12,         /* In messages. */
    LIST_NAME_WIDTH = 40
};

/* A chunk is at most a piece and a record. */
#define RECORD_LIMIT_MAX ((uint32_t)(CSV_CHUNK_LIMIT_BYTES - TABLE_FILES_CHUNK_LIMIT_BYTES))

/* A list for messages: "a, b, c and 7 more". Names are made fit to be seen. */
struct name_list {
    struct buf text;
    size_t count;
};

static void name_list_add(struct name_list *list, struct text name, const char *suffix)
{
    if (list->count++ >= LIST_NAMES) return;
    if (list->count > 1) buf_put_string(&list->text, ", ");
    if (name.size == 0) buf_put_string(&list->text, "\"\"");
    (void)print_visible(name, LIST_NAME_WIDTH, &list->text);
    buf_put_string(&list->text, suffix);
}

/* The text of the list; valid until buf_done, which the caller does. */
static struct text name_list_finish(struct name_list *list)
{
    if (list->count == 0) buf_put_string(&list->text, "nothing");
    if (list->count > LIST_NAMES) {
        buf_format(&list->text, " and %zu more", list->count - LIST_NAMES);
    }
    if (list->text.failed) return TEXT_LITERAL("(no memory to list them)");
    return (struct text){(const char *)list->text.bytes, (uint32_t)list->text.size};
}

static status fail_memory(const struct table *table, struct error *err)
{
    return error_set(err, STATUS_MEMORY, "table %.*s: no memory for the list of its files",
                     TEXT_ARGS(table->name));
}

/* "table t needs a.csv or b*.csv in DIR; found: ..." */
static status fail_no_match(const struct table *table, const char *data_dir, struct arena *arena,
                            struct error *err)
{
    struct file_entry *entries = NULL;
    uint32_t entry_count = 0;
    TRY(file_list(data_dir, arena, &entries, &entry_count, err));
    struct name_list found = {0};
    for (uint32_t i = 0; i < entry_count; i++) {
        if (entries[i].name.bytes[0] == '.') continue;
        name_list_add(&found, entries[i].name, entries[i].is_folder ? "/" : "");
    }
    struct buf wanted = {0};
    for (uint32_t i = 0; i < table->pattern_count; i++) {
        if (i > 0) buf_put_string(&wanted, " or ");
        (void)print_visible(table->patterns[i], LIST_NAME_WIDTH, &wanted);
    }
    struct text list = name_list_finish(&found);
    status result = error_set(err, STATUS_INPUT, "table %.*s needs %.*s in %s; found: %.*s",
                              TEXT_ARGS(table->name), (int)wanted.size, (const char *)wanted.bytes,
                              data_dir, TEXT_ARGS(list));
    buf_done(&wanted);
    buf_done(&found.text);
    return result;
}

static status find_names(const struct table *table, const char *data_dir, struct arena *arena,
                         struct text **out_names, uint32_t *out_count, struct error *err)
{
    /* Without the folder no pattern matches, and that would be told as such. */
    struct file_entry *entries = NULL;
    uint32_t entry_count = 0;
    struct arena_mark mark = arena_mark(arena);
    status listed = file_list(data_dir, arena, &entries, &entry_count, err);
    if (listed != STATUS_OK) return error_prefix(err, "data folder");
    arena_release(arena, mark);

    for (uint32_t i = 0; i < table->pattern_count; i++) {
        struct text *names = NULL;
        uint32_t count = 0;
        TRY(file_glob(data_dir, table->patterns[i], arena, &names, &count, err));
        if (count == 0) continue;
        *out_names = names;
        *out_count = count;
        return STATUS_OK;
    }
    return fail_no_match(table, data_dir, arena, err);
}

static bool has_byte_order_mark(const char *bytes, size_t size)
{
    return size >= BYTE_ORDER_MARK_BYTES && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
}

/* Reads from the start of the file until its first record is complete. */
static status read_header(const struct table_file *file, struct arena *scratch,
                          struct text *out_bytes, struct error *err)
{
    for (size_t size = HEADER_FIRST_BYTES; size <= HEADER_LIMIT_BYTES; size *= 8) {
        bool is_all = size >= file->size;
        if (is_all) size = (size_t)file->size;
        char *bytes = arena_alloc(scratch, size, 1);
        if (bytes == NULL) {
            return error_set(err, STATUS_MEMORY, "%.*s: no memory for its header",
                             TEXT_ARGS(file->name));
        }
        TRY(file_read((struct file_part){file->fd, file->path, 0, size}, bytes, err));

        /* To csv_record_end a byte order mark is data, and would hide a quote behind it. */
        size_t mark = has_byte_order_mark(bytes, size) ? BYTE_ORDER_MARK_BYTES : 0;
        enum csv_state state = CSV_RECORD_START;
        size_t record = csv_record_end(&state, bytes + mark, size - mark);
        if (is_all || (record > 0 && state == CSV_RECORD_START)) {
            *out_bytes = (struct text){bytes, (uint32_t)size};
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_INPUT,
                     "%.*s: its header is longer than %d bytes; is a quote unclosed?",
                     TEXT_ARGS(file->name), HEADER_LIMIT_BYTES);
}

struct header {
    struct text *names;
    uint32_t count;
};

/* What a header of one field may really be. */
static const char *header_advice(struct header header)
{
    if (header.count != 1 || header.names[0].size < 2) return "";
    struct text only = header.names[0];
    static const struct {
        const char *bytes;
        const char *advice;
    } starts[] = {
        {"\x1f\x8b", "; it is compressed with gzip: unpack it first"},
        {"\x28\xb5", "; it is compressed with zstd: unpack it first"},
        {"PK", "; it is a ZIP archive: unpack it first"},
        {"\xff\xfe", "; it is UTF-16: convert it to UTF-8 first"},
        {"\xfe\xff", "; it is UTF-16: convert it to UTF-8 first"},
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (memcmp(only.bytes, starts[i].bytes, 2) == 0) return starts[i].advice;
    }
    for (const char *separator = ";\t|"; *separator != '\0'; separator++) {
        if (memchr(only.bytes, *separator, only.size) != NULL) {
            return "; fields must be separated by commas";
        }
    }
    return "";
}

static status fail_missing_column(const struct table *table, const struct table_file *file,
                                  struct header header, struct text column, struct error *err)
{
    struct name_list list = {0};
    for (uint32_t i = 0; i < header.count; i++) {
        name_list_add(&list, header.names[i], "");
    }
    struct text names = name_list_finish(&list);
    struct buf guess = {0};
    const struct text *nearest = text_nearest(column, header.names, header.count);
    if (nearest != NULL) {
        buf_put_string(&guess, " (did you mean ");
        (void)print_visible(*nearest, LIST_NAME_WIDTH, &guess);
        buf_put_string(&guess, "?)");
    }
    status result = error_set(err, STATUS_INPUT,
                              "%.*s has no column %.*s%.*s, which table %.*s needs; its columns "
                              "are: %.*s%s",
                              TEXT_ARGS(file->name), TEXT_ARGS(column), (int)guess.size,
                              (const char *)guess.bytes, TEXT_ARGS(table->name), TEXT_ARGS(names),
                              header_advice(header));
    buf_done(&guess);
    buf_done(&list.text);
    return result;
}

static status map_columns(const struct table *table, struct table_file *file, struct header header,
                          struct arena *arena, struct error *err)
{
    uint32_t *map = arena_array(arena, uint32_t, table->schema.count);
    if (map == NULL) return fail_memory(table, err);
    for (uint32_t column = 0; column < table->schema.count; column++) {
        struct text name = table->schema.fields[column].name;
        uint32_t at = 0;
        while (at < header.count && !text_equal(header.names[at], name)) {
            at++;
        }
        if (at == header.count) return fail_missing_column(table, file, header, name, err);
        map[column] = at;
    }
    file->column_map = map;
    file->column_count = header.count;
    return STATUS_OK;
}

static status parse_header(const struct table *table, struct table_file *file, struct arena *arena,
                           struct arena *scratch, struct error *err)
{
    struct text bytes = {0};
    TRY(read_header(file, scratch, &bytes, err));
    if (bytes.size == BYTE_ORDER_MARK_BYTES && has_byte_order_mark(bytes.bytes, bytes.size)) {
        file->body_offset = file->size; /* As good as no bytes. */
        return STATUS_OK;
    }
    struct header header = {0};
    size_t body_offset = 0;
    status parsed = csv_header_parse(bytes.bytes, bytes.size, scratch, &header.names, &header.count,
                                     &body_offset, err);
    if (parsed != STATUS_OK) return error_prefix(err, "%.*s", TEXT_ARGS(file->name));
    file->body_offset = body_offset;
    file->header_lines = csv_count_lines(bytes.bytes, body_offset);
    return map_columns(table, file, header, arena, err);
}

/* Opens one file; whatever happens, file->fd is closed by table_files_close. */
static status open_file(const struct table *table, struct table_file *file, struct arena *arena,
                        struct error *err)
{
    struct file_info info;
    TRY(file_open(file->path, &file->fd, &info, err));
    file->size = info.size;
    file->modified_ns = info.modified_ns;
    file->inode = info.inode;
    if (file->size == 0) return STATUS_OK;

    struct arena scratch;
    arena_init(&scratch, arena->budget);
    status result = parse_header(table, file, arena, &scratch, err);
    arena_done(&scratch);
    return result;
}

static status open_all(const struct table *table, const char *data_dir, struct arena *arena,
                       struct table_files *files, struct error *err)
{
    struct text *names = NULL;
    uint32_t count = 0;
    TRY(find_names(table, data_dir, arena, &names, &count, err));
    files->files = arena_array(arena, struct table_file, count);
    if (files->files == NULL) return fail_memory(table, err);

    for (uint32_t i = 0; i < count; i++) {
        struct table_file *file = &files->files[i];
        *file = (struct table_file){
            .name = names[i],
            .fd = -1,
            .path = file_path(data_dir, names[i], arena),
            .poisoned_piece = UINT64_MAX,
        };
        files->file_count++;
        if (file->path == NULL) return fail_memory(table, err);
        TRY(open_file(table, file, arena, err));
        files->byte_count += file->size;
    }
    return STATUS_OK;
}

void table_files_cut(struct table_files *files, uint32_t chunk_bytes)
{
    ASSERT(chunk_bytes > 0);
    ASSERT(chunk_bytes <= TABLE_FILES_CHUNK_LIMIT_BYTES);
    files->chunk_bytes = chunk_bytes;
    files->chunk_count = 0;
    for (uint32_t i = 0; i < files->file_count; i++) {
        struct table_file *file = &files->files[i];
        uint64_t body = file->size - file->body_offset;
        file->first_chunk = files->chunk_count;
        file->chunk_count = body / chunk_bytes + (body % chunk_bytes != 0);
        files->chunk_count += file->chunk_count;
    }
}

status table_files_open(const struct table *table, const char *data_dir, uint32_t chunk_bytes,
                        struct arena *arena, struct table_files *out, struct error *err)
{
    *out = (struct table_files){.is_open = true};
    pthread_mutex_init(&out->mutex, NULL);
    pthread_cond_init(&out->changed, NULL);
    status result = open_all(table, data_dir, arena, out, err);
    if (result == STATUS_OK) {
        table_files_cut(out, chunk_bytes);
    } else {
        table_files_close(out);
    }
    return result;
}

void table_files_close(struct table_files *files)
{
    if (!files->is_open) return;
    for (uint32_t i = 0; i < files->file_count; i++) {
        file_close(files->files[i].fd);
    }
    pthread_cond_destroy(&files->changed);
    pthread_mutex_destroy(&files->mutex);
    *files = (struct table_files){0};
}

void table_files_rewind(struct table_files *files)
{
    pthread_mutex_lock(&files->mutex);
    for (uint32_t i = 0; i < files->file_count; i++) {
        files->files[i].known_piece = 0;
        files->files[i].state = CSV_RECORD_START;
    }
    pthread_mutex_unlock(&files->mutex);
}

void table_files_stop(struct table_files *files)
{
    pthread_mutex_lock(&files->mutex);
    files->stopped = true;
    pthread_cond_broadcast(&files->changed);
    pthread_mutex_unlock(&files->mutex);
}

struct chunk_reader {
    struct budget *budget;
    char *block;
    size_t capacity;
    size_t front; /* Bytes of the block before those that are read. */
    bool wants_index;
    struct csv_index index;
};

static char *reader_bytes(const struct chunk_reader *reader)
{
    return reader->block + reader->front;
}

/* One read in progress. `start` is where the piece begins in the file, and what bytes[0] is. */
struct piece {
    struct table_files *files;
    struct table_file *file;
    uint32_t file_number;
    uint64_t number; /* Within the file. */
    uint64_t start;
    size_t size;   /* Of the piece, */
    size_t filled; /* and of what has been read from its start on. */
};

/* What became of it. */
struct reading {
    enum csv_state first; /* At the piece's start, */
    enum csv_state last;  /* and at its end. */
    size_t start;         /* Of the first record; the piece's size when none starts in it. */
    bool has_index;
};

status chunk_reader_create(struct budget *budget, struct chunk_reader **out, struct error *err)
{
    struct chunk_reader *reader = memory_alloc(budget, sizeof *reader);
    if (reader == NULL) return error_set(err, STATUS_MEMORY, "no memory to read files");
    *reader = (struct chunk_reader){.budget = budget, .index = {.budget = budget}};
    *out = reader;
    return STATUS_OK;
}

void chunk_reader_want_index(struct chunk_reader *reader)
{
    reader->wants_index = true;
}

void chunk_reader_destroy(struct chunk_reader *reader)
{
    if (reader == NULL) return;
    csv_index_done(&reader->index);
    memory_free(reader->budget, reader->block, reader->capacity);
    memory_free(reader->budget, reader, sizeof *reader);
}

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

static struct piece find_piece(struct table_files *files, uint64_t chunk_number)
{
    uint32_t file_number = find_file(files, chunk_number);
    struct table_file *file = &files->files[file_number];
    uint64_t number = chunk_number - file->first_chunk;
    uint64_t start = file->body_offset + number * files->chunk_bytes;
    uint64_t left = file->size - start;
    return (struct piece){
        .files = files,
        .file = file,
        .file_number = file_number,
        .number = number,
        .start = start,
        .size = left < files->chunk_bytes ? (size_t)left : files->chunk_bytes,
    };
}

/* Reads on until at least `wanted` bytes from the piece's start, or all there are, are filled. */
static status piece_fill(struct piece *piece, struct chunk_reader *reader, size_t wanted,
                         struct error *err)
{
    uint64_t left = piece->file->size - piece->start;
    if (wanted > left) wanted = (size_t)left;
    size_t needed = reader->front + wanted;
    if (needed > reader->capacity) {
        char *grown = memory_resize(reader->budget, reader->block, reader->capacity, needed);
        if (grown == NULL) {
            return error_set(err, STATUS_MEMORY, "%.*s: no memory to read %zu bytes",
                             TEXT_ARGS(piece->file->name), wanted);
        }
        reader->block = grown;
        reader->capacity = needed;
    }
    struct file_part part = {
        .fd = piece->file->fd,
        .path = piece->file->path,
        .offset = piece->start + piece->filled,
        .size = wanted - piece->filled,
    };
    TRY(file_read(part, reader_bytes(reader) + piece->filled, err));
    piece->filled = wanted;
    return STATUS_OK;
}

static void piece_poison(const struct piece *piece)
{
    pthread_mutex_lock(&piece->files->mutex);
    if (piece->number < piece->file->poisoned_piece) piece->file->poisoned_piece = piece->number;
    pthread_cond_broadcast(&piece->files->changed);
    pthread_mutex_unlock(&piece->files->mutex);
}

/* Waits for the state at the piece's start, and tells whether others wait for the one at its end.
 */
static status piece_wait(const struct piece *piece, const atomic_bool *stopped,
                         enum csv_state *out_state, bool *out_hurry, struct error *err)
{
    struct table_files *files = piece->files;
    const struct table_file *file = piece->file;
    bool given_up = false;
    pthread_mutex_lock(&files->mutex);
    while (file->known_piece < piece->number) {
        given_up = files->stopped || file->poisoned_piece <= piece->number ||
                   (stopped != NULL && atomic_load(stopped));
        if (given_up) break;
        files->waiting++;
        pthread_cond_wait(&files->changed, &files->mutex);
        files->waiting--;
    }
    ASSERT(given_up || file->known_piece == piece->number);
    *out_state = file->state;
    *out_hurry = files->waiting > 0;
    pthread_mutex_unlock(&files->mutex);
    if (given_up) return error_set(err, STATUS_CANCELLED, "reading was stopped");
    return STATUS_OK;
}

static void piece_hand_on(const struct piece *piece, enum csv_state state)
{
    pthread_mutex_lock(&piece->files->mutex);
    piece->file->known_piece = piece->number + 1;
    piece->file->state = state;
    pthread_cond_broadcast(&piece->files->changed);
    pthread_mutex_unlock(&piece->files->mutex);
}

static status fail_record_limit(const struct piece *piece, uint64_t record_offset,
                                uint32_t record_limit, struct error *err)
{
    status failed = error_set(
        err, STATUS_LIMIT,
        "the record that begins here is longer than %u bytes; is a quote unclosed?", record_limit);
    (void)failed; /* It gets its place. */
    return table_files_place(piece->files, piece->file_number, record_offset, err);
}

/* Looks at every record of a chunk that is longer than a record may be. */
static status check_records(const struct piece *piece, const struct chunk *chunk,
                            uint32_t record_limit, struct error *err)
{
    for (size_t start = 0; start < chunk->size;) {
        enum csv_state state = CSV_RECORD_START;
        size_t size = csv_record_end(&state, chunk->bytes + start, chunk->size - start);
        if (size > record_limit) {
            return fail_record_limit(piece, chunk->offset + start, record_limit, err);
        }
        start += size;
    }
    return STATUS_OK;
}

/* Finds where the record that is in progress at the end of the piece ends, or that it is too long.
 */
static status piece_finish(struct piece *piece, struct chunk_reader *reader, enum csv_state state,
                           uint32_t record_limit, size_t *out_end, struct error *err)
{
    size_t end = piece->size;
    while (state != CSV_RECORD_START) {
        if (end == piece->filled) {
            if (piece->start + piece->filled == piece->file->size) break;
            size_t more = end / 2 > MORE_BYTES ? end / 2 : MORE_BYTES;
            TRY(piece_fill(piece, reader, end + more, err));
        }
        end += csv_record_end(&state, reader_bytes(reader) + end, piece->filled - end);
        if (end - piece->size > record_limit) break; /* check_records tells where it begins. */
    }
    *out_end = end;
    return STATUS_OK;
}

/* Where the first record that starts in the piece does; piece->size when none does. */
static size_t piece_first_record(const struct piece *piece, const char *bytes, enum csv_state state)
{
    if (state == CSV_RECORD_START) return 0;
    return csv_record_end(&state, bytes, piece->size);
}

/* The state at the piece's end, from the one at its start; by way of the index if it is wanted and
 * nobody is kept waiting. */
static status piece_advance(const struct piece *piece, struct chunk_reader *reader, bool hurry,
                            struct reading *reading, struct error *err)
{
    size_t start = reading->start;
    reading->has_index = reader->wants_index && !hurry && start < piece->size;
    if (!reading->has_index) {
        reading->last = csv_advance(reading->first, reader_bytes(reader), piece->size);
        return STATUS_OK;
    }
    uint32_t column_count = piece->file->column_count;
    struct csv_input input = {reader_bytes(reader) + start, piece->size - start, column_count};
    csv_index_begin(&reader->index, column_count);
    return csv_index_advance(&reader->index, input, &reading->last, err);
}

/* Reads the piece and passes the state on, from the one at its start to the one at its end. */
static status piece_read(struct piece *piece, struct chunk_reader *reader,
                         const atomic_bool *stopped, struct reading *reading, struct error *err)
{
    bool hurry = false;
    status result = piece_fill(piece, reader, piece->size + TAIL_BYTES, err);
    if (result == STATUS_OK) result = piece_wait(piece, stopped, &reading->first, &hurry, err);
    if (result == STATUS_OK) {
        reading->start = piece_first_record(piece, reader_bytes(reader), reading->first);
        result = piece_advance(piece, reader, hurry, reading, err);
    }
    if (result != STATUS_OK) {
        piece_poison(piece);
        return result;
    }
    piece_hand_on(piece, reading->last);
    return STATUS_OK;
}

/* The chunk is what begins `start` bytes after the piece does, which ends in the state `last`. */
static status piece_cut(struct piece *piece, struct chunk_reader *reader, size_t start,
                        enum csv_state last, uint32_t record_limit, struct chunk *out,
                        struct error *err)
{
    size_t end = start;
    if (start < piece->size) TRY(piece_finish(piece, reader, last, record_limit, &end, err));
    *out = (struct chunk){
        .bytes = reader_bytes(reader) + start,
        .size = end - start,
        .file_columns = piece->file->column_count,
        .column_map = piece->file->column_map,
        .offset = piece->start + start,
    };
    return out->size > record_limit ? check_records(piece, out, record_limit, err) : STATUS_OK;
}

static uint32_t bounded_limit(uint32_t record_limit)
{
    return record_limit > RECORD_LIMIT_MAX ? RECORD_LIMIT_MAX : record_limit;
}

status chunk_reader_read(struct chunk_reader *reader, struct table_files *files,
                         uint64_t chunk_number, uint32_t record_limit, const atomic_bool *stopped,
                         struct chunk *out_chunk, uint32_t *out_file, struct error *err)
{
    struct piece piece = find_piece(files, chunk_number);
    struct reading reading = {0};
    reader->front = 0;
    TRY(piece_read(&piece, reader, stopped, &reading, err));
    TRY(piece_cut(&piece, reader, reading.start, reading.last, bounded_limit(record_limit),
                  out_chunk, err));
    if (reading.has_index) out_chunk->index = &reader->index;
    *out_file = piece.file_number;
    return STATUS_OK;
}

status chunk_reader_read_on(struct chunk_reader *reader, struct table_files *files,
                            uint64_t chunk_number, uint64_t from, size_t front,
                            uint32_t record_limit, struct chunk *out_chunk, uint32_t *out_file,
                            struct error *err)
{
    struct piece piece = find_piece(files, chunk_number);
    uint64_t skipped = 0;
    if (piece.number > 0) {
        ASSERT(from >= piece.start);
        skipped = from - piece.start < piece.size ? from - piece.start : piece.size;
    }
    piece.start += skipped;
    piece.size -= (size_t)skipped;
    reader->front = front;
    TRY(piece_fill(&piece, reader, piece.size + TAIL_BYTES, err));
    enum csv_state last = csv_advance(CSV_RECORD_START, reader_bytes(reader), piece.size);
    *out_file = piece.file_number;
    return piece_cut(&piece, reader, 0, last, bounded_limit(record_limit), out_chunk, err);
}

struct buf chunk_reader_take(struct chunk_reader *reader)
{
    struct buf block = {.bytes = (unsigned char *)reader->block,
                        .capacity = reader->capacity,
                        .budget = reader->budget};
    reader->block = NULL;
    reader->capacity = 0;
    return block;
}

status table_files_line(struct table_files *files, uint32_t file, uint64_t byte_offset,
                        uint64_t *out_line, struct error *err)
{
    ASSERT(file < files->file_count);
    const struct table_file *source = &files->files[file];
    ASSERT(byte_offset <= source->size);
    char bytes[COUNT_BYTES];
    uint64_t line = 1;
    for (uint64_t done = 0; done < byte_offset;) {
        uint64_t left = byte_offset - done;
        size_t size = left < sizeof bytes ? (size_t)left : sizeof bytes;
        struct file_part part = {source->fd, source->path, done, size};
        TRY(file_read(part, bytes, err));
        line += csv_count_lines(bytes, size);
        done += size;
    }
    *out_line = line;
    return STATUS_OK;
}

status table_files_place(struct table_files *files, uint32_t file, uint64_t byte_offset,
                         struct error *err)
{
    ASSERT(err->code != STATUS_OK);
    const struct table_file *source = &files->files[file];
    struct error line_error;
    uint64_t line = 0;
    if (table_files_line(files, file, byte_offset, &line, &line_error) != STATUS_OK) {
        /* The first error counts; its place can still be told in bytes. */
        return error_prefix(err, "%.*s: at byte %llu", TEXT_ARGS(source->name),
                            (unsigned long long)byte_offset);
    }
    return error_prefix(err, "%.*s:%llu", TEXT_ARGS(source->name), (unsigned long long)line);
}

status table_files_unclosed(struct table_files *files, uint32_t file, uint64_t byte_offset,
                            struct error *err)
{
    status failed = error_set(err, STATUS_INPUT, "a quoted field begins here and is never closed");
    (void)failed; /* It gets its place. */
    return table_files_place(files, file, byte_offset, err);
}

uint32_t table_files_record_limit(uint32_t field_limit)
{
    enum { FIELDS = 4 };
    bool is_bounded = field_limit > 0 && field_limit <= UINT32_MAX / FIELDS;
    return is_bounded ? field_limit * FIELDS : UINT32_MAX;
}
