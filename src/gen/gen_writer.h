/* SPDX-License-Identifier: Apache-2.0 */
/* gen_writer.h - a file that is written a record at a time and appears only when it is complete.
 *
 *     gen_writer_open -> header -> (compose at `at`, gen_writer_end)* -> gen_writer_close
 *     gen_writer_abandon at the end in any case
 *
 * A zeroed writer is valid and closed; one writer may be opened again after a close and keeps its
 * buffer. Between calls there is room for GEN_RECORD_BYTES at `at`, twice over: the second half is
 * where a record is put while it is being rewritten (gen_dirt.h).
 *
 * Failure: STATUS_IO names the file. After it, only gen_writer_abandon may follow; it removes the
 * incomplete file.
 */
#ifndef GEN_GEN_WRITER_H
#define GEN_GEN_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/assert.h"
#include "engine/base/error.h"
#include "engine/file/output_file.h"
#include "gen/gen_run.h"

enum {
    GEN_BUFFER_BYTES = 1 << 20, /* What is written at once. */
    GEN_RECORD_BYTES = 1 << 18, /* No record is longer. */
};

struct gen_writer {
    struct gen_run *run; /* Borrowed. */
    char *buffer;        /* Owned. */
    char *at;            /* Where the next record goes. */
    uint64_t record_count;
    struct output_file file;
    struct arena arena; /* For the names of the file. */
    const char *path;
};

/* `name` is relative to the run's directory; its folders are created. */
MUST_USE status gen_writer_open(struct gen_writer *writer, struct gen_run *run, const char *name,
                                struct error *err);
MUST_USE status gen_writer_flush(struct gen_writer *writer, struct error *err);

typedef enum { GEN_END_NEWLINE, GEN_END_BARE } gen_end;

/* Writes the rest, without the last newline if so asked, and gives the file its name. */
MUST_USE status gen_writer_close(struct gen_writer *writer, gen_end end, struct error *err);
void gen_writer_abandon(struct gen_writer *writer);

/* Takes what was composed up to `end` without counting a record. */
ALWAYS_INLINE status gen_writer_take(struct gen_writer *writer, char *end, struct error *err)
{
    ASSERT(end >= writer->at && end - writer->at <= GEN_RECORD_BYTES);
    writer->at = end;
    if (LIKELY(end - writer->buffer < GEN_BUFFER_BYTES)) return STATUS_OK;
    return gen_writer_flush(writer, err);
}

/* Takes the record that was composed up to `end`. */
ALWAYS_INLINE status gen_writer_end(struct gen_writer *writer, char *end, struct error *err)
{
    writer->record_count++;
    return gen_writer_take(writer, end, err);
}

#endif
