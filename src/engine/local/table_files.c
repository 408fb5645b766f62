/* SPDX-License-Identifier: Apache-2.0 */
/* table_files.c - finds files, reads their headers, and tells lines of them for messages. */
#include "engine/local/table_files.h"

#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/base/buf.h"
#include "engine/data/csv_field.h"
#include "engine/data/csv_scan.h"
#include "engine/data/print_text.h"
#include "engine/file/file.h"

enum {
    HEADER_FIRST_BYTES = 16 * 1024,
    HEADER_LIMIT_BYTES = 1024 * 1024,
    BYTE_ORDER_MARK_BYTES = 3,
    COUNT_BYTES = 64 * 1024, /* At a time when lines are counted. */
    LIST_NAMES = 12,         /* In messages. */
    LIST_NAME_WIDTH = 40
};

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
            .poisoned_chunk = UINT64_MAX,
        };
        files->file_count++;
        if (file->path == NULL) return fail_memory(table, err);
        TRY(open_file(table, file, arena, err));
        file->next_record = file->body_offset;
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
        files->files[i].known_chunk = 0;
        files->files[i].next_record = files->files[i].body_offset;
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
