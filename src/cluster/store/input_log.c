/* SPDX-License-Identifier: Apache-2.0 */
/* input_log.c - records are checked one by one as they are read, and the first damaged one ends its
 * log: behind it, only a guess could tell where the next record starts.
 *
 * The replay finds the size of each log. Records are written at that position, which their
 * checksums cover. Jobs are few (a node's limit is some tens), so a linear search finds them.
 */
#include "cluster/store/input_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/array.h"
#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "engine/file/file.h"
#include "engine/file/file_tree.h"
#include "cluster/store/input_log_record.h"

enum { NAME_MAX_BYTES = 64, PATH_SIZE = PATH_MAX, RECORD_LIMIT = 1 << 30, DESCRIPTOR_LIMIT = 32 };

struct log_slot {
    char job[NAME_MAX_BYTES + 1];
    int fd;        /* -1: not open now. */
    uint64_t size; /* Of whole, undamaged records. */
    uint64_t used; /* Number of the last append, for LRU. */
    bool broken;   /* Has the rest of a failed write that could not be cut off. */
};

struct input_log {
    char root[PATH_SIZE]; /* DIR/jobs */
    struct input_log_options options;
    ARRAY_OF(struct log_slot) slots;
    uint32_t open_count;
    uint64_t append_count;
    bool replayed;
};

/* Ids become names of folders, so none may be a path. */
static bool job_name_valid(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_MAX_BYTES) return false;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
           size;
}

/* "DIR/jobs/JOB" and the suffix; input_log_open has checked that it fits. */
static void job_path(const struct input_log *files, const char *job, const char *suffix,
                     char out[PATH_SIZE])
{
    int size = snprintf(out, PATH_SIZE, "%s/%s%s", files->root, job, suffix);
    ASSERT(size > 0 && size < PATH_SIZE);
}

/* ---- slots ---- */

static struct log_slot *slot_find(const struct input_log *files, const char *job)
{
    for (uint32_t i = 0; i < files->slots.count; i++) {
        if (strcmp(files->slots.items[i].job, job) == 0) return &files->slots.items[i];
    }
    return NULL;
}

static struct log_slot *slot_add(struct input_log *files, const char *job)
{
    struct log_slot *slot = array_add(&files->slots, NULL);
    if (slot == NULL) return NULL;
    *slot = (struct log_slot){.fd = -1};
    memcpy(slot->job, job, strlen(job) + 1);
    return slot;
}

static void slot_close(struct input_log *files, struct log_slot *slot)
{
    if (slot->fd < 0) return;
    (void)close(slot->fd); /* Writes have reported all errors: nothing is buffered. */
    slot->fd = -1;
    files->open_count--;
}

static void slot_remove(struct input_log *files, struct log_slot *slot)
{
    slot_close(files, slot);
    *slot = files->slots.items[--files->slots.count];
}

static void close_oldest(struct input_log *files)
{
    struct log_slot *oldest = NULL;
    for (uint32_t i = 0; i < files->slots.count; i++) {
        struct log_slot *slot = &files->slots.items[i];
        if (slot->fd >= 0 && (oldest == NULL || slot->used < oldest->used)) oldest = slot;
    }
    if (oldest != NULL) slot_close(files, oldest);
}

