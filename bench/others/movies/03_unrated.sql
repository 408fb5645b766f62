-- Left join: how many films of each language were ever rated.

SELECT m.original_language, count(*) AS films, count(r.ratings) AS rated
FROM movies m
LEFT JOIN (SELECT movieId, count(*) AS ratings FROM ratings GROUP BY movieId) r ON r.movieId = m.id
GROUP BY m.original_language
ORDER BY films DESC, m.original_language;
