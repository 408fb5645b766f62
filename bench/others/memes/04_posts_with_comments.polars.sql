SELECT split_part(permalink, '/', 5) AS forum,
       count(DISTINCT split_part(split_part(permalink, '/comments/', 2), '/', 1)) AS posts
FROM comments
GROUP BY forum
ORDER BY posts DESC, forum
