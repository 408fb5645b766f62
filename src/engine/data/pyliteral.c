/* SPDX-License-Identifier: Apache-2.0 */
/* pyliteral.c - one pass over the text with a small stack of open brackets.
 *
 * Most bytes of such a text are inside strings, and most strings are neither wanted nor escaped; so
 * strings are skipped sixteen bytes at a time, and only the wanted ones are ever decoded. A
 * finished dictionary carries the string it has under the key; whatever contains it either is the
 * outermost list, which takes it, or forgets it. That treats every depth alike, parentheses
 * included.
 */
#include "engine/data/pyliteral.h"

#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "engine/base/array.h"

enum value_kind { VALUE_OTHER, VALUE_STRING, VALUE_DICT };

/* A string, or what a dictionary has under the key: the bytes between the quotes. */
struct literal_value {
    const char *bytes;
    uint32_t size;
    uint8_t kind;
    bool found;      /* Of a dictionary: it has a string under the key. */
    bool raw;        /* Backslashes are ordinary bytes. */
    bool verbatim;   /* There is nothing to decode. */
    bool unhashable; /* Cannot be a key. */
};

enum frame_kind { FRAME_LIST, FRAME_PAREN, FRAME_DICT };

struct literal_frame {
    uint8_t kind;
    bool key_next;   /* Of a dictionary: the next value is a key. */
    bool wanted;     /* Of a dictionary: the next value stands under the key. */
    bool empty;      /* Nothing yet. */
    bool comma;      /* Of parentheses: it is a tuple. */
    bool unhashable; /* Of parentheses: so is some element. */
    struct literal_value last;
};

struct literal_parser {
    const char *at;
    const char *end;
    struct text key;
    struct pyliteral_sink *sink;
    bool out_of_memory;
    uint32_t depth;
    struct literal_frame frames[PYLITERAL_DEPTH_MAX];
};

/* 0 at the end, which no rule accepts. */
static char peek(const struct literal_parser *parser)
{
    return LIKELY(parser->at < parser->end) ? *parser->at : '\0';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int hex_value(char byte)
{
    if (is_digit(byte)) return byte - '0';
    char lower = (char)(byte | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static void skip_space(struct literal_parser *parser)
{
    while (parser->at < parser->end) {
        char byte = *parser->at;
        if (LIKELY((unsigned char)byte > ' ')) return;
        if (byte != ' ' && byte != '\n' && byte != '\t' && byte != '\r' && byte != '\f') return;
        parser->at++;
    }
}

/* --- Strings ------------------------------------------------------------------------------- */

/* The digits an escape must have, or 0. */
static uint32_t escape_digits(char letter)
{
    return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

/* Reads `count` hexadecimal digits; false if they are not there or beyond Unicode. */
static bool read_hex(const char *at, const char *end, uint32_t count, uint32_t *out)
{
    uint32_t value = 0;
    if ((size_t)(end - at) < count) return false;
    for (uint32_t index = 0; index < count; index++) {
        int digit = hex_value(at[index]);
        if (digit < 0) return false;
        value = value << 4 | (uint32_t)digit;
    }
    if (value > 0x10ffff) return false;
    *out = value;
    return true;
}

static size_t put_utf8(char *out, uint32_t point)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 63));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 63));
        out[2] = (char)(0x80 | (point & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 63));
    out[2] = (char)(0x80 | (point >> 6 & 63));
    out[3] = (char)(0x80 | (point & 63));
    return 4;
}

/* What \letter means when it is a single byte; 0 if it is something else. */
static char simple_escape(char letter)
{
    switch (letter) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'a':
        return '\a';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'v':
        return '\v';
    case '\\':
    case '\'':
    case '"':
        return letter;
    default:
        return '\0';
    }
}

/* Decodes the escape whose backslash stands before *at, which the scan has found valid; moves *at
 * behind it and returns how many bytes (0 to 4) it is. */
