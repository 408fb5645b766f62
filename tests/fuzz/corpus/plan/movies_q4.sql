-- The actors who appear most in Argentina's films since 2000.

PARAMETER country = 'Argentina';
PARAMETER since = DATE '2000-01-01';
PARAMETER top = 10;

SELECT actor.name, count(*) AS appearances
FROM movies m
JOIN credits c ON c.id = m.id,
UNNEST(pluck(c."cast", 'name')) AS actor(name)
WHERE m.release_date >= $since
  AND list_contains(pluck(m.production_countries, 'name'), $country)
GROUP BY actor.name
ORDER BY appearances DESC, actor.name
LIMIT $top;
