/* SPDX-License-Identifier: Apache-2.0 */
/* csv_model.h - the CSV grammar once more, byte by byte, for the tests to compare with.
 *
 * Written from the grammar in engine/data/csv_split.h and not from the code: a record is read field
 * by field, a field by one of two loops. Slow, and meant to be obvious.
 */
#ifndef UNIT_DATA_CSV_MODEL_H
#define UNIT_DATA_CSV_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/data/csv_split.h"

struct model_field {
    size_t start;
    size_t end; /* Of the raw bytes: before the separator, or before the line end's CR. */
    bool ends_record;
    bool unclosed;
    size_t next;          /* Where the next field begins. */
    enum csv_state state; /* When `next` is the end of input: the state there. */
};

/* Reads the field at `start` <= size; appends its value to `value`, which has room for it. */
static inline struct model_field model_read_field(const char *bytes, size_t size, size_t start,
                                                  char *value, size_t *value_size)
{
    size_t at = start;
    size_t length = 0;
    bool closed = true;
    bool just_closed = false;
    if (at < size && bytes[at] == '"') {
        closed = false;
        at++;
        while (at < size && !closed) {
            if (bytes[at] != '"') {
                value[length++] = bytes[at++];
            } else if (at + 1 < size && bytes[at + 1] == '"') {
                value[length++] = '"';
                at += 2;
            } else {
                closed = true;
                at++;
            }
        }
        just_closed = closed && at == size;
    }
    while (closed && at < size && bytes[at] != ',' && bytes[at] != '\n') {
        value[length++] = bytes[at++];
    }

    struct model_field field = {.start = start, .end = at, .next = at, .unclosed = !closed};
    bool comma = closed && at < size && bytes[at] == ',';
    bool line = closed && at < size && bytes[at] == '\n';
    field.ends_record = !comma;
    if (comma || line) field.next = at + 1;
    if (closed && !comma && at > start && bytes[at - 1] == '\r') {
        field.end--;
        length--;
    }
    if (line) {
        field.state = CSV_RECORD_START;
    } else if (comma || at == start) {
        field.state = CSV_FIELD_START;
    } else if (!closed) {
        field.state = CSV_QUOTED;
    } else {
        field.state = just_closed ? CSV_QUOTE_SEEN : CSV_UNQUOTED;
    }
    *value_size = length;
    return field;
}

/* The state after all of the bytes, which begin at a record's start. */
static inline enum csv_state model_state(const char *bytes, size_t size, char *scratch)
{
    enum csv_state state = CSV_RECORD_START;
    for (size_t at = 0; at < size;) {
        size_t value_size;
        struct model_field field = model_read_field(bytes, size, at, scratch, &value_size);
        state = field.state;
        at = field.next;
    }
    return state;
}

/* The end of the record that begins at `start`: after its LF, or `size`. */
static inline size_t model_record_end(const char *bytes, size_t size, size_t start, char *scratch)
{
    size_t value_size;
    for (;;) {
        struct model_field field = model_read_field(bytes, size, start, scratch, &value_size);
        if (field.ends_record) return field.next;
        start = field.next;
    }
}

#endif
