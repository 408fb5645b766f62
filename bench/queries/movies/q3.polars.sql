WITH rated AS (
    SELECT m.id, m.title, avg(r.rating) AS average
    FROM (
        SELECT id, title
        FROM movies
        WHERE release_date >= DATE '2000-01-01'
          AND STRPOS(production_countries, '''name'': ''Argentina''') > 0
    ) m
    JOIN ratings r ON r.movieId = m.id
    GROUP BY m.id, m.title
)
SELECT * FROM (SELECT id, title, average FROM rated ORDER BY average DESC, id, title LIMIT 1) a
UNION ALL
SELECT * FROM (SELECT id, title, average FROM rated ORDER BY average, id, title LIMIT 1) b
ORDER BY average DESC
