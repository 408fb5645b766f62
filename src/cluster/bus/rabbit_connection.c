/* SPDX-License-Identifier: Apache-2.0 */
/* rabbit_connection.c - frames in and out, a part at a time.
 *
 * librabbitmq waits for ever when the socket's buffer is full, and a broker with an alarm does not
 * read. So messages are written in frames that fit into the room that poll() reports, and input is
 * read between two of them: that is how a connection.blocked is noticed. TCP_USER_TIMEOUT ends a
 * connection whose bytes the broker does not take, in case the library waits after all.
 */
#include "cluster/bus/rabbit_connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <amqp_tcp_socket.h>

#include "engine/base/arena.h"
#include "engine/base/assert.h"
#include "cluster/bus/rabbit_tls.h"

enum {
    CHANNELS = 3,                /* 0 is the connection's own. */
    FRAME_MAX = 512 << 10,       /* A broker may negotiate a smaller one. */
    FRAME_OVERHEAD = 8,          /* AMQP 0-9-1: seven bytes before the payload, one behind. */
    SEND_BUFFER_BYTES = 1 << 20, /* The kernel caps it, and doubles it for its bookkeeping. */
    SEND_BUFFER_PARTS = 3,       /* poll() reports room when a third of it is free. */
    CLOSE_MS = 1000,
    RESERVE_LIMIT = 16 << 20, /* The buffer of a larger message grows as its bytes come. */
    NUMBER_SIZE = 21
};

/* A message that is being assembled from frames. */
struct assembly {
    enum rabbit_input_kind kind; /* RABBIT_NOTHING: none. */
    bool has_header;
    uint64_t left;
    uint64_t number;
    char consumer[RABBIT_CONSUMER_SIZE];
    struct buf bytes;
};

struct rabbit_connection {
    amqp_connection_state_t state;
    uint32_t part_bytes; /* Fits a frame, and the room that poll() reports. */
    struct assembly assemblies[CHANNELS];
};

static struct timeval time_of_ms(uint32_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

static amqp_bytes_t bytes_of(const char *string)
{
    return amqp_cstring_bytes(string);
}

static bool has_room(const struct rabbit_connection *connection)
{
    struct pollfd poll_fd = {.fd = amqp_get_sockfd(connection->state), .events = POLLOUT};
    return poll(&poll_fd, 1, 0) > 0;
}

/* ---- addresses ---- */

status rabbit_uri_parse(const char *uri, struct arena *arena, struct rabbit_uri *out,
                        struct error *err)
{
    char *copy = arena_copy_string(arena, text_of(uri));
    if (copy == NULL) return error_memory(err);
    struct amqp_connection_info info;
    if (amqp_parse_url(copy, &info) != AMQP_STATUS_OK || info.host == NULL) {
        /* The URI may hold a password: it is not repeated. */
        return error_set(err, STATUS_USAGE,
                         "the broker's URI must be amqp://user:password@host:port/vhost");
    }
    bool has_vhost = info.vhost != NULL && info.vhost[0] != '\0';
    *out = (struct rabbit_uri){.user = info.user,
                               .password = info.password,
                               .host = info.host,
                               .vhost = has_vhost ? info.vhost : "/",
                               .port = info.port,
                               .is_tls = info.ssl != 0};
    return STATUS_OK;
}

/* ---- errors ---- */

static void copy_bytes(char *out, size_t size, amqp_bytes_t bytes)
{
    size_t count = bytes.len < size - 1 ? bytes.len : size - 1;
    if (count > 0) memcpy(out, bytes.bytes, count);
    out[count] = '\0';
}

static status close_text(const char *what, amqp_method_t method, struct error *err)
{
    char text[256] = "";
    uint16_t code = 0;
    if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
        const amqp_connection_close_t *close = method.decoded;
        code = close->reply_code;
        copy_bytes(text, sizeof text, close->reply_text);
    } else if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
        const amqp_channel_close_t *close = method.decoded;
        code = close->reply_code;
        copy_bytes(text, sizeof text, close->reply_text);
    }
    return error_set(err, STATUS_IO, "%s: the broker says: %u %s", what, code, text);
}

static status library_status(int code, const char *what, struct error *err)
{
    if (code == AMQP_STATUS_OK) return STATUS_OK;
    const char *reason = rabbit_tls_reason(code);
    return error_set(err, STATUS_IO, "%s: %s", what,
                     reason != NULL ? reason : amqp_error_string2(code));
}

