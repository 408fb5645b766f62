/* SPDX-License-Identifier: Apache-2.0 */
/* client_journal.c - a sealed header, then records of one size.
 *
 *     u64 mark, u64 size of the header, u64 checksum of it, header
 *     record: u64 scan, u64 number, u64 checksum of the chunk, u64 checksum of the record
 *
 * Numbers are little-endian, texts have a u32 size before them. A record's checksum also covers its
 * position among the records, so that stale blocks after a crash of the file system do not pass for
 * records. The file is locked (flock) while it is open, so that one process at a time writes it.
 */
#include "cluster/node/client_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/base/assert.h"
#include "engine/base/hash.h"
#include "engine/file/file.h"
#include "cluster/wire/manifest.h"

enum {
    PREFIX_BYTES = 24,
    RECORD_BYTES = CLIENT_JOURNAL_RECORD + 8,
    HEADER_MAX_BYTES = 64 << 20,
    TEXT_BYTES = 4, /* Minimum; as the next two. */
    SETTING_BYTES = 8,
    FILE_BYTES = 32,
    GATHER_RECORDS = 100, /* So many are written at once, */
    GATHER_MS = 1000      /* or those of this time. */
};

#define JOURNAL_MARK      0x316c6e6a6172696du /* "mirajnl1": this layout. */
#define JOURNAL_MAX_BYTES ((size_t)1 << 31)

struct client_journal {
    int fd;
    char *path;
    struct arena arena;
    struct buf waiting;     /* Encoded records. */
    uint64_t record_count;  /* With waiting ones, */
    uint64_t written_count; /* and without. */
    uint64_t written_bytes; /* Of the whole file. */
    uint64_t waiting_since_ms;
};

/* ---- the header ---- */

static void put_text(struct buf *out, struct text text)
{
    buf_put_u32(out, text.size);
    buf_put_text(out, text);
}

static void header_encode(const struct client_journal_header *header, struct buf *out)
{
    put_text(out, header->job);
    put_text(out, header->owner_key);
    put_text(out, header->build);
    put_text(out, header->analysis);
    put_text(out, header->data_dir);
    buf_put_u32(out, header->query_count);
    for (uint32_t i = 0; i < header->query_count; i++) {
        put_text(out, header->queries[i]);
    }
    buf_put_u32(out, header->setting_count);
    for (uint32_t i = 0; i < header->setting_count; i++) {
        put_text(out, header->settings[i].name);
        put_text(out, header->settings[i].value);
    }
    buf_put_u32(out, header->gateway_count);
    for (uint32_t i = 0; i < header->gateway_count; i++) {
        put_text(out, header->gateways[i]);
    }
    buf_put_u32(out, header->chunk_bytes);
    buf_put_u32(out, header->field_limit);
    buf_put_u64(out, header->broadcast_limit);
    buf_put_u32(out, header->file_count);
    for (uint32_t i = 0; i < header->file_count; i++) {
        const struct source_file *file = &header->files[i];
        buf_put_u32(out, file->table);
        put_text(out, file->name);
        buf_put_u64(out, file->size);
        buf_put_u64(out, (uint64_t)file->modified_ns);
        buf_put_u64(out, file->inode);
    }
}

static struct text get_text(struct buf_reader *in)
{
    uint32_t size = buf_get_u32(in);
    const char *bytes = buf_get(in, size);
    return bytes == NULL ? (struct text){0} : (struct text){bytes, size};
}

/* A count of items, which need at least so many bytes each. */
static uint32_t get_count(struct buf_reader *in, size_t item_bytes)
{
    uint32_t count = buf_get_u32(in);
    if (count > buf_left(in) / item_bytes) in->failed = true;
    return in->failed ? 0 : count;
}

static const struct text *get_texts(struct buf_reader *in, struct arena *arena, uint32_t *out_count)
{
    *out_count = get_count(in, TEXT_BYTES);
    struct text *texts = arena_array(arena, struct text, (size_t)*out_count + 1);
    for (uint32_t i = 0; texts != NULL && i < *out_count; i++) {
        texts[i] = get_text(in);
    }
    return texts;
}

static const struct client_journal_setting *get_settings(struct buf_reader *in, struct arena *arena,
                                                         uint32_t *out_count)
{
    *out_count = get_count(in, SETTING_BYTES);
    struct client_journal_setting *settings =
        arena_array(arena, struct client_journal_setting, (size_t)*out_count + 1);
    for (uint32_t i = 0; settings != NULL && i < *out_count; i++) {
        settings[i].name = get_text(in);
        settings[i].value = get_text(in);
    }
    return settings;
}

