/* SPDX-License-Identifier: Apache-2.0 */
/* broker_memory.c - queues as lists ordered by place; every choice is the caller's.
 *
 * A message is in one list at a time: ready in its queue, or open with the connection it was given
 * to. Its place in the queue is a number given once, so that going back to the queue is an
 * insertion by place. There are few queues and connections: they are searched from the beginning,
 * which also makes the order of candidates, and so the meaning of a choice, the same in every run.
 */
#include "cluster/sim/broker_memory.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/assert.h"

struct stored {
    struct stored *next;
    struct queue *queue; /* While open with a connection; NULL: its queue was deleted. */
    uint64_t place;
    uint64_t tag;      /* While open. */
    uint64_t consumer; /* While open: the one that counts it. */
    bool redelivered;
    size_t size;
    unsigned char bytes[];
};

struct broker_consumer {
    struct broker_consumer *next;
    struct connection *connection;
    uint64_t number; /* A consumer that cancels and returns is another one. */
    uint32_t prefetch;
    uint32_t open_count;
};

struct queue {
    struct queue *next;
    char name[BROKER_QUEUE_NAME_SIZE];
    bool single;
    bool durable;
    struct stored *head; /* Ready, by place. */
    struct stored *tail;
    uint64_t ready_count;
    uint64_t open_count;
    uint64_t next_place;
    struct broker_consumer *consumers; /* In the order of their arrival; the first one is active. */
};

struct broker_answer {
    enum broker_action_kind kind;
    uint64_t sequence;
    bool returned_first; /* A return has to be taken before the confirm. */
    char queue[BROKER_QUEUE_NAME_SIZE];
};

struct connection {
    struct connection *next;
    uint64_t number;
    uint64_t next_tag;
    struct stored *open; /* Delivered and not acknowledged, by tag. */
    struct stored *open_tail;
    struct buf answers; /* Of struct broker_answer, in the order in which they came to be. */
};

struct broker_memory {
    struct queue *queues;
    struct connection *connections;
    uint64_t next_connection;
    uint64_t next_consumer;
    bool is_up;
};

void broker_queue_name(const char *cluster, const struct bus_address *address,
                       char out[BROKER_QUEUE_NAME_SIZE])
{
    int size;
    if (address->kind == BUS_INBOX) {
        size = snprintf(out, BROKER_QUEUE_NAME_SIZE, "%s.inbox.%.*s", cluster,
                        TEXT_ARGS(address->node));
    } else {
        size = snprintf(out, BROKER_QUEUE_NAME_SIZE, "%s.work.%u", cluster, address->work);
    }
    ASSERT(size > 0 && size < BROKER_QUEUE_NAME_SIZE);
}

status broker_memory_create(struct broker_memory **out, struct error *err)
{
    struct broker_memory *broker = memory_alloc(NULL, sizeof *broker);
    if (broker == NULL) return error_memory(err);
    *broker = (struct broker_memory){.next_connection = 1, .is_up = true};
    *out = broker;
    return STATUS_OK;
}

static struct queue *queue_find(const struct broker_memory *broker, const char *name)
{
    struct queue *queue = broker->queues;
    while (queue != NULL && strcmp(queue->name, name) != 0) {
        queue = queue->next;
    }
    return queue;
}

static struct connection *connection_find(const struct broker_memory *broker, uint64_t number)
{
    struct connection *connection = broker->connections;
    while (connection != NULL && connection->number != number) {
        connection = connection->next;
    }
    return connection;
}

static void stored_free(struct stored *stored)
{
    memory_free(NULL, stored, sizeof *stored + stored->size);
}

/* ---- queues ---- */

static void queue_insert(struct queue *queue, struct stored *stored)
{
    struct stored **link = &queue->head;
    if (queue->tail != NULL && queue->tail->place < stored->place) link = &queue->tail->next;
    while (*link != NULL && (*link)->place < stored->place) {
        link = &(*link)->next;
    }
    stored->next = *link;
    *link = stored;
    if (stored->next == NULL) queue->tail = stored;
    queue->ready_count++;
}

static struct stored *queue_take(struct queue *queue)
{
    struct stored *stored = queue->head;
    queue->head = stored->next;
    if (queue->head == NULL) queue->tail = NULL;
    queue->ready_count--;
    stored->next = NULL;
    return stored;
}

static void queue_drop_ready(struct queue *queue)
{
    while (queue->head != NULL) {
        stored_free(queue_take(queue));
    }
}

