/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - a borrowed run of bytes: not terminated, not necessarily UTF-8. */
#ifndef ENGINE_BASE_TEXT_H
#define ENGINE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct text {
    const char *bytes;
    uint32_t size;
};

#define TEXT_LITERAL(literal) ((struct text){(literal), sizeof(literal) - 1})
/* The same as a static initialiser, which a compound literal is not. */
#define TEXT_INIT(literal)                                                                         \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
/* For printf's "%.*s". */
#define TEXT_ARGS(text) (int)(text).size, (text).bytes

static inline struct text text_of(const char *string)
{
    return (struct text){string, (uint32_t)strlen(string)};
}

/* Whether `size` bytes are the same. Keys are short: up to 16 bytes are compared as two words that
 * may overlap, without a call. */
static inline bool text_bytes_equal(const char *a, const char *b, uint32_t size)
{
    if (size > 16) return memcmp(a, b, size) == 0;
    if (size >= 8) {
        uint64_t words[4];
        memcpy(&words[0], a, 8);
        memcpy(&words[1], b, 8);
        memcpy(&words[2], a + size - 8, 8);
        memcpy(&words[3], b + size - 8, 8);
        return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
    }
    if (size >= 4) {
        uint32_t words[4];
        memcpy(&words[0], a, 4);
        memcpy(&words[1], b, 4);
        memcpy(&words[2], a + size - 4, 4);
        memcpy(&words[3], b + size - 4, 4);
        return ((words[0] ^ words[1]) | (words[2] ^ words[3])) == 0;
    }
    return size == 0 || (a[0] == b[0] && a[size / 2] == b[size / 2] && a[size - 1] == b[size - 1]);
}

static inline bool text_equal(struct text a, struct text b)
{
    return a.size == b.size && text_bytes_equal(a.bytes, b.bytes, a.size);
}

/* Orders by bytes; a prefix comes first. */
static inline int text_compare(struct text a, struct text b)
{
    uint32_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.bytes, b.bytes, common);
    if (order != 0) return order;
    return (a.size > b.size) - (a.size < b.size);
}

/* Equal but for ASCII letter case. */
/* The first place of `needle` in the text, or NULL; an empty one is at the start. */
const char *text_find(struct text text, struct text needle);

bool text_equal_ignoring_case(struct text a, struct text b);

/* The candidate nearest to `wanted` by edit distance, or NULL when none is near enough to be meant.
 * Candidates are borrowed. */
const struct text *text_nearest(struct text wanted, const struct text *candidates, size_t count);

#endif
