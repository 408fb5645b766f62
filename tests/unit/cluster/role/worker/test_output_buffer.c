/* SPDX-License-Identifier: Apache-2.0 */
/* test_output_buffer.c - messages come back as they were put, from memory or from a file.
 *
 * Method: a store in memory that can be told to fail; a budget that is short from the start, in the
 * middle, or never.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "cluster/role/worker/output_buffer.h"

enum { FILE_MAX = 1 << 16 };

struct fake_store {
    struct spill_store store;
    unsigned writes;
    unsigned fail_at; /* The n-th write; 0: never. */
    unsigned open_count;
};

struct fake_file {
    struct spill_file file;
    unsigned char bytes[FILE_MAX];
    uint64_t size;
};

static status fake_open(struct spill_store *store, struct spill_file **out_file, struct error *err)
{
    (void)err;
    struct fake_file *file = calloc(1, sizeof *file);
    assert_non_null(file);
    file->file.store = store;
    ((struct fake_store *)store)->open_count++;
    *out_file = &file->file;
    return STATUS_OK;
}

static status fake_write(struct spill_file *file, const void *bytes, size_t size,
                         uint64_t *out_offset, struct error *err)
{
    struct fake_store *store = (struct fake_store *)file->store;
    struct fake_file *fake = (struct fake_file *)file;
    if (++store->writes == store->fail_at) return error_set(err, STATUS_IO, "the disk is full");
    assert_true(fake->size + size <= FILE_MAX);
    memcpy(fake->bytes + fake->size, bytes, size);
    *out_offset = fake->size;
    fake->size += size;
    return STATUS_OK;
}

static status fake_read(const struct spill_file *file, uint64_t offset, void *bytes, size_t size,
                        struct error *err)
{
    (void)err;
    memcpy(bytes, ((const struct fake_file *)file)->bytes + offset, size);
    return STATUS_OK;
}

static void fake_close(struct spill_file *file)
{
    ((struct fake_store *)file->store)->open_count--;
    free(file);
}

static struct fake_store fake_store(void)
{
    return (struct fake_store){.store = {fake_open, fake_write, fake_read, fake_close}};
}

static status put(struct output_buffer *output_buffer, uint32_t number, struct error *err)
{
    struct buf bytes = {.budget = output_buffer->budget};
    for (uint32_t i = 0; i < number % 50; i++) {
        buf_put_u8(&bytes, (uint8_t)(number + i));
    }
    status result =
        bytes.failed ? error_memory(err) : output_buffer_put(output_buffer, &bytes, err);
    buf_done(&bytes);
    return result;
}

static void check(const struct output_buffer *output_buffer, uint32_t number)
{
    struct buf out = {0};
    struct error err;
    buf_put_u8(&out, 7); /* What is there stays. */
    assert_int_equal(output_buffer_get(output_buffer, number, &out, &err), STATUS_OK);
    assert_int_equal(output_buffer_size(output_buffer, number), number % 50);
    assert_int_equal(out.size, 1 + number % 50);
    for (uint32_t i = 0; i < number % 50; i++) {
        assert_int_equal(out.bytes[1 + i], (uint8_t)(number + i));
    }
    buf_done(&out);
}

static void messages_come_back_wherever_they_were_kept(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    size_t limits[] = {0, 1 << 20, 4000, 1000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct budget budget = {.limit_bytes = limits[i]};
        struct fake_store store = fake_store();
        struct output_buffer output_buffer = {.budget = &budget, .store = &store.store};
        struct error err;
        for (uint32_t number = 0; number < COUNT; number++) {
            assert_int_equal(put(&output_buffer, number, &err), STATUS_OK);
        }
        for (uint32_t number = 0; number < COUNT; number++) {
            check(&output_buffer, number);
        }
        assert_int_equal(store.writes > 0, limits[i] != 0 && limits[i] < COUNT * 50 / 2);
        output_buffer_clear(&output_buffer);
        assert_int_equal(budget.used_bytes, 0);
        assert_int_equal(store.open_count, 0);
        assert_int_equal(put(&output_buffer, 3, &err), STATUS_OK);
        output_buffer_clear(&output_buffer);
    }
}

static void without_a_store_memory_is_all_there_is(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    struct output_buffer output_buffer = {.budget = &budget};
    struct error err;
    status result = STATUS_OK;
    for (uint32_t number = 0; number < 200 && result == STATUS_OK; number++) {
        result = put(&output_buffer, number, &err);
    }
    assert_int_equal(result, STATUS_MEMORY);
    output_buffer_clear(&output_buffer);
    assert_int_equal(budget.used_bytes, 0);
}

static void a_full_disk_is_told_and_nothing_is_lost_of_the_rest(void **state)
{
    (void)state;
    struct budget budget = {.limit_bytes = 1000};
    struct fake_store store = fake_store();
    store.fail_at = 20;
    struct output_buffer output_buffer = {.budget = &budget, .store = &store.store};
    struct error err;
    status result = STATUS_OK;
    uint32_t number = 0;
    for (; result == STATUS_OK; number++) {
        result = put(&output_buffer, number, &err);
    }
    assert_int_equal(result, STATUS_IO);
    assert_string_equal(err.text, "the disk is full");
    for (uint32_t i = 0; i + 1 < number; i++) {
        check(&output_buffer, i);
    }
    output_buffer_clear(&output_buffer);
    assert_int_equal(budget.used_bytes, 0);
    assert_int_equal(store.open_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_back_wherever_they_were_kept),
        cmocka_unit_test(without_a_store_memory_is_all_there_is),
        cmocka_unit_test(a_full_disk_is_told_and_nothing_is_lost_of_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