static struct broker_consumer *consumer_find(const struct queue *queue,
                                             const struct connection *connection)
{
    struct broker_consumer *consumer = queue->consumers;
    while (consumer != NULL && consumer->connection != connection) {
        consumer = consumer->next;
    }
    return consumer;
}

static void consumer_remove(struct queue *queue, const struct connection *connection)
{
    for (struct broker_consumer **link = &queue->consumers; *link != NULL; link = &(*link)->next) {
        struct broker_consumer *consumer = *link;
        if (consumer->connection != connection) continue;
        *link = consumer->next;
        memory_free(NULL, consumer, sizeof *consumer);
        return;
    }
}

/* ---- connections ---- */

static void connection_answer(struct broker_memory *broker, struct connection *connection,
                              const struct broker_answer *answer)
{
    buf_put(&connection->answers, answer, sizeof *answer);
    if (connection->answers.failed) broker_memory_kill(broker);
}

static struct broker_answer *connection_answers(const struct connection *connection,
                                                size_t *out_count)
{
    *out_count = connection->answers.size / sizeof(struct broker_answer);
    return (struct broker_answer *)(void *)connection->answers.bytes;
}

/* An open message is settled: its queue and its consumer have one less. */
static void open_settle(const struct connection *connection, const struct stored *stored)
{
    if (stored->queue == NULL) return;
    stored->queue->open_count--;
    struct broker_consumer *consumer = consumer_find(stored->queue, connection);
    if (consumer != NULL && consumer->number == stored->consumer) consumer->open_count--;
}

static void connection_end(struct broker_memory *broker, struct connection *connection)
{
    struct stored *stored = connection->open;
    while (stored != NULL) {
        struct stored *next = stored->next;
        if (stored->queue == NULL) {
            stored_free(stored);
        } else {
            stored->queue->open_count--;
            stored->redelivered = true;
            queue_insert(stored->queue, stored);
        }
        stored = next;
    }
    for (struct queue *queue = broker->queues; queue != NULL; queue = queue->next) {
        consumer_remove(queue, connection);
    }
    struct connection **link = &broker->connections;
    while (*link != connection) {
        link = &(*link)->next;
    }
    *link = connection->next;
    buf_done(&connection->answers);
    memory_free(NULL, connection, sizeof *connection);
}

uint64_t broker_memory_connect(struct broker_memory *broker)
{
    if (!broker->is_up) return 0;
    struct connection *connection = memory_alloc(NULL, sizeof *connection);
    if (connection == NULL) {
        broker_memory_kill(broker);
        return 0;
    }
    *connection = (struct connection){.number = broker->next_connection++, .next_tag = 1};
    struct connection **link = &broker->connections;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = connection;
    return connection->number;
}

void broker_memory_disconnect(struct broker_memory *broker, uint64_t number)
{
    struct connection *connection = connection_find(broker, number);
    if (connection != NULL) connection_end(broker, connection);
}

bool broker_memory_is_connected(const struct broker_memory *broker, uint64_t number)
{
    return connection_find(broker, number) != NULL;
}

/* ---- requests ---- */

void broker_memory_declare(struct broker_memory *broker, const char *name, bool single,
                           bool durable)
{
    if (!broker->is_up || queue_find(broker, name) != NULL) return;
    struct queue *queue = memory_alloc(NULL, sizeof *queue);
    if (queue == NULL) {
        broker_memory_kill(broker);
        return;
    }
    *queue = (struct queue){.single = single, .durable = durable};
    int size = snprintf(queue->name, sizeof queue->name, "%s", name);
    ASSERT(size >= 0 && (size_t)size < sizeof queue->name);
    struct queue **link = &broker->queues;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = queue;
}

static void answer_cancelled(struct broker_memory *broker, struct connection *connection,
                             const char *name)
{
    struct broker_answer answer = {.kind = BROKER_CANCELLED};
    int size = snprintf(answer.queue, sizeof answer.queue, "%s", name);
    ASSERT(size >= 0 && (size_t)size < sizeof answer.queue);
    connection_answer(broker, connection, &answer);
}

