/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - draws a plan for people (text), programs (JSON) and graphviz (DOT). */
#ifndef ENGINE_SQL_EXPLAIN_H
#define ENGINE_SQL_EXPLAIN_H

#include "engine/base/buf.h"
#include "engine/plan/plan.h"

void explain_text(const struct plan *plan, struct buf *out);
void explain_json(const struct plan *plan, struct buf *out);
void explain_dot(const struct plan *plan, struct buf *out);

#endif
