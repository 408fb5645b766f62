/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - characters of texts that may have bytes that are none.
 *
 * A character is what RFC 3629 allows: no surrogates, no forms longer than needed, nothing beyond
 * U+10FFFF. Any other byte counts as a character of its own.
 */
#ifndef ENGINE_EXEC_EXPR_UTF8_H
#define ENGINE_EXEC_EXPR_UTF8_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"

/* Bytes of the character at the start of 1 or more bytes. */
uint32_t utf8_step(const char *bytes, uint32_t size);
/* How many characters it has. */
uint32_t utf8_count(struct text text);
/* Whether all of it is UTF-8. */
bool utf8_is_valid(struct text text);

#endif
