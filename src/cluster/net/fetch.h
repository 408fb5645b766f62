/* fetch.h - downloads one picture.
 *
 * Only http and https, also after redirects; bounded in size and time. The file appears under its
 * name only when it is whole.
 */
#ifndef CLUSTER_NET_FETCH_H
#define CLUSTER_NET_FETCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/error.h"

enum { FETCH_TYPE_SIZE = 80 };

struct fetch_report {
    uint64_t byte_count;
    char content_type[FETCH_TYPE_SIZE]; /* As the server says; may be empty. */
};

MUST_USE status fetch_file(const char *url, const char *path, const atomic_bool *cancelled,
                           struct fetch_report *out_report, struct error *err);

#endif
