// SPDX-License-Identifier: Apache-2.0
// The names stand behind 'name': in quotes of either kind.
export default ({ movies, credits }, pl) =>
  movies
    .filter(pl.col("release_date").gtEq(pl.lit("2000-01-01").cast(pl.Date)))
    .filter(pl.col("production_countries").str.contains("'name': 'Argentina'", true))
    .select("id")
    .join(credits, { on: "id" })
    .select(pl.col("cast").str.split("'name': ").lst.slice(1, 1000000).alias("name"))
    .explode("name")
    .select(pl.col("name").str.extract(`^["'](.+?)["'](?:, '|\\})`, 1))
    .filter(pl.col("name").isNotNull())
    .groupBy("name")
    .agg(pl.len().alias("appearances"))
    .sort(["appearances", "name"], [true, false])
    .limit(10);