static const struct source_file *get_files(struct buf_reader *in, struct arena *arena,
                                           uint32_t *out_count)
{
    *out_count = get_count(in, FILE_BYTES);
    struct source_file *files = arena_array(arena, struct source_file, (size_t)*out_count + 1);
    for (uint32_t i = 0; files != NULL && i < *out_count; i++) {
        files[i].table = buf_get_u32(in);
        files[i].name = get_text(in);
        files[i].size = buf_get_u64(in);
        files[i].modified_ns = (int64_t)buf_get_u64(in);
        files[i].inode = buf_get_u64(in);
    }
    return files;
}

/* False: out of memory, or (in->failed) these bytes are no header. */
static bool header_decode(struct buf_reader *in, struct arena *arena,
                          struct client_journal_header *out)
{
    out->job = get_text(in);
    out->owner_key = get_text(in);
    out->build = get_text(in);
    out->analysis = get_text(in);
    out->data_dir = get_text(in);
    out->queries = get_texts(in, arena, &out->query_count);
    out->settings = get_settings(in, arena, &out->setting_count);
    out->gateways = get_texts(in, arena, &out->gateway_count);
    out->chunk_bytes = buf_get_u32(in);
    out->field_limit = buf_get_u32(in);
    out->broadcast_limit = buf_get_u64(in);
    out->files = get_files(in, arena, &out->file_count);
    if (buf_left(in) != 0) in->failed = true;
    return !in->failed && out->queries != NULL && out->settings != NULL && out->gateways != NULL &&
           out->files != NULL;
}

/* ---- incarnation ---- */

static bool is_set(const char *value)
{
    return value != NULL && value[0] != '\0';
}

status client_journal_folder(struct arena *arena, const char **out, struct error *err)
{
    const char *own = getenv("MILLRACE_STATE_DIR");
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    struct buf path = {0};
    if (is_set(own)) {
        buf_format(&path, "%s/jobs", own);
    } else if (is_set(state)) {
        buf_format(&path, "%s/millrace/jobs", state);
    } else if (is_set(home)) {
        buf_format(&path, "%s/.local/state/millrace/jobs", home);
    } else {
        return error_set(err, STATUS_USAGE,
                         "HOME is not set, so the job's journal has no folder: set "
                         "MILLRACE_STATE_DIR");
    }
    char *copy = NULL;
    if (!path.failed) {
        copy =
            arena_copy_string(arena, (struct text){(const char *)path.bytes, (uint32_t)path.size});
    }
    buf_done(&path);
    if (copy == NULL) return error_memory(err);
    TRY(file_make_folders(copy, err));
    *out = copy;
    return STATUS_OK;
}

static status check_name(struct text job, struct error *err)
{
    if (manifest_name_valid(job) && job.bytes[0] != '.') return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "`%.*s` can't be a job's id: 1 to %d of A-Z a-z 0-9 . _ -, and no point first",
                     job.size < 80 ? (int)job.size : 80, job.bytes, MANIFEST_NAME_MAX);
}

static struct client_journal *client_journal_new(const char *folder, struct text job)
{
    struct client_journal *journal = memory_alloc(NULL, sizeof *journal);
    if (journal == NULL) return NULL;
    *journal = (struct client_journal){.fd = -1};
    journal->path = file_path(folder, job, &journal->arena);
    if (journal->path != NULL) return journal;
    client_journal_close(journal);
    return NULL;
}

static void client_journal_free(struct client_journal *journal)
{
    file_close(journal->fd);
    buf_done(&journal->waiting);
    arena_done(&journal->arena);
    memory_free(NULL, journal, sizeof *journal);
}

/* A second link makes the name: of two processes that create the same journal, one gets EEXIST. */
static status give_name(const struct client_journal *journal, const char *temporary,
                        const struct buf *bytes, struct text job, struct error *err)
{
    if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0) return file_fail(err, temporary);
    TRY(file_write(journal->fd, temporary, bytes->bytes, bytes->size, NULL, err));
    if (link(temporary, journal->path) == 0) return STATUS_OK;
    if (errno != EEXIST) return file_fail(err, journal->path);
    return error_set(err, STATUS_USAGE,
                     "job %.*s has a journal already (%s): take another id, or resume it with "
                     "--job %.*s",
                     TEXT_ARGS(job), journal->path, TEXT_ARGS(job));
}

/* The journal appears with its first bytes or not at all: they are written under a hidden name that
 * no other process takes. */
