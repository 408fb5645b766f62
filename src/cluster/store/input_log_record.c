/* SPDX-License-Identifier: Apache-2.0 */
/* input_log_record.c - every byte of a record is checked, padding included, so that a payload has
 * exactly one valid encoding.
 */
#include "cluster/store/input_log_record.h"

#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

#define LOG_MARK 0x31474c4du /* "MLG1" */

static uint64_t record_checksum(const void *payload, uint32_t size, uint64_t position)
{
    return hash_combine(hash_combine(hash_bytes(payload, size), size), position);
}

void input_log_header_write(const void *payload, uint32_t size, uint64_t position,
                            unsigned char out[INPUT_LOG_HEADER_SIZE])
{
    ASSERT(size > 0);
    const uint32_t mark = LOG_MARK;
    uint64_t checksum = record_checksum(payload, size, position);
    memcpy(out, &mark, sizeof mark);
    memcpy(out + 4, &size, sizeof size);
    memcpy(out + 8, &checksum, sizeof checksum);
}

bool input_log_header_parse(const unsigned char bytes[INPUT_LOG_HEADER_SIZE],
                            struct input_log_header *out)
{
    uint32_t mark;
    struct input_log_header header;
    memcpy(&mark, bytes, sizeof mark);
    memcpy(&header.size, bytes + 4, sizeof header.size);
    memcpy(&header.checksum, bytes + 8, sizeof header.checksum);
    if (mark != LOG_MARK || header.size == 0) return false;
    *out = header;
    return true;
}

bool log_payload_check(struct input_log_header header, const unsigned char *payload,
                       uint64_t position)
{
    size_t padded = (size_t)(input_log_record_size(header.size) - INPUT_LOG_HEADER_SIZE);
    for (size_t i = header.size; i < padded; i++) {
        if (payload[i] != 0) return false;
    }
    return record_checksum(payload, header.size, position) == header.checksum;
}

bool input_log_record_parse(const unsigned char *bytes, size_t size, uint64_t position,
                            struct input_log_record *out)
{
    struct input_log_header header;
    if (size < INPUT_LOG_HEADER_SIZE || !input_log_header_parse(bytes, &header)) return false;
    uint64_t whole_size = input_log_record_size(header.size);
    if (whole_size > size) return false;
    if (!log_payload_check(header, bytes + INPUT_LOG_HEADER_SIZE, position)) return false;
    *out = (struct input_log_record){
        .payload = bytes + INPUT_LOG_HEADER_SIZE,
        .size = header.size,
        .whole_size = (size_t)whole_size,
    };
    return true;
}