void broker_memory_consume(struct broker_memory *broker, uint64_t number, const char *name,
                           uint32_t prefetch)
{
    struct connection *connection = connection_find(broker, number);
    if (connection == NULL) return;
    struct queue *queue = queue_find(broker, name);
    if (queue == NULL) {
        answer_cancelled(broker, connection, name);
        return;
    }
    if (consumer_find(queue, connection) != NULL) return;
    struct broker_consumer *consumer = memory_alloc(NULL, sizeof *consumer);
    if (consumer == NULL) {
        broker_memory_kill(broker);
        return;
    }
    *consumer = (struct broker_consumer){
        .connection = connection, .number = broker->next_consumer++, .prefetch = prefetch};
    struct broker_consumer **link = &queue->consumers;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = consumer;
}

void broker_memory_cancel(struct broker_memory *broker, uint64_t number, const char *name)
{
    const struct connection *connection = connection_find(broker, number);
    struct queue *queue = queue_find(broker, name);
    if (connection != NULL && queue != NULL) consumer_remove(queue, connection);
}

void broker_memory_publish(struct broker_memory *broker, uint64_t number, const char *name,
                           struct text bytes, uint64_t sequence)
{
    struct connection *connection = connection_find(broker, number);
    if (connection == NULL) return;
    struct queue *queue = queue_find(broker, name);
    struct broker_answer answer = {
        .kind = BROKER_CONFIRM, .sequence = sequence, .returned_first = queue == NULL};
    if (queue != NULL) {
        struct stored *stored = memory_alloc(NULL, sizeof *stored + bytes.size);
        if (stored == NULL) {
            broker_memory_kill(broker);
            return;
        }
        *stored = (struct stored){.place = queue->next_place++, .size = bytes.size};
        if (bytes.size > 0) memcpy(stored->bytes, bytes.bytes, bytes.size);
        queue_insert(queue, stored);
    }
    connection_answer(broker, connection, &answer);
}

void broker_memory_acknowledge(struct broker_memory *broker, uint64_t number, uint64_t tag,
                               bool multiple)
{
    struct connection *connection = connection_find(broker, number);
    if (connection == NULL) return;
    struct stored **link = &connection->open;
    struct stored *before = NULL;
    while (*link != NULL && (*link)->tag <= tag) {
        struct stored *stored = *link;
        if (!multiple && stored->tag != tag) {
            before = stored;
            link = &stored->next;
            continue;
        }
        open_settle(connection, stored);
        *link = stored->next;
        if (connection->open_tail == stored) connection->open_tail = before;
        stored_free(stored);
    }
}

/* ---- actions ---- */

/* The consumer of this connection that the queue has a message for now, or NULL. */
static struct broker_consumer *queue_consumer_ready(const struct queue *queue,
                                                    const struct connection *connection)
{
    if (queue->head == NULL) return NULL;
    struct broker_consumer *consumer = consumer_find(queue, connection);
    if (consumer == NULL || (queue->single && consumer != queue->consumers)) return NULL;
    if (consumer->prefetch != 0 && consumer->open_count >= consumer->prefetch) return NULL;
    return consumer;
}

static uint64_t count_ready(const struct broker_memory *broker, const struct connection *connection)
{
    size_t count;
    (void)connection_answers(connection, &count); /* Only how many there are. */
    for (const struct queue *queue = broker->queues; queue != NULL; queue = queue->next) {
        count += queue_consumer_ready(queue, connection) != NULL;
    }
    return count;
}

static void take_answer(struct connection *connection, size_t index, struct broker_action *out)
{
    size_t count;
    struct broker_answer *answers = connection_answers(connection, &count);
    struct broker_answer *answer = &answers[index];
    *out = (struct broker_action){.kind = answer->kind, .sequence = answer->sequence};
    memcpy(out->queue, answer->queue, sizeof out->queue);
    if (answer->returned_first) {
        out->kind = BROKER_RETURN;
        answer->returned_first = false;
        return;
    }
    memmove(answer, answer + 1, (count - index - 1) * sizeof *answer);
    connection->answers.size -= sizeof *answer;
}

static bool take_delivery(struct broker_memory *broker, struct connection *connection,
                          struct queue *queue, struct broker_action *out)
{
    struct buf bytes = {0};
    buf_put(&bytes, queue->head->bytes, queue->head->size);
    if (bytes.failed) {
        broker_memory_kill(broker);
        return false;
    }
    struct broker_consumer *consumer = consumer_find(queue, connection);
    struct stored *stored = queue_take(queue);
    stored->queue = queue;
    stored->consumer = consumer->number;
    stored->tag = connection->next_tag++;
    queue->open_count++;
    consumer->open_count++;
    if (connection->open == NULL) {
        connection->open = stored;
    } else {
        connection->open_tail->next = stored;
    }
    connection->open_tail = stored;
    *out = (struct broker_action){.kind = BROKER_DELIVERY,
                                  .tag = stored->tag,
                                  .redelivered = stored->redelivered,
                                  .bytes = bytes};
    memcpy(out->queue, queue->name, sizeof out->queue);
    return true;
}