static status write_start(struct client_journal *journal, struct text job, const struct buf *body,
                          struct error *err)
{
    struct buf bytes = {0};
    char temporary[4096];
    int folder = (int)(strrchr(journal->path, '/') - journal->path);
    int length = snprintf(temporary, sizeof temporary, "%.*s/.new-%ld-%.*s", folder, journal->path,
                          (long)getpid(), TEXT_ARGS(job));
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return error_set(err, STATUS_USAGE, "the path %.200s... is too long", journal->path);
    }
    buf_put_u64(&bytes, JOURNAL_MARK);
    buf_put_u64(&bytes, body->size);
    buf_put_u64(&bytes, hash_bytes(body->bytes, body->size));
    buf_put(&bytes, body->bytes, body->size);
    status result = bytes.failed ? error_memory(err) : STATUS_OK;
    if (result == STATUS_OK) {
        journal->fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
        result = journal->fd < 0 ? file_fail(err, temporary)
                                 : give_name(journal, temporary, &bytes, job, err);
        (void)unlink(temporary); /* A name that stays does no harm. */
    }
    journal->written_bytes = bytes.size;
    buf_done(&bytes);
    return result;
}

static status create_file(struct client_journal *journal,
                          const struct client_journal_header *header, struct error *err)
{
    struct buf body = {0};
    header_encode(header, &body);
    status result;
    if (body.failed) {
        result = error_memory(err);
    } else if (body.size > HEADER_MAX_BYTES) {
        result =
            error_set(err, STATUS_LIMIT, "the job's journal would begin with %zu bytes", body.size);
    } else {
        result = write_start(journal, header->job, &body, err);
    }
    buf_done(&body);
    return result;
}

status client_journal_create(const char *folder, const struct client_journal_header *header,
                             struct client_journal **out, struct error *err)
{
    TRY(check_name(header->job, err));
    struct client_journal *journal = client_journal_new(folder, header->job);
    if (journal == NULL) return error_memory(err);
    status result = create_file(journal, header, err);
    if (result != STATUS_OK) {
        client_journal_free(journal);
        return result;
    }
    *out = journal;
    return STATUS_OK;
}

/* ---- records ---- */

static uint64_t record_checksum(const unsigned char *record, uint64_t position)
{
    return hash_combine(hash_bytes(record, CLIENT_JOURNAL_RECORD), position);
}

static int compare_sent(const void *a, const void *b)
{
    const struct client_sent_chunk *x = a;
    const struct client_sent_chunk *y = b;
    if (x->scan != y->scan) return x->scan < y->scan ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Reads up to the first damaged record; *out_count is the number before it. */
static status read_records(struct buf_reader *in, struct arena *arena,
                           struct client_journal_record *out, uint64_t *out_count,
                           struct error *err)
{
    uint64_t most = buf_left(in) / RECORD_BYTES;
    struct client_sent_chunk *sent = arena_array(arena, struct client_sent_chunk, most + 1);
    if (sent == NULL) return error_memory(err);
    uint64_t count = 0;
    while (count < most) {
        const unsigned char *record = in->bytes + in->position;
        uint64_t scan = buf_get_u64(in);
        sent[count] = (struct client_sent_chunk){.scan = (uint32_t)scan};
        sent[count].number = buf_get_u64(in);
        sent[count].checksum = buf_get_u64(in);
        bool is_whole = buf_get_u64(in) == record_checksum(record, count);
        if (!is_whole || scan > UINT32_MAX) break;
        count++;
    }
    *out_count = count;
    qsort(sent, count, sizeof *sent, compare_sent);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (kept > 0 && compare_sent(&sent[kept - 1], &sent[i]) == 0) continue;
        sent[kept++] = sent[i];
    }
    out->sent = sent;
    out->sent_count = kept;
    return STATUS_OK;
}

status client_journal_parse(struct text bytes, struct arena *arena,
                            struct client_journal_record *out,
                            struct client_journal_extent *out_extent, struct error *err)
{
    struct buf_reader in = {.bytes = (const unsigned char *)bytes.bytes, .size = bytes.size};
    uint64_t mark = buf_get_u64(&in);
    uint64_t size = buf_get_u64(&in);
    uint64_t checksum = buf_get_u64(&in);
    const unsigned char *start = size <= HEADER_MAX_BYTES ? buf_get(&in, (size_t)size) : NULL;
    bool is_whole = mark == JOURNAL_MARK && start != NULL && size > 0 &&
                    hash_bytes(start, (size_t)size) == checksum;
    struct buf_reader header = {.bytes = start, .size = is_whole ? (size_t)size : 0};
    if (is_whole && !header_decode(&header, arena, &out->header) && !header.failed) {
        return error_memory(err);
    }
    if (!is_whole || header.failed) {
        return error_set(err, STATUS_CORRUPT, "the journal is damaged, or of another version");
    }
    TRY(read_records(&in, arena, out, &out_extent->record_count, err));
    out_extent->byte_count = PREFIX_BYTES + size + out_extent->record_count * RECORD_BYTES;
    return STATUS_OK;
}

