-- DuckDB does not know how few films there are and would build its table of ratings: it is told.
SET disabled_optimizers = 'join_order,build_side_probe_side';
WITH rated AS (
    SELECT m.id, m.title, avg(r.rating) AS average
    FROM ratings() r
    JOIN (
        SELECT id, title
        FROM movies()
        WHERE release_date >= DATE '2000-01-01'
          AND contains(production_countries, '''name'': ''Argentina''')
    ) m ON r.movieId = m.id
    GROUP BY m.id, m.title
)
(SELECT id, title, average FROM rated ORDER BY average DESC, id, title LIMIT 1)
UNION ALL
(SELECT id, title, average FROM rated ORDER BY average, id, title LIMIT 1);
