/* curl_library.h - libcurl's global state is set up once per process, whoever comes first.
 *
 * It is never taken down: threads may still be using it when main returns.
 * Threads: any.
 */
#ifndef IO_CURL_LIBRARY_H
#define IO_CURL_LIBRARY_H

#include "base/error.h"

MUST_USE status curl_library_prepare(struct error *err);

#endif
