SELECT split_part(url, '/', 3) AS host, count(*) AS posts, avg(score) AS average
FROM posts
WHERE url IS NOT NULL
GROUP BY host
ORDER BY posts DESC, host
