// SPDX-License-Identifier: Apache-2.0
// duckdb.mjs - one run of DuckDB.
//
// usage: node duckdb.mjs SQL_FILE ANSWER_FILE THREADS
//
// The SQL file has several statements, each ending with a semicolon at the end of a line; the last
// is the question. In memory, with defaults but for the number of threads.
import fs from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import { measure } from "./meter.mjs";

const [sqlFile, answerFile, threads] = process.argv.slice(2);
const statements = fs
  .readFileSync(sqlFile, "utf8")
  .split(/;\s*$/m)
  .filter((statement) => statement.replace(/^\s*--.*$/gm, "").trim() !== "");

await measure(answerFile, async () => {
  const instance = await DuckDBInstance.create(":memory:", { threads });
  const connection = await instance.connect();
  let reader;
  for (const statement of statements) reader = await connection.runAndReadAll(statement);
  return () => reader.getRows();
});
process.exit(0);
