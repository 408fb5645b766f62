/* SPDX-License-Identifier: Apache-2.0 */
/* gen_writer.c - large plain writes; the last two bytes stay back.
 *
 * Whether a file ends in a newline is known only at its end, so a flush keeps the last two bytes (a
 * CR LF at most) in the buffer and the close may drop them.
 */
#include "gen/gen_writer.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/file/file.h"

enum {
    KEPT_BYTES = 2,
    ALLOCATED_BYTES = GEN_BUFFER_BYTES + 2 * GEN_RECORD_BYTES,
};

static status check_cancelled(const struct gen_writer *writer, struct error *err)
{
    const atomic_bool *cancelled = writer->run->options->cancelled;
    if (cancelled == NULL || !atomic_load_explicit(cancelled, memory_order_relaxed)) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_CANCELLED, "gen: cancelled while writing %s", writer->path);
}

static status write_all(struct gen_writer *writer, const char *bytes, size_t size,
                        struct error *err)
{
    TRY(output_file_write(&writer->file, bytes, size, writer->run->options->cancelled, err));
    writer->run->report.byte_count += size;
    return STATUS_OK;
}

static void report_progress(const struct gen_run *run)
{
    uint64_t done = run->report.byte_count;
    uint64_t expected = done > run->expected_bytes ? done : run->expected_bytes;
    if (run->options->progress == NULL) return;
    run->options->progress(run->options->context, done, expected);
}

status gen_writer_flush(struct gen_writer *writer, struct error *err)
{
    size_t filled = (size_t)(writer->at - writer->buffer);
    TRY(check_cancelled(writer, err));
    if (filled <= KEPT_BYTES) return STATUS_OK;

    TRY(write_all(writer, writer->buffer, filled - KEPT_BYTES, err));
    memcpy(writer->buffer, writer->at - KEPT_BYTES, KEPT_BYTES);
    writer->at = writer->buffer + KEPT_BYTES;
    report_progress(writer->run);
    return STATUS_OK;
}

status gen_writer_open(struct gen_writer *writer, struct gen_run *run, const char *name,
                       struct error *err)
{
    ASSERT(!writer->file.is_open);
    writer->run = run;
    writer->record_count = 0;
    arena_reset(&writer->arena);
    writer->path = file_path(run->options->directory, text_of(name), &writer->arena);
    if (writer->path == NULL) return error_memory(err);
    if (writer->buffer == NULL) writer->buffer = memory_alloc(NULL, ALLOCATED_BYTES);
    if (writer->buffer == NULL)
        return error_set(err, STATUS_MEMORY, "gen: no memory to write with");
    writer->at = writer->buffer;

    TRY(check_cancelled(writer, err));
    TRY(file_make_parents(writer->path, err));
    TRY(output_file_create(&writer->file, writer->path, &writer->arena, err));
    writer->file.is_volatile = true; /* The seed makes it again. */
    return STATUS_OK;
}

status gen_writer_close(struct gen_writer *writer, gen_end end, struct error *err)
{
    ASSERT(writer->file.is_open);
    if (end == GEN_END_BARE) {
        if (writer->at > writer->buffer && writer->at[-1] == '\n') writer->at--;
        if (writer->at > writer->buffer && writer->at[-1] == '\r') writer->at--;
    }
    TRY(check_cancelled(writer, err));
    TRY(write_all(writer, writer->buffer, (size_t)(writer->at - writer->buffer), err));
    writer->at = writer->buffer;

    TRY(output_file_seal(&writer->file, err));
    TRY(output_file_publish(&writer->file, err));
    writer->run->report.file_count++;
    writer->run->report.record_count += writer->record_count;
    report_progress(writer->run);
    return STATUS_OK;
}

void gen_writer_abandon(struct gen_writer *writer)
{
    output_file_discard(&writer->file);
    arena_done(&writer->arena);
    memory_free(NULL, writer->buffer, ALLOCATED_BYTES);
    writer->buffer = NULL;
}
