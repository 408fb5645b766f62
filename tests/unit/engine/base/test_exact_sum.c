/* SPDX-License-Identifier: Apache-2.0 */
/* test_exact_sum.c - sums of doubles are exact, in any order and cut anyhow.
 *
 * Method: the model counts, for each of 2200 binary places, how often it occurs with plus and with
 * minus, carries at the end and rounds by the definition. Values are hostile: subnormals, the
 * largest doubles, cancellation, ties. Each set is added in shuffled orders, in parts that are
 * merged, and through encodings; value and bytes must be the same each time.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/exact_sum.h"
#include "engine/base/memory.h"
#include "engine/base/random.h"

enum { PLACES = 2200, VALUES = 40 };

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct sum_model {
    int64_t places[PLACES]; /* Of 2^-1074 and up. */
};

static void model_add(struct sum_model *model, double value)
{
    uint64_t bits = bits_of(value);
    uint32_t exponent = (uint32_t)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & 0xfffffffffffffu;
    uint32_t place = exponent == 0 ? 0 : exponent - 1;
    if (exponent != 0) mantissa |= (uint64_t)1 << 52;
    for (; mantissa != 0; mantissa >>= 1, place++) {
        if ((mantissa & 1) != 0) model->places[place] += bits >> 63 != 0 ? -1 : 1;
    }
}

/* Carries until every place is 0 or 1 and returns the carry out of the last: -1 if negative. */
static int64_t model_carry(struct sum_model *model)
{
    int64_t carry = 0;
    for (int place = 0; place < PLACES; place++) {
        int64_t count = model->places[place] + carry;
        int64_t bit = count & 1;
        model->places[place] = bit;
        carry = (count - bit) / 2;
    }
    return carry;
}

static double model_round(struct sum_model model)
{
    bool negative = model_carry(&model) < 0;
    if (negative) {
        for (int place = 0; place < PLACES; place++) {
            model.places[place] = -model.places[place];
        }
        (void)model_carry(&model);
    }
    int top = PLACES - 1;
    while (top >= 0 && model.places[top] == 0) {
        top--;
    }
    int lowest = top - 52 > 0 ? top - 52 : 0;
    double value = 0;
    for (int place = top; place >= lowest; place--) {
        value = value * 2 + (double)model.places[place];
    }
    if (lowest > 0 && model.places[lowest - 1] != 0) {
        bool more = model.places[lowest] != 0;
        for (int place = 0; place < lowest - 1; place++) {
            more |= model.places[place] != 0;
        }
        if (more) value += 1;
    }
    value = __builtin_ldexp(value, lowest - 1074);
    return negative ? -value : value;
}

static double random_double(struct random *random)
{
    uint64_t bits = random_u64(random);
    switch (random_below(random, 8)) {
    case 0: /* Subnormal. */
        return double_of(bits & 0x800fffffffffffffu);
    case 1: /* Nearly the largest. */
        return double_of((bits & 0x801fffffffffffffu) | 0x7fc0000000000000u);
    case 2: /* One bit only. */
        return double_of(bits & 0xffe0000000000000u & ~(uint64_t)0x4000000000000000u);
    case 3: /* Any finite one. */
        return double_of(bits & ~((uint64_t)1 << (52 + random_below(random, 11))));
    case 4: /* Around the upper end of the window, with overflows of it. */
        return (double)((int64_t)bits >> random_below(random, 12));
    case 5: /* Around the lower end of the window. */
        return (double)((int64_t)bits >> random_below(random, 60)) * 0x1p-90;
    case 6: /* Money. */
        return (double)((int64_t)bits >> 40) / 100.0;
    default:
        return random_below(random, 2) == 0 ? 0.0 : -0.0;
    }
}

static void fill(struct random *random, double *values, uint32_t count)
{
    uint32_t kind = random_below(random, 3);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = random_double(random);
        /* What cancels leaves the small ones to decide. */
        if (kind == 1 && i > 0 && random_below(random, 2) == 0) values[i] = -values[i - 1];
        if (kind == 2) values[i] = (double)((int64_t)random_u64(random) >> 20) / 1000.0;
    }
}