static status reply_status(amqp_rpc_reply_t reply, const char *what, struct error *err)
{
    switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
        return STATUS_OK;
    case AMQP_RESPONSE_SERVER_EXCEPTION:
        return close_text(what, reply.reply, err);
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
        return library_status(reply.library_error, what, err);
    case AMQP_RESPONSE_NONE:
    default:
        return error_set(err, STATUS_IO, "%s: the broker closed the connection", what);
    }
}

status rabbit_check(struct rabbit_connection *connection, const char *what, struct error *err)
{
    return reply_status(amqp_get_rpc_reply(connection->state), what, err);
}

/* ---- connecting ---- */

static amqp_table_entry_t true_entry(const char *key)
{
    return (amqp_table_entry_t){
        .key = bytes_of(key), .value = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value = {.boolean = 1}}};
}

static status login(struct rabbit_connection *connection, const struct rabbit_uri *uri,
                    const struct rabbit_options *options, struct error *err)
{
    amqp_table_entry_t capabilities[] = {
        true_entry("basic.nack"),
        true_entry("connection.blocked"),
        true_entry("publisher_confirms"),
        true_entry("consumer_cancel_notify"),
        true_entry("authentication_failure_close"),
    };
    amqp_table_entry_t properties[] = {
        {.key = bytes_of("capabilities"),
         .value = {.kind = AMQP_FIELD_KIND_TABLE,
                   .value = {.table = {sizeof capabilities / sizeof capabilities[0],
                                       capabilities}}}},
        {.key = bytes_of("connection_name"),
         .value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = bytes_of(options->name)}}},
    };
    amqp_table_t table = {sizeof properties / sizeof properties[0], properties};
    amqp_rpc_reply_t reply = amqp_login_with_properties(
        connection->state, uri->vhost, CHANNELS, FRAME_MAX, (int)options->heartbeat_s, &table,
        AMQP_SASL_METHOD_PLAIN, uri->user, uri->password);
    return reply_status(reply, "logging in", err);
}

static uint32_t choose_part(const struct rabbit_connection *connection)
{
    uint32_t part = (uint32_t)amqp_get_frame_max(connection->state) - FRAME_OVERHEAD;
    int room = 0;
    socklen_t size = sizeof room;
    int fd = amqp_get_sockfd(connection->state);
    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) != 0) return part;
    uint32_t most = (uint32_t)room / SEND_BUFFER_PARTS;
    return most < part ? most : part;
}

static status connect_socket(struct rabbit_connection *connection, const struct rabbit_uri *uri,
                             const struct rabbit_options *options, struct error *err)
{
    amqp_socket_t *socket = NULL;
    if (uri->is_tls) {
        TRY(rabbit_tls_socket(connection->state, &options->tls, &socket, err));
    } else {
        socket = amqp_tcp_socket_new(connection->state);
        if (socket == NULL) return error_memory(err);
    }
    struct timeval deadline = time_of_ms(options->deadline_ms);
    TRY(library_status(amqp_socket_open_noblock(socket, uri->host, uri->port, &deadline),
                       "connecting", err));
    int fd = amqp_get_sockfd(connection->state);
    int size = SEND_BUFFER_BYTES;
    /* Where the kernel refuses, the buffer is smaller and writing slower. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    rabbit_set_timeout(connection, options->deadline_ms);
    if (amqp_set_handshake_timeout(connection->state, &deadline) != AMQP_STATUS_OK ||
        amqp_set_rpc_timeout(connection->state, &deadline) != AMQP_STATUS_OK) {
        return error_memory(err);
    }
    TRY(login(connection, uri, options, err));
    connection->part_bytes = choose_part(connection);
    return STATUS_OK;
}

status rabbit_connect(const struct rabbit_uri *uri, const struct rabbit_options *options,
                      struct rabbit_connection **out, struct error *err)
{
    struct rabbit_connection *connection = memory_alloc(NULL, sizeof *connection);
    if (connection == NULL) return error_memory(err);
    *connection = (struct rabbit_connection){.state = amqp_new_connection()};
    status result = connection->state == NULL ? error_memory(err)
                                              : connect_socket(connection, uri, options, err);
    if (result != STATUS_OK) {
        rabbit_drop(connection);
        return error_prefix(err, "%s:%d", uri->host, uri->port);
    }
    *out = connection;
    return STATUS_OK;
}

void rabbit_drop(struct rabbit_connection *connection)
{
    if (connection == NULL) return;
    /* Nothing depends on how it ends. */
    if (connection->state != NULL) (void)amqp_destroy_connection(connection->state);
    for (size_t i = 0; i < CHANNELS; i++) {
        buf_done(&connection->assemblies[i].bytes);
    }
    memory_free(NULL, connection, sizeof *connection);
}

