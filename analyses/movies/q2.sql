-- The countries that spent most on films they produced alone.

PARAMETER top = 5;

SELECT pluck(production_countries, 'name')[1] AS country, sum(budget) AS total_budget
FROM movies
WHERE len(pluck(production_countries, 'name')) = 1
GROUP BY country
ORDER BY total_budget DESC, country
LIMIT $top;
