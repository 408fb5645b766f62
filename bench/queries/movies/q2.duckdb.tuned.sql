-- The list is made once per film.
WITH producers AS (SELECT pluck(production_countries, 'name') AS countries, budget FROM movies())
SELECT countries[1] AS country, sum(budget) AS total_budget
FROM producers
WHERE len(countries) = 1
GROUP BY country
ORDER BY total_budget DESC, country
LIMIT 5;
