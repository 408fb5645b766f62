// SPDX-License-Identifier: Apache-2.0
// polars.mjs - one run of Polars. The number of threads comes by POLARS_MAX_THREADS.
//
// usage: node polars.mjs TABLES_JSON DATA_DIR FORM ANSWER_FILE ENGINE
//
// FORM is a file of Polars SQL, or a module whose default export makes a lazy frame of the tables.
// ENGINE is in-memory or streaming. A table in TABLES_JSON has parts (each: a pattern of files, and
// its columns in their order), the columns that may not be empty, and perhaps texts between which
// a column must lie. One column more than a file has is declared, so that records with too many
// fields show; those with too few have nothing in their last column, where that is never empty.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import pl from "nodejs-polars";
import { measure } from "./meter.mjs";

const [tablesFile, dataDir, form, answerFile, engine] = process.argv.slice(2);
const types = { text: pl.Utf8, int: pl.Int64, float: pl.Float64, date: pl.Date };

function scanPart(part) {
  const schema = Object.fromEntries(
    Object.entries(part.columns).map(([name, type]) => [name, types[type]]),
  );
  const last = Object.keys(part.columns).at(-1);
  return pl
    .scanCSV(path.join(dataDir, part.files), {
      hasHeader: false,
      skipRows: 1,
      ignoreErrors: true,
      truncateRaggedLines: true,
      schema: { ...schema, too_many: pl.Utf8 },
    })
    .filter(pl.col("too_many").isNull())
    .filter(part.lastMayBeEmpty ? pl.lit(true) : pl.col(last).isNotNull());
}

function scanTable(table) {
  const parts = table.parts.map((part) => scanPart(part).select(...table.columns));
  let frame = parts.length === 1 ? parts[0] : pl.concat(parts);
  for (const column of table.required) frame = frame.filter(pl.col(column).isNotNull());
  for (const [column, [low, high]] of Object.entries(table.between ?? {})) {
    frame = frame.filter(pl.col(column).gtEq(pl.lit(low)).and(pl.col(column).lt(pl.lit(high))));
  }
  return frame;
}

const description = JSON.parse(fs.readFileSync(tablesFile, "utf8"));
const isModule = form.endsWith(".mjs");
const make = isModule ? (await import(pathToFileURL(path.resolve(form)))).default : null;
const sql = isModule ? "" : fs.readFileSync(form, "utf8");

await measure(answerFile, async () => {
  const tables = {};
  for (const [name, table] of Object.entries(description)) {
    if (isModule || new RegExp(`\\b${name}\\b`).test(sql)) tables[name] = scanTable(table);
  }
  const frame = isModule
    ? make(tables, pl)
    : new pl.SQLContext(tables).execute(sql.replace(/;\s*$/, ""));
  const answer = frame.collectSync({ engine });
  return () => answer.rows();
});
process.exit(0);