static void shuffle(struct random *random, double *values, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = random_below(random, i);
        double swapped = values[i - 1];
        values[i - 1] = values[other];
        values[other] = swapped;
    }
}

static struct exact_sum through_encoding(const struct exact_sum *sum, struct arena *arena)
{
    unsigned char bytes[EXACT_SUM_BYTES_MAX];
    size_t size = exact_sum_encode(sum, bytes);
    struct exact_sum decoded;
    assert_true(exact_sum_decode(&decoded, bytes, size, arena));
    return decoded;
}

/* Adds the values in parts of random size, some of which travel, and merges the parts. */
static struct exact_sum sum_in_parts(struct random *random, const double *values, uint32_t count,
                                     struct arena *arena)
{
    struct exact_sum total = {0};
    struct exact_sum part = {0};
    for (uint32_t i = 0; i < count; i++) {
        assert_true(exact_sum_add(&part, values[i], arena));
        uint32_t what = random_below(random, 8);
        if (what == 0) part = through_encoding(&part, arena);
        if (what == 1) {
            assert_true(exact_sum_merge(&total, &part, arena));
            part = (struct exact_sum){0};
        }
        if (what == 2) total = through_encoding(&total, arena);
    }
    assert_true(exact_sum_merge(&total, &part, arena));
    return total;
}

static void sums_are_exact_in_any_order_and_cut_anyhow(void **state)
{
    (void)state;
    struct random random = {.state = 1};
    struct arena arena;
    arena_init(&arena, NULL);
    for (int round = 0; round < 3000; round++) {
        arena_reset(&arena);
        double values[VALUES];
        uint32_t count = random_below(&random, VALUES + 1);
        fill(&random, values, count);
        static struct sum_model model;
        model = (struct sum_model){{0}};
        for (uint32_t i = 0; i < count; i++) {
            model_add(&model, values[i]);
        }
        double expected = model_round(model);
        unsigned char first[EXACT_SUM_BYTES_MAX];
        size_t first_size = 0;
        bool first_fits = false;
        for (int order = 0; order < 4; order++) {
            struct exact_sum sum = sum_in_parts(&random, values, count, &arena);
            assert_true(bits_of(exact_sum_round(&sum)) == bits_of(expected) ||
                        (expected == 0 && bits_of(exact_sum_round(&sum)) == 0));
            unsigned char bytes[EXACT_SUM_BYTES_MAX];
            size_t size = exact_sum_encode(&sum, bytes);
            struct exact_sum window = {0};
            bool fits = exact_sum_fits_window(&sum, &window.window_low, &window.window_high);
            if (fits)
                assert_true(bits_of(exact_sum_round(&window)) == bits_of(exact_sum_round(&sum)));
            if (order == 0) {
                memcpy(first, bytes, size);
                first_size = size;
                first_fits = fits;
            }
            assert_int_equal(fits, first_fits);
            assert_int_equal(size, first_size);
            assert_memory_equal(bytes, first, size);
            shuffle(&random, values, count);
        }
    }
    arena_done(&arena);
}

static void a_double_alone_is_its_own_sum(void **state)
{
    (void)state;
    struct random random = {.state = 2};
    struct arena arena;
    arena_init(&arena, NULL);
    for (int round = 0; round < 20000; round++) {
        arena_reset(&arena);
        double value = random_double(&random);
        struct exact_sum sum = {0};
        assert_true(exact_sum_add(&sum, value, &arena));
        assert_true(bits_of(exact_sum_round(&sum)) == bits_of(value == 0 ? 0.0 : value));
    }
    arena_done(&arena);
}

static void the_empty_sum_is_zero(void **state)
{
    (void)state;
    struct exact_sum sum = {0};
    assert_int_equal(bits_of(exact_sum_round(&sum)), 0);
    unsigned char bytes[EXACT_SUM_BYTES_MAX];
    assert_int_equal(exact_sum_encode(&sum, bytes), 1);
    assert_int_equal(bytes[0], 0);
}

