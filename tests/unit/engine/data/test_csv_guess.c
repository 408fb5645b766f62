/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv_guess.c - the first record is found in the midst of a file as people write them.
 *
 * Method: tables with texts of all kinds, quoted where they must be, cut at every byte; the guess
 * is held against where the next record begins. It may be wrong, but in such files seldom is. */
#include "unit/test.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/data/csv_guess.h"

enum { BYTES_MAX = 100000, COLUMNS = 4 };

static char bytes[BYTES_MAX];
static size_t size;
static size_t starts[BYTES_MAX / 8];
static size_t start_count;

static void put(const char *text)
{
    memcpy(bytes + size, text, strlen(text));
    size += strlen(text);
}

/* A text of words and all that separates them; quoted, when it is. */
static void put_text(struct random *random, bool is_quoted)
{
    static const char *const parts[] = {"word",  "a",    " ",  ", ",           ".",     "I'm",
                                        "1,000", "\n\n", "\n", "\"\"said\"\"", "x,\ny,"};
    uint32_t kinds = is_quoted ? sizeof parts / sizeof parts[0] : 3;
    if (is_quoted) put("\"");
    for (uint32_t count = random_below(random, 40); count > 0; count--) {
        put(parts[random_below(random, kinds)]);
    }
    if (is_quoted) put("\"");
}

static void make_table(struct random *random, uint32_t quoted_in_ten)
{
    size = 0;
    start_count = 0;
    while (size < BYTES_MAX - 2000) {
        starts[start_count++] = size;
        put(random_below(random, 2) == 0 ? "12345," : "7,");
        put_text(random, random_below(random, 10) < quoted_in_ten);
        put(",2024-05-06,");
        put(random_below(random, 3) == 0 ? "" : "0.25");
        put("\n");
    }
    starts[start_count++] = size;
}

/* How many of the cuts lead elsewhere than to the next record. */
static uint32_t count_wrong(void)
{
    uint32_t wrong = 0;
    size_t next = 0;
    for (size_t cut = 1; cut + 20000 < size; cut++) {
        while (starts[next] < cut) {
            next++;
        }
        size_t guess = csv_guess_record(bytes + cut - 1, size - (cut - 1), COLUMNS);
        wrong += guess + cut - 1 != starts[next];
    }
    return wrong;
}

static void tables_without_quotes_are_never_misread(void **state)
{
    (void)state;
    struct random random = {1};
    make_table(&random, 0);
    assert_int_equal(count_wrong(), 0);
}

static void tables_of_quoted_texts_are_hardly_ever_misread(void **state)
{
    (void)state;
    for (uint32_t quoted = 1; quoted <= 10; quoted++) {
        struct random random = {quoted};
        make_table(&random, quoted);
        /* Between two quotes that mean one, nothing looks right. */
        uint32_t wrong = count_wrong();
        if (wrong * 25 > size) fail_msg("%u of %zu with %u quoted in ten", wrong, size, quoted);
    }
}

static void where_no_record_begins_the_guess_is_the_end(void **state)
{
    (void)state;
    static const char *const texts[] = {"x", "\"", "some text", "a,b,c", "a,\"b\nc"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t length = strlen(texts[i]);
        size_t guess = csv_guess_record(texts[i], length, 3);
        assert_true(guess >= 1 && guess <= length);
        if (strchr(texts[i], '\n') == NULL) assert_int_equal(guess, length);
    }
    assert_int_equal(csv_guess_record("\na,b,c\n", 7, 3), 1);
    assert_int_equal(csv_guess_record("\n", 1, 3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_without_quotes_are_never_misread),
        cmocka_unit_test(tables_of_quoted_texts_are_hardly_ever_misread),
        cmocka_unit_test(where_no_record_begins_the_guess_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