void rabbit_close(struct rabbit_connection *connection)
{
    if (connection == NULL) return;
    struct timeval bound = time_of_ms(CLOSE_MS);
    /* Without room, a clean close would wait for a broker that does not read. */
    if (has_room(connection) && amqp_set_rpc_timeout(connection->state, &bound) == AMQP_STATUS_OK) {
        (void)amqp_connection_close(connection->state, AMQP_REPLY_SUCCESS); /* Or it is dropped. */
    }
    rabbit_drop(connection);
}

amqp_connection_state_t rabbit_state(const struct rabbit_connection *connection)
{
    return connection->state;
}

status rabbit_open_channel(struct rabbit_connection *connection, amqp_channel_t channel,
                           struct error *err)
{
    ASSERT(channel > 0 && channel < CHANNELS);
    (void)amqp_channel_open(connection->state, channel); /* rabbit_check reports it. */
    return rabbit_check(connection, "opening a channel", err);
}

void rabbit_set_timeout(struct rabbit_connection *connection, uint32_t failure_timeout_ms)
{
    /* On a system without it, heartbeats and deadlines notice a dead broker later. */
    (void)setsockopt(amqp_get_sockfd(connection->state), IPPROTO_TCP, TCP_USER_TIMEOUT,
                     &failure_timeout_ms, sizeof failure_timeout_ms);
}

/* ---- reading ---- */

static uint64_t parse_number(amqp_bytes_t bytes)
{
    uint64_t number = 0;
    const unsigned char *digits = bytes.bytes;
    if (bytes.len == 0 || bytes.len >= NUMBER_SIZE) return 0;
    for (size_t i = 0; i < bytes.len; i++) {
        if (digits[i] < '0' || digits[i] > '9') return 0;
        number = number * 10 + (uint64_t)(digits[i] - '0');
    }
    return number;
}

static void begin_assembly(struct assembly *assembly, enum rabbit_input_kind kind)
{
    buf_done(&assembly->bytes);
    *assembly = (struct assembly){.kind = kind};
}

