/* SPDX-License-Identifier: Apache-2.0 */
/* test_number.c - numbers are read and printed exactly.
 *
 * Method: the readers are compared with the naive rules of number_model.h over every short text of
 * an alphabet of trouble and over long random ones, each in a block of exactly its size. Printed
 * doubles are compared with what Python's repr prints, and over random bit patterns are shown to
 * read back while no shorter text does. Quotients are compared with their definition: nothing is
 * nearer.
 */
#include "unit/test.h"

#include "engine/base/memory.h"
#include "engine/base/number.h"
#include "engine/base/random.h"
#include "unit/engine/base/number_model.h"

/* Bits, and Python's repr of them. The middle part is powers of two whose shortest text is not the
 * nearest one of its length. */
static const struct {
    uint64_t bits;
    const char *text;
} printed[] = {
    {0x4008000000000000u, "3.0"},
    {0x3fb999999999999au, "0.1"},
    {0x3ee4f8b588e368f1u, "1e-05"},
    {0x4341c37937e08000u, "1e+16"},
    {0x42dc12218377de40u, "123456789012345.0"},
    {0x3d30000000000000u, "5.684341886080802e-14"},
    {0x4340000000000000u, "9007199254740992.0"},
    {0x0000000000000001u, "5e-324"},
    {0x0010000000000000u, "2.2250738585072014e-308"},
    {0x7fefffffffffffffu, "1.7976931348623157e+308"},
    {0x3f1a36e2eb1c432du, "0.0001"},
    {0x3f202e4b6ce5dc68u, "0.00012345"},
    {0x4341c37937e07fffu, "9999999999999998.0"},
    {0x430c6bf526340000u, "1000000000000000.0"},
    {0x4480f0cf064dd592u, "1e+22"},
    {0x44b52d02c7e14af6u, "1e+23"},
    {0x3eafe07017c01026u, "9.5e-07"},
    {0x40fe240c9fbe76c9u, "123456.789"},
    {0x3fd5555555555555u, "0.3333333333333333"},
    {0x3fe5555555555555u, "0.6666666666666666"},
    {0x4059000000000000u, "100.0"},
    {0x54b249ad2594c37du, "1e+100"},
    {0x3de49da7e361ce4cu, "1.5e-10"},
    {0x000fffffffffffffu, "2.225073858507201e-308"},
    {0x0000000000000002u, "1e-323"},
    {0x3fd3333333333333u, "0.3"},
    {0x3fd3333333333334u, "0.30000000000000004"},
    {0x4011666666666666u, "4.35"},
    {0x4310000000000001u, "1125899906842624.2"},
    {0x4350000000000000u, "1.8014398509481984e+16"},
    {0x43e0000000000000u, "9.223372036854776e+18"},
    {0x43f0000000000000u, "1.8446744073709552e+19"},
    {0xbff8000000000000u, "-1.5"},
    {0xbe7ad7f29abcaf48u, "-1e-07"},
    {0x4345ee2a2eb5a5c4u, "1.2345678901234568e+16"},
    {0x3f0a36e2eb1c432du, "5e-05"},
    {0x447c7e83209e90b2u, "8.41e+21"},
    {0x3e70000000000000u, "5.960464477539063e-08"},
    {0x0020000000000000u, "4.450147717014403e-308"},
    {0x3e00000000000000u, "4.656612873077393e-10"},
    {0x444b1ae4d6e2ef50u, "1e+21"},
    {0x44dfe185ca57c517u, "6.02214076e+23"},
    {0x3ff0000000000001u, "1.0000000000000002"},
    {0x3fefffffffffffffu, "0.9999999999999999"},
    {0x41b1de784a000000u, "299792458.0"},
    {0x3eb0c6f7a0b5ed8du, "1e-06"},
    {0x3f50624dd2f1a9fcu, "0.001"},
    {0x8000000000000000u, "-0.0"},
    {0x0000000000000000u, "0.0"},
    {0x0060000000000000u, "7.120236347223045e-307"},
    {0x0100000000000000u, "7.291122019556398e-304"},
    {0x0420000000000000u, "8.209073602596753e-289"},
    {0x0660000000000000u, "5.641232424577593e-278"},
    {0x0d70000000000000u, "5.858190679279809e-244"},
    {0x0e80000000000000u, "7.678447687145631e-239"},
    {0x0eb0000000000000u, "6.142758149716505e-238"},
    {0x0f50000000000000u, "6.290184345309701e-235"},
    {0x13e0000000000000u, "5.940911144672375e-213"},
    {0x1480000000000000u, "6.083493012144512e-210"},
    {0x1690000000000000u, "5.225680706521042e-200"},
    {0x1730000000000000u, "5.351097043477547e-197"},
    {0x17a0000000000000u, "6.84940421565126e-195"},
    {0x1c60000000000000u, "5.17526350329881e-172"},
    {0x1da0000000000000u, "5.426657103235053e-166"},
    {0x2020000000000000u, "5.966672584960166e-154"},
    {0x20c0000000000000u, "6.10987272699921e-151"},
    {0x20f0000000000000u, "4.887898181599368e-150"},
    {0x2160000000000000u, "6.256509672447191e-148"},
    {0x2800000000000000u, "5.075883674631299e-116"},
    {0x2910000000000000u, "6.653062250012736e-111"},
    {0x2d70000000000000u, "7.854549544476363e-90"},
    {0x3730000000000000u, "7.174648137343064e-43"},
    {0x39e0000000000000u, "6.310887241768095e-30"},
    {0x3b20000000000000u, "6.617444900424222e-24"},
    {0x4580000000000000u, "6.189700196426902e+26"},
    {0x4790000000000000u, "5.316911983139664e+36"},
    {0x4830000000000000u, "5.444517870735016e+39"},
    {0x4940000000000000u, "7.1362384635298e+44"},
    {0x4ab0000000000000u, "5.986310706507379e+51"},
    {0x4b50000000000000u, "6.129982163463556e+54"},
    {0x5120000000000000u, "6.070840288205404e+82"},
    {0x5300000000000000u, "6.518515124270356e+91"},
    {0x5580000000000000u, "7.167183174968974e+103"},
    {0x5790000000000000u, "6.156563468186638e+113"},
    {0x58d0000000000000u, "6.455624695217272e+119"},
    {0x5940000000000000u, "8.263199609878108e+121"},
    {0x5e00000000000000u, "6.243497100631985e+144"},
    {0x6150000000000000u, "5.623642243178996e+160"},
    {0x61f0000000000000u, "5.758609657015292e+163"},
    {0x6290000000000000u, "5.896816288783659e+166"},
    {0x63d0000000000000u, "6.183260036827614e+172"},
    {0x6510000000000000u, "6.483618076376552e+178"},
    {0x6c50000000000000u, "5.386379163185535e+213"},
    {0x6e30000000000000u, "5.78358058743443e+222"},
    {0x7220000000000000u, "5.334411546303884e+241"},
    {0x75e0000000000000u, "6.150157786156811e+259"},
    {0x7790000000000000u, "8.25460204899477e+267"},
    {0x77f0000000000000u, "5.282945311356653e+269"},
    {0x7bb0000000000000u, "6.090821257125e+287"},
    {0x7c50000000000000u, "6.237000967296e+290"},
    {0x7cf0000000000000u, "6.386688990511104e+293"},
    {0xf2a74de452e6b438u, "-1.989032661366619e+244"},
    {0x6513270e269e0d37u, "7.761117632285041e+178"},
    {0x0c5c7fd0a6a3a450u, "3.980498358697587e-249"},
    {0xd23f0824128b2f33u, "-1.5432835417340557e+88"},
    {0x1818e811892f902bu, "1.3647584518757569e-192"},
    {0x9531985d5d9dc9f8u, "-1.3701135617873088e-206"},
    {0xe8e25d940ed90475u, "-1.7160537630466207e+197"},
    {0x36f675cc81e74ef5u, "6.294675241195386e-44"},
    {0x1600a35a099950d8u, "1.0613447212142254e-202"},
    {0x6b0d549b6f03675au, "4.708325160387546e+207"},
    {0x3d9c172411e20b8fu, "6.387016158513563e-12"},
    {0x8d116ece1738f7d9u, "-9.973130378568733e-246"},
    {0x0f21ddb66cad4a26u, "8.779753225680271e-236"},
    {0x90c192cfd3ac94afu, "-5.795503248498993e-228"},
    {0xf28c105d1fb17c23u, "-5.988180159386011e+243"},
    {0xa170b33839263059u, "-1.306052388527796e-147"},
    {0x953f48f1a09f76b5u, "-2.436117699484841e-206"},
    {0x0fd630f1f29d0da9u, "2.233386999150174e-232"},
    {0x95e60af593bd04cfu, "-3.51527970626667e-203"},
    {0x0cb1e29c658cda14u, "1.5987381841032883e-247"},
    {0x3898d190f9ebdaccu, "4.6678633181812096e-36"},
    {0x8e81973e0becd7b0u, "-8.441872792105456e-239"},
    {0x2217beaddbc496cbu, "1.9015657400796622e-144"},
    {0x6b4cb2424a23d596u, "7.370437700706684e+208"},
    {0x000000000000229au, "4.3764e-320"},
    {0x0000000000000922u, "1.155e-320"},
    {0x00000000008f6d05u, "4.643998e-317"},
    {0x00001a612e44158bu, "1.433022107701e-310"},
    {0x0000028e923a7369u, "1.3889973406e-311"},
    {0x000000000000beaau, "2.41153e-319"},
    {0x0000000000000461u, "5.54e-321"},
    {0x0000000000000120u, "1.423e-321"},
    {0x000000000000009eu, "7.8e-322"},
    {0x000000000001fc54u, "6.42938e-319"},
    {0x00006d76881ed162u, "5.94636943625483e-310"},
    {0x0000000000ee635eu, "7.7187905e-317"},
    {0x7ff0000000000000u, "inf"},
    {0xfff0000000000000u, "-inf"},
    {0x7ff8000000000000u, "nan"},
    {0xfff8000000000000u, "nan"},
};

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_int(struct text text)
{
    int64_t seen = 42, expected = 42;
    bool valid = model_int(text, &expected);
    assert_int_equal(int_parse(text, &seen), valid);
    assert_int_equal(seen, expected);
}

