/* SPDX-License-Identifier: Apache-2.0 */
/* gen_words.h - names, titles and sentences, put together from short lists of our own.
 *
 * Sentences are chains of phrases, one from each list of a shape, so a few hundred phrases give
 * millions of different texts at the price of a copy per phrase. All text is raw UTF-8 here; the
 * appenders of gen_put.h escape it for CSV and for Python lists.
 */
#ifndef GEN_GEN_WORDS_H
#define GEN_GEN_WORDS_H

#include <stdint.h>

#include "engine/base/random.h"
#include "engine/base/text.h"

typedef enum {
    WORDS_FIRST_NAME,
    WORDS_LAST_NAME,
    WORDS_SPANISH_FIRST_NAME,
    WORDS_SPANISH_LAST_NAME,
    WORDS_TITLE_ADJECTIVE,
    WORDS_TITLE_NOUN,
    WORDS_TITLE_PLACE,
    WORDS_SPANISH_TITLE,
    WORDS_TAGLINE,
    WORDS_CHARACTER,
    WORDS_COMPANY,
    WORDS_HERO,
    WORDS_AIM,
    WORDS_PLACE,
    WORDS_TURN,
    WORDS_FOE,
    WORDS_DEED,
    WORDS_OUTCOME,
    WORDS_PRAISE_START,
    WORDS_PRAISE,
    WORDS_PRAISE_END,
    WORDS_BLAME_START,
    WORDS_BLAME,
    WORDS_BLAME_END,
    WORDS_CHAT_START,
    WORDS_CHAT_WHO,
    WORDS_CHAT_DOES,
    WORDS_CHAT_WHAT,
    WORDS_CHAT_END,
    WORDS_CHAT_SCHOOL,
    WORDS_CHAT_MARKUP,
    WORDS_CHAT_SHORT,
    WORDS_POST_TITLE,
    WORDS_LISTS
} words_list;

typedef enum { WORDS_NEUTRAL, WORDS_POSITIVE, WORDS_NEGATIVE } words_tone;
typedef enum { WORDS_ANYWHERE, WORDS_ARGENTINA } words_region;

uint32_t words_count(words_list list);
struct text words_at(words_list list, uint32_t index);

/* A phrase of the list at random. */
char *words_put(char *at, struct random *random, words_list list);

/* The name of a person: always the same for a number and region. */
char *words_put_person(char *at, uint64_t number, words_region region);

/* A film's title. */
char *words_put_title(char *at, struct random *random, words_region region);

/* What a film is about: some sentences; the tone shows in their words. */
char *words_put_overview(char *at, struct random *random, words_tone tone);

/* A comment under a post; one in `school_odds` speaks of schools. */
char *words_put_comment(char *at, struct random *random, uint32_t school_odds);

#endif
