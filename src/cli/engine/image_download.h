/* SPDX-License-Identifier: Apache-2.0 */
/* image_download.h - downloads one picture with the program `curl`.
 *
 * Only http and https, also after redirects; bounded in size and time. The file appears under its
 * name only when it is whole. curl is a program here and not a library: what few people need must
 * not cost the start of everybody's questions.
 */
#ifndef CLI_ENGINE_IMAGE_DOWNLOAD_H
#define CLI_ENGINE_IMAGE_DOWNLOAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/error.h"

struct image_report {
    uint64_t byte_count;
    char content_type[80]; /* As the server says; empty: it does not. */
};

MUST_USE status image_download(const char *url, const char *path, const atomic_bool *cancelled,
                               struct image_report *out_report, struct error *err);

#endif
