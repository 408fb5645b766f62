/* SPDX-License-Identifier: Apache-2.0 */
/* csv_whole.h - the index of a chunk that is in memory from its first byte to its last. */
#ifndef UNIT_ENGINE_DATA_CSV_WHOLE_H
#define UNIT_ENGINE_DATA_CSV_WHOLE_H

#include "engine/data/csv_scan.h"

MUST_USE static inline status csv_index_build(struct csv_index *index, struct csv_input input,
                                              struct error *err)
{
    csv_index_begin(index, input.column_count);
    return csv_index_finish(index, input, err);
}

#endif
