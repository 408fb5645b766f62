/* SPDX-License-Identifier: Apache-2.0 */
/* http_exchange.h - libmicrohttpd's callbacks for one request and its reply.
 *
 * Only for http_server.c, which registers them. All run in the server's thread.
 */
#ifndef CLUSTER_NET_HTTP_EXCHANGE_H
#define CLUSTER_NET_HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <stdint.h>

#include "cluster/net/http_server.h"

/* MHD_NotifyConnectionCallback: a connection begins or has ended. */
void http_exchange_connection(void *context, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode code);
/* The request line is there. The result is the request_context of http_exchange_request. */
void *http_exchange_request_line(void *context, const char *uri, struct MHD_Connection *connection);
/* MHD_AccessHandlerCallback: called when the headers are there, for each part of the body, at its
 * end, and when the connection is resumed with a reply. */
enum MHD_Result http_exchange_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *bytes, size_t *size, void **request_context);
/* MHD_RequestCompletedCallback. */
void http_exchange_completed(void *context, struct MHD_Connection *connection,
                             void **request_context, enum MHD_RequestTerminationCode code);

/* A reply of the server itself. Without memory for it, the body is left out. */
void http_make_refusal(struct http_reply *reply, uint32_t code);

#endif
