-- The meme whose comments are the kindest.

SELECT p.id, p.url, avg(c.sentiment) AS average
FROM posts p
JOIN comments c ON split_part(split_part(c.permalink, '/comments/', 2), '/', 1) = p.id
WHERE p.url IS NOT NULL
  AND c.sentiment IS NOT NULL
  AND c.body NOT IN ('[deleted]', '[removed]')
GROUP BY p.id, p.url
ORDER BY average DESC, p.id, p.url
LIMIT 1;
