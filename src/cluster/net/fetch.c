/* fetch.c - libcurl does the protocol; here are the limits and the file. */
#include "cluster/net/fetch.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdio.h>
#include <strings.h>

#include "engine/base/arena.h"
#include "cluster/net/curl_library.h"
#include "engine/file/output_file.h"

enum {
    SIZE_LIMIT = 32 * 1024 * 1024,
    REDIRECT_LIMIT = 5,
    CONNECT_SECONDS = 10,
    TOTAL_SECONDS = 60
};

struct download {
    struct output_file file;
    uint64_t byte_count;
    bool too_large;
    struct error write_error; /* Code STATUS_OK: writing was not the trouble. */
    const atomic_bool *cancelled;
};

static size_t receive(char *bytes, size_t size, size_t count, void *context)
{
    struct download *download = context;
    size_t total = size * count;
    if (total > SIZE_LIMIT - download->byte_count) {
        download->too_large = true;
        return 0;
    }
    status result = output_file_write(&download->file, bytes, total, download->cancelled,
                                      &download->write_error);
    if (result != STATUS_OK) return 0;
    download->byte_count += total;
    return total;
}

static int watch(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total,
                 curl_off_t up_now)
{
    const struct download *download = context;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return atomic_load(download->cancelled) ? 1 : 0;
}

static bool configure(CURL *curl, const char *url, struct download *download, char *reason)
{
    CURLcode codes[] = {
        curl_easy_setopt(curl, CURLOPT_URL, url),
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https"),
        curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https"),
        curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L),
        curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECT_LIMIT),
        curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)SIZE_LIMIT),
        curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS),
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TOTAL_SECONDS),
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L),
        curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L),
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "millrace/" MILLRACE_VERSION),
        curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason),
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive),
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, download),
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L),
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch),
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, download),
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i] != CURLE_OK) return false;
    }
    return true;
}

static status explain_failure(const struct download *download, CURLcode code, const char *reason,
                              struct error *err)
{
    if (download->write_error.code != STATUS_OK) {
        *err = download->write_error;
        return err->code;
    }
    if (download->too_large || code == CURLE_FILESIZE_EXCEEDED) {
        return error_set(err, STATUS_LIMIT, "it is larger than %d MiB", SIZE_LIMIT / (1024 * 1024));
    }
    if (code == CURLE_ABORTED_BY_CALLBACK) return error_set(err, STATUS_CANCELLED, "interrupted");
    return error_set(err, STATUS_IO, "%s", reason[0] != '\0' ? reason : curl_easy_strerror(code));
}

static status transfer(const char *url, struct download *download, struct fetch_report *report,
                       struct error *err)
{
    char reason[CURL_ERROR_SIZE] = "";
    TRY(curl_library_prepare(err));
    CURL *curl = curl_easy_init();
    if (curl == NULL) return error_memory(err);
    status result = STATUS_OK;
    CURLcode code = CURLE_FAILED_INIT;
    if (configure(curl, url, download, reason)) code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
        result = explain_failure(download, code, reason, err);
    } else {
        char *type = NULL;
        if (curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type != NULL) {
            (void)snprintf(report->content_type, FETCH_TYPE_SIZE, "%s", type); /* May be cut. */
        }
        report->byte_count = download->byte_count;
    }
    curl_easy_cleanup(curl);
    return result;
}

static bool is_http(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

status fetch_file(const char *url, const char *path, const atomic_bool *cancelled,
                  struct fetch_report *out_report, struct error *err)
{
    if (!is_http(url)) return error_set(err, STATUS_INPUT, "only http and https are fetched");
    struct arena arena = {0};
    struct fetch_report report = {0};
    struct download download = {.cancelled = cancelled};
    status result = output_file_create(&download.file, path, &arena, err);
    if (result == STATUS_OK) result = transfer(url, &download, &report, err);
    if (result == STATUS_OK) result = output_file_seal(&download.file, err);
    if (result == STATUS_OK) result = output_file_publish(&download.file, err);
    if (result == STATUS_OK) *out_report = report;
    output_file_discard(&download.file);
    arena_done(&arena);
    return result;
}
