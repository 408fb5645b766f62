/* SPDX-License-Identifier: Apache-2.0 */
/* client_scan.c - chunks of scans, from the file to a gateway that has taken them.
 *
 * A chunk is in a slot from when it is read until it is taken. There are a few more slots than
 * requests may be in flight, so that reading overlaps sending. Only chunks that can go now get a
 * slot, those requested again first; a chunk that can't go any more (its phase has closed, the
 * window has moved back) gives its slot up to one that can, else neither would ever go.
 *
 * Of each scan only one chunk at a time is read for the first time: so none is asked for beyond the
 * last one, whose number only its reading tells.
 */
#include "cluster/role/client/client_state.h"

#include <inttypes.h>

#include "engine/base/assert.h"

enum { END_WAIT_FIRST_MS = 2000, END_WAIT_MAX_MS = 30000, REFUSED_WAIT_MS = 1000 };

/* What was sent again is not sent once more for so long: several workers miss the same chunk, and
 * each asks for itself. One that got lost on its way is asked for again later. */
enum { QUARTER_MS = 250, RESENT_QUIET_QUARTERS = 8 };

/* ---- records of chunks ---- */

static struct text scan_table(const struct client *client, uint32_t scan)
{
    const struct plan *plan = client->config.plan;
    return plan->tables[plan->scans[scan].table].name;
}

/* Room for one more. */
static bool chunks_grow(struct client_scan *scan)
{
    return scan->read_count < scan->chunk_capacity ||
           array_grow(NULL, (void **)&scan->chunks, &scan->chunk_capacity, sizeof *scan->chunks,
                      (size_t)scan->read_count + 1);
}

void client_scans_done(struct client *client)
{
    for (uint32_t i = 0; client->scans != NULL && i < client->config.plan->scan_count; i++) {
        struct client_scan *scan = &client->scans[i];
        memory_free(NULL, scan->chunks, sizeof *scan->chunks * scan->chunk_capacity);
    }
    for (uint32_t i = 0; client->slots != NULL && i < client->slot_count; i++) {
        buf_done(&client->slots[i].body);
    }
    array_done(&client->rerequests, NULL);
}

