/* SPDX-License-Identifier: Apache-2.0 */
/* curl_library.h - sets up libcurl's global state once per process, at the first use.
 *
 * It is never cleaned up: threads may still use it when main returns.
 * Threads: any.
 */
#ifndef CLUSTER_NET_CURL_LIBRARY_H
#define CLUSTER_NET_CURL_LIBRARY_H

#include "engine/base/error.h"

MUST_USE status curl_library_prepare(struct error *err);

#endif