static void check_decimal(struct text text, uint8_t precision, uint8_t scale)
{
    int64_t seen = 42, expected = 42;
    bool valid = model_decimal(text, precision, scale, &expected);
    assert_int_equal(decimal_parse(text, precision, scale, &seen), valid);
    assert_int_equal(seen, expected);
}

static void check_double(struct text text)
{
    double seen = 42, expected = 42;
    bool valid = model_double(text, &expected);
    assert_int_equal(double_parse(text, &seen), valid);
    assert_int_equal(bits_of(seen), bits_of(expected));
}

/* In a block of its own, so that a sanitizer sees a read outside. */
static void check_text(const char *bytes, uint32_t size)
{
    char *block = memory_alloc(NULL, size + 1u);
    assert_non_null(block);
    char *copy = block + 1;
    memcpy(copy, bytes, size);
    struct text text = {copy, size};
    check_int(text);
    check_double(text);
    check_decimal(text, 18, 0);
    check_decimal(text, 18, 18);
    check_decimal(text, 5, 2);
    check_decimal(text, 12, 3);
    check_decimal(text, 1, 1);
    memory_free(NULL, block, size + 1u);
}

static void readers_agree_with_the_rules_on_every_short_text(void **state)
{
    (void)state;
    static const char alphabet[] = "0159+-.e /:\xb0";
    enum { LETTERS = sizeof alphabet - 1, LENGTH = 4 };
    for (uint32_t size = 0; size <= LENGTH; size++) {
        uint32_t texts = 1;
        for (uint32_t i = 0; i < size; i++) {
            texts *= LETTERS;
        }
        for (uint32_t number = 0; number < texts; number++) {
            char text[LENGTH];
            uint32_t rest = number;
            for (uint32_t i = 0; i < size; i++) {
                text[i] = alphabet[rest % LETTERS];
                rest /= LETTERS;
            }
            check_text(text, size);
        }
    }
}

