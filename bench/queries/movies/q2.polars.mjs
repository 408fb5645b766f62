// SPDX-License-Identifier: Apache-2.0
// A film of one country has 'name': once; the name is in quotes of either kind.
const name = `'name': ["'](.+?)["'](?:, '|\\})`;

export default ({ movies }, pl) =>
  movies
    .filter(pl.col("production_countries").str.split("'name': ").lst.lengths().eq(pl.lit(2)))
    .select(pl.col("production_countries").str.extract(name, 1).alias("country"), pl.col("budget"))
    .groupBy("country")
    .agg(pl.col("budget").sum().alias("total_budget"))
    .sort(["total_budget", "country"], [true, false])
    .limit(5);
