-- Comments are summed per post before the join: posts with the same id and url are one group.
WITH spoken AS (
    SELECT split_part(split_part(permalink, '/comments/', 2), '/', 1) AS id,
           avg(sentiment) AS average
    FROM comments()
    WHERE sentiment IS NOT NULL AND body NOT IN ('[deleted]', '[removed]')
    GROUP BY ALL
)
SELECT p.id, p.url, s.average
FROM posts() p
JOIN spoken s ON s.id = p.id
WHERE p.url IS NOT NULL
ORDER BY average DESC, p.id, p.url
LIMIT 1;
