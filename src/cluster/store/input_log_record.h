/* SPDX-License-Identifier: Apache-2.0 */
/* input_log_record.h - the layout of one record of an input log, and its validation.
 *
 *     u32 mark, u32 size of the payload, u64 checksum, payload, zeros up to a multiple of 8
 *
 * Numbers are little-endian. The checksum covers payload, size and position in the file, so that a
 * record at another position is as invalid as one with a wrong bit. No payload is empty. Records
 * start at multiples of 8, so payloads do too.
 *
 * No I/O here: input_log.c and the fuzzer use the same code.
 */
#ifndef CLUSTER_STORE_INPUT_LOG_RECORD_H
#define CLUSTER_STORE_INPUT_LOG_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INPUT_LOG_HEADER_SIZE = 16, LOG_ALIGN = 8 };

struct input_log_header {
    uint32_t size; /* Of the payload; never 0. */
    uint64_t checksum;
};

/* Whole records take this much of a file: header, payload and padding. */
static inline uint64_t input_log_record_size(uint32_t payload_size)
{
    return INPUT_LOG_HEADER_SIZE +
           (((uint64_t)payload_size + LOG_ALIGN - 1) & ~(uint64_t)(LOG_ALIGN - 1));
}

/* Writes the header of a record at `position`. */
void input_log_header_write(const void *payload, uint32_t size, uint64_t position,
                            unsigned char out[INPUT_LOG_HEADER_SIZE]);
/* False: these bytes are no header. */
bool input_log_header_parse(const unsigned char bytes[INPUT_LOG_HEADER_SIZE],
                            struct input_log_header *out);
/* Whether payload and padding, which follow the header, match its checksum. */
bool log_payload_check(struct input_log_header header, const unsigned char *payload,
                       uint64_t position);

struct input_log_record {
    const unsigned char *payload; /* Borrowed. */
    uint32_t size;
    size_t whole_size;
};

/* The record at the beginning of `bytes`, which stand at `position` of the file. False: there is no
 * undamaged one. */
bool input_log_record_parse(const unsigned char *bytes, size_t size, uint64_t position,
                            struct input_log_record *out);

#endif