static status open_file(struct client_journal *journal, struct text job, struct error *err)
{
    journal->fd = open(journal->path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (journal->fd >= 0) {
        if (flock(journal->fd, LOCK_EX | LOCK_NB) == 0) return STATUS_OK;
        if (errno != EWOULDBLOCK) return file_fail(err, journal->path);
        return error_set(err, STATUS_USAGE, "another process works on job %.*s", TEXT_ARGS(job));
    }
    if (errno != ENOENT) return file_fail(err, journal->path);
    return error_set(err, STATUS_USAGE, "job %.*s has no journal (%s): there is nothing to resume",
                     TEXT_ARGS(job), journal->path);
}

static status read_file(struct client_journal *journal, struct text job, struct arena *arena,
                        struct client_journal_record *out, struct error *err)
{
    struct text bytes = {0};
    struct client_journal_extent extent = {0};
    TRY(file_read_whole(journal->path, JOURNAL_MAX_BYTES, arena, &bytes, err));
    status result = client_journal_parse(bytes, arena, out, &extent, err);
    if (result == STATUS_CORRUPT || (result == STATUS_OK && !text_equal(out->header.job, job))) {
        return error_set(err, STATUS_CORRUPT,
                         "%s is damaged, or of another version: take another id, and remove it",
                         journal->path);
    }
    TRY(result);
    journal->record_count = journal->written_count = extent.record_count;
    journal->written_bytes = extent.byte_count;
    /* Damaged bytes would stand between these records and the next. */
    if (journal->written_bytes == bytes.size) return STATUS_OK;
    if (ftruncate(journal->fd, (off_t)journal->written_bytes) == 0) return STATUS_OK;
    return file_fail(err, journal->path);
}

status client_journal_open(const char *folder, struct text job, struct arena *arena,
                           struct client_journal_record *out_record, struct client_journal **out,
                           struct error *err)
{
    TRY(check_name(job, err));
    struct client_journal *journal = client_journal_new(folder, job);
    if (journal == NULL) return error_memory(err);
    struct client_journal_record record = {0};
    status result = open_file(journal, job, err);
    if (result == STATUS_OK) result = read_file(journal, job, arena, &record, err);
    if (result != STATUS_OK) {
        client_journal_free(journal);
        return result;
    }
    *out_record = record;
    *out = journal;
    return STATUS_OK;
}

static status client_journal_flush(struct client_journal *journal, struct error *err)
{
    struct buf *waiting = &journal->waiting;
    if (waiting->size == 0) return STATUS_OK;
    status result =
        file_write(journal->fd, journal->path, waiting->bytes, waiting->size, NULL, err);
    if (result == STATUS_OK) {
        journal->written_bytes += waiting->size;
        journal->written_count = journal->record_count;
    } else {
        /* These records are lost; later ones need not be. */
        int cut = ftruncate(journal->fd, (off_t)journal->written_bytes);
        (void)cut; /* If this fails too, the reader cuts the journal here. */
        journal->record_count = journal->written_count;
    }
    buf_reset(waiting);
    return result;
}

status client_journal_append(struct client_journal *journal, const struct buf *record,
                             uint64_t now_ms, struct error *err)
{
    ASSERT(record->size == CLIENT_JOURNAL_RECORD);
    struct buf *waiting = &journal->waiting;
    if (waiting->size == 0) journal->waiting_since_ms = now_ms;
    if (!buf_reserve(waiting, RECORD_BYTES)) {
        waiting->failed = false; /* The records that wait already are intact. */
        return error_memory(err);
    }
    buf_put(waiting, record->bytes, record->size);
    buf_put_u64(waiting, record_checksum(record->bytes, journal->record_count++));
    if (waiting->size >= (size_t)GATHER_RECORDS * RECORD_BYTES)
        return client_journal_flush(journal, err);
    return client_journal_tick(journal, now_ms, err);
}

status client_journal_tick(struct client_journal *journal, uint64_t now_ms, struct error *err)
{
    if (now_ms - journal->waiting_since_ms < GATHER_MS) return STATUS_OK;
    return client_journal_flush(journal, err);
}

void client_journal_close(struct client_journal *journal)
{
    if (journal == NULL) return;
    struct error ignored;
    status written = client_journal_flush(journal, &ignored);
    (void)written; /* Chunks of lost records are sent again. */
    client_journal_free(journal);
}

void client_journal_remove(struct client_journal *journal)
{
    if (journal == NULL) return;
    (void)unlink(journal->path); /* A job whose journal stays can still be resumed. */
    client_journal_free(journal);
}
