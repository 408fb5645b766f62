-- Regular expression: overviews that speak of letters or of winter, by year.

SELECT year(release_date) AS year, count(*) AS films, avg(budget) AS budget
FROM movies
WHERE regexp_matches(overview, '\b(letters?|winter|memory)\b', 'i')
GROUP BY year
ORDER BY year;
