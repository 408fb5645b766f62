/* SPDX-License-Identifier: Apache-2.0 */
/* regexp.c - PCRE2 behind limits, with a shorter way for plain literals, and asked only where a
 * match is possible.
 *
 * The machine-code matcher is used where the library has one, with a stack of its own. When that
 * stack is too small the interpreter decides, whose memory is limited in the same way on every
 * machine. Values that are not UTF-8 always go to the interpreter, by code of their own: machine
 * code that allows for them reads beyond their end in some versions (10.42: [^k] in any case), and
 * misses characters of several bytes for \W, also in values that are UTF-8.
 *
 * A caseless s or k also matches U+017F or U+212A. A value without a match that contains one of
 * them is asked again of PCRE2; so both ways always agree.
 */
#include "engine/exec/expr/regexp.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "engine/exec/expr/literals.h"
#include "engine/exec/expr/regexp_needs.h"
#include "engine/exec/expr/utf8.h"

enum {
    MATCH_LIMIT = 1000000,
    DEPTH_LIMIT = 1000000,
    HEAP_LIMIT_KIB = 64 * 1024,
    STACK_FIRST_BYTES = 32 * 1024,
    STACK_LIMIT_BYTES = 1024 * 1024,
    PATTERN_BYTES_MAX = 64 * 1024,
    SHOWN_BYTES = 200
};

struct regexp {
    struct text pattern; /* Owned; for messages. */
    pcre2_general_context *memory;
    uint32_t flags;
    pcre2_code *code;    /* For values that are UTF-8. */
    pcre2_code *lenient; /* For others; made when one comes. */
    pcre2_match_context *limits;
    pcre2_match_data *match;
    pcre2_jit_stack *stack;
    uint32_t group_count;
    bool is_literals;
    struct literals literals;
    struct regexp_needs needs; /* Of any other pattern. */
};

/* PCRE2 does not say the size when it frees, so it is kept in front. */
union block_header {
    size_t size_bytes;
    max_align_t align;
};

static void *block_alloc(PCRE2_SIZE size, void *unused)
{
    (void)unused; /* There is no budget: patterns are bounded. */
    size_t total;
    if (__builtin_add_overflow(size, sizeof(union block_header), &total)) return NULL;
    union block_header *block = memory_alloc(NULL, total);
    if (block == NULL) return NULL;
    block->size_bytes = total;
    return block + 1;
}

static void block_free(void *block, void *unused)
{
    (void)unused; /* As above. */
    if (block == NULL) return;
    union block_header *header = (union block_header *)block - 1;
    memory_free(NULL, header, header->size_bytes);
}

static struct text shown(struct text text)
{
    return (struct text){text.bytes, text.size > SHOWN_BYTES ? SHOWN_BYTES : text.size};
}

static status no_memory(struct error *err)
{
    return error_set(err, STATUS_MEMORY, "no memory left for a regular expression");
}

static status read_options(struct text options, uint32_t *out, struct error *err)
{
    uint32_t flags = 0;
    for (uint32_t i = 0; i < options.size; i++) {
        switch (options.bytes[i]) {
        case 'i':
            flags |= PCRE2_CASELESS;
            break;
        case 'c':
            flags &= ~PCRE2_CASELESS;
            break;
        case 's':
            flags |= PCRE2_DOTALL;
            break;
        case 'm':
        case 'n':
        case 'p':
            flags &= ~PCRE2_DOTALL;
            break;
        case 'l':
            flags |= PCRE2_LITERAL;
            break;
        default:
            return error_set(err, STATUS_SQL,
                             "regular expressions have the options i, c, s, m, n, p and l, not "
                             "`%.*s`",
                             TEXT_ARGS(shown(options)));
        }
    }
    *out = flags;
    return STATUS_OK;
}