static size_t decode_escape(const char **at, const char *end, char *out)
{
    char letter = *(*at)++;
    out[0] = simple_escape(letter);
    if (out[0] != '\0') return 1;
    uint32_t value = 0;
    uint32_t digits = escape_digits(letter);
    if (digits != 0) {
        (void)read_hex(*at, end, digits, &value); /* The scan has checked it. */
        *at += digits;
        return put_utf8(out, value);
    }
    if (letter >= '0' && letter <= '7') {
        value = (uint32_t)(letter - '0');
        for (int more = 0; more < 2 && *at < end && **at >= '0' && **at <= '7'; more++) {
            value = value << 3 | (uint32_t)(*(*at)++ - '0');
        }
        return put_utf8(out, value);
    }
    if (letter == '\r' && *at < end && **at == '\n') (*at)++;
    if (letter == '\n' || letter == '\r') return 0;
    out[0] = '\\';
    out[1] = letter;
    return 2;
}

/* Decodes the byte or escape at *at; at most 4 bytes, and never more than were read. */
static size_t decode_next(const struct literal_value *string, const char **at, char *out)
{
    const char *end = string->bytes + string->size;
    char byte = *(*at)++;
    if (byte == '\\' && !string->raw) return decode_escape(at, end, out);
    if (byte == '\r') {
        if (*at < end && **at == '\n') (*at)++;
        byte = '\n';
    }
    out[0] = byte;
    return 1;
}

static bool string_equals(const struct literal_value *string, struct text key)
{
    if (LIKELY(string->verbatim)) {
        return string->size == key.size &&
               (key.size == 0 || memcmp(string->bytes, key.bytes, key.size) == 0);
    }
    const char *end = string->bytes + string->size;
    size_t matched = 0;
    for (const char *at = string->bytes; at < end;) {
        char decoded[4];
        size_t size = decode_next(string, &at, decoded);
        if (size > key.size - matched) return false;
        if (memcmp(decoded, key.bytes + matched, size) != 0) return false;
        matched += size;
    }
    return matched == key.size;
}

static bool string_decode(const struct literal_value *string, struct arena *arena, struct text *out)
{
    *out = (struct text){string->bytes, string->size};
    if (string->verbatim) return true;
    char *decoded = arena_alloc(arena, string->size, 1);
    if (decoded == NULL) return false;
    const char *end = string->bytes + string->size;
    size_t size = 0;
    for (const char *at = string->bytes; at < end;) {
        char next[4];
        size_t next_size = decode_next(string, &at, next);
        memcpy(decoded + size, next, next_size);
        size += next_size;
    }
    *out = (struct text){decoded, (uint32_t)size};
    return true;
}

/* The first quote, backslash or control byte, or `end`. */
static const char *find_special(const char *at, const char *end, char quote)
{
#if defined(__SSE2__)
    const __m128i quotes = _mm_set1_epi8(quote);
    const __m128i backslashes = _mm_set1_epi8('\\');
    const __m128i controls = _mm_set1_epi8(0x1f);
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i hits =
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quotes),
                         _mm_or_si128(_mm_cmpeq_epi8(bytes, backslashes),
                                      _mm_cmpeq_epi8(_mm_min_epu8(bytes, controls), bytes)));
        uint32_t mask = (uint32_t)_mm_movemask_epi8(hits);
        if (mask != 0) return at + __builtin_ctz(mask);
    }
#elif defined(__aarch64__)
    const uint8x16_t quotes = vdupq_n_u8((uint8_t)quote);
    const uint8x16_t backslashes = vdupq_n_u8('\\');
    const uint8x16_t controls = vdupq_n_u8(0x20);
    for (; end - at >= 16; at += 16) {
        uint8x16_t bytes = vld1q_u8((const uint8_t *)at);
        uint8x16_t hits = vorrq_u8(vceqq_u8(bytes, quotes), vorrq_u8(vceqq_u8(bytes, backslashes),
                                                                     vcltq_u8(bytes, controls)));
        /* Four bits of the mask for each byte. */
        uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(hits), 4);
        uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(narrow), 0);
        if (mask != 0) return at + __builtin_ctzll(mask) / 4;
    }
#endif
    while (at < end && *at != quote && *at != '\\' && (unsigned char)*at >= 0x20) {
        at++;
    }
    return at;
}

