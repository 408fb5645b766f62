/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_key.c - hexadecimal, so that it can be copied as text; memory that held it is wiped. */
#include "cluster/config/cluster_key.h"

#include <sodium.h>
#include <string.h>

#include "cluster/store/secret_file.h"

enum { HEX_DIGITS = 2 * DATAGRAM_KEY_BYTES, LINE_BYTES = HEX_DIGITS + 1 };

static status key_parse(const char *path, const char *line, size_t size, struct datagram_key *out,
                        struct error *err)
{
    const char *end = line;
    size_t key_size = 0;
    bool is_line = size == HEX_DIGITS || (size == LINE_BYTES && line[HEX_DIGITS] == '\n');
    if (is_line &&
        sodium_hex2bin(out->bytes, sizeof out->bytes, line, HEX_DIGITS, NULL, &key_size, &end) ==
            0 &&
        key_size == sizeof out->bytes && end == line + HEX_DIGITS) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE,
                     "%.500s holds no key of a cluster, which is %d hexadecimal digits: copy it "
                     "from another host, or remove it and run millrace key",
                     path, (int)HEX_DIGITS);
}

static status key_use(const char *path, char *line, struct datagram_key *out, struct error *err)
{
    size_t size = 0;
    TRY(secret_file_read_own(path, line, LINE_BYTES, &size, err));
    return key_parse(path, line, size, out, err);
}

status cluster_key_read(const char *path, struct datagram_key *out, struct error *err)
{
    char line[LINE_BYTES];
    struct datagram_key key;
    status result = key_use(path, line, &key, err);
    if (result == STATUS_OK) *out = key;
    sodium_memzero(line, sizeof line);
    sodium_memzero(&key, sizeof key);
    if (result == STATUS_OK) return result;
    /* The user has to act in each case. */
    err->code = STATUS_USAGE;
    return error_prefix(err,
                        "the cluster's key, which 'millrace up' makes and all its hosts share");
}

status cluster_key_make(const char *path, bool *out_made, struct error *err)
{
    unsigned char key[DATAGRAM_KEY_BYTES];
    char line[LINE_BYTES + 1]; /* A zero is written too. */
    if (sodium_init() < 0) {
        return error_set(err, STATUS_IO, "cannot get random bytes for a key");
    }
    randombytes_buf(key, sizeof key);
    (void)sodium_bin2hex(line, sizeof line, key, sizeof key); /* Fits. */
    line[HEX_DIGITS] = '\n';
    status result = secret_file_create(path, line, LINE_BYTES, out_made, err);
    sodium_memzero(key, sizeof key);
    sodium_memzero(line, sizeof line);
    if (result == STATUS_OK) return result;
    err->code = STATUS_USAGE;
    return error_prefix(err, "cannot make the cluster's key");
}
