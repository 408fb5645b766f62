/* gen_writer.c - large plain writes; the last two bytes stay back.
 *
 * Whether a file ends in a newline is known only at its end, so a flush keeps the last two bytes (a
 * CR LF at most) in the buffer and the close may drop them.
 */
#include "gen/gen_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/memory.h"

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
    while (size > 0) {
        ssize_t written = write(writer->descriptor, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            return error_set(err, STATUS_IO, "gen: cannot write %s: %s", writer->path,
                             written < 0 ? strerror(errno) : "nothing was written");
        }
        bytes += written;
        size -= (size_t)written;
        writer->run->report.byte_count += (size_t)written;
    }
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

/* Creates every folder on the way to the file. */
static status create_folders(const char *path, struct error *err)
{
    char folder[GEN_PATH_BYTES];
    size_t size = strlen(path);
    for (size_t i = 1; i < size; i++) {
        if (path[i] != '/') continue;
        memcpy(folder, path, i);
        folder[i] = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            return error_set(err, STATUS_IO, "gen: cannot create the folder %s: %s", folder,
                             strerror(errno));
        }
    }
    return STATUS_OK;
}

status gen_writer_open(struct gen_writer *writer, struct gen_run *run, const char *name,
                       struct error *err)
{
    ASSERT(!writer->is_open);
    writer->run = run;
    writer->record_count = 0;
    int length =
        snprintf(writer->path, sizeof writer->path, "%s/%s", run->options->directory, name);
    int partial_length = snprintf(writer->partial_path, sizeof writer->partial_path,
                                  "%s/%s.partial", run->options->directory, name);
    if (length < 0 || partial_length < 0 || partial_length >= GEN_PATH_BYTES) {
        return error_set(err, STATUS_USAGE, "gen: the path %.200s... is too long",
                         run->options->directory);
    }

    if (writer->buffer == NULL) writer->buffer = memory_alloc(NULL, ALLOCATED_BYTES);
    if (writer->buffer == NULL)
        return error_set(err, STATUS_MEMORY, "gen: no memory to write with");
    writer->at = writer->buffer;

    TRY(check_cancelled(writer, err));
    TRY(create_folders(writer->path, err));
    writer->descriptor = open(writer->partial_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (writer->descriptor < 0) {
        return error_set(err, STATUS_IO, "gen: cannot create %s: %s", writer->partial_path,
                         strerror(errno));
    }
    writer->is_open = true;
    return STATUS_OK;
}

status gen_writer_close(struct gen_writer *writer, gen_end end, struct error *err)
{
    ASSERT(writer->is_open);
    if (end == GEN_END_BARE) {
        if (writer->at > writer->buffer && writer->at[-1] == '\n') writer->at--;
        if (writer->at > writer->buffer && writer->at[-1] == '\r') writer->at--;
    }
    TRY(check_cancelled(writer, err));
    TRY(write_all(writer, writer->buffer, (size_t)(writer->at - writer->buffer), err));
    writer->at = writer->buffer;

    /* A network file system may report a full disk no earlier than here. */
    if (close(writer->descriptor) != 0) {
        int cause = errno;
        writer->is_open = false;
        (void)unlink(writer->partial_path); /* The close has failed already; that is reported. */
        return error_set(err, STATUS_IO, "gen: cannot write %s: %s", writer->path, strerror(cause));
    }
    writer->is_open = false;
    if (rename(writer->partial_path, writer->path) != 0) {
        int cause = errno;
        (void)unlink(writer->partial_path); /* Likewise. */
        return error_set(err, STATUS_IO, "gen: cannot name the complete file %s: %s", writer->path,
                         strerror(cause));
    }
    writer->run->report.file_count++;
    writer->run->report.record_count += writer->record_count;
    report_progress(writer->run);
    return STATUS_OK;
}

void gen_writer_abandon(struct gen_writer *writer)
{
    if (writer->is_open) {
        (void)close(writer->descriptor);    /* What was written is thrown away. */
        (void)unlink(writer->partial_path); /* If it stays, the next run overwrites it. */
        writer->is_open = false;
    }
    memory_free(NULL, writer->buffer, ALLOCATED_BYTES);
    writer->buffer = NULL;
}