/* What an earlier incarnation of this client has sent; NULL: not that one. */
static const struct client_sent_chunk *client_journal_find(const struct client *client,
                                                           uint32_t scan, uint64_t number)
{
    uint64_t low = 0;
    uint64_t high = client->config.sent_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const struct client_sent_chunk *chunk = &client->config.sent[middle];
        if (chunk->scan == scan && chunk->number == number) return chunk;
        if (chunk->scan < scan || (chunk->scan == scan && chunk->number < number)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

static bool may_send(const struct client_scan *scan, uint64_t number)
{
    return scan->is_open && !scan->is_full && number < scan->limit;
}

static void chunk_rerequest(struct client_scan *scan, uint64_t number)
{
    struct chunk_record *record = &scan->chunks[number];
    ASSERT((record->flags & (CHUNK_HELD | CHUNK_REREQUESTED)) == 0);
    record->flags |= CHUNK_REREQUESTED;
    if (scan->rerequested_count++ == 0 || number < scan->rerequested_from)
        scan->rerequested_from = number;
}

static void chunk_forget_rerequest(struct client_scan *scan, uint64_t number)
{
    scan->chunks[number].flags &= ~(uint32_t)CHUNK_REREQUESTED;
    scan->rerequested_count--;
}

static void chunk_accept(struct client_scan *scan, uint64_t number)
{
    ASSERT((scan->chunks[number].flags & CHUNK_ACCEPTED) == 0);
    scan->chunks[number].flags |= CHUNK_ACCEPTED;
    scan->accepted_count++;
    while (scan->sent < scan->read_count &&
           (scan->chunks[scan->sent].flags & CHUNK_ACCEPTED) != 0) {
        scan->sent++;
    }
}

/* ---- slots ---- */

/* The chunk leaves its slot: for good, */
static void slot_empty(struct client *client, struct chunk_slot *slot)
{
    struct client_scan *scan = &client->scans[slot->scan];
    if (slot->number < scan->read_count) {
        scan->chunks[slot->number].flags &= ~(uint32_t)CHUNK_HELD;
    } else {
        scan->is_reading_on = false;
    }
    buf_done(&slot->body);
    slot->state = SLOT_FREE;
}

/* or to be sent later. */
static void slot_put_back(struct client *client, struct chunk_slot *slot)
{
    struct client_scan *scan = &client->scans[slot->scan];
    slot_empty(client, slot);
    if (slot->is_again) {
        chunk_rerequest(scan, slot->number);
    } else if (slot->number < scan->fresh_from) {
        scan->fresh_from = slot->number;
    }
}

static struct chunk_slot *slot_find(struct client *client, enum slot_state state)
{
    for (uint32_t i = 0; i < client->slot_count; i++) {
        if (client->slots[i].state == state) return &client->slots[i];
    }
    return NULL;
}

static struct chunk_slot *slot_make_room(struct client *client)
{
    struct chunk_slot *slot = slot_find(client, SLOT_FREE);
    for (uint32_t i = 0; slot == NULL && i < client->slot_count; i++) {
        struct chunk_slot *other = &client->slots[i];
        if (other->state != SLOT_READY) continue;
        if (may_send(&client->scans[other->scan], other->number)) continue;
        slot_put_back(client, other);
        slot = other;
    }
    return slot;
}

/* ---- reading ---- */

struct chunk_choice {
    bool is_one;
    bool is_again;
    uint32_t scan;
    uint64_t number;
};

/* Re-requests first: a fold waits for them. Then in the order of numbers, so that no scan
 * starves. */
static bool goes_before(bool is_again, uint64_t number, const struct chunk_choice *other)
{
    if (!other->is_one) return true;
    if (is_again != other->is_again) return is_again;
    return number < other->number;
}

static void choose_rerequested(struct client *client, struct chunk_choice *choice)
{
    for (uint32_t i = 0; i < client->config.plan->scan_count; i++) {
        struct client_scan *scan = &client->scans[i];
        if (scan->rerequested_count == 0) continue;
        while ((scan->chunks[scan->rerequested_from].flags & CHUNK_REREQUESTED) == 0) {
            scan->rerequested_from++;
        }
        uint64_t number = scan->rerequested_from;
        if (!may_send(scan, number) || !goes_before(true, number, choice)) continue;
        *choice = (struct chunk_choice){true, true, i, number};
    }
}

static void choose_fresh(struct client *client, struct chunk_choice *choice)
{
    const uint32_t gone = CHUNK_ACCEPTED | CHUNK_HELD;
    for (uint32_t i = 0; i < client->config.plan->scan_count; i++) {
        struct client_scan *scan = &client->scans[i];
        while (scan->fresh_from < scan->read_count &&
               (scan->chunks[scan->fresh_from].flags & gone) != 0) {
            scan->fresh_from++;
        }
        uint64_t number = scan->fresh_from;
        bool is_new = number == scan->read_count;
        if (is_new && (scan->is_counted || scan->is_reading_on)) continue;
        if (!goes_before(false, number, choice)) continue;
        /* A chunk that an earlier incarnation sent is read only to compare its checksum. */
        if (!may_send(scan, number) &&
            (!is_new || client_journal_find(client, i, number) == NULL)) {
            continue;
        }
        *choice = (struct chunk_choice){true, false, i, number};
    }
}

static void slots_fill(struct client *client, struct effects *effects)
{
    for (;;) {
        struct chunk_choice choice = {0};
        choose_rerequested(client, &choice);
        if (!choice.is_one) choose_fresh(client, &choice);
        struct chunk_slot *slot = choice.is_one ? slot_make_room(client) : NULL;
        if (slot == NULL) return;
        struct client_scan *scan = &client->scans[choice.scan];
        if (choice.is_again) chunk_forget_rerequest(scan, choice.number);
        if (choice.number < scan->read_count) {
            scan->chunks[choice.number].flags |= CHUNK_HELD;
        } else {
            scan->is_reading_on = true;
        }
        *slot = (struct chunk_slot){
            .state = SLOT_READING,
            .scan = choice.scan,
            .number = choice.number,
            .is_again = choice.is_again,
        };
        struct effect *effect = effects_add(effects, EFFECT_READ);
        effect->read.scan = choice.scan;
        effect->read.number = choice.number;
    }
}

/* Records what the first reading tells; false: memory is out. */
static bool chunk_note_first(struct client_scan *scan, const struct client_chunk *chunk)
{
    ASSERT(scan->is_reading_on);
    if (!chunk->is_none) {
        if (!chunks_grow(scan)) return false;
        scan->chunks[scan->read_count++] =
            (struct chunk_record){.checksum = chunk->checksum, .flags = CHUNK_HELD};
        scan->sum += batch_hash(chunk->number, chunk->checksum);
        scan->is_reading_on = false;
    }
    scan->is_counted = chunk->is_last || chunk->is_none;
    return true;
}

static void leave_changed(struct client *client, const struct client_chunk *chunk,
                          const char *since)
{
    struct error err;
    error_write(&err, STATUS_INPUT,
                "table %.*s: chunk %" PRIu64 " is not what it was when it was %s: a file has "
                "changed since",
                TEXT_ARGS(scan_table(client, chunk->scan)), chunk->number, since);
    client_leave(client, &err);
}

static void chunk_arrived(struct client *client, struct chunk_slot *slot,
                          struct client_chunk *chunk)
{
    struct client_scan *scan = &client->scans[slot->scan];
    bool is_first = slot->number == scan->read_count;
    if (is_first && !chunk_note_first(scan, chunk)) {
        struct error err;
        error_write(&err, STATUS_MEMORY, "out of memory");
        client_leave(client, &err);
        return;
    }
    if (chunk->is_none) {
        if (!is_first) leave_changed(client, chunk, "read first");
        slot_empty(client, slot);
        return;
    }
    if (chunk->checksum != scan->chunks[slot->number].checksum) {
        leave_changed(client, chunk, "read first");
        return;
    }
    const struct client_sent_chunk *sent =
        is_first ? client_journal_find(client, slot->scan, slot->number) : NULL;
    if (sent == NULL) {
        slot->body = chunk->body;
        chunk->body = (struct buf){0};
        slot->state = SLOT_READY;
    } else if (sent->checksum != chunk->checksum) {
        leave_changed(client, chunk, "sent");
    } else {
        slot_empty(client, slot);
        chunk_accept(scan, slot->number);
    }
}

void client_chunk_read(struct client *client, const struct client_read *read)
{
    if (client->stage == STAGE_LEAVING) return;
    if (read->chunk == NULL) {
        client_leave(client, read->error);
        return;
    }
    for (uint32_t i = 0; i < client->slot_count; i++) {
        struct chunk_slot *slot = &client->slots[i];
        if (slot->state == SLOT_READING && slot->scan == read->chunk->scan &&
            slot->number == read->chunk->number) {
            chunk_arrived(client, slot, read->chunk);
            return;
        }
    }
}

/* ---- sending ---- */

static void slot_send(struct client *client, struct chunk_slot *slot, struct effects *effects)
{
    uint32_t place = (uint32_t)(slot - client->slots);
    struct effect *effect = client_call_make(client, API_PUT_CHUNK, place, effects);
    effect->request.api.scan = slot->scan;
    effect->request.api.number = slot->number;
    effect->request.api.has_checksum = true;
    effect->request.api.checksum = client->scans[slot->scan].chunks[slot->number].checksum;
    effect->request.body = slot->body;
    slot->body = (struct buf){0};
    slot->state = SLOT_FLYING;
    client->flying_count++;
}

static void slots_send(struct client *client, struct effects *effects)
{
    while (client->flying_count < client->config.put_limit &&
           client_pause_over(client, PAUSE_CHUNKS)) {
        struct chunk_slot *best = NULL;
        struct chunk_choice choice = {0};
        for (uint32_t i = 0; i < client->slot_count; i++) {
            struct chunk_slot *slot = &client->slots[i];
            bool can_go = slot->state == SLOT_READY &&
                          may_send(&client->scans[slot->scan], slot->number) &&
                          goes_before(slot->is_again, slot->number, &choice);
            if (!can_go) continue;
            choice = (struct chunk_choice){true, slot->is_again, slot->scan, slot->number};
            best = slot;
        }
        if (best == NULL) return;
        slot_send(client, best, effects);
    }
}

static void chunk_taken(struct client *client, struct chunk_slot *slot, struct effects *effects)
{
    struct client_scan *scan = &client->scans[slot->scan];
    slot_empty(client, slot);
    client_pause_end(client, PAUSE_CHUNKS);
    if (slot->is_again) {
        client->resent_count++;
        scan->chunks[slot->number].resent_quarter = (uint32_t)(client->now_ms / QUARTER_MS) + 1;
        return;
    }
    chunk_accept(scan, slot->number);
    struct effect *effect = effects_add(effects, EFFECT_JOURNAL);
    buf_put_u64(&effect->journal, slot->scan);
    buf_put_u64(&effect->journal, slot->number);
    buf_put_u64(&effect->journal, scan->chunks[slot->number].checksum);
    if (effect->journal.failed) effects->failed = true;
}

/* Until the next view, but not only: another gateway than the one that refused may have nothing new
 * to tell. */
static void scan_rest(const struct client *client, struct client_scan *scan, uint32_t wait_ms)
{
    scan->is_full = true;
    scan->full_until_ms = client->now_ms + (wait_ms > REFUSED_WAIT_MS ? wait_ms : REFUSED_WAIT_MS);
}

static void scans_wake(struct client *client)
{
    for (uint32_t i = 0; i < client->config.plan->scan_count; i++) {
        struct client_scan *scan = &client->scans[i];
        if (client->now_ms >= scan->full_until_ms) scan->is_full = false;
        /* Also without another view: as long as the end is missing there may be no news. */
        bool is_lost = !scan->is_ended && client->now_ms >= scan->end_again_ms;
        if (is_lost) scan->end_is_told = false;
    }
}

void client_chunk_replied(struct client *client, const struct client_call *call,
                          const struct api_reply *reply, struct effects *effects)
{
    struct chunk_slot *slot = &client->slots[call->index];
    struct client_scan *scan = &client->scans[slot->scan];
    ASSERT(slot->state == SLOT_FLYING);
    client->flying_count--;
    if (reply != NULL && reply->status / 100 == 2) {
        chunk_taken(client, slot, effects);
        return;
    }
    slot_put_back(client, slot);
    if (reply == NULL) {
        client_pause_longer(client, PAUSE_CHUNKS, 0);
    } else if (reply->status == 409 || reply->status == 429) {
        scan_rest(client, scan, reply->retry_after_ms);
    } else if (reply->status == 404) {
        if (call->acceptance == client->acceptance) client_ask_again(client, effects);
    } else {
        struct error err;
        api_reply_error_text(reply, &err);
        status refused = error_prefix(&err, "table %.*s, chunk %" PRIu64,
                                      TEXT_ARGS(scan_table(client, slot->scan)), slot->number);
        (void)refused; /* It is what the job ends with. */
        client_leave(client, &err);
    }
}

/* ---- ends ---- */

static void ends_send(struct client *client, struct effects *effects)
{
    for (uint32_t i = 0; i < client->config.plan->scan_count; i++) {
        struct client_scan *scan = &client->scans[i];
        bool is_due = scan->is_counted && scan->sent == scan->read_count && !scan->end_is_told &&
                      !scan->end_is_flying;
        if (!is_due || !client_pause_over(client, PAUSE_CHUNKS)) continue;
        struct effect *effect = client_call_make(client, API_PUT_END, i, effects);
        effect->request.api.scan = i;
        effect->request.api.end_count = scan->read_count;
        effect->request.api.end_sum = scan->sum;
        scan->end_is_flying = true;
    }
}

/* The workers may still lose it; then the view says so, and it is said again, ever more rarely. */
static void end_taken(struct client *client, struct client_scan *scan)
{
    scan->end_is_told = true;
    scan->end_wait_ms *= 2;
    if (scan->end_wait_ms < END_WAIT_FIRST_MS) scan->end_wait_ms = END_WAIT_FIRST_MS;
    if (scan->end_wait_ms > END_WAIT_MAX_MS) scan->end_wait_ms = END_WAIT_MAX_MS;
    scan->end_again_ms = client->now_ms + scan->end_wait_ms;
    client_pause_end(client, PAUSE_CHUNKS);
}

void client_end_replied(struct client *client, const struct client_call *call,
                        const struct api_reply *reply, struct effects *effects)
{
    struct client_scan *scan = &client->scans[call->index];
    scan->end_is_flying = false;
    if (reply == NULL) {
        client_pause_longer(client, PAUSE_CHUNKS, 0);
    } else if (call->acceptance != client->acceptance) {
        return; /* Of a job that is gone. */
    } else if (reply->status / 100 == 2) {
        end_taken(client, scan);
    } else if (reply->status == 404) {
        client_ask_again(client, effects);
    } else if (reply->status == 429) {
        client_pause_longer(client, PAUSE_CHUNKS, reply->retry_after_ms);
    } else {
        struct error err;
        api_reply_error_text(reply, &err);
        status refused =
            error_prefix(&err, "table %.*s", TEXT_ARGS(scan_table(client, call->index)));
        (void)refused; /* It is what the job ends with. */
        client_leave(client, &err);
    }
}

/* ---- views ---- */

/* Whether this attempt has been seen; if not, it is from now on. */
static bool rerequest_is_known(struct client *client, const struct view_rerequest *rerequest)
{
    for (uint32_t i = 0; i < client->rerequests.count; i++) {
        struct client_rerequest *known = &client->rerequests.items[i];
        if (known->scan != rerequest->rerequest.scan) continue;
        if (!text_equal(text_of(known->worker), rerequest->worker)) continue;
        bool is_same = known->attempt == rerequest->rerequest.attempt;
        known->attempt = rerequest->rerequest.attempt;
        return is_same;
    }
    struct client_rerequest *added = NULL;
    if (client->rerequests.count / client->config.plan->scan_count < MANIFEST_WORKERS_MAX * 2) {
        added = array_add(&client->rerequests, NULL);
    }
    /* It is asked for again: without memory that is soon enough. */
    if (added == NULL) return true;
    *added = (struct client_rerequest){.scan = rerequest->rerequest.scan,
                                       .attempt = rerequest->rerequest.attempt};
    memcpy(added->worker, rerequest->worker.bytes, rerequest->worker.size);
    return false;
}

static bool was_just_resent(const struct client *client, const struct chunk_record *record)
{
    uint32_t now = (uint32_t)(client->now_ms / QUARTER_MS) + 1;
    return record->resent_quarter != 0 && now - record->resent_quarter < RESENT_QUIET_QUARTERS;
}

static void view_rerequest(struct client *client, const struct view_rerequest *rerequest)
{
    const struct rerequest *asked = &rerequest->rerequest;
    if (asked->scan >= client->config.plan->scan_count) return;
    if (rerequest->worker.size >= ROLE_NAME_SIZE || rerequest_is_known(client, rerequest)) return;
    struct client_scan *scan = &client->scans[asked->scan];
    for (uint32_t i = 0; i < asked->number_count; i++) {
        uint64_t number = asked->numbers[i];
        /* What was not accepted yet, or is on its way, comes anyway. */
        if (number >= scan->read_count) continue;
        const struct chunk_record *record = &scan->chunks[number];
        if (record->flags == CHUNK_ACCEPTED && !was_just_resent(client, record)) {
            chunk_rerequest(scan, number);
        }
    }
}

void client_scans_view(struct client *client, const struct job_view *view)
{
    for (uint32_t i = 0; i < view->scan_count; i++) {
        const struct view_scan *seen = &view->scans[i];
        if (seen->scan >= client->config.plan->scan_count) continue;
        struct client_scan *scan = &client->scans[seen->scan];
        scan->is_open = seen->open;
        scan->is_full = false;
        scan->limit = seen->limit;
        scan->applied = seen->applied;
        scan->is_ended = seen->ended;
    }
    for (uint32_t i = 0; i < view->rerequest_count; i++) {
        view_rerequest(client, &view->rerequests[i]);
    }
}

void client_scans_forget(struct client *client)
{
    for (uint32_t i = 0; i < client->config.plan->scan_count; i++) {
        struct client_scan *scan = &client->scans[i];
        scan->is_open = false;
        scan->is_full = false;
        scan->is_ended = false;
        scan->limit = 0;
        scan->applied = 0;
        scan->end_is_told = false;
        scan->end_wait_ms = 0;
        for (uint64_t number = scan->rerequested_from; scan->rerequested_count > 0; number++) {
            if ((scan->chunks[number].flags & CHUNK_REREQUESTED) != 0)
                chunk_forget_rerequest(scan, number);
        }
    }
    client->rerequests.count = 0;
}

void client_scans_drive(struct client *client, struct effects *effects)
{
    scans_wake(client);
    slots_send(client, effects);
    slots_fill(client, effects);
    ends_send(client, effects);
}
