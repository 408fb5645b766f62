/* SPDX-License-Identifier: Apache-2.0 */
/* http_exchange.c - from the request line to the end of the reply, within the limits.
 *
 * Requests that are malformed, too large or come while there is no room are refused here; the
 * listener does not see them.
 */
#include "cluster/net/http_exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "engine/base/assert.h"
#include "cluster/net/http_slot.h"

enum { BUSY_RETRY_MS = 1000 };

/* ---- replies ---- */

/* MHD_NO: the connection is closed without one. */
static enum MHD_Result queue_reply(struct http_server *server, struct http_slot *slot)
{
    const struct http_reply *reply = &slot->reply;
    /* The slot holds the body until the request has ended; the response does not outlive that. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body.size, reply->body.bytes, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;

    const char *type = reply->content_type;
    if (type == NULL) type = "application/octet-stream";
    bool whole = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES;
    if (reply->retry_after_ms != 0) {
        char seconds[16];
        (void)snprintf(seconds, sizeof seconds, "%" PRIu32, (reply->retry_after_ms - 1) / 1000 + 1);
        whole = whole &&
                MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds) == MHD_YES;
    }
    if (atomic_load(&server->stopping)) {
        whole = whole &&
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
    }
    enum MHD_Result result = MHD_NO;
    if (whole) result = MHD_queue_response(slot->connection, reply->status, response);
    MHD_destroy_response(response);
    if (result == MHD_YES) http_slot_move(server, slot, SLOT_SENDING);
    return result;
}

static const char *refusal_body(uint32_t code)
{
    switch (code) {
    case MHD_HTTP_BAD_REQUEST:
        return "{\"error\":{\"code\":\"input\",\"message\":\"the request is malformed\"}}\n";
    case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
        return "{\"error\":{\"code\":\"limit\",\"message\":\"the headers are too large\"}}\n";
    case MHD_HTTP_CONTENT_TOO_LARGE:
        return "{\"error\":{\"code\":\"limit\",\"message\":\"the body is too large\"}}\n";
    default:
        return "{\"error\":{\"code\":\"limit\","
               "\"message\":\"the server takes no requests at the moment\"}}\n";
    }
}

void http_make_refusal(struct http_reply *reply, uint32_t code)
{
    *reply = (struct http_reply){.status = code, .content_type = "application/json"};
    if (code == MHD_HTTP_SERVICE_UNAVAILABLE) reply->retry_after_ms = BUSY_RETRY_MS;
    buf_put_string(&reply->body, refusal_body(code));
}

static enum MHD_Result queue_refusal(struct http_server *server, struct http_slot *slot)
{
    http_make_refusal(&slot->reply, slot->refusal);
    return queue_reply(server, slot);
}

/* ---- requests ---- */

/* The headers that decide where a body ends. Of two that contradict each other, a proxy before us
 * may believe the other one: request smuggling, RFC 9112 section 11.2. */
struct framing {
    uint32_t length_count;
    uint32_t encoding_count;
    bool is_unknown;
};

static enum MHD_Result look_at_framing(void *context, enum MHD_ValueKind kind, const char *key,
                                       const char *value)
{
    struct framing *framing = context;
    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        framing->length_count++;
    } else if (strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->encoding_count++;
        if (value == NULL || strcasecmp(value, "chunked") != 0) framing->is_unknown = true;
    }
    return MHD_YES;
}

static bool is_framed_well(struct MHD_Connection *connection)
{
    struct framing framing = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at_framing, &framing);
    return framing.length_count + framing.encoding_count <= 1 && !framing.is_unknown;
}

static const char *header_value(struct MHD_Connection *connection, const char *name)
{
    const char *value = NULL;
    if (name != NULL) value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value != NULL ? value : "";
}

/* build_head has reserved room, so that texts do not move. */
static struct text put_head(struct buf *head, struct text text)
{
    struct text copy = {(const char *)head->bytes + head->size, text.size};
    buf_put_text(head, text);
    return copy;
}

/* The path comes from the request line. The library's is decoded, and the router decodes again:
 * %252F would become a slash. */
static bool build_head(struct http_server *server, struct http_slot *slot, struct text method)
{
    struct text values[HTTP_HEADERS_MAX];
    struct text path = {(const char *)slot->uri.bytes, (uint32_t)slot->uri.size};
    struct text query = {"", 0};
    const char *mark = path.size > 0 ? memchr(path.bytes, '?', path.size) : NULL;
    if (mark != NULL) {
        query = (struct text){mark + 1, (uint32_t)(path.bytes + path.size - mark - 1)};
        path.size = (uint32_t)(mark - path.bytes);
    }
    size_t size = (size_t)method.size + path.size + query.size + 1;
    for (uint32_t i = 0; i < HTTP_HEADERS_MAX; i++) {
        values[i] = text_of(header_value(slot->connection, server->options.header_names[i]));
        size += values[i].size;
    }
    struct http_request *request = &slot->request;
    if (!buf_reserve(&request->head, size)) return false;
    request->method = put_head(&request->head, method);
    request->path = put_head(&request->head, path);
    request->query = put_head(&request->head, query);
    for (uint32_t i = 0; i < HTTP_HEADERS_MAX; i++) {
        request->headers[i] = put_head(&request->head, values[i]);
    }
    return true;
}

