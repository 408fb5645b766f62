// SPDX-License-Identifier: Apache-2.0
// meter.mjs - times one piece of work of a peer, and writes its answer.
//
// node itself does not count: the clock starts when the engine is already loaded and stops when all
// rows are there, and memory is what came on top of what the process had before. Turning the rows
// into text comes afterwards.
import fs from "node:fs";

const text = (value) => {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return `[${value.map((item) => text(item) ?? "").join(", ")}]`;
  if (Array.isArray(value.items)) return text(value.items);
  if (value instanceof Date) return value.toISOString().slice(0, 10);
  return String(value);
};

export async function measure(answerFile, work) {
  const before = process.memoryUsage().rss;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const rows = await work();
  const wall = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  const peak = process.resourceUsage().maxRSS * 1024 - before;
  fs.writeFileSync(answerFile, JSON.stringify(rows().map((row) => row.map(text))));
  console.log(JSON.stringify({ wall, cpu: (used.user + used.system) / 1e6, peak }));
}
