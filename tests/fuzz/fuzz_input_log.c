/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_input_log.c - any bytes are records that a log wrote, or are refused.
 *
 * Goal: parsing reads nothing past the bytes; what is accepted is exactly what writing the payload
 * at that position gives again, and is refused at any other position.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "cluster/store/input_log_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const unsigned char *bytes, struct input_log_record record,
                         uint64_t position)
{
    unsigned char header[INPUT_LOG_HEADER_SIZE];
    struct input_log_record other;
    ASSERT(record.size > 0);
    ASSERT(record.payload == bytes + INPUT_LOG_HEADER_SIZE);
    ASSERT(record.whole_size == input_log_record_size(record.size));
    input_log_header_write(record.payload, record.size, position, header);
    ASSERT(memcmp(header, bytes, sizeof header) == 0);
    ASSERT(!input_log_record_parse(bytes, record.whole_size, position + LOG_ALIGN, &other));
    ASSERT(!input_log_record_parse(bytes, record.whole_size - 1, position, &other));
}

/* The fuzzer can't guess a checksum, so any bytes are also written as a payload. */
static void check_written(const uint8_t *data, size_t size)
{
    size_t whole_size = (size_t)input_log_record_size((uint32_t)size);
    unsigned char *bytes = memory_alloc(NULL, whole_size);
    struct input_log_record record;
    uint64_t position = (uint64_t)data[0] * LOG_ALIGN;
    ASSERT(bytes != NULL);
    memset(bytes, 0, whole_size);
    memcpy(bytes + INPUT_LOG_HEADER_SIZE, data, size);
    input_log_header_write(data, (uint32_t)size, position, bytes);
    ASSERT(input_log_record_parse(bytes, whole_size, position, &record));
    ASSERT(record.size == size);
    check_record(bytes, record, position);
    memory_free(NULL, bytes, whole_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    unsigned char *bytes = memory_alloc(NULL, size); /* Watched at its end. */
    ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    size_t position = 0;
    struct input_log_record record;
    while (input_log_record_parse(bytes + position, size - position, position, &record)) {
        ASSERT(record.whole_size <= size - position);
        check_record(bytes + position, record, position);
        position += record.whole_size;
    }
    check_written(bytes, size);
    memory_free(NULL, bytes, size);
    return 0;
}
