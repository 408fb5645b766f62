/* SPDX-License-Identifier: Apache-2.0 */
/* test_utf8.c - characters are told from other bytes as PCRE2 and Unicode do.
 *
 * Method: every text of up to three bytes, and of four whose last two are ordinary, is compared
 * with one that decodes code points; long texts are put together of pieces whose count is known.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/exec/expr/utf8.h"

/* By code points: what they decode to must need as many bytes, and be allowed. */
static uint32_t naive_step(const unsigned char *b, uint32_t size)
{
    uint32_t length = b[0] < 0x80 ? 1 : b[0] < 0xc0 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    if (length == 0 || b[0] >= 0xf8 || length > size) return 1;
    uint32_t point = length == 1 ? b[0] : b[0] & (0x7fu >> length);
    for (uint32_t i = 1; i < length; i++) {
        if (b[i] >> 6 != 2) return 1;
        point = point << 6 | (b[i] & 0x3f);
    }
    uint32_t needed = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    bool is_surrogate = point >= 0xd800 && point < 0xe000;
    return needed == length && !is_surrogate && point <= 0x10ffff ? length : 1;
}

static void check(const unsigned char *bytes, uint32_t size)
{
    uint32_t count = 0;
    bool is_valid = true;
    for (uint32_t at = 0; at < size; count++) {
        uint32_t step = naive_step(bytes + at, size - at);
        assert_int_equal(utf8_step((const char *)bytes + at, size - at), step);
        is_valid = is_valid && (step > 1 || bytes[at] < 0x80);
        at += step;
    }
    struct text text = {(const char *)bytes, size};
    assert_int_equal(utf8_count(text), count);
    assert_int_equal(utf8_is_valid(text), is_valid);
}

static void short_texts_are_told_apart(void **state)
{
    (void)state;
    static const unsigned char thirds[] = {0x00, 0x41, 0x7f, 0x80, 0x8f,
                                           0x9f, 0xa0, 0xbf, 0xc3, 0xff};
    check((const unsigned char *)"", 0);
    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            for (size_t third = 0; third < sizeof thirds; third++) {
                unsigned char bytes[] = {(unsigned char)first, (unsigned char)second, thirds[third],
                                         0x80};
                for (uint32_t size = 1; size <= sizeof bytes; size++) {
                    check(bytes, size);
                }
            }
        }
    }
}

static void long_texts_are_counted_wherever_their_characters_stand(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a",
                                         "letters and more of them",
                                         "\xc3\xa9",
                                         "\xe2\x80\x94",
                                         "\xf0\x9f\x98\x82",
                                         "\xff",
                                         "\xe2\x80",
                                         " "};
    struct random dice = {3};
    for (int i = 0; i < 20000; i++) {
        char made[400];
        uint32_t size = 0;
        uint32_t kinds = random_below(&dice, 3) == 0 ? 8 : 5;
        for (uint32_t left = random_below(&dice, 20); left > 0; left--) {
            const char *piece =
                pieces[random_below(&dice, 4) == 0 ? random_below(&dice, kinds) : 1];
            uint32_t piece_size = (uint32_t)strlen(piece);
            if (size + piece_size > sizeof made) break;
            memcpy(made + size, piece, piece_size);
            size += piece_size;
        }
        /* Any start, and a read beyond the end is seen. */
        uint32_t start = random_below(&dice, 40) < size ? random_below(&dice, 40) % (size + 1) : 0;
        unsigned char *bytes = malloc(size - start + 1);
        memcpy(bytes, made + start, size - start);
        check(bytes, size - start);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts_are_told_apart),
        cmocka_unit_test(long_texts_are_counted_wherever_their_characters_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
