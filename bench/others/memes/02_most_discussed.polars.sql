WITH spoken AS (
    SELECT split_part(split_part(permalink, '/comments/', 2), '/', 1) AS id FROM comments
)
SELECT p.id, p.score, count(*) AS comments
FROM posts p
JOIN spoken c ON c.id = p.id
GROUP BY p.id, p.score
ORDER BY comments DESC, p.id, p.score
LIMIT 100
