/* SPDX-License-Identifier: Apache-2.0 */
/* test_csv_split.c - states and record ends are right wherever a file is cut.
 *
 * Method: for every short string of the bytes that matter, and for random long ones, the state
 * after every prefix is the model's, whichever split point the two halves are joined at; pieces of
 * every size, cut at record ends, are exactly the model's records; with every kernel.
 */
#include "unit/test.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/data/csv_kernel.h"
#include "engine/data/csv_split.h"
#include "unit/engine/data/csv_model.h"

static const char alphabet[] = {'a', ',', '"', '\n', '\r'};

enum {
    ALPHABET_SIZE = sizeof alphabet,
    EXHAUSTIVE_SIZE = 7,
    RANDOM_SIZE = 300,
};

/* The state after the first `cut` bytes, for every cut. */
static void model_states(const char *bytes, size_t size, enum csv_state *states)
{
    char scratch[RANDOM_SIZE];
    for (size_t cut = 0; cut <= size; cut++) {
        states[cut] = model_state(bytes, cut, scratch);
    }
}

static void check_split_at(const char *bytes, size_t size, size_t cut, const enum csv_state *states)
{
    assert_int_equal(csv_advance(CSV_RECORD_START, bytes, cut), states[cut]);
    assert_int_equal(csv_advance(states[cut], bytes + cut, size - cut), states[size]);
}

/* From any cut, the record in progress ends where the model says. */
static void check_record_end_at(const char *bytes, size_t size, size_t cut,
                                const enum csv_state *states)
{
    size_t expected = cut + 1;
    while (expected < size && states[expected] != CSV_RECORD_START) {
        expected++;
    }
    if (cut == size) expected = size;
    enum csv_state state = states[cut];
    assert_int_equal(cut + csv_record_end(&state, bytes + cut, size - cut), expected);
    assert_int_equal(state, states[expected]);
}

/* Each kernel, also where csv_advance would have taken the way around it. */
static void check_all_cuts(const char *bytes, size_t size)
{
    enum csv_state states[RANDOM_SIZE + 1];
    size_t kernel_count;
    const struct csv_kernel *const *kernels = csv_kernel_list(&kernel_count);
    model_states(bytes, size, states);
    for (size_t i = 0; i < kernel_count; i++) {
        csv_kernel_use(kernels[i]);
        for (size_t cut = 0; cut <= size; cut++) {
            check_split_at(bytes, size, cut, states);
            check_record_end_at(bytes, size, cut, states);
            assert_int_equal(kernels[i]->advance(states[cut], bytes + cut, size - cut),
                             states[size]);
        }
    }
    csv_kernel_use(NULL);
}

static void states_are_the_models_at_every_cut_of_every_short_string(void **state)
{
    (void)state;
    for (size_t size = 0; size <= EXHAUSTIVE_SIZE; size++) {
        size_t count = 1;
        for (size_t i = 0; i < size; i++) {
            count *= ALPHABET_SIZE;
        }
        for (size_t number = 0; number < count; number++) {
            char bytes[EXHAUSTIVE_SIZE + 1];
            size_t rest = number;
            for (size_t i = 0; i < size; i++) {
                bytes[i] = alphabet[rest % ALPHABET_SIZE];
                rest /= ALPHABET_SIZE;
            }
            check_all_cuts(bytes, size);
        }
    }
}

/* Some mixes are full of quotes, others have hardly any. */
static void fill_random(struct random *random, char *bytes, size_t size)
{
    uint32_t plain_percent = random_below(random, 100);
    for (size_t i = 0; i < size; i++) {
        bool plain = random_below(random, 100) < plain_percent;
        bytes[i] = plain ? 'a' : alphabet[random_below(random, ALPHABET_SIZE)];
    }
}

static void states_are_the_models_at_every_cut_of_random_bytes(void **state)
{
    (void)state;
    struct random random = {.state = 3};
    for (int round = 0; round < 400; round++) {
        char bytes[RANDOM_SIZE];
        size_t size = random_below(&random, RANDOM_SIZE + 1);
        fill_random(&random, bytes, size);
        check_all_cuts(bytes, size);
    }
}

/* Cuts as csv_split.h shows, and finds only ends of records; returns how many pieces. */
static size_t check_pieces(const char *bytes, size_t size, size_t wanted)
{
    char scratch[RANDOM_SIZE];
    size_t start = 0;
    size_t record = 0; /* The model's record ends, up to the cut. */
    size_t pieces = 0;
    while (start < size) {
        size_t end = size - start < wanted ? size : start + wanted;
        enum csv_state state = csv_advance(CSV_RECORD_START, bytes + start, end - start);
        if (state != CSV_RECORD_START) end += csv_record_end(&state, bytes + end, size - end);
        while (record < end) {
            record = model_record_end(bytes, size, record, scratch);
        }
        assert_int_equal(record, end);
        start = end;
        pieces++;
    }
    return pieces;
}

static void pieces_of_every_size_are_whole_records(void **state)
{
    (void)state;
    struct random random = {.state = 4};
    size_t pieces = 0;
    for (int round = 0; round < 200; round++) {
        char bytes[RANDOM_SIZE];
        size_t size = random_below(&random, RANDOM_SIZE + 1);
        fill_random(&random, bytes, size);
        for (size_t wanted = 1; wanted <= size; wanted++) {
            pieces += check_pieces(bytes, size, wanted);
        }
    }
    assert_true(pieces > 10000);
}

static void lines_are_counted_at_every_size_and_alignment(void **state)
{
    (void)state;
    static char bytes[20000];
    struct random random = {.state = 5};
    size_t kernel_count;
    const struct csv_kernel *const *kernels = csv_kernel_list(&kernel_count);
    for (size_t i = 0; i < kernel_count; i++) {
        csv_kernel_use(kernels[i]);
        for (int round = 0; round < 300; round++) {
            size_t start = random_below(&random, 64);
            size_t size = random_below(&random, round < 200 ? 300 : sizeof bytes - 64);
            uint32_t rarity = 1 + random_below(&random, 40); /* 1: nothing else. */
            uint64_t expected = 0;
            for (size_t at = 0; at < size; at++) {
                bytes[start + at] = random_below(&random, rarity) == 0 ? '\n' : '"';
                expected += bytes[start + at] == '\n';
            }
            assert_int_equal(csv_count_lines(bytes + start, size), expected);
        }
    }
    csv_kernel_use(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_the_models_at_every_cut_of_every_short_string),
        cmocka_unit_test(states_are_the_models_at_every_cut_of_random_bytes),
        cmocka_unit_test(pieces_of_every_size_are_whole_records),
        cmocka_unit_test(lines_are_counted_at_every_size_and_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
