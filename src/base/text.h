/* text.h - a borrowed run of bytes: not terminated, not necessarily UTF-8. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

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

static inline bool text_equal(struct text a, struct text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
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
bool text_equal_ignoring_case(struct text a, struct text b);

/* The candidate nearest to `wanted` by edit distance, or NULL when none is near enough to be meant.
 * Candidates are borrowed. */
const struct text *text_nearest(struct text wanted, const struct text *candidates, size_t count);

#endif
