WITH spoken AS (
    SELECT split_part(split_part(permalink, '/comments/', 2), '/', 1) AS id,
           avg(sentiment) AS average
    FROM comments
    WHERE sentiment IS NOT NULL
    GROUP BY id
)
SELECT split_part(p.url, '/', 3) AS host, count(*) AS posts, count(c.average) AS spoken
FROM posts p
LEFT JOIN spoken c ON c.id = p.id
GROUP BY host
ORDER BY posts DESC, host
