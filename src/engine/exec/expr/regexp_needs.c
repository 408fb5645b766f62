/* SPDX-License-Identifier: Apache-2.0 */
/* regexp_needs.c - reads patterns as PCRE2 does, as far as that is simple.
 *
 * Everything is only ever understood in part: a class that excludes something matches any character
 * here, an assertion nothing at all. What could mean something that is not looked into (options
 * within the pattern, back references, recursion, properties of characters ...) ends the reading.
 */
#include "engine/exec/expr/regexp_needs.h"

#include "engine/base/assert.h"

enum { DEPTH_MAX = 24, REPEAT_MAX = 65536 };

struct pattern_reader {
    struct text pattern;
    uint32_t at;
    uint32_t depth;
    bool any_case;
};

static bool has(const struct pattern_reader *reader, uint32_t ahead)
{
    return reader->pattern.size - reader->at > ahead;
}

static char peek(const struct pattern_reader *reader, uint32_t ahead)
{
    return has(reader, ahead) ? reader->pattern.bytes[reader->at + ahead] : '\0';
}

static bool take(struct pattern_reader *reader, char wanted)
{
    if (!has(reader, 0) || peek(reader, 0) != wanted) return false;
    reader->at++;
    return true;
}

static bool take_word(struct pattern_reader *reader, const char *word)
{
    uint32_t size = (uint32_t)strlen(word);
    if (reader->pattern.size - reader->at < size) return false;
    if (memcmp(reader->pattern.bytes + reader->at, word, size) != 0) return false;
    reader->at += size;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void add_range(const struct pattern_reader *reader, struct byte_set *set, char first,
                      char last)
{
    for (int c = first; c <= last; c++) {
        byte_set_add(set, (unsigned char)c);
        if (reader->any_case && is_letter((char)c)) byte_set_add(set, (unsigned char)(c ^ 0x20));
    }
}

/* --- Escapes and classes. --- */

enum escape {
    ESCAPE_BYTE,   /* A byte that stands for itself, or is written with a letter. */
    ESCAPE_SET,    /* \d \w \s: bytes. */
    ESCAPE_OTHERS, /* \D \W \S: most characters. */
    ESCAPE_ASSERTION,
    ESCAPE_UNKNOWN
};

/* Behind the backslash; *out_byte belongs to ESCAPE_BYTE. */
static enum escape read_escape(struct pattern_reader *reader, struct byte_set *in_out_set,
                               char *out_byte)
{
    if (!has(reader, 0)) return ESCAPE_UNKNOWN;
    char c = reader->pattern.bytes[reader->at++];
    bool is_plain = c > ' ' && c < 0x7f && !is_letter(c) && !is_digit(c);
    *out_byte = is_plain ? c : c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
    if (is_plain || c == 'n' || c == 't' || c == 'r') return ESCAPE_BYTE;
    switch (c) {
    case 'w':
        add_range(reader, in_out_set, 'a', 'z');
        add_range(reader, in_out_set, 'A', 'Z');
        add_range(reader, in_out_set, '_', '_');
        add_range(reader, in_out_set, '0', '9');
        return ESCAPE_SET;
    case 'd':
        add_range(reader, in_out_set, '0', '9');
        return ESCAPE_SET;
    case 's':
        add_range(reader, in_out_set, '\t', '\r');
        add_range(reader, in_out_set, ' ', ' ');
        return ESCAPE_SET;
    case 'W':
    case 'D':
    case 'S':
        return ESCAPE_OTHERS;
    case 'b':
    case 'B':
        return ESCAPE_ASSERTION;
    default:
        return ESCAPE_UNKNOWN;
    }
}

/* A class's next element; *out_is_byte: one that a range may begin with. */
static bool read_element(struct pattern_reader *reader, struct byte_set *set, char *out_byte,
                         bool *out_is_byte, bool *in_out_wide)
{
    char c = reader->pattern.bytes[reader->at++];
    *out_byte = c;
    *out_is_byte = true;
    if (c == '\\') {
        enum escape escape = read_escape(reader, set, out_byte);
        *in_out_wide |= escape == ESCAPE_OTHERS;
        *out_is_byte = escape == ESCAPE_BYTE;
        return escape != ESCAPE_UNKNOWN && escape != ESCAPE_ASSERTION;
    }
    if (c == '[') {
        char next = peek(reader, 0);
        return next != ':' && next != '.' && next != '=';
    }
    if ((unsigned char)c >= 0x80) {
        /* Whatever character it is a part of, alone or as the end of a range. */
        *in_out_wide = true;
        *out_is_byte = false;
    }
    return true;
}

/* Behind the opening bracket. */
static bool read_class(struct pattern_reader *reader, struct regexp_node *out)
{
    struct byte_set set = {0};
    bool is_wide = take(reader, '^');
    bool is_first = true;
    for (; has(reader, 0) && (is_first || peek(reader, 0) != ']'); is_first = false) {
        char first, last;
        bool is_byte, is_last_byte;
        if (!read_element(reader, &set, &first, &is_byte, &is_wide)) return false;
        last = first;
        if (peek(reader, 0) == '-' && has(reader, 1) && peek(reader, 1) != ']') {
            reader->at++;
            if (!read_element(reader, &set, &last, &is_last_byte, &is_wide)) return false;
            /* One that goes beyond ASCII, or no range after all. */
            is_byte = is_byte && is_last_byte && first <= last;
            is_wide |= !is_byte;
        }
        if (is_byte) add_range(reader, &set, first, last);
    }
    if (!take(reader, ']')) return false;
    if (is_wide) {
        regexp_node_any(out);
    } else {
        regexp_node_byte(out, &set, reader->any_case);
    }
    return true;
}

/* --- Atoms. --- */

static void byte_node(const struct pattern_reader *reader, char c, struct regexp_node *out)
{
    struct byte_set set = {0};
    add_range(reader, &set, c, c);
    regexp_node_byte(out, &set, reader->any_case);
}

/* A character beyond ASCII, all of whose bytes a quantifier means. */
static void read_wide(struct pattern_reader *reader, struct regexp_node *out)
{
    struct node_sequence sequence;
    node_sequence_start(&sequence);
    do {
        struct byte_set set = {0};
        byte_set_add(&set, (unsigned char)reader->pattern.bytes[reader->at++]);
        regexp_node_byte(out, &set, false);
        node_sequence_add(&sequence, out);
    } while (((unsigned char)peek(reader, 0) & 0xc0) == 0x80);
    node_sequence_end(&sequence, out);
    /* Its other case may be any other character. */
    if (reader->any_case) regexp_node_any(out);
}

static bool read_escaped_atom(struct pattern_reader *reader, struct regexp_node *out)
{
    struct byte_set set = {0};
    char c;
    switch (read_escape(reader, &set, &c)) {
    case ESCAPE_BYTE:
        byte_node(reader, c, out);
        return true;
    case ESCAPE_SET:
        regexp_node_byte(out, &set, reader->any_case);
        return true;
    case ESCAPE_OTHERS:
        regexp_node_any(out);
        return true;
    case ESCAPE_ASSERTION:
        regexp_node_empty(out);
        return true;
    case ESCAPE_UNKNOWN:
        break;
    }
    return false;
}

static bool read_either(struct pattern_reader *reader, struct regexp_node *out);

/* Behind the opening parenthesis. */
static bool read_group(struct pattern_reader *reader, struct regexp_node *out)
{
    bool is_assertion = false;
    if (take(reader, '?')) {
        is_assertion = take_word(reader, "=") || take_word(reader, "!") ||
                       take_word(reader, "<=") || take_word(reader, "<!");
        if (!is_assertion && !take(reader, ':') && !take(reader, '>')) return false;
    } else if (peek(reader, 0) == '*') {
        return false;
    }
    if (reader->depth == DEPTH_MAX) return false;
    reader->depth++;
    if (!read_either(reader, out) || !take(reader, ')')) return false;
    reader->depth--;
    if (is_assertion) regexp_node_empty(out);
    return true;
}

static bool read_atom(struct pattern_reader *reader, struct regexp_node *out)
{
    char c = peek(reader, 0);
    if ((unsigned char)c >= 0x80) {
        read_wide(reader, out);
        return true;
    }
    reader->at++;
    switch (c) {
    case '\\':
        return read_escaped_atom(reader, out);
    case '(':
        return read_group(reader, out);
    case '[':
        return read_class(reader, out);
    case '.':
        regexp_node_any(out);
        return true;
    case '^':
    case '$':
        regexp_node_empty(out);
        out->at_start = c == '^';
        out->at_end = c == '$';
        return true;
    case '*':
    case '+':
    case '?':
    case '{':
        return false;
    default:
        byte_node(reader, c, out);
        return true;
    }
}

/* --- Quantifiers. --- */

static bool read_number(struct pattern_reader *reader, uint32_t *out)
{
    uint32_t number = 0;
    if (!is_digit(peek(reader, 0))) return false;
    while (is_digit(peek(reader, 0))) {
        number = number * 10 + (uint32_t)(reader->pattern.bytes[reader->at++] - '0');
        if (number > REPEAT_MAX) return false;
    }
    *out = number;
    return true;
}

/* {3} {3,} {3,5}; others are literals in some versions, and not in others. */
static bool read_bounds(struct pattern_reader *reader, uint32_t *out_least, uint32_t *out_most)
{
    if (!read_number(reader, out_least)) return false;
    *out_most = *out_least;
    if (take(reader, ',')) {
        *out_most = UINT32_MAX;
        if (peek(reader, 0) != '}' && !read_number(reader, out_most)) return false;
    }
    return take(reader, '}') && *out_least <= *out_most;
}

static bool read_quantifier(struct pattern_reader *reader, struct regexp_node *node)
{
    uint32_t least = 0;
    uint32_t most = UINT32_MAX;
    if (take(reader, '+')) {
        least = 1;
    } else if (take(reader, '?')) {
        most = 1;
    } else if (take(reader, '{')) {
        if (!read_bounds(reader, &least, &most)) return false;
    } else if (!take(reader, '*')) {
        return true;
    }
    /* As few as possible, or without going back: matches are at most fewer. */
    if (!take(reader, '?')) (void)take(reader, '+');
    regexp_node_repeat(node, least, most);
    return true;
}

static bool read_sequence(struct pattern_reader *reader, struct regexp_node *out)
{
    struct node_sequence sequence;
    node_sequence_start(&sequence);
    while (has(reader, 0) && peek(reader, 0) != '|' && peek(reader, 0) != ')') {
        if (!read_atom(reader, out) || !read_quantifier(reader, out)) return false;
        node_sequence_add(&sequence, out);
    }
    node_sequence_end(&sequence, out);
    return true;
}

static bool read_either(struct pattern_reader *reader, struct regexp_node *out)
{
    if (!read_sequence(reader, out)) return false;
    while (take(reader, '|')) {
        struct regexp_node other;
        if (!read_sequence(reader, &other)) return false;
        regexp_node_either(out, &other);
    }
    return true;
}

/* --- Needs. --- */

static void note_literals(struct regexp_needs *out, const struct node_strings *strings,
                          bool any_case)
{
    struct text items[NODE_STRINGS];
    for (uint32_t i = 0; i < strings->count; i++) {
        items[i] = (struct text){strings->items[i].bytes, strings->items[i].size};
        /* PCRE2 looks for a single byte itself. */
        if (items[i].size < 2) return;
    }
    out->has_literals =
        strings->count > 0 && literals_make(&out->literals, items, strings->count, any_case);
}

void regexp_needs_find(struct regexp_needs *out, struct text pattern, bool any_case)
{
    *out = (struct regexp_needs){0};
    struct pattern_reader reader = {.pattern = pattern, .any_case = any_case};
    struct regexp_node node;
    if (!read_either(&reader, &node) || has(&reader, 0)) return;
    ASSERT(node.head_count <= node.size_min);
    ASSERT(node.tail_count <= node.size_min);
    out->size_min = node.size_min;
    if (node.at_start) {
        out->head_count = node.head_count;
        memcpy(out->head, node.head, sizeof out->head);
    }
    if (node.at_end) {
        out->tail_count = node.tail_count;
        memcpy(out->tail, node.tail, sizeof out->tail);
        /* Where a match may be empty, bytes that are no characters matter, too. */
        out->ends_with_body = node.size_min > 0 && (node.body.words[2] | node.body.words[3]) == 0;
        out->body = node.body;
    }
    note_literals(out, &node.required, any_case);
}

bool regexp_needs_met(const struct regexp_needs *needs, struct text value, uint32_t *out_from)
{
    *out_from = 0;
    if (value.size < needs->size_min) return false;
    const unsigned char *bytes = (const unsigned char *)value.bytes;
    for (uint32_t i = 0; i < needs->tail_count; i++) {
        if (!byte_set_has(&needs->tail[i], bytes[value.size - 1 - i])) return false;
    }
    for (uint32_t i = 0; i < needs->head_count; i++) {
        if (!byte_set_has(&needs->head[i], bytes[i])) return false;
    }
    if (!needs->ends_with_body) {
        return !needs->has_literals || literals_search(&needs->literals, value) != LITERALS_NONE;
    }
    uint32_t from = value.size;
    while (from > 0 && byte_set_has(&needs->body, bytes[from - 1])) {
        from--;
    }
    *out_from = from;
    if (value.size - from < needs->size_min) return false;
    if (!needs->has_literals) return true;
    struct text rest = {value.bytes + from, value.size - from};
    return literals_search(&needs->literals, rest) != LITERALS_NONE;
}
