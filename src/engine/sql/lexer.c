/* SPDX-License-Identifier: Apache-2.0 */
/* lexer.c - one pass over the bytes, without memory.
 *
 * Bytes from 0x80 up are letters: names may be written in any script, and whether they are valid
 * UTF-8 matters only where they are shown.
 */
#include "engine/sql/lexer.h"

#include <assert.h>

static const char *const keyword_names[] = {"",
#define X(name, use) #name,
                                            KEYWORDS(X)
#undef X
};

static const enum keyword_use keyword_uses[] = {KEYWORD_FREE,
#define X(name, use) KEYWORD_##use,
                                                KEYWORDS(X)
#undef X
};

static_assert(sizeof keyword_names / sizeof keyword_names[0] == KEYWORD_COUNT, "one name each");

const char *keyword_name(enum keyword keyword)
{
    return keyword_names[keyword];
}

enum keyword_use keyword_use(enum keyword keyword)
{
    return keyword_uses[keyword];
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static int compare_with_keyword(struct text text, const char *name)
{
    for (uint32_t i = 0; i < text.size; i++) {
        int order = (unsigned char)upper(text.bytes[i]) - (unsigned char)name[i];
        if (order != 0) return order; /* Also at the end of `name`: no byte of a name is NUL. */
    }
    return name[text.size] == '\0' ? 0 : -1;
}

static enum keyword find_keyword(struct text text)
{
    int low = KEYWORD_NONE + 1;
    int high = KEYWORD_COUNT - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        int order = compare_with_keyword(text, keyword_names[middle]);
        if (order == 0) return (enum keyword)middle;
        if (order < 0) {
            high = middle - 1;
        } else {
            low = middle + 1;
        }
    }
    return KEYWORD_NONE;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (upper(c) >= 'A' && upper(c) <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name_byte(char c)
{
    return is_name_start(c) || is_digit(c);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The byte `ahead` of the position; NUL past the end, which is no part of any token. */
static char byte_at(const struct lexer *lexer, uint32_t ahead)
{
    uint32_t left = lexer->source.size - lexer->position;
    return ahead < left ? lexer->source.bytes[lexer->position + ahead] : '\0';
}

void lexer_init(struct lexer *lexer, struct text source)
{
    *lexer = (struct lexer){.source = source};
    bool has_mark = source.size >= 3 && memcmp(source.bytes, "\xef\xbb\xbf", 3) == 0;
    if (has_mark) lexer->position = lexer->last_end = 3;
}

/* False when a comment is not closed; the position is then at its start. */
static bool skip_blanks(struct lexer *lexer)
{
    const char *bytes = lexer->source.bytes;
    uint32_t size = lexer->source.size;
    for (;;) {
        if (is_space(byte_at(lexer, 0))) {
            lexer->position++;
        } else if (byte_at(lexer, 0) == '-' && byte_at(lexer, 1) == '-') {
            while (lexer->position < size && bytes[lexer->position] != '\n') {
                lexer->position++;
            }
        } else if (byte_at(lexer, 0) == '/' && byte_at(lexer, 1) == '*') {
            uint32_t end = lexer->position + 2;
            while (end + 1 < size && !(bytes[end] == '*' && bytes[end + 1] == '/')) {
                end++;
            }
            if (end + 1 >= size) return false;
            lexer->position = end + 2;
        } else {
            return true;
        }
    }
}

static struct token make_token(struct lexer *lexer, enum token_kind kind, uint32_t size)
{
    struct token token = {.kind = kind, .offset = lexer->position, .size = size};
    if (size > 0) token.value = (struct text){lexer->source.bytes + lexer->position, size};
    lexer->position += size;
    lexer->last_end = lexer->position;
    return token;
}

static struct token make_bad(struct lexer *lexer, uint32_t size, const char *problem)
{
    struct token token = make_token(lexer, TOKEN_BAD, size);
    token.problem = problem;
    return token;
}

static uint32_t name_size(const struct lexer *lexer, uint32_t start)
{
    uint32_t size = start;
    while (is_name_byte(byte_at(lexer, size))) {
        size++;
    }
    return size;
}

static struct token lex_name(struct lexer *lexer)
{
    uint32_t size = name_size(lexer, 0);
    if (size == 1 && byte_at(lexer, 1) == '\'' && strchr("BENRUX", upper(byte_at(lexer, 0)))) {
        return make_bad(lexer, size,
                        "a string has no letter in front; write '…' with '' for a quote in it");
    }
    struct token token = make_token(lexer, TOKEN_NAME, size);
    token.keyword = find_keyword(token.value);
    return token;
}

static struct token lex_quoted(struct lexer *lexer, char quote)
{
    bool is_text = quote == '\'';
    const char *bytes = lexer->source.bytes + lexer->position;
    uint32_t left = lexer->source.size - lexer->position;
    bool doubled = false;
    uint32_t end = 1;
    for (; end < left; end++) {
        if (bytes[end] != quote) continue;
        if (end + 1 == left || bytes[end + 1] != quote) break;
        doubled = true;
        end++;
    }
    if (end >= left) {
        const char *problem =
            is_text ? "this text has no closing '" : "this name has no closing \"";
        return make_bad(lexer, left, problem);
    }
    if (!is_text && end == 1) return make_bad(lexer, 2, "a name cannot be empty");
    struct token token = make_token(lexer, is_text ? TOKEN_TEXT : TOKEN_NAME, end + 1);
    token.value = (struct text){bytes + 1, end - 1};
    token.doubled = doubled;
    token.quoted = !is_text;
    return token;
}

static uint32_t skip_digits(const struct lexer *lexer, uint32_t size)
{
    while (is_digit(byte_at(lexer, size))) {
        size++;
    }
    return size;
}

static struct token lex_number(struct lexer *lexer)
{
    enum token_kind kind = TOKEN_INT;
    uint32_t size = skip_digits(lexer, 0);
    if (byte_at(lexer, size) == '.') {
        kind = TOKEN_NUMBER;
        uint32_t point_end = size + 1;
        size = skip_digits(lexer, point_end);
        if (size == point_end)
            return make_bad(lexer, size, "a digit must follow the decimal point");
    }
    if (upper(byte_at(lexer, size)) == 'E') {
        uint32_t sign = byte_at(lexer, size + 1) == '+' || byte_at(lexer, size + 1) == '-';
        uint32_t exponent = size + 1 + sign;
        uint32_t end = skip_digits(lexer, exponent);
        if (end > exponent) {
            kind = TOKEN_NUMBER;
            size = end;
        }
    }
    if (is_name_byte(byte_at(lexer, size))) {
        bool separated = byte_at(lexer, size) == '_';
        size = name_size(lexer, size);
        return make_bad(lexer, size,
                        separated ? "digits are not separated by `_`; write 1000 for 1_000"
                                  : "a number cannot be followed by letters");
    }
    return make_token(lexer, kind, size);
}

static struct token lex_parameter(struct lexer *lexer)
{
    if (!is_name_start(byte_at(lexer, 1))) {
        return make_bad(lexer, 1, "a parameter has a name: write $name");
    }
    struct token token = make_token(lexer, TOKEN_PARAMETER, name_size(lexer, 1));
    token.value.bytes++;
    token.value.size--;
    return token;
}

static struct token lex_symbol(struct lexer *lexer)
{
    /* Longer ones first. */
    static const struct {
        char bytes[3];
        enum token_kind kind;
    } symbols[] = {
        {"||", TOKEN_CONCAT},       {"//", TOKEN_SLASH_SLASH},
        {"==", TOKEN_EQUAL},        {"<>", TOKEN_NOT_EQUAL},
        {"!=", TOKEN_NOT_EQUAL},    {"<=", TOKEN_LESS_EQUAL},
        {"::", TOKEN_CAST},         {">=", TOKEN_GREATER_EQUAL},
        {"+", TOKEN_PLUS},          {"-", TOKEN_MINUS},
        {"*", TOKEN_STAR},          {"/", TOKEN_SLASH},
        {"%", TOKEN_PERCENT},       {"=", TOKEN_EQUAL},
        {"<", TOKEN_LESS},          {">", TOKEN_GREATER},
        {".", TOKEN_DOT},           {",", TOKEN_COMMA},
        {";", TOKEN_SEMICOLON},     {"(", TOKEN_OPEN},
        {")", TOKEN_CLOSE},         {"[", TOKEN_OPEN_BRACKET},
        {"]", TOKEN_CLOSE_BRACKET},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (byte_at(lexer, 0) != symbols[i].bytes[0]) continue;
        if (symbols[i].bytes[1] == '\0') return make_token(lexer, symbols[i].kind, 1);
        if (byte_at(lexer, 1) == symbols[i].bytes[1]) return make_token(lexer, symbols[i].kind, 2);
    }
    return make_bad(lexer, 1, NULL);
}

struct token lexer_next(struct lexer *lexer)
{
    if (!skip_blanks(lexer)) {
        uint32_t left = lexer->source.size - lexer->position;
        return make_bad(lexer, left, "this comment has no closing */");
    }
    if (lexer->position == lexer->source.size) {
        return (struct token){.kind = TOKEN_END, .offset = lexer->last_end};
    }
    char first = byte_at(lexer, 0);
    if (is_name_start(first)) return lex_name(lexer);
    if (is_digit(first) || (first == '.' && is_digit(byte_at(lexer, 1)))) return lex_number(lexer);
    if (first == '\'' || first == '"') return lex_quoted(lexer, first);
    if (first == '$') return lex_parameter(lexer);
    return lex_symbol(lexer);
}
