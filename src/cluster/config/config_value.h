/* SPDX-License-Identifier: Apache-2.0 */
/* config_value.h - the kinds of values in a cluster file, read from text.
 *
 * Readers take the whole text or nothing: on failure they return false and leave *out alone.
 */
#ifndef CLUSTER_CONFIG_CONFIG_VALUE_H
#define CLUSTER_CONFIG_CONFIG_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/text.h"

/* Digits only. */
bool config_count_parse(struct text text, uint64_t *out);
/* Bytes, or with K, M or G in units of 1024, 1024^2 or 1024^3 bytes. */
bool config_size_parse(struct text text, uint64_t *out_bytes);
/* Seconds, also written with s; or with ms milliseconds, with m minutes. */
bool config_duration_parse(struct text text, uint64_t *out_ms);
/* host:port, or [v6 address]:port, borrowed. The port is not 0. */
bool config_address_parse(struct text text, struct text *out_host, uint16_t *out_port);
/* A name or an address, without port and brackets. */
bool config_host_valid(struct text text);

/* Without blanks on both sides. */
struct text config_trim(struct text text);
bool config_is_blank(char byte);

#endif
