/* client_journal.h - what a client writes down while it works, so that it can go on after it was
 * killed.
 *
 *     client_journal_folder -> (client_journal_create | client_journal_open) ->
 * client_journal_append* -> client_journal_close or client_journal_remove
 *
 * One file per job: who asked what with which files, then a record per chunk that a gateway has
 * taken. Records are gathered for a moment before they are written, and never brought to the disk
 * by force: one that is lost costs no more than sending its chunk again. So whatever follows the
 * first damaged record is cut off, and that is no error. A damaged header is.
 *
 * The file holds the owner key and is readable by its user alone. It is locked while it is open: of
 * two clients of one job the second is refused.
 *
 * Memory: owned; what client_journal_open gives lives in the arena. Threads: one owner.
 */
#ifndef CLUSTER_NODE_CLIENT_JOURNAL_H
#define CLUSTER_NODE_CLIENT_JOURNAL_H

#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "cluster/node/chunk_source.h"
#include "cluster/role/client/client.h"

struct client_journal_setting {
    struct text name;
    struct text value;
};

/* All that is needed to ask the same again. */
struct client_journal_header {
    struct text job;
    struct text owner_key;
    struct text build;
    struct text analysis; /* As it was given, */
    struct text data_dir; /* like this. */
    const struct text *queries;
    uint32_t query_count;
    const struct client_journal_setting *settings;
    uint32_t setting_count;
    const struct text *gateways;
    uint32_t gateway_count;
    uint32_t chunk_bytes;
    uint32_t field_limit;
    uint64_t broadcast_limit;
    const struct source_file *files;
    uint32_t file_count;
};

struct client_journal;

/* $MILLRACE_STATE_DIR/jobs, else $XDG_STATE_HOME/millrace/jobs, else
 * $HOME/.local/state/millrace/jobs; made if it is not there. The path is terminated, in the arena.
 */
MUST_USE status client_journal_folder(struct arena *arena, const char **out, struct error *err);

/* STATUS_USAGE: there is one of this job already, or its name can't be a file's. */
MUST_USE status client_journal_create(const char *folder,
                                      const struct client_journal_header *header,
                                      struct client_journal **out, struct error *err);

/* What an earlier incarnation left; `sent` is ordered by scan and number, each once. */
struct client_journal_record {
    struct client_journal_header header;
    const struct client_sent_chunk *sent;
    uint64_t sent_count;
};
/* How much of a journal's bytes is sound. */
struct client_journal_extent {
    uint64_t byte_count;
    uint64_t record_count;
};
/* What the bytes of a journal say; texts are borrowed. STATUS_CORRUPT: its header is damaged. */
MUST_USE status client_journal_parse(struct text bytes, struct arena *arena,
                                     struct client_journal_record *out,
                                     struct client_journal_extent *out_extent, struct error *err);
/* STATUS_USAGE: there is none of this job, or somebody has it open. */
MUST_USE status client_journal_open(const char *folder, struct text job, struct arena *arena,
                                    struct client_journal_record *out_record,
                                    struct client_journal **out, struct error *err);

/* The bytes of one EFFECT_JOURNAL. */
MUST_USE status client_journal_append(struct client_journal *journal, const struct buf *record,
                                      uint64_t now_ms, struct error *err);
/* Writes what has waited for long enough; to be called now and then. */
MUST_USE status client_journal_tick(struct client_journal *journal, uint64_t now_ms,
                                    struct error *err);

/* Both accept NULL, and free it. Closing writes what waits, as far as that is possible. */
void client_journal_close(struct client_journal *journal);
/* The job has ended: there is nothing to go on with. */
void client_journal_remove(struct client_journal *journal);

#endif
