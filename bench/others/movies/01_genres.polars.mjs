// SPDX-License-Identifier: Apache-2.0
// The names stand behind 'name': in quotes of either kind; a list that is cut off is empty.
export default ({ movies }, pl) =>
  movies
    .filter(pl.col("genres").str.endsWith("]"))
    .select(pl.col("genres").str.split(", 'name': ").lst.slice(1, 1000).alias("name"), "revenue")
    .explode("name")
    .select(pl.col("name").str.extract(`^["'](.+?)["'](?:, '|\\})`, 1), pl.col("revenue"))
    .filter(pl.col("name").isNotNull())
    .groupBy("name")
    .agg(pl.len().alias("films"), pl.col("revenue").sum().alias("total"))
    .sort(["films", "name"], [true, false]);