static status slot_open(struct input_log *files, struct log_slot *slot, struct error *err)
{
    if (slot->fd >= 0) return STATUS_OK;
    while (files->open_count >= files->options.descriptor_limit) {
        close_oldest(files);
    }
    char path[PATH_SIZE];
    if (slot->size == 0) {
        bool made;
        job_path(files, slot->job, "", path);
        TRY(file_make_folder(path, &made, err));
    }
    job_path(files, slot->job, "/log", path);
    /* A log with records must exist: one that was removed meanwhile must not begin anew. */
    int flags = O_WRONLY | O_CLOEXEC | (slot->size == 0 ? O_CREAT | O_TRUNC : 0);
    int fd;
    do {
        fd = open(path, flags, 0666);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return file_fail(err, path);
    slot->fd = fd;
    files->open_count++;
    return STATUS_OK;
}

/* ---- open and close ---- */

status input_log_open(const char *dir, struct input_log_options options, struct input_log **out,
                      struct error *err)
{
    if (strlen(dir) + sizeof "/jobs//log" + NAME_MAX_BYTES > PATH_SIZE) {
        return error_set(err, STATUS_IO, "%.200s...: the path is too long", dir);
    }
    struct input_log *files = memory_alloc(NULL, sizeof *files);
    if (files == NULL) return error_memory(err);
    *files = (struct input_log){.options = options};
    if (files->options.record_limit == 0) files->options.record_limit = RECORD_LIMIT;
    if (files->options.descriptor_limit == 0) files->options.descriptor_limit = DESCRIPTOR_LIMIT;
    (void)snprintf(files->root, PATH_SIZE, "%s/jobs", dir); /* Fits, see above. */

    bool made;
    status result = file_make_folder(files->root, &made, err);
    if (result != STATUS_OK) {
        input_log_close(files);
        return result;
    }
    *out = files;
    return STATUS_OK;
}

void input_log_close(struct input_log *files)
{
    if (files == NULL) return;
    for (uint32_t i = 0; i < files->slots.count; i++) {
        slot_close(files, &files->slots.items[i]);
    }
    array_done(&files->slots, NULL);
    memory_free(NULL, files, sizeof *files);
}

/* ---- reading ---- */

struct log_reader {
    struct file_part part; /* Of the next record's payload or header. */
    uint64_t position;     /* Of the next record. */
    uint64_t size;         /* Of the file. */
    uint32_t record_limit;
    unsigned char header[INPUT_LOG_HEADER_SIZE]; /* Of the next record, if there is that much. */
};

/* STATUS_CORRUPT: the log is valid only up to here; the error says why. */
static status read_bytes(struct log_reader *reader, uint64_t offset, void *out, size_t size,
                         struct error *err)
{
    reader->part.offset = offset;
    reader->part.size = size;
    if (size == 0 || file_read(reader->part, out, err) == STATUS_OK) return STATUS_OK;
    err->code = STATUS_CORRUPT;
    return STATUS_CORRUPT;
}

/* The record at the position, and the next one's header with it: one read for each record. */
static status read_record(struct log_reader *reader, struct buf *out, struct error *err)
{
    uint64_t left = reader->size - reader->position;
    struct input_log_header header;
    if (left < INPUT_LOG_HEADER_SIZE) {
        return error_set(err, STATUS_CORRUPT, "it ends within a record");
    }
    if (!input_log_header_parse(reader->header, &header)) {
        return error_set(err, STATUS_CORRUPT, "the next bytes are no record");
    }
    uint64_t whole_size = input_log_record_size(header.size);
    if (header.size > reader->record_limit || whole_size > left) {
        return error_set(err, STATUS_CORRUPT, "it ends within a record");
    }
    size_t padded_size = (size_t)whole_size - INPUT_LOG_HEADER_SIZE;
    uint64_t behind = left - whole_size;
    size_t next_size = behind < INPUT_LOG_HEADER_SIZE ? 0 : INPUT_LOG_HEADER_SIZE;
    buf_reset(out);
    if (!buf_reserve(out, padded_size + INPUT_LOG_HEADER_SIZE)) return error_memory(err);

    TRY(read_bytes(reader, reader->position + INPUT_LOG_HEADER_SIZE, out->bytes,
                   padded_size + next_size, err));
    if (!log_payload_check(header, out->bytes, reader->position)) {
        return error_set(err, STATUS_CORRUPT, "a record has a wrong checksum");
    }
    memcpy(reader->header, out->bytes + padded_size, next_size);
    reader->position += whole_size;
    out->size = header.size;
    return STATUS_OK;
}

struct replay_run {
    struct input_log *files;
    struct log_replay *replay;
    struct input_log_report report;
};

static void give_notice(struct replay_run *run, struct input_log_notice notice)
{
    if (run->replay->notice != NULL) run->replay->notice(run->replay, &notice);
}

/* Reads up to reader->position; `out_damage` is the reason if that is not the end of the file. */
static status replay_records(struct replay_run *run, struct log_reader *reader, const char *job,
                             struct error *out_damage, struct error *err)
{
    struct buf bytes = {0};
    size_t first = reader->size < INPUT_LOG_HEADER_SIZE ? 0 : INPUT_LOG_HEADER_SIZE;
    status result = read_bytes(reader, 0, reader->header, first, err);
    while (result == STATUS_OK && reader->position < reader->size) {
        result = read_record(reader, &bytes, err);
        if (result != STATUS_OK) break;
        struct log_slot *slot = slot_find(run->files, job);
        if (slot == NULL) slot = slot_add(run->files, job);
        if (slot == NULL) {
            buf_done(&bytes);
            return error_memory(err);
        }
        slot->size = reader->position;
        run->report.record_count++;
        run->report.payload_bytes += bytes.size;
        status heard = run->replay->record(run->replay, job, &bytes, err);
        if (heard != STATUS_OK || slot_find(run->files, job) == NULL) { /* Or it was removed. */
            reader->size = reader->position;
            buf_done(&bytes);
            return heard;
        }
    }
    buf_done(&bytes);
    if (result != STATUS_CORRUPT) return result;
    *out_damage = *err;
    return STATUS_OK;
}

static status cut_log(struct replay_run *run, const char *path, const char *job, uint64_t kept,
                      uint64_t lost, const char *reason, struct error *err)
{
    struct input_log_notice notice = {
        .kind = kept == 0 ? INPUT_LOG_NOTICE_REMOVED : INPUT_LOG_NOTICE_CUT,
        .name = job,
        .kept_bytes = kept,
        .lost_bytes = lost,
        .reason = reason,
    };
    if (kept == 0) {
        char folder[PATH_SIZE];
        job_path(run->files, job, "", folder);
        TRY(file_tree_remove(folder, err));
        run->report.removed_count++;
    } else {
        if (truncate(path, (off_t)kept) != 0) return file_fail(err, path);
        run->report.cut_count++;
    }
    run->report.lost_bytes += lost;
    give_notice(run, notice);
    return STATUS_OK;
}

/* `job` has a log. */
static status replay_log(struct replay_run *run, const char *path, const char *job,
                         struct error *err)
{
    struct log_reader reader = {
        .part = {.fd = -1, .path = path},
        .record_limit = run->files->options.record_limit,
    };
    struct file_info info;
    TRY(file_open(path, &reader.part.fd, &info, err));
    reader.size = info.size;
    struct error damage = {.text = "it is empty"};
    status result = replay_records(run, &reader, job, &damage, err);
    file_close(reader.part.fd);
    if (result != STATUS_OK) return result;
    if (reader.position == 0 || reader.position < reader.size) {
        TRY(cut_log(run, path, job, reader.position, reader.size - reader.position, damage.text,
                    err));
    }
    run->report.job_count += slot_find(run->files, job) != NULL;
    return STATUS_OK;
}

static void leave_junk(struct replay_run *run, const char *name, const char *reason)
{
    run->report.junk_count++;
    give_notice(run, (struct input_log_notice){
                         .kind = INPUT_LOG_NOTICE_JUNK,
                         .name = name,
                         .reason = reason,
                     });
}

static status replay_entry(struct replay_run *run, const struct file_entry *entry,
                           struct arena *arena, struct error *err)
{
    const char *name = entry->name.bytes;
    if (!entry->is_folder || !job_name_valid(name)) {
        leave_junk(run, name, "it is not a job's folder");
        return STATUS_OK;
    }
    char path[PATH_SIZE];
    struct file_entry *entries;
    uint32_t count;
    job_path(run->files, name, "", path);
    TRY(file_list(path, arena, &entries, &count, err));
    const struct file_entry *log = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (text_equal(entries[i].name, TEXT_LITERAL("log"))) log = &entries[i];
    }
    job_path(run->files, name, "/log", path);
    if (count == 0) return cut_log(run, path, name, 0, 0, "it is empty", err);
    if (log == NULL || log->is_folder) {
        leave_junk(run, name, "it has no log, but something else");
        return STATUS_OK;
    }
    return replay_log(run, path, name, err);
}

