/* SPDX-License-Identifier: Apache-2.0 */
/* gen_put.c - the appenders that are too long to inline.
 *
 * Text is composed raw and escaped once, as a whole, on its way into the record. Escaping copies
 * runs between special characters, so its cost is that of memchr and memcpy.
 */
#include "gen/gen_put.h"

#include <stdbool.h>

const char gen_put_decimal_pairs[200] = "00010203040506070809"
                                        "10111213141516171819"
                                        "20212223242526272829"
                                        "30313233343536373839"
                                        "40414243444546474849"
                                        "50515253545556575859"
                                        "60616263646566676869"
                                        "70717273747576777879"
                                        "80818283848586878889"
                                        "90919293949596979899";

const char gen_put_hex_pairs[512] = "000102030405060708090a0b0c0d0e0f"
                                    "101112131415161718191a1b1c1d1e1f"
                                    "202122232425262728292a2b2c2d2e2f"
                                    "303132333435363738393a3b3c3d3e3f"
                                    "404142434445464748494a4b4c4d4e4f"
                                    "505152535455565758595a5b5c5d5e5f"
                                    "606162636465666768696a6b6c6d6e6f"
                                    "707172737475767778797a7b7c7d7e7f"
                                    "808182838485868788898a8b8c8d8e8f"
                                    "909192939495969798999a9b9c9d9e9f"
                                    "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
                                    "b0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
                                    "c0c1c2c3c4c5c6c7c8c9cacbcccdcecf"
                                    "d0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
                                    "e0e1e2e3e4e5e6e7e8e9eaebecedeeef"
                                    "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

char *gen_put_uuid(char *at, uint64_t high, uint64_t low)
{
    at = gen_put_hex(at, high >> 32, 4);
    at = gen_put_char(at, '-');
    at = gen_put_hex(at, high >> 16, 2);
    at = gen_put_char(at, '-');
    at = gen_put_hex(at, (high & 0x0fff) | 0x4000, 2);
    at = gen_put_char(at, '-');
    at = gen_put_hex(at, ((low >> 48) & 0x3fff) | 0x8000, 2);
    at = gen_put_char(at, '-');
    return gen_put_hex(at, low, 6);
}

char *gen_put_csv(char *at, const char *bytes, size_t size)
{
    const char *end = bytes + size;
    const char *quote = memchr(bytes, '"', size);
    bool plain = quote == NULL && memchr(bytes, ',', size) == NULL &&
                 memchr(bytes, '\n', size) == NULL && memchr(bytes, '\r', size) == NULL;
    if (plain) return gen_put_bytes(at, bytes, size);

    at = gen_put_char(at, '"');
    while (quote != NULL) {
        at = gen_put_bytes(at, bytes, (size_t)(quote + 1 - bytes));
        at = gen_put_char(at, '"');
        bytes = quote + 1;
        quote = memchr(bytes, '"', (size_t)(end - bytes));
    }
    at = gen_put_bytes(at, bytes, (size_t)(end - bytes));
    return gen_put_char(at, '"');
}

char *gen_put_python(char *at, const char *bytes, size_t size)
{
    bool apostrophe = memchr(bytes, '\'', size) != NULL;
    bool quote = memchr(bytes, '"', size) != NULL;
    char delimiter = apostrophe && !quote ? '"' : '\'';

    at = gen_put_char(at, delimiter);
    for (size_t i = 0; i < size; i++) {
        char character = bytes[i];
        size_t left = size - i;
        if (character == '\\' || character == delimiter) {
            at = gen_put_char(at, '\\');
            at = gen_put_char(at, character);
        } else if (character == '\n') {
            at = GEN_PUT(at, "\\n");
        } else if (character == '\t') {
            at = GEN_PUT(at, "\\t");
        } else if (left >= 2 && memcmp(bytes + i, "\xc2\xa0", 2) == 0) {
            at = GEN_PUT(at, "\\xa0");
            i += 1;
        } else if (left >= 3 && memcmp(bytes + i, "\xe2\x80\x8b", 3) == 0) {
            at = GEN_PUT(at, "\\u200b");
            i += 2;
        } else {
            at = gen_put_char(at, character);
        }
    }
    return gen_put_char(at, delimiter);
}
