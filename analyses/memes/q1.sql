-- The average score of a post.

SELECT avg(score) AS average FROM posts;
