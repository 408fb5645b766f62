/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the layout of a manifest: the fields of the struct in their order, as codec.h writes
 * them, behind a version and a mark, with a checksum at the end.
 *
 * The encoder fails the buf rather than write bytes that the decoder would refuse: most of a
 * manifest comes from a client, so a limit that it passes is not a programmer's mistake.
 */
#include "cluster/wire/manifest.h"

#include "engine/base/hash.h"
#include "engine/data/codec.h"

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

static void put_count(struct codec_writer *writer, uint32_t count, uint32_t limit)
{
    if (count > limit) writer->out->failed = true;
    codec_put_u32(writer, count);
}

static void put_text(struct codec_writer *writer, struct text text)
{
    if (text.size > MANIFEST_TEXT_MAX) writer->out->failed = true;
    codec_put_text(writer, text);
}

static void put_name(struct codec_writer *writer, struct text name)
{
    if (!manifest_name_valid(name)) writer->out->failed = true;
    codec_put_text(writer, name);
}

static void put_queries(struct codec_writer *writer, const struct manifest *manifest)
{
    put_count(writer, manifest->query_count, MANIFEST_QUERIES_MAX);
    for (uint32_t i = 0; i < manifest->query_count; i++) {
        put_text(writer, manifest->queries[i].name);
        put_text(writer, manifest->queries[i].sql);
    }
}

static void put_settings(struct codec_writer *writer, const struct manifest *manifest)
{
    put_count(writer, manifest->setting_count, MANIFEST_SETTINGS_MAX);
    for (uint32_t i = 0; i < manifest->setting_count; i++) {
        put_text(writer, manifest->settings[i].name);
        put_text(writer, manifest->settings[i].value);
    }
}

static void put_tables(struct codec_writer *writer, const struct manifest *manifest)
{
    put_count(writer, manifest->table_count, MANIFEST_TABLES_MAX);
    for (uint32_t i = 0; i < manifest->table_count; i++) {
        const struct manifest_table *table = &manifest->tables[i];
        put_text(writer, table->name);
        put_count(writer, table->file_count, MANIFEST_FILES_MAX);
        for (uint32_t file = 0; file < table->file_count; file++) {
            put_text(writer, table->files[file].name);
            codec_put_u64(writer, table->files[file].size);
        }
    }
}

static void put_workers(struct codec_writer *writer, const struct manifest *manifest)
{
    put_count(writer, manifest->worker_count, MANIFEST_WORKERS_MAX);
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        put_name(writer, manifest->workers[i].name);
        codec_put_bool(writer, manifest->workers[i].maps);
        codec_put_bool(writer, manifest->workers[i].folds);
    }
}

void manifest_encode(const struct manifest *manifest, struct buf *out)
{
    struct codec_writer writer = codec_begin(out);
    codec_put_u8(&writer, VERSION);
    codec_put_u8(&writer, MARK);
    put_name(&writer, manifest->job);
    put_text(&writer, manifest->build);
    codec_put_u64(&writer, manifest->owner);
    codec_put_u64(&writer, manifest->plan);
    put_text(&writer, manifest->tables_sql);
    put_queries(&writer, manifest);
    put_settings(&writer, manifest);
    put_tables(&writer, manifest);
    put_workers(&writer, manifest);
    codec_put_u32(&writer, manifest->shard_count);
    codec_put_u32(&writer, manifest->chunk_bytes);
    codec_put_u32(&writer, manifest->field_limit);
    codec_put_u64(&writer, manifest->broadcast_limit);
    codec_put_u64(&writer, manifest->memory_limit);
    codec_put_u64(&writer, manifest->log_limit);
    codec_seal(&writer);
}

static struct text get_text(struct codec_reader *reader)
{
    struct text text = codec_get_text(reader);
    if (text.size > MANIFEST_TEXT_MAX) codec_fail(reader, "a text is too long");
    return text;
}

static struct text get_name(struct codec_reader *reader)
{
    struct text name = codec_get_text(reader);
    if (!manifest_name_valid(name)) codec_fail(reader, "a name is none");
    return name;
}

static void get_queries(struct codec_reader *reader, struct manifest *manifest)
{
    struct manifest_query *queries = CODEC_ARRAY(reader, struct manifest_query, QUERY_BYTES,
                                                 MANIFEST_QUERIES_MAX, &manifest->query_count);
    for (uint32_t i = 0; i < manifest->query_count; i++) {
        queries[i].name = get_text(reader);
        queries[i].sql = get_text(reader);
    }
    manifest->queries = queries;
}

static void get_settings(struct codec_reader *reader, struct manifest *manifest)
{
    struct manifest_setting *settings =
        CODEC_ARRAY(reader, struct manifest_setting, SETTING_BYTES, MANIFEST_SETTINGS_MAX,
                    &manifest->setting_count);
    for (uint32_t i = 0; i < manifest->setting_count; i++) {
        settings[i].name = get_text(reader);
        settings[i].value = get_text(reader);
    }
    manifest->settings = settings;
}

static void get_table(struct codec_reader *reader, struct manifest_table *table)
{
    table->name = get_text(reader);
    struct manifest_file *files = CODEC_ARRAY(reader, struct manifest_file, FILE_BYTES,
                                              MANIFEST_FILES_MAX, &table->file_count);
    for (uint32_t i = 0; i < table->file_count; i++) {
        files[i].name = get_text(reader);
        files[i].size = codec_get_u64(reader);
    }
    table->files = files;
}

static void get_tables(struct codec_reader *reader, struct manifest *manifest)
{
    struct manifest_table *tables = CODEC_ARRAY(reader, struct manifest_table, TABLE_BYTES,
                                                MANIFEST_TABLES_MAX, &manifest->table_count);
    for (uint32_t i = 0; i < manifest->table_count; i++) {
        get_table(reader, &tables[i]);
    }
    manifest->tables = tables;
}

static void get_workers(struct codec_reader *reader, struct manifest *manifest)
{
    struct manifest_worker *workers = CODEC_ARRAY(reader, struct manifest_worker, WORKER_BYTES,
                                                  MANIFEST_WORKERS_MAX, &manifest->worker_count);
    for (uint32_t i = 0; i < manifest->worker_count; i++) {
        workers[i].name = get_name(reader);
        workers[i].maps = codec_get_bool(reader);
        workers[i].folds = codec_get_bool(reader);
    }
    manifest->workers = workers;
}

status manifest_decode(struct text bytes, struct arena *arena, struct manifest *out,
                       struct error *err)
{
    struct codec_reader reader = codec_open_sealed(bytes, arena);
    struct manifest manifest = {0};
    if (codec_get_u8(&reader) != VERSION) codec_fail(&reader, "it is of another version");
    if (codec_get_u8(&reader) != MARK) codec_fail(&reader, "it does not begin like one");
    manifest.job = get_name(&reader);
    manifest.build = get_text(&reader);
    manifest.owner = codec_get_u64(&reader);
    manifest.plan = codec_get_u64(&reader);
    manifest.tables_sql = get_text(&reader);
    get_queries(&reader, &manifest);
    get_settings(&reader, &manifest);
    get_tables(&reader, &manifest);
    get_workers(&reader, &manifest);
    manifest.shard_count = codec_get_u32(&reader);
    manifest.chunk_bytes = codec_get_u32(&reader);
    manifest.field_limit = codec_get_u32(&reader);
    manifest.broadcast_limit = codec_get_u64(&reader);
    manifest.memory_limit = codec_get_u64(&reader);
    manifest.log_limit = codec_get_u64(&reader);
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
