/* SPDX-License-Identifier: Apache-2.0 */
/* gen_lists.h - the lists of words themselves; see gen_words.h for what is made of them. */
#ifndef GEN_GEN_LISTS_H
#define GEN_GEN_LISTS_H

#include <stdint.h>

#include "engine/base/text.h"
#include "gen/gen_words.h"

struct gen_list {
    const struct text *items;
    uint32_t count;
};

extern const struct gen_list gen_lists[WORDS_LISTS];

#endif
