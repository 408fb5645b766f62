-- Top k: the films with most ratings.

SELECT movieId, count(*) AS ratings, avg(rating) AS average
FROM ratings
GROUP BY movieId
ORDER BY ratings DESC, movieId
LIMIT 100;
