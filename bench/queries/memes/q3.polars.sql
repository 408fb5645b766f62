WITH spoken AS (
    SELECT split_part(split_part(permalink, '/comments/', 2), '/', 1) AS id,
           avg(sentiment) AS average
    FROM comments
    WHERE sentiment IS NOT NULL AND body <> '[deleted]' AND body <> '[removed]'
    GROUP BY id
)
SELECT p.id, p.url, s.average
FROM posts p
JOIN spoken s ON s.id = p.id
WHERE p.url IS NOT NULL
ORDER BY s.average DESC, p.id, p.url
LIMIT 1
