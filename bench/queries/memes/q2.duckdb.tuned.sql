-- Posts are read once; the comments are filtered before their permalinks are taken apart.
WITH all_posts AS MATERIALIZED (SELECT id, url, score FROM posts()),
spoken AS (
    SELECT DISTINCT split_part(split_part(permalink, '/comments/', 2), '/', 1) AS id
    FROM comments()
    WHERE regexp_matches(body, '(?i)university|college|student|teacher|professor')
      AND body NOT IN ('[deleted]', '[removed]')
)
SELECT DISTINCT p.url
FROM all_posts p
JOIN spoken s ON s.id = p.id
WHERE p.url IS NOT NULL AND p.score > (SELECT avg(score) FROM all_posts)
ORDER BY p.url;
