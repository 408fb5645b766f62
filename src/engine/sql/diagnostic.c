/* SPDX-License-Identifier: Apache-2.0 */
/* diagnostic.c - a message, the line it speaks of, and a caret.
 *
 * The parts have limits of their own whose sum fits an error's text, so that a long name or message
 * never costs the caret. Long lines are cut to a window of columns around it.
 */
#include "engine/sql/diagnostic.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 200,
    MESSAGE_BYTES = 1100,
    WINDOW_COLUMNS = 100,
    CHARACTER_BYTES = 4,
    FRAME_BYTES = 100 /* Line numbers, separators and the caret. */
};

static_assert(NAME_BYTES + MESSAGE_BYTES + WINDOW_COLUMNS * (CHARACTER_BYTES + 1) + FRAME_BYTES <
                  ERROR_TEXT_SIZE,
              "every part of a diagnostic fits");

static const char ellipsis[] = "…";

struct excerpt_writer {
    char *bytes;
    size_t used;
    size_t size;
};

static void put(struct excerpt_writer *writer, const char *bytes, size_t size)
{
    if (size >= writer->size - writer->used) return; /* The sum of the parts' limits forbids it. */
    memcpy(writer->bytes + writer->used, bytes, size);
    writer->used += size;
    writer->bytes[writer->used] = '\0';
}

/* Bytes of the UTF-8 character at `bytes`, or 0 when there is no valid, visible one. */
static uint32_t visible_size(const unsigned char *bytes, uint32_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = bytes[0];
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    uint32_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc0 || lead > 0xf7 || size > left) return 0;
    uint32_t point = lead & (0xffu >> (size + 1));
    for (uint32_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (bytes[i] & 0x3fu);
    }
    bool control = point < 0xa0;
    bool surrogate = point >= 0xd800 && point < 0xe000;
    if (point < smallest[size] || point > 0x10ffff || control || surrogate) return 0;
    return size;
}

/* The character at *position as it is shown, and steps over it. */
static struct text next_character(struct text text, uint32_t *position)
{
    const char *bytes = text.bytes + *position;
    uint32_t size = visible_size((const unsigned char *)bytes, text.size - *position);
    *position += size == 0 ? 1 : size;
    if (size > 0) return (struct text){bytes, size};
    return *bytes == '\t' ? TEXT_LITERAL("\t") : TEXT_LITERAL("?");
}

static void put_clean(struct excerpt_writer *writer, struct text text, size_t limit_bytes)
{
    size_t end = writer->used + limit_bytes - sizeof ellipsis;
    for (uint32_t position = 0; position < text.size;) {
        struct text character = next_character(text, &position);
        if (writer->used + character.size > end) {
            put(writer, ellipsis, sizeof ellipsis - 1);
            return;
        }
        put(writer, character.bytes, character.size);
    }
}

struct caret_place {
    struct text line;
    uint32_t line_number; /* From 1. */
    uint32_t column;      /* From 0, in characters. */
    uint32_t column_count;
};

static struct caret_place locate(struct text text, uint32_t offset)
{
    uint32_t start = 0;
    uint32_t line_number = 1;
    for (uint32_t i = 0; i < offset; i++) {
        if (text.bytes[i] != '\n') continue;
        line_number++;
        start = i + 1;
    }
    if (start == 0 && offset >= 3 && memcmp(text.bytes, "\xef\xbb\xbf", 3) == 0) start = 3;
    uint32_t end = offset;
    while (end < text.size && text.bytes[end] != '\n') {
        end++;
    }
    if (end > start && text.bytes[end - 1] == '\r') end--;

    struct caret_place place = {.line_number = line_number};
    if (end > start) place.line = (struct text){text.bytes + start, end - start};
    for (uint32_t position = 0; position < place.line.size; place.column_count++) {
        if (position < offset - start) place.column++;
        (void)next_character(place.line, &position); /* Only the step is wanted. */
    }
    return place;
}

static void put_line(struct excerpt_writer *writer, const struct caret_place *place)
{
    uint32_t first = 0;
    if (place->column_count > WINDOW_COLUMNS) {
        uint32_t last_first = place->column_count - WINDOW_COLUMNS;
        first = place->column > WINDOW_COLUMNS / 2 ? place->column - WINDOW_COLUMNS / 2 : 0;
        if (first > last_first) first = last_first;
    }
    uint32_t last = first + WINDOW_COLUMNS - 1;
    char indent[WINDOW_COLUMNS + 1];
    size_t indent_size = 0;

    char number[16];
    int number_size = snprintf(number, sizeof number, "%u", (unsigned)place->line_number);
    char margin[32];
    (void)snprintf(margin, sizeof margin, "\n  %s | ", number); /* Fits: ten digits at most. */
    put(writer, margin, strlen(margin));
    uint32_t column = 0;
    for (uint32_t position = 0; position < place->line.size && column <= last; column++) {
        struct text character = next_character(place->line, &position);
        if (column < first) continue;
        bool cut =
            (column == first && first > 0) || (column == last && column + 1 < place->column_count);
        if (cut) character = TEXT_LITERAL("…");
        put(writer, character.bytes, character.size);
        if (column < place->column) indent[indent_size++] = *character.bytes == '\t' ? '\t' : ' ';
    }
    (void)snprintf(margin, sizeof margin, "\n  %*s | ", number_size, ""); /* Fits, as above. */
    put(writer, margin, strlen(margin));
    put(writer, indent, indent_size);
    put(writer, "^", 1);
}

status sql_error(struct error *err, const struct sql_source *source, uint32_t offset,
                 const char *format, ...)
{
    char message[MESSAGE_BYTES + CHARACTER_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int written =
        vsnprintf(message, sizeof message, format, arguments); /* put_clean marks a cut. */
    va_end(arguments);
    if (written < 0) message[0] = '\0';

    if (offset > source->text.size) offset = source->text.size;
    struct caret_place place = locate(source->text, offset);
    char where[32];
    (void)snprintf(where, sizeof where, ":%u:%u: ", (unsigned)place.line_number,
                   (unsigned)place.column + 1); /* Fits: two numbers of ten digits. */

    struct excerpt_writer writer = {.bytes = err->text, .size = sizeof err->text};
    put_clean(&writer, text_of(source->name == NULL ? "query" : source->name), NAME_BYTES);
    put(&writer, where, strlen(where));
    put_clean(&writer, text_of(message), MESSAGE_BYTES);
    put_line(&writer, &place);
    err->code = STATUS_SQL;
    return STATUS_SQL;
}

const char *sql_suggest(char *out, size_t size, struct text wanted, const struct text *candidates,
                        size_t count)
{
    const struct text *nearest = text_nearest(wanted, candidates, count);
    int written = 0;
    if (nearest != NULL) {
        written = snprintf(out, size, "; did you mean `%.*s`?", TEXT_ARGS(*nearest));
    }
    /* Half a suggestion is worse than none. */
    if (size > 0 && (nearest == NULL || written < 0 || (size_t)written >= size)) out[0] = '\0';
    return out;
}
