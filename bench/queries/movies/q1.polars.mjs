// SPDX-License-Identifier: Apache-2.0
// The names stand behind 'name': in quotes of either kind.
export default ({ movies }, pl) =>
  movies
    .filter(pl.col("release_date").gtEq(pl.lit("2000-01-01").cast(pl.Date)))
    .filter(pl.col("release_date").ltEq(pl.lit("2009-12-31").cast(pl.Date)))
    .filter(pl.col("production_countries").str.contains("'name': 'Argentina'", true))
    .filter(pl.col("production_countries").str.contains("'name': 'Spain'", true))
    .sort(["title", "id"])
    .select(
      "title",
      pl
        .col("genres")
        .str.split("'name': ")
        .lst.slice(1, 1000)
        .lst.eval(pl.element().str.extract(`^["'](.+?)["'](?:, '|\\})`, 1)),
    );
