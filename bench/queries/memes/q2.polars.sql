WITH spoken AS (
    SELECT DISTINCT split_part(split_part(permalink, '/comments/', 2), '/', 1) AS id
    FROM comments
    WHERE body ~* 'university|college|student|teacher|professor'
      AND body <> '[deleted]' AND body <> '[removed]'
), level AS (
    SELECT avg(score) AS average FROM posts
)
SELECT DISTINCT p.url
FROM posts p
JOIN spoken s ON s.id = p.id
CROSS JOIN level
WHERE p.url IS NOT NULL AND p.score > level.average
ORDER BY url
