/* curl_library.h - libcurl's global state is set up once per process, whoever comes first.
 *
 * It is never taken down: threads may still be using it when main returns.
 * Threads: any.
 */
#ifndef CLUSTER_NET_CURL_LIBRARY_H
#define CLUSTER_NET_CURL_LIBRARY_H

#include "engine/base/error.h"

MUST_USE status curl_library_prepare(struct error *err);

#endif