static void everyday_values_need_no_memory(void **state)
{
    (void)state;
    struct exact_sum sum = {0};
    memory_fail_after(0);
    struct arena arena;
    arena_init(&arena, NULL);
    for (int i = 1; i <= 100000; i++) {
        assert_true(exact_sum_add(&sum, 1.0 / i, &arena));
        assert_true(exact_sum_add(&sum, i * 1e4, &arena));
        assert_true(exact_sum_add(&sum, 0x1p-60, &arena));
        assert_true(exact_sum_add(&sum, 0.0, &arena));
    }
    assert_null(sum.wide);
    assert_false(memory_was_refused());
    memory_fail_never();
    arena_done(&arena);
}

static double sum_of(const double *values, size_t count)
{
    struct arena arena;
    arena_init(&arena, NULL);
    struct exact_sum sum = {0};
    for (size_t i = 0; i < count; i++) {
        assert_true(exact_sum_add(&sum, values[i], &arena));
    }
    struct exact_sum again = through_encoding(&sum, &arena);
    double rounded = exact_sum_round(&sum);
    assert_true(bits_of(exact_sum_round(&again)) == bits_of(rounded));
    arena_done(&arena);
    return rounded;
}

#define SUM(...)                                                                                   \
    sum_of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* A sum that was too large for the window for a while is rounded another way. */
static void check_round(uint128 window)
{
    struct arena arena = {0};
    struct exact_sum sum = {0};
    exact_sum_set_window(&sum, (int128)window);
    double value = exact_sum_round(&sum);
    assert_null(sum.wide);
    assert_true(exact_sum_add(&sum, 0x1p900, &arena));
    assert_true(exact_sum_add(&sum, -0x1p900, &arena));
    assert_non_null(sum.wide);
    assert_true(bits_of(value) == bits_of(exact_sum_round(&sum)));
    arena_done(&arena);
}

/* Every width, with what is cut off just below, at and just above one half, and by chance. */
static void both_ways_to_round_agree(void **state)
{
    (void)state;
    struct random random = {17};
    for (uint32_t width = 0; width < 128; width++) {
        uint128 top = (uint128)1 << width;
        for (uint32_t round = 0; round < 64; round++) {
            uint128 chance = (uint128)random_u64(&random) << 64 | random_u64(&random);
            uint128 magnitude = top | (chance & (top - 1));
            if (round % 4 != 0 && width > 53) {
                uint128 unit = (uint128)1 << (width - 52);
                magnitude = (magnitude & ~(unit - 1)) + unit / 2 + round % 4 - 2;
            }
            if (round == 1) magnitude = top;
            if (round == 2) magnitude = top + (top - 1);
            check_round(magnitude);
            check_round(0 - magnitude);
        }
    }
    check_round(0);
}

static void infinities_and_nan_are_remembered(void **state)
{
    (void)state;
    const double inf = __builtin_inf(), nan = __builtin_nan("");
    const double largest = 0x1.fffffffffffffp1023;
    assert_true(SUM(1.0, inf, -1e300) == inf);
    assert_true(SUM(-inf, 5e-324) == -inf);
    assert_true(__builtin_isnan(SUM(inf, -inf)));
    assert_true(__builtin_isnan(SUM(1.0, nan)));
    assert_true(__builtin_isnan(SUM(nan, inf)));
    assert_true(SUM(largest, largest) == inf);
    assert_true(SUM(-largest, -largest) == -inf);
    assert_true(SUM(largest, largest, -largest) == largest);
    /* Half a unit above the largest is the first that is infinite. */
    assert_true(SUM(largest, 0x1p970) == inf);
    assert_true(SUM(largest, 0x1p970, -5e-324) == largest);

    /* Beside an infinity the finite values are no part of the value, hence not of the bytes. */
    struct arena arena;
    arena_init(&arena, NULL);
    struct exact_sum sum = {0};
    unsigned char bytes[EXACT_SUM_BYTES_MAX];
    assert_true(exact_sum_add(&sum, 1.0, &arena));
    assert_true(exact_sum_add(&sum, inf, &arena));
    assert_int_equal(exact_sum_encode(&sum, bytes), 1);

    /* They come with partial sums too. */
    struct exact_sum into = {0}, minus = {0};
    assert_true(exact_sum_add(&into, 2.0, &arena));
    assert_true(exact_sum_merge(&into, &sum, &arena));
    assert_true(exact_sum_round(&into) == inf);
    assert_true(exact_sum_add(&minus, -inf, &arena));
    assert_true(exact_sum_merge(&into, &minus, &arena));
    assert_true(__builtin_isnan(exact_sum_round(&into)));
    arena_done(&arena);
}

