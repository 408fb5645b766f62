/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_config.c - any bytes are a cluster that can be run, or are refused with a reason.
 *
 * The first line, if it begins with MILLRACE_, is given as a variable of the environment.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/memory.h"
#include "cluster/config/cluster_config.h"
#include "cluster/wire/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_endpoints(const struct config_endpoint *endpoints, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ASSERT(manifest_name_valid(text_of(endpoints[i].name)));
        ASSERT(endpoints[i].host[0] != '\0');
        ASSERT(endpoints[i].port != 0);
    }
}

static void check_config(const struct cluster_config *config)
{
    ASSERT(config->gateway_count > 0);
    ASSERT(config->worker_count > 0 && config->worker_count <= CONFIG_WORKERS_MAX);
    ASSERT(config->starts_broker == (config->broker_count == 0));
    ASSERT(manifest_name_valid(text_of(config->name)));
    ASSERT(config->data_dir[0] != '\0');
    ASSERT(config->max_jobs > 0 && config->work_queues > 0 && config->window > 0);
    ASSERT(config->chunk_size < config->max_message);
    ASSERT(config->key_file[0] != '\0');
    ASSERT((config->tls_certificate == NULL) == (config->tls_key == NULL));
    ASSERT((config->broker_certificate == NULL) == (config->broker_key == NULL));
    ASSERT(config->token == NULL || config->token_file == NULL);
    ASSERT(config->failure_timeout_ms >= 4 * config->heartbeat_period_ms);
    ASSERT((config->start_command != NULL) == (config->driver == CONFIG_DRIVER_COMMAND));
    ASSERT((config->kill_command != NULL) == (config->driver == CONFIG_DRIVER_COMMAND));
    ASSERT(config->docker_socket[0] != '\0');
    check_endpoints(config->gateways, config->gateway_count);
    check_endpoints(config->monitors, config->monitor_count);
    ASSERT(config->workers[0].maps);
    ASSERT(config->workers[config->worker_count - 1].folds);
    for (uint32_t i = 0; i < config->worker_count; i++) {
        ASSERT(manifest_name_valid(text_of(config->workers[i].name)));
        ASSERT(config->workers[i].maps || config->workers[i].folds);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = memory_alloc(NULL, size + 1);
    const char *environment[2] = {NULL, NULL};
    size_t begin = 0;
    struct arena arena = {0};
    struct cluster_config config;
    struct error err = {.text = ""};
    ASSERT(bytes != NULL);
    if (size > 0) memcpy(bytes, data, size);
    bytes[size] = '\0';
    char *line_end = memchr(bytes, '\n', size);
    if (line_end != NULL && strncmp(bytes, "MILLRACE_", 9) == 0) {
        *line_end = '\0';
        environment[0] = bytes;
        begin = (size_t)(line_end + 1 - bytes);
    }
    struct text text = {bytes + begin, (uint32_t)(size - begin)};
    status result = cluster_config_parse(text, "c.ini", environment, &arena, &config, &err);
    ASSERT(result == STATUS_OK || result == STATUS_INPUT || result == STATUS_LIMIT);
    if (result == STATUS_OK) {
        check_config(&config);
    } else {
        ASSERT(err.text[0] != '\0');
    }
    arena_done(&arena);
    memory_free(NULL, bytes, size + 1);
    return 0;
}
