/* SPDX-License-Identifier: Apache-2.0 */
/* client_journal.h - the client journal: a client that was killed resumes its job from it.
 *
 *     client_journal_folder -> (client_journal_create | client_journal_open) ->
 *     client_journal_append* -> client_journal_close or client_journal_remove
 *
 * One file per job: a header with the job's options and the identity of its files, then a record
 * per chunk that a gateway has accepted. Records are buffered for a moment and never synced: a
 * record that is lost costs no more than sending its chunk again. So a journal is cut at its first
 * damaged record, which is no error. A damaged header is an error.
 *
 * The file holds the owner key, and only its user may read it. It is locked while it is open: of
 * two clients of one job the second is refused.
 *
 * Memory: owned; the result of client_journal_open lives in the arena. Threads: one owner.
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

/* Everything that is needed to submit the same job again. */
struct client_journal_header {
    struct text job;
    struct text owner_key;
    struct text build;
    struct text analysis; /* As given on the command line, */
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
 * $HOME/.local/state/millrace/jobs; made if it is missing. The path is terminated, in the arena. */
MUST_USE status client_journal_folder(struct arena *arena, const char **out, struct error *err);

/* STATUS_USAGE: the job has one already, or its id can't be a file's name. */
MUST_USE status client_journal_create(const char *folder,
                                      const struct client_journal_header *header,
                                      struct client_journal **out, struct error *err);

/* The journal of an earlier incarnation; `sent` is ordered by scan and number, without duplicates.
 */
struct client_journal_record {
    struct client_journal_header header;
    const struct client_sent_chunk *sent;
    uint64_t sent_count;
};
/* The undamaged beginning of a journal. */
struct client_journal_extent {
    uint64_t byte_count;
    uint64_t record_count;
};
/* Decodes a journal; texts are borrowed. STATUS_CORRUPT: its header is damaged. */
MUST_USE status client_journal_parse(struct text bytes, struct arena *arena,
                                     struct client_journal_record *out,
                                     struct client_journal_extent *out_extent, struct error *err);
/* STATUS_USAGE: the job has none, or another process has it open. */
MUST_USE status client_journal_open(const char *folder, struct text job, struct arena *arena,
                                    struct client_journal_record *out_record,
                                    struct client_journal **out, struct error *err);

/* The bytes of one EFFECT_JOURNAL. */
MUST_USE status client_journal_append(struct client_journal *journal, const struct buf *record,
                                      uint64_t now_ms, struct error *err);
/* Writes records that have waited for GATHER_MS; called periodically. */
MUST_USE status client_journal_tick(struct client_journal *journal, uint64_t now_ms,
                                    struct error *err);

/* Both accept NULL, and free it. Closing tries to write the waiting records. */
void client_journal_close(struct client_journal *journal);
/* The job has ended: there is nothing to resume. */
void client_journal_remove(struct client_journal *journal);

#endif