static void a_full_arena_leaves_the_sum_as_it_was(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL);
    struct exact_sum large = {0};
    assert_true(exact_sum_add(&large, 1e300, &arena));
    unsigned char bytes[EXACT_SUM_BYTES_MAX];
    size_t size = exact_sum_encode(&large, bytes);
    const unsigned char special[] = {1};

    struct arena full;
    arena_init(&full, NULL);
    struct exact_sum sum = {0};
    assert_true(exact_sum_add(&sum, 0x1p52, &full));
    memory_fail_after(0);
    assert_false(exact_sum_add(&sum, 1e300, &full));
    assert_false(exact_sum_add(&sum, 5e-324, &full));
    assert_false(exact_sum_add(&sum, 0x1p52, &full)); /* The window overflows. */
    assert_false(exact_sum_add(&sum, __builtin_inf(), &full));
    assert_false(exact_sum_merge(&sum, &large, &full));
    assert_false(exact_sum_decode(&sum, bytes, size, &full));
    assert_false(exact_sum_decode(&sum, special, sizeof special, &full));
    memory_fail_never();
    assert_true(exact_sum_round(&sum) == 0x1p52);
    arena_done(&full);
    arena_done(&arena);
}

/* Whatever is accepted must be what the encoder writes for it. */
static void check_hostile(const unsigned char *bytes, size_t size, struct arena *arena)
{
    struct exact_sum sum;
    arena_reset(arena);
    if (!exact_sum_decode(&sum, bytes, size, arena)) return;
    unsigned char again[EXACT_SUM_BYTES_MAX];
    assert_int_equal(exact_sum_encode(&sum, again), size);
    assert_memory_equal(again, bytes, size);
    (void)exact_sum_round(&sum);
}

static void hostile_bytes_are_refused_or_canonical(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL);
    struct random random = {.state = 3};
    unsigned char bytes[EXACT_SUM_BYTES_MAX + 8] = {0};
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second++) {
            for (size_t size = 0; size <= 6; size++) {
                unsigned char small[6] = {0,
                                          (unsigned char)first,
                                          (unsigned char)(second & 1),
                                          (unsigned char)second,
                                          (unsigned char)(second << 4),
                                          (unsigned char)first};
                check_hostile(small, size, &arena);
            }
        }
    }
    for (int round = 0; round < 50000; round++) {
        size_t size = random_below(&random, sizeof bytes + 1);
        uint32_t kind = random_below(&random, 3);
        for (size_t i = 0; i < size; i++) {
            bytes[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (unsigned char)random_u64(&random);
        }
        bytes[0] = 0;
        bytes[1] = (unsigned char)(random_below(&random, 2) * random_u64(&random));
        bytes[2] = (unsigned char)random_below(&random, 2);
        bytes[3] = (unsigned char)random_u64(&random);
        check_hostile(bytes, size, &arena);
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_in_any_order_and_cut_anyhow),
        cmocka_unit_test(a_double_alone_is_its_own_sum),
        cmocka_unit_test(the_empty_sum_is_zero),
        cmocka_unit_test(everyday_values_need_no_memory),
        cmocka_unit_test(both_ways_to_round_agree),
        cmocka_unit_test(infinities_and_nan_are_remembered),
        cmocka_unit_test(a_full_arena_leaves_the_sum_as_it_was),
        cmocka_unit_test(hostile_bytes_are_refused_or_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
