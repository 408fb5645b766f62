/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_regexp.c - any pattern over any value ends, and the shorter ways find what PCRE2 does.
 *
 * Input: one byte of options, the pattern up to a newline, then the value.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/exec/expr/literals.h"
#include "engine/exec/expr/regexp.h"

static void require(bool condition)
{
    if (!condition) abort();
}

static void compare_with_grouped(struct text pattern, struct text options, struct text value,
                                 bool expected)
{
    char grouped[LITERALS_BYTES_MAX + 8];
    int size = snprintf(grouped, sizeof grouped, "(?:%.*s)", TEXT_ARGS(pattern));
    struct regexp *regexp = NULL;
    struct error err;
    bool found = false;
    require(regexp_create((struct text){grouped, (uint32_t)size}, options, &regexp, &err) ==
            STATUS_OK);
    require(regexp_matches(regexp, value, &found, &err) == STATUS_OK);
    require(found == expected);
    regexp_destroy(regexp);
}

/* Behind a comment, nothing is known of a pattern. */
static void compare_with_commented(struct text pattern, struct text options, struct text value,
                                   bool expected)
{
    static const char comment[] = "(?#)";
    char commented[4096 + sizeof comment];
    memcpy(commented, comment, sizeof comment - 1);
    memcpy(commented + sizeof comment - 1, pattern.bytes, pattern.size);
    struct text whole = {commented, pattern.size + (uint32_t)sizeof comment - 1};
    struct regexp *regexp = NULL;
    struct error err;
    bool found = false;
    /* Some things are only allowed at the very start, or mean something else there. */
    bool is_special = pattern.size > 1 && memcmp(pattern.bytes, "(*", 2) == 0;
    if (is_special || regexp_create(whole, options, &regexp, &err) != STATUS_OK) return;
    if (regexp_matches(regexp, value, &found, &err) == STATUS_OK) require(found == expected);
    regexp_destroy(regexp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 4096) return 0;
    const char *bytes = (const char *)data;
    const char *end = memchr(bytes + 1, '\n', size - 1);
    if (end == NULL) return 0;
    bool any_case = (data[0] & 1) != 0;
    struct text options = any_case ? TEXT_LITERAL("i") : TEXT_LITERAL("");
    struct text pattern = {bytes + 1, (uint32_t)(end - bytes - 1)};
    struct text value = {end + 1, (uint32_t)(size - (size_t)(end + 1 - bytes))};
    struct regexp *regexp = NULL;
    struct error err;
    if (regexp_create(pattern, options, &regexp, &err) != STATUS_OK) return 0;
    bool found = false;
    status code = regexp_matches(regexp, value, &found, &err);
    require(code == STATUS_OK || code == STATUS_LIMIT);
    for (uint32_t group = 0; group <= regexp_group_count(regexp); group++) {
        struct text part;
        code = regexp_extract(regexp, value, group, &part, &err);
        require(code == STATUS_OK || code == STATUS_LIMIT);
        if (code != STATUS_OK) break;
        require(part.size == 0 ||
                (part.bytes >= value.bytes && part.bytes + part.size <= value.bytes + value.size));
    }
    if (code == STATUS_OK) compare_with_commented(pattern, options, value, found);
    struct literals literals;
    if (literals_parse(&literals, pattern, any_case)) {
        compare_with_grouped(pattern, options, value, found);
    }
    regexp_destroy(regexp);
    return 0;
}
