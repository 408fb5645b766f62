/* explain.h - draws a plan for people (text), programs (JSON) and graphviz (DOT). */
#ifndef SQL_EXPLAIN_H
#define SQL_EXPLAIN_H

#include "base/buf.h"
#include "plan/plan.h"

void explain_text(const struct plan *plan, struct buf *out);
void explain_json(const struct plan *plan, struct buf *out);
void explain_dot(const struct plan *plan, struct buf *out);

#endif
