/* SPDX-License-Identifier: Apache-2.0 */
/* config_entries.c - first the file becomes a list of entries, then the environment replaces some.
 *
 * inih does the splitting. It gives no line numbers and passes over headings without keys, so lines
 * are handed to it by a reader of ours that counts them and looks at headings. The reader also
 * takes away indentation, which inih would take for the continuation of a value.
 */
#include "cluster/config/config_entries.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "cluster/config/config_value.h"
#include "engine/base/array.h"

enum { ENTRIES_MAX = 1024, VARIABLE_MAX = 200, VALUE_MAX = 1 << 16 };

#define VARIABLE_PREFIX "MILLRACE_"

/* A variable of clients, which may run in the shell that starts nodes. */
static const struct text client_variable = TEXT_INIT(VARIABLE_PREFIX "CLUSTER_CA");

struct config_parser {
    const struct config_source *source;
    struct config_entries *entries;
    struct arena *arena;
    struct text left; /* Not yet handed to inih. */
    uint32_t line;
    enum config_section section;
    bool seen[CONFIG_SECTIONS];
    status result; /* Of the calls back from inih. */
    struct error *err;
};

status config_entry_fail(const struct config_entries *entries, const struct config_entry *entry,
                         struct error *err)
{
    if (entry->variable != NULL) return error_prefix(err, "%s", entry->variable);
    return error_prefix(err, "%.500s:%u", entries->path, entry->line);
}

static bool is_broker(const struct config_entry *entry)
{
    return entry->section == CONFIG_CLUSTER && text_equal(entry->key, TEXT_LITERAL("broker"));
}

const struct config_entry *config_entries_find(const struct config_entries *entries,
                                               enum config_section section, struct text key)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct config_entry *entry = &entries->items[i];
        if (!entry->replaced && entry->section == section && text_equal(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}

/* ---- from the file to entries ---- */

/* Fails at the current line; read_line then reports the end of the file to inih. */
#define line_fail(parser, ...)                                                                     \
    do {                                                                                           \
        error_write((parser)->err, STATUS_INPUT, __VA_ARGS__);                                     \
        (parser)->result =                                                                         \
            error_prefix((parser)->err, "%.500s:%u", (parser)->source->path, (parser)->line);      \
    } while (0)

/* The line without its comment, which may be longer than inih could take. */
static struct text cut_comment(struct text line)
{
    line = config_trim(line);
    if (line.size > 0 && (line.bytes[0] == ';' || line.bytes[0] == '#')) line.size = 0;
    for (uint32_t i = 1; i < line.size; i++) {
        if (line.bytes[i] == ';' && config_is_blank(line.bytes[i - 1])) line.size = i;
    }
    return config_trim(line);
}

static void read_heading(struct config_parser *parser, struct text line)
{
    const char *end = memchr(line.bytes, ']', line.size);
    if (end == NULL) {
        line_fail(parser, "expected ] after the section's name");
        return;
    }
    struct text name = {line.bytes + 1, (uint32_t)(end - line.bytes) - 1};
    if (name.size + 2 < line.size) {
        line_fail(parser, "expected only a comment after [%.*s]", CONFIG_SHOWN(name));
        return;
    }
    for (uint32_t i = 0; i < CONFIG_SECTIONS; i++) {
        if (!text_equal(name, config_section_names[i])) continue;
        if (parser->seen[i]) {
            line_fail(parser, "section [%.*s] is given twice; merge the two", TEXT_ARGS(name));
        }
        parser->seen[i] = true;
        parser->section = (enum config_section)i;
        return;
    }
    struct config_suggestion suggestion =
        config_suggest(name, config_section_names, CONFIG_SECTIONS);
    line_fail(parser, "no section [%.*s] exists%s", CONFIG_SHOWN(name), suggestion.text);
}

/* An ini_reader: the next line. */
static char *read_line(char *out, int size, void *stream)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    struct config_parser *parser = stream;
    if (parser->result != STATUS_OK || parser->left.size == 0) return NULL;
    const char *end = memchr(parser->left.bytes, '\n', parser->left.size);
    uint32_t line_size = end == NULL ? parser->left.size : (uint32_t)(end - parser->left.bytes);
    uint32_t used = end == NULL ? line_size : line_size + 1;
    struct text line = {parser->left.bytes, line_size};
    parser->left.bytes += used;
    parser->left.size -= used;
    parser->line++;
    if (parser->line == 1 && line.size >= 3 && memcmp(line.bytes, byte_order_mark, 3) == 0) {
        line = (struct text){line.bytes + 3, line.size - 3};
    }
    line = cut_comment(line);
    if (line.size > (uint32_t)size - 2) {
        line_fail(parser, "the line is longer than %d bytes; shorten it", size - 2);
        return NULL;
    }
    if (line.size > 0 && line.bytes[0] == '[') read_heading(parser, line);
    if (parser->result != STATUS_OK) return NULL;
    if (line.size > 0) memcpy(out, line.bytes, line.size);
    out[line.size] = '\n';
    out[line.size + 1] = '\0';
    return out;
}

static status entry_add(struct config_parser *parser, struct config_entry entry)
{
    struct config_entries *entries = parser->entries;
    if (entries->count == ENTRIES_MAX) {
        return error_set(parser->err, STATUS_LIMIT, "%.500s: more than %d lines of keys",
                         entries->path, (int)ENTRIES_MAX);
    }
    entry.key.bytes = arena_copy_string(parser->arena, entry.key);
    entry.value.bytes = arena_copy_string(parser->arena, entry.value);
    struct config_entry *added = array_add_in(entries, parser->arena);
    if (added == NULL || entry.key.bytes == NULL || entry.value.bytes == NULL) {
        return error_memory(parser->err);
    }
    *added = entry;
    return STATUS_OK;
}