static uint32_t random_digits(struct random *random, char *out, uint32_t limit)
{
    uint32_t count = random_below(random, limit + 1);
    uint32_t kind = random_below(random, 4);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = kind == 0 ? '0' : kind == 1 ? '9' : (char)('0' + random_below(random, 10));
    }
    return count;
}

/* Mostly numbers, sometimes with a byte spoilt. */
static uint32_t random_number(struct random *random, char *out)
{
    static const char trouble[] = "+-.eE0x ";
    uint32_t limit = random_below(random, 30) == 0 ? 400 : random_below(random, 2) == 0 ? 22 : 6;
    uint32_t size = 0;
    if (random_below(random, 3) == 0) out[size++] = random_below(random, 2) == 0 ? '-' : '+';
    size += random_digits(random, out + size, limit);
    if (random_below(random, 2) == 0) {
        out[size++] = '.';
        size += random_digits(random, out + size, limit);
    }
    if (random_below(random, 4) == 0) {
        out[size++] = 'e';
        if (random_below(random, 2) == 0) out[size++] = '-';
        size += random_digits(random, out + size, 4);
    }
    if (size > 0 && random_below(random, 10) == 0) {
        out[random_below(random, size)] = trouble[random_below(random, sizeof trouble - 1)];
    }
    return size;
}

