/* test_sentiment.c - polarity and labels, against the list of words itself.
 *
 * Method: the list that the table was made from is read and every word asked for; texts made of its
 * words are compared with a model that works on whole, separate tokens.
 */
#include "unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "exec/sentiment.h"

enum { WORDS_MAX = 2000, WORD_SIZE = 40 };

struct word {
    char text[WORD_SIZE];
    int weight;
};

static struct word words[WORDS_MAX];
static uint32_t word_count;

static int read_words(void **state)
{
    (void)state;
    FILE *file = fopen(MILLRACE_SOURCE_DIR "/src/exec/sentiment_words.txt", "r");
    if (file == NULL) return -1;
    char line[200];
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#' || line[0] == '\n') continue;
        char *tab = strchr(line, '\t');
        if (tab == NULL || tab - line >= WORD_SIZE || word_count == WORDS_MAX) return -1;
        memcpy(words[word_count].text, line, (size_t)(tab - line));
        words[word_count++].weight = (int)strtol(tab + 1, NULL, 10);
    }
    (void)fclose(file); /* It was only read. */
    return word_count > 0 ? 0 : -1;
}

static double polarity(const char *text)
{
    return sentiment_polarity(text_of(text));
}

static void every_word_of_the_list_has_its_sign(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < word_count; i++) {
        assert_in_range(words[i].weight + 5, 0, 10);
        assert_int_not_equal(words[i].weight, 0);
        assert_true(polarity(words[i].text) == (words[i].weight > 0 ? 1.0 : -1.0));
    }
}

/* Against a word of known weight, the quotient tells the other's. */
static void every_word_of_the_list_has_its_weight(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < word_count; i++) {
        char text[2 * WORD_SIZE];
        (void)snprintf(text, sizeof text, "%.39s|%.39s", words[i].text, words[0].text);
        int total = words[i].weight + words[0].weight;
        int magnitude = abs(words[i].weight) + abs(words[0].weight);
        assert_true(polarity(text) == (double)total / (double)magnitude);
    }
}

static void words_are_found_whatever_stands_around_them(void **state)
{
    (void)state;
    assert_true(polarity("") == 0.0);
    assert_true(sentiment_polarity((struct text){0}) == 0.0);
    assert_true(polarity("the of and") == 0.0);
    assert_true(polarity("GOOD") == 1.0);
    assert_true(polarity("'good'") == 1.0);
    assert_true(polarity("''gOOd'''") == 1.0);
    assert_true(polarity("3good4") == 1.0);
    assert_true(polarity("\xc3\xa9good\xff") == 1.0);
    assert_true(polarity("goodish") == 0.0);
    assert_true(polarity("go'od") == 0.0);
    assert_true(polarity("good bad") == 0.0);
    assert_true(polarity("'''") == 0.0);
    /* Bit 0x20 is all that sets these apart from letters and the apostrophe. */
    assert_true(polarity("@good[good`good{") == 1.0);
    assert_true(polarity("go\x0f"
                         "d") == 0.0);
}

static void negation_turns_the_next_word_only(void **state)
{
    (void)state;
    assert_true(polarity("not good") == -1.0);
    assert_true(polarity("No good") == -1.0);
    assert_true(polarity("NEVER bad") == 1.0);
    assert_true(polarity("isn't bad") == 1.0);
    assert_true(polarity("n't bad") == 1.0);
    assert_true(polarity("not very good") == 1.0);
    assert_true(polarity("not. good") == -1.0);
    assert_true(polarity("nothing good") == 1.0);
    assert_true(polarity("knot good") == 1.0);
    assert_true(polarity("not '' good") == 1.0);
    assert_true(polarity("not good good") == 0.0);
    assert_true(polarity("'not' good") == -1.0);
}

static void labels_have_a_band_around_zero(void **state)
{
    (void)state;
    static const struct {
        double polarity;
        double band;
        const char *label;
    } cases[] = {{0.0, -1.0, "positive"}, {1.0, -1.0, "positive"},  {-0.1, -1.0, "negative"},
                 {0.0, 0.0, "neutral"},   {0.25, 0.25, "neutral"},  {-0.25, 0.25, "neutral"},
                 {0.3, 0.25, "positive"}, {-0.3, 0.25, "negative"}, {-1.0, 1.0, "neutral"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(
            text_equal(sentiment_label(cases[i].polarity, cases[i].band), text_of(cases[i].label)));
    }
}

static void random_texts_agree_with_the_model(void **state)
{
    (void)state;
    static const char *const others[] = {"not", "no",  "never", "isn't",
                                         "the", "zyx", "''",    "CAN'T"};
    static const char *const gaps[] = {" ", ", ", "\n", "--", "1"};
    struct random dice = {11};
    for (int round = 0; round < 2000; round++) {
        char text[2000] = "";
        size_t used = 0;
        int total = 0;
        int magnitude = 0;
        bool negated = false;
        for (uint32_t left = random_below(&dice, 20); left > 0; left--) {
            const char *piece;
            int weight = 0;
            bool negates = false;
            if (random_below(&dice, 2) == 0) {
                const struct word *word = &words[random_below(&dice, word_count)];
                piece = word->text;
                weight = word->weight;
            } else {
                uint32_t other = random_below(&dice, 8);
                piece = others[other];
                negates = other < 4 || other == 7;
            }
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", piece,
                                     gaps[random_below(&dice, 5)]);
            total += negated ? -weight : weight;
            magnitude += abs(weight);
            negated = negates;
        }
        double expected = magnitude == 0 ? 0.0 : (double)total / (double)magnitude;
        assert_true(polarity(text) == expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_of_the_list_has_its_sign),
        cmocka_unit_test(every_word_of_the_list_has_its_weight),
        cmocka_unit_test(words_are_found_whatever_stands_around_them),
        cmocka_unit_test(negation_turns_the_next_word_only),
        cmocka_unit_test(labels_have_a_band_around_zero),
        cmocka_unit_test(random_texts_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, read_words, NULL);
}
