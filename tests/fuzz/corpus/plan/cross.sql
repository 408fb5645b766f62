SELECT m.title, g.name, arg_max(r.rating, r.movieId), avg(number) FROM movies m,
  UNNEST(pluck(m.genres, 'name')) AS g(name), flags JOIN ratings r ON r.movieId = m.id
WHERE CASE WHEN flag THEN m.budget // 2 ELSE length(text) END > (SELECT max(score) FROM posts)
GROUP BY m.title, g.name;
