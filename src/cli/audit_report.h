/* SPDX-License-Identifier: Apache-2.0 */
/* audit_report.h - the audit of a job, for people and for programs. */
#ifndef CLI_AUDIT_REPORT_H
#define CLI_AUDIT_REPORT_H

#include "engine/base/arena.h"
#include "engine/base/buf.h"
#include "cli/terminal.h"
#include "engine/local/audit.h"

/* A line per table and one for the run. */
void audit_short(const struct audit *audit, struct buf *out);
/* Everything, as tables, and then the short form. */
void audit_full(const struct audit *audit, struct terminal terminal, struct arena *arena,
                struct buf *out);
/* One object, without a line end. */
void audit_json(const struct audit *audit, struct buf *out);
/* The same without the history: equal bytes for equal answers, however they were computed. */
void audit_facts(const struct audit *audit, struct buf *out);

#endif
