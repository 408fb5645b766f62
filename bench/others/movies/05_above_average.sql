-- Sub-query: films rated above the average of all ratings, by language.

WITH rated AS (SELECT movieId, avg(rating) AS average FROM ratings GROUP BY movieId)
SELECT m.original_language, count(*) AS films, max(r.average) AS best
FROM movies m
JOIN rated r ON r.movieId = m.id
WHERE r.average > (SELECT avg(rating) FROM ratings)
GROUP BY m.original_language
ORDER BY films DESC, m.original_language;
