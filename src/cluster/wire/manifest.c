/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the layout of a manifest: the fields of the struct in their order, as codec.h writes
 * them, behind a version and a mark, with a checksum at the end.
 *
 * The encoder fails the buf rather than write bytes that the decoder would refuse: most of a
 * manifest comes from a client, so a limit that it passes is not a programmer's mistake.
 */
#include "cluster/wire/manifest.h"

#include "engine/base/hash.h"
#include "cluster/wire/transfer.h"

enum {
    VERSION = 1,
    MARK = 'M',
    QUERY_BYTES = 8, /* The fewest that an item takes. */
    SETTING_BYTES = 8,
    FILE_BYTES = 12,
    TABLE_BYTES = 8,
    WORKER_BYTES = 6
};

static bool is_name_byte(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-';
}

bool manifest_name_valid(struct text name)
{
    if (name.size == 0 || name.size > MANIFEST_NAME_MAX) return false;
    for (uint32_t i = 0; i < name.size; i++) {
        if (!is_name_byte(name.bytes[i])) return false;
    }
    /* As parts of a path these two are other folders. */
    return !text_equal(name, TEXT_LITERAL(".")) && !text_equal(name, TEXT_LITERAL(".."));
}

/* A field that breaks a rule: the encoder has no words for it. */
static void pass_fail(const struct transfer *transfer, const char *problem)
{
    if (transfer->writer != NULL) {
        transfer->writer->out->failed = true;
    } else {
        codec_fail(transfer->reader, problem);
    }
}

static void pass_short(const struct transfer *transfer, struct text *text)
{
    pass_text(transfer, text);
    if (text->size > MANIFEST_TEXT_MAX) pass_fail(transfer, "a text is too long");
}

static void pass_name(const struct transfer *transfer, struct text *name)
{
    pass_text(transfer, name);
    if (!manifest_name_valid(*name)) pass_fail(transfer, "a name is none");
}

static void pass_queries(const struct transfer *transfer, struct manifest *manifest)
{
    struct manifest_query *queries =
        PASS_ARRAY(transfer, &manifest->queries, struct manifest_query, QUERY_BYTES,
                   MANIFEST_QUERIES_MAX, &manifest->query_count);
    for (uint32_t i = 0; i < manifest->query_count; i++) {
        pass_short(transfer, &queries[i].name);
        pass_short(transfer, &queries[i].sql);
    }
}

static void pass_settings(const struct transfer *transfer, struct manifest *manifest)
{
    struct manifest_setting *settings =
        PASS_ARRAY(transfer, &manifest->settings, struct manifest_setting, SETTING_BYTES,
                   MANIFEST_SETTINGS_MAX, &manifest->setting_count);
    for (uint32_t i = 0; i < manifest->setting_count; i++) {
        pass_short(transfer, &settings[i].name);
        pass_short(transfer, &settings[i].value);
    }
}

static void pass_table(const struct transfer *transfer, struct manifest_table *table)
{
    pass_short(transfer, &table->name);
    struct manifest_file *files = PASS_ARRAY(transfer, &table->files, struct manifest_file,
                                             FILE_BYTES, MANIFEST_FILES_MAX, &table->file_count);
    for (uint32_t i = 0; i < table->file_count; i++) {
        pass_short(transfer, &files[i].name);
        pass_u64(transfer, &files[i].size);
    }
}

static void pass_tables(const struct transfer *transfer, struct manifest *manifest)
{
    struct manifest_table *tables =
        PASS_ARRAY(transfer, &manifest->tables, struct manifest_table, TABLE_BYTES,
                   MANIFEST_TABLES_MAX, &manifest->table_count);
    for (uint32_t i = 0; i < manifest->table_count; i++) {
        pass_table(transfer, &tables[i]);
    }
}

static void pass_workers(const struct transfer *transfer, struct manifest *manifest)
{
    struct manifest_worker *workers =
        PASS_ARRAY(transfer, &manifest->workers, struct manifest_worker, WORKER_BYTES,
                   MANIFEST_WORKERS_MAX, &manifest->worker_count);
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        pass_name(transfer, &workers[i].name);
        pass_bool(transfer, &workers[i].maps);
        pass_bool(transfer, &workers[i].folds);
    }
}

/* All after the mark. */
static void pass_manifest(const struct transfer *transfer, struct manifest *manifest)
{
    pass_name(transfer, &manifest->job);
    pass_short(transfer, &manifest->build);
    pass_u64(transfer, &manifest->owner);
    pass_u64(transfer, &manifest->plan);
    pass_short(transfer, &manifest->tables_sql);
    pass_queries(transfer, manifest);
    pass_settings(transfer, manifest);
    pass_tables(transfer, manifest);
    pass_workers(transfer, manifest);
    pass_u32(transfer, &manifest->shard_count);
    pass_u32(transfer, &manifest->chunk_bytes);
    pass_u32(transfer, &manifest->field_limit);
    pass_u64(transfer, &manifest->broadcast_limit);
    pass_u64(transfer, &manifest->memory_limit);
    pass_u64(transfer, &manifest->log_limit);
}

void manifest_encode(const struct manifest *manifest, struct buf *out)
{
    struct codec_writer writer = codec_begin(out);
    codec_put_u8(&writer, VERSION);
    codec_put_u8(&writer, MARK);
    struct manifest copy = *manifest; /* What it points to is only read. */
    pass_manifest(&(struct transfer){.writer = &writer}, &copy);
    codec_seal(&writer);
}

status manifest_decode(struct text bytes, struct arena *arena, struct manifest *out,
                       struct error *err)
{
    struct codec_reader reader = codec_open_sealed(bytes, arena);
    struct manifest manifest = {0};
    if (codec_get_u8(&reader) != VERSION) codec_fail(&reader, "it is of another version");
    if (codec_get_u8(&reader) != MARK) codec_fail(&reader, "it does not begin like one");
    pass_manifest(&(struct transfer){.reader = &reader}, &manifest);
    TRY(codec_finish(&reader, "a manifest", err));
    *out = manifest;
    return STATUS_OK;
}

uint64_t manifest_hash(struct text bytes)
{
    /* 0 says "not known" in messages. */
    uint64_t hash = hash_bytes(bytes.bytes, bytes.size);
    return hash != 0 ? hash : 1;
}