static void readers_agree_with_the_rules_on_random_numbers(void **state)
{
    (void)state;
    struct random random = {.state = 1};
    for (int round = 0; round < 100000; round++) {
        char text[1000];
        check_text(text, random_number(&random, text));
    }
}

static void ints_are_read_up_to_their_limits(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "+9223372036854775807.0",
        "18446744073709551616",
        "00000000000000000000001",
        "17272.0",
        "17272.",
        "1234567890123456",
        "12345678901234567",
        "1234567.0",
        "12345678.0",
        "12345678.00",
        "1.0.0",
        ".0",
        "-.0",
        "99999999999999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_text(texts[i], (uint32_t)strlen(texts[i]));
    }
    int64_t value;
    assert_true(int_parse(TEXT_LITERAL("17272.0"), &value));
    assert_int_equal(value, 17272);
    assert_true(int_parse(TEXT_LITERAL("-9223372036854775808"), &value));
    assert_true(value == INT64_MIN);
    assert_false(int_parse((struct text){NULL, 0}, &value));
}

static void decimals_are_rounded_half_away_from_zero(void **state)
{
    (void)state;
    int64_t value;
    assert_true(decimal_parse(TEXT_LITERAL("2.345"), 5, 2, &value));
    assert_int_equal(value, 235);
    assert_true(decimal_parse(TEXT_LITERAL("-2.345"), 5, 2, &value));
    assert_int_equal(value, -235);
    assert_true(decimal_parse(TEXT_LITERAL("2.34499999999999999999999"), 5, 2, &value));
    assert_int_equal(value, 234);
    assert_true(decimal_parse(TEXT_LITERAL("999.994"), 5, 2, &value));
    assert_int_equal(value, 99999);
    assert_false(decimal_parse(TEXT_LITERAL("999.995"), 5, 2, &value));
}

static void doubles_of_any_length_are_read(void **state)
{
    (void)state;
    /* Just above, at and just below the middle between two doubles, far behind the point. */
    enum { ZEROS = 3000 };
    static const char middle[] = "9007199254740993"; /* 2^53 + 1 */
    char text[sizeof middle + ZEROS + 8];
    size_t size = sizeof middle - 1;
    memcpy(text, middle, size);
    text[size++] = '.';
    memset(text + size, '0', ZEROS);
    size += ZEROS;
    double value;
    assert_true(double_parse((struct text){text, (uint32_t)size}, &value));
    assert_true(value == 9007199254740992.0);
    text[size - 1] = '1';
    assert_true(double_parse((struct text){text, (uint32_t)size}, &value));
    assert_true(value == 9007199254740994.0);
    check_double((struct text){text, (uint32_t)size});

    /* An exponent can make up for any number of zeros. */
    memset(text, '0', ZEROS);
    text[1] = '.';
    (void)snprintf(text + ZEROS, 16, "1e%d", ZEROS - 1);
    assert_true(double_parse(text_of(text), &value));
    assert_true(value == 1.0);
    assert_true(double_parse(TEXT_LITERAL("0e99999999999999999999"), &value));
    assert_int_equal(bits_of(value), 0);
    assert_true(double_parse(TEXT_LITERAL("-1e-99999999999999999999"), &value));
    assert_int_equal(bits_of(value), 0);
    assert_false(double_parse(TEXT_LITERAL("1e99999999999999999999"), &value));
    assert_false(double_parse(TEXT_LITERAL("1.7976931348623159e308"), &value));
}

static void names_and_hexadecimals_are_no_doubles(void **state)
{
    (void)state;
    static const char *const texts[] = {"inf", "-inf",  "nan", "infinity", "0x10", "1e",    "1e+",
                                        "e5",  "1.5f",  "1,5", " 1",       "1 ",   "1_000", "--1",
                                        "+-1", "1e5.0", ".",   "-",        "+",    "-.e1",  ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double value = 42;
        assert_false(double_parse(text_of(texts[i]), &value));
        assert_true(value == 42);
    }
}

static void doubles_print_as_in_python(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        char text[NUMBER_TEXT_SIZE + 1];
        size_t size = double_print(text, double_of(printed[i].bits));
        assert_true(size <= NUMBER_TEXT_SIZE);
        text[size] = '\0';
        assert_string_equal(text, printed[i].text);
    }
}

