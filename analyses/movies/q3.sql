-- The best and the worst rated of Argentina's films since 2000.

PARAMETER country = 'Argentina';
PARAMETER since = DATE '2000-01-01';

WITH rated AS (
    SELECT m.id, m.title, avg(r.rating) AS average
    FROM movies m
    JOIN ratings r ON r.movieId = m.id
    WHERE m.release_date >= $since
      AND list_contains(pluck(m.production_countries, 'name'), $country)
    GROUP BY m.id, m.title
)
(SELECT id, title, average FROM rated ORDER BY average DESC, id, title LIMIT 1)
UNION ALL
(SELECT id, title, average FROM rated ORDER BY average, id, title LIMIT 1);