static status compile(struct regexp *regexp, uint32_t flags, pcre2_code **out, struct error *err)
{
    struct text pattern = regexp->pattern;
    pcre2_compile_context *context = pcre2_compile_context_create(regexp->memory);
    if (context == NULL) return no_memory(err);
    /* As elsewhere in SQL, $ is the very end of the value. */
    uint32_t base = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C;
    if ((flags & PCRE2_LITERAL) != 0) {
        flags &= ~PCRE2_DOTALL;
        base &= ~PCRE2_NEVER_BACKSLASH_C;
    } else {
        base |= PCRE2_DOLLAR_ENDONLY;
    }
    int code = 0;
    PCRE2_SIZE offset = 0;
    *out = pcre2_compile((PCRE2_SPTR)pattern.bytes, pattern.size, base | flags, &code, &offset,
                         context);
    pcre2_compile_context_free(context);
    if (*out != NULL) return STATUS_OK;
    if (code == PCRE2_ERROR_HEAP_FAILED) return no_memory(err);
    PCRE2_UCHAR message[256] = "";
    (void)pcre2_get_error_message(code, message, sizeof message); /* Cut at the limit. */
    return error_set(err, STATUS_SQL, "regular expression `%.*s`: %s at position %zu",
                     TEXT_ARGS(shown(pattern)), (const char *)message, (size_t)offset + 1);
}

static status prepare_match(struct regexp *regexp, struct error *err)
{
    regexp->limits = pcre2_match_context_create(regexp->memory);
    regexp->match = pcre2_match_data_create_from_pattern(regexp->code, regexp->memory);
    if (regexp->limits == NULL || regexp->match == NULL) return no_memory(err);
    (void)pcre2_set_match_limit(regexp->limits, MATCH_LIMIT); /* These three cannot fail. */
    (void)pcre2_set_depth_limit(regexp->limits, DEPTH_LIMIT);
    (void)pcre2_set_heap_limit(regexp->limits, HEAP_LIMIT_KIB);
    (void)pcre2_pattern_info(regexp->code, PCRE2_INFO_CAPTURECOUNT, &regexp->group_count);
    /* Without machine code the interpreter does the work. */
    if (pcre2_jit_compile(regexp->code, PCRE2_JIT_COMPLETE) != 0) return STATUS_OK;
    regexp->stack = pcre2_jit_stack_create(STACK_FIRST_BYTES, STACK_LIMIT_BYTES, regexp->memory);
    if (regexp->stack == NULL) return no_memory(err);
    pcre2_jit_stack_assign(regexp->limits, NULL, regexp->stack);
    return STATUS_OK;
}

static status build(struct regexp *regexp, struct text pattern, struct text options,
                    struct error *err)
{
    uint32_t flags = 0;
    TRY(read_options(options, &flags, err));
    if (pattern.size > PATTERN_BYTES_MAX) {
        return error_set(err, STATUS_SQL, "a regular expression has more than %d bytes",
                         PATTERN_BYTES_MAX);
    }
    char *copy = memory_alloc(NULL, (size_t)pattern.size + 1);
    if (copy == NULL) return no_memory(err);
    if (pattern.size > 0) memcpy(copy, pattern.bytes, pattern.size);
    regexp->pattern = (struct text){copy, pattern.size};
    regexp->memory = pcre2_general_context_create(block_alloc, block_free, NULL);
    if (regexp->memory == NULL) return no_memory(err);
    regexp->flags = flags;
    TRY(compile(regexp, flags, &regexp->code, err));
    TRY(prepare_match(regexp, err));
    if ((flags & PCRE2_LITERAL) != 0) return STATUS_OK;
    bool any_case = (flags & PCRE2_CASELESS) != 0;
    regexp->is_literals = literals_parse(&regexp->literals, regexp->pattern, any_case);
    if (!regexp->is_literals) regexp_needs_find(&regexp->needs, regexp->pattern, any_case);
    return STATUS_OK;
}

status regexp_create(struct text pattern, struct text options, struct regexp **out,
                     struct error *err)
{
    struct regexp *regexp = memory_alloc(NULL, sizeof *regexp);
    if (regexp == NULL) return no_memory(err);
    *regexp = (struct regexp){0};
    status code = build(regexp, pattern, options, err);
    if (code != STATUS_OK) {
        regexp_destroy(regexp);
        return code;
    }
    *out = regexp;
    return STATUS_OK;
}