/* Whether one of the texts of `digits` digits around the value reads back as it. */
static bool some_text_reads_back(double value, int digits)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%.*e", digits - 1, value);
    if (strtod(text, NULL) == value) return true;
    /* The neighbours: one more and one less in the last place, by way of the digits as integer. */
    char digits_only[32];
    size_t count = 0;
    const char *at = text;
    for (; *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9') digits_only[count++] = *at;
    }
    digits_only[count] = '\0';
    long long whole = strtoll(digits_only, NULL, 10);
    long power = strtol(at + 1, NULL, 10) - (long)count + 1;
    for (int step = -1; step <= 1; step += 2) {
        (void)snprintf(text, sizeof text, "%llde%ld", whole + step, power);
        if (strtod(text, NULL) == value) return true;
    }
    return false;
}

static uint64_t random_pattern(struct random *random)
{
    uint64_t bits = random_u64(random) >> 1;
    switch (random_below(random, 4)) {
    case 0:
        bits &= 0x7ff0000000000000u; /* Powers of two. */
        break;
    case 1:
        bits >>= 11 + random_below(random, 52); /* Subnormals. */
        break;
    case 2:
        bits = bits_of((double)(bits >> 30) / 1000.0);
        break;
    default:
        break;
    }
    return bits;
}

static void doubles_print_shortest_and_read_back(void **state)
{
    (void)state;
    struct random random = {.state = 2};
    for (int round = 0; round < 30000; round++) {
        double value = double_of(random_pattern(&random));
        if (value == 0.0 || isinf(value) || isnan(value)) continue;
        char text[NUMBER_TEXT_SIZE];
        size_t size = double_print(text, value);
        double back = 0;
        assert_true(double_parse((struct text){text, (uint32_t)size}, &back));
        assert_int_equal(bits_of(back), bits_of(value));

        struct model_number number;
        assert_true(model_split((struct text){text, (uint32_t)size}, &number));
        char digits[64];
        size_t count = 0;
        for (size_t i = 0; i < number.whole_count; i++) {
            if (count > 0 || number.whole[i] != '0') digits[count++] = number.whole[i];
        }
        for (size_t i = 0; i < number.decimal_count; i++) {
            if (count > 0 || number.decimals[i] != '0') digits[count++] = number.decimals[i];
        }
        while (count > 1 && digits[count - 1] == '0') {
            count--;
        }
        if (count > 1) assert_false(some_text_reads_back(value, (int)count - 1));
    }
}

static void ints_and_decimals_print_and_read_back(void **state)
{
    (void)state;
    struct random random = {.state = 3};
    for (int round = 0; round < 50000; round++) {
        int64_t value = (int64_t)random_u64(&random) >> random_below(&random, 64);
        char text[NUMBER_TEXT_SIZE + 1];
        char expected[NUMBER_TEXT_SIZE + 1];
        size_t size = int_print(text, value);
        text[size] = '\0';
        (void)snprintf(expected, sizeof expected, "%lld", (long long)value);
        assert_string_equal(text, expected);

        int64_t small = value % (int64_t)number_powers[18];
        uint8_t scale = (uint8_t)random_below(&random, 19);
        size = decimal_print(text, small, scale);
        int64_t back = 0;
        assert_true(decimal_parse((struct text){text, (uint32_t)size}, 18, scale, &back));
        assert_int_equal(back, small);
        if (scale > 0) assert_int_equal(text[size - scale - 1], '.');
    }
    char text[NUMBER_TEXT_SIZE];
    assert_memory_equal(text, "-0.500", decimal_print(text, -500, 3));
    assert_memory_equal(text, "12", decimal_print(text, 12, 0));
    assert_memory_equal(text, "-9223372036854775808", int_print(text, INT64_MIN));
    assert_memory_equal(text, "-0.9223372036854775808", decimal_print(text, INT64_MIN, 19));
}

