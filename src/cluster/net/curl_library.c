/* SPDX-License-Identifier: Apache-2.0 */
/* curl_library.c - curl_global_init is not safe to call from two threads in every build of libcurl.
 */
#include "cluster/net/curl_library.h"

#include <curl/curl.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode outcome = CURLE_FAILED_INIT;

static void prepare(void)
{
    outcome = curl_global_init(CURL_GLOBAL_DEFAULT);
}

status curl_library_prepare(struct error *err)
{
    int failure = pthread_once(&once, prepare);
    if (failure != 0 || outcome != CURLE_OK) {
        return error_set(err, STATUS_IO, "cannot use libcurl: %s", curl_easy_strerror(outcome));
    }
    return STATUS_OK;
}