/* Checks what follows a backslash and moves behind the byte that it protects. */
static bool skip_escape(struct literal_parser *parser, struct literal_value *string)
{
    if (parser->at >= parser->end) return false;
    char letter = *parser->at++;
    if (!string->raw || letter == '\r') string->verbatim = false;
    /* \r\n is one newline, and a protected one. */
    if (letter == '\r' && peek(parser) == '\n') parser->at++;
    if (string->raw) return true;
    uint32_t value;
    uint32_t digits = escape_digits(letter);
    if (digits != 0) return read_hex(parser->at, parser->end, digits, &value);
    return letter != 'N';
}

/* From behind the opening quotes to behind the closing ones. */
static bool scan_string(struct literal_parser *parser, char quote, bool triple,
                        struct literal_value *value)
{
    value->bytes = parser->at;
    value->verbatim = true;
    for (;;) {
        parser->at = find_special(parser->at, parser->end, quote);
        if (parser->at == parser->end) return false;
        char byte = *parser->at++;
        if (LIKELY(byte == quote)) {
            if (LIKELY(!triple)) break;
            if (parser->end - parser->at < 2) return false;
            if (parser->at[0] == quote && parser->at[1] == quote) break;
        } else if (byte == '\\') {
            if (!skip_escape(parser, value)) return false;
        } else if (byte == '\n' || byte == '\r') {
            if (!triple) return false;
            if (byte == '\r') value->verbatim = false;
        }
    }
    value->kind = VALUE_STRING;
    value->size = (uint32_t)(parser->at - value->bytes) - 1;
    if (triple) parser->at += 2;
    return true;
}

/* At a quote. */
static bool read_string(struct literal_parser *parser, struct literal_value *value)
{
    char quote = *parser->at++;
    bool triple = false;
    if (peek(parser) == quote) {
        if (parser->end - parser->at < 2 || parser->at[1] != quote) {
            parser->at++;
            *value =
                (struct literal_value){.bytes = parser->at, .kind = VALUE_STRING, .verbatim = true};
            return true;
        }
        triple = true;
        parser->at += 2;
    }
    return scan_string(parser, quote, triple, value);
}

/* --- Numbers and names --------------------------------------------------------------------- */

/* digit (_? digit)*; how many digits there were, 0 if it is nothing of the kind. */
static size_t read_digits(struct literal_parser *parser, int base)
{
    size_t count = 0;
    for (;;) {
        const char *start = parser->at;
        if (count > 0 && peek(parser) == '_') parser->at++;
        int digit = hex_value(peek(parser));
        if (digit < 0 || digit >= base) {
            parser->at = start;
            return count;
        }
        parser->at++;
        count++;
    }
}

static int base_of_prefix(char letter)
{
    switch (letter | 0x20) {
    case 'x':
        return 16;
    case 'o':
        return 8;
    case 'b':
        return 2;
    default:
        return 0;
    }
}

static bool read_exponent(struct literal_parser *parser)
{
    parser->at++;
    if (peek(parser) == '+' || peek(parser) == '-') parser->at++;
    return read_digits(parser, 10) > 0;
}

/* The caller, which expects a comma or bracket, judges what follows the number. */
static bool read_number(struct literal_parser *parser)
{
    if (peek(parser) == '+' || peek(parser) == '-') {
        parser->at++;
        skip_space(parser);
    }
    const char *start = parser->at;
    if (peek(parser) == '0' && parser->end - start > 1) {
        int base = base_of_prefix(start[1]);
        if (base != 0) {
            parser->at += 2;
            if (peek(parser) == '_') parser->at++;
            return read_digits(parser, base) > 0;
        }
    }
    size_t digits = read_digits(parser, 10);
    const char *whole_end = parser->at;
    bool floating = false;
    if (peek(parser) == '.') {
        floating = true;
        parser->at++;
        digits += read_digits(parser, 10);
    }
    if (digits == 0) return false;
    if (peek(parser) == 'e' || peek(parser) == 'E') {
        floating = true;
        if (!read_exponent(parser)) return false;
    }
    if (floating || *start != '0') return true;
    for (const char *at = start; at < whole_end; at++) {
        if (*at != '0' && *at != '_') return false; /* 012 is not a number in Python. */
    }
    return true;
}

