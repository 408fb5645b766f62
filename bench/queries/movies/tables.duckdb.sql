-- As one would write it at first: DuckDB finds out the types, and drops records that do not fit.
CREATE MACRO movies() AS TABLE
SELECT TRY_CAST(id AS BIGINT) AS id, title, genres, TRY_CAST(release_date AS DATE) AS release_date,
       overview, production_countries, spoken_languages, TRY_CAST(budget AS BIGINT) AS budget,
       CAST(TRY_CAST(revenue AS DOUBLE) AS BIGINT) AS revenue, original_language
FROM read_csv('{data}/movies_metadata.csv', ignore_errors = true, all_varchar = true)
WHERE TRY_CAST(id AS BIGINT) IS NOT NULL AND title IS NOT NULL AND genres IS NOT NULL
  AND TRY_CAST(release_date AS DATE) IS NOT NULL AND overview IS NOT NULL
  AND production_countries IS NOT NULL AND spoken_languages IS NOT NULL
  AND TRY_CAST(budget AS BIGINT) IS NOT NULL AND TRY_CAST(revenue AS DOUBLE) IS NOT NULL;

CREATE MACRO credits() AS TABLE
SELECT TRY_CAST(id AS BIGINT) AS id, "cast"
FROM read_csv('{data}/credits.csv', ignore_errors = true, all_varchar = true)
WHERE TRY_CAST(id AS BIGINT) IS NOT NULL AND "cast" IS NOT NULL;

CREATE MACRO ratings() AS TABLE
SELECT userId, movieId, rating, timestamp
FROM read_csv('{data}/ratings.csv', ignore_errors = true)
WHERE movieId IS NOT NULL AND rating IS NOT NULL;

-- Only ever asked for names, in a list of Python dictionaries. A list that is cut off is empty.
CREATE MACRO pluck(list, key) AS
list_transform(regexp_extract_all(CASE WHEN ends_with(list, ']') THEN list ELSE '' END,
                                  '(?:, |\{)''name'': (''[^'']*''|"[^"]*")', 1),
               lambda x: x[2:-2]);