/* An ini_handler. */
static int take_pair(void *user, const char *section, const char *name, const char *value)
{
    struct config_parser *parser = user;
    if (parser->result != STATUS_OK) return 0;
    struct config_entry entry = {
        .section = parser->section,
        .key = text_of(name),
        .value = text_of(value),
        .line = parser->line,
    };
    if (section[0] == '\0') {
        line_fail(parser, "%.*s stands before the first section; put [cluster] above it",
                  CONFIG_SHOWN(entry.key));
        return 0;
    }
    const struct config_entry *other =
        config_entries_find(parser->entries, entry.section, entry.key);
    if (other != NULL && !is_broker(&entry)) {
        line_fail(parser, "%.*s is given twice, first in line %u", CONFIG_SHOWN(entry.key),
                  other->line);
        return 0;
    }
    parser->result = entry_add(parser, entry);
    return parser->result == STATUS_OK;
}

static status read_entries(struct config_parser *parser)
{
    if (parser->left.size > 0 && memchr(parser->left.bytes, '\0', parser->left.size) != NULL) {
        return error_set(parser->err, STATUS_INPUT,
                         "%.500s: expected a text file, found a zero byte", parser->source->path);
    }
    int line = ini_parse_stream(read_line, parser, take_pair, parser);
    TRY(parser->result);
    if (line == 0) return STATUS_OK;
    if (line < 0) return error_memory(parser->err);
    return error_set(parser->err, STATUS_INPUT, "%.500s:%d: expected KEY = VALUE or [SECTION]",
                     parser->source->path, line);
}

/* ---- the environment ---- */

/* The section of a variable's name (without MILLRACE_), which is cut off with its _. */
static bool take_section(struct text *variable, enum config_section *out)
{
    for (uint32_t i = 0; i < CONFIG_SECTIONS; i++) {
        struct text name = config_section_names[i];
        if (variable->size <= name.size || variable->bytes[name.size] != '_') continue;
        if (!config_spells((struct text){variable->bytes, name.size}, name)) continue;
        variable->bytes += name.size + 1;
        variable->size -= name.size + 1;
        *out = (enum config_section)i;
        return true;
    }
    return false;
}

/* The key that a variable means: one of the table, or a node of the file. */
static bool find_key(const struct config_parser *parser, enum config_section section,
                     struct text variable, struct text *out)
{
    if (config_key_of_variable(section, variable, out)) return true;
    const struct config_entries *entries = parser->entries;
    for (size_t i = 0; section != CONFIG_CLUSTER && i < entries->count; i++) {
        if (entries->items[i].section != section) continue;
        if (!config_spells(variable, entries->items[i].key)) continue;
        *out = entries->items[i].key;
        return true;
    }
    return false;
}

/* A node keeps its place: the order of workers decides which shards each owns. */
static status entry_replace(struct config_parser *parser, struct config_entry entry)
{
    struct config_entries *entries = parser->entries;
    bool found = false;
    const char *value = arena_copy_string(parser->arena, entry.value);
    if (value == NULL) return error_memory(parser->err);
    for (size_t i = 0; i < entries->count; i++) {
        struct config_entry *old = &entries->items[i];
        if (old->section != entry.section || !text_equal(old->key, entry.key)) continue;
        old->replaced = found; /* Further lines of brokers. */
        found = true;
        old->value = (struct text){value, entry.value.size};
        old->variable = entry.variable;
    }
    return found ? STATUS_OK : entry_add(parser, entry);
}

static status take_variable(struct config_parser *parser, const char *variable)
{
    const size_t prefix_size = sizeof VARIABLE_PREFIX - 1;
    const char *equals = strchr(variable, '=');
    if (equals == NULL || strncmp(variable, VARIABLE_PREFIX, prefix_size) != 0) return STATUS_OK;
    if ((size_t)(equals - variable) < prefix_size || equals - variable > VARIABLE_MAX) {
        return STATUS_OK;
    }
    struct text name = {variable, (uint32_t)(equals - variable)};
    struct text left = {variable + prefix_size, name.size - (uint32_t)prefix_size};
    if (text_equal(name, client_variable)) return STATUS_OK;
    size_t value_size = strlen(equals + 1);
    struct config_entry entry = {.value = {equals + 1, (uint32_t)value_size}};
    if (!take_section(&left, &entry.section)) return STATUS_OK;

    entry.variable = arena_copy_string(parser->arena, name);
    if (entry.variable == NULL) return error_memory(parser->err);
    if (value_size > VALUE_MAX) {
        error_write(parser->err, STATUS_INPUT, "the value is longer than %d bytes", (int)VALUE_MAX);
        return config_entry_fail(parser->entries, &entry, parser->err);
    }
    entry.value = config_trim(entry.value);
    if (!find_key(parser, entry.section, left, &entry.key)) {
        struct config_suggestion suggestion = config_suggest_key(entry.section, left);
        error_write(parser->err, STATUS_INPUT, "[%.*s] has no such key%s",
                    TEXT_ARGS(config_section_names[entry.section]), suggestion.text);
        return config_entry_fail(parser->entries, &entry, parser->err);
    }
    return entry_replace(parser, entry);
}

status config_entries_read(const struct config_source *source, struct arena *arena,
                           struct config_entries *out, struct error *err)
{
    struct config_entries entries = {.path = source->path};
    struct config_parser parser = {
        .source = source,
        .entries = &entries,
        .arena = arena,
        .left = source->bytes,
        .err = err,
    };
    TRY(read_entries(&parser));
    const char *const *environment = source->environment;
    for (; environment != NULL && *environment != NULL; environment++) {
        TRY(take_variable(&parser, *environment));
    }
    *out = entries;
    return STATUS_OK;
}