static status read_close(struct rabbit_connection *connection, const amqp_frame_t *frame,
                         struct error *err)
{
    if (frame->payload.method.id == AMQP_CONNECTION_CLOSE_METHOD) {
        amqp_connection_close_ok_t ok = {0};
        /* The connection ends in any case. */
        (void)amqp_send_method(connection->state, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    }
    return close_text("the connection was closed", frame->payload.method, err);
}

static status read_method(struct rabbit_connection *connection, const amqp_frame_t *frame,
                          struct rabbit_input *out, struct error *err)
{
    const amqp_method_t *method = &frame->payload.method;
    struct assembly *assembly = &connection->assemblies[frame->channel];
    switch (method->id) {
    case AMQP_BASIC_DELIVER_METHOD: {
        const amqp_basic_deliver_t *deliver = method->decoded;
        begin_assembly(assembly, RABBIT_DELIVERY);
        assembly->number = deliver->delivery_tag;
        copy_bytes(assembly->consumer, sizeof assembly->consumer, deliver->consumer_tag);
        break;
    }
    case AMQP_BASIC_RETURN_METHOD:
        begin_assembly(assembly, RABBIT_RETURN);
        break;
    case AMQP_BASIC_ACK_METHOD: {
        const amqp_basic_ack_t *ack = method->decoded;
        out->kind = RABBIT_ACK;
        out->number = ack->delivery_tag;
        out->multiple = ack->multiple != 0;
        break;
    }
    case AMQP_BASIC_NACK_METHOD: {
        const amqp_basic_nack_t *nack = method->decoded;
        out->kind = RABBIT_NACK;
        out->number = nack->delivery_tag;
        out->multiple = nack->multiple != 0;
        break;
    }
    case AMQP_BASIC_CANCEL_METHOD: {
        const amqp_basic_cancel_t *cancel = method->decoded;
        out->kind = RABBIT_CANCEL;
        copy_bytes(out->consumer, sizeof out->consumer, cancel->consumer_tag);
        break;
    }
    case AMQP_CONNECTION_BLOCKED_METHOD:
        out->kind = RABBIT_BLOCKED;
        break;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
        out->kind = RABBIT_UNBLOCKED;
        break;
    case AMQP_CONNECTION_CLOSE_METHOD:
    case AMQP_CHANNEL_CLOSE_METHOD:
        return read_close(connection, frame, err);
    default: /* Not expected. */
        break;
    }
    return STATUS_OK;
}

static status read_header(struct assembly *assembly, const amqp_frame_t *frame, struct error *err)
{
    if (assembly->kind == RABBIT_NOTHING || assembly->has_header) {
        return error_set(err, STATUS_IO, "the broker sent a header without a message");
    }
    const amqp_basic_properties_t *properties = frame->payload.properties.decoded;
    assembly->has_header = true;
    assembly->left = frame->payload.properties.body_size;
    if (assembly->kind == RABBIT_RETURN) {
        bool has_number = (properties->_flags & AMQP_BASIC_CORRELATION_ID_FLAG) != 0;
        assembly->number = has_number ? parse_number(properties->correlation_id) : 0;
        return STATUS_OK;
    }
    uint64_t size = assembly->left < RESERVE_LIMIT ? assembly->left : RESERVE_LIMIT;
    if (!buf_reserve(&assembly->bytes, (size_t)size)) return error_memory(err);
    return STATUS_OK;
}

static status read_body(struct assembly *assembly, const amqp_frame_t *frame, struct error *err)
{
    amqp_bytes_t part = frame->payload.body_fragment;
    if (assembly->kind == RABBIT_NOTHING || !assembly->has_header || part.len > assembly->left) {
        return error_set(err, STATUS_IO, "the broker sent more than a message");
    }
    assembly->left -= part.len;
    if (assembly->kind == RABBIT_RETURN) return STATUS_OK;
    buf_put(&assembly->bytes, part.bytes, part.len);
    if (assembly->bytes.failed) return error_memory(err);
    return STATUS_OK;
}

static void finish_assembly(struct assembly *assembly, amqp_channel_t channel,
                            struct rabbit_input *out)
{
    if (!assembly->has_header || assembly->left > 0) return;
    out->kind = assembly->kind;
    out->channel = channel;
    out->number = assembly->number;
    memcpy(out->consumer, assembly->consumer, sizeof out->consumer);
    out->bytes = assembly->bytes;
    *assembly = (struct assembly){.kind = RABBIT_NOTHING};
}

static status read_frame(struct rabbit_connection *connection, const amqp_frame_t *frame,
                         struct rabbit_input *out, struct error *err)
{
    if (frame->channel >= CHANNELS) {
        return error_set(err, STATUS_IO, "the broker uses a channel that is not open");
    }
    struct assembly *assembly = &connection->assemblies[frame->channel];
    switch (frame->frame_type) {
    case AMQP_FRAME_METHOD:
        return read_method(connection, frame, out, err);
    case AMQP_FRAME_HEADER:
        TRY(read_header(assembly, frame, err));
        break;
    case AMQP_FRAME_BODY:
        TRY(read_body(assembly, frame, err));
        break;
    default: /* Heartbeats. */
        return STATUS_OK;
    }
    finish_assembly(assembly, frame->channel, out);
    return STATUS_OK;
}

status rabbit_read(struct rabbit_connection *connection, struct rabbit_input *out,
                   struct error *err)
{
    *out = (struct rabbit_input){.kind = RABBIT_NOTHING};
    while (out->kind == RABBIT_NOTHING) {
        amqp_frame_t frame;
        struct timeval now = {0};
        int code = amqp_simple_wait_frame_noblock(connection->state, &frame, &now);
        if (code == AMQP_STATUS_TIMEOUT) return STATUS_OK;
        TRY(library_status(code, "the connection to the broker was lost", err));
        TRY(read_frame(connection, &frame, out, err));
        amqp_maybe_release_buffers(connection->state);
    }
    return STATUS_OK;
}

/* ---- writing ---- */

static int send_begin(struct rabbit_connection *connection, const struct rabbit_message *message,
                      const amqp_basic_properties_t *properties)
{
    amqp_basic_publish_t publish = {.routing_key = bytes_of(message->queue), .mandatory = 1};
    int code = amqp_send_method(connection->state, 1, AMQP_BASIC_PUBLISH_METHOD, &publish);
    if (code != AMQP_STATUS_OK) return code;
    amqp_frame_t header = {.frame_type = AMQP_FRAME_HEADER,
                           .channel = 1,
                           .payload = {.properties = {.class_id = AMQP_BASIC_CLASS,
                                                      .body_size = message->bytes.size,
                                                      .decoded = (void *)(uintptr_t)properties}}};
    return amqp_send_frame(connection->state, &header);
}

static int send_part(struct rabbit_connection *connection, struct rabbit_message *message)
{
    uint32_t left = message->bytes.size - message->sent;
    uint32_t size = left < connection->part_bytes ? left : connection->part_bytes;
    amqp_frame_t body = {
        .frame_type = AMQP_FRAME_BODY,
        .channel = 1,
        .payload = {
            .body_fragment = {size, (void *)(uintptr_t)(message->bytes.bytes + message->sent)}}};
    message->sent += size;
    return amqp_send_frame(connection->state, &body);
}

status rabbit_write(struct rabbit_connection *connection, struct rabbit_message *message,
                    bool *out_wrote, struct error *err)
{
    *out_wrote = has_room(connection);
    if (!*out_wrote) return STATUS_OK;
    int code;
    if (message->begun) {
        code = send_part(connection, message);
    } else {
        char number[NUMBER_SIZE];
        snprintf(number, sizeof number, "%llu", (unsigned long long)message->number);
        amqp_basic_properties_t properties = {
            ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG,
            .delivery_mode =
                message->persistent ? AMQP_DELIVERY_PERSISTENT : AMQP_DELIVERY_NONPERSISTENT,
            .correlation_id = bytes_of(number)};
        char expires[NUMBER_SIZE];
        if (message->expires_ms > 0) {
            snprintf(expires, sizeof expires, "%u", message->expires_ms);
            properties._flags |= AMQP_BASIC_EXPIRATION_FLAG;
            properties.expiration = bytes_of(expires);
        }
        message->begun = true;
        if (message->bytes.size <= connection->part_bytes) {
            /* One call sends all frames as one packet. */
            amqp_bytes_t body = {message->bytes.size, (void *)(uintptr_t)message->bytes.bytes};
            message->sent = message->bytes.size;
            code = amqp_basic_publish(connection->state, 1, amqp_empty_bytes,
                                      bytes_of(message->queue), 1, 0, &properties, body);
        } else {
            code = send_begin(connection, message, &properties);
        }
    }
    return library_status(code, "sending to the broker", err);
}

bool rabbit_is_written(const struct rabbit_message *message)
{
    return message->begun && message->sent == message->bytes.size;
}

void rabbit_wait(struct rabbit_connection *connection, const struct rabbit_wait *wait)
{
    if (amqp_frames_enqueued(connection->state) || amqp_data_in_buffer(connection->state)) return;
    struct pollfd poll_fds[2] = {
        {.fd = amqp_get_sockfd(connection->state),
         .events = (short)(POLLIN | (wait->room_wanted ? POLLOUT : 0))},
        {.fd = wait->wake_fd, .events = POLLIN},
    };
    (void)poll(poll_fds, 2, (int)wait->timeout_ms); /* The caller tries to read in any case. */
}

/* ---- probing ---- */

static bool wait_for(int fd, short events, uint32_t timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    return poll(&poll_fd, 1, (int)timeout_ms) > 0;
}

static bool answers(int fd, const struct sockaddr *address, socklen_t size, uint32_t timeout_ms)
{
    if (connect(fd, address, size) != 0) {
        int failure = 0;
        socklen_t failure_size = sizeof failure;
        if (errno != EINPROGRESS || !wait_for(fd, POLLOUT, timeout_ms)) return false;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &failure_size) != 0) return false;
        if (failure != 0) return false;
    }
    static const char greeting[8] = {'A', 'M', 'Q', 'P', 0, 0, 9, 1};
    if (send(fd, greeting, sizeof greeting, MSG_NOSIGNAL) != (ssize_t)sizeof greeting) return false;
    unsigned char first;
    return wait_for(fd, POLLIN, timeout_ms) && recv(fd, &first, 1, 0) == 1;
}

bool rabbit_probe(const struct rabbit_uri *uri, uint32_t timeout_ms)
{
    if (uri->is_tls) return rabbit_tls_probe(uri->host, uri->port, timeout_ms);
    char port[16];
    snprintf(port, sizeof port, "%d", uri->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    if (getaddrinfo(uri->host, port, &hints, &addresses) != 0) return false;
    bool found = false;
    for (const struct addrinfo *a = addresses; a != NULL && !found; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        found = answers(fd, a->ai_addr, a->ai_addrlen, timeout_ms);
        (void)close(fd); /* Nothing was written to it that matters. */
    }
    freeaddrinfo(addresses);
    return found;
}
