/* SPDX-License-Identifier: Apache-2.0 */
/* api_json.h - the small bodies of the API, for api.c alone; api.h has the large ones. */
#ifndef CLUSTER_WIRE_API_JSON_H
#define CLUSTER_WIRE_API_JSON_H

#include "cluster/wire/api.h"

/* end_count and end_sum of the request. */
void api_end_encode(const struct api_request *request, struct buf *out);
MUST_USE status api_end_decode(struct text json, struct arena *arena, struct api_request *out,
                               struct error *err);

void api_error_encode(const struct error *reported, struct buf *out);
/* False: the bytes are no such body, or memory is short; *out is left alone. */
bool api_error_decode(struct text json, struct error *out);

#endif
