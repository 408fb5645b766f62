-- As one would write it at first: DuckDB finds out the types, and drops records that do not fit.
CREATE MACRO posts() AS TABLE
SELECT id, score, url, title, domain
FROM read_csv('{data}/posts.csv', ignore_errors = true, types = {'id': 'VARCHAR', 'score': 'BIGINT'})
WHERE id IS NOT NULL AND score IS NOT NULL;

CREATE MACRO comments() AS TABLE
SELECT permalink, body, TRY_CAST(sentiment AS DOUBLE) AS sentiment
FROM read_csv('{data}/comments.csv', ignore_errors = true, types = {'sentiment': 'VARCHAR'})
WHERE permalink IS NOT NULL;