static bool read_word(struct literal_parser *parser, struct text word)
{
    if ((size_t)(parser->end - parser->at) < word.size) return false;
    if (memcmp(parser->at, word.bytes, word.size) != 0) return false;
    parser->at += word.size;
    return true;
}

/* A value without brackets. */
static bool read_scalar(struct literal_parser *parser, struct literal_value *value)
{
    switch (peek(parser)) {
    case 'r':
    case 'R':
        value->raw = true;
        parser->at++;
        if (peek(parser) != '\'' && peek(parser) != '"') return false;
        return read_string(parser, value);
    case 'u':
    case 'U':
        parser->at++;
        if (peek(parser) != '\'' && peek(parser) != '"') return false;
        return read_string(parser, value);
    case '\'':
    case '"':
        return read_string(parser, value);
    case 'N':
        return read_word(parser, TEXT_LITERAL("None"));
    case 'T':
        return read_word(parser, TEXT_LITERAL("True"));
    case 'F':
        return read_word(parser, TEXT_LITERAL("False"));
    default:
        return read_number(parser);
    }
}

/* --- Brackets ------------------------------------------------------------------------------ */

static bool frame_open(struct literal_parser *parser, char bracket)
{
    if (parser->depth == PYLITERAL_DEPTH_MAX) return false;
    struct literal_frame *frame = &parser->frames[parser->depth++];
    frame->kind = bracket == '[' ? FRAME_LIST : bracket == '(' ? FRAME_PAREN : FRAME_DICT;
    frame->key_next = bracket == '{';
    frame->wanted = false;
    frame->empty = true;
    frame->comma = false;
    frame->unhashable = false;
    frame->last = (struct literal_value){0};
    parser->at++;
    return true;
}

static bool sink_append(struct literal_parser *parser, const struct literal_value *string)
{
    struct pyliteral_sink *sink = parser->sink;
    struct text decoded;
    struct text *added = NULL;
    if (string_decode(string, sink->arena, &decoded)) added = array_add_in(sink, sink->arena);
    if (added == NULL) {
        parser->out_of_memory = true;
        return false;
    }
    *added = decoded;
    return true;
}

/* Hands a finished value to the bracket around it. */
static bool frame_accept(struct literal_parser *parser, struct literal_frame *frame,
                         const struct literal_value *value)
{
    frame->empty = false;
    switch (frame->kind) {
    case FRAME_LIST:
        return parser->depth > 1 || !value->found || sink_append(parser, value);
    case FRAME_PAREN:
        frame->unhashable |= value->unhashable;
        frame->last = *value;
        return true;
    default:
        if (frame->key_next) {
            frame->wanted = value->kind == VALUE_STRING && string_equals(value, parser->key);
            return !value->unhashable;
        }
        if (frame->wanted) {
            frame->last = *value;
            frame->last.found = value->kind == VALUE_STRING;
        }
        return true;
    }
}

/* The value of a bracket that has just been closed. */
static struct literal_value frame_value(const struct literal_frame *frame)
{
    switch (frame->kind) {
    case FRAME_LIST:
        return (struct literal_value){.unhashable = true};
    case FRAME_PAREN:
        if (frame->comma || frame->empty)
            return (struct literal_value){.unhashable = frame->unhashable};
        return frame->last;
    default: {
        struct literal_value dict = frame->last;
        dict.kind = VALUE_DICT;
        dict.unhashable = true;
        return dict;
    }
    }
}

static bool closes(const struct literal_frame *frame, char bracket)
{
    static const char brackets[] = {[FRAME_LIST] = ']', [FRAME_PAREN] = ')', [FRAME_DICT] = '}'};
    return bracket == brackets[frame->kind];
}

/* Behind a plain string in single quotes, or a plain number; NULL if it is anything else. */
static const char *skip_ordinary_value(const char *at, const char *end)
{
    if (at == end) return NULL;
    if (*at == '\'') {
        const char *close = find_special(at + 1, end, '\'');
        /* Two quotes may be the beginning of three. */
        return close == end || *close != '\'' || close == at + 1 ? NULL : close + 1;
    }
    if (*at == '0') return at + 1;
    const char *start = at;
    while (at < end && is_digit(*at)) {
        at++;
    }
    return at == start ? NULL : at;
}