status input_log_replay(struct input_log *files, struct log_replay *replay,
                        struct input_log_report *out_report, struct error *err)
{
    ASSERT(!files->replayed);
    struct replay_run run = {.files = files, .replay = replay};
    struct arena arena = {0};
    struct file_entry *entries = NULL;
    uint32_t count = 0;
    status result = file_list(files->root, &arena, &entries, &count, err);
    for (uint32_t i = 0; result == STATUS_OK && i < count; i++) {
        struct arena_mark mark = arena_mark(&arena);
        result = replay_entry(&run, &entries[i], &arena, err);
        arena_release(&arena, mark);
    }
    arena_done(&arena);
    if (result != STATUS_OK) return result;
    files->replayed = true;
    *out_report = run.report;
    return STATUS_OK;
}

/* ---- writing ---- */

/* All parts at the position, or false and errno. Changes the parts. */
static bool write_parts(int fd, struct iovec *parts, int count, uint64_t position)
{
    while (count > 0) {
        ssize_t written = pwritev(fd, parts, count, (off_t)position);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        size_t left = (size_t)written;
        position += left;
        while (count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return true;
}

static status slot_write(struct input_log *files, struct log_slot *slot, struct text payload,
                         struct error *err)
{
    static char zeros[LOG_ALIGN];
    unsigned char header[INPUT_LOG_HEADER_SIZE];
    uint64_t whole_size = input_log_record_size(payload.size);
    input_log_header_write(payload.bytes, payload.size, slot->size, header);
    struct iovec parts[] = {
        {header, sizeof header},
        {(void *)(uintptr_t)payload.bytes, payload.size}, /* Only read. */
        {zeros, (size_t)whole_size - INPUT_LOG_HEADER_SIZE - payload.size},
    };
    if (!write_parts(slot->fd, parts, 3, slot->size)) {
        char path[PATH_SIZE];
        job_path(files, slot->job, "/log", path);
        status result = file_fail(err, path);
        slot->broken = ftruncate(slot->fd, (off_t)slot->size) != 0;
        return result;
    }
    slot->size += whole_size;
    return STATUS_OK;
}

status input_log_append(struct input_log *files, const char *job, struct text payload,
                        uint64_t quota_bytes, struct error *err)
{
    ASSERT(files->replayed);
    ASSERT(payload.size > 0);
    if (!job_name_valid(job)) {
        return error_set(err, STATUS_INTERNAL, "'%.100s' is not a job's id", job);
    }
    if (payload.size > files->options.record_limit) {
        return error_set(err, STATUS_LIMIT,
                         "a record of %u bytes is too large for the log of job %s (limit %u)",
                         payload.size, job, files->options.record_limit);
    }
    struct log_slot *slot = slot_find(files, job);
    uint64_t size = (slot == NULL ? 0 : slot->size) + input_log_record_size(payload.size);
    if (quota_bytes != 0 && size > quota_bytes) {
        return error_set(err, STATUS_LIMIT,
                         "the input log of job %s would have %llu bytes; the limit is %llu", job,
                         (unsigned long long)size, (unsigned long long)quota_bytes);
    }
    if (slot == NULL) slot = slot_add(files, job);
    if (slot == NULL) return error_memory(err);
    if (slot->broken) {
        return error_set(err, STATUS_IO, "cannot write %.1000s/%s/log: an earlier write failed",
                         files->root, job);
    }
    TRY(slot_open(files, slot, err));
    slot->used = ++files->append_count;
    return slot_write(files, slot, payload, err);
}

/* The folder's time changes only when the log is created in it. */
int64_t input_log_begun_ms(const struct input_log *files, const char *job)
{
    char path[PATH_SIZE];
    struct stat info;
    if (!job_name_valid(job)) return 0;
    job_path(files, job, "", path);
    if (stat(path, &info) != 0) return 0;
    return (int64_t)info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000;
}

/* ---- removing ---- */

status input_log_remove(struct input_log *files, const char *job, struct error *err)
{
    if (!job_name_valid(job)) {
        return error_set(err, STATUS_INTERNAL, "'%.100s' is not a job's id", job);
    }
    struct log_slot *slot = slot_find(files, job);
    if (slot != NULL) slot_remove(files, slot);
    char path[PATH_SIZE];
    job_path(files, job, "", path);
    return file_tree_remove(path, err);
}
