/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_csv.c - any bytes: every kernel's index, states and record ends are the model's, and narrow
 * records say the same.
 *
 * The first byte says how many columns are expected, where the rest is cut, and what is kept.
 */
#include <stdint.h>
#include <string.h>

#include "unit/engine/data/csv_check.h"
#include "unit/engine/data/csv_narrow_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_states(struct csv_input input, size_t cut, char *scratch)
{
    enum csv_state before = model_state(input.bytes, cut, scratch);
    enum csv_state after = model_state(input.bytes, input.size, scratch);
    size_t first_end = input.size == 0 ? 0 : model_record_end(input.bytes, input.size, 0, scratch);
    size_t kernel_count;
    const struct csv_kernel *const *kernels = csv_kernel_list(&kernel_count);
    for (size_t i = 0; i < kernel_count; i++) {
        csv_kernel_use(kernels[i]);
        ASSERT(csv_advance(CSV_RECORD_START, input.bytes, cut) == before);
        ASSERT(csv_advance(before, input.bytes + cut, input.size - cut) == after);
        enum csv_state state = CSV_RECORD_START;
        ASSERT(csv_record_end(&state, input.bytes, input.size) == first_end);
        ASSERT(first_end < input.size ? state == CSV_RECORD_START : state == after);
    }
    csv_kernel_use(NULL);
}

static void check_header(struct csv_input input)
{
    static struct error err;
    struct arena arena = {0};
    struct text *names = NULL;
    uint32_t count = 0;
    size_t body = 0;
    status result = csv_header_parse(input.bytes, input.size, &arena, &names, &count, &body, &err);
    if (result == STATUS_OK) {
        ASSERT(count > 0);
        ASSERT(body <= input.size);
        size_t names_size = 0;
        for (uint32_t i = 0; i < count; i++) {
            names_size += names[i].size + 1;
        }
        ASSERT(names_size <= input.size + 1);
    }
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    static struct csv_index index; /* Reused, as it is meant to be. */
    static struct csv_index narrow_index;
    struct csv_input input = {
        .bytes = (const char *)data + 1, .size = size - 1, .column_count = data[0] % 5 + 1u};
    char *scratch = memory_alloc(NULL, size);
    if (scratch == NULL) return 0;
    check_all_kernels(&index, input, scratch);
    check_states(input, input.size * data[0] / 256, scratch);
    check_header(input);
    (void)check_narrow(&index, &narrow_index, input, data[0] / 8);
    memory_free(NULL, scratch, size);
    return 0;
}
