-- Unnest: the genres, how many films each has and what they took in.

SELECT g.name, count(*) AS films, sum(m.revenue) AS revenue
FROM movies m,
UNNEST(pluck(m.genres, 'name')) AS g(name)
GROUP BY g.name
ORDER BY films DESC, g.name;