bool broker_memory_take(struct broker_memory *broker, uint64_t number, uint64_t choice,
                        struct broker_action *out)
{
    struct connection *connection = connection_find(broker, number);
    if (connection == NULL) return false;
    uint64_t ready = count_ready(broker, connection);
    if (ready == 0) return false;
    uint64_t index = choice % ready;
    size_t answer_count;
    (void)connection_answers(connection, &answer_count); /* Only how many there are. */
    if (index < answer_count) {
        take_answer(connection, (size_t)index, out);
        return true;
    }
    index -= answer_count;
    struct queue *queue = broker->queues;
    while (queue_consumer_ready(queue, connection) == NULL || index-- > 0) {
        queue = queue->next;
    }
    return take_delivery(broker, connection, queue, out);
}

bool broker_memory_has_action(const struct broker_memory *broker, uint64_t number)
{
    const struct connection *connection = connection_find(broker, number);
    return connection != NULL && count_ready(broker, connection) > 0;
}

/* ---- faults ---- */

/* Open messages of the queue stay with their connections, and belong nowhere. */
static void queue_remove(struct broker_memory *broker, struct queue *queue)
{
    queue_drop_ready(queue);
    for (struct connection *c = broker->connections; c != NULL; c = c->next) {
        for (struct stored *stored = c->open; stored != NULL; stored = stored->next) {
            if (stored->queue == queue) stored->queue = NULL;
        }
    }
    while (queue->consumers != NULL) {
        consumer_remove(queue, queue->consumers->connection);
    }
    struct queue **link = &broker->queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    memory_free(NULL, queue, sizeof *queue);
}

void broker_memory_kill(struct broker_memory *broker)
{
    while (broker->connections != NULL) {
        connection_end(broker, broker->connections);
    }
    struct queue *queue = broker->queues;
    while (queue != NULL) {
        struct queue *next = queue->next;
        if (!queue->durable) queue_remove(broker, queue);
        queue = next;
    }
    broker->is_up = false;
}

void broker_memory_start(struct broker_memory *broker)
{
    broker->is_up = true;
}

bool broker_memory_is_up(const struct broker_memory *broker)
{
    return broker->is_up;
}

void broker_memory_purge(struct broker_memory *broker, const char *name)
{
    struct queue *queue = queue_find(broker, name);
    if (queue != NULL) queue_drop_ready(queue);
}

void broker_memory_delete(struct broker_memory *broker, const char *name)
{
    struct queue *queue = queue_find(broker, name);
    if (queue == NULL) return;
    while (broker->is_up && queue->consumers != NULL) {
        struct connection *connection = queue->consumers->connection;
        consumer_remove(queue, connection);
        answer_cancelled(broker, connection, name);
    }
    /* Running out of memory may have ended it already. */
    queue = queue_find(broker, name);
    if (queue != NULL) queue_remove(broker, queue);
}

void broker_memory_depth(const struct broker_memory *broker, const char *name,
                         uint64_t *out_messages, uint32_t *out_consumers)
{
    const struct queue *queue = queue_find(broker, name);
    *out_messages = queue != NULL ? queue->ready_count : 0;
    *out_consumers = 0;
    const struct broker_consumer *consumer = queue != NULL ? queue->consumers : NULL;
    for (; consumer != NULL; consumer = consumer->next) {
        (*out_consumers)++;
    }
}

uint64_t broker_memory_count(const struct broker_memory *broker, const char *name)
{
    uint64_t count = 0;
    for (const struct queue *queue = broker->queues; queue != NULL; queue = queue->next) {
        if (name != NULL && strcmp(queue->name, name) != 0) continue;
        count += queue->ready_count + queue->open_count;
    }
    return count;
}

void broker_memory_destroy(struct broker_memory *broker)
{
    if (broker == NULL) return;
    while (broker->connections != NULL) {
        connection_end(broker, broker->connections);
    }
    while (broker->queues != NULL) {
        queue_remove(broker, broker->queues);
    }
    memory_free(NULL, broker, sizeof *broker);
}
