/* SPDX-License-Identifier: Apache-2.0 */
/* csv_field.c - quoted fields and headers.
 *
 * Both follow the grammar from quote to quote with memchr: fields are long where it matters. A
 * header is read once per file and by hand, because an index needs the number of columns first.
 */
#include "engine/data/csv_field.h"

#include "engine/data/csv_split.h"

/* The offset of the first `byte` at or after `from`, or text.size. */
static uint32_t find_byte(struct text text, uint32_t from, char byte)
{
    if (from >= text.size) return text.size;
    const char *found = memchr(text.bytes + from, byte, text.size - from);
    return found == NULL ? text.size : (uint32_t)(found - text.bytes);
}

static struct text text_from(struct text text, uint32_t start)
{
    return (struct text){text.bytes + start, text.size - start};
}

struct text csv_field_unquote_slow(struct text raw, struct arena *arena, bool *failed)
{
    uint32_t quote = find_byte(raw, 1, '"');
    if (quote + 1 >= raw.size) return (struct text){raw.bytes + 1, quote - 1};

    char *value = arena_alloc(arena, raw.size, 1);
    if (value == NULL) {
        *failed = true;
        return (struct text){0};
    }
    uint32_t size = 0;
    uint32_t start = 1;
    while (quote + 1 < raw.size && raw.bytes[quote + 1] == '"') {
        /* The first of the two quotes is copied with what precedes it, the second passed over. */
        memcpy(value + size, raw.bytes + start, quote + 1 - start);
        size += quote + 1 - start;
        start = quote + 2;
        quote = find_byte(raw, start, '"');
    }
    memcpy(value + size, raw.bytes + start, quote - start);
    size += quote - start;
    if (quote + 1 < raw.size) {
        struct text rest = text_from(raw, quote + 1);
        memcpy(value + size, rest.bytes, rest.size);
        size += rest.size;
    }
    return (struct text){value, size};
}

/* The offset of the comma that ends the field which begins at `start`, or record.size. */
static uint32_t header_field_end(struct text record, uint32_t start)
{
    uint32_t at = start;
    if (at < record.size && record.bytes[at] == '"') {
        do {
            at = find_byte(record, at + 1, '"') + 1;
        } while (at < record.size && record.bytes[at] == '"');
    }
    return find_byte(record, at, ',');
}

static uint32_t header_count(struct text record)
{
    uint32_t count = 1;
    for (uint32_t end = header_field_end(record, 0); end < record.size; count++) {
        end = header_field_end(record, end + 1);
    }
    return count;
}

/* The first record of the bytes, without its line end. */
static status header_record(const char *bytes, size_t size, struct text *out_record,
                            size_t *out_body_offset, struct error *err)
{
    size_t start = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (start == size) return error_set(err, STATUS_INPUT, "csv: no header, the input is empty");

    enum csv_state state = CSV_RECORD_START;
    size_t body = start + csv_record_end(&state, bytes + start, size - start);
    size_t end = body;
    if (state == CSV_QUOTED) {
        return error_set(err, STATUS_INPUT, "csv: the header has an unclosed quote");
    }
    if (end - start > CSV_CHUNK_LIMIT_BYTES) {
        return error_set(err, STATUS_INPUT, "csv: the header is longer than 4 GiB");
    }
    if (state == CSV_RECORD_START) end--;
    if (end > start && bytes[end - 1] == '\r') end--;
    *out_record = (struct text){bytes + start, (uint32_t)(end - start)};
    *out_body_offset = body;
    return STATUS_OK;
}

status csv_header_parse(const char *bytes, size_t size, struct arena *arena,
                        struct text **out_names, uint32_t *out_count, size_t *out_body_offset,
                        struct error *err)
{
    struct text record = {0};
    size_t body_offset = 0;
    TRY(header_record(bytes, size, &record, &body_offset, err));

    uint32_t count = header_count(record);
    struct text *names = arena_array(arena, struct text, count);
    bool failed = names == NULL;
    uint32_t start = 0;
    for (uint32_t i = 0; i < count && !failed; i++) {
        uint32_t end = header_field_end(record, start);
        struct text raw = {record.bytes + start, end - start};
        names[i] = csv_field_unquote(raw, arena, &failed);
        start = end + 1;
    }
    if (failed) return error_set(err, STATUS_MEMORY, "csv: no memory for the header's names");

    *out_names = names;
    *out_count = count;
    *out_body_offset = body_offset;
    return STATUS_OK;
}