/* a * b in 256 bits, highest word first. */
static void model_multiply(uint128 a, uint128 b, uint64_t out[4])
{
    uint64_t factors[2][2] = {{(uint64_t)a, (uint64_t)(a >> 64)},
                              {(uint64_t)b, (uint64_t)(b >> 64)}};
    memset(out, 0, 4 * sizeof out[0]);
    for (int i = 0; i < 2; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < 2; j++) {
            uint128 sum = (uint128)factors[0][i] * factors[1][j] + out[3 - i - j] + carry;
            out[3 - i - j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
        out[3 - i - 2] += carry;
    }
}

static int model_compare(const uint64_t a[4], const uint64_t b[4])
{
    for (int i = 0; i < 4; i++) {
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* The sign of numerator / denominator - middle * 2^exponent. */
static int compare_quotient(uint128 numerator, uint128 denominator, uint64_t middle, int exponent)
{
    uint64_t left[4], right[4];
    model_multiply(numerator, 1, left);
    model_multiply(middle, denominator, right);
    uint64_t *shifted = exponent > 0 ? right : left;
    for (int i = 0; i < abs(exponent); i++) {
        if (shifted[0] >> 63 != 0) return shifted == left ? 1 : -1; /* Past 256 bits: larger. */
        for (int word = 0; word < 4; word++) {
            shifted[word] = shifted[word] << 1 | (word < 3 ? shifted[word + 1] >> 63 : 0);
        }
    }
    return model_compare(left, right);
}

/* The quotient must lie between the middles to both neighbours, on one only if the double is even.
 */
static void check_quotient(uint128 numerator, uint128 denominator, double quotient)
{
    if (numerator == 0) {
        assert_int_equal(bits_of(quotient), 0);
        return;
    }
    uint64_t bits = bits_of(quotient);
    int exponent = (int)(bits >> 52) - 1075;
    uint64_t mantissa = (bits & 0xfffffffffffffu) | (uint64_t)1 << 52;
    bool even = (mantissa & 1) == 0;
    uint64_t above = mantissa * 4 + 2;
    uint64_t below = mantissa * 4 - (mantissa == (uint64_t)1 << 52 ? 1 : 2);
    int to_above = compare_quotient(numerator, denominator, above, exponent - 2);
    int to_below = compare_quotient(numerator, denominator, below, exponent - 2);
    assert_true(even ? to_above <= 0 : to_above < 0);
    assert_true(even ? to_below >= 0 : to_below > 0);
}

static uint128 random_wide(struct random *random)
{
    uint128 value = (uint128)random_u64(random) << 64 | random_u64(random);
    value >>= random_below(random, 128);
    /* Few bits make exact quotients and ties. */
    if (random_below(random, 3) == 0) value &= ~(uint128)0 << random_below(random, 128);
    return value;
}

static void quotients_are_rounded_once(void **state)
{
    (void)state;
    struct random random = {.state = 4};
    for (int round = 0; round < 100000; round++) {
        uint128 numerator = random_wide(&random) >> 1;
        uint64_t count = (random_u64(&random) >> random_below(&random, 64)) | 1;
        uint8_t scale = (uint8_t)random_below(&random, 20);
        check_quotient(numerator, count, decimal_ratio((int128)numerator, count, 0));
        check_quotient(numerator, (uint128)count * number_powers[scale],
                       decimal_ratio((int128)numerator, count, scale));
        uint64_t value = (uint64_t)numerator >> 1;
        check_quotient(value, number_powers[scale], decimal_to_double((int64_t)value, scale));
        assert_true(decimal_ratio(-(int128)numerator, count, scale) ==
                    -decimal_ratio((int128)numerator, count, scale));
        assert_true(decimal_to_double(-(int64_t)value, scale) ==
                    -decimal_to_double((int64_t)value, scale));
    }
    const int128 lowest = -((int128)1 << 126) * 2;
    assert_true(decimal_ratio(lowest, 1, 0) == -0x1p127);
    assert_true(decimal_ratio(lowest, UINT64_MAX, 0) == -0x1p63);
    assert_true(decimal_ratio(1, UINT64_MAX, 19) == 0x1p-64 / 1e19);
    assert_true(decimal_ratio(10, 4, 1) == 0.25);
    assert_int_equal(bits_of(decimal_ratio(0, 7, 0)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_agree_with_the_rules_on_every_short_text),
        cmocka_unit_test(readers_agree_with_the_rules_on_random_numbers),
        cmocka_unit_test(ints_are_read_up_to_their_limits),
        cmocka_unit_test(decimals_are_rounded_half_away_from_zero),
        cmocka_unit_test(doubles_of_any_length_are_read),
        cmocka_unit_test(names_and_hexadecimals_are_no_doubles),
        cmocka_unit_test(doubles_print_as_in_python),
        cmocka_unit_test(doubles_print_shortest_and_read_back),
        cmocka_unit_test(ints_and_decimals_print_and_read_back),
        cmocka_unit_test(quotients_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
