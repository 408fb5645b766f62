/* SPDX-License-Identifier: Apache-2.0 */
/* function_like.c - LIKE and ILIKE.
 *
 * Matching backtracks to the last % only: an earlier % never has to take more, so a pattern
 * costs at most its size times the text's, without recursion. Constant patterns without _ and with
 * % at their ends only, which is nearly all of them, become a comparison or a search.
 */
#include <string.h>

#include "engine/base/assert.h"
#include "engine/exec/expr/kernels.h"

enum like_shape {
    SHAPE_ANY,    /* Needs matching. */
    SHAPE_EQUAL,  /* abc */
    SHAPE_PREFIX, /* abc% */
    SHAPE_SUFFIX, /* %abc */
    SHAPE_PART    /* %abc% */
};

struct like {
    enum like_shape like_shape;
    struct text literal;
};

static inline unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return (unsigned char)((unsigned char)(u - 'A') < 26 ? u | 0x20 : u);
}

static inline bool same(char a, char b, bool any_case)
{
    return a == b || (any_case && lower(a) == lower(b));
}

static bool like_match(struct text text, struct text pattern, bool any_case)
{
    uint32_t at = 0;
    uint32_t in_pattern = 0;
    uint32_t resume_pattern = UINT32_MAX; /* Just after the last %. */
    uint32_t resume_text = 0;
    while (at < text.size) {
        bool more = in_pattern < pattern.size;
        char wanted = more ? pattern.bytes[in_pattern] : '\0';
        if (more && wanted == '%') {
            resume_pattern = ++in_pattern;
            resume_text = at;
        } else if (more && wanted == '_') {
            at += utf8_step(text.bytes + at, text.size - at);
            in_pattern++;
        } else if (more && same(text.bytes[at], wanted, any_case)) {
            at++;
            in_pattern++;
        } else if (resume_pattern != UINT32_MAX) {
            resume_text += utf8_step(text.bytes + resume_text, text.size - resume_text);
            at = resume_text;
            in_pattern = resume_pattern;
        } else {
            return false;
        }
    }
    while (in_pattern < pattern.size && pattern.bytes[in_pattern] == '%') {
        in_pattern++;
    }
    return in_pattern == pattern.size;
}

static struct like shape_of(struct text pattern)
{
    struct like like = {.like_shape = SHAPE_ANY};
    if (pattern.size == 0) return (struct like){SHAPE_EQUAL, pattern};
    bool open_start = pattern.bytes[0] == '%';
    bool open_end = pattern.size > 1 && pattern.bytes[pattern.size - 1] == '%';
    struct text literal = {pattern.bytes + open_start,
                           pattern.size - (uint32_t)open_start - (uint32_t)open_end};
    if (literal.size > 0 && (memchr(literal.bytes, '%', literal.size) != NULL ||
                             memchr(literal.bytes, '_', literal.size) != NULL)) {
        return like;
    }
    like.literal = literal;
    like.like_shape = open_start ? (open_end ? SHAPE_PART : SHAPE_SUFFIX)
                                 : (open_end ? SHAPE_PREFIX : SHAPE_EQUAL);
    /* "%" alone. */
    if (literal.size == 0) like.like_shape = SHAPE_PART;
    return like;
}

/* A character of the text that only begins like the literal must not match its bytes. */
static bool is_whole_characters(struct text literal)
{
    for (uint32_t at = 0; at < literal.size;) {
        uint32_t step = utf8_step(literal.bytes + at, literal.size - at);
        if (step == 1 && (unsigned char)literal.bytes[at] >= 0x80) return false;
        at += step;
    }
    return true;
}

status like_prepare(struct eval *eval, struct arena *stage_arena, struct error *err)
{
    const struct eval *pattern = eval->args[1];
    if (eval->expr->function == FUNCTION_ILIKE) return STATUS_OK;
    if (!pattern->is_constant || pattern->constant.is_null) return STATUS_OK;
    struct like *like = arena_new(stage_arena, struct like);
    if (like == NULL) return kernel_no_memory(err);
    *like = shape_of(pattern->constant.text);
    if (!is_whole_characters(like->literal)) like->like_shape = SHAPE_ANY;
    eval->state = like;
    return STATUS_OK;
}

static inline bool has_shape(struct text text, const struct like *like)
{
    struct text literal = like->literal;
    if (literal.size > text.size) return false;
    if (literal.size == 0) return like->like_shape != SHAPE_EQUAL || text.size == 0;
    switch (like->like_shape) {
    case SHAPE_EQUAL:
        return text_equal(text, literal);
    case SHAPE_PREFIX:
        return memcmp(text.bytes, literal.bytes, literal.size) == 0;
    case SHAPE_SUFFIX:
        return memcmp(text.bytes + (text.size - literal.size), literal.bytes, literal.size) == 0;
    case SHAPE_PART:
        return text_find(text, literal) != NULL;
    case SHAPE_ANY:
        break;
    }
    ASSERT(false);
    return false;
}

status like_run(struct eval *eval, const struct frame *frame, struct column *out, struct error *err)
{
    struct operand operands[OPERANDS_MAX];
    bool finished;
    TRY(kernel_start(eval, frame, operands, out, &finished, err));
    if (finished) return STATUS_OK;
    const struct like *like = eval->state;
    const struct text *texts = operands[0].column.texts;
    const struct text *patterns = operands[1].column.texts;
    bool any_case = eval->expr->function == FUNCTION_ILIKE;
    if (like != NULL && like->like_shape != SHAPE_ANY) {
        EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
                 out->bools[row] = has_shape(texts[row & operands[0].mask], like););
    } else {
        EACH_ROW(frame->selection, row, if (is_null_at(out->nulls, row)) continue;
                 out->bools[row] = like_match(texts[row & operands[0].mask],
                                              patterns[row & operands[1].mask], any_case););
    }
    return STATUS_OK;
}