/* Skips unwanted items as Python itself prints them, `'id': 31, `, which are most of the text;
 * whatever looks different in any way is left to the rules below. Only a speed-up. */
static void skip_ordinary_items(struct literal_parser *parser, struct literal_frame *frame)
{
    const char *at = parser->at;
    const char *end = parser->end;
    while (at < end && *at == '\'') {
        const char *key_end = skip_ordinary_value(at, end);
        if (key_end == NULL || end - key_end < 2 || memcmp(key_end, ": ", 2) != 0) break;
        uint32_t key_size = (uint32_t)(key_end - at) - 2;
        if (key_size == parser->key.size && memcmp(at + 1, parser->key.bytes, key_size) == 0) break;
        const char *value_end = skip_ordinary_value(key_end + 2, end);
        if (value_end == NULL || end - value_end < 2 || memcmp(value_end, ", ", 2) != 0) break;
        at = value_end + 2;
    }
    if (at == parser->at) return;
    parser->at = at;
    frame->empty = false;
    frame->comma = true;
}

enum step { STEP_VALUE, STEP_FINISHED, STEP_MALFORMED };

/* After a value: hands it over, and closes as many brackets as close here. */
static enum step parse_after_value(struct literal_parser *parser, struct literal_value *value)
{
    for (;;) {
        struct literal_frame *frame = &parser->frames[parser->depth - 1];
        if (!frame_accept(parser, frame, value)) return STEP_MALFORMED;
        skip_space(parser);
        char byte = peek(parser);
        if (frame->key_next) {
            if (byte != ':') return STEP_MALFORMED;
            frame->key_next = false;
            parser->at++;
            return STEP_VALUE;
        }
        if (byte == ',') {
            frame->comma = true;
            frame->key_next = frame->kind == FRAME_DICT;
            parser->at++;
            return STEP_VALUE;
        }
        if (!closes(frame, byte)) return STEP_MALFORMED;
        parser->at++;
        *value = frame_value(frame);
        if (--parser->depth == 0) return STEP_FINISHED;
    }
}

/* Where a value may begin: opens a bracket or reads the value. An empty bracket, or one with a
 * final comma, closes here too. */
static enum step parse_value(struct literal_parser *parser)
{
    struct literal_frame *frame = &parser->frames[parser->depth - 1];
    skip_space(parser);
    if (frame->key_next) {
        skip_ordinary_items(parser, frame);
        skip_space(parser);
    }
    struct literal_value value = {0};
    char byte = peek(parser);
    if (byte == '[' || byte == '{' || byte == '(') {
        return frame_open(parser, byte) ? STEP_VALUE : STEP_MALFORMED;
    }
    if (UNLIKELY(closes(frame, byte))) {
        if (!frame->empty && !frame->comma) return STEP_MALFORMED;
        if (frame->kind == FRAME_DICT && !frame->key_next) return STEP_MALFORMED;
        parser->at++;
        value = frame_value(frame);
        if (--parser->depth == 0) return STEP_FINISHED;
        return parse_after_value(parser, &value);
    }
    if (!read_scalar(parser, &value)) return STEP_MALFORMED;
    return parse_after_value(parser, &value);
}

static bool parse_literal(struct literal_parser *parser)
{
    skip_space(parser);
    if (peek(parser) != '[' || !frame_open(parser, '[')) return false;
    enum step step;
    do {
        step = parse_value(parser);
    } while (step == STEP_VALUE);
    if (step == STEP_MALFORMED) return false;
    skip_space(parser);
    return parser->at == parser->end;
}

enum pyliteral_result pyliteral_pluck(struct text literal, struct text key,
                                      struct pyliteral_sink *sink)
{
    if (literal.size == 0) return PYLITERAL_MALFORMED;
    struct literal_parser parser; /* The frames are set as they are opened. */
    parser.at = literal.bytes;
    parser.end = literal.bytes + literal.size;
    parser.key = key;
    parser.sink = sink;
    parser.out_of_memory = false;
    parser.depth = 0;
    uint32_t count = sink->count;
    if (parse_literal(&parser)) return PYLITERAL_OK;
    sink->count = count;
    return parser.out_of_memory ? PYLITERAL_MEMORY : PYLITERAL_MALFORMED;
}
