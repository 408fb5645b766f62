-- Memes above the average score that made a commenter speak of school.

PARAMETER keywords = 'university|college|student|teacher|professor';

SELECT DISTINCT p.url
FROM posts p
JOIN comments c ON split_part(split_part(c.permalink, '/comments/', 2), '/', 1) = p.id
WHERE p.url IS NOT NULL
  AND p.score > (SELECT avg(score) FROM posts)
  AND c.body NOT IN ('[deleted]', '[removed]')
  AND regexp_matches(c.body, $keywords, 'i')
ORDER BY p.url;
