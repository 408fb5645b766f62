/* SPDX-License-Identifier: Apache-2.0 */
/* submission.c - a journal belongs to one question: resuming another one under the same id would
 * mix the chunks of two. So all options that affect the chunks are compared, and an error names the
 * first that differs.
 */
#include "cli/cluster/submission.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "engine/file/file.h"
#include "cluster/node/chunk_source.h"
#include "cluster/role/job_layout.h"
#include "cluster/wire/api.h"
#include "cluster/wire/manifest.h"

enum { ID_BYTES = 8, KEY_BYTES = API_OWNER_KEY_SIZE / 2 };

static status random_hex(const char *prefix, size_t byte_count, struct arena *arena,
                         const char **out, struct error *err)
{
    unsigned char bytes[KEY_BYTES];
    char text[2 * KEY_BYTES + 8];
    size_t used = strlen(prefix);
    memcpy(text, prefix, used);
    if (getrandom(bytes, byte_count, 0) != (ssize_t)byte_count) {
        return error_set(err, STATUS_IO, "cannot get random bytes: %s", strerror(errno));
    }
    for (size_t i = 0; i < byte_count; i++, used += 2) {
        (void)snprintf(text + used, 3, "%02x", bytes[i]); /* Fits. */
    }
    *out = arena_copy_string(arena, (struct text){text, (uint32_t)used});
    return *out != NULL ? STATUS_OK : error_memory(err);
}

/* So that the same folder is recognised from another working directory. */
static status whole_path(const char *path, struct arena *arena, struct text *out, struct error *err)
{
    char whole[PATH_MAX];
    if (realpath(path, whole) == NULL) {
        return error_set(err, STATUS_IO, "%.1000s: %s", path, strerror(errno));
    }
    const char *copy = arena_copy_string(arena, text_of(whole));
    if (copy == NULL) return error_memory(err);
    *out = text_of(copy);
    return STATUS_OK;
}

static status list_files(struct job *job, struct arena *arena, struct client_journal_header *header,
                         struct error *err)
{
    struct chunk_source_options options = {.plan = job_plan(job), .files = job_files(job)};
    struct chunk_source *source = NULL;
    struct source_file *files = NULL;
    TRY(chunk_source_create(&options, &source, err));
    status result = chunk_source_files(source, arena, &files, &header->file_count, err);
    chunk_source_destroy(source);
    header->files = files;
    return result;
}

static status make_header(const struct submission_options *options, struct arena *arena,
                          struct client_journal_header *out, struct error *err)
{
    const struct job_options *job = options->job_options;
    const struct gateways *gateways = options->gateways;
    struct client_journal_setting *settings =
        arena_array(arena, struct client_journal_setting, (size_t)job->setting_count + 1);
    struct text *urls = arena_array(arena, struct text, (size_t)gateways->count + 1);
    if (settings == NULL || urls == NULL) return error_memory(err);
    for (uint32_t i = 0; i < job->setting_count; i++) {
        settings[i] =
            (struct client_journal_setting){job->settings[i].name, job->settings[i].value};
    }
    for (uint32_t i = 0; i < gateways->count; i++) {
        urls[i] = text_of(gateways->urls[i]);
    }
    const struct sentiment_model *sentiment = job_sentiment(options->job);
    char *build = arena_alloc(arena, JOB_LAYOUT_BUILD_SIZE, 1);
    if (build == NULL) return error_memory(err);
    *out = (struct client_journal_header){
        .build = sentiment == NULL ? text_of(job_layout_build)
                                   : job_layout_build_naming(sentiment, build),
        .queries = job->queries,
        .query_count = job->query_count,
        .settings = settings,
        .setting_count = job->setting_count,
        .gateways = urls,
        .gateway_count = gateways->count,
        .chunk_bytes = job->chunk_bytes,
        .field_limit = job->field_limit,
        .broadcast_limit = job->broadcast_limit,
    };
    TRY(whole_path(job->analysis_dir, arena, &out->analysis, err));
    TRY(whole_path(job->data_dir, arena, &out->data_dir, err));
    return list_files(options->job, arena, out, err);
}

/* --- Resuming. --- */

static bool queries_agree(const struct client_journal_header *a,
                          const struct client_journal_header *b)
{
    bool agree = a->query_count == b->query_count;
    for (uint32_t i = 0; agree && i < a->query_count; i++) {
        agree = text_equal(a->queries[i], b->queries[i]);
    }
    return agree;
}

static bool settings_agree(const struct client_journal_header *a,
                           const struct client_journal_header *b)
{
    bool agree = a->setting_count == b->setting_count;
    for (uint32_t i = 0; agree && i < a->setting_count; i++) {
        agree = text_equal(a->settings[i].name, b->settings[i].name) &&
                text_equal(a->settings[i].value, b->settings[i].value);
    }
    return agree;
}

