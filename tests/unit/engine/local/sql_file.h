/* SPDX-License-Identifier: Apache-2.0 */
/* sql_file.h - tests/sql/NAME.test: tables, files, questions and answers as people write them.
 *
 * A file is blocks with blank lines between them. A block's first line says what it is:
 *
 *     # ...                       a remark
 *     tables                      CREATE TABLE and PARAMETER statements; forgets earlier files
 *     file NAME                   the text of a CSV file
 *     file-escaped NAME           the same, where \n \r \0 \\ \xHH are undone and line ends
 *                                 are not part of the file
 *     query NAME                  a question: SQL, then lines `set name=value` if there are any,
 *                                 then its answer behind one of these lines:
 *         ----                    CSV with a header, byte for byte
 *         ---- escaped            the same, escapes undone
 *         error                   lines that the message must hold, in this order
 *
 * A line that is a single point stands for an empty line.
 */
#ifndef UNIT_ENGINE_LOCAL_SQL_FILE_H
#define UNIT_ENGINE_LOCAL_SQL_FILE_H

#include "engine/base/buf.h"
#include "engine/base/text.h"

enum sql_answer { SQL_ANSWER_ROWS, SQL_ANSWER_ERROR };

enum { SQL_SETTINGS_LIMIT = 8 };

struct sql_case {
    struct text name;
    struct text sql;
    struct text set_names[SQL_SETTINGS_LIMIT];
    struct text set_values[SQL_SETTINGS_LIMIT];
    uint32_t set_count;
    enum sql_answer answer;
    struct buf expected; /* Owned. */
};

enum sql_block { SQL_BLOCK_TABLES, SQL_BLOCK_FILE, SQL_BLOCK_QUERY, SQL_BLOCK_END };

struct sql_file {
    struct text rest;
    uint32_t line; /* Of the block read last, from 1. */
    uint32_t next_line;
    struct text name; /* Of a file or query. */
    struct buf text;  /* Of tables or a file. */
    struct sql_case query;
    const char *problem; /* Why it can't be read; NULL: it can. */
};

static inline bool sql_starts_with(struct text text, const char *word)
{
    size_t size = strlen(word);
    return text.size >= size && memcmp(text.bytes, word, size) == 0;
}

static inline struct text sql_after(struct text text, const char *word)
{
    uint32_t size = (uint32_t)strlen(word);
    return (struct text){text.bytes + size, text.size - size};
}

/* False: there are no more lines. */
static inline bool sql_next_line(struct sql_file *file, struct text *out_line)
{
    if (file->rest.size == 0) return false;
    const char *end = memchr(file->rest.bytes, '\n', file->rest.size);
    uint32_t size = end == NULL ? file->rest.size : (uint32_t)(end - file->rest.bytes);
    *out_line = (struct text){file->rest.bytes, size};
    size += end != NULL;
    file->rest.bytes += size;
    file->rest.size -= size;
    file->next_line++;
    return true;
}

static inline int sql_hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static inline void sql_put_escaped(struct sql_file *file, struct text line, struct buf *out)
{
    for (uint32_t i = 0; i < line.size; i++) {
        char c = line.bytes[i];
        if (c == '\\' && i + 1 < line.size) {
            c = line.bytes[++i];
            int high = c == 'x' && i + 2 < line.size ? sql_hex(line.bytes[i + 1]) : -1;
            int low = high >= 0 ? sql_hex(line.bytes[i + 2]) : -1;
            if (c == 'x' && low < 0) file->problem = "\\x takes two digits, 0-9 a-f";
            if (c == 'x') i += 2;
            c = c == 'n'   ? '\n'
                : c == 'r' ? '\r'
                : c == '0' ? '\0'
                : c == 'x' ? (char)(high * 16 + low)
                           : c;
        }
        buf_put_u8(out, (uint8_t)c);
    }
}

/* The lines up to the end of the block. */
static inline void sql_read_lines(struct sql_file *file, bool escaped, bool keeps_ends,
                                  struct buf *out)
{
    struct text line;
    buf_reset(out);
    while (sql_next_line(file, &line) && line.size > 0) {
        if (text_equal(line, TEXT_LITERAL("."))) line.size = 0;
        if (escaped) {
            sql_put_escaped(file, line, out);
        } else {
            buf_put_text(out, line);
        }
        if (keeps_ends) buf_put_u8(out, '\n');
    }
}

static inline void sql_read_setting(struct sql_file *file, struct text setting)
{
    struct sql_case *query = &file->query;
    const char *equal = memchr(setting.bytes, '=', setting.size);
    if (equal == NULL || query->set_count == SQL_SETTINGS_LIMIT) {
        file->problem = "expected name=value, and few of them";
        return;
    }
    uint32_t size = (uint32_t)(equal - setting.bytes);
    query->set_names[query->set_count] = (struct text){setting.bytes, size};
    query->set_values[query->set_count++] = (struct text){equal + 1, setting.size - size - 1};
}

static inline void sql_read_query(struct sql_file *file)
{
    struct sql_case *query = &file->query;
    struct text line;
    query->name = file->name;
    query->sql = (struct text){file->rest.bytes, 0};
    query->set_count = 0;
    while (sql_next_line(file, &line) && line.size > 0) {
        bool escaped = text_equal(line, TEXT_LITERAL("---- escaped"));
        if (escaped || text_equal(line, TEXT_LITERAL("----"))) {
            query->answer = SQL_ANSWER_ROWS;
            sql_read_lines(file, escaped, true, &query->expected);
            return;
        }
        if (text_equal(line, TEXT_LITERAL("error"))) {
            query->answer = SQL_ANSWER_ERROR;
            sql_read_lines(file, false, true, &query->expected);
            return;
        }
        if (sql_starts_with(line, "set ")) {
            sql_read_setting(file, sql_after(line, "set "));
        } else {
            query->sql.size = (uint32_t)(line.bytes + line.size + 1 - query->sql.bytes);
        }
    }
    file->problem = "a query ends without ---- or error";
}

/* The next block; file->problem is set when there is none that can be read. */
static inline enum sql_block sql_file_next(struct sql_file *file)
{
    struct text line;
    bool in_remark = false;
    while (sql_next_line(file, &line)) {
        file->line = file->next_line;
        if (line.size == 0 || in_remark || line.bytes[0] == '#') {
            in_remark = line.size > 0;
            continue;
        }
        if (text_equal(line, TEXT_LITERAL("tables"))) {
            sql_read_lines(file, false, true, &file->text);
            return SQL_BLOCK_TABLES;
        }
        if (sql_starts_with(line, "file ")) {
            file->name = sql_after(line, "file ");
            sql_read_lines(file, false, true, &file->text);
            return SQL_BLOCK_FILE;
        }
        if (sql_starts_with(line, "file-escaped ")) {
            file->name = sql_after(line, "file-escaped ");
            sql_read_lines(file, true, false, &file->text);
            return SQL_BLOCK_FILE;
        }
        if (sql_starts_with(line, "query ")) {
            file->name = sql_after(line, "query ");
            sql_read_query(file);
            return SQL_BLOCK_QUERY;
        }
        file->problem = "expected tables, file, file-escaped or query";
        return SQL_BLOCK_END;
    }
    return SQL_BLOCK_END;
}

static inline void sql_file_done(struct sql_file *file)
{
    buf_done(&file->text);
    buf_done(&file->query.expected);
}

#endif