/* A decoded path with a zero byte would look shorter than it is. */
static bool has_encoded_zero(const struct buf *uri)
{
    if (uri->size == 0) return false;
    const char *mark = memchr(uri->bytes, '?', uri->size);
    size_t size = mark != NULL ? (size_t)(mark - (const char *)uri->bytes) : uri->size;
    return memmem(uri->bytes, size, "%00", 3) != NULL;
}

static size_t header_size(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info != NULL ? info->header_size : 0;
}

/* The library has checked that it is a number. */
static uint64_t declared_length(struct MHD_Connection *connection)
{
    return strtoull(header_value(connection, MHD_HTTP_HEADER_CONTENT_LENGTH), NULL, 10);
}

/* All headers are there: decides whether to read the body. A refusal for want of room is sent after
 * the body, so that the connection can be kept; other refusals are sent at once. */
static enum MHD_Result begin_request(struct http_server *server, struct http_slot *slot,
                                     struct text method)
{
    struct MHD_Connection *connection = slot->connection;
    uint64_t length = declared_length(connection);
    struct buf *body = &slot->request.body;
    *body = (struct buf){.budget = server->options.bodies};
    slot->begun = true;
    bool at_once = header_value(connection, MHD_HTTP_HEADER_EXPECT)[0] != '\0';
    if (header_size(connection) > server->options.header_limit) {
        slot->refusal = MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
        at_once = true;
    } else if (!is_framed_well(connection) || has_encoded_zero(&slot->uri)) {
        slot->refusal = MHD_HTTP_BAD_REQUEST;
        at_once = true;
    } else if (length > server->options.body_limit) {
        slot->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
        at_once = true;
    } else if (atomic_load(&server->stopping) || slot->uri.failed ||
               !build_head(server, slot, method) ||
               (length > 0 && !buf_reserve(body, (size_t)length + server->options.body_room))) {
        slot->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
    }
    if (slot->refusal != 0) http_request_done(&slot->request);
    return slot->refusal != 0 && at_once ? queue_refusal(server, slot) : MHD_YES;
}

static enum MHD_Result take_body(struct http_server *server, struct http_slot *slot,
                                 const char *bytes, size_t size)
{
    struct buf *body = &slot->request.body;
    if (slot->refusal == 0) {
        bool fits = size <= server->options.body_limit - body->size;
        if (fits) buf_put(body, bytes, size);
        if (fits && !body->failed) return MHD_YES;
        slot->refusal = fits ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_CONTENT_TOO_LARGE;
        http_request_done(&slot->request);
    }
    slot->discarded += size;
    if (slot->discarded <= server->options.body_limit) return MHD_YES;
    /* Only a body in chunks gets here. It may never end, so it gets no reply. */
    (void)shutdown(slot->socket, SHUT_RDWR); /* Fails when it is shut already. */
    return MHD_NO;
}

static enum MHD_Result hand_over(struct http_server *server, struct http_slot *slot)
{
    struct http_request request = slot->request;
    slot->request = (struct http_request){0};
    /* Before any thread can reply. */
    MHD_suspend_connection(slot->connection);
    http_slots_lock(server);
    slot->serial = server->next_serial++;
    request.id = http_slot_id(server, slot);
    http_slot_move_locked(slot, SLOT_WAITING);
    http_slots_unlock(server);
    server->listener->request(server->listener, &request);
    return MHD_YES;
}

/* ---- what the library calls ---- */

static struct http_slot *slot_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

void http_exchange_connection(void *context, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = context;
    struct http_slot *slot = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        http_server_wake(server); /* For the clients that wait to be accepted. */
        if (slot == NULL) return;
        if (slot->state != SLOT_IDLE) http_slot_end_request(server, slot);
        buf_done(&slot->uri);
        slot->connection = NULL;
        socket_linger_add(&server->linger, slot->socket, http_now_ms());
        http_slot_move(server, slot, SLOT_FREE);
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    slot = info != NULL ? http_slot_take(server) : NULL;
    if (slot == NULL) return; /* Its first request is its end. */
    slot->connection = connection;
    slot->socket = info->connect_fd;
    slot->has_asked = false;
    slot->uri = (struct buf){.limit = server->options.header_limit};
    *socket_context = slot;
}

void *http_exchange_request_line(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct http_slot *slot = slot_of(connection);
    if (slot == NULL) return NULL;
    slot->has_asked = true;
    http_slot_move(context, slot, SLOT_READING);
    buf_put_string(&slot->uri, uri);
    return slot;
}

enum MHD_Result http_exchange_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *bytes, size_t *size, void **request_context)
{
    struct http_server *server = context;
    struct http_slot *slot = *request_context;
    (void)connection, (void)url, (void)version;
    if (slot == NULL) return MHD_NO;
    switch (http_slot_state(server, slot)) {
    case SLOT_READING:
        if (!slot->begun) return begin_request(server, slot, text_of(method));
        if (*size > 0) {
            size_t given = *size;
            *size = 0;
            return take_body(server, slot, bytes, given);
        }
        if (slot->refusal != 0) return queue_refusal(server, slot);
        return hand_over(server, slot);
    case SLOT_ANSWERED:
        return queue_reply(server, slot);
    default:
        return MHD_NO;
    }
}

void http_exchange_completed(void *context, struct MHD_Connection *connection,
                             void **request_context, enum MHD_RequestTerminationCode code)
{
    struct http_slot *slot = *request_context;
    (void)connection, (void)code;
    if (slot != NULL) http_slot_end_request(context, slot);
}
