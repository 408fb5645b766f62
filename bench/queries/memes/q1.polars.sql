SELECT avg(score) AS average FROM posts
