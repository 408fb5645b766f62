-- Join on a text key, top k: the posts with most comments.

SELECT p.id, p.score, count(*) AS comments
FROM posts p
JOIN comments c ON split_part(split_part(c.permalink, '/comments/', 2), '/', 1) = p.id
GROUP BY p.id, p.score
ORDER BY comments DESC, p.id, p.score
LIMIT 100;
