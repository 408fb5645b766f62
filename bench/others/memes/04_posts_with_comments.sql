-- Count distinct of text: how many posts somebody has written to, in each forum.

SELECT forum, count(*) AS posts
FROM (
    SELECT DISTINCT split_part(permalink, '/', 5) AS forum,
           split_part(split_part(permalink, '/comments/', 2), '/', 1) AS post
    FROM comments
) d
GROUP BY forum
ORDER BY posts DESC, forum;
