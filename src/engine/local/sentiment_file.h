/* SPDX-License-Identifier: Apache-2.0 */
/* sentiment_file.h - a model of sentiment() from a file that the user names. */
#ifndef ENGINE_LOCAL_SENTIMENT_FILE_H
#define ENGINE_LOCAL_SENTIMENT_FILE_H

#include "engine/base/arena.h"
#include "engine/base/error.h"

struct sentiment_model;

/* NULL or an empty path: *out_model is NULL, which stands for the model in the program. Otherwise
 * model and bytes live in the arena. STATUS_IO or STATUS_INPUT names the file. */
MUST_USE status sentiment_file_read(const char *path, struct arena *arena,
                                    const struct sentiment_model **out_model, struct error *err);

#endif