static status check_header(const struct client_journal_header *before,
                           const struct client_journal_header *now, const char *id,
                           struct error *err)
{
    const struct {
        const char *what;
        bool agrees;
        struct text value; /* What it was; empty: not shown. */
    } checks[] = {
        {"with the analysis", text_equal(before->analysis, now->analysis), before->analysis},
        {"on the files of", text_equal(before->data_dir, now->data_dir), before->data_dir},
        {"by another build,", text_equal(before->build, now->build), before->build},
        {"with other queries (--query)", queries_agree(before, now), {"", 0}},
        {"with other parameters (--set)", settings_agree(before, now), {"", 0}},
        {"with another --chunk-size", before->chunk_bytes == now->chunk_bytes, {"", 0}},
        {"with another --field-limit", before->field_limit == now->field_limit, {"", 0}},
        {"with another --broadcast-limit",
         before->broadcast_limit == now->broadcast_limit,
         {"", 0}},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].agrees) continue;
        return error_set(
            err, STATUS_USAGE, "job %s was begun %s%s%.*s; ask the same again, or take another id",
            id, checks[i].what, checks[i].value.size > 0 ? " " : "", TEXT_ARGS(checks[i].value));
    }
    return STATUS_OK;
}

static status check_files(struct job *job, const struct client_journal_header *before,
                          struct error *err)
{
    struct chunk_source_options options = {.plan = job_plan(job), .files = job_files(job)};
    struct chunk_source *source = NULL;
    TRY(chunk_source_create(&options, &source, err));
    struct error reason;
    status result = chunk_source_match(source, before->files, before->file_count, &reason);
    chunk_source_destroy(source);
    if (result == STATUS_OK) return STATUS_OK;
    if (result != STATUS_INPUT) {
        *err = reason;
        return result;
    }
    return error_set(err, result,
                     "%.1500s; take another id for the files as they are now, or give up job %.*s "
                     "with `millrace cancel %.*s -g URL`",
                     reason.text, TEXT_ARGS(before->job), TEXT_ARGS(before->job));
}

static status resume(struct submission *submission, const char *folder,
                     const struct client_journal_header *now,
                     const struct submission_options *options, struct arena *arena,
                     struct error *err)
{
    struct client_journal_record record;
    struct client_journal *journal = NULL;
    TRY(client_journal_open(folder, text_of(submission->id), arena, &record, &journal, err));
    status result = check_header(&record.header, now, submission->id, err);
    if (result == STATUS_OK) result = check_files(options->job, &record.header, err);
    const char *key = arena_copy_string(arena, record.header.owner_key);
    if (result == STATUS_OK && key == NULL) result = error_memory(err);
    if (result != STATUS_OK) {
        client_journal_close(journal);
        return result;
    }
    submission->journal = journal;
    submission->owner_key = key;
    submission->sent = record.sent;
    submission->sent_count = record.sent_count;
    submission->resumed = true;
    return STATUS_OK;
}

/* --- Interface. --- */

static status check_id(const char *id, struct error *err)
{
    if (manifest_name_valid(text_of(id)) && id[0] != '.') return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--job: `%.100s` is no id: those are 1 to %d of A-Z a-z 0-9 . _ - and don't "
                     "begin with a point",
                     id, MANIFEST_NAME_MAX);
}

status submission_begin(struct submission *submission, const struct submission_options *options,
                        struct arena *arena, struct error *err)
{
    *submission = (struct submission){.id = options->id};
    struct client_journal_header header;
    const char *folder = NULL;
    if (options->id != NULL) {
        TRY(check_id(options->id, err));
    } else {
        TRY(random_hex("j", ID_BYTES, arena, &submission->id, err));
    }
    TRY(random_hex("", KEY_BYTES, arena, &submission->owner_key, err));
    TRY(make_header(options, arena, &header, err));
    header.job = text_of(submission->id);
    header.owner_key = text_of(submission->owner_key);

    /* A client without a journal works as well; it only can't resume after a crash. */
    struct error *failure = &submission->journal_failure;
    if (client_journal_folder(arena, &folder, failure) != STATUS_OK) return STATUS_OK;
    const char *path = file_path(folder, header.job, arena);
    if (path == NULL) return error_memory(err);
    if (file_exists(path)) return resume(submission, folder, &header, options, arena, err);
    status result = client_journal_create(folder, &header, &submission->journal, failure);
    if (result == STATUS_USAGE || result == STATUS_MEMORY) {
        *err = *failure;
        return result;
    }
    return STATUS_OK;
}

bool submission_end(struct submission *submission, struct submission_outcome outcome)
{
    /* An earlier incarnation keeps its journal only if a gateway had accepted the job. */
    bool has_begun = outcome.was_taken || submission->resumed;
    /* The options differ from the journal's: the right command can still resume. */
    bool was_refused = outcome.result == STATUS_USAGE && submission->resumed && !outcome.was_taken;
    bool may_go_on = submission->journal != NULL &&
                     ((outcome.result == STATUS_UNREACHABLE && has_begun) || was_refused);
    if (may_go_on) {
        client_journal_close(submission->journal);
    } else {
        client_journal_remove(submission->journal);
    }
    submission->journal = NULL;
    return may_go_on;
}

status submission_forget(const char *id, struct arena *arena, bool *out_removed, struct error *err)
{
    struct client_journal_record record;
    struct client_journal *journal = NULL;
    const char *folder = NULL;
    *out_removed = false;
    TRY(client_journal_folder(arena, &folder, err));
    const char *path = file_path(folder, text_of(id), arena);
    if (path == NULL) return error_memory(err);
    if (!file_exists(path)) return STATUS_OK;
    status result = client_journal_open(folder, text_of(id), arena, &record, &journal, err);
    if (result == STATUS_USAGE) return STATUS_OK; /* Another client uses it, or has just ended. */
    TRY(result);
    client_journal_remove(journal);
    *out_removed = true;
    return STATUS_OK;
}
