/* SPDX-License-Identifier: Apache-2.0 */
/* gen_words.c - how phrases become names, titles and texts. The lists are in gen_lists.c. */
#include "gen/gen_words.h"

#include "engine/base/hash.h"
#include "gen/gen_lists.h"
#include "gen/gen_put.h"
#include "gen/gen_run.h"

uint32_t words_count(words_list list)
{
    return gen_lists[list].count;
}

struct text words_at(words_list list, uint32_t index)
{
    return gen_lists[list].items[index];
}

char *words_put(char *at, struct random *random, words_list list)
{
    const struct gen_list *words = &gen_lists[list];
    return gen_put_text(at, words->items[random_below(random, words->count)]);
}

static const words_list shape_story[] = {WORDS_HERO, WORDS_AIM, WORDS_PLACE, WORDS_LISTS};
static const words_list shape_turn[] = {WORDS_TURN, WORDS_FOE, WORDS_DEED, WORDS_OUTCOME,
                                        WORDS_LISTS};
static const words_list shape_praise[] = {WORDS_PRAISE_START, WORDS_PRAISE, WORDS_PRAISE_END,
                                          WORDS_LISTS};
static const words_list shape_blame[] = {WORDS_BLAME_START, WORDS_BLAME, WORDS_BLAME_END,
                                         WORDS_LISTS};
static const words_list shape_chat[] = {WORDS_CHAT_START, WORDS_CHAT_WHO, WORDS_CHAT_DOES,
                                        WORDS_CHAT_WHAT,  WORDS_CHAT_END, WORDS_LISTS};
static const words_list shape_remark[] = {WORDS_CHAT_WHO, WORDS_CHAT_DOES, WORDS_CHAT_WHAT,
                                          WORDS_CHAT_END, WORDS_LISTS};

static char *put_shape(char *at, struct random *random, const words_list *shape)
{
    for (; *shape != WORDS_LISTS; shape++) {
        at = words_put(at, random, *shape);
    }
    return at;
}

/* Odd names are rare but there: what they hold is what the escapes of a Python list are for. */
static char *put_middle_name(char *at, struct random *random)
{
    switch (random_below(random, 400)) {
    case 0:
        return GEN_PUT(at, " \"Lucky\" ");
    case 1:
        return GEN_PUT(at, "\xc2\xa0");
    case 2:
        return GEN_PUT(at, " \xe2\x80\x8b");
    case 3:
        return GEN_PUT(at, " \"Rock 'n' Roll\" ");
    case 4:
        return GEN_PUT(at, " \\ ");
    default:
        break;
    }
    at = gen_put_char(at, ' ');
    if (!gen_chance(random, 6)) return at;
    at = gen_put_char(at, (char)('A' + random_below(random, 26)));
    return GEN_PUT(at, ". ");
}

char *words_put_person(char *at, uint64_t number, words_region region)
{
    struct random random = {.state = hash_u64(number * 2 + (region == WORDS_ARGENTINA))};
    if (region == WORDS_ARGENTINA) {
        at = words_put(at, &random, WORDS_SPANISH_FIRST_NAME);
        at = gen_put_char(at, ' ');
        return words_put(at, &random, WORDS_SPANISH_LAST_NAME);
    }
    at = words_put(at, &random, WORDS_FIRST_NAME);
    at = put_middle_name(at, &random);
    return words_put(at, &random, WORDS_LAST_NAME);
}

char *words_put_title(char *at, struct random *random, words_region region)
{
    if (region == WORDS_ARGENTINA) return words_put(at, random, WORDS_SPANISH_TITLE);

    uint32_t form = random_below(random, 32);
    if (form < 12) {
        at = GEN_PUT(at, "The ");
        at = words_put(at, random, WORDS_TITLE_ADJECTIVE);
        at = gen_put_char(at, ' ');
        return words_put(at, random, WORDS_TITLE_NOUN);
    }
    if (form < 19) {
        at = words_put(at, random, WORDS_TITLE_NOUN);
        at = GEN_PUT(at, " of ");
        return words_put(at, random, WORDS_TITLE_PLACE);
    }
    if (form < 24) {
        at = words_put(at, random, WORDS_FIRST_NAME);
        at = GEN_PUT(at, "'s ");
        return words_put(at, random, WORDS_TITLE_NOUN);
    }
    if (form < 27) {
        at = words_put(at, random, WORDS_TITLE_NOUN);
        at = GEN_PUT(at, ", ");
        at = words_put(at, random, WORDS_TITLE_NOUN);
        at = GEN_PUT(at, " & ");
        return words_put(at, random, WORDS_TITLE_NOUN);
    }
    if (form < 31) {
        at = words_put(at, random, WORDS_TITLE_ADJECTIVE);
        at = gen_put_char(at, ' ');
        at = words_put(at, random, WORDS_TITLE_NOUN);
        at = GEN_PUT(at, ": ");
        return words_put(at, random, WORDS_TITLE_PLACE);
    }
    at = GEN_PUT(at, "The \"");
    at = words_put(at, random, WORDS_TITLE_ADJECTIVE);
    at = GEN_PUT(at, "\" ");
    return words_put(at, random, WORDS_TITLE_NOUN);
}

static char *put_gap(char *at, struct random *random)
{
    switch (random_below(random, 60)) {
    case 0:
        return GEN_PUT(at, "\n");
    case 1:
        return GEN_PUT(at, "\n\n");
    case 2:
        return GEN_PUT(at, "\xc2\xa0");
    case 3:
        return GEN_PUT(at, "\r\n");
    default:
        return GEN_PUT(at, " ");
    }
}

char *words_put_overview(char *at, struct random *random, words_tone tone)
{
    uint32_t sentence_count = 1 + gen_skewed(random, 6, 1);
    at = put_shape(at, random, shape_story);
    for (uint32_t i = 1; i < sentence_count; i++) {
        at = put_gap(at, random);
        at = put_shape(at, random, i % 2 == 1 ? shape_turn : shape_story);
    }
    if (tone == WORDS_NEUTRAL) return at;
    for (uint32_t i = 0; i < 2; i++) {
        at = put_gap(at, random);
        at = put_shape(at, random, tone == WORDS_POSITIVE ? shape_praise : shape_blame);
    }
    return at;
}

char *words_put_comment(char *at, struct random *random, uint32_t school_odds)
{
    uint32_t sentence_count = gen_skewed(random, 12, 1);
    if (sentence_count == 0) at = words_put(at, random, WORDS_CHAT_SHORT);
    for (uint32_t i = 0; i < sentence_count; i++) {
        if (i > 0) at = gen_chance(random, 12) ? GEN_PUT(at, "\n\n") : GEN_PUT(at, " ");
        at = put_shape(at, random, gen_chance(random, 2) ? shape_chat : shape_remark);
    }
    if (gen_chance(random, 16)) {
        at = gen_put_char(at, ' ');
        at = words_put(at, random, WORDS_CHAT_MARKUP);
    }
    if (gen_chance(random, school_odds)) {
        at = gen_put_char(at, ' ');
        at = words_put(at, random, WORDS_CHAT_SCHOOL);
    }
    return at;
}
