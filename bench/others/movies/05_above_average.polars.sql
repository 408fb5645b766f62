WITH rated AS (
    SELECT movieId, avg(rating) AS average FROM ratings GROUP BY movieId
), level AS (
    SELECT avg(rating) AS level FROM ratings
)
SELECT m.original_language, count(*) AS films, max(r.average) AS best
FROM movies m
JOIN rated r ON r.movieId = m.id
CROSS JOIN level
WHERE r.average > level.level
GROUP BY m.original_language
ORDER BY films DESC, m.original_language
