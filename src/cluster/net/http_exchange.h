/* http_exchange.h - one request and its reply, as the library tells of them.
 *
 * Only for http_server.c, which gives these functions to the library. All run in the server's
 * thread.
 */
#ifndef CLUSTER_NET_HTTP_EXCHANGE_H
#define CLUSTER_NET_HTTP_EXCHANGE_H

#include <microhttpd.h>
#include <stdint.h>

#include "cluster/net/http_server.h"

/* MHD_NotifyConnectionCallback: a connection begins or has ended. */
void http_exchange_connection(void *context, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode code);
/* The request line is there. What this returns is what `http_exchange_request` finds as its own. */
void *http_exchange_request_line(void *context, const char *uri, struct MHD_Connection *connection);
/* MHD_AccessHandlerCallback: the headers are there, a part of the body, the end of it, or the reply
 * that it waited for. */
enum MHD_Result http_exchange_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *bytes, size_t *size, void **request_context);
/* MHD_RequestCompletedCallback. */
void http_exchange_completed(void *context, struct MHD_Connection *connection,
                             void **request_context, enum MHD_RequestTerminationCode code);

/* An answer by ourselves. A body that can't be written for want of memory is left out. */
void http_make_refusal(struct http_reply *reply, uint32_t code);

#endif
