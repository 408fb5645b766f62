/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sql.c - any bytes are a script or an error, and the error is well-formed.
 *
 * Goal: the lexer and the parser read nothing past the text, end, and keep to their bounds.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "engine/sql/parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > SQL_SOURCE_BYTES_MAX + 1) return 0;
    struct sql_source source = {
        .text = {(const char *)data, (uint32_t)size},
        .name = "fuzz.sql",
    };
    struct arena arena;
    struct ast_script *script = NULL;
    struct error err;
    arena_init(&arena, NULL);
    status code = sql_parse(&source, &arena, &script, &err);
    ASSERT(code == STATUS_OK || code == STATUS_SQL);
    ASSERT((code == STATUS_OK) == (script != NULL));
    if (code == STATUS_SQL) {
        size_t length = strnlen(err.text, sizeof err.text);
        ASSERT(length < sizeof err.text);
        ASSERT(err.text[length - 1] == '^');
    }
    arena_done(&arena);
    return 0;
}