void regexp_destroy(struct regexp *regexp)
{
    if (regexp == NULL) return;
    pcre2_jit_stack_free(regexp->stack);
    pcre2_match_data_free(regexp->match);
    pcre2_match_context_free(regexp->limits);
    pcre2_code_free(regexp->lenient);
    pcre2_code_free(regexp->code);
    pcre2_general_context_free(regexp->memory);
    if (regexp->pattern.bytes != NULL) {
        memory_free(NULL, (void *)(uintptr_t)regexp->pattern.bytes,
                    (size_t)regexp->pattern.size + 1);
    }
    memory_free(NULL, regexp, sizeof *regexp);
}

uint32_t regexp_group_count(const struct regexp *regexp)
{
    return regexp->group_count;
}

/* What PCRE2 says of a value, looking for a match that begins at `from` or later. */
static status ask(struct regexp *regexp, struct text value, uint32_t from, int *out,
                  struct error *err)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)(value.size == 0 ? "" : value.bytes);
    if (!utf8_is_valid(value)) {
        if (regexp->lenient == NULL) {
            uint32_t flags = regexp->flags | PCRE2_MATCH_INVALID_UTF;
            TRY(compile(regexp, flags, &regexp->lenient, err));
        }
        *out = pcre2_match(regexp->lenient, subject, value.size, from, PCRE2_NO_JIT, regexp->match,
                           regexp->limits);
        return STATUS_OK;
    }
    *out = pcre2_match(regexp->code, subject, value.size, from, PCRE2_NO_UTF_CHECK, regexp->match,
                       regexp->limits);
    if (*out == PCRE2_ERROR_JIT_STACKLIMIT) {
        *out = pcre2_match(regexp->code, subject, value.size, from,
                           PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, regexp->match, regexp->limits);
    }
    return STATUS_OK;
}

static status match(struct regexp *regexp, struct text value, bool *out, struct error *err)
{
    uint32_t from;
    if (!regexp_needs_met(&regexp->needs, value, &from)) {
        *out = false;
        return STATUS_OK;
    }
    int found;
    TRY(ask(regexp, value, from, &found, err));
    switch (found) {
    case PCRE2_ERROR_NOMATCH:
        *out = false;
        return STATUS_OK;
    case PCRE2_ERROR_NOMEMORY:
        return no_memory(err);
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
    case PCRE2_ERROR_JIT_STACKLIMIT:
    case PCRE2_ERROR_RECURSELOOP:
        return error_set(err, STATUS_LIMIT,
                         "regular expression `%.*s` needs too many steps on a value of %u bytes; "
                         "simplify it",
                         TEXT_ARGS(shown(regexp->pattern)), value.size);
    default:
        if (found > 0) {
            *out = true;
            return STATUS_OK;
        }
        return error_set(err, STATUS_INTERNAL, "regular expression `%.*s` fails with code %d",
                         TEXT_ARGS(shown(regexp->pattern)), found);
    }
}

status regexp_matches(struct regexp *regexp, struct text value, bool *out, struct error *err)
{
    if (!regexp->is_literals) return match(regexp, value, out, err);
    enum literals_answer answer = literals_search(&regexp->literals, value);
    if (answer == LITERALS_UNSURE) return match(regexp, value, out, err);
    *out = answer == LITERALS_FOUND;
    return STATUS_OK;
}

status regexp_extract(struct regexp *regexp, struct text value, uint32_t group, struct text *out,
                      struct error *err)
{
    ASSERT(group <= regexp->group_count);
    bool found = false;
    TRY(match(regexp, value, &found, err));
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(regexp->match);
    *out = TEXT_LITERAL("");
    if (!found || offsets[2 * group] == PCRE2_UNSET) return STATUS_OK;
    PCRE2_SIZE start = offsets[2 * group];
    PCRE2_SIZE end = offsets[2 * group + 1];
    /* A \K in a look-ahead can put the start of the whole match after its end. */
    if (start >= end) return STATUS_OK;
    *out = (struct text){value.bytes + start, (uint32_t)(end - start)};
    return STATUS_OK;
}
